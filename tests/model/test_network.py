"""Networks: what a token may depend on, that every way to compute gives the same numbers, and gradients that arrive."""

from __future__ import annotations

import math

import pytest
import torch
from networks import ENTRIES, decoder, encoder, gradients, other, some_tokens
from torch import Tensor

from fairtrial.model.attention import Attention
from fairtrial.model.layers import capture
from fairtrial.model.network import Body, Classifier, LanguageModel, count_parameters, training_memory
from fairtrial.recipe import Recipe, Shape, built_in_recipe, with_settings
from sampling import cases, sample

COURSE_ENTRIES = 5755
LENGTHS = torch.tensor([4, 9, 1, 6])
PARTS = ["learned", "none", "slope"]
EXACT = {"atol": 1e-12, "rtol": 1e-12}


def test_the_course_networks_have_the_course_totals() -> None:
    classify, lm = built_in_recipe("course", "classify"), built_in_recipe("course", "lm")
    assert count_parameters(Classifier(classify.shape, classify.parts, COURSE_ENTRIES, 3)) == 576_467
    assert count_parameters(LanguageModel(lm.shape, lm.parts, COURSE_ENTRIES)) == 863_243
    assert count_parameters(LanguageModel(lm.shape, lm.parts, COURSE_ENTRIES + 1)) == 863_243 + 64 + 65


@pytest.mark.usefixtures("plugins")
@cases("part", PARTS)
def test_an_encoder_ignores_padding_and_batch_mates(part: str) -> None:
    network, ids = encoder(part), some_tokens(4, 9)
    logits = network(ids, LENGTHS)
    real = torch.arange(9) < LENGTHS[:, None]
    torch.testing.assert_close(network(torch.where(real, ids, other(ids)), LENGTHS), logits, **EXACT)
    longer = torch.cat((ids, some_tokens(4, 3, seed=5)), 1)
    torch.testing.assert_close(network(longer, LENGTHS), logits, **EXACT)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = network(ids[row : row + 1, :length])
        torch.testing.assert_close(alone, logits[row : row + 1], **EXACT)
    mates = torch.cat((ids[:1], other(ids[1:])))
    changed = network(mates, LENGTHS)
    torch.testing.assert_close(changed[0], logits[0], **EXACT)
    assert ((changed - logits)[1:].abs().amax(1) > 1e-6).all()  # the mates themselves did change


@pytest.mark.usefixtures("plugins")
@cases("part", PARTS)
def test_a_decoder_ignores_padding_and_batch_mates(part: str) -> None:
    network, ids = decoder(part), some_tokens(4, 9)
    logits = network(ids, LENGTHS)
    real = torch.arange(9) < LENGTHS[:, None]
    assert (logits[~real] == 0).all()
    assert (logits[real].abs().amax(1) > 1e-3).all()
    torch.testing.assert_close(network(torch.where(real, ids, other(ids)), LENGTHS), logits, **EXACT)
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(network(ids[row : row + 1, :length])[0], logits[row, :length], **EXACT)
    mates = network(torch.cat((ids[:1], other(ids[1:]))), LENGTHS)
    torch.testing.assert_close(mates[0], logits[0], **EXACT)
    assert ((mates - logits)[1:, 0].abs().amax(1) > 1e-6).all()


@pytest.mark.usefixtures("plugins")
@sample(8, part=PARTS, lengths=(None, torch.tensor([9, 8])), captured=(False, True))
def test_a_decoder_cannot_see_the_future(part: str, lengths: Tensor | None, captured: bool) -> None:
    network, ids = decoder(part), some_tokens(2, 9)

    def run(ids: Tensor) -> Tensor:
        if not captured:
            return network(ids, lengths)
        with capture(network):
            return network(ids, lengths)

    logits = run(ids)
    for time in range(8):
        changed = ids.clone()
        changed[:, time] = other(ids[:, time])
        difference = (run(changed) - logits).abs().amax(2)
        assert (difference[:, :time] < 1e-12).all()
        assert (difference[:, time:8] > 1e-9).all()  # it arrived, at the token and at all that follow


def test_gradients_flow_to_the_past_only_and_in_an_encoder_to_all() -> None:
    ids, time = some_tokens(1, 9), 4
    network = decoder("learned")
    network(ids)[0, time].pow(2).sum().backward()
    reached = network.body.tokens.weight.grad[ids[0]].abs().amax(1) > 0
    assert reached.tolist() == [True] * (time + 1) + [False] * (9 - time - 1)
    body = encoder("learned").body
    body(ids)[0][time].pow(3).sum().backward()
    assert (body.tokens.weight.grad[ids[0]].abs().amax(1) > 0).all()


