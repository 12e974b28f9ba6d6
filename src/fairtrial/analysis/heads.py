"""Head portraits: where each head looks on average over texts, beside its untrained twin and beside a head that looks
everywhere alike. What a caption means stands in docs/look.md.

What a head does, in one line. The classes and their limits are told in docs/look.md; keep both alike.

A head switched off: what the score loses without it, over a whole test set.

A head whose values are zero gives zeros to whatever joins the heads, wherever it looks. So its rows of the value
weights are emptied while a block runs: no hook, and the fused kernel runs as ever.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from fairtrial.analysis.attention import Network, Reading, open_keys, prefix_words, watch_maps
from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.statistics.crossed import paired_change, perplexity_interval
from fairtrial.training.scoring import Score, score_lm
from fairtrial.training.tasks import LanguageTask, Task

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


LEAD = 0.40  # least share on one place for a caption that names it
TIMES = 1.5  # ... and so many times what a head would give it that looks everywhere alike
STRIPE = 0.30
NEAR = 0.5  # mean distance, as a share of that of a head that looks everywhere alike
DIFFUSE = 0.85  # entropy, as a share of the most that is possible
ALIKE = 0.10  # shares that differ by less are alike


@dataclass(frozen=True)
class Habits:
    """Means over the rows of one head. None: no row had the choice."""

    entropy: float | None  # nats
    entropy_share: float | None  # of ln(words that may be seen)
    distance: float | None  # |query - key|, in words
    itself: float | None
    previous: float | None
    next: float | None
    first: float | None
    punctuation: float | None
    stripe: float | None  # what the most watched word of a text draws from each of the others
    stripe_word: str = ""  # that word, in most texts
    stripe_often: float = 0.0  # share of texts in which it is that word


PLACES = {"previous": "previous word", "next": "next word", "itself": "itself", "first": "first word"}


def caption(
    trained: Habits, untrained: Habits, uniform: Habits, before: str = "untrained", first: str = PLACES["first"]
) -> str:
    """One line, compared with the network before training; `before` says what it was then, and `first` what stands
    first in every text."""
    kind, value = kind_of(trained, uniform)
    kind_then, value_then = kind_of(untrained, uniform)
    alike = kind == kind_then and abs(value - value_then) < ALIKE
    end = f", as {before}" if alike else ""
    if kind in PLACES:
        return f"{first if kind == 'first' else PLACES[kind]}, {value:.0%}{end}"
    if kind == "punctuation":
        return f"punctuation, {value:.0%}{end}"
    if kind == "stripe":
        named = repr(trained.stripe_word) if trained.stripe_often > 0.5 else "one word of each text"
        return f"stripe on {named}, {value:.0%}{end}"
    if kind == "near":
        return f"near words, mean distance {trained.distance:.1f}{end}"
    if kind == "nothing":
        return "nothing to choose from"
    if not alike:
        end = f", {'sharper' if sharper(trained, untrained) else 'flatter'} than {before}"
    return f"{kind}{end}"


def kind_of(habits: Habits, uniform: Habits) -> tuple[str, float]:
    """(class, the number that put it there)"""
    if habits.entropy_share is None:
        return "nothing", 0.0
    shares = {name: (getattr(habits, name), getattr(uniform, name)) for name in (*PLACES, "punctuation")}
    leading = {name: share for name, (share, alike) in shares.items() if leads(share, alike, LEAD)}
    if leading:
        best = max(leading, key=lambda name: leading[name])
        return best, leading[best]
    if leads(habits.stripe, uniform.stripe, STRIPE):
        assert habits.stripe is not None
        return "stripe", habits.stripe
    if habits.distance is not None and uniform.distance and habits.distance <= NEAR * uniform.distance:
        return "near", habits.distance / uniform.distance
    return "diffuse" if habits.entropy_share >= DIFFUSE else "mixed", habits.entropy_share


def leads(share: float | None, alike: float | None, least: float) -> bool:
    return share is not None and alike is not None and share >= max(least, min(0.95, TIMES * alike))


def sharper(trained: Habits, untrained: Habits) -> bool:
    return (trained.entropy_share or 0.0) < (untrained.entropy_share or 0.0)


LEAST_CONTEXT = 0.5  # a scored token sees at least half of it; the exact score's 97% would take many times as long


@dataclass(frozen=True)
class Effect:
    """What switching off one head does to the score of one test set, the same items with and without it. A classifier's
    change is of its accuracy, in shares; a language model's is a factor of its perplexity."""

    layer: int
    head: int
    test: str
    measure: str  # accuracy or perplexity
    whole: float  # the score with all heads
    without: float
    change: float  # without - whole for accuracy, without / whole for perplexity
    interval: tuple[float, float] | None  # 95% over test items, this one seed; None: one document tells nothing

    @property
    def clear(self) -> bool:
        """The interval holds no 'nothing changes'."""
        nothing = 0.0 if self.measure == "accuracy" else 1.0
        return self.interval is not None and not self.interval[0] <= nothing <= self.interval[1]


@contextmanager
def head_off(network: Network, layer: int, head: int) -> Iterator[None]:
    """Without one head while the block runs. Its weights come back to the same bits, also after an error."""
    attention = network.body.blocks[layer].attention
    width = attention.out.in_features
    each = width // attention.heads
    rows = slice(2 * width + head * each, 2 * width + (head + 1) * each)  # q, k and v stand below one another
    values = [parameter.data[rows] for parameter in (attention.qkv.weight, attention.qkv.bias) if parameter is not None]
    kept = [value.clone() for value in values]
    try:
        for value in values:
            value.zero_()
        yield
    finally:
        for value, before in zip(values, kept, strict=True):
            value.copy_(before)


def switch_off(
    bench: Task,
    test: str,
    heads: list[tuple[int, int]],
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> list[Effect]:
    """The effect of each (layer, head), switched off alone. `tell` hears how many scores of how many are done."""
    tell(0, len(heads) + 1)
    whole = whole_score(bench, test)
    effects = []
    for number, (layer, head) in enumerate(heads, 1):
        tell(number, len(heads) + 1)
        with head_off(bench.network, layer, head):
            without = whole_score(bench, test)
        effects.append(effect_of(layer, head, test, whole, without))
    tell(len(heads) + 1, len(heads) + 1)
    return effects


def whole_score(bench: Task, test: str) -> Score:
    if isinstance(bench, LanguageTask):
        return score_lm(bench.network, bench.sets[test], length=bench.length, full_context=LEAST_CONTEXT, pad=0)
    return bench.score(test)


def effect_of(layer: int, head: int, test: str, whole: Score, without: Score) -> Effect:
    if "guess" in whole.outcomes:
        right, still = (score.outcomes["guess"] == score.outcomes["label"] for score in (whole, without))
        interval = paired_change(int((~right & still).sum()), int((right & ~still).sum()), len(right))
        before, after = whole.metrics["accuracy"], without.metrics["accuracy"]
        return Effect(layer, head, test, "accuracy", before, after, after - before, interval)
    added, tokens = without.outcomes["nll"] - whole.outcomes["nll"], whole.outcomes["tokens"]
    factor = math.exp(min(700.0, float(added.sum() / tokens.sum())))
    before, after = whole.metrics["perplexity"], without.metrics["perplexity"]
    return Effect(layer, head, test, "perplexity", before, after, factor, perplexity_interval(added, tokens))
