"""Feed-forward layers are those of `transformers` and x-transformers; experts are chosen, weighed and kept busy."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from layers import vectors
from transformers import LlamaConfig, SwitchTransformersConfig
from transformers.models.llama.modeling_llama import LlamaMLP
from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersSparseMLP
from x_transformers.x_transformers import FeedForward as TheirFeedForward

from fairtrial.errors import BadInput
from fairtrial.model.layers import FeedForward
from fairtrial.model.part import Part, parts
from fairtrial.parts.experts import Experts
from fairtrial.recipe import Shape
from sampling import cases

SHAPE = Shape(width=12, heads=2, layers=2, hidden=20, activation="gelu")


def own_layer(shape: Shape = SHAPE, *, bias: bool = True) -> FeedForward:
    torch.manual_seed(3)
    return FeedForward(shape, bias=bias).double()


def built(name: str, **options: object) -> Part:
    torch.manual_seed(4)
    return parts.find(name)(SHAPE, **options).double()


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_swiglu_is_llamas(bias: bool) -> None:
    config = LlamaConfig(hidden_size=12, intermediate_size=20, mlp_bias=bias, hidden_act="silu", num_attention_heads=2)
    own, part, x = own_layer(bias=bias), built("swiglu", bias=bias), vectors(30, 12)
    oracle = LlamaMLP(config).double()
    oracle.gate_proj.load_state_dict(own.up.state_dict())
    oracle.up_proj.load_state_dict(part.gates[1].state_dict())
    oracle.down_proj.load_state_dict(own.down.state_dict())
    torch.testing.assert_close(part.feed_forward(x, own, 1), oracle(x), atol=1e-12, rtol=0)
    assert (part.feed_forward(x, own, 0) - oracle(x)).abs().max() > 1e-3  # each layer has its own gate
    assert (own(x) - oracle(x)).abs().max() > 1e-3


@torch.no_grad()
def test_geglu_is_x_transformers() -> None:
    oracle, own, part, x = (
        TheirFeedForward(12, mult=20 / 12, glu=True).double(),
        own_layer(),
        built("geglu"),
        vectors(30, 12),
    )
    projection, last = oracle.ff[0].proj, [module for module in oracle.ff if isinstance(module, torch.nn.Linear)][-1]
    for kind in ("weight", "bias"):  # theirs is the linear half first, then the activated one
        pieces = [getattr(layer, kind) for layer in (part.gates[0], own.up)]
        getattr(projection, kind).copy_(torch.cat(pieces))
    last.load_state_dict(own.down.state_dict())
    torch.testing.assert_close(part.feed_forward(x, own, 0), oracle(x), atol=1e-12, rtol=0)


@torch.no_grad()
def test_squared_relu_is_x_transformers() -> None:
    oracle, own, x = TheirFeedForward(12, mult=20 / 12, relu_squared=True).double(), own_layer(), vectors(30, 12)
    linear = [module for module in oracle.modules() if isinstance(module, torch.nn.Linear)]
    linear[0].load_state_dict(own.up.state_dict())
    linear[1].load_state_dict(own.down.state_dict())
    torch.testing.assert_close(built("relu-squared").feed_forward(x, own, 0), oracle(x), atol=1e-12, rtol=0)


@torch.no_grad()
def test_one_expert_for_each_token_is_the_switch_transformers() -> None:
    config = SwitchTransformersConfig(
        d_model=12, d_ff=20, num_experts=3, expert_capacity=1000, router_jitter_noise=0.0, dropout_rate=0.0,
        dense_act_fn="gelu",
    )  # fmt: skip
    oracle, own, x = SwitchTransformersSparseMLP(config).double().eval(), own_layer(), vectors(40, 12)
    part = built("experts", experts=3, top=1).eval()
    for number, expert in enumerate((own, *part.others[1])):
        expert.up.bias.zero_()
        expert.down.bias.zero_()
        oracle.experts[f"expert_{number}"].wi.weight.copy_(expert.up.weight)
        oracle.experts[f"expert_{number}"].wo.weight.copy_(expert.down.weight)
    oracle.router.classifier.weight.copy_(part.routers[1].weight)
    torch.testing.assert_close(part.feed_forward(x, own, 1), oracle(x[None])[0], atol=1e-5, rtol=0)


@cases(("experts", "top"), [(4, 2), (3, 3), (2, 1)])
@torch.no_grad()
def test_experts_equal_a_loop_over_tokens(experts: int, top: int) -> None:
    own, x = own_layer(), vectors(25, 12)
    part = built("experts", experts=experts, top=top).eval()
    part.bonus[0, -1] = 0.3  # the last expert is favoured, but weighed by its own share
    found = part.feed_forward(x, own, 0)
    layers, used = [own, *part.others[0]], set()
    for token, vector in enumerate(x):
        shares = part.routers[0](vector).softmax(-1)
        order = sorted(range(experts), key=lambda number: -float(shares[number] + part.bonus[0, number]))[:top]
        total = sum(shares[number] for number in order) if top > 1 else 1.0
        expected = sum(shares[number] / total * layers[number](vector) for number in order)
        torch.testing.assert_close(found[token], expected, atol=1e-10, rtol=0)
        used |= set(order)
    assert used == set(range(experts))


@torch.no_grad()
def test_busy_experts_lose_their_bonus_and_the_load_is_told() -> None:
    part, own, x = built("experts", experts=2, top=1, balance=0.02), own_layer(), vectors(200, 12)
    weight = part.routers[0].weight
    weight[1] = weight[0] - 0.3 * torch.eye(12)[0]
    x[:, 0] += 1.5  # most tokens are for the first expert

    def busy() -> float:
        """The share of tokens that the first expert gets."""
        return float(((part.routers[0](x).softmax(-1) + part.bonus[0]).argmax(-1) == 0).double().mean())

    at_first = busy()
    assert at_first > 0.85
    part.eval().feed_forward(x, own, 0)
    assert not part.bonus.any()  # evaluation changes nothing
    part.train().feed_forward(x, own, 0)
    assert part.bonus[0].tolist() == pytest.approx([-0.02, 0.02])
    assert part.load[0, 0] == pytest.approx(0.5 + 0.01 * (at_first - 0.5))
    for _ in range(40):
        part.feed_forward(x, own, 0)
    assert abs(busy() - 0.5) < 0.15
    notes = part.notes()
    assert notes[0].startswith("load of the experts in layer 1: 5")
    assert notes[1] == "load of the experts in layer 2: 50%, 50%"


def test_experts_that_are_idle_are_refused() -> None:
    for options in ({"experts": 1, "top": 1}, {"top": 0}, {"top": 5}, {"balance": -1.0}):
        with pytest.raises(BadInput, match="experts: top must be"):
            Experts(replace(SHAPE), **options)
