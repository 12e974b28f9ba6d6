"""Normed and shared keys are Qwen3's and LLaMA's; values of the first layer come back in later ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from layers import LENGTHS, SHAPE, TIME, attention_layer, heads_of, perturbed, run_layer, vectors
from transformers import LlamaConfig, Qwen3Config
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention, Qwen3RotaryEmbedding

from fairtrial.errors import BadInput
from fairtrial.model.attention import ForwardContext, KVCache, Layout
from fairtrial.parts.qk_norm import QKNorm
from fairtrial.parts.rope import Rope
from fairtrial.parts.shared_keys import GroupedQuery, MultiQuery
from fairtrial.parts.value_residual import ValueResidual
from sampling import sample

SHAPE = replace(SHAPE, heads=4)


def copy_projections(oracle: torch.nn.Module, attention: torch.nn.Module) -> None:
    for name, weight, bias in zip(
        ("q_proj", "k_proj", "v_proj"),
        attention.qkv.weight.split(attention.sizes),
        attention.qkv.bias.split(attention.sizes),
        strict=True,
    ):
        layer = getattr(oracle, name)
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    oracle.o_proj.weight.copy_(torch.eye(SHAPE.width))
    if oracle.o_proj.bias is not None:
        oracle.o_proj.bias.zero_()


def future(causal: bool) -> torch.Tensor:
    hidden = torch.full((TIME, TIME), -torch.inf, dtype=torch.float64)
    return (hidden.triu(1) if causal else torch.zeros_like(hidden))[None, None]


@sample(4, groups=(1, 2, 4), causal=(True, False))
@torch.no_grad()
def test_normed_shared_and_rotated_keys_equal_qwen3s(groups: int, causal: bool) -> None:
    """All three at once: the norm comes before the rotation, and the groups are the same heads."""
    config = Qwen3Config(
        hidden_size=24, num_attention_heads=4, num_key_value_heads=groups, head_dim=6, attention_bias=True,
        rms_norm_eps=SHAPE.norm_epsilon, attn_implementation="eager", max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )  # fmt: skip
    oracle, attention, x = (
        Qwen3Attention(config, 0).double().eval(),
        attention_layer(SHAPE, 0, groups),
        vectors(2, TIME, 24),
    )
    norm = perturbed(QKNorm(SHAPE))
    copy_projections(oracle, attention)
    oracle.q_norm.weight.copy_(norm.queries[0].weight)
    oracle.k_norm.weight.copy_(norm.keys[0].weight)
    place = Qwen3RotaryEmbedding(config)(x, torch.arange(TIME)[None])
    expected, _ = oracle(x, position_embeddings=place, attention_mask=future(causal))
    for together in ([norm, Rope(SHAPE)], [Rope(SHAPE), norm]):  # in whatever order a recipe names them
        torch.testing.assert_close(run_layer(attention, x, together, causal), expected, atol=1e-5, rtol=0)
    assert (run_layer(attention, x, [Rope(SHAPE)], causal) - expected).abs().max() > 1e-2


@torch.no_grad()
def test_one_head_of_keys_for_all_equals_llamas() -> None:
    config = LlamaConfig(
        hidden_size=24, num_attention_heads=4, num_key_value_heads=1, attention_bias=True, attn_implementation="eager"
    )
    oracle, attention, x = LlamaAttention(config, 0).double().eval(), attention_layer(SHAPE, 0, 1), vectors(2, TIME, 24)
    copy_projections(oracle, attention)
    still = (torch.ones(1, TIME, 6, dtype=torch.float64), torch.zeros(1, TIME, 6, dtype=torch.float64))  # no rotation
    expected, _ = oracle(x, position_embeddings=still, attention_mask=future(True))
    torch.testing.assert_close(run_layer(attention, x, [MultiQuery(SHAPE)], True), expected, atol=1e-5, rtol=0)
    cache, layout = KVCache(1), Layout.full(2, TIME)
    attention(x.flatten(0, 1), ForwardContext(layout, True, 0, x.dtype), [], cache)
    assert cache.buffers[0].shape[2] == 1  # the cache holds one head of keys, not four


def test_groups_divide_the_heads() -> None:
    assert [GroupedQuery(replace(SHAPE, heads=heads)).key_heads() for heads in (1, 2, 3, 4, 6, 8)] == [1, 1, 1, 2, 3, 4]
    assert GroupedQuery(SHAPE, groups=4).key_heads() == 4
    for groups in (0, 3, 5, 8):
        with pytest.raises(BadInput, match=r"groups must divide shape.heads = 4"):
            GroupedQuery(SHAPE, groups=groups)


@torch.no_grad()
def test_values_of_the_first_layer_are_mixed_into_later_ones() -> None:
    """Two layers by hand: softmax(q k) (a first + b own)."""
    part, x, y = perturbed(ValueResidual(SHAPE)), vectors(3, TIME, 24), vectors(3, TIME, 24, seed=1)
    first, second = attention_layer(SHAPE, 0), attention_layer(SHAPE, 1)
    layout = Layout.ragged(torch.tensor(LENGTHS), TIME)
    forward = ForwardContext(layout, False, 0, x.dtype)
    plain = layout.unpack(first(layout.pack(x), forward, [part]))
    torch.testing.assert_close(plain, run_layer(first, x, [], False, LENGTHS), atol=1e-12, rtol=0)
    found = layout.unpack(second(layout.pack(y), forward, [part]))
    (_, _, v_first), (q, k, v) = heads_of(first, x), heads_of(second, y)
    a, b = part.shares[0]
    for row, length in enumerate(LENGTHS):
        q_, k_, v_ = (each[row, :, :length] for each in (q, k, a * v_first + b * v))
        expected = (q_ @ k_.transpose(-2, -1) / 6**0.5).softmax(-1) @ v_
        torch.testing.assert_close(found[row, :length], expected.transpose(0, 1).flatten(1), atol=1e-10, rtol=0)


def test_a_single_layer_has_no_later_values() -> None:
    with pytest.raises(BadInput, match="at least 2 layers"):
        ValueResidual(replace(SHAPE, layers=1))
