"""Kerple, Fire, CoPE, Shaw and forgetting equal loops over every query and key; CoPE also x-transformers'."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from brute import dot_products, looped_heads
from layers import LENGTHS, SHAPE, TIME, attention_layer, context, heads_of, perturbed, run_layer, side_by_side, vectors
from torch import Tensor
from x_transformers.x_transformers import CoPE as TheirCoPE

from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.parts.cope import CoPE
from fairtrial.parts.fire import Fire
from fairtrial.parts.forgetting import Forgetting
from fairtrial.parts.kerple import Kerple
from fairtrial.parts.shaw import Shaw
from fairtrial.recipe import PartChoice
from sampling import cases

both_ways = pytest.mark.parametrize("causal", [True, False])


X = vectors(1, TIME, 24).expand(3, -1, -1)  # the same text thrice, cut to other lengths


def compare(part: Any, causal: bool, **loops: Any) -> None:
    """The layer with the part equals loops that know of it, and not those that do not; rows are padded."""
    attention, x = attention_layer(layer=1), X
    found = run_layer(attention, x, [part], causal, LENGTHS)
    expected = looped_heads(attention, x, LENGTHS, causal, **loops)
    plain = looped_heads(attention, x, LENGTHS, causal)
    most = 0.0
    for row, length in enumerate(LENGTHS):
        for query in range(length):
            joined = side_by_side(expected, row, query)
            torch.testing.assert_close(found[row, query], joined, atol=1e-9, rtol=0)
            most = max(most, float((joined - side_by_side(plain, row, query)).abs().max()))
    assert most > 1e-2


def with_bias(bias: Callable[[int, int, int], float]) -> Any:
    """Dot products plus `bias(head, query, key)`"""

    def scores(head: int, query: int, keys: Sequence[int], q: Tensor, k: Tensor) -> list[float]:
        plain = dot_products(head, query, keys, q, k)
        return [score + bias(head, query, key) for score, key in zip(plain, keys, strict=True)]

    return scores


@both_ways
def test_kerple_equals_loops(causal: bool) -> None:
    part = perturbed(Kerple(SHAPE))
    a, b = part.logs[:, 1].exp().tolist()
    compare(
        part, causal, scores=with_bias(lambda head, query, key: -a[head] * math.log(1 + b[head] * abs(query - key)))
    )


@both_ways
def test_fire_equals_loops(causal: bool) -> None:
    """Equation 3 of the paper and its appendix: f(log(c d + 1) / log(c max(L, i) + 1))."""
    part = perturbed(Fire(SHAPE, hidden=5)).requires_grad_(False)
    c, threshold = abs(float(part.scale[1])), abs(float(part.multiplier[1]) * 4)
    first, _, last = part.functions[1]

    def bias(head: int, query: int, key: int) -> float:
        share = math.log(c * abs(query - key) + 1) / (math.log(c * max(query, threshold) + 1) + 1e-6)
        units = [max(0.0, float(w[0]) * share + float(b)) for w, b in zip(first.weight, first.bias, strict=True)]
        return sum(float(w) * unit for w, unit in zip(last.weight[head], units, strict=True))

    compare(part, causal, scores=with_bias(bias))


@both_ways
def test_cope_equals_loops(causal: bool) -> None:
    part = perturbed(CoPE(SHAPE, furthest=3)).requires_grad_(False)

    def scores(head: int, query: int, keys: Sequence[int], q: Tensor, k: Tensor) -> list[float]:
        found = []
        for key in keys:
            between = range(min(query, key), max(query, key) + 1)
            gates = [1 / (1 + math.exp(-score)) for score in dot_products(head, query, between, q, k)]
            position = min(3.0, sum(gates))
            low, high = math.floor(position), math.ceil(position)
            at_low, at_high = (float(q[query] @ part.vectors[1][:, place]) for place in (low, high))
            found.append(at_low * (1 - position + low) + at_high * (position - low))
        return [one + other for one, other in zip(found, dot_products(head, query, keys, q, k), strict=True)]

    compare(part, causal, scores=scores)


@torch.no_grad()
def test_cope_is_x_transformers() -> None:
    part, oracle = perturbed(CoPE(SHAPE, furthest=5)), TheirCoPE(8, 3, 6).double()
    oracle.pos_emb.copy_(part.vectors[0].t())
    q, k, _ = heads_of(attention_layer(), vectors(2, TIME, 24))
    scores = q @ k.transpose(-2, -1) / 8**0.5
    future = context().offset < 0
    hidden = scores.masked_fill(future, -torch.finfo(scores.dtype).max)
    ours = part.score(scores, q, k, context()) - scores
    assert (ours - oracle(q, hidden)).abs().masked_fill(future, 0.0).max() < 1e-10
    assert ours.abs().max() > 1e-2


@both_ways
def test_shaw_equals_loops(causal: bool) -> None:
    part = perturbed(Shaw(SHAPE, furthest=3))
    keys, values = part.keys[1].weight.detach(), part.values[1].weight.detach()

    def number(query: int, key: int) -> int:
        return max(-3, min(3, query - key)) + 3

    def scores(head: int, query: int, visible: Sequence[int], q: Tensor, k: Tensor) -> list[float]:
        return [float(q[query] @ (k[key] + keys[number(query, key)])) / math.sqrt(8) for key in visible]

    compare(part, causal, scores=scores, added=lambda query, key: values[number(query, key)])


def test_forgetting_equals_loops() -> None:
    """A weight is multiplied by all gates after its key, up to the query's."""
    part = perturbed(Forgetting(SHAPE))
    gates_of = part.gates[1](X[0]).sigmoid().t().tolist()

    def scores(head: int, query: int, keys: Sequence[int], q: Tensor, k: Tensor) -> list[float]:
        gates = gates_of[head]
        plain = dot_products(head, query, keys, q, k)
        kept = [math.prod(gates[key + 1 : query + 1]) for key in keys]
        return [score + math.log(share) for score, share in zip(plain, kept, strict=True)]

    compare(part, True, scores=scores)


def test_forgetting_is_refused_in_an_encoder() -> None:
    with pytest.raises(
        BadInput, match="'forgetting' works in a decoder only: forgetting depends on earlier tokens only"
    ):
        Classifier(SHAPE, [PartChoice(name="forgetting")], 10, 2)
    LanguageModel(SHAPE, [PartChoice(name="forgetting")], 10)


@cases(
    ("kind", "options"),
    [(CoPE, {"furthest": 0}), (Shaw, {"furthest": 0}), (Fire, {"hidden": 0}), (Fire, {"threshold": -1.0})],
)
def test_options_that_make_no_sense_are_refused(kind: type, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="must be"):
        kind(SHAPE, **options)
