"""Studies: variants x seeds, run on any engine, judged together."""

from fairtrial.study.artifacts import by_set, stacked

__all__ = ["by_set", "stacked"]
