"""Rope is the rotary code of LLaMA, as `transformers` has it."""

from __future__ import annotations

import cmath
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding, apply_rotary_pos_emb

from fairtrial.errors import BadInput
from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.part import AttentionContext
from fairtrial.parts.rope import Rope
from fairtrial.recipe import Shape
from sampling import cases, sample

SHAPE = Shape(width=48, layers=1)
TIME = 40


def llama(heads: int, base: float = 10_000.0) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=SHAPE.width, num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=4096,
        attention_bias=True, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )  # fmt: skip


def vectors(*sizes: int, seed: int = 0) -> Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


@sample(10, heads=(1, 2, 3, 4, 8), base=(10_000.0, 500.0), first=(0, 5, 1000))
def test_queries_and_keys_turn_as_llamas_do(heads: int, base: float, first: int) -> None:
    shape = replace(SHAPE, heads=heads)
    q, k = (vectors(2, heads, TIME, shape.head_dim, seed=seed) for seed in (0, 1))
    positions = torch.arange(first, first + TIME)
    cosine, sine = LlamaRotaryEmbedding(llama(heads, base))(q, positions[None])
    expected = apply_rotary_pos_emb(q, k, cosine, sine)
    ours = Rope(shape, base=base).rotate(q, k, AttentionContext(0, True, positions, positions))
    for mine, theirs in zip(ours, expected, strict=True):
        # their angles are float32, ours float64: at position 1,000 that is a difference of 1e-4
        torch.testing.assert_close(mine, theirs, atol=1e-5 if first < 1000 else 5e-4, rtol=0)
    assert (ours[0] - q)[:, :, 1:].abs().max() > 0.1


@sample(5, heads=(1, 2, 3, 4), causal=(True, False))
def test_a_whole_attention_equals_llamas(heads: int, causal: bool) -> None:
    shape = replace(SHAPE, heads=heads, qkv_bias=True)
    torch.manual_seed(heads)
    oracle, ours = LlamaAttention(llama(heads), 0).eval(), Attention(shape, 0)
    with torch.no_grad():
        named = (oracle.q_proj, oracle.k_proj, oracle.v_proj)
        ours.qkv.weight.copy_(torch.cat([each.weight for each in named]))
        ours.qkv.bias.copy_(torch.cat([each.bias for each in named]))
        ours.out.load_state_dict(oracle.o_proj.state_dict())
    x = vectors(3, TIME, shape.width) * 2
    hidden = torch.full((TIME, TIME), -torch.inf).triu(1) if causal else torch.zeros(TIME, TIME)
    place = LlamaRotaryEmbedding(llama(heads))(x, torch.arange(TIME)[None])
    expected, _ = oracle(x, position_embeddings=place, attention_mask=hidden[None, None])
    forward = ForwardContext(Layout.full(3, TIME), causal, 0, x.dtype)
    answer = ours(x.flatten(0, 1), forward, [Rope(shape)]).view(3, TIME, -1)
    torch.testing.assert_close(answer, expected, atol=1e-5, rtol=1e-5)
    unturned = ours(x.flatten(0, 1), forward, []).view(3, TIME, -1)
    assert (unturned - expected).abs().max() > 1e-2


@cases("heads", [1, 2, 4])
def test_turning_equals_a_loop_over_pairs(heads: int) -> None:
    shape = replace(SHAPE, heads=heads)
    q = vectors(2, heads, 9, shape.head_dim).double()
    positions = torch.arange(3, 12)
    turned, _ = Rope(shape).rotate(q, q, AttentionContext(0, True, positions, positions))
    half = shape.head_dim // 2
    for time in range(9):
        for pair in range(half):
            angle = (3 + time) * 10_000 ** (-2 * pair / shape.head_dim)
            # a pair is a complex number, and turning it a product
            number = torch.complex(q[:, :, time, pair], q[:, :, time, pair + half])
            expected = number * cmath.exp(1j * angle)
            torch.testing.assert_close(turned[:, :, time, pair], expected.real, atol=1e-12, rtol=0)
            torch.testing.assert_close(turned[:, :, time, pair + half], expected.imag, atol=1e-12, rtol=0)


def test_scores_depend_on_distance_alone() -> None:
    part, q, k = Rope(SHAPE), vectors(1, 2, 9, 24).double(), vectors(1, 2, 9, 24, seed=1).double()
    scores = []
    for first in (0, 700):
        positions = torch.arange(first, first + 9)
        turned, kept = part.rotate(q, k, AttentionContext(0, True, positions, positions))
        scores.append(turned @ kept.transpose(-2, -1))
    torch.testing.assert_close(scores[0], scores[1], atol=1e-10, rtol=0)
    assert (scores[0] - q @ k.transpose(-2, -1)).abs().max() > 0.1


def test_the_gradient_by_hand_is_the_gradient() -> None:
    positions = torch.arange(4, 7)
    context = AttentionContext(0, True, positions, positions)
    part = Rope(Shape(width=12, heads=2))
    q, k = (vectors(2, 2, 3, 6, seed=seed).double().requires_grad_() for seed in (0, 1))
    assert torch.autograd.gradcheck(lambda q, k: part.rotate(q, k, context), (q, k))
    assert torch.autograd.gradgradcheck(lambda q, k: part.rotate(q, k, context), (q, k))


def test_heads_of_odd_width_are_refused() -> None:
    with pytest.raises(BadInput, match="even head_dim, got 3"):
        Rope(Shape(width=12, heads=4))


@cases("base", [0, -1.0, float("inf"), float("nan")])
def test_a_base_that_turns_nothing_is_refused(base: float) -> None:
    with pytest.raises(BadInput, match="must be"):
        Rope(SHAPE, base=base)
