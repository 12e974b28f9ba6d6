"""Curves as one figure."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from fairtrial.description import Chart
from fairtrial.events import Scored
from fairtrial.record import Record
from fairtrial.report.plots import draw, figure_bytes, our_look
from fairtrial.results.records import Curves, record_charts


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


def test_every_command_that_judges_or_shows_draws_one_file(
    fairtrial: Callable[..., Any], finished_records: dict[str, Path], tmp_path: Path
) -> None:
    table = tmp_path / "runs.csv"
    scores = {"base": 0.80, "up": 0.90, "down": 0.70, "same": 0.80}
    rows = [f"{name},{seed},{score + seed / 9999}" for name, score in scores.items() for seed in range(6)]
    table.write_text("\n".join(["variant,seed,accuracy", *rows]))
    record = finished_records["classify"]
    text = "the first sentence of a person"
    for words in (
        ("verdict", table),
        ("power", "--detect", 2),
        ("show", record),
        ("show", record, finished_records["lm"]),
        ("look", record, text),
        ("look", record, text, "--layer", 0, "--head", 1),
    ):
        figure = tmp_path / "figure.svg"
        assert f"figure: {figure}" in fairtrial(*words, "--figure", figure).out
        drawn = figure.read_text()
        for verdict in ("better", "worse", "equivalent", "undecided", "not comparable"):
            assert (f">{verdict}</text>" in drawn) == (words[0] == "verdict")
        for head in (0, 1):  # before and after
            wanted = words[0] == "look" and ("--head" not in words or head == 1)
            assert len(re.findall(rf"layer 0, head {head}, (untrained|trained)", drawn)) == 2 * wanted
        figure.unlink()
    taken = fairtrial("study", "--variants", "none", "learned", "--dry-run", "--figure", tmp_path / "x.png")
    assert "there is no verdict to draw" in taken.err
    wrong = fairtrial("power", "--figure", tmp_path / "x.bmp")
    assert (wrong.code, wrong.out) == (2, ""), "refused before anything is worked out"


def test_curves_are_a_table_with_every_step(fairtrial: Callable[..., Any], finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records["lm"])
    scored = [event for event in record.events() if isinstance(event, Scored)]
    known = {
        (each.step, each.split): (each.metrics.loss, each.metrics.figure(each.metrics.headline)) for each in scored
    }
    rows = Curves(record).rows()
    assert {(row["step"], row["split"]): (row["loss"], row["score"]) for row in rows if row["score"]} == known
    assert {row["split"] for row in rows if row["score"] is None} == {"training batches"}
    assert Curves(record).to_csv().splitlines()[0] == "step,split,loss,score"
    shown = fairtrial("show", record.folder, "--format", "csv").out.split("\n\n")
    (table,) = (part for part in shown if part.startswith("step,"))
    read = list(csv.DictReader(table.splitlines()))
    for (step, split), (loss, score) in known.items():
        (own,) = (row for row in read if row["step"] == str(step))
        assert (float(own[f"{split} loss"]), float(own[f"{split} perplexity"])) == (loss, score)
    assert r"\begin{tabular}" in fairtrial("show", record.folder, "--format", "latex").out
