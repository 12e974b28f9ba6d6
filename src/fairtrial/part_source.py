"""The source of a part or a model that was written in a notebook or a script, as one file of its own: the class or
function, what it uses of the notebook, and its imports. So a record can say what it was trained with, and another
process can build it."""

from __future__ import annotations

import ast
import builtins
import linecache
import symtable
import sys
import textwrap
import threading
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from fairtrial.errors import BadInput

HINT = "define it in a notebook's cell or in a file, or give a file with parts: plugins=['my_part.py']"
Definition = ast.ClassDef | ast.FunctionDef
PARSING = threading.Lock()  # Python 3.11's compiler counts its depth in one place for all threads


def source_of(kind: Any, name: str) -> str:
    """A Python file that defines this class or function, and registers a part under this name."""
    written = Written(kind)
    written.add(kind.__name__, kind)
    imports = sorted(written.imports)
    head = f'"""{name!r}, as it was written in a notebook or a script."""'
    blocks = [
        head,
        "from __future__ import annotations",
        "\n".join(["import fairtrial", *imports]),
        *written.blocks,
        *([f'fairtrial.part("{name}")({kind.__name__})'] if hasattr(kind, "choice") else []),
    ]
    return "\n\n".join(blocks) + "\n"


class Written:
    """Definitions of one module, in the order in which they need one another, and what they import."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.imports: dict[str, None] = {}
        self.blocks: list[str] = []
        self.done: set[str] = set()

    def add(self, name: str, value: Any) -> None:
        """What `name` stands for, and first what it needs."""
        if name in self.done:
            return
        self.done.add(name)
        if isinstance(value, ModuleType):
            self.imports[f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")] = None
        elif isinstance(value, type | FunctionType) and value.__module__ == self.kind.__module__:
            self.add_definition(name, value)
        elif found := place_of(name, value):
            module, known = found
            self.imports[f"from {module} import {known}" + ("" if known == name else f" as {name}")] = None
        elif is_literal(value):
            self.blocks.append(f"{name} = {value!r}")
        else:
            what = f"{self.kind.__name__} uses {name!r}, a {type(value).__name__} that is defined outside of it"
            raise BadInput(what, "make it in the part's __init__, or give it as an option")

    def add_definition(self, name: str, value: Any) -> None:
        text, own = definition(value)
        scope = dict(names_around(value))
        for used in free_names(text):
            if used in scope and used != own:
                self.add(used, scope[used])
        self.blocks.append(text if own == name else f"{text}\n\n{name} = {own}")


def definition(value: Any) -> tuple[str, str]:
    """The text of a class or function, and the name that it has there."""
    functions = list(functions_of(value))
    for function in functions:
        code = function.__code__
        lines = linecache.getlines(code.co_filename, function.__globals__)
        try:
            with PARSING:
                tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, Definition) and node.name == value.__name__ and holds(node, code.co_firstlineno):
                text = textwrap.dedent("".join(lines[first_line(node) - 1 : node.end_lineno])).rstrip()
                return text, node.name
    raise BadInput(f"the source of {value.__qualname__} cannot be had, so it cannot be kept with a record", HINT)


def functions_of(value: Any) -> Iterator[FunctionType]:
    """A function, or those that a class defines itself."""
    if isinstance(value, FunctionType):
        yield value
        return
    for each in vars(value).values():
        inner = getattr(each, "__func__", getattr(each, "fget", each))  # of class methods and properties
        if isinstance(inner, FunctionType) and inner.__qualname__.startswith(f"{value.__qualname__}."):
            yield inner


def holds(node: Definition, line: int) -> bool:
    return first_line(node) <= line <= (node.end_lineno or 0)


def first_line(node: Definition) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def names_around(value: Any) -> Iterator[tuple[str, Any]]:
    """Global names, and those of functions around it, which hide them."""
    functions = list(functions_of(value))
    for function in functions:
        yield from function.__globals__.items()
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__" and (found := cell_value(cell)) is not None:
                yield name, found


def cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def free_names(text: str) -> list[str]:
    """Names that a definition takes from outside, by the rules of Python's own compiler."""

    def walk(table: symtable.SymbolTable, outermost: bool) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (outermost or symbol.is_global()):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from walk(inner, False)

    with PARSING:
        table = symtable.symtable(text, "part", "exec")
    return [name for name in dict.fromkeys(walk(table, True)) if not hasattr(builtins, name)]


def place_of(name: str, value: Any) -> tuple[str, str] | None:
    """(module, name) that a class, a function or a constant can be imported from, not counting notebooks."""
    known = getattr(value, "__name__", name)
    own = getattr(value, "__module__", None)
    callable_ = isinstance(value, type) or callable(value)
    if not callable_ and not own:
        return None
    modules = sorted(sys.modules.items(), key=lambda item: (item[0] != own, item[0].startswith("_"), len(item[0])))
    for module_name, module in modules:
        if module_name in ("__main__", "__mp_main__") or "._" in module_name or module is None:
            continue
        for candidate in (known, name):
            if isinstance(candidate, str) and candidate.isidentifier() and vars(module).get(candidate) is value:
                return module_name, candidate
    return None


def is_literal(value: Any) -> bool:
    try:
        with PARSING:
            return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
