"""Head portraits: where each head looks on average over texts, beside its untrained twin and beside a head that looks
everywhere alike. What a caption means stands in docs/look.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fairtrial.look.captions import PLACES, Habits, caption
from fairtrial.look.maps import Network, Reading, open_keys, prefix_words, watch_maps
from fairtrial.text.batches import padded
from fairtrial.text.tokenizer import Tokenizer

CELLS = 2**22  # weights held at once


@dataclass(frozen=True)
class Portrait:
    layer: int
    head: int
    trained: Habits
    untrained: Habits
    uniform: Habits  # of a head that looks alike at all that it may see
    caption: str


def paint(
    network: Network,
    twin: Network,
    tokenizer: Tokenizer,
    readings: Sequence[Reading],
    tell: Callable[[int, int], None] = lambda done, of: None,
    stage: str = "untrained",
) -> list[Portrait]:
    """A portrait of every head, over all texts. `tell` hears how many texts of how many are done; `stage` is what the
    twin is."""
    layers, heads = network.body.shape.layers, network.body.shape.heads
    trained, untrained, uniform = (Sums(layers, heads) for _ in range(3))
    first, done = PLACES["first"], 0
    tell(0, len(readings))
    for batch in batches(readings, layers * heads):
        ids, lengths = (torch.from_numpy(each) for each in padded([reading.ids for reading in batch], tokenizer.pad))
        added = prefix_words(network)
        words = [(*added, *tokenizer.words(reading.ids)) for reading in batch]
        if added or tokenizer.start is not None:
            first = repr(words[0][0])  # a mark, the same in every text
        visible = open_keys(network, lengths + len(added), ids.shape[1] + len(added))  # layer batch query key
        trained.add(weights_of(network, ids, lengths), visible, words)
        untrained.add(weights_of(twin, ids, lengths), visible, words)
        even = visible / np.maximum(1, visible.sum(-1, keepdims=True))
        uniform.add(np.repeat(even[:, :, None], heads, 2), visible, words)
        done += len(batch)
        tell(done, len(readings))
    portraits = []
    for layer in range(layers):
        for head in range(heads):
            after, before, alike = (sums.habits(layer, head) for sums in (trained, untrained, uniform))
            portraits.append(Portrait(layer, head, after, before, alike, caption(after, before, alike, stage, first)))
    return portraits


def batches(readings: Sequence[Reading], maps: int) -> Iterator[list[Reading]]:
    """Texts of like length together, as many as memory likes."""
    waiting: list[Reading] = []
    for reading in sorted(readings, key=lambda reading: len(reading.ids)):
        if waiting and (len(waiting) + 1) * maps * len(reading.ids) ** 2 > CELLS:
            yield waiting
            waiting = []
        waiting.append(reading)
    if waiting:
        yield waiting


def weights_of(network: Network, ids: torch.Tensor, lengths: torch.Tensor) -> np.ndarray:
    """[layer batch head query key]"""
    return np.stack([maps.numpy() for maps in watch_maps(network, ids, lengths)[1]])


class Sums:
    """Adds up what rows of attention do. A row counts where it has a choice: where it may see two words at least."""

    def __init__(self, layers: int, heads: int) -> None:
        self.totals: dict[str, np.ndarray] = {}  # [layer head]
        self.counts: dict[str, np.ndarray] = {}  # [layer]
        self.words = [[Counter[str]() for _ in range(heads)] for _ in range(layers)]

    def add(self, weights: np.ndarray, visible: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """Maps [layer batch head query key] of texts, and what may be seen in them [layer batch query key]."""
        time = visible.shape[-1]
        choices = visible.sum(-1)  # layer batch query
        free = choices >= 2
        weights = weights.astype(np.float64) * free[:, :, None, :, None]
        offset = np.arange(time)[:, None] - np.arange(time)  # query key
        logs = np.log(np.where(weights > 0, weights, 1.0))
        entropy = -(weights * logs).sum(-1)  # layer batch head query
        self.rows("entropy", entropy, free)
        self.rows("entropy_share", entropy / np.log(np.maximum(2, choices))[:, :, None], free)
        self.rows("distance", (weights * np.abs(offset)).sum(-1), free)
        first = (np.arange(time) == 0) & (offset != 0)
        places = {"itself": offset == 0, "previous": offset == 1, "next": offset == -1, "first": first}
        for name, keys in places.items():
            self.share(name, weights, visible & keys & free[..., None])
        marks = np.zeros((len(words), time), dtype=bool)
        for place, row in enumerate(words):
            marks[place, : len(row)] = [is_punctuation(word) for word in row]
        self.share("punctuation", weights, visible & marks[None, :, None, :] & free[..., None])
        self.stripe(weights, visible & (offset != 0) & free[..., None], words)

    def rows(self, name: str, values: np.ndarray, counted: np.ndarray) -> None:
        """Values [layer batch head query] of the rows that count [layer batch query]"""
        total, count = (values * counted[:, :, None]).sum((1, 3)), counted.sum((1, 2))
        self.totals[name] = self.totals.get(name, 0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def share(self, name: str, weights: np.ndarray, keys: np.ndarray) -> None:
        """What falls on these keys [layer batch query key], over the rows that may see one of them."""
        self.rows(name, (weights * keys[:, :, None]).sum(-1), keys.sum(-1) > 0)

    def stripe(self, weights: np.ndarray, others: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """The word that draws most from all others; it must be in sight of half of them, lest the last words of a
        decoder, which few can see, count as stripes."""
        seers = others.sum(2)  # layer batch key
        drawn = (weights * others[:, :, None]).sum(3) / np.maximum(1, seers)[:, :, None]  # layer batch head key
        sizes = np.array([len(row) for row in words])
        fit = seers >= np.maximum(2, sizes / 2)[:, None]
        drawn = np.where(fit[:, :, None], drawn, 0.0)
        best = drawn.argmax(-1)  # layer batch head
        most = np.take_along_axis(drawn, best[..., None], -1)
        self.rows("stripe", most, fit.sum(-1, keepdims=True) > 0)
        for layer, batch, head in np.argwhere(most[..., 0] > 0):
            self.words[layer][head][words[batch][best[layer, batch, head]]] += 1

    def habits(self, layer: int, head: int) -> Habits:
        def mean(name: str) -> float | None:
            count = int(self.counts[name][layer])
            return float(self.totals[name][layer, head]) / count if count else None

        leading = self.words[layer][head].most_common(1)
        word, times = leading[0] if leading else ("", 0)
        often = times / max(1, self.words[layer][head].total())
        return Habits(**{name: mean(name) for name in self.totals}, stripe_word=word, stripe_often=often)


def is_punctuation(word: str) -> bool:
    return bool(word.strip()) and not any(letter.isalnum() for letter in word)
