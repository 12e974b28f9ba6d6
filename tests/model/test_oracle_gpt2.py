"""With copied weights our language model is GPT-2, as `transformers` has it: logits, loss and gradients."""

from __future__ import annotations

import pytest
import torch
from networks import choices
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from fairtrial.model.network import LanguageModel
from fairtrial.recipe import Shape
from sampling import cases

ENTRIES, WIDTH, HIDDEN, LENGTH, LAYERS = 60, 32, 40, 16, 2


def gpt2(heads: int, tied: bool) -> GPT2LMHeadModel:
    torch.manual_seed(heads)
    config = GPT2Config(
        vocab_size=ENTRIES,
        n_positions=LENGTH,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=heads,
        n_inner=HIDDEN,
        activation_function="gelu_new",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.3,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=0,
    )
    oracle = GPT2LMHeadModel(config)
    with torch.no_grad():  # biases and norms begin at 0 and 1, where a forgotten copy would not show
        for parameter in oracle.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return oracle


def as_ours(oracle: GPT2LMHeadModel, heads: int, tied: bool) -> LanguageModel:
    shape = Shape(
        layers=LAYERS,
        heads=heads,
        width=WIDTH,
        hidden=HIDDEN,
        length=LENGTH,
        dropout=0.0,
        activation="gelu_tanh",
        qkv_bias=True,
        tied=tied,
    )
    network = LanguageModel(shape, choices("learned"), ENTRIES)
    ours = dict(network.named_parameters())
    with torch.no_grad():
        network.out.bias.zero_()  # GPT-2 has none
        for name, theirs in pairs(oracle, tied).items():
            ours[name].copy_(theirs)
    return network


def pairs(oracle: GPT2LMHeadModel, tied: bool, gradients: bool = False) -> dict[str, Tensor]:
    """Our name of each weight -> theirs, or its gradient. Their Conv1D is a linear layer lying on its side."""
    body = oracle.transformer
    named = {
        "body.tokens.weight": body.wte.weight,
        "body.parts.learned.table.weight": body.wpe.weight,
        "body.norm.weight": body.ln_f.weight,
        "body.norm.bias": body.ln_f.bias,
    }
    if not tied:
        named["out.weight"] = oracle.lm_head.weight
    turned = {}
    for number, block in enumerate(body.h):
        ours = f"body.blocks.{number}"
        for name, theirs in (("attention_norm", block.ln_1), ("forward_norm", block.ln_2)):
            named |= {f"{ours}.{name}.weight": theirs.weight, f"{ours}.{name}.bias": theirs.bias}
        for name, theirs in (
            ("attention.qkv", block.attn.c_attn),
            ("attention.out", block.attn.c_proj),
            ("feed_forward.up", block.mlp.c_fc),
            ("feed_forward.down", block.mlp.c_proj),
        ):
            named[f"{ours}.{name}.bias"] = theirs.bias
            turned[f"{ours}.{name}.weight"] = theirs.weight
    found = {name: weight.grad if gradients else weight for name, weight in named.items()}
    return found | {name: (weight.grad if gradients else weight).t() for name, weight in turned.items()}


def a_batch() -> Tensor:
    return torch.randint(ENTRIES, (3, LENGTH), generator=torch.Generator().manual_seed(9))


@cases("heads", [1, 2, 4])
@cases("tied", [True, False])
def test_logits_equal_gpt2s(heads: int, tied: bool) -> None:
    oracle = gpt2(heads, tied)
    network = as_ours(oracle, heads, tied)
    ids = a_batch()
    with torch.no_grad():
        expected, ours = oracle(ids).logits, network(ids)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    assert expected.std() > 0.5  # no two flat answers


@cases("heads", [1, 2, 4])
@cases("tied", [True, False])
def test_loss_and_all_gradients_equal_gpt2s(heads: int, tied: bool) -> None:
    oracle = gpt2(heads, tied)
    network = as_ours(oracle, heads, tied)
    ids = a_batch()
    expected = oracle(ids, labels=ids).loss  # theirs is shifted inside, a mean over predicted tokens
    inputs, answers = ids[:, :-1], ids[:, 1:]
    loss, nats = network.loss(inputs, None, answers, 0.0, 1 / answers.numel())
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    assert float(nats) / answers.numel() == pytest.approx(float(expected.detach()), rel=1e-5)
    expected.backward()
    loss.backward()
    ours = {name: parameter.grad for name, parameter in network.named_parameters()}
    theirs = pairs(oracle, tied, gradients=True)
    assert set(ours) - set(theirs) == {"out.bias"}
    for name, gradient in theirs.items():
        assert gradient.abs().max() > 1e-4, name
        torch.testing.assert_close(
            ours[name], gradient, atol=1e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_two_heads_are_not_four_heads() -> None:
    oracle = gpt2(2, True)
    ids = a_batch()
    with torch.no_grad():
        difference = as_ours(oracle, 4, True)(ids) - oracle(ids).logits
    assert difference.abs().max() > 1e-2
