"""What each attention head does, over many texts: statistics beside those of the initial model and uniform attention,
a caption (its rules are also in docs/look.md: keep both alike), and the score without that head."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.inspection.attention import ModelInput, Network, heads_of, maps_in, open_keys, prefix_words
from fairtrial.inspection.text import OnProgress, no_progress
from fairtrial.model.external import ExternalModel
from fairtrial.model.part import AttentionContext, Part
from fairtrial.recipe import Shape
from fairtrial.statistics.crossed import paired_change
from fairtrial.statistics.outcomes import score_interval
from fairtrial.training.scoring import Score, score_lm
from fairtrial.training.tasks import LanguageTask, Task

Heads = Sequence[tuple[int, int]]  # (layer, head)
MAX_WEIGHTS = 2**22  # attention weights held at once
# limits of the captions
LEAD = 0.40  # least share of attention on one position for a caption that names it
TIMES = 1.5  # ... and so many times the share under uniform attention
STRIPE = 0.30
NEAR = 0.5  # mean distance, relative to uniform attention
DIFFUSE = 0.85  # entropy, relative to the maximum
ALIKE = 0.10  # values that differ by less are alike
POSITIONS = {"previous": "previous word", "next": "next word", "itself": "itself", "first": "first word"}
# of a head's score on a test set: a token sees at least half of the context; the exact score takes many times as long
LEAST_CONTEXT = 0.5


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the attention rows of one head. None: no row had more than one visible key of that kind."""

    entropy: float | None  # nats
    entropy_share: float | None  # entropy / ln(visible words)
    distance: float | None  # |query - key|, in tokens
    itself: float | None
    previous: float | None
    next: float | None
    first: float | None
    punctuation: float | None
    stripe: float | None  # mean weight that the most attended word of a text gets from the others
    stripe_word: str = ""  # that word, in most texts
    stripe_often: float = 0.0  # fraction of texts in which it is that word


@dataclass(frozen=True)
class HeadSummary:
    layer: int
    head: int
    trained: HeadStatistics
    untrained: HeadStatistics
    uniform: HeadStatistics  # of a head that attends equally to all visible words
    caption: str


def head_statistics(
    network: Network,
    initial: Network,
    tokenizer: Tokenizer,
    inputs: Sequence[ModelInput],
    on_progress: OnProgress = no_progress,
    stage: str = "untrained",
) -> list[HeadSummary]:
    """A summary of every head over all texts. `stage` says what the initial network was."""
    layers, heads = heads_of(network, min(inputs, key=lambda text: len(text.ids)))
    trained, untrained, uniform = (Sums(layers, heads) for _ in range(3))
    first, done = POSITIONS["first"], 0
    on_progress("reading", 0, len(inputs))
    for batch in batches(inputs, layers * heads, equal=isinstance(network, ExternalModel)):
        ids, lengths = (torch.from_numpy(array) for array in padded([text.ids for text in batch], tokenizer.pad))
        added = prefix_words(network)
        words = [(*added, *tokenizer.words(text.ids)) for text in batch]
        if added or tokenizer.start is not None:
            first = repr(words[0][0])  # a mark, the same in every text
        time = ids.shape[1] + len(added)
        visible = open_keys(network, lengths + len(added), time, layers)  # layer batch query key
        trained.add(maps_in(network, ids, lengths), visible, words)
        untrained.add(maps_in(initial, ids, lengths), visible, words)
        even = visible / np.maximum(1, visible.sum(-1, keepdims=True))
        uniform.add(np.repeat(even[:, :, None], heads, 2), visible, words)
        done += len(batch)
        on_progress("reading", done, len(inputs))
    found = []
    for layer, head in np.ndindex(layers, heads):
        after, before, alike = (sums.means(layer, head) for sums in (trained, untrained, uniform))
        found.append(HeadSummary(layer, head, after, before, alike, caption(after, before, alike, stage, first)))
    return found


