"""Every part inherits every test: its weights learn, are saved, disturb no others, and its recipe is a recipe."""

from __future__ import annotations

import tomllib

import pytest
import torch
from safetensors.torch import load, save
from subjects import (
    BUILT_IN,
    EXACT,
    HEADS,
    KINDS,
    NEW_EVERY_PASS,
    OPTIONS,
    SUBJECTS,
    build,
    far,
    keywords,
    loss_of,
    run,
    sampled,
    some_tokens,
)
from torch import Tensor, nn

from fairtrial.model.layers import capture
from fairtrial.model.part import build_parts, parts
from fairtrial.recipe import PartChoice, Recipe, Shape, fingerprint, recipe_from, write_recipe
from fairtrial.training.loop import put_weights, weights_of
from sampling import cases


def gradients(network: nn.Module, ids: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
    before = {name: tensor.clone() for name, tensor in network.named_buffers()}
    network.zero_grad(set_to_none=True)
    loss_of(network, ids, lengths).backward()
    put_weights(network, weights_of(network) | before)
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


@sampled(SUBJECTS, heads=HEADS, kind=KINDS)
def test_a_gradient_reaches_every_parameter_the_eager_way_and_the_fast_one(
    subject: PartChoice, heads: int, kind: str
) -> None:
    network, ids = build(kind, subject, heads=heads, dropout=0.3), some_tokens(3, 17)
    found: dict[str, Tensor] = {}
    for lengths in (None, torch.tensor([17, 9, 1])):
        found = gradients(network, ids, lengths)
        with capture(network):
            eager = gradients(network, ids, lengths)
        assert found.keys() == eager.keys()
        assert max(far(found[name], eager[name]) for name in found) < EXACT
    for name, weight in network.named_parameters():
        if kind == "decoder" and parts.find(subject.name).overrides("pool") and name.startswith("body.parts."):
            assert name not in found, f"{name}: a language model pools nothing"
            continue
        assert name in found, f"{name} got no gradient"
        assert torch.isfinite(found[name]).all(), name
        assert found[name].abs().max() > 1e-8, name
        assert found[name].shape == weight.shape


@sampled(SUBJECTS, kind=KINDS)
def test_a_gradient_is_the_slope_of_the_loss(subject: PartChoice, kind: str) -> None:
    """Also where a part writes its gradient by hand."""
    network, ids, step = build(kind, subject, heads=2), some_tokens(3, 9), 1e-5
    lengths = torch.tensor([9, 5, 2])
    found = gradients(network, ids, lengths)
    rng = torch.Generator().manual_seed(0)
    way = {name: torch.randn(weight.shape, generator=rng, dtype=weight.dtype) for name, weight in found.items()}
    expected = sum(float((found[name] * way[name]).sum()) for name in found)
    start = {name: tensor.clone() for name, tensor in weights_of(network).items()}
    ends = []
    for sign in (1, -1):
        put_weights(network, start | {name: start[name] + sign * step * way[name] for name in found})
        ends.append(float(loss_of(network, ids, lengths).detach()))
    assert abs(expected) > 1e-2
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(expected, rel=1e-4)


@sampled(SUBJECTS, heads=HEADS, kind=KINDS)
def test_saved_weights_answer_as_before(subject: PartChoice, heads: int, kind: str) -> None:
    network, other = (build(kind, subject, heads=heads, seed=seed) for seed in (0, 1))
    ids = some_tokens(3, 17)
    before = run(network, ids)
    assert far(run(other, ids), before) > 1e-3
    kept = load(save(weights_of(network)))
    put_weights(other, kept)
    assert torch.equal(run(other, ids), before)
    assert set(kept) == set(weights_of(other))


@sampled(SUBJECTS, heads=HEADS, kind=KINDS)
def test_weights_start_as_the_seed_says_and_those_of_the_core_with_and_without_the_part(
    subject: PartChoice, heads: int, kind: str
) -> None:
    state = torch.get_rng_state()
    bare, dressed, again, later = (
        weights_of(build(kind, *chosen, heads=heads, seed=seed))
        for chosen, seed in (((), 0), ((subject,), 0), ((subject,), 0), ((subject,), 1))
    )
    assert all(torch.equal(dressed[name], again[name]) for name in dressed)
    drawn = [name for name in dressed if name.startswith("body.parts.") and name.endswith("weight")]
    drawn = [name for name in drawn if dressed[name].unique().numel() > 1]  # norms start at a constant
    assert all(not torch.equal(dressed[name], later[name]) for name in drawn)
    own = {name for name in dressed if name.startswith("body.parts.")}
    gone = {
        name for name in bare if subject.options.get("bias") is False and ".feed_forward." in name and "bias" in name
    }
    assert set(dressed) - own == set(bare) - gone
    bare = {name: weight for name, weight in bare.items() if name not in gone}
    for name, weight in bare.items():
        if dressed[name].shape != weight.shape:  # heads share keys: queries as they were, and the first of each group
            assert name.split(".")[-2] == "qkv"
            assert parts.find(subject.name).overrides("key_heads")
            rows = {tuple(row) for row in weight.view(len(weight), -1).tolist()}
            assert rows > {tuple(row) for row in dressed[name].view(len(dressed[name]), -1).tolist()}
            weight, dressed[name] = weight[:24], dressed[name][:24]
        assert torch.equal(dressed[name], weight), name
    assert not torch.equal(later["body.tokens.weight"], bare["body.tokens.weight"])
    assert torch.equal(torch.get_rng_state(), state)  # the global generator is untouched


@sampled(SUBJECTS, heads=HEADS, kind=KINDS)
def test_training_without_dropout_answers_as_evaluation_does(subject: PartChoice, heads: int, kind: str) -> None:
    network, ids = build(kind, subject, heads=heads), some_tokens(3, 17)
    evaluated = run(network.eval(), ids)
    if subject in NEW_EVERY_PASS:  # other orders in training: that is its idea
        passes = [network.train()(ids) for _ in range(8)]
        assert (max(far(trained, evaluated) for trained in passes) > 1e-6) == (heads > 1)
    else:
        assert torch.equal(run(network.train(), ids), evaluated)
    dropping = build(kind, subject, heads=heads, dropout=0.3)
    assert far(run(dropping, ids), run(dropping.eval(), ids)) > 1e-6


@cases("subject", SUBJECTS)
def test_a_recipe_with_the_part_survives_toml(subject: PartChoice) -> None:
    recipe = Recipe(parts=(PartChoice(name="none"), subject) if subject.name != "none" else (subject,))
    again = recipe_from(tomllib.loads(write_recipe(recipe)))
    assert again == recipe
    assert fingerprint(again) == fingerprint(recipe)
    assert fingerprint(recipe) != fingerprint(Recipe(parts=(PartChoice(name="something-else"),)))
    rebuilt = build_parts(again.parts, Shape(), 0)
    for option, value in subject.options.items():
        kept = vars(rebuilt[subject.name]).get(option, value)
        assert kept == value
        assert type(kept) is type(value)


@cases("name", BUILT_IN)
def test_every_option_of_a_part_is_tried(name: str) -> None:
    assert keywords(name) == set(OPTIONS.get(name, {}))


@sampled([subject for subject in SUBJECTS if subject.options], kind=KINDS)
def test_options_change_something(subject: PartChoice, kind: str) -> None:
    ids = some_tokens(3, 33)
    with_them = build(kind, subject, heads=4)
    without = build(kind, PartChoice(name=subject.name), heads=4)
    if subject not in NEW_EVERY_PASS:
        shared = {name: weight for name, weight in weights_of(without).items() if not name.startswith("body.parts.")}
        own = weights_of(with_them)
        same = {name: each for name, each in shared.items() if name in own and each.shape == own[name].shape}
        put_weights(with_them, own | same)
    for network in (with_them, without):  # a table that starts at zero says nothing yet
        for name, weight in network.named_parameters():
            if name.startswith("body.parts.") and not weight.any():
                weight.data += 0.1 * torch.arange(weight.shape[-1])
    assert far(run(with_them, ids), run(without, ids)) > 1e-6
