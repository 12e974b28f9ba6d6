"""One idea per file. Importing this package puts the built-in parts into the registry."""

from fairtrial.parts import alibi, block, disentangled, learned, merge, none, pool, rope, sinusoidal, t5, window

__all__ = ["alibi", "block", "disentangled", "learned", "merge", "none", "pool", "rope", "sinusoidal", "t5", "window"]
