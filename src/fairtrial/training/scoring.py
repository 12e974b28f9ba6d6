"""Scores of a split: metrics for people, and the outcome of every item for statistics. A language model has an exact
perplexity (every token once, at nearly full context, by sliding windows) and the common one of disjoint windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from fairtrial.data.batches import Batch, masked_batch, padded
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel
from fairtrial.progress import status
from fairtrial.statistics.outcomes import bits_per_byte, confusion, macro_f1, score_interval
from fairtrial.stored import Metrics
from fairtrial.training.device import computing, device_of

ROWS = 128  # sentences scored at once; neighbours in length, so that little is padding
TOKENS = 4096  # tokens of a language model scored at once

OnProgress = Callable[[float], None]  # gets the share that is done


def ignore(share: float) -> None:
    pass


@dataclass(frozen=True)
class Score:
    metrics: Metrics
    selection_key: tuple[float, ...]  # to choose by, higher is better
    outcomes: dict[str, np.ndarray] = field(default_factory=dict)  # one entry for each item


@contextmanager
def scoring(network: nn.Module) -> Iterator[None]:
    """Score without gradients and without dropout, and leave the network as it was."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad(), computing(network):  # not inference mode: what a part caches here may be used in training
            yield
    finally:
        network.train(was_training)


def evenly(count: int, most: int | None) -> Sequence[int]:
    """At most `most` of `count` items, evenly spread; None: all."""
    if most is None or count <= most:
        return range(count)
    return np.linspace(0, count - 1, most).round().astype(int).tolist()


def log_probabilities(network: Classifier, rows: Sequence[np.ndarray], pad: int) -> np.ndarray:
    """[item class], float64"""
    order = np.argsort([len(row) for row in rows], kind="stable")
    answers = np.empty((len(rows), 0))
    device = device_of(network)
    with scoring(network):
        for begin in range(0, len(rows), ROWS):
            chosen = order[begin : begin + ROWS]
            ids, lengths = padded([rows[item] for item in chosen], pad)
            logits = network(torch.from_numpy(ids).to(device), torch.from_numpy(lengths))
            answers = answers if answers.size else np.empty((len(rows), logits.shape[1]))
            answers[chosen] = logits.cpu().double().log_softmax(-1).numpy()
    return answers


def as_tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor | None, Tensor]:
    """Ids, lengths and answers; lengths stay on the CPU, where the layout of a batch is made."""
    lengths = None if batch.lengths is None else torch.from_numpy(batch.lengths)
    return torch.from_numpy(batch.ids).to(device), lengths, torch.from_numpy(batch.answers).to(device)


def score_classify(
    network: Classifier, rows: Sequence[np.ndarray], labels: np.ndarray, pad: int, groups: np.ndarray | None = None
) -> Score:
    """`groups` [item]: items that belong together."""
    log_p = log_probabilities(network, rows, pad)
    outcomes = class_outcomes(log_p, labels, groups)
    metrics = class_metrics(outcomes, log_p.shape[1])
    assert metrics.accuracy is not None
    assert metrics.nll is not None
    # one answer for all is the last choice
    several = len(set(outcomes["guess"].tolist())) > 1 or len(set(labels.tolist())) == 1
    return Score(metrics, (float(several), metrics.accuracy, -metrics.nll), outcomes)


def class_outcomes(log_p: np.ndarray, labels: np.ndarray, groups: np.ndarray | None) -> dict[str, np.ndarray]:
    """Of log-probabilities [item class], as a record stores them."""
    guesses, right = log_p.argmax(1).astype(np.int64), log_p[np.arange(len(labels)), labels]
    found = {"label": labels.astype(np.int64), "guess": guesses, "log_p": right}
    return found if groups is None else found | {"group": groups}


def class_metrics(outcomes: Mapping[str, np.ndarray], classes: int) -> Metrics:
    table = confusion(outcomes["label"], outcomes["guess"], classes)
    return Metrics(
        items=len(outcomes["label"]),
        accuracy=float((outcomes["guess"] == outcomes["label"]).mean()),
        interval=score_interval(outcomes),
        macro_f1=macro_f1(table),
        nll=float((-outcomes["log_p"]).mean()),
        confusion=tuple(map(tuple, table.tolist())),
    )


