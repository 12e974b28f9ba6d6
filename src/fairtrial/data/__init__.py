"""Text: reading, splitting, tokenizers, batches. No model, no torch."""

from fairtrial.data.batches import padded
from fairtrial.data.corpus import Document
from fairtrial.data.lines import read_lines
from fairtrial.data.readers import find_format, is_course, read
from fairtrial.data.words import text_key

__all__ = ["Document", "find_format", "is_course", "padded", "read", "read_lines", "text_key"]
