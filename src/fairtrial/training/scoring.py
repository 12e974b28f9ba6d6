"""Scores of a split: metrics for people, and the outcome of every item for statistics.

A language model has an exact perplexity (every token once, at nearly full context, by sliding windows) and, for
comparison with common practice, one of non-overlapping windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from fairtrial.data.batches import masked_batch, padded
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel
from fairtrial.statistics.crossed import perplexity_interval, wilson

ROWS = 128  # sentences scored at once; neighbours in length, so that little is padding
TOKENS = 4096  # tokens of a language model scored at once

OnProgress = Callable[[float], None]  # gets the share that is done


def ignore(share: float) -> None:
    pass


@dataclass(frozen=True)
class Score:
    metrics: dict[str, Any]
    selection_key: tuple[float, ...]  # to choose by: higher is better
    outcomes: dict[str, np.ndarray] = field(default_factory=dict)  # one entry for each item


@contextmanager
def scoring(network: nn.Module) -> Iterator[None]:
    """Score without gradients and without dropout, and leave the network as it was."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():  # not inference mode: what a part caches here may be used in training
            yield
    finally:
        network.train(was_training)


def log_probabilities(network: Classifier, rows: Sequence[np.ndarray], pad: int) -> np.ndarray:
    """[item class], float64"""
    order = np.argsort([len(row) for row in rows], kind="stable")
    answers = np.empty((len(rows), network.out.out_features))
    with scoring(network):
        for begin in range(0, len(rows), ROWS):
            chosen = order[begin : begin + ROWS]
            ids, lengths = padded([rows[item] for item in chosen], pad)
            logits = network(torch.from_numpy(ids), torch.from_numpy(lengths))
            answers[chosen] = logits.double().log_softmax(-1).numpy()
    return answers


def score_classify(network: Classifier, rows: Sequence[np.ndarray], labels: np.ndarray, pad: int) -> Score:
    log_p = log_probabilities(network, rows, pad)
    guesses = log_p.argmax(1)
    right = guesses == labels
    nats = -log_p[np.arange(len(labels)), labels]
    metrics = {
        "items": len(labels),
        "accuracy": float(right.mean()),
        "interval": list(wilson(int(right.sum()), len(labels))),
        "macro_f1": macro_f1(confusion(labels, guesses, log_p.shape[1])),
        "nll": float(nats.mean()),
        "confusion": confusion(labels, guesses, log_p.shape[1]).tolist(),
    }
    outcomes = {"label": labels.astype(np.int64), "guess": guesses.astype(np.int64), "log_p": -nats}
    return Score(metrics, (float(right.mean()), -float(nats.mean())), outcomes)


def confusion(labels: np.ndarray, guesses: np.ndarray, classes: int) -> np.ndarray:
    """Counts [true class, guessed class]"""
    return np.bincount(labels * classes + guesses, minlength=classes * classes).reshape(classes, classes)


def macro_f1(table: np.ndarray) -> float:
    """Mean over classes of F1; a class that neither occurs nor is guessed counts as 0, as in scikit-learn."""
    right = table.diagonal()
    total = table.sum(0) + table.sum(1)
    return float(np.mean(np.divide(2 * right, total, out=np.zeros(len(right)), where=total > 0)))


