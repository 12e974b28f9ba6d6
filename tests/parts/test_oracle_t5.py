"""T5's buckets and biases are those of `transformers`, in an encoder and in a decoder."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from fairtrial.errors import BadInput
from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.part import AttentionContext
from fairtrial.parts.t5 import T5Bias, bucket
from fairtrial.recipe import Shape
from sampling import cases, sample

SIZES = [(32, 128), (8, 20), (16, 300), (64, 65), (4, 5)]


def oracle_of(heads: int, causal: bool, buckets: int, furthest: int) -> T5Attention:
    config = T5Config(
        d_model=24, d_kv=24 // heads, num_heads=heads, is_decoder=causal, dropout_rate=0.0,
        relative_attention_num_buckets=buckets, relative_attention_max_distance=furthest,
        attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(heads)
    return T5Attention(config, has_relative_attention_bias=True, layer_idx=0, is_causal=causal).eval()


def part_of(oracle: T5Attention, heads: int, buckets: int, furthest: int) -> T5Bias:
    part = T5Bias(replace(Shape(), width=24, heads=heads, layers=1), buckets=buckets, furthest=furthest)
    part.table.load_state_dict(oracle.relative_attention_bias.state_dict())
    return part


@cases("causal", [True, False])
@cases(("buckets", "furthest"), SIZES)
def test_every_distance_has_t5s_bucket(causal: bool, buckets: int, furthest: int) -> None:
    ahead = torch.arange(-300, 301)  # theirs is key - query, ours query - key
    with torch.no_grad():
        theirs = T5Attention._relative_position_bucket(ahead, not causal, buckets, furthest)
    ours = bucket(-ahead, causal, buckets, furthest)
    assert torch.equal(ours, theirs)
    # nearly every bucket is used: "0 ahead" is "0 back", and some distances jump over one
    assert len(set(ours.tolist())) >= buckets - 2


@sample(6, heads=(1, 2, 3, 4), causal=(True, False), size=SIZES[:2])
def test_biases_equal_t5s_with_copied_weights(heads: int, causal: bool, size: tuple[int, int]) -> None:
    buckets, furthest = size
    oracle = oracle_of(heads, causal, buckets, furthest)
    part = part_of(oracle, heads, buckets, furthest)
    for queries, keys in ((70, 70), (1, 150), (3, 40)):
        expected = oracle.compute_bias(queries, keys, past_seen_tokens=keys - queries)[0]
        ours = part.bias(AttentionContext(0, causal, torch.arange(keys - queries, keys), torch.arange(keys)))
        assert torch.equal(ours, expected)
        assert ours.std() > 0.1


@sample(5, heads=(1, 2, 3, 4), causal=(True, False))
def test_a_whole_attention_equals_t5s(heads: int, causal: bool) -> None:
    """But for its scale: T5 does not divide scores by the root of the head's width, so our queries grow by it."""
    oracle = oracle_of(heads, causal, 8, 20)
    part = part_of(oracle, heads, 8, 20)
    ours = Attention(part.shape, 0)
    each, time = part.shape.head_dim, 33
    with torch.no_grad():
        ours.qkv.weight.copy_(torch.cat((oracle.q.weight * each**0.5, oracle.k.weight, oracle.v.weight)))
        ours.out.weight.copy_(oracle.o.weight)
        ours.out.bias.zero_()
        x = torch.randn(2, time, 24, generator=torch.Generator().manual_seed(1))
        bias = oracle.compute_bias(time, time)
        if causal:
            bias = bias + torch.full((time, time), -torch.inf).triu(1)
        expected = oracle(x, position_bias=bias)[0]
        answer = ours(x.flatten(0, 1), ForwardContext(Layout.full(2, time), causal, 0, x.dtype), [part]).view(
            2, time, -1
        )
        without = ours(x.flatten(0, 1), ForwardContext(Layout.full(2, time), causal, 0, x.dtype), []).view(2, time, -1)
    torch.testing.assert_close(answer, expected, atol=1e-5, rtol=1e-4)
    assert (without - expected).abs().max() > 1e-2


@cases("options", [{"buckets": 2}, {"buckets": 30}, {"buckets": 32, "furthest": 32}])
def test_buckets_that_do_not_divide_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="must be"):
        T5Bias(Shape(), **options)
