"""Dataclasses read from JSON: what fits comes back as it was, what does not is named by its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest

from fairtrial.typed import Count, Positive, WrongValue, structure, unstructure


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Leaf:
    name: str
    size: float = 0.0
    note: str | None = None


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_seed: Mapping[int, list[int]]
    colour: Colour
    by_colour: dict[Colour, bool]
    side: Literal["left", "right"]
    place: Path
    pair: tuple[int, str]
    count: Count
    steps: Positive
    anything: object = None
    inside: tuple[Tree, ...] = ()
    either: int | str = 0
    more: dict[str, Leaf | None] = field(default_factory=dict)


TREE = Tree(
    (Leaf("a", 1.5), Leaf("b", 2.0, "old")), {3: [1, 2]}, Colour.RED, {Colour.BLUE: True}, "left", Path("x/y"),
    (1, "z"), 0, 1, {"free": [1, None]}, (), "word", {"k": None, "l": Leaf("c")},
)  # fmt: skip


def plain(tree: Tree = TREE) -> dict[str, object]:
    return json.loads(json.dumps(unstructure(tree)))


def test_a_value_comes_back_as_it_was() -> None:
    outer = Tree(**{**vars(TREE), "inside": (TREE,)})
    assert structure(Tree, plain(outer)) == outer


def test_an_int_where_a_float_is_wanted_becomes_one_and_nothing_else_is_converted() -> None:
    assert type(structure(Leaf, {"name": "a", "size": 2}).size) is float
    for wrong in ("2", True, None, [2]):
        with pytest.raises(WrongValue, match="size: must be a number"):
            structure(Leaf, {"name": "a", "size": wrong})


def test_an_absent_option_is_left_out() -> None:
    assert unstructure(Leaf("a")) == {"name": "a", "size": 0.0}


@pytest.mark.parametrize(
    ("change", "at", "reason"),
    [
        ({"leaves": [{"name": "a"}, {"name": 3}]}, "leaves[1].name", "text"),
        ({"leaves": [{}]}, "leaves[0].name", "missing"),
        ({"leaves": [{"name": "a", "colour": 1}]}, "leaves[0].colour", "not known"),
        ({"leaves": {}}, "leaves", "list"),
        ({"by_seed": {"3": [1, True]}}, "by_seed.3[1]", "whole number"),
        ({"by_seed": {"x": []}}, "by_seed", "whole numbers"),
        ({"by_seed": {"3": [2**63]}}, "by_seed.3[0]", "whole number"),
        ({"colour": "green"}, "colour", "red, blue"),
        ({"side": "up"}, "side", "left, right"),
        ({"pair": [1]}, "pair", "list of 2"),
        ({"pair": [1, 2]}, "pair[1]", "text"),
        ({"count": -1}, "count", "at least 0"),
        ({"steps": 0}, "steps", "at least 1"),
        ({"either": 1.5}, "either", "text"),
        ({"more": {"l": {"name": "c", "size": "x"}}}, "more.l.size", "number"),
        ({"inside": [{"leaves": []}]}, "inside[0].by_seed", "missing"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], at: str, reason: str) -> None:
    with pytest.raises(WrongValue, match=reason) as error:
        structure(Tree, plain() | change)
    assert error.value.at == at


def test_the_top_is_named_too() -> None:
    with pytest.raises(WrongValue, match="the top: must be an object"):
        structure(Leaf, [])


def test_what_a_class_refuses_is_named() -> None:
    with pytest.raises(WrongValue, match=r"must be even"):
        structure(Even, {"number": 3})


@dataclass(frozen=True)
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("must be even")
