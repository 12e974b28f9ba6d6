"""Trainings in several threads of one process: none disturbs another's random numbers or thread settings."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from api_data import SMALL, meet, meeting, reviews_of

import fairtrial as ft
from fairtrial.model import layers
from fairtrial.model.part import build_parts
from fairtrial.recipe import Shape


class Slow(ft.Part):
    """Waits for others between two draws from torch's global generator."""

    def __init__(self, shape: Any) -> None:
        super().__init__(shape)
        first = torch.randn(shape.heads, 1, 1)
        meet()
        self.weight = torch.nn.Parameter(first + torch.randn(shape.heads, 1, 1))

    def bias(self, context: Any) -> torch.Tensor:
        return self.weight * context.distance


def build(seed: int) -> list[float]:
    part = build_parts([Slow.choice()], Shape(heads=4), seed)["slow"]
    return part.weight.flatten().tolist()


def test_parts_that_are_built_in_several_threads_draw_their_own_numbers(
    plugins_leave: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    Slow.choice()
    alone = [build(seed) for seed in (0, 1, 2)]
    monkeypatch.setattr(layers, "_turns", meeting)
    monkeypatch.setattr(meeting, "arrived", 0)
    monkeypatch.setattr(meeting, "expected", 3)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(build, (0, 1, 2))) == alone


def test_trainings_in_several_threads_give_what_they_give_alone(
    tmp_path: Path, plugins_leave: Callable[[], None]
) -> None:
    def train(folder: str, seed: int) -> str:
        how: dict[str, Any] = {"steps": 4, "dropout": 0.3, "seed": seed, "out": tmp_path / folder / f"seed-{seed}"}
        run = ft.train("classify", reviews_of(), parts=["learned", Slow], **how, **SMALL)
        return str(run.record.result.model_sha256)

    alone = [train("alone", seed) for seed in (0, 1, 2)]
    state = torch.get_rng_state()
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda seed: train("together", seed), (0, 1, 2)))
    assert together == alone
    assert torch.equal(torch.get_rng_state(), state), "the caller's own random numbers are not touched"
