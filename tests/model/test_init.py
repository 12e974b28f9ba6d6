"""First weights: a pure function of the seed and each parameter's name; the world's rng stay untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from networks import ENTRIES, SMALL, choices, decoder, encoder, some_tokens
from torch import Tensor, nn

from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.model.network import Classifier, LanguageModel, start_at_frequencies
from fairtrial.model.part import build_parts, parts
from fairtrial.recipe import Shape, Training
from fairtrial.training.optimizer import make_optimizer
from sampling import cases

DRAWN = (
    "tokens.weight",
    "qkv.weight",
    "qkv.bias",
    "up.weight",
    "down.bias",
    "hidden.weight",
    "out.weight",
    "table.weight",
)


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def common(one: nn.Module, two: nn.Module) -> set[str]:
    """Names of the parameters that both have, all of which are bit-equal."""
    first, second = weights(one), weights(two)
    names = first.keys() & second.keys()
    for name in names:
        assert torch.equal(first[name], second[name]), name
    return names


def test_parts_lists_at_one_seed_share_all_common_weights() -> None:
    for make in (encoder, decoder):
        learned, none = make("learned", seed=5), make("none", seed=5)
        assert weights(learned).keys() - common(learned, none) == {"body.parts.learned.table.weight"}


@cases(
    ("change", "only_here"),
    [({"layers": 3}, "body.blocks.2."), ({"heads": 4}, ""), ({"activation": "gelu"}, ""), ({"dropout": 0.5}, "")],
)
def test_shapes_at_one_seed_share_all_common_weights(change: dict[str, Any], only_here: str) -> None:
    plain, changed = encoder("learned", seed=5), encoder("learned", seed=5, **change)
    assert common(plain, changed) == set(weights(plain))
    new = weights(changed).keys() - weights(plain).keys()
    assert bool(new) == bool(only_here)
    assert all(name.startswith(only_here) for name in new)


def test_an_encoder_and_a_decoder_share_their_body() -> None:
    assert common(encoder("learned").body, decoder("learned").body) == set(weights(encoder("learned").body))


@pytest.mark.parametrize("start", ["torch", "small"])
def test_different_seeds_give_different_weights_and_one_seed_the_same(start: str) -> None:
    one, same, two = (encoder("learned", seed=seed, start=start) for seed in (1, 1, 2))
    assert common(one, same) == set(weights(one))
    for name, weight in weights(one).items():
        if name.endswith(DRAWN) and not (start == "small" and name.endswith("bias")):
            assert not torch.equal(weight, weights(two)[name]), name


def test_no_two_weights_of_one_network_share_their_dice() -> None:
    network = decoder("learned")
    first, second = (network.body.blocks[layer].feed_forward.up.weight for layer in range(2))
    assert not torch.equal(first, second)
    assert not torch.equal(network.out.weight, network.body.tokens.weight)


def test_weights_start_with_the_spread_they_promise() -> None:
    wide = {"width": 64, "hidden": 256}
    usual, small = encoder("learned", start="torch", **wide), encoder("learned", start="small", **wide)
    assert float(weights(usual)["body.tokens.weight"].std()) == pytest.approx(1.0, rel=0.05)
    up = weights(usual)["body.blocks.0.feed_forward.up.weight"]
    assert float(up.abs().max()) == pytest.approx(1 / 8, rel=0.01)  # uniform up to 1 / sqrt(width)
    assert float(up.std()) == pytest.approx(1 / 8 / 3**0.5, rel=0.02)
    for name, weight in weights(small).items():
        if name.endswith("bias"):
            assert (weight == 0).all(), name
        elif "norm" not in name:
            assert float(weight.std()) == pytest.approx(0.02, rel=0.15), name


def test_tied_really_shares_the_tensor() -> None:
    tied, untied = decoder("learned", tied=True), decoder("learned", tied=False)
    assert tied.out.weight is tied.body.tokens.weight
    assert untied.out.weight is not untied.body.tokens.weight
    assert "out.weight" not in weights(tied)
    assert common(tied, untied) == set(weights(tied))
    before = tied(some_tokens(1, 3))
    with torch.no_grad():
        tied.body.tokens.weight[39] += torch.arange(16)  # an entry that is not read, only predicted
    assert 39 not in some_tokens(1, 3)
    changed = (tied(some_tokens(1, 3)) - before).abs().amax((0, 1)) > 1e-9
    assert changed.nonzero().flatten().tolist() == [39]


@cases("kind", [Classifier, LanguageModel])
@cases("names", [(), ("learned",), ("coin",)])
@pytest.mark.usefixtures("plugins")
def test_building_leaves_the_global_generator_untouched(kind: type, names: tuple[str, ...]) -> None:
    before = torch.get_rng_state()
    kind(SMALL, choices(*names), ENTRIES, *([3] if kind is Classifier else []), seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)  # a draw would have shown


def test_training_leaves_the_global_generator_untouched() -> None:
    ids = some_tokens(3, 6)
    for network, answers in ((encoder("learned", dropout=0.3), torch.tensor([0, 1, 2])), (decoder(dropout=0.3), ids)):
        optimizer = make_optimizer(network, Training())
        before, first = torch.get_rng_state(), network.body.tokens.weight.clone()
        seed_dropout(dropouts_of(network), 0, 0)
        network.loss(ids, None, answers, 0.1, 1.0)[0].backward()
        optimizer.step()
        assert torch.equal(torch.get_rng_state(), before)
        assert not torch.equal(network.body.tokens.weight, first)  # it did train


@pytest.mark.usefixtures("plugins")
def test_what_a_part_draws_in_its_constructor_depends_on_seed_and_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "penny", parts.find("coin"))

    def thrown(seed: int, *names: str) -> Tensor:
        return build_parts(choices(*names), SMALL, seed)[names[-1]].thrown

    torch.manual_seed(0)
    one = thrown(7, "coin")
    torch.manual_seed(1)
    torch.rand(5)
    before = torch.get_rng_state()
    assert torch.equal(thrown(7, "coin"), one)
    assert torch.equal(thrown(7, "learned", "coin"), one)
    assert not torch.equal(thrown(8, "coin"), one)
    assert not torch.equal(thrown(7, "coin", "penny"), one)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(decoder("coin", seed=7).body.parts["coin"].thrown, one.double())  # and `start` lets it be


@torch.no_grad()
@pytest.mark.parametrize("width", [32, 128, 512])
def test_scaled_queries_have_size_one_at_every_width(width: int) -> None:
    shape = Shape(layers=2, heads=2, width=width, hidden=width, length=8, tied=True, start="scaled")
    network = LanguageModel(shape, choices("rope"), 50)
    x = torch.randn(200, width)
    q = network.body.blocks[0].attention.qkv(x)[:, :width]
    assert float(q.std()) == pytest.approx(1.0, rel=0.15)
    small = LanguageModel(replace(shape, start="small"), choices("rope"), 50)
    assert small.body.blocks[0].attention.qkv(x)[:, :width].std() < 0.6


def test_the_first_answers_are_the_frequencies_of_training() -> None:
    shape = Shape(layers=2, heads=2, width=64, hidden=64, length=8, tied=True, start="scaled", output_bias=True)
    network, counts = LanguageModel(shape, choices("rope"), 5), torch.tensor([0, 10, 20, 30, 40])
    start_at_frequencies(network, counts)
    found = network(torch.arange(4)[None]).softmax(-1)[0]
    assert torch.allclose(found, (counts + 0.5) / (counts + 0.5).sum(), rtol=0.6)
    assert found[:, 4].min() > found[:, 1].max()
