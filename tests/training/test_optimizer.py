"""Optimizers and schedules by name: torch's own steps, decay on matrices only, learning rates by hand."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer

import fairtrial as ft
from fairtrial.errors import BadInput
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import PartChoice, Shape, Training
from fairtrial.training.checkpoint import check_resumes
from fairtrial.training.optimizer import gradient_norm, learning_rate, light, make_optimizer, orthogonalized
from sampling import cases

RATE = 0.125  # a power of two, so that parts of it are exact
THEIRS = {"adam": Adam, "adamw": AdamW, "adagrad": Adagrad, "sgd": SGD}


def toy() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 4), nn.LayerNorm(4))


def send_back(network: nn.Module) -> None:
    network.zero_grad()
    network(torch.arange(5)).pow(3).sum().backward()


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in network.named_parameters()}


def rates(training: Training, steps: int, *at: int) -> list[float]:
    return [learning_rate(training, step, steps) for step in at]


def test_a_constant_rate_stays() -> None:
    assert rates(Training(learning_rate=RATE), 100, 0, 50, 99) == [RATE] * 3


def test_warm_up_rises_in_equal_steps_and_never_begins_at_zero() -> None:
    training = Training(learning_rate=0.8, warmup_steps=4)
    assert rates(training, 100, 0, 1, 2, 3, 4, 99) == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8])


def test_a_linear_rate_falls_to_zero() -> None:
    training = Training(learning_rate=1.0, schedule="linear")
    assert rates(training, 10, 0, 1, 5, 9, 10) == pytest.approx([1.0, 0.9, 0.5, 0.1, 0.0])
    warm = Training(learning_rate=1.0, schedule="linear", warmup_steps=2)
    assert rates(warm, 10, 0, 1, 2, 6, 9, 10) == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.125, 0.0])


def test_a_rate_of_warm_up_stable_and_decay_stays_and_then_falls() -> None:
    training = Training(learning_rate=1.0, schedule="wsd", warmup_steps=10)
    assert rates(training, 110, 4, 10, 79, 95, 110) == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.0])


def test_muon_moves_along_the_nearest_orthogonal_matrix() -> None:
    """Its singular values are about 1, as are those of the polar factor, and its directions are the same."""
    torch.manual_seed(0)
    matrices = torch.randn(3, 24, 40)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    ours = orthogonalized(matrices)
    assert torch.linalg.svdvals(ours).sub(1).abs().max() < 0.35
    assert ((ours * (u @ v)).sum((-2, -1)) / ours.norm(dim=(-2, -1)) / (u @ v).norm(dim=(-2, -1))).min() > 0.97
    assert torch.allclose(orthogonalized(matrices.mT), ours.mT, atol=1e-5)


def muon_network() -> LanguageModel:
    shape = Shape(layers=2, width=16, hidden=16, length=8, heads=2, tied=True, start="scaled")
    return LanguageModel(shape, (PartChoice(name="rope"),), 30)


def test_muon_has_the_matrices_of_the_blocks_and_adamw_the_rest() -> None:
    network, same = muon_network(), muon_network()
    how = Training(optimizer="muon", learning_rate=0.01, weight_decay=0.1, embedding_decay=3.0)
    ours, theirs = make_optimizer(network, how), make_optimizer(same, replace(how, optimizer="adamw"))
    for group in (*ours.param_groups, *theirs.param_groups):
        group["lr"] = how.learning_rate * group["scale"]
    before = weights(network)
    for each, optimizer in ((network, ours), (same, theirs)):
        ids = torch.arange(16).view(2, 8)
        each(ids).log_softmax(-1)[:, :, 3].sum().backward()
        optimizer.step()
    after, usual = weights(network), weights(same)
    inner = {
        f"body.{name}"
        for name, _ in network.body.named_parameters()
        if "blocks" in name and before[f"body.{name}"].ndim == 2
    }
    for name in before:
        assert torch.equal(after[name], usual[name]) == (name not in inner), name
    moved = after["body.blocks.0.attention.out.weight"] - before["body.blocks.0.attention.out.weight"] * (
        1 - 0.01 * 0.1
    )
    assert moved.square().mean().sqrt() == pytest.approx(0.01 * 0.2, rel=0.2)
    assert sorted({group["weight_decay"] for group in ours.param_groups}) == pytest.approx([0.0, 0.1, 0.3])


def test_a_network_of_ones_own_is_trained_by_adamw() -> None:
    assert not any(group["muon"] for group in make_optimizer(toy(), Training(optimizer="muon")).param_groups)


class Keeping(SGD):
    """Half of the usual step, times a number that it keeps somewhere and counts up."""

    place = "state"

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for weight in group["params"]:
                keeper = {"state": self.state[weight], "group": group, "self": vars(self)}[self.place]
                keeper["seen"] = keeper.get("seen", 0) + 1
                weight.data.add_(weight.grad, alpha=-group["lr"] / keeper["seen"])


@pytest.mark.parametrize("place", ["state", "group", "self"])
@pytest.mark.usefixtures("plugins_leave")
def test_an_optimizer_whose_state_a_checkpoint_cannot_hold_is_refused(place: str) -> None:
    def make(groups: list[dict[str, Any]], learning_rate: float) -> Optimizer:
        own = Keeping(groups, lr=learning_rate / 2)
        own.place = place
        return own

    training = Training(optimizer="keeping", learning_rate=RATE)
    ft.optimizer("keeping")(make)
    network = toy()
    before = weights(network)
    if place == "state":
        check_resumes(network, training)
    else:
        with pytest.raises(BadInput, match="'keeping' cannot be resumed from a checkpoint: it does not continue"):
            check_resumes(network, training)
    assert all(torch.equal(before[name], each) for name, each in weights(network).items()), "only copies are moved"
    optimizer = make_optimizer(network, training)
    assert [group["scale"] for group in optimizer.param_groups] == [0.5, 0.5]
    assert {(group["weight_decay"], len(group["params"])) for group in optimizer.param_groups} == {(0.01, 2), (0.0, 3)}


@pytest.mark.usefixtures("plugins_leave")
def test_a_function_that_makes_no_optimizer_is_refused() -> None:
    ft.optimizer("nothing")(lambda groups, learning_rate: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(BadInput, match="optimizer 'nothing' gives NoneType, not a torch optimizer"):
        make_optimizer(toy(), Training(optimizer="nothing"))
    ft.optimizer("broken")(lambda groups, learning_rate: 1 / 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(BadInput, match="optimizer 'broken' raises ZeroDivisionError"):
        make_optimizer(toy(), Training(optimizer="broken"))
    for name in ("adamw", "rope"):
        with pytest.raises(BadInput, match=f"{name!r} is the name of another"):
            ft.optimizer(name)(lambda groups, learning_rate: SGD(groups, lr=learning_rate))


def test_a_cosine_rate_falls_to_zero() -> None:
    training = Training(learning_rate=1.0, schedule="cosine")
    quarter = 0.5 * (1 + math.sqrt(0.5))
    assert rates(training, 8, 0, 2, 4, 6, 8) == pytest.approx([1.0, quarter, 0.5, 1 - quarter, 0.0], abs=1e-12)
    warm = Training(learning_rate=1.0, schedule="cosine", warmup_steps=4)
    assert rates(warm, 12, 0, 3, 4, 8, 12) == pytest.approx([0.25, 1.0, 1.0, 0.5, 0.0], abs=1e-12)


@cases("schedule", ["constant", "linear", "cosine"])
def test_no_step_of_training_has_a_rate_of_zero_or_above_the_peak(schedule: str) -> None:
    for warmup_steps in (0, 3, 20, 50):
        training = Training(learning_rate=RATE, schedule=schedule, warmup_steps=warmup_steps)
        assert all(0 < rate <= RATE for rate in rates(training, 20, *range(20)))


@cases("name", THEIRS)
def test_the_first_steps_equal_torchs_own(name: str) -> None:
    ours, theirs = toy(), toy()
    optimizer = make_optimizer(ours, Training(optimizer=name, learning_rate=RATE, weight_decay=0.0))
    own = THEIRS[name](theirs.parameters(), lr=RATE, weight_decay=0.0, foreach=False)
    for _ in range(3):
        before = weights(ours)
        for network, each in ((ours, optimizer), (theirs, own)):
            send_back(network)
            each.step()
        for parameter, weight in weights(theirs).items():
            torch.testing.assert_close(weights(ours)[parameter], weight, atol=1e-6, rtol=1e-5)
            assert not torch.equal(weight, before[parameter])


def test_the_first_step_of_each_optimizer_by_hand() -> None:
    for name in THEIRS:
        network = toy()
        optimizer = make_optimizer(network, Training(optimizer=name, learning_rate=RATE, weight_decay=0.0))
        send_back(network)
        before = weights(network)
        gradients = {each: parameter.grad.clone() for each, parameter in network.named_parameters()}
        optimizer.step()
        for each, weight in weights(network).items():
            gradient = gradients[each]
            moved = gradient if name == "sgd" else gradient / (gradient.abs() + (1e-10 if name == "adagrad" else 1e-8))
            torch.testing.assert_close(weight, before[each] - RATE * moved, atol=1e-5, rtol=1e-5)


@cases("name", THEIRS)
def test_weight_decay_pulls_matrices_only(name: str) -> None:
    network = toy()
    optimizer = make_optimizer(network, Training(optimizer=name, learning_rate=RATE, weight_decay=0.5))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)
            parameter.grad = torch.zeros_like(parameter)
    before = weights(network)
    optimizer.step()
    after = weights(network)
    changed = {each for each in before if not torch.equal(before[each], after[each])}
    assert changed == {"0.weight", "1.weight"}
    if name in ("adamw", "sgd"):
        torch.testing.assert_close(after["1.weight"], before["1.weight"] * (1 - RATE * 0.5))


def test_every_parameter_is_trained_once() -> None:
    network = toy()
    optimizer = make_optimizer(network, Training())
    trained = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(trained) == sorted(id(parameter) for parameter in network.parameters())


def test_the_gradient_norm_is_that_of_all_gradients_together() -> None:
    network = nn.Linear(1, 1)
    network.weight.grad, network.bias.grad = torch.tensor([[3.0]]), torch.tensor([-4.0])
    assert gradient_norm(network) == pytest.approx(5.0)
    network.bias.grad = None
    assert gradient_norm(network) == pytest.approx(3.0)


@pytest.mark.parametrize("kind", [Adam, AdamW, Adagrad, SGD])
def test_a_light_optimizer_steps_and_saves_as_torchs_own(kind: type[Optimizer]) -> None:
    torch.manual_seed(0)
    one = nn.Linear(5, 3)
    other = copy.deepcopy(one)
    pairs = [(net, make(net.parameters(), lr=0.1)) for net, make in ((one, kind), (other, light(kind)))]
    hooked: list[object] = []
    pairs[1][1].register_step_post_hook(lambda *told: hooked.append(told))
    for _ in range(3):
        for net, optimizer in pairs:
            optimizer.zero_grad()
            net(torch.ones(2, 5)).square().sum().backward()
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    theirs, ours = (optimizer.state_dict() for _, optimizer in pairs)
    assert str(theirs) == str(ours)
    pairs[1][1].load_state_dict(theirs)
    assert isinstance(pairs[1][1], kind)
    assert len(hooked) == 3


def test_a_first_step_does_not_load_torchs_compiler() -> None:
    code = """
import sys, torch
from fairtrial.training.optimizer import make_optimizer
from fairtrial.recipe import Training
net = torch.nn.Linear(2, 2)
for name in ("adam", "adamw", "adagrad", "sgd"):
    optimizer = make_optimizer(net, Training(optimizer=name))
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