def computed_with_padding(body: Body, ids: Tensor, lengths: Tensor) -> Tensor:
    """The body written out on [batch time width], as the equations stand in the papers."""
    batch, time = ids.shape
    visible = (torch.arange(time) < lengths[:, None])[:, None, None, :].expand(batch, 1, time, time)
    if body.causal:
        visible = visible & torch.ones(time, time, dtype=torch.bool).tril()
    x = body.tokens(ids) + body.parts["learned"].table.weight[:time]
    for block in body.blocks:
        q, k, v = (
            each.unflatten(-1, (body.shape.heads, -1)).transpose(1, 2)
            for each in block.attention.qkv(block.attention_norm(x)).chunk(3, -1)
        )
        scores = (q @ k.mT / math.sqrt(body.shape.head_dim)).masked_fill(~visible, -math.inf)
        x = x + block.attention.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        x = x + block.feed_forward(block.forward_norm(x))
    return body.norm(x)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_computation_equals_padded_computation(causal: bool) -> None:
    body = (decoder if causal else encoder)("learned").body
    assert body.causal is causal
    ids, real = some_tokens(4, 9), torch.arange(9) < LENGTHS[:, None]
    x, layout = body(ids, LENGTHS)
    assert x.shape == (int(LENGTHS.sum()), body.shape.width)  # nothing was computed for padding
    torch.testing.assert_close(x, computed_with_padding(body, ids, LENGTHS)[real], **EXACT)
    torch.testing.assert_close(layout.unpack(x)[real], x, **EXACT)
    whole = torch.full((4,), 9)
    torch.testing.assert_close(body(ids)[0].view(4, 9, -1), computed_with_padding(body, ids, whole), **EXACT)
    torch.testing.assert_close(body(ids, whole)[0], body(ids)[0], atol=0, rtol=0)


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    "names", [("learned",), ("learned", "slope"), ("past",), ("slope", "past"), ("learned", "blind")]
)
@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("make", [encoder, decoder])
def test_the_fast_path_equals_the_watched_path(
    names: tuple[str, ...], lengths: Tensor | None, make: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, ids = make(*names), some_tokens(4, 9)
    ways: list[str] = []
    for way in ("attend", "attend_fast"):
        plain = getattr(Attention, way)
        monkeypatch.setattr(Attention, way, lambda *got, way=way, plain=plain: ways.append(way) or plain(*got))
    fast = network(ids, lengths)
    fast.pow(2).sum().backward()
    fast_gradients = {name: gradient.clone() for name, gradient in gradients(network).items()}
    network.zero_grad()
    with capture(network) as seen:
        captured = network(ids, lengths)
    captured.pow(2).sum().backward()
    assert ways == ["attend_fast"] * 2 + ["attend"] * 2
    torch.testing.assert_close(fast, captured, **EXACT)
    for name, gradient in gradients(network).items():
        torch.testing.assert_close(fast_gradients[name], gradient, atol=1e-11, rtol=1e-9)
    assert sorted(seen) == [f"body.blocks.{layer}.attention.maps" for layer in range(2)]
    for maps in seen.values():
        assert maps.shape == (4, 2, 9, 9)
        sums = maps.sum(-1)
        assert (torch.isclose(sums, torch.ones_like(sums)) | (sums == 0)).all()
        assert ((maps > 0).sum() > 0) == ("blind" not in names)


@pytest.mark.usefixtures("plugins")
@cases("names", [("blind",), ("blind", "slope")])
@cases("captured", [False, True])
def test_a_row_with_nothing_to_see_gives_zeros(names: tuple[str, ...], captured: bool) -> None:
    outputs: list[Tensor] = []
    network = encoder(*names)
    for block in network.body.blocks:
        block.attention.out.register_forward_pre_hook(lambda _, got: outputs.append(got[0]))
    ids = some_tokens(4, 9)
    if captured:
        with capture(network):
            logits = network(ids, LENGTHS)
    else:
        logits = network(ids, LENGTHS)
    assert len(outputs) == 2
    assert all((output == 0).all() for output in outputs)
    logits.pow(2).sum().backward()
    assert all(gradient.isfinite().all() for gradient in gradients(network).values())


@pytest.mark.usefixtures("plugins")
@sample(
    8,
    names=(("learned",), ("past",), ("past", "slope")),
    lengths=([0, 9, 3], [0, 0, 0], [0, 9, 9]),
    make=(encoder, decoder),
)
def test_an_empty_sentence_stays_finite_forward_and_backward(
    names: tuple[str, ...], lengths: list[int], make: type
) -> None:
    network, ids = make(*names), some_tokens(3, 9)
    logits = network(ids, torch.tensor(lengths))
    if isinstance(network, LanguageModel):
        assert (logits[0] == 0).all()
        assert logits.shape == (3, 9, ENTRIES)
    else:
        nothing = torch.zeros(network.body.shape.width, dtype=torch.float64)
        torch.testing.assert_close(logits[0], network.out(network.activation(network.hidden(nothing))), **EXACT)
    assert logits.isfinite().all()
    logits.pow(2).sum().backward()
    found = gradients(network)
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert (found["body.tokens.weight"].abs().max() > 0) == any(lengths)


@sample(6, activation=("relu", "gelu", "gelu_tanh", "silu"), norm=("layer", "rms"), start=("torch", "small"))
def test_every_activation_and_norm_brings_gradients_to_every_parameter(activation: str, norm: str, start: str) -> None:
    ids = some_tokens(4, 9)
    for network, answers in (
        (encoder("learned", activation=activation, norm=norm, start=start), torch.tensor([0, 1, 2, 1])),
        (decoder("learned", activation=activation, norm=norm, start=start), other(ids)),
    ):
        objective, nats = network.loss(ids, LENGTHS, answers, 0.1, 0.5)
        assert objective.isfinite()
        assert nats.isfinite()
        objective.backward()
        for name, gradient in gradients(network).items():
            assert gradient.isfinite().all(), name
            assert gradient.abs().max() > 0, name


def test_the_memory_of_training_grows_with_what_training_keeps() -> None:
    usual = Recipe(task="lm", shape=Shape(layers=4, width=64, heads=2, length=256))

    def needed(*settings: str, rows: int = 8) -> float:
        return training_memory(with_settings(usual, settings), 5000, rows) / training_memory(usual, 5000, 8)

    assert needed(rows=16) > 1.5
    assert needed("shape.attention_dropout=0.1") > 2  # attention maps
    assert needed("shape.length=512", "shape.attention_dropout=0.1") > 2 * needed("shape.length=512")
    assert needed('parts=["soft-cap"]') > 1.5
    assert needed("shape.tied=true") < 1
    assert needed("training.optimizer=sgd") < 1
    assert needed("training.keep=last") < 1
