"""Parts compose: any two that do not exclude each other build, learn, and keep the future hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
import torch
from subjects import (
    BUILT_IN,
    CHEATS,
    EXACT,
    KINDS,
    SHAPE,
    build,
    changed,
    far,
    in_pieces,
    kinds_of,
    loss_of,
    run,
    some_tokens,
)

from fairtrial.errors import BadInput
from fairtrial.model.part import EXCLUSIVE, build_parts, parts
from fairtrial.recipe import PartChoice
from sampling import cases

PAIRS = list(combinations(BUILT_IN, 2))


def contested(one: str, another: str) -> list[str]:
    """The hooks that both override and only one may."""
    return [hook for hook in EXCLUSIVE if parts.find(one).overrides(hook) and parts.find(another).overrides(hook)]


SHAPE_OF_PAIRS = replace(SHAPE, heads=4)
BUILT = {name: parts.find(name)(SHAPE_OF_PAIRS) for name in BUILT_IN}


def senseless(one: str, another: str) -> bool:
    """Whether one says that it does not combine with the other."""
    return any(BUILT[b].overrides(hook) for a, b in ((one, another), (another, one)) for hook in BUILT[a].excludes)


def some(pairs: Sequence[tuple[str, str]], least: int) -> list[tuple[str, str]]:
    """Pairs drawn once, so many that every part occurs `least` times or more."""
    met: Counter[str] = Counter()
    found = []
    for pair in Random(0).sample(pairs, len(pairs)):
        if min(met[name] for name in pair) < least:
            met.update(pair)
            found.append(pair)
    return sorted(found)


FRIENDS = [pair for pair in PAIRS if not contested(*pair) and not senseless(*pair)]
RIVALS = [pair for pair in PAIRS if contested(*pair)]
some_friends = pytest.mark.parametrize("pair", some(FRIENDS, 1), ids="+".join)


def chosen(pair: tuple[str, str]) -> list[PartChoice]:
    return [PartChoice(name=name) for name in pair]


@some_friends
def test_friends_build_and_learn(pair: tuple[str, str]) -> None:
    for kind in kinds_of(*chosen(pair)):
        network, ids = build(kind, *chosen(pair), heads=4, dropout=0.1), some_tokens(3, 13)
        loss = loss_of(network, ids, torch.tensor([13, 6, 1]))
        loss.backward()
        assert torch.isfinite(loss)
        for name, weight in network.named_parameters():
            assert weight.grad is None or torch.isfinite(weight.grad).all(), name
        assert network.get_parameter("body.tokens.weight").grad.abs().max() > 1e-8


@some_friends
def test_friends_see_neither_future_nor_padding(pair: tuple[str, str]) -> None:
    network, ids = build("decoder", *chosen(pair), heads=4), some_tokens(2, 13)
    before = run(network, ids)
    after = run(network, changed(ids, 5))
    cheats = bool(CHEATS & set(pair))
    assert (far(after[:, :5], before[:, :5]) > EXACT) == cheats
    assert far(after[:, 5:], before[:, 5:]) > 1e-6
    assert (far(in_pieces(network, ids, [4, 1, 1, 7]), before) > EXACT) == cheats
    if "encoder" not in kinds_of(*chosen(pair)):
        return
    network = build("encoder", *chosen(pair), heads=4)
    padded, alone = run(network, ids, torch.tensor([9, 9])), run(network, ids[:, :9])
    assert (far(padded, alone) > EXACT) == cheats
    assert far(run(network, changed(ids[:, :9], 0, 1)), alone) > 1e-6


@cases("pair", some(RIVALS, 1))
def test_rivals_are_refused_by_name(pair: tuple[str, str]) -> None:
    for one, another in (pair, pair[::-1]):
        with pytest.raises(BadInput) as refused:
            build("encoder", *chosen((one, another)))
        assert refused.value.what == f"{one!r} and {another!r} both override {contested(one, another)[0]!r}"
        assert refused.value.hint


@cases("pair", [pair for pair in PAIRS if senseless(*pair) and not contested(*pair)])
def test_what_makes_no_sense_is_refused_with_a_reason(pair: tuple[str, str]) -> None:
    for names in (pair, pair[::-1]):
        with pytest.raises(BadInput, match=r"do not combine: .{20}"):
            build_parts(chosen(names), SHAPE_OF_PAIRS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("pair", FRIENDS, ids="+".join)
def test_all_friends_see_no_future_and_decode_alike(pair: tuple[str, str]) -> None:
    test_friends_see_neither_future_nor_padding(pair)


def test_every_part_is_in_some_pair() -> None:
    assert {name for pair in some(FRIENDS, 1) for name in pair} == set(BUILT_IN)


def test_merges_are_rivals_and_pools_are_and_positions_are_friends() -> None:
    assert ("concat", "shuffle") in RIVALS
    assert ("pool-first", "pool-max") in RIVALS
    assert ("experts", "swiglu") in RIVALS
    assert {("alibi", "rope"), ("rope", "window"), ("alibi", "pool-max"), ("pool-mean", "shift")} <= set(FRIENDS)


def test_the_same_part_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="'rope' is named twice"):
        build("encoder", *chosen(("rope", "rope")))


@cases("kind", KINDS)
@cases(
    "pair",
    [
        ("alibi", "rope"),
        ("alibi", "t5"),
        ("rope", "window"),
        ("block", "t5"),
        ("learned", "shuffle"),
        ("qk-norm", "swiglu"),
    ],
)
def test_each_of_two_friends_has_its_say(pair: tuple[str, str], kind: str) -> None:
    ids = some_tokens(3, 29)
    both, one, another = (run(build(kind, *parts_, heads=4), ids) for parts_ in combinations_of(pair))
    assert far(both, one) > 1e-6
    assert far(both, another) > 1e-6


def combinations_of(pair: tuple[str, str]) -> list[list[PartChoice]]:
    return [chosen(pair), chosen(pair)[:1], chosen(pair)[1:]]