def batches(inputs: Sequence[ModelInput], maps: int, *, equal: bool = False) -> Iterator[list[ModelInput]]:
    """Texts of similar length, or of `equal` length, together, as many as memory allows."""
    batch: list[ModelInput] = []
    for text in sorted(inputs, key=lambda text: len(text.ids)):
        longer = equal and bool(batch) and len(text.ids) > len(batch[0].ids)
        if batch and (longer or (len(batch) + 1) * maps * len(text.ids) ** 2 > MAX_WEIGHTS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


class Sums:
    """Sums over attention rows. A row counts if at least two words are visible to it."""

    def __init__(self, layers: int, heads: int) -> None:
        self.totals: dict[str, np.ndarray] = {}  # [layer head]
        self.counts: dict[str, np.ndarray] = {}  # [layer]
        self.words = [[Counter[str]() for _ in range(heads)] for _ in range(layers)]

    def add(self, weights: np.ndarray, visible: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """Maps [layer batch head query key] of texts, and what is visible in them [layer batch query key]."""
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
        positions = {"itself": offset == 0, "previous": offset == 1, "next": offset == -1, "first": first}
        for name, keys in positions.items():
            self.share(name, weights, visible & keys & free[..., None])
        marks = np.array([[*map(is_punctuation, row), *[False] * (time - len(row))] for row in words])
        self.share("punctuation", weights, visible & marks[None, :, None, :] & free[..., None])
        self.stripe(weights, visible & (offset != 0) & free[..., None], words)

    def rows(self, name: str, values: np.ndarray, counted: np.ndarray) -> None:
        """Values [layer batch head query] of the rows that count [layer batch query]"""
        total, count = (values * counted[:, :, None]).sum((1, 3)), counted.sum((1, 2))
        self.totals[name] = self.totals.get(name, 0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def share(self, name: str, weights: np.ndarray, keys: np.ndarray) -> None:
        """The weight on these keys [layer batch query key], over the rows that see one of them."""
        self.rows(name, (weights * keys[:, :, None]).sum(-1), keys.sum(-1) > 0)

    def stripe(self, weights: np.ndarray, others: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """The word that gets most weight from all others; at least half see it (few see a decoder's last words)."""
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

    def means(self, layer: int, head: int) -> HeadStatistics:
        def mean(name: str) -> float | None:
            count = int(self.counts[name][layer])
            return float(self.totals[name][layer, head]) / count if count else None

        leading = self.words[layer][head].most_common(1)
        word, times = leading[0] if leading else ("", 0)
        often = times / max(1, self.words[layer][head].total())
        return HeadStatistics(**{name: mean(name) for name in self.totals}, stripe_word=word, stripe_often=often)


def is_punctuation(word: str) -> bool:
    return bool(word.strip()) and not any(letter.isalnum() for letter in word)


def caption(
    trained: HeadStatistics,
    untrained: HeadStatistics,
    uniform: HeadStatistics,
    before: str = "untrained",
    first: str = POSITIONS["first"],
) -> str:
    """One line, compared with the initial network, which was `before`; `first` names the first token of every text."""
    kind, value = kind_of(trained, uniform)
    kind_then, value_then = kind_of(untrained, uniform)
    alike = kind == kind_then and abs(value - value_then) < ALIKE
    end = f", as {before}" if alike else ""
    named = repr(trained.stripe_word) if trained.stripe_often > 0.5 else "one word of each text"
    names = POSITIONS | {"first": first, "punctuation": "punctuation", "stripe": f"stripe on {named}"}
    if kind in names:
        return f"{names[kind]}, {value:.0%}{end}"
    if kind == "near":
        return f"near words, mean distance {trained.distance:.1f}{end}"
    if kind == "nothing":
        return "nothing to choose from"
    if not alike:
        sharper = (trained.entropy_share or 0.0) < (untrained.entropy_share or 0.0)
        end = f", {'sharper' if sharper else 'flatter'} than {before}"
    return f"{kind}{end}"


def kind_of(statistics: HeadStatistics, uniform: HeadStatistics) -> tuple[str, float]:
    """(class, the number that put it there)"""
    if statistics.entropy_share is None:
        return "nothing", 0.0
    shares = {name: (getattr(statistics, name), getattr(uniform, name)) for name in (*POSITIONS, "punctuation")}
    leading = {name: share for name, (share, alike) in shares.items() if leads(share, alike, LEAD)}
    if leading:
        return max(leading.items(), key=lambda item: item[1])
    if leads(statistics.stripe, uniform.stripe, STRIPE):
        return "stripe", statistics.stripe or 0.0
    if statistics.distance is not None and uniform.distance and statistics.distance <= NEAR * uniform.distance:
        return "near", statistics.distance / uniform.distance
    return "diffuse" if statistics.entropy_share >= DIFFUSE else "mixed", statistics.entropy_share


def leads(share: float | None, alike: float | None, least: float) -> bool:
    return share is not None and alike is not None and share >= max(least, min(0.95, TIMES * alike))


@dataclass(frozen=True)
class Effect:
    """The effect of ablating one head on the score of one test set, on the same items."""

    layer: int
    head: int
    test: str
    measure: str  # accuracy or perplexity
    whole: float  # the score with all heads
    without: float
    change: float  # without - whole for accuracy, without / whole for perplexity
    interval: tuple[float, float] | None  # 95% over test items, one seed; None: there is only one document

    @property
    def clear(self) -> bool:
        """The interval excludes "no change"."""
        no_change = 0.0 if self.measure == "accuracy" else 1.0
        return self.interval is not None and not self.interval[0] <= no_change <= self.interval[1]

    @property
    def shown(self) -> str:
        """`-5.2 points [-7.4, -3.0]` of accuracy, or `+4.1% [+3.0%, +5.2%]` of perplexity."""
        accuracy = self.measure == "accuracy"
        values = [self.change, *(self.interval or ())]
        mean, *ends = [f"{100 * value:+.1f}" if accuracy else f"{100 * (value - 1):+.1f}%" for value in values]
        return mean + " points" * accuracy + (f" [{ends[0]}, {ends[1]}]" if ends else "")


ELSEWHERE = frozenset(("project", "mix", "read"))  # overridden: a head without values may have an output all the same


OWN_HEADS = "its heads are its own and cannot be switched off"


class HeadOff(Part):
    """The output of one head is zero."""

    def __init__(self, shape: Shape, layer: int, head: int) -> None:
        super().__init__(shape)
        self.layer, self.head = layer, head

    def read(self, heads: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        off = torch.arange(heads.shape[1], device=heads.device) == self.head
        return heads.masked_fill(off[:, None, None], 0.0) if context.layer == self.layer else heads


@contextmanager
def head_off(network: Network, layer: int, head: int) -> Iterator[None]:
    """Without one head inside the `with` block: the rows of its value weights are zeroed, so that it outputs zeros
    wherever it attends and the fused kernel runs as usual; then they are restored bit for bit. Where a part takes
    values from elsewhere, or heads share them, a part of our own empties the head's output instead."""
    if isinstance(network, ExternalModel):
        raise BadInput(f"{network.name}: {OWN_HEADS}")
    attention, parts = network.body.blocks[layer].attention, network.body.parts
    if attention.shared_by > 1 or any(ELSEWHERE & part.hooks for part in network.body.listed_parts()):
        name = f"head-off-{layer}-{head}"  # of its own, so that several may be off
        parts[name] = HeadOff(network.body.shape, layer, head)
        try:
            yield
        finally:
            del parts[name]
        return
    width, head_dim = attention.out.in_features, attention.head_dim
    rows = slice(2 * width + head * head_dim, 2 * width + (head + 1) * head_dim)  # rows of q, then k, then v
    values = [parameter.data[rows] for parameter in (attention.qkv.weight, attention.qkv.bias) if parameter is not None]
    saved = [value.clone() for value in values]
    try:
        for value in values:
            value.zero_()
        yield
    finally:
        for value, before in zip(values, saved, strict=True):
            value.copy_(before)


def ablate_heads(task: Task, test: str, heads: Heads, on_progress: OnProgress = no_progress) -> list[Effect]:
    """The effect of ablating each (layer, head) alone."""
    what, scores = f"ablating heads on {test}", len(heads) + 1
    on_progress(what, 0, scores)
    full = score_test(task, test)
    effects = []
    for number, (layer, head) in enumerate(heads, 1):
        on_progress(what, number, scores)
        with head_off(task.network, layer, head):
            without = score_test(task, test)
        effects.append(effect_of(layer, head, test, full, without))
    on_progress(what, scores, scores)
    return effects


def score_test(task: Task, test: str) -> Score:
    if isinstance(task, LanguageTask):
        return score_lm(task.network, task.sets[test], length=task.length, full_context=LEAST_CONTEXT)
    return task.score(test)


def effect_of(layer: int, head: int, test: str, whole: Score, without: Score) -> Effect:
    if "guess" in whole.outcomes:
        right, still = (score.outcomes["guess"] == score.outcomes["label"] for score in (whole, without))
        changed = paired_change(right, still, whole.outcomes.get("group"))
        before, after = whole.metrics.figure("accuracy"), without.metrics.figure("accuracy")
        return Effect(layer, head, test, "accuracy", before, after, after - before, changed)
    added, tokens = without.outcomes["nll"] - whole.outcomes["nll"], whole.outcomes["tokens"]
    factor = math.exp(min(700.0, float(added.sum() / tokens.sum())))
    before, after = whole.metrics.figure("perplexity"), without.metrics.figure("perplexity")
    interval = score_interval(whole.outcomes | {"nll": added})  # of the factor: exp of the mean of added nats
    return Effect(layer, head, test, "perplexity", before, after, factor, interval)
