"""Disentangled attention is DeBERTa-v2's, as `transformers` has it, with copied weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import DebertaV2Config
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

from fairtrial.errors import BadInput
from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.part import AttentionContext
from fairtrial.parts.disentangled import Disentangled
from fairtrial.recipe import Shape
from sampling import cases

SHAPE = Shape(width=24, layers=2, length=50, qkv_bias=True)
LAYER = 1  # not the first, whose projections a wrong index would take
TIME = 21


def make(heads: int, furthest: int) -> tuple[DisentangledSelfAttention, Tensor, Attention, Disentangled]:
    """Theirs, its relative embeddings, and ours with its weights."""
    config = DebertaV2Config(
        hidden_size=SHAPE.width, num_attention_heads=heads, relative_attention=True, max_relative_positions=furthest,
        position_buckets=-1, pos_att_type=["c2p", "p2c"], share_att_key=False, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    torch.manual_seed(heads)
    oracle = DisentangledSelfAttention(config).eval()
    shape = replace(SHAPE, heads=heads)
    attention, part = Attention(shape, LAYER), Disentangled(shape, furthest=furthest)
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        named = (oracle.query_proj, oracle.key_proj, oracle.value_proj)
        attention.qkv.weight.copy_(torch.cat([each.weight for each in named]))
        attention.qkv.bias.copy_(torch.cat([each.bias for each in named]))
        attention.out.weight.copy_(torch.eye(SHAPE.width))  # theirs ends before the output layer
        attention.out.bias.zero_()
        part.keys[LAYER].weight.copy_(oracle.pos_key_proj.weight)  # their bias there changes nothing
        part.queries[LAYER].load_state_dict(oracle.pos_query_proj.state_dict())
    return oracle, part.table.weight.detach(), attention, part


def some_vectors() -> Tensor:
    return torch.randn(3, TIME, SHAPE.width, generator=torch.Generator().manual_seed(5))


@cases(
    ("heads", "furthest", "causal"),
    [
        (1, 50, True),
        (2, 21, False),
        (3, 20, True),
        (4, 20, False),
        (4, 4, True),
        (2, 4, False),
        (3, 1, True),
        (1, 1, False),
    ],
)
@torch.no_grad()
def test_full_rows_equal_debertas(heads: int, furthest: int, causal: bool) -> None:
    oracle, table, attention, part = make(heads, furthest)
    x, square = some_vectors(), torch.ones(3, 1, TIME, TIME)
    expected, maps = oracle(x, square.tril() if causal else square, output_attentions=True, rel_embeddings=table)
    forward = ForwardContext(Layout.full(3, TIME), causal, 0, x.dtype)
    seen = []
    attention.maps.on_capture = seen.append
    ours = attention(x.flatten(0, 1), forward, [part]).view(3, TIME, -1)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(seen[0], maps, atol=1e-5, rtol=1e-5)
    content_only = attention(x.flatten(0, 1), forward, []).view(3, TIME, -1)
    assert (content_only - expected).abs().max() > 1e-2


@cases(("heads", "furthest", "causal"), [(1, 4, False), (2, 50, True), (3, 4, True), (4, 50, False)])
@torch.no_grad()
def test_a_padded_batch_equals_debertas(heads: int, furthest: int, causal: bool) -> None:
    oracle, table, attention, part = make(heads, furthest)
    x, lengths = some_vectors(), torch.tensor([TIME, 9, 1])
    layout = Layout.ragged(lengths, TIME)
    mask = layout.real()[:, None, None, :] & torch.ones(TIME, TIME, dtype=torch.bool).tril(0 if causal else TIME)
    expected, _ = oracle(x, mask, rel_embeddings=table)
    ours = layout.unpack(attention(layout.pack(x), ForwardContext(layout, causal, 0, x.dtype), [part]))
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(ours[row, :length], expected[row, :length], atol=1e-5, rtol=1e-5)
        assert not ours[row, length:].any()


@torch.no_grad()
def test_gradients_do_not_miss_what_the_bias_of_debertas_position_keys_lacks() -> None:
    """Why our position keys have no bias: with any other one DeBERTa answers the same."""
    oracle, table, _, _ = make(2, 50)
    x, square = some_vectors(), torch.ones(3, 1, TIME, TIME)
    before, _ = oracle(x, square, rel_embeddings=table)
    oracle.pos_key_proj.bias.add_(1.0)
    torch.testing.assert_close(oracle(x, square, rel_embeddings=table)[0], before, atol=1e-5, rtol=1e-5)
    oracle.pos_query_proj.bias.add_(1.0)
    assert (oracle(x, square, rel_embeddings=table)[0] - before).abs().max() > 1e-2


@pytest.mark.parametrize("furthest", [30, 3])
@torch.no_grad()
def test_scores_equal_a_loop_over_the_papers_equation(furthest: int) -> None:
    """Equation 4 there: Qc Kc + Qc Kr[d(i, j)] + Kc Qr[d(j, i)], here with d(i, j) in both (as the authors' code), all
    over the root of 3d. Queries late in a cached text too."""
    shape = replace(SHAPE, heads=2)
    part = Disentangled(shape, furthest=furthest).double()
    rng = torch.Generator().manual_seed(2)
    q, k = (torch.randn(1, 2, time, 12, generator=rng, dtype=torch.float64) for time in (3, 9))
    context = AttentionContext(LAYER, True, torch.arange(6, 9), torch.arange(9))
    scores = part.score(q @ k.transpose(-2, -1) / math.sqrt(12), q, k, context)
    key_rows = part.keys[LAYER](part.table.weight).view(-1, 2, 12)
    query_rows = part.queries[LAYER](part.table.weight).view(-1, 2, 12)
    for head in range(2):
        for query in range(6, 9):
            for key in range(9):
                place = min(max(query - key + furthest, 0), 2 * furthest - 1)
                asked, offered = q[0, head, query - 6], k[0, head, key]
                total = asked @ offered + asked @ key_rows[place, head] + offered @ query_rows[place, head]
                assert float(scores[0, head, query - 6, key]) == pytest.approx(float(total) / math.sqrt(36), abs=1e-12)


@pytest.mark.parametrize("furthest", [0, -3])
def test_no_distance_at_all_is_refused(furthest: int) -> None:
    with pytest.raises(BadInput, match="must be"):
        Disentangled(SHAPE, furthest=furthest)
