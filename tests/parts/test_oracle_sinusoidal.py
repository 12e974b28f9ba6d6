"""Sinusoidal positions are the formula of the 2017 paper, at any width."""

from __future__ import annotations

import math

import pytest
import torch

from fairtrial.errors import BadInput
from fairtrial.parts.differential import Differential
from fairtrial.parts.sinusoidal import Sinusoidal, waves
from fairtrial.recipe import Shape
from sampling import cases

WIDTHS = [1, 2, 3, 7, 64]


@cases("width", WIDTHS)
def test_waves_equal_a_loop_over_the_formula(width: int) -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos of the same."""
    positions = torch.tensor([0, 1, 2, 9, 31, 512, 5000])
    found = waves(positions, width)
    assert found.shape == (7, width)
    for row, position in enumerate(positions.tolist()):
        for place in range(width):
            angle = position / 10_000 ** (2 * (place // 2) / width)
            expected = math.cos(angle) if place % 2 else math.sin(angle)
            assert float(found[row, place]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("width", [2, 64])
def test_waves_equal_the_usual_vectorized_code(width: int) -> None:
    positions = torch.arange(100)
    table = torch.zeros(100, width, dtype=torch.float64)
    rates = torch.exp(torch.arange(0, width, 2).double() * (-math.log(10_000.0) / width))
    table[:, 0::2] = torch.sin(positions[:, None] * rates)
    table[:, 1::2] = torch.cos(positions[:, None] * rates)
    torch.testing.assert_close(waves(positions, width), table, atol=1e-12, rtol=0)


@cases("width", WIDTHS)
@cases("sizes", [(11,), (3, 11)])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_they_are_added_to_the_token_whatever_the_leading_shape(
    width: int, sizes: tuple[int, ...], scale: float
) -> None:
    positions = torch.arange(11).expand(sizes)
    x = torch.randn(*sizes, width, generator=torch.Generator().manual_seed(0))
    answer = Sinusoidal(Shape(width=width, heads=1), scale=scale).embed(x, positions)
    assert answer.dtype == x.dtype
    torch.testing.assert_close(answer, x + scale * waves(torch.arange(11), width).float(), atol=1e-6, rtol=0)
    assert (answer - x).abs().max() > 0.5 * scale


@pytest.mark.parametrize("part", [Sinusoidal, Differential])
def test_what_drowns_small_tokens_is_told(part: type[Sinusoidal | Differential]) -> None:
    told = [bool(part(Shape(start=start), scale=scale).notes()) for start in ("small", "torch") for scale in (1.0, 0.1)]
    assert told == [True, False, False, False]
    for scale in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BadInput, match="scale must be positive and finite"):
            part(Shape(), scale=scale)


def test_far_positions_stay_exact_in_float32() -> None:
    """Angles in float32 would be off by more than 0.001 at position 100,000."""
    answer = Sinusoidal(Shape(width=2, heads=1)).embed(torch.zeros(1, 2), torch.tensor([100_000]))
    assert float(answer[0, 0]) == pytest.approx(math.sin(100_000), abs=1e-6)


def test_a_step_is_a_rotation_whatever_the_position() -> None:
    """The paper's reason for waves: position + k is a linear function of position."""
    here, there = waves(torch.arange(50), 64), waves(torch.arange(50) + 7, 64)
    angle = 7 * 10_000 ** (-torch.arange(0, 64, 2).double() / 64)
    sine = here[:, 0::2] * angle.cos() + here[:, 1::2] * angle.sin()
    torch.testing.assert_close(sine, there[:, 0::2], atol=1e-12, rtol=0)
