"""Things found by name, with suggestions for misspelled ones; modules whose names are imported when first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Generic, TypeVar

from fairtrial.errors import BadInput

Thing = TypeVar("Thing")


def did_you_mean(name: str, known: list[str]) -> str:
    """`; did you mean 'rope'?` where a known name is close, else the list of all."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there is: {', '.join(known)}" if known else ""


class Registry(Generic[Thing]):
    """`add` under a name, `find` by it, `list` them all. A name is given once. `hint`: what to do if it is unknown."""

    def __init__(self, kind: str, hint: str = "") -> None:
        self.kind, self.hint = kind, hint
        self._things: dict[str, Thing] = {}

    def add(self, name: str) -> Callable[[Thing], Thing]:
        """A decorator: `@parts.add("rope")`."""

        def keep(thing: Thing) -> Thing:
            if name in self._things:
                raise BadInput(f"two {self.kind}s are called {name!r}", "rename one of them")
            self._things[name] = thing
            return thing

        return keep

    def find(self, name: str) -> Thing:
        if name not in self._things:
            raise BadInput(f"no {self.kind} is called {name!r}{did_you_mean(name, self.list())}", self.hint)
        return self._things[name]

    def drop(self, name: str) -> None:
        del self._things[name]

    def list(self) -> list[str]:
        return sorted(self._things)


def lazy(package: str, exports: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, so that a command loads only what it needs.

    Args:
        package: The package's `__name__`.
        exports: Each exported name, and the module of the package that has it.
    """

    def find(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{exports[name]}"), name)

    return find
