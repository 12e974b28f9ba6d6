"""Recipes as TOML: read, write (with each field's help as a comment), `--set a.b=c`, and the fingerprint.

The writer is ours: the standard library only reads TOML, and the writers on PyPI would not make comments from the
fields' help texts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fairtrial.duration import Duration
from fairtrial.errors import BadInput
from fairtrial.names import near
from fairtrial.recipe import PartChoice, Recipe

BUILT_IN = Path(__file__).parent / "recipes"
# fields younger than the first records, which keep their letters: they count only where they are set
YOUNGER = (("shape", "attention_dropout"), ("training", "save_memory"))


def load_recipe(path: Path) -> Recipe:
    """A recipe from a TOML file; fields it does not name keep their defaults."""
    return recipe_from(read_toml(path), path)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput("there is no such recipe file", path=path) from error
    except IsADirectoryError as error:
        raise BadInput("this is a folder; a recipe is a TOML file", path=path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 (byte {error.start})", "save the recipe as UTF-8", path=path) from error
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, or a number of 5,000 digits
        raise BadInput(f"not valid TOML: {error}", path=path) from error


def built_in_recipe(name: str, task: str) -> Recipe:
    """A recipe that ships with fairtrial: `course` or `default`, for each task."""
    known = sorted({path.stem.rpartition("-")[0] for path in BUILT_IN.glob("*.toml")})
    path = BUILT_IN / f"{name}-{task}.toml"
    if not path.is_file():
        raise BadInput(f"no built-in recipe is called {name!r}{near(name, known)}", "or name a TOML file")
    return load_recipe(path)


def recipe_from(table: dict[str, Any], path: Path | None = None) -> Recipe:
    return _value(Recipe, table, "", path)


def with_settings(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with `--set shape.heads=4` applied, one after another."""
    table = to_table(recipe)
    for setting in settings:
        name, value = read_setting(setting)
        *rooms, last = name.split(".")
        inner = table
        for room in rooms:
            inner = inner[room]
        inner[last] = value
    return recipe_from(table)


def read_setting(setting: str) -> tuple[str, Any]:
    """`shape.heads=4` -> the field's dotted name and its value. Whether it fits is for the whole recipe to say."""
    name, equals, text = (piece.strip() for piece in setting.partition("="))
    if not equals:
        raise BadInput(f"--set {setting!r} has no '='", "write it as --set shape.heads=4")
    *rooms, last = name.split(".")
    kinds: Any = Recipe
    for room in rooms:
        kinds = _find_field(kinds, room, name, None)
        if not _is_room(kinds):
            raise BadInput(f"--set {setting!r}: {room!r} has no fields")
    kind = _find_field(kinds, last, name, None)
    if _is_room(kind):
        example = f"{name}.{fields(kind)[0].name}"
        raise BadInput(f"--set {setting!r}: {name!r} is a table", f"set one of its fields, such as {example}")
    return name, _parse(text, kind)


def _is_room(kind: Any) -> bool:
    """Whether a field is a table of fields."""
    return is_dataclass(kind) and kind is not Duration and kind is not PartChoice


def _parse(text: str, kind: Any) -> Any:
    """A value typed on the command line. Text needs no quotes."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text
    if kind is str and not isinstance(value, str):
        return text
    if get_origin(kind) is tuple and not isinstance(value, list):
        return [word.strip().strip("\"'") for word in text.strip("[]").split(",")]
    return value


@cache
def field_types(kind: type) -> dict[str, Any]:
    """A dataclass's fields and their types, without the help texts."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hint)[0] if get_origin(hint) is Annotated else hint for name, hint in hints.items()}


@cache
def field_help(kind: type) -> dict[str, str]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hint)[1] for name, hint in hints.items() if get_origin(hint) is Annotated}


def _find_field(kind: Any, name: str, whole: str, path: Path | None) -> Any:
    known = field_types(kind)
    if name not in known:
        raise BadInput(f"a recipe has no field {whole!r}{near(name, list(known))}", path=path)
    return known[name]


