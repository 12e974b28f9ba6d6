"""Text: reading, splitting, tokenizers, batches. No model, no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.data.batches import padded as padded
    from fairtrial.data.corpus import Document as Document
    from fairtrial.data.lines import read_lines as read_lines
    from fairtrial.data.readers import find_format as find_format
    from fairtrial.data.readers import is_course as is_course
    from fairtrial.data.readers import read as read
    from fairtrial.data.words import text_key as text_key

EXPORTS = {
    "padded": "batches",
    "Document": "corpus",
    "read_lines": "lines",
    "find_format": "readers",
    "is_course": "readers",
    "read": "readers",
    "text_key": "words",
}
__all__ = list(EXPORTS)
__getattr__ = lazy(__name__, EXPORTS)
