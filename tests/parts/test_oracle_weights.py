"""What becomes of scores: as in `transformers` and x-transformers, or as loops say."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from brute import looped_heads
from layers import (
    LENGTHS,
    SHAPE,
    TIME,
    attention_layer,
    context,
    heads_of,
    perturbed,
    run_layer,
    side_by_side,
    vectors,
    with_heads,
)
from torch import Tensor
from torch.nn.functional import elu
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_oss import modeling_gpt_oss
from x_transformers.attend import Attend

from fairtrial.errors import BadInput
from fairtrial.model.part import build_parts
from fairtrial.parts.alibi import Alibi
from fairtrial.parts.differential import Differential
from fairtrial.parts.linear import Linear
from fairtrial.parts.rope import Rope
from fairtrial.parts.sigmoid import Sigmoid
from fairtrial.parts.sink import Sink
from fairtrial.parts.soft_cap import SoftCap
from fairtrial.parts.talking_heads import TalkingHeads
from fairtrial.recipe import PartChoice
from sampling import cases

both_ways = pytest.mark.parametrize("causal", [True, False])


def future(causal: bool) -> Tensor:
    hidden = torch.full((TIME, TIME), -torch.inf, dtype=torch.float64)
    return (hidden.triu(1) if causal else torch.zeros_like(hidden))[None, None]


@both_ways
def test_capped_scores_are_gemma_2s(causal: bool) -> None:
    attention, x = attention_layer(), vectors(2, TIME, 24)
    q, k, v = heads_of(attention, x)
    module = SimpleNamespace(head_dim=8, num_key_value_groups=1, training=False)
    for cap in (50.0, 2.0):
        expected, _ = modeling_gemma2.eager_attention_forward(module, q, k, v, future(causal), softcap=cap)
        found = run_layer(attention, x, [SoftCap(SHAPE, cap=cap)], causal)
        torch.testing.assert_close(found, expected.flatten(2), atol=1e-5, rtol=0)  # they take softmax in float32
    assert (run_layer(attention, x, [], causal) - found).abs().max() > 1e-2


@both_ways
def test_a_sink_is_gpt_osss(causal: bool) -> None:
    attention, x, part = attention_layer(layer=1), vectors(2, TIME, 24), perturbed(Sink(SHAPE))
    module = SimpleNamespace(num_key_value_groups=1, training=False, sinks=part.scores[1].detach())
    expected, _ = modeling_gpt_oss.eager_attention_forward(module, *heads_of(attention, x), future(causal), 8**-0.5)
    found = run_layer(attention, x, [part], causal)
    torch.testing.assert_close(found, expected.flatten(2), atol=1e-12, rtol=0)
    assert (run_layer(attention, x, [], causal) - found).abs().max() > 1e-2


@both_ways
@torch.no_grad()
def test_talking_heads_are_x_transformers(causal: bool) -> None:
    attention, x, part = attention_layer(), vectors(2, TIME, 24), perturbed(TalkingHeads(SHAPE))
    oracle = Attend(heads=3, causal=causal, pre_talking_heads=True, post_talking_heads=True, scale=8**-0.5).double()
    # theirs before the softmax is added to the scores, ours takes their place
    oracle.pre_softmax_talking_heads.weight.copy_((part.before[0] - torch.eye(3))[:, :, None, None])
    oracle.post_softmax_talking_heads.weight.copy_(part.after[0][:, :, None, None])
    expected = oracle(*heads_of(attention, x))[0]
    found = run_layer(attention, x, [part], causal)
    torch.testing.assert_close(found, expected.transpose(1, 2).flatten(2), atol=1e-5, rtol=0)
    assert (run_layer(attention, x, [], causal) - found).abs().max() > 1e-2
    fresh = run_layer(attention, x, [TalkingHeads(SHAPE).double()], causal)
    torch.testing.assert_close(fresh, run_layer(attention, x, [], causal), atol=1e-12, rtol=0)


@cases(("causal", "layer"), [(True, 0), (True, 1), (False, 1)])
@torch.no_grad()
def test_differential_attention_is_diffllamas(causal: bool, layer: int) -> None:
    """Our halves of a head are its even and odd coordinates, theirs two heads: the same weights in another order."""
    shape, each = replace(SHAPE, heads=3, width=48), 8
    config = DiffLlamaConfig(
        hidden_size=48, num_attention_heads=6, num_key_value_heads=6, head_dim=each, attention_bias=True,
        rms_norm_eps=1e-5, attn_implementation="eager", num_hidden_layers=2,
    )  # fmt: skip
    oracle = DiffLlamaAttention(config, layer).double().eval()
    attention, part, x = attention_layer(shape, layer), Differential(shape).double(), vectors(2, TIME, 48)
    part.vectors.add_(0.3 * vectors(*part.vectors.shape, seed=5))
    for name, number, which in (("q1", 0, 0), ("q2", 0, 1), ("k1", 1, 0), ("k2", 1, 1)):
        getattr(oracle, f"lambda_{name}").copy_(part.vectors[layer, number, which])
    # theirs: the first halves of all heads, then the second ones; the values of a pair are two heads side by side
    rows = torch.arange(48).view(3, each, 2).permute(2, 0, 1).flatten()
    values = torch.arange(48).view(3, 2, each).permute(1, 0, 2).flatten()
    weights, biases = attention.qkv.weight.chunk(3), attention.qkv.bias.chunk(3)
    for name, weight, bias, order in zip("qkv", weights, biases, (rows, rows, values), strict=True):
        projection = getattr(oracle, f"{name}_proj")
        projection.weight.copy_(weight[order])
        projection.bias.copy_(bias[order])
    oracle.o_proj.weight.copy_(torch.eye(48))
    oracle.o_proj.bias.zero_()
    still = torch.ones(1, TIME, each, dtype=torch.float64), torch.zeros(1, TIME, each, dtype=torch.float64)
    expected, _ = oracle(x, position_embeddings=still, attention_mask=future(causal))
    found = run_layer(attention, x, [part], causal)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert (run_layer(attention, x, [], causal) - expected).abs().max() > 1e-2


@torch.no_grad()
def test_the_halves_of_a_head_keep_the_pairs_that_rope_rotates() -> None:
    """Scores of both halves depend on distance alone, and biases come to both."""
    part, rope, q, k = Differential(SHAPE), Rope(SHAPE), vectors(1, 3, TIME, 8), vectors(1, 3, TIME, 8, seed=1)
    found = []
    for first in (0, 500):
        place = context(time=TIME + first, first=first)
        turned = rope.rotate(q, k, place)
        found.append(part.score(turned[0] @ turned[1].transpose(-2, -1) / 8**0.5, *turned, place))
    assert found[0].shape == (1, 6, TIME, TIME)
    torch.testing.assert_close(found[0], found[1], atol=1e-10, rtol=0)
    attention, x, alibi = attention_layer(), vectors(2, TIME, 24), Alibi(SHAPE).double()
    part = part.double()
    with_bias = run_layer(attention, x, [part, alibi], True)
    q, k, v = heads_of(attention, x)
    halves = [q[..., half::2] @ k[..., half::2].transpose(-2, -1) / 2 for half in (0, 1)]
    first, second = ((scores + alibi.bias(context()) + future(True)).softmax(-1) for scores in halves)
    terms = part.vectors[0].prod(0).sum(-1).exp()
    heads = 0.8 * part.norms[0]((first - (terms[0] - terms[1] + 0.2) * second) @ v)
    torch.testing.assert_close(with_bias, heads.transpose(1, 2).flatten(2), atol=1e-10, rtol=0)
    with pytest.raises(
        BadInput, match="'differential' and 'rope' do not combine: halves of a head_dim of 6 part the pairs"
    ):
        build_parts([PartChoice(name=name) for name in ("rope", "differential")], with_heads(4), 0)
    with pytest.raises(BadInput, match="even head_dim"):
        Differential(with_heads(8))


@both_ways
@torch.no_grad()
def test_sigmoid_attention_equals_loops(causal: bool) -> None:
    attention, x = attention_layer(), vectors(3, TIME, 24)
    for options, bias in (({}, -math.log(16)), ({"bias": -1.0}, -1.0)):
        found = run_layer(attention, x, [Sigmoid(SHAPE, **options)], causal, LENGTHS)
        heads = looped_heads(
            attention, x, LENGTHS, causal,
            weigh=lambda head, scores, bias=bias: [1 / (1 + math.exp(-score - bias)) for score in scores],
        )  # fmt: skip
        for row, length in enumerate(LENGTHS):
            for query in range(length):
                torch.testing.assert_close(found[row, query], side_by_side(heads, row, query), atol=1e-10, rtol=0)


@both_ways
@torch.no_grad()
def test_linear_attention_equals_the_papers_recurrence(causal: bool) -> None:
    """Equations 18 to 20 there: two sums, carried along the text; in an encoder, over all of it."""
    attention, x = attention_layer(), vectors(2, TIME, 24)
    q, k, v = heads_of(attention, x)
    found = run_layer(attention, x, [Linear(SHAPE)], causal).unflatten(-1, (3, 8))
    q, k = elu(q) + 1, elu(k) + 1
    for row in range(2):
        for head in range(3):
            sums, total = torch.zeros(8, 8, dtype=torch.float64), torch.zeros(8, dtype=torch.float64)
            for token in range(TIME):
                for key in [token] if causal else range(TIME) if token == 0 else []:
                    sums += torch.outer(k[row, head, key], v[row, head, key])
                    total += k[row, head, key]
                expected = q[row, head, token] @ sums / (q[row, head, token] @ total)
                torch.testing.assert_close(found[row, token, head], expected, atol=1e-10, rtol=0)


@cases(
    ("names", "reason"),
    [
        (("linear", "rope"), "features are computed after the rotation"),
        (("linear", "soft-cap"), "products of features and no scores"),
        (("sigmoid", "linear"), "products of features and no scores"),
        (("differential", "shaw"), "splits each head into two"),
        (("sink", "differential"), "splits each head into two"),
    ],
)
def test_compositions_that_make_no_sense_are_refused(names: tuple[str, ...], reason: str) -> None:
    with pytest.raises(BadInput, match=f"do not combine: .*{reason}"):
        build_parts([PartChoice(name=name) for name in names], SHAPE, 0)


@pytest.mark.parametrize(("kind", "options"), [(SoftCap, {"cap": 0.0}), (Sigmoid, {"bias": math.inf})])
def test_numbers_that_do_nothing_are_refused(kind: type, options: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="must be"):
        kind(SHAPE, **options)
