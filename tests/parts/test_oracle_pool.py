"""A sentence's vector is what a loop over its real tokens says."""

from __future__ import annotations

import math

import torch
from subjects import EXACT, build, far, run, some_tokens
from torch import Tensor

from fairtrial.model.layers import capture
from fairtrial.model.part import Part, parts
from fairtrial.recipe import PartChoice, Shape
from sampling import cases

SHAPE = Shape(width=10, heads=2, layers=1, start="torch")
LENGTHS = [6, 4, 1]


def pooled_by_hand(name: str, part: Part, tokens: list[Tensor]) -> Tensor:
    """Real token vectors of one sentence -> its vector."""
    if name == "pool-mean":
        total = torch.zeros(SHAPE.width).double()
        for token in tokens:
            total = total + token
        return total / len(tokens)
    if name == "pool-max":
        return torch.tensor([max(float(token[place]) for token in tokens) for place in range(SHAPE.width)]).double()
    if name in ("pool-first", "pool-cls"):
        return tokens[0]
    assert name == "pool-attention"
    keys, query = part.get_submodule("keys"), part.get_submodule("query")
    powers = [math.exp(float(query(torch.tanh(keys(token))))) for token in tokens]
    weighed = (power / sum(powers) * token for power, token in zip(powers, tokens, strict=True))
    return sum(weighed, torch.zeros(SHAPE.width).double())


POOLS = [name for name in parts.list() if name.startswith("pool-")]


@cases("name", POOLS)
@torch.no_grad()
def test_a_pool_equals_a_loop(name: str) -> None:
    torch.manual_seed(0)
    part = parts.find(name)(SHAPE).double()
    x = torch.randn(3, 6, SHAPE.width).double() - 2  # below zero, so that padding's zeros would win a maximum
    real = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    found = part.pool(x * real[..., None], real)
    for row, length in enumerate(LENGTHS):
        expected = pooled_by_hand(name, part, list(x[row, :length]))
        torch.testing.assert_close(found[row], expected, atol=1e-6 if name == "pool-max" else 1e-12, rtol=0)


@cases("name", POOLS)
@torch.no_grad()
def test_no_padding_is_pooled(name: str) -> None:
    torch.manual_seed(0)
    part = parts.find(name)(SHAPE).double()
    x, real = torch.randn(3, 6, SHAPE.width).double(), torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    noisy = torch.where(real[..., None], x, torch.full_like(x, 50.0))
    assert torch.equal(part.pool(noisy, real), part.pool(x, real))
    assert torch.isfinite(part.pool(x, torch.zeros_like(real))).all()  # an empty sentence


def test_the_mean_said_aloud_is_the_mean_that_goes_without_saying() -> None:
    ids, lengths = some_tokens(3, 9), torch.tensor([9, 4, 1])
    aloud, silent = build("encoder", PartChoice(name="pool-mean")), build("encoder")
    assert far(run(aloud, ids, lengths), run(silent, ids, lengths)) < EXACT


@cases("name", [name for name in POOLS if name != "pool-mean"])
def test_other_pools_answer_otherwise(name: str) -> None:
    ids, lengths = some_tokens(3, 9), torch.tensor([9, 4, 2])
    assert far(run(build("encoder", PartChoice(name=name)), ids, lengths), run(build("encoder"), ids, lengths)) > 1e-3


@cases("name", POOLS)
def test_a_decoder_pools_nothing(name: str) -> None:
    ids = some_tokens(3, 9)
    assert torch.equal(run(build("decoder", PartChoice(name=name)), ids), run(build("decoder"), ids))


@torch.no_grad()
def test_the_cls_vector_stands_before_every_sentence_and_all_may_see_it() -> None:
    network, ids, lengths = build("encoder", PartChoice(name="pool-cls")), some_tokens(3, 9), torch.tensor([9, 4, 1])
    with capture(network) as seen:
        before = run(network, ids, lengths)
    for maps in seen.values():  # batch head query key
        assert maps.shape[-1] == 10
        assert (maps[..., 0] > 0).all()
    network.get_parameter("body.parts.pool-cls.cls.weight")[0, 0] += 1.0  # one place: a norm would not see all move
    assert (run(network, ids, lengths) - before).abs().amax(-1).min() > 1e-6
