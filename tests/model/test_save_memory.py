"""Blocks computed again for their gradients give the numbers of stored ones, bit for bit, and store less."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401
from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.model.network import Body, Classifier, LanguageModel, MaskedModel
from fairtrial.model.part import Part, Site, TensorCache
from fairtrial.model.part import parts as registry
from fairtrial.recipe import PartChoice, Shape
from sampling import cases

SHAPE = Shape(
    layers=2, width=16, heads=2, length=300, hidden=20, classifier_hidden=8, dropout=0.3, attention_dropout=0.2
)
TIME = 300  # long enough for local attention


class Plugin(Part):
    """Learned numbers in every form that is awkward for whoever repeats a pass: in a cache, in a counter of passes, and
    under draws from torch's global generator."""

    relative = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.a, self.b = nn.Parameter(torch.tensor([0.1, 0.2])), nn.Parameter(torch.tensor([0.3, 0.1]))
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("scale", torch.full((1,), 2.0))
        self.cache: TensorCache[Tensor] = TensorCache()
        self.dropout = nn.Dropout(0.1)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x * self.get_buffer("scale") * self.a.sum()  # autograd holds the buffer until the end

    def bias(self, site: Site) -> Tensor:
        passes = self.get_buffer("passes")
        passes += self.training
        rates = self.cache.get(lambda: self.a * self.b, self.a, self.b) * float(passes)
        return -self.dropout(rates)[:, None, None] * site.distance


def choice(name: str, **options: object) -> PartChoice:
    return PartChoice(name=name, options=options)


CHOICES = {
    "learned": [choice("learned")],
    "rope and window": [choice("rope"), choice("window", size=9)],
    "t5 and window": [choice("t5"), choice("window", size=16)],
    "disentangled": [choice("disentangled", furthest=8)],
    "a new order at every step": [choice("shuffle", every_step=True)],
    "plugin and window": [choice("plugin"), choice("window", size=8)],
}
KINDS = {
    "classifier": lambda shape, parts: Classifier(shape, parts, 50, 3),
    "decoder": lambda shape, parts: LanguageModel(shape, parts, 50),
    "masked": lambda shape, parts: MaskedModel(shape, parts, 50),
}


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._things, "plugin", Plugin)


def some_ids(time: int = TIME) -> Tensor:
    return torch.randint(0, 50, (2, time), generator=torch.Generator().manual_seed(time))


def trained(kind: str, parts: list[PartChoice], shape: Shape, save: bool, frozen: bool = False) -> dict[str, Tensor]:
    """Weights, buffers, the gradients of the last step and all generators, after two steps of training."""
    network = KINDS[kind](shape, parts)
    network.body.save_memory = save
    if frozen:
        network.body.tokens.requires_grad_(False)
        network.body.blocks[0].requires_grad_(False)
    ids, lengths = some_ids(), torch.tensor([TIME, 120])
    answers = torch.tensor([1, 2]) if kind == "classifier" else ids.roll(-1, 1)
    optimizer = torch.optim.SGD([weight for weight in network.parameters() if weight.requires_grad], lr=0.1)
    found: dict[str, Tensor] = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        for step in range(2):
            seed_dropout(dropouts_of(network), 1, step)
            optimizer.zero_grad()
            objective, _ = network.loss(ids, lengths, answers, 0.1, 0.01)
            objective.backward()
            optimizer.step()
            found[f"objective {step}"] = objective.detach()
        found["torch"] = torch.get_rng_state()
    found |= network.state_dict()
    found |= {f"grad {name}": w.grad for name, w in network.named_parameters() if w.grad is not None}
    return found | {f"rng {name}": each.generator.get_state() for name, each in dropouts_of(network).items()}


@cases(
    ("kind", "name", "changes"),
    [
        ("classifier", "learned", {}),
        ("classifier", "plugin and window", {"norm_place": "post"}),
        ("decoder", "rope and window", {}),
        ("decoder", "rope and window", {"attention_dropout": 0.0}),
        ("decoder", "a new order at every step", {}),
        ("decoder", "plugin and window", {"attention_dropout": 0.0}),
        ("decoder", "disentangled", {"norm_place": "post"}),
        ("masked", "t5 and window", {}),
    ],
)
@cases("frozen", [False, True])
def test_training_is_the_same_bit_for_bit(kind: str, name: str, changes: dict[str, object], frozen: bool) -> None:
    shape = replace(SHAPE, **changes)
    stored, saved = (trained(kind, CHOICES[name], shape, save, frozen) for save in (False, True))
    assert stored.keys() == saved.keys()
    for key, value in stored.items():
        assert torch.equal(value, saved[key]), key


def test_far_less_is_stored_for_the_gradient() -> None:
    assert stored_bytes(save=True) < stored_bytes(save=False) / 5


def stored_bytes(save: bool) -> int:
    """Bytes that a pass stores for the gradient, weights not counted."""
    body = Body(replace(SHAPE, dropout=0.0), [choice("window", size=8)], 50, causal=True, seed=0)
    body.save_memory = save
    weights = {weight.data_ptr() for weight in body.parameters()}
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def note_input(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        note(given[0])

    for block in body.blocks:  # checkpoint holds what enters a block, where the hooks below do not see it
        block.register_forward_pre_hook(note_input)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        x, _ = body(some_ids())
    assert x.requires_grad
    return sum(sizes.values())