@dataclass(frozen=True)
class TokenSet:
    """A set of documents as tokens. Running text is one sequence; else each document is a sequence of its own."""

    sequences: Sequence[np.ndarray]
    owners: Sequence[np.ndarray]  # the document that each token of a sequence belongs to
    documents: int
    bytes: np.ndarray  # of each document's text [document]
    unknown: int | None
    hidden: Callable[[], np.ndarray] | None = None  # prices what the tokens hide, when it is asked for
    groups: np.ndarray | None = None  # documents that belong together [document]

    @cached_property
    def spelling(self) -> np.ndarray | None:
        """Nats of what the tokens hide [document]; None: not priced."""
        return None if self.hidden is None else self.hidden()

    @cached_property
    def sizes(self) -> np.ndarray:
        """Tokens of each sequence that can be predicted: all but the first, which has nothing before it."""
        return np.maximum(0, np.fromiter(map(len, self.sequences), np.int64, len(self.sequences)) - 1)

    @property
    def targets(self) -> int:
        return int(self.sizes.sum())

    def target_owners(self) -> tuple[np.ndarray, np.ndarray]:
        """The document of every target, and whether the target is unknown [target]"""
        ids = np.concatenate([sequence[1:] for sequence in self.sequences])
        unknown = -1 if self.unknown is None else self.unknown
        return np.concatenate([each[1:] for each in self.owners]), ids == unknown


@dataclass(frozen=True)
class Window:
    sequence: int
    begin: int  # first input
    end: int  # one past the last input; targets are one further on
    counted: int  # the first input whose target this window scores


def sliding(sequences: Sequence[np.ndarray], length: int, stride: int) -> Iterator[Window]:
    """Windows that score every target exactly once. After the first of a sequence each window moves by `stride` and
    scores its last `stride` targets, which see at least `length - stride` tokens more than their own input."""
    for number, sequence in enumerate(sequences):
        inputs = len(sequence) - 1
        done = 0
        while done < inputs:
            end = min(done + (stride if done else length), inputs)
            yield Window(number, max(0, end - length), end, done)
            done = end


def in_batches(windows: Iterable[Window], least: int) -> Iterator[list[Window]]:
    """As many windows together as hold `least` tokens."""
    waiting: list[Window] = []
    size = 0
    for window in windows:
        waiting.append(window)
        size += window.end - window.begin
        if size >= least:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def score_lm(
    network: LanguageModel, tokens: TokenSet, *, length: int, full_context: float, on_progress: OnProgress = ignore
) -> Score:
    """The exact score, and that of non-overlapping windows."""
    token_nats = token_nll(network, tokens, length=length, full_context=full_context, on_progress=on_progress)
    outcomes = document_outcomes(tokens, token_nats)
    with status("scoring windows that do not overlap"):
        apart = score_windows(network, tokens, length=length, exact=token_nats)
    total, count = float(outcomes["nll"].sum()), len(token_nats)
    lost_nats, unknown = float(outcomes["unknown_nll"].sum()), int(outcomes["unknown"].sum())
    metrics = Metrics(
        documents=tokens.documents,
        tokens=count,
        perplexity=math.exp(min(700.0, total / count)),
        interval=score_interval(outcomes),
        bits_per_byte=bits_per_byte(outcomes),
        unknown_share=unknown / count,
        unknown_nll=lost_nats / unknown if unknown else 0.0,
        perplexity_without_unknown=math.exp(min(700.0, (total - lost_nats) / max(1, count - unknown))),
        window_perplexity=apart.metrics.window_perplexity,
    )
    return Score(metrics, (-total / count,), outcomes)


def token_nll(
    network: LanguageModel, tokens: TokenSet, *, length: int, full_context: float, on_progress: OnProgress = ignore
) -> np.ndarray:
    """Nats of every target, one sequence after another [target]: what the exact score sums up."""
    scored: list[np.ndarray] = []
    done, reported, targets = 0, 0, tokens.targets
    on_progress(0.0)
    for nats in window_nats(
        network, tokens, sliding(tokens.sequences, length, max(1, int(length * (1 - full_context))))
    ):
        scored.append(nats)
        done += len(nats)
        if done - reported >= TOKENS:
            on_progress(done / targets)
            reported = done
    return np.concatenate(scored)


