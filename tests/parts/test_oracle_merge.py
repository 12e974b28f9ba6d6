"""Heads join as loops say, in encoder and decoder; a shuffled order is fixed, named, saved, and resumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from brute import looped_heads
from safetensors.torch import load, save
from torch import Tensor

from fairtrial.errors import BadInput, Interrupted
from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.network import LanguageModel
from fairtrial.model.part import AttentionContext, Part, build_parts
from fairtrial.parts.merge import CausalReweight, Concat, Reweight, Shift, Shuffle
from fairtrial.recipe import PartChoice, Recipe, Shape
from fairtrial.training.loop import put_weights, weights_of
from fairtrial.trial import resume_trial, run_trial
from sampling import cases, sample

SHAPE = Shape(width=24, heads=4, layers=6, qkv_bias=True, start="torch")
EVERY_STEP = PartChoice(name="shuffle", options={"every_step": True})


def some_heads(heads: int, batch: int = 2, time: int = 5) -> Tensor:
    """[batch head time head_dim]"""
    rng = torch.Generator().manual_seed(heads)
    return torch.randn(batch, heads, time, 24 // heads, generator=rng, dtype=torch.float64)


def here(layer: int = 0, time: int = 5) -> AttentionContext:
    return AttentionContext(layer, True, torch.arange(time), torch.arange(time))


def norm(vectors: list[Tensor]) -> float:
    return math.sqrt(sum(float(number) ** 2 for vector in vectors for number in vector.flatten()))


@sample(10, heads=(1, 2, 3, 4), what=("concat", "shift", "shuffle", "batch", "row", "causal"))
def test_a_merge_equals_a_loop(heads: int, what: str) -> None:
    shape, x = replace(SHAPE, heads=heads), some_heads(heads)
    part: Part = {
        "concat": Concat, "shift": Shift, "shuffle": Shuffle, "causal": CausalReweight,
        "batch": lambda shape: Reweight(shape, over="batch"), "row": lambda shape: Reweight(shape, over="row"),
    }[what](shape)  # fmt: skip
    found = part.merge(x, here(2))
    assert found.shape == (2, 5, 24)
    for row in range(2):
        for time in range(5):
            own = [x[row, head, time] for head in range(heads)]
            if what == "shift":
                own = [own[(head + 1) % heads] for head in range(heads)]
            elif what == "shuffle":
                own = [own[place] for place in part.get_buffer("orders")[2].tolist()]
            elif what != "concat":
                seen = {
                    "batch": lambda head: list(x[:, head]),
                    "row": lambda head, row=row: [x[row, head]],
                    "causal": lambda head, row=row, time=time: [x[row, head, time]],
                }[what]
                norms = [norm(seen(head)) for head in range(heads)]
                own = [each * size / sum(norms) * heads for each, size in zip(own, norms, strict=True)]
            torch.testing.assert_close(found[row, time], torch.cat(own), atol=1e-12, rtol=0)


MERGES: dict[str, tuple[type[Part], Callable[[list[Tensor]], list[Tensor]]]] = {
    "concat": (Concat, lambda own: own),
    "shift": (Shift, lambda own: own[1:] + own[:1]),
    "reweight-causal": (
        CausalReweight,
        lambda own: [each * norm([each]) / sum(norm([other]) for other in own) * len(own) for each in own],
    ),
}


@cases("what", MERGES)
@cases("causal", [True, False])
@torch.no_grad()
def test_attention_with_it_equals_loops(what: str, causal: bool) -> None:
    kind, join = MERGES[what]
    torch.manual_seed(0)
    attention, lengths = Attention(SHAPE, 0), [7, 3, 1]
    x = torch.randn(3, 7, 24) * 2
    layout = Layout.ragged(torch.tensor(lengths), 7)
    found = layout.unpack(attention(layout.pack(x), ForwardContext(layout, causal, 0, x.dtype), [kind(SHAPE)]))
    heads = looped_heads(attention, x, lengths, causal, lambda query, key: True)
    for row, length in enumerate(lengths):
        for query in range(length):
            joined = torch.cat(join([head[query] for head in heads[row]]))
            torch.testing.assert_close(found[row, query], attention.out(joined), atol=1e-5, rtol=1e-5)


@cases("part", [Reweight(SHAPE), Reweight(SHAPE, over="row"), CausalReweight(SHAPE)])
def test_silent_heads_stay_finite(part: Part) -> None:
    """Nothing to see gives zeros: they have no norm, and their gradient is no NaN."""
    x = torch.zeros(2, 4, 5, 6, requires_grad=True)
    part.merge(x, here()).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert not part.merge(x, here()).any()


def test_reweighing_over_something_else_is_refused() -> None:
    with pytest.raises(BadInput, match="over must be 'batch' or 'row'"):
        Reweight(SHAPE, over="head")


def orders(seed: int, *choices: PartChoice) -> Tensor:
    return build_parts(choices, SHAPE, seed)["shuffle"].get_buffer("orders")


def test_an_order_is_fixed_drawn_for_each_layer_by_the_trials_seed() -> None:
    plain = PartChoice(name="shuffle")
    assert torch.equal(orders(1, plain), orders(1, plain))
    assert not torch.equal(orders(1, plain), orders(2, plain))
    assert len({tuple(order) for order in orders(1, plain).tolist()}) > 1  # not one for all layers
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders(1, plain).tolist())
    part, x = build_parts([plain], SHAPE, 1)["shuffle"], some_heads(4)
    assert torch.equal(part.merge(x, here(3)), part.train().merge(x, here(3)))


def test_an_orders_dice_are_its_own() -> None:
    """Neither other parts nor the world's rng move them, nor do they move the world's."""
    plain, before = PartChoice(name="shuffle"), torch.get_rng_state()
    assert torch.equal(orders(1, PartChoice(name="t5"), plain), orders(1, plain))
    assert torch.equal(torch.get_rng_state(), before)
    fixed = PartChoice(name="shuffle", options={"seed": 7})
    assert torch.equal(orders(1, fixed), orders(2, fixed))  # where a recipe names the seed, every trial takes it


def test_orders_are_saved_with_the_weights() -> None:
    one, another = (LanguageModel(SHAPE, [PartChoice(name="shuffle")], 9, seed=seed) for seed in (1, 2))
    put_weights(another, load(save(weights_of(one))))
    assert torch.equal(*(network.body.parts["shuffle"].get_buffer("orders") for network in (one, another)))


def passes_of(part: Part, count: int) -> list[Tensor]:
    """What passes through all layers give."""
    x = some_heads(4)
    return [torch.stack([part.merge(x, here(layer)) for layer in range(SHAPE.layers)]) for _ in range(count)]


def test_a_new_order_every_pass_in_training_and_the_fixed_one_in_evaluation() -> None:
    part, twin = (build_parts([EVERY_STEP], SHAPE, 1)["shuffle"] for _ in range(2))
    first = passes_of(part.train(), 4)
    assert len({tuple(each.flatten().tolist()) for each in first}) == 4
    assert all(torch.equal(*both) for both in zip(first, passes_of(twin.train(), 4), strict=True))
    fixed = passes_of(part.eval(), 2)
    assert torch.equal(*fixed)
    assert torch.equal(fixed[0], passes_of(build_parts([PartChoice(name="shuffle")], SHAPE, 1)["shuffle"], 1)[0])
    # evaluation in between moves nothing
    assert torch.equal(passes_of(part.train(), 1)[0], passes_of(twin.train(), 1)[0])


def test_a_part_that_is_loaded_goes_on_where_it_was_saved() -> None:
    part, later = (build_parts([EVERY_STEP], SHAPE, 1)["shuffle"].train() for _ in range(2))
    passes_of(part, 3)
    put_weights(later, load(save(weights_of(part))))
    after = passes_of(part, 1)[0]
    assert torch.equal(passes_of(later, 1)[0], after)
    assert not torch.equal(passes_of(build_parts([EVERY_STEP], SHAPE, 1)["shuffle"].train(), 1)[0], after)


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_resumed_trial_ends_with_the_same_bits(task: str, tiny_recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    recipe = tiny_recipe(task, "shape.heads=4", 'parts=["learned", {name = "shuffle", every_step = true}]')
    whole = run_trial(recipe, 5, tmp_path / "whole")
    asked = iter([False] * 4 + [True])
    with pytest.raises(Interrupted):
        run_trial(recipe, 5, tmp_path / "broken", stop=lambda: next(asked))
    again = resume_trial(tmp_path / "broken")
    for name in ("model.safetensors", "events.jsonl", "outcomes.safetensors"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    fixed = run_trial(replace(recipe, parts=(PartChoice(name="learned"),)), 5, tmp_path / "fixed")
    assert (fixed.folder / "events.jsonl").read_bytes() != (whole.folder / "events.jsonl").read_bytes()
