"""Local attention gives the numbers of masked attention, without computing what is masked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import fairtrial.parts  # noqa: F401
from fairtrial.model.attention import Attention, Cut, ForwardContext, Windows, shortest_window, worth_it
from fairtrial.model.layers import capture
from fairtrial.model.network import Body, Classifier, LanguageModel
from fairtrial.model.part import build_parts
from fairtrial.recipe import PartChoice, Shape
from sampling import cases, sample

SHAPE = Shape(layers=2, width=16, heads=2, length=600, hidden=20, dropout=0.0)


def choice(name: str, **options: object) -> PartChoice:
    return PartChoice(name=name, options=options)


RECIPES = {
    "window 8": [choice("window", size=8)],
    "window 1": [choice("window", size=1)],
    "rope and window 33": [choice("rope"), choice("window", size=33)],
    "alibi and window 20": [choice("alibi"), choice("window", size=20)],
    "window 64 and t5": [choice("window", size=64), choice("t5")],
    "learned and window 9": [choice("learned"), choice("window", size=9)],
    "window 120": [choice("window", size=120)],
}


def gradients(network: nn.Module, ids: torch.Tensor, lengths: torch.Tensor | None) -> list[torch.Tensor]:
    network.zero_grad()
    network(ids, lengths).pow(2).sum().backward()
    return [each.grad.clone() for each in network.parameters() if each.grad is not None]


@sample(9, name=list(RECIPES), time=(256, 300, 513))
def test_local_attention_equals_masked_attention(name: str, time: int) -> None:
    ids = torch.randint(0, 50, (3, time), generator=torch.Generator().manual_seed(time))
    lengths = torch.tensor([5, time, time // 2 + 1]) if time > 256 else None
    for network in (Classifier(SHAPE, RECIPES[name], 50, 3), LanguageModel(SHAPE, RECIPES[name], 50)):
        network.double()
        local = network(ids, lengths)
        with capture(network):  # a captured network computes the whole map
            masked = network(ids, lengths)
            expected = gradients(network, ids, lengths)
        assert torch.allclose(local, masked, rtol=0, atol=1e-10)
        for ours, theirs in zip(gradients(network, ids, lengths), expected, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_local_attention_is_really_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    attend_local = Attention.attend_local
    monkeypatch.setattr(Attention, "attend_local", lambda *given: taken.append(1) or attend_local(*given))
    ids = torch.zeros(1, 256, dtype=torch.long)
    Body(SHAPE, [choice("window", size=8)], 50, causal=True, seed=0)(ids)
    assert len(taken) == SHAPE.layers
    Body(SHAPE, [choice("window", size=8)], 50, causal=True, seed=0)(ids[:, :32])  # too short to be worth it
    Body(SHAPE, [choice("none")], 50, causal=True, seed=0)(ids)
    assert len(taken) == SHAPE.layers


def test_parts_that_know_absolute_positions_or_scores_are_never_cut_into_blocks() -> None:
    def window(*choices: PartChoice) -> tuple[int, int] | None:
        return shortest_window(list(build_parts(choices, SHAPE, 0).values()), True)

    assert window(choice("window", size=8)) == (7, 0)
    assert window(choice("window", size=8), choice("alibi")) == (7, 0)
    assert window(choice("window", size=8), choice("block")) is None
    assert window(choice("window", size=8, global_tokens=1)) is None
    assert window(choice("window", size=8), choice("disentangled")) is None
    assert window(choice("rope")) is None
    assert worth_it((7, 0), 256)
    assert not worth_it((7, 0), 255)


@cases("window", [(0, 0), (7, 0), (63, 0), (32, 32), (200, 9)])
@cases("time", [1, 31, 256, 300])
def test_windows_hold_what_a_block_meets_and_give_its_gradient_back(window: tuple[int, int], time: int) -> None:
    cut = Cut(window, time)
    x = torch.randn(2, time, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(time))
    x.requires_grad_()
    found = Windows.apply(x, cut).unflatten(0, (2, cut.blocks))
    by_hand = torch.zeros_like(found)
    for block in range(cut.blocks):
        for place in range(cut.span):
            at = block * cut.size - cut.back + place
            if 0 <= at < time:
                by_hand[:, block, place] = x[:, at]
    assert torch.equal(found, by_hand)
    assert (cut.back, cut.ahead) >= window
    weights = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ours, theirs = (torch.autograd.grad((each * weights).sum(), x)[0] for each in (found, by_hand))
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [True, False])
def test_a_window_never_makes_a_mask_of_the_whole_square(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of padded texts either: such a mask alone would cost the square of the length."""

    def refuse(self: ForwardContext) -> torch.Tensor | None:
        raise AssertionError("the whole square was made")

    monkeypatch.setattr(ForwardContext, "visible", property(refuse))
    shape = Shape(layers=2, heads=2, width=8, hidden=8, length=1100, dropout=0.0)
    body = Body(shape, [choice("window", size=16)], 10, causal=causal, seed=0)
    ids = torch.arange(2200).view(2, 1100) % 10
    x, _ = body(ids, torch.tensor([1100, 900]))
    x.sum().backward()
    with pytest.raises(AssertionError, match="whole square"):
        Body(shape, [choice("none")], 10, causal=causal, seed=0)(ids, torch.tensor([1100, 900]))
