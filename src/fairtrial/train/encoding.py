"""Documents as token ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairtrial.text.corpus import Document
from fairtrial.text.tokenizer import Tokenizer


def encode(documents: Sequence[Document], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Token ids of each document; one without any token is a single unknown."""
    nothing = [tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad]
    return [np.array(ids or nothing, dtype=np.int64) for ids in tokenizer.encode([each.text for each in documents])]
