"""What a classifier says of texts: the probability of each class.

Which words tell a classifier its answer? Two ways, which measure different things and need not agree.

Both tell of the answer's log-odds, log p / (1 - p), in nats: a probability near one would hide everything.
*Gradient x input*: how they change as the word's vector grows (first order; Simonyan et al. 2013,
https://arxiv.org/abs/1312.6034, times the input). *Leave-one-out*: how far they fall when the word is taken out. Above
zero a word speaks for the answer, below zero against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairtrial.analysis.text import Prose
from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.model.network import Classifier
from fairtrial.training.scoring import ROWS, log_probabilities

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
        whole = (
            tokenizer.encode([prose.text for prose in chunk]) if tokenizer.pretrained else [list(p.ids) for p in chunk]
        )
        rows = [np.array(tokenizer.cut(ids, length), dtype=np.int64) for ids in whole]
        shares = np.exp(log_probabilities(network, rows, tokenizer.pad))
        for prose, ids, row, each in zip(chunk, whole, rows, shares, strict=True):
            found.append(Prediction(prose.text, row, tuple(float(share) for share in each), prose.unknown, len(ids)))
        tell(len(found))
    return found


ROWS_AT_ONCE = 4096  # shortened sentences scored at once


def log_odds(log_p: Tensor, classes: Tensor) -> Tensor:
    """log p / (1 - p) of one class of each row: [row class], [row] -> [row]"""
    if log_p.shape[1] == 1:  # nothing else could be answered
        return log_p[:, 0]
    others = log_p.scatter(1, classes[:, None], -torch.inf).logsumexp(1)
    return log_p.gather(1, classes[:, None])[:, 0] - others


def gradient_times_input(
    network: Classifier, rows: Sequence[np.ndarray], classes: Sequence[int], pad: int
) -> list[np.ndarray]:
    """For each token of each row: d log-odds(class) / d vector, times the vector, summed over its width."""
    was_training = network.training
    network.eval()
    vectors: list[Tensor] = []

    def keep(module: Any, inputs: Any, output: Tensor) -> Tensor:
        vectors.append(output.detach().requires_grad_())  # a beginning of its own, whatever is frozen before it
        return vectors[-1]

    handle = network.body.tokens.register_forward_hook(keep)
    found: list[np.ndarray] = []
    try:
        with torch.enable_grad():
            for begin in range(0, len(rows), ROWS):
                chunk = rows[begin : begin + ROWS]
                ids, lengths = padded(chunk, pad)
                log_p = network(torch.from_numpy(ids), torch.from_numpy(lengths)).log_softmax(-1)
                answers = torch.tensor(classes[begin : begin + len(chunk)])
                (slope,) = torch.autograd.grad(log_odds(log_p, answers).sum(), vectors[-1])
                told = (slope * vectors.pop()).sum(-1).detach().numpy()  # token, packed row after row
                found += np.split(told.astype(np.float64), np.cumsum(lengths)[:-1])
    finally:
        handle.remove()
        network.train(was_training)
    return found


def leave_one_out(
    network: Classifier,
    rows: Sequence[np.ndarray],
    classes: Sequence[int],
    pad: int,
    nothing: int,
    tell: Callable[[int], None] = lambda done: None,
) -> list[np.ndarray]:
    """For each token of each row: log-odds(class) with it - without it. A row without tokens is read as `nothing`."""
    answers = torch.tensor(classes)
    whole = log_odds(torch.from_numpy(log_probabilities(network, rows, pad)), answers)
    found = [np.zeros(len(row)) for row in rows]
    waiting: list[tuple[int, int]] = []

    def score() -> None:
        shorter = [np.delete(rows[item], place) for item, place in waiting]
        log_p = log_probabilities(network, [row if len(row) else np.array([nothing]) for row in shorter], pad)
        without = log_odds(torch.from_numpy(log_p), answers[[item for item, _ in waiting]])
        for (item, place), odds in zip(waiting, without, strict=True):
            found[item][place] = float(whole[item] - odds)
        waiting.clear()

    for item, row in enumerate(rows):
        waiting += [(item, place) for place in range(len(row))]
        if len(waiting) >= ROWS_AT_ONCE or item == len(rows) - 1:
            score()
            tell(item + 1)
    return found


@dataclass(frozen=True)
class Telling:
    word: str
    mean: float  # nats, over all places where the word stands in a text that was answered so
    times: int


def telling_words(
    words: Iterable[Sequence[str]],
    told: Iterable[np.ndarray],
    *,
    most: int,
    least_times: int,
    silent: Iterable[str] = (),
) -> list[Telling]:
    """The words that speak most for an answer, over many texts that were answered so; `silent` ones are no words."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, values in zip(words, told, strict=True):
        for word, value in zip(row, values, strict=True):
            found[word].append(float(value))
    heard = {word: values for word, values in found.items() if word not in set(silent) and len(values) >= least_times}
    means = [Telling(word, float(np.mean(values)), len(values)) for word, values in heard.items()]
    return sorted((each for each in means if each.mean > 0), key=lambda each: (-each.mean, each.word))[:most]
