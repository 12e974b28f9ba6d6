"""Layers computed again for their gradients give the numbers of layers that were kept, with less memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401
from fairtrial.model import network as stripes
from fairtrial.model.attention import View
from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.model.layout import Layout
from fairtrial.model.network import Body, Classifier, LanguageModel
from fairtrial.model.part import Kept, Part, Site, build_parts
from fairtrial.model.part import parts as registry
from fairtrial.recipe import PartChoice, Shape

SHAPE = Shape(layers=2, width=16, heads=2, length=700, hidden=20, dropout=0.0)


def choice(name: str, **options: object) -> PartChoice:
    return PartChoice(name=name, options=options)


STRIPED = {
    "window 8": [choice("window", size=8)],
    "rope and window 33": [choice("rope"), choice("window", size=33)],
    "alibi and window 20": [choice("alibi"), choice("window", size=20)],
    "t5 and window 16": [choice("t5"), choice("window", size=16)],
    "learned and window 9": [choice("learned"), choice("window", size=9)],
}
WHOLE = {
    "none": [choice("none")],
    "disentangled": [choice("disentangled")],
    "block": [choice("block", size=16)],
    "window and global tokens": [choice("window", size=8, global_tokens=2)],
    "shuffle and window": [choice("shuffle"), choice("window", size=8)],
    "shuffle every step": [choice("shuffle", every_step=True)],
    "reweight": [choice("reweight"), choice("window", size=8)],
}


@pytest.fixture(autouse=True)
def short_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stripes, "STRIPE", 64)


def networks(parts: list[PartChoice], shape: Shape = SHAPE) -> list[Classifier | LanguageModel]:
    return [Classifier(shape, parts, 50, 3).double(), LanguageModel(shape, parts, 50).double()]


def passed(network: Classifier | LanguageModel, ids: Tensor, lengths: Tensor | None, save: bool) -> list[Tensor]:
    """What comes out, and the gradient of every weight."""
    network.body.save_memory = save
    network.zero_grad()
    seed_dropout(dropouts_of(network), 1, 1)
    made = network(ids, lengths)
    made.pow(2).sum().backward()
    return [made.detach(), *(torch.zeros(1) if each.grad is None else each.grad for each in network.parameters())]


def some_ids(batch: int, time: int) -> Tensor:
    return torch.randint(0, 50, (batch, time), generator=torch.Generator().manual_seed(time))


@pytest.mark.parametrize("name", [*STRIPED, *WHOLE])
@pytest.mark.parametrize("lengths", [None, [5, 700, 351]])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_the_same_numbers_as_kept_layers(name: str, lengths: list[int] | None, place: str) -> None:
    shape = replace(SHAPE, norm_place=place)
    for network in networks((STRIPED | WHOLE)[name], shape):
        real = None if lengths is None else torch.tensor(lengths)
        network.eval()  # no draws of parts' own: another test's business
        kept = passed(network, some_ids(3, 700), real, save=False)
        for ours, theirs in zip(passed(network, some_ids(3, 700), real, save=True), kept, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", STRIPED)
@pytest.mark.parametrize("time", [300, 700])
def test_one_row_whose_end_is_in_some_stripe(name: str, time: int) -> None:
    for network in networks(STRIPED[name]):
        for lengths in (None, torch.tensor([time - 70]), torch.tensor([100])):
            kept = passed(network, some_ids(1, time), lengths, save=False)
            for ours, theirs in zip(passed(network, some_ids(1, time), lengths, save=True), kept, strict=True):
                assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", STRIPED)
def test_near_parts_are_cut_and_far_ones_are_not(name: str) -> None:
    found = pieces(STRIPED[name])
    assert len(found) > 2
    assert (found[0].begin, found[-1].end) == (0, 700)
    for one, other in pairwise(found):
        assert one.end == other.begin
    for choices in WHOLE.values():
        assert pieces(choices) == []


def pieces(choices: list[PartChoice]) -> list[stripes.Stripe]:
    parts = list(build_parts(choices, SHAPE, 0).values())
    return stripes.cut(View.of(Layout.full(1, 700), True, 0, torch.float64), parts)  # type: ignore[arg-type]


DRAWING = {
    "window": [choice("window", size=8)],
    "shuffle every step": [choice("shuffle", every_step=True)],
    "none": [choice("none")],
}


def drawing_networks(name: str) -> list[Classifier | LanguageModel]:
    """In training, saving memory, with dropout."""
    shape = replace(SHAPE, dropout=0.3, attention_dropout=0.2, activation="gelu", start="torch")
    found = networks(DRAWING[name], shape)
    for network in found:
        network.train()
        network.body.save_memory = True
    return found


@pytest.mark.parametrize("name", DRAWING)
def test_what_was_drawn_is_drawn_again(name: str) -> None:
    """Against the slope of the loss itself: with other draws it would be the gradient of another network."""
    for network in drawing_networks(name):
        buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}

        def loss(network: Classifier | LanguageModel = network, buffers: dict[str, Tensor] = buffers) -> Tensor:
            seed_dropout(dropouts_of(network), 1, 1)
            for name, buffer in network.named_buffers():
                buffer.copy_(buffers[name])
            return network(some_ids(2, 200), torch.tensor([200, 90])).pow(2).sum()

        network.zero_grad()
        loss().backward()
        for weight in (network.body.tokens.weight, network.body.blocks[1].attention.qkv.weight):  # type: ignore[union-attr]
            assert isinstance(weight, Tensor)
            assert weight.grad is not None
            way = weight.grad / weight.grad.norm()
            weight.data += 1e-5 * way
            up = float(loss().detach())
            weight.data -= 2e-5 * way
            down = float(loss().detach())
            weight.data += 1e-5 * way
            assert (up - down) / 2e-5 == pytest.approx(float(weight.grad.norm()), rel=1e-5)


@pytest.mark.parametrize("name", DRAWING)
def test_the_gradient_leaves_dice_and_memory_of_parts_as_they_were(name: str) -> None:
    for network in drawing_networks(name):
        loss = network(some_ids(2, 200)).pow(2).sum()
        before = [dropout.generator.get_state() for dropout in dropouts_of(network).values()]
        memory = [buffer.clone() for buffer in network.buffers()]
        world = torch.get_rng_state()
        loss.backward()
        after = [dropout.generator.get_state() for dropout in dropouts_of(network).values()]
        assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
        assert all(torch.equal(one, other) for one, other in zip(memory, network.buffers(), strict=True))
        assert torch.equal(world, torch.get_rng_state())


class Slope(Part):
    """A learned slope, in forms that are awkward for who collects gradients."""

    relative = True

    def __init__(self, shape: Shape, *, form: str = "two") -> None:
        super().__init__(shape)
        self.form = form
        self.a, self.b = nn.Parameter(torch.tensor([0.1, 0.2])), nn.Parameter(torch.tensor([0.3, 0.1]))
        self.register_buffer("passes", torch.zeros(()))
        self.kept: Kept[Tensor] = Kept()

    def bias(self, site: Site) -> Tensor:
        if self.form == "two":  # both get one and the same gradient
            rates = self.a + self.b
        elif self.form == "expanded":  # a gradient that is a view of one number
            rates = (self.a.sum() * self.b.sum()).expand(2)
        elif self.form == "kept":
            rates = self.kept.get(lambda: self.a * self.b, self.a, self.b)
        elif self.form == "counting":
            self.passes += self.training
            rates = self.a * self.b * float(self.passes)
        else:
            rates = torch.ones(2, dtype=self.a.dtype)
        return -rates[:, None, None] * site.distance

    def rotate(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        """In one form only the beginning of the text knows of a weight."""
        if self.form != "beginning":
            return q, k
        return q, torch.where((site.queries < 16)[:, None], k * self.a.sum() * self.b.sum(), k)


@pytest.mark.parametrize("form", ["two", "expanded", "kept", "counting", "beginning"])
def test_awkward_parts_get_their_gradients(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._things, "slope", Slope)
    for network in networks([choice("slope", form=form), choice("window", size=8)]):
        network.train()
        kept = passed(network, some_ids(2, 700), None, save=False)
        for buffer in network.buffers():
            buffer.zero_()
        for ours, theirs in zip(passed(network, some_ids(2, 700), None, save=True), kept, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        part = network.body.parts["slope"]
        assert all(weight.grad is not None and weight.grad.any() for weight in part.parameters())


def test_what_parts_remember_is_copied_once_a_pass() -> None:
    parts = list(build_parts([choice("shuffle")], SHAPE, 0).values())
    memory = stripes.Memory(parts)  # type: ignore[arg-type]
    first = memory.now()
    assert memory.now() is first
    memory.buffers[0].add_(1)
    assert memory.now() is not first
    memory.set(first)
    assert torch.equal(memory.buffers[0], first[0])


def test_frozen_weights_get_no_gradient_and_the_others_get_theirs() -> None:
    for network in networks([choice("window", size=8)]):
        for frozen in (network.body.tokens, network.body.blocks[0]):
            for weight in frozen.parameters():
                weight.requires_grad_(False)
        kept = passed(network, some_ids(2, 700), None, save=False)
        for ours, theirs in zip(passed(network, some_ids(2, 700), None, save=True), kept, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert network.body.tokens.weight.grad is None


def test_far_less_waits_for_the_gradient() -> None:
    kept, saved = (waiting(save) for save in (False, True))
    assert saved < kept / 5


def waiting(save: bool) -> int:
    """Bytes that a pass keeps for the gradient, weights not counted."""
    body = Body(SHAPE, [choice("window", size=8)], 50, causal=True, seed=0)
    body.save_memory = save
    weights = {weight.data_ptr() for weight in body.parameters()}
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        made = body(some_ids(1, 700))[0]
    assert made.requires_grad
    return sum(sizes.values())