def _value(kind: Any, value: Any, name: str, path: Path | None) -> Any:
    """A TOML value as the type that a field wants, or a clear error."""
    if kind is PartChoice:
        if isinstance(value, str):
            return PartChoice(name=value)
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return PartChoice(
                name=value["name"], options={k: _plain(v, name, path) for k, v in value.items() if k != "name"}
            )
        example = 'parts = ["rope", {name = "window", size = 8}]'
        raise BadInput(f"{name}: a part is a name or a table with a name", example, path=path)
    if _is_room(kind):
        if not isinstance(value, dict):
            raise BadInput(f"{name} must be a table", path=path)
        prefix = f"{name}." if name else ""
        found = {
            key: _value(_find_field(kind, key, prefix + key, path), inner, prefix + key, path)
            for key, inner in value.items()
        }
        try:
            return kind(**found)
        except BadInput as error:
            raise BadInput(error.what, error.hint, path=path) from error
    if kind is Duration:
        try:
            return Duration.read(value)
        except BadInput as error:
            raise BadInput(f"{name}: {error.what}", error.hint, path=path) from error
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise BadInput(f"{name} = {value!r} must be a list", path=path)
        return tuple(_value(get_args(kind)[0], inner, name, path) for inner in value)
    if kind is float and type(value) is int:
        value = float(value)
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) and type(value) is not kind:
        raise BadInput(f"{name} = {value!r} must be {_SPOKEN.get(kind, kind.__name__)}", path=path)
    return value


def _plain(value: Any, name: str, path: Path | None) -> Any:
    """A part's option: numbers, text, true or false, lists and tables of them; no dates, which TOML has too."""
    if isinstance(value, list):
        return [_plain(each, name, path) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each, name, path) for key, each in value.items()}
    if not isinstance(value, int | float | str):
        raise BadInput(f"{name}: {value} is a {type(value).__name__}; no part takes that", path=path)
    return value


_SPOKEN = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def to_table(recipe: Any) -> Any:
    """Plain dictionaries, lists and values, as they stand in TOML."""
    if isinstance(recipe, PartChoice):
        return {"name": recipe.name, **recipe.options} if recipe.options else recipe.name
    if isinstance(recipe, Duration):
        return str(recipe)
    if is_dataclass(recipe):
        return {each.name: to_table(getattr(recipe, each.name)) for each in fields(recipe)}
    if isinstance(recipe, tuple | list):
        return [to_table(each) for each in recipe]
    return recipe


def write_recipe(recipe: Recipe) -> str:
    """The whole recipe as TOML; every line says what it is."""
    lines: list[str] = []
    rooms = []
    for each in fields(recipe):
        value = getattr(recipe, each.name)
        if is_dataclass(value):
            rooms.append((each.name, value))
        else:
            lines.append(_line(type(recipe), each.name, value))
    for name, room in rooms:
        lines += ["", f"[{name}]  # {(type(room).__doc__ or '').splitlines()[0]}"]
        lines += [_line(type(room), each.name, getattr(room, each.name)) for each in fields(room)]
    return "\n".join(lines) + "\n"


def _line(kind: type, name: str, value: Any) -> str:
    return f"{name} = {toml(to_table(value))}".ljust(36) + f"  # {field_help(kind).get(name, '')}"


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadInput(f"{value!r} holds bytes that are not UTF-8", "rename the file or the field")
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return ("inf" if value > 0 else "-inf") if math.isinf(value) else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(toml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml(key)


def fingerprint(recipe: Recipe) -> str:
    """Sixteen letters that stand for the resolved recipe. Its name and where its data lie do not count (the data's own
    fingerprint does), nor where an encoder lies whose checksum is known."""
    encoder = recipe.encoder if recipe.encoder.sha256 == "none" else replace(recipe.encoder, source="")
    plain = to_table(replace(recipe, name="", data=replace(recipe.data, source=""), encoder=encoder))
    for room, field in YOUNGER:
        if not plain[room][field]:
            del plain[room][field]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
