"""Ablated heads: the same as zeros before the merge, for every part; whole test sets; nothing is left behind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.inspection.heads import Effect, ablate_heads, head_off
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.recipe import PartChoice, Shape
from fairtrial.record import Record
from fairtrial.statistics.crossed import paired_change
from fairtrial.statistics.outcomes import score_interval
from fairtrial.training.scoring import score_lm
from fairtrial.trial import load
from sampling import cases

SHAPE = Shape(layers=2, heads=3, width=24, hidden=20, length=16, dropout=0.0, qkv_bias=True, start="torch")


@contextmanager
def zeros_before_the_merge(network: Any, layer: int, head: int) -> Iterator[None]:
    """Another way to the same end: what attention gives is caught, and one head of it emptied."""
    attention = network.body.blocks[layer].attention

    def emptied(way: Any) -> Any:
        def call(*given: Any) -> torch.Tensor:
            heads = way(*given).clone()
            heads[:, head] = 0.0
            return heads

        return call

    attention.attend, attention.attend_fast = emptied(attention.attend), emptied(attention.attend_fast)
    try:
        yield
    finally:
        del attention.attend, attention.attend_fast


@cases(
    ("name", "kind"),
    [("learned", LanguageModel), ("disentangled", LanguageModel), ("window", Classifier), ("shuffle", LanguageModel),
     ("reweight", Classifier), ("shift", Classifier), ("pool-attention", Classifier), ("multi-query", LanguageModel),
     ("value-residual", Classifier), ("shaw", LanguageModel), ("differential", Classifier)],
)  # fmt: skip
@torch.no_grad()
def test_a_head_without_values_is_a_head_that_gives_zeros(name: str, kind: Any) -> None:
    classes = (3,) if kind is Classifier else ()
    network = kind(SHAPE, [PartChoice(name=name)], 50, *classes, seed=2).double().eval()
    for parameter in network.parameters():
        parameter.add_(0.1)  # where biases start at zero, they must count all the same
    ids, lengths = torch.arange(20).view(2, 10), torch.tensor([10, 7])
    whole = network(ids, lengths)
    for layer, head in ((0, 0), (1, 2)):
        with head_off(network, layer, head):
            ours = network(ids, lengths)
        with zeros_before_the_merge(network, layer, head):
            theirs = network(ids, lengths)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
        assert not torch.allclose(ours, whole, rtol=0, atol=1e-9)  # the head did something
    assert torch.equal(network(ids, lengths), whole)


def test_weights_come_back_after_an_error() -> None:
    network = LanguageModel(SHAPE, [], 50, seed=2)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    changed: list[str] = []

    def stopped_by_the_user() -> None:
        with head_off(network, 1, 1):
            changed.extend(name for name, now in network.state_dict().items() if not torch.equal(now, before[name]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_by_the_user()
    assert set(changed) == {"body.blocks.1.attention.qkv.weight", "body.blocks.1.attention.qkv.bias"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_a_classifiers_effect_is_the_change_of_its_accuracy(finished_records: dict[str, Path]) -> None:
    bench = load(Record.open(finished_records["classify"])).task
    told: list[tuple[int, int]] = []
    effects = ablate_heads(bench, "test", [(0, 0), (0, 1)], lambda what, done, of: told.append((done, of)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    whole = bench.score("test")
    for effect in effects:
        with head_off(bench.network, 0, effect.head):
            without = bench.score("test")
        assert effect.change == without.metrics.accuracy - whole.metrics.accuracy
        assert (effect.whole, effect.without) == (whole.metrics.accuracy, without.metrics.accuracy)
        assert effect.interval is not None
        assert effect.interval[0] <= effect.change <= effect.interval[1]


def test_a_language_models_effect_is_a_factor_of_its_perplexity(finished_records: dict[str, Path]) -> None:
    bench = load(Record.open(finished_records["lm"])).task
    test = next(name for name in bench.sets if name not in ("train", "validation"))
    (effect,) = ablate_heads(bench, test, [(0, 1)])
    assert effect.change == pytest.approx(effect.without / effect.whole, rel=1e-9)
    assert effect.interval is not None
    assert effect.interval[0] < effect.change < effect.interval[1]
    set_ = bench.sets[test]
    whole = score_lm(bench.network, set_, length=bench.length, full_context=0.5)  # type: ignore[union-attr, arg-type]
    with head_off(bench.network, 0, 1):
        without = score_lm(bench.network, set_, length=bench.length, full_context=0.5)  # type: ignore[union-attr, arg-type]
    added = without.outcomes["nll"] - whole.outcomes["nll"]
    assert effect.interval == score_interval(whole.outcomes | {"nll": added})


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_head_that_no_one_reads_has_no_effect(finished_records: dict[str, Path], task: str) -> None:
    bench = load(Record.open(finished_records[task])).task
    with torch.no_grad():
        each = bench.network.body.shape.head_dim
        bench.network.body.blocks[0].attention.out.weight[:, :each] = 0.0  # type: ignore[union-attr, index]
    test = next(name for name in bench.sets if name not in ("train", "validation"))
    effects = ablate_heads(bench, test, [(0, 0)])
    assert effects[0].change == (0.0 if task == "classify" else 1.0)
    assert not effects[0].clear


def test_clear_is_an_interval_without_no_change() -> None:
    effect = Effect(0, 0, "test", "accuracy", 0.8, 0.7, -0.1, (-0.15, -0.05))
    assert effect.clear
    assert not Effect(0, 0, "test", "accuracy", 0.8, 0.8, 0.0, (-0.01, 0.01)).clear
    assert Effect(0, 0, "test", "perplexity", 9.0, 10.0, 10 / 9, (1.05, 1.2)).clear
    assert not Effect(0, 0, "test", "perplexity", 9.0, 10.0, 10 / 9, None).clear


def changed(gained: int, lost: int, items: int) -> tuple[float, float]:
    """Of items of which so many became right and so many wrong."""
    before, after = np.zeros(items, bool), np.zeros(items, bool)
    after[:gained], before[gained : gained + lost] = True, True
    return paired_change(before, after)


def test_items_that_belong_together_widen_a_paired_interval() -> None:
    before = np.zeros(200, bool)
    after = np.repeat(np.random.default_rng(0).random(20) < 0.3, 10)  # a whole speech is gained, or nothing of it
    alone, together = paired_change(before, after), paired_change(before, after, np.repeat(np.arange(20), 10))
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])


def test_a_paired_interval_is_agresti_and_mins() -> None:
    low, high = changed(3, 10, 100)
    centre, spread = (3.5 - 10.5) / 102, math.sqrt(14 - 49 / 102) / 102
    assert (low, high) == pytest.approx((centre - 1.959964 * spread, centre + 1.959964 * spread))
    assert changed(0, 0, 100)[0] < 0 < changed(0, 0, 100)[1]


@cases(("gain", "loss"), [(0.02, 0.05), (0.01, 0.01), (0.1, 0.2)])
def test_a_paired_interval_covers_the_truth(gain: float, loss: float) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(300, [gain, loss, 1 - gain - loss], size=2000)
    held = [low <= gain - loss <= high for low, high in (changed(g, lost, 300) for g, lost, _ in drawn)]
    assert 0.93 <= np.mean(held) <= 0.99