@dataclass(frozen=True)
class TokenSet:
    """A set of documents as tokens. Running text is one sequence; else each document is a sequence of its own."""

    sequences: tuple[np.ndarray, ...]
    owners: tuple[np.ndarray, ...]  # the document that each token of a sequence belongs to
    documents: int
    bytes: np.ndarray  # of each document's text [document]
    unknown: int | None

    @property
    def targets(self) -> int:
        """Tokens that can be predicted: all but the first of a sequence, which has nothing before it."""
        return sum(max(0, len(sequence) - 1) for sequence in self.sequences)


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
    network: LanguageModel,
    tokens: TokenSet,
    *,
    length: int,
    full_context: float,
    pad: int,
    on_progress: OnProgress = ignore,
) -> Score:
    """The exact score, and that of non-overlapping windows."""
    stride = max(1, int(length * (1 - full_context)))
    nats, counts, unknown_nats, unknown_counts = _by_document(network, tokens, length, stride, pad, on_progress)
    total, count = float(nats.sum()), int(counts.sum())
    side_by_side = score_windows(network, tokens, length=length, pad=pad)
    known = count - int(unknown_counts.sum())
    metrics = {
        "documents": tokens.documents,
        "tokens": count,
        "perplexity": math.exp(min(700.0, total / count)),
        "interval": perplexity_interval(nats, counts),
        "bits_per_byte": total / math.log(2) / int(tokens.bytes.sum()),
        "unknown_share": int(unknown_counts.sum()) / count,
        "unknown_nll": float(unknown_nats.sum() / unknown_counts.sum()) if unknown_counts.any() else 0.0,
        "perplexity_without_unknown": math.exp(min(700.0, float(total - unknown_nats.sum()) / max(1, known))),
        "window_perplexity": side_by_side.metrics["window_perplexity"],
    }
    outcomes = {
        "nll": nats,
        "tokens": counts,
        "bytes": tokens.bytes.astype(np.int64),
        "unknown": unknown_counts,
    }
    return Score(metrics, (-total / count,), outcomes)


def token_nll(network: LanguageModel, tokens: TokenSet, *, length: int, full_context: float, pad: int) -> np.ndarray:
    """Nats of every target, one sequence after another [target]: what the exact score sums up."""
    stride = max(1, int(length * (1 - full_context)))
    scored = [nats for _, nats in _score(network, tokens, sliding(tokens.sequences, length, stride), pad)]
    return np.concatenate(scored).astype(np.float64)


def document_outcomes(tokens: TokenSet, nats: np.ndarray) -> dict[str, np.ndarray]:
    """Nats of every target, one sequence after another -> the outcomes of each document, as a record keeps them."""
    ids = np.concatenate([sequence[1:] for sequence in tokens.sequences])
    owners = np.concatenate([each[1:] for each in tokens.owners])
    lost = owners[ids == tokens.unknown] if tokens.unknown is not None else owners[:0]
    return {
        "nll": np.bincount(owners, nats, minlength=tokens.documents),
        "tokens": np.bincount(owners, minlength=tokens.documents),
        "bytes": tokens.bytes.astype(np.int64),
        "unknown": np.bincount(lost, minlength=tokens.documents),
    }


def score_windows(network: LanguageModel, tokens: TokenSet, *, length: int, pad: int, most: int | None = None) -> Score:
    """Non-overlapping windows of `length` tokens: the exponential of the mean of their mean losses. Each token sees
    only its own window; separate sentences are windows of their own, and every token has the same weight. With `most`,
    that many windows evenly spread over the set."""
    windows = list(sliding(tokens.sequences, length, length))
    if most is not None and len(windows) > most:
        windows = [windows[index] for index in np.linspace(0, len(windows) - 1, most).round().astype(int)]
    apart = [Window(window.sequence, window.counted, window.end, window.counted) for window in windows]
    if len(tokens.sequences) == 1:  # running text: a last, shorter window is left out
        apart = [window for window in apart if window.end - window.begin == length] or apart
    scored = [nats for _, nats in _score(network, tokens, apart, pad)]
    loss = float(np.concatenate(scored).mean())  # windows of one length: the mean of their means
    return Score({"window_perplexity": math.exp(min(700.0, loss)), "window_nll": loss}, (-loss,))


