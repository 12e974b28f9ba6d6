"""Plugins: parts, models and optimizers from a user's file, registered as the built-in ones are. A file runs only where
the user names it (`--with`, `--model`, a study file); nothing that a record holds is ever run.

A part or a model that was written in a notebook or a script is kept as one file of its own: the class or function, what
it uses of the notebook, and its imports. So a record can say what it was trained with, and another process can build
it."""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import linecache
import os
import re
import symtable
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import SourceLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import fairtrial.parts  # noqa: F401  (first, so that a plugin cannot take their names)
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput, Stopped, message_of
from fairtrial.model.external import BUILD, check_optimizer, models, optimizers
from fairtrial.model.hugging_face import find_builder, sources_of
from fairtrial.model.part import Part, build_parts, parts
from fairtrial.recipe import OPTIMIZERS, Recipe, with_length
from fairtrial.registry import Registry

if TYPE_CHECKING:
    from fairtrial.record import Record

REGISTRIES: tuple[Registry[Any], ...] = (parts, models, optimizers)
# what this process has run: sha256 -> a file's name, or a library with its version; and the parts or model it brought
_loaded: dict[str, tuple[str, tuple[str, ...]]] = {}


class ReadOnce(SourceLoader):
    """Runs the very bytes whose sha256 is recorded, and leaves no compiled copy that could be older than they are."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: str | bytes) -> bytes:
        return self.content


def load_file(path: Path) -> list[str]:
    """Run a user's file, once, and give the names of the parts that it registers."""
    content = _read(path)
    digest = hashlib.sha256(content).hexdigest()
    if digest not in _loaded:
        name = re.sub(r"\W", "_", f"fairtrial_plugin_{path.stem}_{digest[:12]}")

        def run() -> None:
            module = run_file(name, path, content)
            register_builders(module, path)

        _loaded[digest] = (path.name, _register(path, run))
    return list(_loaded[digest][1])


def register_builders(module: ModuleType, path: Path) -> None:
    """Every function or class of a file that takes what a builder is given, as the model `file.py:function`."""
    for name, value in vars(module).items():
        own = getattr(value, "__module__", None) == module.__name__ and callable(value)
        if own and not name.startswith("_") and builds(value):
            models.add(f"{path.name}:{name}")(value)


def builds(value: Callable[..., object]) -> bool:
    try:
        return set(BUILD) <= set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return False


def register_written(builder: Any) -> str:
    """The name of a builder that was written in a notebook or a script; one of the same name is replaced."""
    if not callable(builder) or not builds(builder):
        what = f"{getattr(builder, '__name__', builder)!r} is not a model"
        raise BadInput(what, f"a builder is a function ({', '.join(BUILD)}) -> torch.nn.Module")
    known = next((name for name in models.list() if models.find(name) is builder), "")
    if known:
        return known
    name = f"{builder.__name__}.py:{builder.__name__}"
    if name in models.list():
        models.drop(name)
    models.add(name)(builder)
    return name


def load_files(paths: Iterable[Path]) -> dict[str, str]:
    """Run several; their names and sha256, for the record."""
    found: dict[str, str] = {}
    for path in paths:
        digest = fingerprint(path)
        if found.get(path.name, digest) != digest:
            raise BadInput("two files have the same name", "rename one of them", path=path)
        load_file(path)
        found[path.name] = digest
    return found


def loaded_digests() -> set[str]:
    """The sha256 of all that this process has run for its parts."""
    return set(_loaded)


def load_code(recipe: Recipe) -> dict[str, str]:
    """Import the library that a recipe's model comes from; its label and sha256."""
    found = {}
    for label, path in sources_of(recipe.model.name).items():
        found[label] = sha256_of(path)
        _loaded[found[label]] = (label, (recipe.model.name,))
    if recipe.external:
        find_builder(recipe.model.name)  # refused where its file was not named
    return found


def code_names(recipe: Recipe) -> list[str]:
    """Parts, model and optimizer of a recipe."""
    own = [recipe.training.optimizer] if recipe.training.optimizer not in OPTIMIZERS else []
    return [*(choice.name for choice in recipe.parts), *([recipe.model.name] if recipe.external else []), *own]


