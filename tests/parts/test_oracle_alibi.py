"""Alibi's slopes and biases are those of the paper and of `transformers` (BLOOM, MPT)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, build_parts
from fairtrial.parts.alibi import Alibi, slopes
from fairtrial.recipe import PartChoice, Shape
from sampling import cases, sample

HEADS = (1, 2, 3, 5, 8, 12, 15)
TIME = 30


def bias_of(heads: int, causal: bool, first: int = 0, **options: float) -> Tensor:
    """[head query key]"""
    part = Alibi(replace(Shape(), heads=heads, width=2 * heads), **options)
    return part.bias(AttentionContext(0, causal, torch.arange(first, TIME), torch.arange(TIME)))


@cases("heads", [1, 2, 4, 8, 16, 32])
def test_slopes_are_the_papers_where_heads_are_a_power_of_two(heads: int) -> None:
    """Section 3 there: a geometric sequence that starts at 2^(-8/n), with that same ratio."""
    start = 2 ** (-8 / heads)
    assert slopes(heads) == pytest.approx([start ** (place + 1) for place in range(heads)], rel=1e-12)


def test_slopes_are_the_papers_example() -> None:
    assert slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@cases("heads", HEADS)
def test_slopes_equal_blooms(heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)  # slope x position, at positions 0 and 1
    torch.testing.assert_close(torch.tensor(slopes(heads)), theirs[:, 0, 1], atol=0, rtol=1e-6)
    assert len(set(slopes(heads))) == heads


@cases("heads", HEADS)
def test_slopes_equal_mpts(heads: int) -> None:
    """From the next higher power of two: every second slope first, then the others. The same numbers, and the same
    order."""
    theirs = build_mpt_alibi_tensor(heads, 2)  # slope x (position - last), at positions 0 and 1
    torch.testing.assert_close(torch.tensor(slopes(heads)), -theirs[:, 0, 0], atol=0, rtol=1e-6)


@cases("heads", HEADS)
def test_a_decoders_bias_equals_blooms_and_mpts_but_for_a_constant_in_each_row(heads: int) -> None:
    """BLOOM adds slope x key, MPT slope x (key - last key), the paper slope x (key - query). They differ by a constant
    for each query, which softmax ignores: the weights are equal."""
    ours = bias_of(heads, causal=True)
    future = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)
    scores = torch.randn(heads, TIME, TIME, generator=torch.Generator().manual_seed(heads))
    weights = (scores + ours).masked_fill(future, -torch.inf).softmax(-1)
    for theirs in (
        build_alibi_tensor(torch.ones(1, TIME), heads, torch.float32),
        build_mpt_alibi_tensor(heads, TIME),
    ):
        assert theirs.shape == (heads, 1, TIME)
        difference = (ours - theirs).masked_fill(future, torch.nan)
        constant = difference[:, :, :1]
        seen = ~future.expand_as(difference)
        torch.testing.assert_close(difference[seen], constant.expand_as(difference)[seen], atol=2e-5, rtol=0)
        expected = (scores + theirs).masked_fill(future, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-4)
    assert (weights - scores.masked_fill(future, -torch.inf).softmax(-1)).abs().max() > 1e-2


@sample(6, heads=(1, 3, 8), causal=(True, False), first=(0, 20))
def test_the_bias_equals_a_loop(heads: int, causal: bool, first: int) -> None:
    """Minus slope times distance, to both sides alike; also for queries late in a cached text."""
    bias = bias_of(heads, causal, first)
    for head in range(heads):
        for query in range(first, TIME):
            for key in range(TIME):
                assert float(bias[head, query - first, key]) == pytest.approx(-slopes(heads)[head] * abs(query - key))


def test_a_fixed_slope_is_every_heads() -> None:
    bias = bias_of(3, True, slope=1)
    for head in range(3):
        assert torch.equal(bias[head], -(torch.arange(TIME)[:, None] - torch.arange(TIME)).abs().float())


@pytest.mark.parametrize("slope", [float("inf"), float("nan")])
def test_a_slope_that_is_no_number_is_refused(slope: float) -> None:
    with pytest.raises(BadInput, match="must be"):
        Alibi(Shape(), slope=slope)


def test_a_slope_in_words_is_refused() -> None:
    with pytest.raises(BadInput, match="'alibi'"):
        build_parts([PartChoice(name="alibi", options={"slope": "steep"})], Shape(), 0)
