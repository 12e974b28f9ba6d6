"""Options of parts have the types that their constructors say."""

from __future__ import annotations

import pytest
import torch

import fairtrial.parts  # noqa: F401
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier
from fairtrial.model.part import build_parts
from fairtrial.recipe import PartChoice, Shape
from sampling import cases

SHAPE = Shape(layers=1, width=16, heads=2, length=12, hidden=8, dropout=0.0)


@cases(
    ("name", "option", "value"),
    [("window", "size", 2.5), ("window", "size", "8"), ("window", "size", True), ("shuffle", "every_step", "x"),
     ("rope", "base", "x"), ("alibi", "slope", [1]), ("disentangled", "furthest", 1.5)],
)  # fmt: skip
def test_a_wrong_type_is_refused_by_name(name: str, option: str, value: object) -> None:
    with pytest.raises(BadInput, match=f"part '{name}': {option} = "):
        build_parts([PartChoice(name=name, options={option: value})], SHAPE, 0)


@cases(
    ("name", "option", "value"),
    [("window", "size", 3), ("rope", "base", 500), ("rope", "base", 500.0), ("alibi", "slope", 1),
     ("alibi", "slope", None)],
)  # fmt: skip
def test_a_right_type_is_taken(name: str, option: str, value: object) -> None:
    build_parts([PartChoice(name=name, options={option: value})], SHAPE, 0)


def test_the_order_of_parts_does_not_matter_to_scores_and_biases() -> None:
    ids = torch.randint(0, 20, (2, 12), generator=torch.Generator().manual_seed(1))
    names = ("alibi", "disentangled", "t5", "rope")
    one, other = (
        Classifier(SHAPE, [PartChoice(name=name) for name in order], 20, 3).double() for order in (names, names[::-1])
    )
    assert torch.allclose(one(ids), other(ids), rtol=0, atol=1e-12)
