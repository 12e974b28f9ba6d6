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
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[object, str], object]
LARGEST = 2**63


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
    return _reader(kind)(value, at)  # type: ignore[return-value, arg-type]


def structure_fields(kind: type[T], value: object) -> T:
    """The same for a dataclass with a JSON form of its own, field by field: for its `from_plain`."""
    return _fields_reader(kind)(value, "")  # type: ignore[return-value, arg-type]


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


@cache
def _reader(kind: object) -> Reader:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is object:
        return lambda value, at: value
    if origin is Annotated:
        return _bounded(_reader(arguments[0]), [each for each in arguments[1:] if isinstance(each, AtLeast)])
    if origin is Literal:
        return _one_of({choice: choice for choice in arguments})
    if origin in (Union, types.UnionType):
        return _either(arguments)
    if origin in (list, Sequence):
        return _sequence(arguments[0], list)
    if origin is tuple:
        return _sequence(arguments[0], tuple) if arguments[-1] is Ellipsis else _exactly(arguments)
    if origin in (dict, Mapping):
        return _mapping(*arguments)
    if isinstance(kind, type):
        if kind in (bool, int, float, str, types.NoneType):
            return _plain(kind)
        if issubclass(kind, Enum):
            return _one_of({choice.value: choice for choice in kind})
        if issubclass(kind, Path):
            return lambda value, at: kind(str(_plain(str)(value, at)))
        if hasattr(kind, "from_plain"):
            return _own_form(kind.from_plain)
        if is_dataclass(kind):
            return _record(kind)
        return _ready(kind)
    if isinstance(origin, type):  # of an array, with its shape and numbers
        return _ready(origin)
    raise TypeError(f"{kind} cannot be read from JSON")


def _plain(kind: type) -> Reader:
    name = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "null")
    accepted = (int, float) if kind is float else (kind,)

    def read(value: object, at: str) -> object:
        if type(value) not in accepted or (type(value) is int and abs(value) >= LARGEST):
            raise WrongValue(at, f"must be {name}, got {_short(value)}")
        return float(value) if kind is float else value  # type: ignore[arg-type]

    return read


def _ready(kind: type) -> Reader:
    """Of any other class, as arrays: the value is one already."""

    def read(value: object, at: str) -> object:
        if not isinstance(value, kind):
            raise WrongValue(at, f"must be {kind.__name__}, got {_short(value)}")
        return value

    return read


def _own_form(make: Callable[[dict[str, object]], object]) -> Reader:
    def read(value: object, at: str) -> object:
        if not isinstance(value, dict):
            raise WrongValue(at, f"must be an object, got {_short(value)}")
        try:
            return make(value)
        except WrongValue as error:
            raise WrongValue(".".join(filter(None, (at, error.at))), error.reason) from error

    return read


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bounded(read: Reader, bounds: Sequence[AtLeast]) -> Reader:
    def check(value: object, at: str) -> object:
        number = read(value, at)
        for bound in bounds:
            if number < bound.least:  # type: ignore[operator]
                raise WrongValue(at, f"must be at least {bound.least:g}, got {_short(value)}")
        return number

    return check


def _one_of(choices: Mapping[object, object]) -> Reader:
    def read(value: object, at: str) -> object:
        if not isinstance(value, bool | int | str) or value not in choices:
            raise WrongValue(at, f"must be one of {', '.join(map(str, choices))}, got {_short(value)}")
        return choices[value]

    return read


def _either(kinds: Sequence[object]) -> Reader:
    """The first that fits; the error of the last one that is not null."""
    readers = [_reader(kind) for kind in kinds if kind is not types.NoneType]
    optional = types.NoneType in kinds

    def read(value: object, at: str) -> object:
        if value is None and optional:
            return None
        for reader in readers[:-1]:
            try:
                return reader(value, at)
            except WrongValue:
                continue
        return readers[-1](value, at)

    return read


def _sequence(kind: object, make: Callable[[Sequence[object]], object]) -> Reader:
    inner = _reader(kind)

    def read(value: object, at: str) -> object:
        if not isinstance(value, list):
            raise WrongValue(at, f"must be a list, got {_short(value)}")
        return make([inner(own, f"{at}[{number}]") for number, own in enumerate(value)])

    return read


def _exactly(kinds: Sequence[object]) -> Reader:
    readers = [_reader(kind) for kind in kinds]

    def read(value: object, at: str) -> object:
        if not isinstance(value, list) or len(value) != len(readers):
            raise WrongValue(at, f"must be a list of {len(readers)}, got {_short(value)}")
        return tuple(reader(own, f"{at}[{n}]") for n, (reader, own) in enumerate(zip(readers, value, strict=True)))

    return read


def _mapping(key: type, kind: object) -> Reader:
    inner, of_number = _reader(kind), key is int
    of_key = None if key in (str, int) else _reader(key)

    def read(value: object, at: str) -> object:
        if not isinstance(value, dict):
            raise WrongValue(at, f"must be an object, got {_short(value)}")
        if of_number and (wrong := next((name for name in value if not name.lstrip("-").isdecimal()), None)):
            raise WrongValue(at, f"must have whole numbers as names, got {_short(wrong)}")
        lead = f"{at}." if at else ""
        return {
            int(name) if of_number else of_key(name, at) if of_key else name: inner(own, f"{lead}{name}")
            for name, own in value.items()
        }

    return read


@cache
def _fields_reader(kind: type) -> Reader:
    return _record(kind)


def _record(kind: type) -> Reader:
    made: dict[str, tuple[Reader, bool]] = {}

    def prepare() -> None:  # when first used: a type may hold itself
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            needed = field.default is MISSING and field.default_factory is MISSING
            made[field.name] = (_reader(hints[field.name]), needed)

    def read(value: object, at: str) -> object:
        if not made:
            prepare()
        if not isinstance(value, dict):
            raise WrongValue(at, f"must be an object, got {_short(value)}")
        lead = f"{at}." if at else ""
        if unknown := [name for name in value if name not in made]:
            raise WrongValue(f"{lead}{unknown[0]}", "is not known")
        if missing := [name for name, (_, needed) in made.items() if needed and name not in value]:
            raise WrongValue(f"{lead}{missing[0]}", "is missing")
        own = {name: reader(value[name], f"{lead}{name}") for name, (reader, _) in made.items() if name in value}
        try:
            return kind(**own)
        except (TypeError, ValueError) as error:  # what __post_init__ refuses
            if isinstance(error, WrongValue):
                raise
            raise WrongValue(at, str(error)) from error

    return read
