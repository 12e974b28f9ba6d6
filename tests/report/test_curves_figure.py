"""Curves as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fairtrial.description import Chart
from fairtrial.events import Scored
from fairtrial.record import Record
from fairtrial.report.plots import draw, figure_bytes, our_look
from fairtrial.results.records import record_charts


def written(charts: Sequence[Chart], kind: str) -> bytes:
    with our_look():
        return figure_bytes(draw(charts), kind)


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_every_split_stands_in_both_halves(task: str, finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records[task])
    text = written(record_charts(record), "svg").decode()
    splits = {event.split for event in record.events() if isinstance(event, Scored)}
    assert len(splits) >= 2
    for split in splits:
        assert text.count(f">{split}</text>") == 2
    assert "Accuracy" in text if task == "classify" else "Perplexity" in text
    assert written(record_charts(record), "svg").decode() == text
    assert written(record_charts(record), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("base", [2, 10])
def test_numbers_on_logarithmic_axes_are_digits(base: int) -> None:
    with our_look():
        figure = Figure()
        axes = figure.subplots()
        axes.plot([base**power for power in range(4)], [200, 300, 400, 900])
        axes.set_xscale("log", base=base)
        axes.set_yscale("log")
        drawn = figure_bytes(figure, "svg").decode()
    assert "mathdefault" not in drawn
    assert f">{base**2}<" in drawn
