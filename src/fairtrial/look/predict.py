"""What a classifier says of texts: the probability of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.look.prose import Prose
from fairtrial.model.network import Classifier
from fairtrial.text.tokenizer import Tokenizer
from fairtrial.train.score_classify import log_probabilities

CHUNK = 256  # texts between two signs of life


@dataclass(frozen=True)
class Prediction:
    text: str
    ids: np.ndarray  # as the network read it
    shares: tuple[float, ...]  # of the classes
    unknown: tuple[str, ...]  # words that the model does not know
    tokens: int  # before the text was cut to the model's length

    @property
    def guess(self) -> int:
        return int(np.argmax(self.shares))

    @property
    def cut(self) -> bool:
        return self.tokens > len(self.ids)


def predict(
    network: Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[Prose],
    *,
    length: int,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Prediction]:
    """`tell` hears how many texts are done."""
    found: list[Prediction] = []
    for begin in range(0, len(texts), CHUNK):
        chunk = texts[begin : begin + CHUNK]
        # a pretrained encoder's tokenizer sets marks around a text
        whole = tokenizer.encode([prose.text for prose in chunk]) if tokenizer.foreign else [list(p.ids) for p in chunk]
        rows = [np.array(tokenizer.cut(ids, length), dtype=np.int64) for ids in whole]
        shares = np.exp(log_probabilities(network, rows, tokenizer.pad))
        for prose, ids, row, each in zip(chunk, whole, rows, shares, strict=True):
            found.append(Prediction(prose.text, row, tuple(float(share) for share in each), prose.unknown, len(ids)))
        tell(len(found))
    return found