def keep_written(names: Iterable[str]) -> dict[str, str]:
    """Sources of those parts and models that come from a notebook or a script, by the name of the file that they
    become. From here on they count as loaded from it; an older version of the same no longer does."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        kind: Any = next((known.find(name) for known in REGISTRIES if name in known.list()), None)
        if kind is None:
            continue  # a mistake that is told elsewhere
        if kind.__module__.startswith(("fairtrial.", "fairtrial_plugin_")):
            continue
        text, file = source_of(kind, name), name.partition(":")[0] if name in models.list() else f"{name}.py"
        for old in [digest for digest, (source, brought) in _loaded.items() if (source, brought) == (file, (name,))]:
            del _loaded[old]
        _loaded[hashlib.sha256(text.encode()).hexdigest()] = (file, (name,))
        found[file] = text
    return found


def fingerprint(path: Path) -> str:
    return hashlib.sha256(_read(path)).hexdigest()


def require_plugins(record: Record) -> None:
    """A record is used with the plugins that it was begun with, to the byte; others are refused."""
    for label, path in sources_of(record.recipe.model.name).items():
        _loaded[sha256_of(path)] = (label, (record.recipe.model.name,))
    check_unchanged(record, [(source, digest) for digest, (source, _) in _loaded.items()])
    for file, digest in record.trial.plugins.items():
        if digest not in _loaded:
            # in the record or its study: never run unless it is asked for by name
            kept = [folder / "parts" / file for folder in (record.folder, *record.folder.parents[3:4])]
            found = next((path for path in kept if path.is_file()), file)
            again = f"continue with: fairtrial train --resume {record.folder} --with {found}"
            hint = again if file.endswith(".py") else f"install {file}"
            raise BadInput(f"{record.folder} needs code from {file}", hint)


def check_unchanged(record: Record, given: Sequence[tuple[str, str]]) -> None:
    """Refuse a plugin of the record's that is given with another content."""
    for file, digest in record.trial.plugins.items():
        if digest not in {there for _, there in given} and file in dict(given):
            hint = "give the file as it was (its sha256 is in trial.json), or start a new record with `fairtrial train`"
            raise BadInput(f"{file} has changed since {record.folder} was started", hint)


def _read(path: Path) -> bytes:
    if path.suffix != ".py":
        raise BadInput("a plugin must be a Python file (.py)", path=path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error


EXIT = os._exit


def exit_aloud(code: int) -> NoReturn:
    """`os._exit` while plugins are loaded: one that ends the process does not do so in silence."""
    if sys._getframe(1).f_globals.get("__name__", "").startswith("fairtrial_plugin_"):
        os.write(2, f"fairtrial: {sys._getframe(1).f_code.co_filename} ended the process (os._exit)\n".encode())
        code = code or BadInput.exit_code
    EXIT(code)


def run_file(name: str, path: Path, content: bytes) -> ModuleType:
    os._exit = exit_aloud  # type: ignore[assignment]
    loader = ReadOnce(path, content)
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickling by name look for it
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _register(path: Path, run: Callable[[], object]) -> tuple[str, ...]:
    """The names that `run` adds to the registries. If anything is wrong, none is added."""
    before = {name for registry in REGISTRIES for name in registry.list()}
    try:
        try:
            run()
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:  # whatever it raises
            raise _explained(path, error) from error
        added = tuple(name for registry in REGISTRIES for name in registry.list() if name not in before)
        for name in (each for each in added if each in parts.list()):
            kind = parts.find(name)
            if not (isinstance(kind, type) and issubclass(kind, Part)):
                raise BadInput(f"{name!r} is not a Part", "derive its class from fairtrial.model.part.Part", path=path)
        if not added:
            hint = f'write @parts.add("name") above a part\'s class; a model is a function ({", ".join(BUILD)})'
            raise BadInput("registers no part or optimizer and has no model", hint, path=path)
        return added
    except BaseException:
        for registry in REGISTRIES:
            for name in set(registry.list()) - before:
                registry.drop(name)
        raise


def _explained(path: Path, error: BaseException) -> BadInput:
    """An error in a plugin's file, with its line."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    if isinstance(error, BadInput):
        return BadInput(error.what, error.hint, path=path, line=line)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return BadInput(f"{type(error).__name__}: {error.msg}", path=path, line=error.lineno)
    what = f"{type(error).__name__}: {message_of(error)}"
    hint = "a part is one file; install what it imports" if isinstance(error, ImportError) else ""
    return BadInput(what, hint, path=path, line=line)


def explained_error(error: BaseException) -> BadInput | None:
    """An error that a plugin's code has raised, with its line; None: it is not one."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if str(frame.f_globals.get("__name__")).startswith("fairtrial_plugin_")]
    return _explained(Path(own[-1].f_code.co_filename), error) if own else None


def check_parts(recipe: Recipe) -> None:
    """Refuse parts that are not known, and options that they do not take, without running a plugin's code; and an
    optimizer that is not known."""
    check_optimizer(recipe.training.optimizer)
    if recipe.external:
        return  # known once its file or its library is loaded, in the process that builds it
    if recipe.encoder.source == "none":
        build_parts(recipe.parts, with_length(recipe).shape, seed=0, causal=recipe.task == "lm")
    else:  # the encoder brings the shape
        for choice in recipe.parts:
            parts.find(choice.name)


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
        *([f'fairtrial.optimizer("{name}")({kind.__name__})'] if name in optimizers.list() else []),
    ]
    return "\n\n".join(blocks) + "\n"


class Written:
    """Definitions of one module, in the order in which they need one another, and what they import."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.imports: dict[str, None] = {}
        self.blocks: list[str] = []
        self.done: set[str] = set()

    def add(self, name: str, value: object) -> None:
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
            raise BadInput(what, "create it in the part's __init__, or give it as an option")

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
    raise BadInput(f"the source of {value.__qualname__} is not available, so it cannot be stored with a record", HINT)


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


def place_of(name: str, value: object) -> tuple[str, str] | None:
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


def is_literal(value: object) -> bool:
    try:
        with PARSING:
            return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