def _by_document(
    network: LanguageModel, tokens: TokenSet, length: int, stride: int, pad: int, on_progress: OnProgress
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Summed nats, counted tokens, and both for unknown targets, of each document."""
    nats, unknown_nats = np.zeros(tokens.documents), np.zeros(tokens.documents)
    counts, unknown_counts = np.zeros(tokens.documents, np.int64), np.zeros(tokens.documents, np.int64)
    done = reported = 0
    on_progress(0.0)
    for window, values in _score(network, tokens, sliding(tokens.sequences, length, stride), pad):
        done += len(values)
        if done - reported >= TOKENS:
            on_progress(done / tokens.targets)
            reported = done
        targets = slice(window.counted + 1, window.end + 1)
        owners, answers = tokens.owners[window.sequence][targets], tokens.sequences[window.sequence][targets]
        np.add.at(nats, owners, values)
        np.add.at(counts, owners, 1)
        if tokens.unknown is not None:
            lost = answers == tokens.unknown
            np.add.at(unknown_nats, owners[lost], values[lost])
            np.add.at(unknown_counts, owners[lost], 1)
    return nats, counts, unknown_nats, unknown_counts


def _score(
    network: LanguageModel, tokens: TokenSet, windows: Iterable[Window], pad: int
) -> Iterator[tuple[Window, np.ndarray]]:
    """Each window with the nats of the targets that it scores."""
    for batch in in_batches(windows, TOKENS):
        yield from _score_batch(network, tokens, batch, pad)


def _score_batch(
    network: LanguageModel, tokens: TokenSet, windows: list[Window], pad: int
) -> Iterator[tuple[Window, np.ndarray]]:
    ids, lengths = padded([tokens.sequences[each.sequence][each.begin : each.end + 1] for each in windows], pad)
    first = np.array([each.counted - each.begin for each in windows])
    inputs = np.arange(ids.shape[1] - 1)
    counted = (inputs >= first[:, None]) & (inputs < lengths[:, None] - 1)
    with scoring(network):
        nats = network.nll(
            torch.from_numpy(ids[:, :-1].copy()),
            torch.from_numpy(lengths - 1),
            torch.from_numpy(ids[:, 1:].copy()),
            torch.from_numpy(counted),
        ).numpy()
    begin = 0
    for window in windows:
        size = window.end - window.counted
        yield window, nats[begin : begin + size]
        begin += size


@dataclass(frozen=True)
class MaskedSet:
    """Sentences whose masked words were drawn once, so that every score is of the same words."""

    hidden: list[tuple[np.ndarray, np.ndarray]]  # token ids with masks, answers
    owners: list[int]  # the document of each sentence
    documents: int
    bytes: np.ndarray


def score_masked(network: MaskedModel, masked: MaskedSet, most: int | None = None) -> Score:
    """Perplexity of masked words: exp(nats / words) over the words that were masked, and only those."""
    chosen: Sequence[int] = range(len(masked.hidden))
    if most is not None and len(masked.hidden) > most:
        chosen = np.linspace(0, len(masked.hidden) - 1, most).round().astype(int).tolist()
    order = sorted(chosen, key=lambda index: len(masked.hidden[index][0]))
    nats, counts = np.zeros(masked.documents), np.zeros(masked.documents, np.int64)
    with scoring(network):
        for begin in range(0, len(order), ROWS):
            rows = order[begin : begin + ROWS]
            batch = masked_batch([masked.hidden[index] for index in rows], 0)
            assert batch.lengths is not None
            found = network.nll(*(torch.from_numpy(array) for array in (batch.ids, batch.lengths, batch.answers)))
            owners = np.repeat([masked.owners[index] for index in rows], (batch.answers >= 0).sum(1))
            np.add.at(nats, owners, found.double().numpy())
            np.add.at(counts, owners, 1)
    loss = float(nats.sum() / max(1, counts.sum()))
    metrics = {
        "documents": masked.documents,
        "tokens": int(counts.sum()),
        "masked_perplexity": math.exp(min(700.0, loss)),
        "masked_nll": loss,
        "interval": perplexity_interval(nats, counts),
    }
    outcomes = {"nll": nats, "tokens": counts, "bytes": masked.bytes, "unknown": np.zeros_like(counts)}
    return Score(metrics, (-loss,), outcomes)
