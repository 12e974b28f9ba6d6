"""One idea per file. Importing this package puts the built-in parts into the registry; their classes can be taken from
it, too: `from fairtrial.parts import Window`."""

from importlib import import_module
from pkgutil import iter_modules

from fairtrial.model.part import Part, parts

__all__ = sorted(module.name for module in iter_modules(__path__))

for _name in __all__:
    import_module(f"{__name__}.{_name}")


def __getattr__(name: str) -> type[Part]:
    for kind in map(parts.find, parts.list()):
        if kind.__name__ == name and kind.__module__.startswith(f"{__name__}."):
            return kind
    raise AttributeError(f"no built-in part is the class {name!r}")
