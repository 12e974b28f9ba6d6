"""Text: reading, splitting, tokenizers, batches. No model, no torch."""

from fairtrial.data.tables import read_lines

__all__ = ["read_lines"]
