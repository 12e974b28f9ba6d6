"""What is cached follows from its key alone: no number tells whether it was made or cached."""

from __future__ import annotations

import copy

import pytest
import torch
from networks import decoder, encoder, some_tokens
from torch import Tensor, nn

from fairtrial.model import part
from fairtrial.model.part import AttentionContext, TensorCache
from fairtrial.parts.alibi import Alibi
from fairtrial.parts.rope import Rope
from fairtrial.recipe import Shape
from sampling import cases

SHAPE = Shape(width=16, heads=2)


class Maker:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Tensor:
        self.calls += 1
        return torch.zeros(3)


def test_the_same_key_is_made_once_and_another_anew() -> None:
    cache, make = TensorCache[Tensor](), Maker()
    first = cache.get(make, torch.arange(3), torch.float32)
    assert cache.get(make, torch.arange(3), torch.float32) is first
    assert make.calls == 1
    keys = [
        (torch.arange(4), torch.float32),
        (torch.arange(1, 4), torch.float32),
        (torch.arange(3), torch.float64),
        (torch.arange(3).int(), torch.float64),
        (torch.arange(3), torch.float64, 1),
        (torch.arange(3), torch.float64, True),
    ]
    for number, key in enumerate(keys):
        cache.get(make, *key)
        assert make.calls == number + 2, key


def test_what_was_changed_in_place_is_made_anew() -> None:
    cache, make, key = TensorCache[Tensor](), Maker(), torch.arange(3)
    cache.get(make, key).add_(1)
    assert torch.equal(cache.get(make, key), torch.zeros(3))
    assert make.calls == 2
    key.add_(5)  # the cached key itself is another one now
    cache.get(make, key)
    cache.get(make, torch.arange(3))
    assert make.calls == 4


def test_without_torchs_version_counter_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "VERSION", "no such attribute")
    cache, make, key = TensorCache[Tensor](), Maker(), torch.arange(3)
    cache.get(make, key).add_(1)
    assert torch.equal(cache.get(make, key), torch.zeros(3))
    cache.get(make, key)
    assert make.calls == 3


def test_what_carries_a_gradient_is_never_cached() -> None:
    cache, weight = TensorCache[Tensor](), torch.ones(2, requires_grad=True)
    assert cache.get(lambda: weight * 2, 1) is not cache.get(lambda: weight * 2, 1)
    with torch.no_grad():
        assert cache.get(lambda: weight * 2, 1) is cache.get(lambda: weight * 2, 1)


@cases("name", ["rope", "alibi"])
@cases("make", [decoder, encoder])
def test_what_came_before_changes_nothing(name: str, make: type[nn.Module]) -> None:
    """Other lengths, rows and numbers in between, and inference mode: training goes on as in a new network."""
    ids, lengths = some_tokens(3, 9), torch.tensor([9, 4, 1])

    def train(network: nn.Module) -> list[Tensor]:
        network.zero_grad()
        loss = network(ids, lengths).pow(2).sum()
        loss.backward()
        return [loss.detach(), *(each.grad.clone() for each in network.parameters() if each.grad is not None)]

    fresh, worn = make(name), make(name)
    with torch.inference_mode():
        worn(ids[:, :5])
        worn(ids, lengths)
    worn(ids[:1, :7])
    copy.deepcopy(worn).float()(ids, lengths)
    for one, other in zip(train(fresh), train(worn), strict=True):
        assert torch.equal(one, other)
    assert worn.state_dict().keys() == fresh.state_dict().keys()
    assert not any("cache" in key for key in worn.state_dict())


def test_a_part_in_other_numbers_answers_in_them() -> None:
    place = torch.arange(5)
    context, q = AttentionContext(0, True, place, place), torch.randn(1, 2, 5, 8, dtype=torch.float64)
    rope, alibi = Rope(SHAPE), Alibi(SHAPE)
    exact, rough = rope.rotate(q, q, context)[0], rope.rotate(q.float(), q.float(), context)[0]
    assert (exact.dtype, rough.dtype) == (torch.float64, torch.float32)
    assert torch.equal(rope.rotate(q, q, context)[0], exact)
    assert alibi.bias(context).dtype == torch.float32
    assert alibi.double().bias(context).dtype == torch.float64


def test_layers_share_one_mask() -> None:
    network, made = encoder("alibi"), []
    cache = network.body.listed_parts()[0].cache
    get = cache.get
    cache.get = lambda make, *key: get(lambda: made.append(1) or make(), *key)
    for _ in range(2):
        network(some_tokens(3, 9), torch.tensor([9, 4, 1]))
    assert made == [1]  # one bias for two layers and two passes
