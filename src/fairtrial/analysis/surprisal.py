"""Surprise: the negative log-likelihood of each token, given those before it.

What a trial's test score counts is counted here. A model of running text has nothing before the first token of a text,
so that token is not counted; a model of sentences that stand alone begins with a start mark, and its stop mark counts
too. A text longer than the model's length is read in windows, in which each token sees as much as in a test score.

A language model beyond the length that it was trained on: 1x, 2x, 4x, 8x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fairtrial.analysis.text import Prose
from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import START, STOP, Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.network import LanguageModel
from fairtrial.training.scoring import Window, in_batches, score_lm, scoring, sliding
from fairtrial.training.tasks import LanguageTask

TOKENS = 2048  # read at once


@dataclass(frozen=True)
class Token:
    word: str  # the entry of the vocabulary
    written: str  # its piece of the text
    nll: float | None  # in nats; None: nothing stands before it, so it is not counted
    rank: int | None  # 1: the model's best guess
    guess: str | None  # the model's best guess
    guess_share: float | None  # and its probability
    unknown: bool


@dataclass(frozen=True)
class Surprise:
    text: str
    tokens: tuple[Token, ...]

    @property
    def nll(self) -> float:
        return sum(token.nll for token in self.tokens if token.nll is not None)

    @property
    def counted(self) -> int:
        return sum(token.nll is not None for token in self.tokens)

    @property
    def perplexity(self) -> float | None:
        """exp(nats / counted tokens); None where nothing could be counted."""
        return math.exp(min(700.0, self.nll / self.counted)) if self.counted else None


@dataclass(frozen=True)
class Totals:
    """Several sentences as one set: two perplexities, which are not the same thing."""

    sentences: int
    tokens: int
    token_weighted: float | None  # exp(all nats / all tokens): a long sentence weighs more
    mean_of_sentences: float | None  # mean of the sentences' perplexities: a strange short one can carry it away

    @classmethod
    def of(cls, surprises: Sequence[Surprise]) -> Totals:
        tokens = sum(each.counted for each in surprises)
        each_one = [each.perplexity for each in surprises if each.perplexity is not None]
        weighted = math.exp(min(700.0, sum(each.nll for each in surprises) / tokens)) if tokens else None
        return cls(len(surprises), tokens, weighted, sum(each_one) / len(each_one) if each_one else None)


def surprise(
    network: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[Prose],
    *,
    length: int,
    full_context: float,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Surprise]:
    """Surprise of each token of each text. `tell` hears how many windows are done."""
    first = () if tokenizer.start is None else (tokenizer.start,)
    last = () if tokenizer.stop is None else (tokenizer.stop,)
    rows = [np.array((*first, *prose.ids, *last), dtype=np.int64) for prose in texts]
    found = [np.full((len(row), 4), np.nan) for row in rows]  # nats, rank, guess, its share
    stride = max(1, int(length * (1 - full_context)))
    done = 0
    for windows in in_batches(sliding(rows, length, stride), TOKENS):
        numbers = window_numbers(network, rows, windows)
        begin = 0
        for window in windows:
            size = window.end - window.counted
            found[window.sequence][window.counted + 1 : window.end + 1] = numbers[begin : begin + size]
            begin += size
        done += len(windows)
        tell(done)
    return [
        Surprise(prose.text, tuple(tokens_of(prose, row, numbers, tokenizer)))
        for prose, row, numbers in zip(texts, rows, found, strict=True)
    ]


def count_windows(texts: Sequence[Prose], *, marks: bool, length: int, full_context: float) -> int:
    """How many windows `surprise` will read."""
    rows = [np.zeros(len(prose.ids) + 2 * marks) for prose in texts]
    return sum(1 for _ in sliding(rows, length, max(1, int(length * (1 - full_context)))))


def window_numbers(network: LanguageModel, rows: Sequence[np.ndarray], windows: Sequence[Window]) -> np.ndarray:
    """Nats, rank, best guess and its share of each counted target, in reading order [target 4]."""
    whole, lengths = padded([rows[each.sequence][each.begin : each.end + 1] for each in windows], 0)
    first = np.array([each.counted - each.begin for each in windows])
    places = np.arange(whole.shape[1] - 1)
    counted = torch.from_numpy((places >= first[:, None]) & (places < lengths[:, None] - 1))
    ids, answers = torch.from_numpy(whole[:, :-1].copy()), torch.from_numpy(whole[:, 1:].copy())
    with scoring(network):
        x, layout = network.body(ids, torch.from_numpy(lengths - 1))
        chosen = layout.pack(counted).nonzero()[:, 0]
        targets = layout.pack(answers).index_select(0, chosen)[:, None]
        log_p = network.out(x.index_select(0, chosen)).double().log_softmax(-1)  # target entry
        own = log_p.gather(1, targets)
        best, guess = log_p.max(1, keepdim=True)
        rank = (log_p > own).sum(1, keepdim=True) + 1
    return torch.cat((-own, rank.double(), guess.double(), best.exp()), 1).numpy()


def tokens_of(prose: Prose, row: np.ndarray, numbers: np.ndarray, tokenizer: Tokenizer) -> Iterator[Token]:
    words, before = tokenizer.words(row), int(tokenizer.start is not None)
    pieces = prose.pieces()
    for place, (word, (nats, rank, guess, share)) in enumerate(zip(words, numbers, strict=True)):
        if place < before:
            continue  # a start mark is given, not predicted
        inside = place - before < len(pieces)
        written = pieces[place - before] if inside else ""
        unknown = inside and int(row[place]) == tokenizer.unknown
        if np.isnan(nats):
            yield Token(word, written, None, None, None, None, unknown)
        else:
            best = tokenizer.words([int(guess)])[0]
            yield Token(word, written, float(nats), int(rank), best, float(share), unknown)


def first_token_note(tokenizer: Tokenizer) -> str:
    """How the beginning and the end of a text are counted."""
    if tokenizer.start is None:
        return "the first token has nothing before it and is not counted"
    return f"the first token is predicted from {START}, and the end of the text ({STOP}) is counted as a token"


@dataclass(frozen=True)
class Stretch:
    """One test set at one length: its perplexity, or why there is none."""

    test: str
    times: int
    length: int
    perplexity: float | None
    interval: tuple[float, float] | None
    why_not: str = ""


def stretch(bench: LanguageTask, tests: Sequence[str], times: Sequence[int] = (1, 2, 4, 8)) -> Iterator[Stretch]:
    """Each test set scored exactly, every token with up to `times` x the trained length before it."""
    for test in tests:
        for factor in times:
            length = factor * bench.length
            try:
                # a token sees at least 3/4 of the length: at 8x a stride of one token would take 8 x 8 the time
                share = bench.full_context if factor == 1 else 0.75
                score = score_lm(bench.network, bench.sets[test], length=length, full_context=share, pad=0)
            except BadInput as error:
                yield Stretch(test, factor, length, None, None, error.what)
                continue
            yield Stretch(test, factor, length, score.metrics["perplexity"], score.metrics["interval"])
