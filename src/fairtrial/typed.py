"""Frozen dataclasses from and to plain JSON values, with the path of the first value that does not fit.

The types of the fields are the schema: bool, int, float, str, `Literal`, enums, `Path`, lists, tuples, mappings,
unions, further dataclasses, and `object` for whatever JSON may hold. Nothing is converted but an int to a float, and
what is not named is refused. A dataclass whose JSON form differs has `from_plain` and `to_plain`. Written by hand:
pydantic takes long to import, msgspec does not name a mapping's keys.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
LARGEST = 2**63
NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number", types.NoneType: "null"}
NAMES |= {list: "a list", dict: "an object"}


class WrongValue(ValueError):
    """A value that does not fit its type. `at`: its path, as in `tasks.lm.comparisons[3].p`; empty for the top."""

    def __init__(self, at: str, reason: str) -> None:
        super().__init__(f"{at or 'the top'}: {reason}")
        self.at, self.reason = at, reason


@dataclass(frozen=True)
class AtLeast:
    """The least value that an annotated number may have."""

    least: float


Count = Annotated[int, AtLeast(0)]
Positive = Annotated[int, AtLeast(1)]


def structure(kind: type[T], value: object, at: str = "") -> T:
    """The value of this type that plain JSON values describe; `WrongValue` where they do not.

    Args:
        kind: a dataclass, or any other type named above
        value: what `json.loads` gives
        at: where the value was found, as the beginning of the path in an error
    """
    return _structure(kind, value, at)  # type: ignore[return-value]


def structure_fields(kind: type[T], value: object) -> T:
    """The same for a dataclass with a JSON form of its own, field by field: for its `from_plain`."""
    return _dataclass(kind, value, "")  # type: ignore[return-value]


def unstructure(value: object, other: Callable[[object], object] | None = None) -> object:
    """Plain JSON values that `structure` reads again. A field that is None by default is left out where it is None.
    `other`: what stands for a value that has no JSON form, such as an array."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        if (own_form := getattr(value, "to_plain", None)) is not None:
            return own_form()
        stored = ((field, getattr(value, field.name)) for field in fields(value))
        return {
            field.name: unstructure(own, other) for field, own in stored if own is not None or field.default is not None
        }
    if isinstance(value, Mapping):
        return {_key_text(key): unstructure(own, other) for key, own in value.items()}
    if isinstance(value, Sequence):
        return [unstructure(own, other) for own in value]
    if other is not None:
        return other(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _key_text(key: object) -> str:
    return str(key.value if isinstance(key, Enum) else key)


def _structure(kind: object, value: object, at: str) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is object:
        return value
    if origin is Annotated:
        number = _structure(arguments[0], value, at)
        for bound in arguments[1:]:
            if isinstance(bound, AtLeast) and number < bound.least:  # type: ignore[operator]
                raise WrongValue(at, f"must be at least {bound.least:g}, got {_short(value)}")
        return number
    if origin is Literal:
        return _one_of({choice: choice for choice in arguments}, value, at)
    if origin in (Union, types.UnionType):
        return _either(arguments, value, at)
    if origin in (list, Sequence, tuple):
        return _sequence(arguments, origin, value, at)
    if origin in (dict, Mapping):
        return _mapping(arguments[0], arguments[1], value, at)
    if kind in NAMES:
        return _plain(kind, value, at)
    if not isinstance(kind, type):
        if not isinstance(origin, type):  # of an array, with its shape and numbers
            raise TypeError(f"{kind} cannot be read from JSON")
        kind = origin
    if issubclass(kind, Enum):
        return _one_of({choice.value: choice for choice in kind}, value, at)
    if issubclass(kind, Path):
        return kind(str(_plain(str, value, at)))
    if hasattr(kind, "from_plain"):
        plain = _plain(dict, value, at)
        try:
            return kind.from_plain(plain)
        except WrongValue as error:
            raise WrongValue(".".join(filter(None, (at, error.at))), error.reason) from error
    if is_dataclass(kind):
        return _dataclass(kind, value, at)
    if not isinstance(value, kind):  # of any other class, as arrays: the value is one already
        raise WrongValue(at, f"must be {kind.__name__}, got {_short(value)}")
    return value


def _plain(kind: type, value: object, at: str) -> Any:
    accepted = (int, float) if kind is float else (kind,)
    if type(value) not in accepted or (type(value) is int and abs(value) >= LARGEST):
        raise WrongValue(at, f"must be {NAMES[kind]}, got {_short(value)}")
    return float(value) if kind is float else value  # type: ignore[arg-type]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_of(choices: Mapping[object, object], value: object, at: str) -> object:
    if not isinstance(value, bool | int | str) or value not in choices:
        raise WrongValue(at, f"must be one of {', '.join(map(str, choices))}, got {_short(value)}")
    return choices[value]


def _either(kinds: Sequence[object], value: object, at: str) -> object:
    """The first that fits; the error of the last one that is not null."""
    if value is None and types.NoneType in kinds:
        return None
    *others, last = [kind for kind in kinds if kind is not types.NoneType]
    for kind in others:
        try:
            return _structure(kind, value, at)
        except WrongValue:
            continue
    return _structure(last, value, at)


def _sequence(kinds: Sequence[object], origin: object, value: object, at: str) -> object:
    values = _plain(list, value, at)
    if origin is tuple and kinds[-1] is not Ellipsis:
        if len(values) != len(kinds):
            raise WrongValue(at, f"must be a list of {len(kinds)}, got {_short(value)}")
    else:
        kinds = [kinds[0]] * len(values)
    found = [_structure(kind, own, f"{at}[{n}]") for n, (kind, own) in enumerate(zip(kinds, values, strict=True))]
    return tuple(found) if origin is tuple else found


def _mapping(key: object, kind: object, value: object, at: str) -> object:
    found: dict[object, object] = {}
    for name, own in _plain(dict, value, at).items():
        if key is int and not name.lstrip("-").isdecimal():
            raise WrongValue(at, f"must have whole numbers as names, got {_short(name)}")
        read = int(name) if key is int else _structure(key, name, at)
        found[read] = _structure(kind, own, f"{at}.{name}" if at else name)
    return found


@cache
def _fields(kind: type) -> dict[str, tuple[object, bool]]:
    """Of a dataclass: the type of each field, and whether it must be given."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    }


def _dataclass(kind: type, value: object, at: str) -> object:
    known, plain = _fields(kind), _plain(dict, value, at)
    lead = f"{at}." if at else ""
    if unknown := [name for name in plain if name not in known]:
        raise WrongValue(f"{lead}{unknown[0]}", "is not known")
    if missing := [name for name, (_, needed) in known.items() if needed and name not in plain]:
        raise WrongValue(f"{lead}{missing[0]}", "is missing")
    own = {name: _structure(known[name][0], inner, f"{lead}{name}") for name, inner in plain.items()}
    try:
        return kind(**own)
    except WrongValue:
        raise
    except (TypeError, ValueError) as error:  # what __post_init__ refuses
        raise WrongValue(at, str(error)) from error
