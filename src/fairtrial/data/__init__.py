"""Text: reading, splitting, tokenizers, batches. No model, no torch."""

from fairtrial.data.lines import read_lines

__all__ = ["read_lines"]
