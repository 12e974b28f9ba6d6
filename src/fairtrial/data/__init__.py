"""Text: reading, splitting, tokenizers, batches. No model, no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.data.batches import padded as padded
    from fairtrial.data.corpus import Document as Document
    from fairtrial.data.lines import read_lines as read_lines
    from fairtrial.data.readers import find_format as find_format
    from fairtrial.data.readers import is_course as is_course
    from fairtrial.data.readers import read as read
    from fairtrial.data.words import text_key as text_key

# exported name -> its module, imported when it is used: judging results needs no tokenizers
EXPORTS = {
    "padded": "batches", "Document": "corpus", "read_lines": "lines", "find_format": "readers", "is_course": "readers",
    "read": "readers", "text_key": "words",
}  # fmt: skip
__all__ = list(EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{EXPORTS[name]}"), name)