def document_outcomes(tokens: TokenSet, nats: np.ndarray) -> dict[str, np.ndarray]:
    """Nats of every target, one sequence after another -> the outcomes of each document, as a record keeps them."""
    owners, lost = tokens.target_owners()
    return {
        "nll": np.bincount(owners, nats, minlength=tokens.documents),
        "tokens": np.bincount(owners, minlength=tokens.documents),
        "bytes": tokens.bytes.astype(np.int64),
        "unknown": np.bincount(owners[lost], minlength=tokens.documents),
        "unknown_nll": np.bincount(owners[lost], nats[lost], minlength=tokens.documents),
        **({} if tokens.spelling is None else {"spelling": tokens.spelling}),
        **({} if tokens.groups is None else {"group": tokens.groups}),
    }


def score_windows(
    network: LanguageModel, tokens: TokenSet, *, length: int, most: int | None = None, exact: np.ndarray | None = None
) -> Score:
    """Non-overlapping windows of `length` tokens, or `most` of them, evenly spread: each token sees only its own window
    and has the same weight; separate sentences are windows of their own. `exact`: nats of every target, if they are
    known: a sequence that is one window is not scored again."""
    windows = list(sliding(tokens.sequences, length, length))
    chosen = [windows[index] for index in evenly(len(windows), most)]
    apart = [Window(window.sequence, window.counted, window.end, window.counted) for window in chosen]
    if len(tokens.sequences) == 1:  # running text: a last, shorter window is left out
        apart = [window for window in apart if window.end - window.begin == length] or apart
    nats = []
    if exact is not None:
        nats.append(exact[np.repeat(tokens.sizes <= length, tokens.sizes)])
        apart = [window for window in apart if tokens.sizes[window.sequence] > length]
    nats += window_nats(network, tokens, apart)
    loss = float(np.concatenate(nats).mean())  # of one length: the mean of their means
    return Score(Metrics(window_perplexity=math.exp(min(700.0, loss)), window_nll=loss), (-loss,))


def window_nats(network: LanguageModel, tokens: TokenSet, windows: Iterable[Window]) -> Iterator[np.ndarray]:
    """Nats of the targets that the windows score, a batch of windows at a time."""
    device = device_of(network)
    for chosen in in_batches(windows, TOKENS):
        ids, lengths = padded([tokens.sequences[each.sequence][each.begin : each.end + 1] for each in chosen], 0)
        first = np.array([each.counted - each.begin for each in chosen])
        answers = np.where(np.arange(ids.shape[1] - 1) >= first[:, None], ids[:, 1:], -1)
        with scoring(network):
            batch = Batch(ids[:, :-1].copy(), lengths - 1, answers, 0)
            nats = network.nll(*as_tensors(batch, device)).cpu().double().numpy()
        yield nats


@dataclass(frozen=True)
class MaskedSet:
    """Sentences whose masked words were drawn once, so that every score is of the same words."""

    hidden: list[tuple[np.ndarray, np.ndarray]]  # token ids with masks, answers
    owners: list[int]  # the document of each sentence
    documents: int
    bytes: np.ndarray
    groups: np.ndarray | None = None


def score_masked(network: MaskedModel, masked: MaskedSet, most: int | None = None) -> Score:
    """Perplexity of masked words: exp(nats / words) over the words that were masked, and only those."""
    order = sorted(evenly(len(masked.hidden), most), key=lambda index: len(masked.hidden[index][0]))
    nats, counts = np.zeros(masked.documents), np.zeros(masked.documents, np.int64)
    with scoring(network):
        for begin in range(0, len(order), ROWS):
            rows = order[begin : begin + ROWS]
            batch = masked_batch([masked.hidden[index] for index in rows], 0)
            found = network.nll(*as_tensors(batch, device_of(network))).cpu()
            owners = np.repeat([masked.owners[index] for index in rows], (batch.answers >= 0).sum(1))
            np.add.at(nats, owners, found.double().numpy())
            np.add.at(counts, owners, 1)
    loss = float(nats.sum() / max(1, counts.sum()))
    outcomes = {"nll": nats, "tokens": counts, "bytes": masked.bytes, "unknown": np.zeros_like(counts)}
    outcomes |= {} if masked.groups is None else {"group": masked.groups}
    metrics = Metrics(
        documents=masked.documents,
        tokens=int(counts.sum()),
        masked_perplexity=math.exp(min(700.0, loss)),
        masked_nll=loss,
        interval=score_interval(outcomes),
    )
    return Score(metrics, (-loss,), outcomes)
