"""Dropout: what is dropped is a pure function of seed, place and step."""

from __future__ import annotations

import pytest
import torch
from networks import decoder, encoder, some_tokens
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401
from fairtrial.model.attention import ForwardContext
from fairtrial.model.layers import Dropout, dropouts_of, seed_dropout
from fairtrial.model.part import AttentionContext


def dropped(network: nn.Module, seed: int, step: int) -> dict[str, Tensor]:
    """Which numbers each dropout of the network drops, by its name."""
    seed_dropout(dropouts_of(network), seed, step)
    ones = torch.ones(200)
    return {name: module(ones) == 0 for name, module in dropouts_of(network).items()}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> list[bool]:
    return [torch.equal(one[name], two[name]) for name in one.keys() & two.keys()]


def test_the_same_seed_name_and_step_drop_the_same() -> None:
    network = encoder("learned", dropout=0.3)
    one = dropped(network, 1, 10)
    assert len(one) == 5  # behind the embedding, and two in each block
    assert all(same(one, dropped(network, 1, 10)))
    assert all(same(one, dropped(decoder("none", dropout=0.3, seed=9), 1, 10)))  # whatever the network around
    assert all(same(one, dropped(encoder("learned", dropout=0.3, layers=3), 1, 10)))


def test_another_step_seed_or_name_drops_others() -> None:
    network = encoder("learned", dropout=0.3)
    one = dropped(network, 1, 10)
    assert not any(same(one, dropped(network, 1, 11)))
    assert not any(same(one, dropped(network, 2, 10)))
    masks = list(one.values())
    assert not any(torch.equal(masks[a], masks[b]) for a in range(5) for b in range(a))


def test_two_batches_of_one_step_are_dropped_differently() -> None:
    network = Dropout(0.5)
    seed_dropout(dropouts_of(network), 0, 0)
    assert not torch.equal(network(torch.ones(100)), network(torch.ones(100)))


def test_a_whole_network_repeats_a_step_exactly() -> None:
    network, ids = decoder("learned", dropout=0.3, attention_dropout=0.2), some_tokens(3, 8)
    answers = []
    for step in (4, 4, 5):
        seed_dropout(dropouts_of(network), 1, step)
        answers.append(network(ids))
    assert torch.equal(answers[0], answers[1])
    assert (answers[0] - answers[2]).abs().max() > 1e-3


def test_evaluation_draws_no_dice_and_drops_nothing() -> None:
    network, ids = decoder("learned", dropout=0.3, attention_dropout=0.2), some_tokens(3, 8)
    dropouts = list(dropouts_of(network).values())
    seed_dropout(dropouts_of(network), 1, 1)
    before = [module.generator.get_state() for module in dropouts]
    network.eval()
    assert torch.equal(network(ids), decoder("learned", dropout=0.0)(ids))
    after = [module.generator.get_state() for module in dropouts]
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    network.train()
    network(ids)
    trained = [module.generator.get_state() for module in dropouts]
    assert not any(torch.equal(one, two) for one, two in zip(before, trained, strict=True))


def test_the_share_is_dropped_and_the_rest_scaled_so_that_the_mean_stays() -> None:
    module, x = Dropout(0.25), torch.ones(100_000)
    y = module(x)
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs(float((y == 0).float().mean()) - 0.25) < 0.01
    assert abs(float(y.mean()) - 1) < 0.02


def test_gradients_pass_only_where_numbers_passed() -> None:
    module, x = Dropout(0.5), torch.ones(64, requires_grad=True)
    y = module(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert 0 < int((x.grad == 0).sum()) < 64


def test_dropping_all_gives_zeros_and_dropping_none_the_same() -> None:
    x = torch.randn(50, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Dropout(1.0)(x), torch.zeros(50))
    assert Dropout(0.0)(x) is x


def test_attention_weights_are_dropped_behind_the_softmax() -> None:
    network, ids = decoder("rope", attention_dropout=0.4, layers=1), some_tokens(3, 8)
    layer = network.body.blocks[0].attention
    q, k, v = (torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(place)) for place in range(3))
    _, layout = network.body(ids)
    forward = ForwardContext(layout, True, 0, q.dtype)
    context = AttentionContext(0, True, forward.queries, forward.keys)
    seed_dropout(dropouts_of(network), 3, 5)
    seen = layer.attend_fast(q, k, v, forward, context, [])
    future = torch.ones(8, 8).triu(1).bool()
    weights = (q @ k.transpose(-2, -1) / 8**0.5).masked_fill(future, -torch.inf).softmax(-1)
    seed_dropout(dropouts_of(network), 3, 5)
    kept = layer.dropout(torch.ones_like(weights))
    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert torch.allclose(seen, (weights * kept) @ v, atol=1e-6)
