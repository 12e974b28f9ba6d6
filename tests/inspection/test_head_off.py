"""A head that is off: the same as zeros before the merge, for every part; nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.inspection.heads import head_off
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.recipe import PartChoice, Shape
from sampling import cases

SHAPE = Shape(layers=2, heads=3, width=24, hidden=20, length=16, dropout=0.0, qkv_bias=True, start="torch")


@contextmanager
def zeros_before_the_merge(network: Any, layer: int, head: int) -> Iterator[None]:
    """Another way to the same end: what attention gives is caught, and one head of it emptied."""
    attention = network.body.blocks[layer].attention

    def emptied(way: Any) -> Any:
        def call(*given: Any) -> torch.Tensor:
            heads = way(*given).clone()
            heads[:, head] = 0.0
            return heads

        return call

    attention.attend, attention.attend_fast = emptied(attention.attend), emptied(attention.attend_fast)
    try:
        yield
    finally:
        del attention.attend, attention.attend_fast


@cases(
    ("name", "kind"),
    [("learned", LanguageModel), ("disentangled", LanguageModel), ("window", Classifier), ("shuffle", LanguageModel),
     ("reweight", Classifier), ("shift", Classifier), ("pool-attention", Classifier), ("multi-query", LanguageModel),
     ("value-residual", Classifier), ("shaw", LanguageModel), ("differential", Classifier)],
)  # fmt: skip
@torch.no_grad()
def test_a_head_without_values_is_a_head_that_gives_zeros(name: str, kind: Any) -> None:
    classes = (3,) if kind is Classifier else ()
    network = kind(SHAPE, [PartChoice(name=name)], 50, *classes, seed=2).double().eval()
    for parameter in network.parameters():
        parameter.add_(0.1)  # where biases start at zero, they must count all the same
    ids, lengths = torch.arange(20).view(2, 10), torch.tensor([10, 7])
    whole = network(ids, lengths)
    for layer, head in ((0, 0), (1, 2)):
        with head_off(network, layer, head):
            ours = network(ids, lengths)
        with zeros_before_the_merge(network, layer, head):
            theirs = network(ids, lengths)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
        assert not torch.allclose(ours, whole, rtol=0, atol=1e-9)  # the head did something
    assert torch.equal(network(ids, lengths), whole)


def test_a_head_comes_back_after_an_error() -> None:
    network = LanguageModel(SHAPE, [], 50, seed=2)

    def stopped_by_the_user() -> None:
        with head_off(network, 1, 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_by_the_user()
    assert not list(network.body.parts)
