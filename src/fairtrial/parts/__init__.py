"""One idea per file. Importing this package puts the built-in parts into the registry."""

from fairtrial.parts import learned, none

__all__ = ["learned", "none"]
