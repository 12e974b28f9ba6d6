"""A head switched off: what the score loses without it, over a whole test set.

A head whose values are zero gives zeros to whatever joins the heads, wherever it looks. So its rows of the value
weights are emptied while a block runs: no hook, and the fused kernel runs as ever."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fairtrial.judge.interval import paired_change, perplexity_interval
from fairtrial.look.maps import Network
from fairtrial.train.bench import AnyBench, LanguageBench
from fairtrial.train.score import Score
from fairtrial.train.score_lm import score_lm

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
    bench: AnyBench,
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


def whole_score(bench: AnyBench, test: str) -> Score:
    if isinstance(bench, LanguageBench):
        return score_lm(bench.network, bench.sets[test], length=bench.length, full_context=LEAST_CONTEXT, pad=0)
    return bench.score(test)


def effect_of(layer: int, head: int, test: str, whole: Score, without: Score) -> Effect:
    if "guess" in whole.outcomes:
        right, still = (score.outcomes["guess"] == score.outcomes["label"] for score in (whole, without))
        interval = paired_change(int((~right & still).sum()), int((right & ~still).sum()), len(right))
        before, after = whole.figures["accuracy"], without.figures["accuracy"]
        return Effect(layer, head, test, "accuracy", before, after, after - before, interval)
    added, tokens = without.outcomes["nats"] - whole.outcomes["nats"], whole.outcomes["tokens"]
    factor = math.exp(min(700.0, float(added.sum() / tokens.sum())))
    before, after = whole.figures["perplexity"], without.figures["perplexity"]
    return Effect(layer, head, test, "perplexity", before, after, factor, perplexity_interval(added, tokens))
