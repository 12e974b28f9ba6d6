"""Results in words and tables: every number stands where it should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fairtrial.description import Curve
from fairtrial.events import Scored, Stepped
from fairtrial.formatting import format_parts, format_time
from fairtrial.recipe import PartChoice, Recipe
from fairtrial.record import Record
from fairtrial.report.render import as_text, plain, render
from fairtrial.results.records import (
    curve_table,
    curves_of,
    describe_record,
    describe_result,
    describe_trial,
    learning_notes,
    loss_curve,
    score_table,
    trained_seconds,
)
from fairtrial.stored import BaselineScores, ClockEntry, Metrics, TrialResult
from fairtrial.typed import structure

REST = {"task": "classify", "parameters": 1, "steps_per_epoch": 120, "train": {}, "model_sha256": ""}
CLASSIFY = {
    "kept_step": 1200, "steps": 3456, "kept": "best", "seed": 7, "test_watched": False, "test_reads": {"test": 1},
    "picked_on_test": {},
    "validation": {"accuracy": 0.9, "interval": [0.85, 0.95], "macro_f1": 0.89, "items": 210,
                   "confusion": [[100, 5], [16, 89]]},
    "tests": {"test": {"accuracy": 0.8614, "interval": [0.8338, 0.8857], "macro_f1": 0.8495, "items": 1750,
                       "confusion": [[600, 100, 0], [50, 450, 20], [30, 43, 457]]}},
}  # fmt: skip
LM = {
    "perplexity": 123.45, "interval": [100.04, 150.06], "bits_per_byte": 1.5, "unknown_share": 0.123,
    "window_perplexity": 180.0, "tokens": 9876, "perplexity_without_unknown": 110.04,
}  # fmt: skip


def result_of(plain: dict[str, Any]) -> TrialResult:
    return structure(TrialResult, {**REST, **{name: value for name, value in plain.items() if value is not None}})


def test_a_classifiers_result_is_told_with_its_figures() -> None:
    assert describe_result(result_of({**CLASSIFY, "chosen_by": "validation accuracy"}), Recipe()) == [
        "result (weights of step 1,200 of 3,456, chosen by validation accuracy every 120 steps and at the",
        "end; seed 7):",
        "each test set was scored once",
        "",
        "  scored on               accuracy  macro-F1  majority class  items",
        "  -----------------------------------------------------------------",
        "  validation  90.0% [85.0%, 95.0%]     89.0%           50.0%    210",
        "  test        86.1% [83.4%, 88.6%]     85.0%           40.0%  1,750",
        "  95% intervals over test items, of this one seed; other seeds differ, so compare several.",
    ]


def test_who_did_not_learn_is_told_so() -> None:
    one_class = {
        "accuracy": 0.5,
        "interval": [0.4, 0.6],
        "macro_f1": 0.3,
        "items": 100,
        "confusion": [[50, 0], [50, 0]],
    }
    result = {**CLASSIFY, "steps_per_epoch": 4320, "tests": {"test": one_class}}
    assert learning_notes(result_of(result)) == [
        "did not learn: it answers one class only on test",
    ]
    more = result_of({**result, "training_end": "still improving"})  # says so itself
    assert "results may change with longer training" in learning_notes(more)[-1]
    assert len(learning_notes(more)) == 2


def test_a_watched_language_models_result_is_told_with_its_reads() -> None:
    picked = {"obama": {"window_perplexity": 170.04, "step": 300}}
    result = {
        **CLASSIFY, "kept": "last", "validation": None, "tests": {"obama": LM}, "test_watched": True,
        "test_reads": {"obama": 6, "wbush": 6}, "picked_on_test": picked,
    }  # fmt: skip
    assert describe_result(result_of(result), Recipe()) == [
        "result (weights of step 1,200 of 3,456, the last; seed 7):",
        "test watched: each test set was scored 6 times",
        "",
        "  scored on            perplexity  bits per byte  without unknown words  unknown  tokens",
        "  " + 86 * "-",
        "  obama      123.5 [100.0, 150.1]          1.500                  110.0    12.3%   9,876",
        "  95% intervals over test documents, of this one seed; other seeds differ, so compare several.",
        "  Compare models with other vocabularies by bits per byte: they count every byte.",
    ]


def test_time_is_written_as_on_a_clock() -> None:
    expected = {0: "0:00", 59.6: "1:00", 61: "1:01", 3599: "59:59", 3723: "1:02:03"}
    assert {seconds: format_time(seconds) for seconds in expected} == expected


def test_parts_are_spoken_with_their_options() -> None:
    window = PartChoice(name="window", options={"size": 8})
    assert format_parts(Recipe(parts=(PartChoice(name="rope"), window))) == "rope + window (size 8)"
    assert format_parts(Recipe(parts=())) == "none"


def test_time_at_work_leaves_out_breaks_and_a_clock_set_back() -> None:
    moments = [(100, "start"), (110, "save"), (500, "resume"), (505, "save"), (400, "trained"), (407, "end")]
    assert trained_seconds([ClockEntry(step=0, time=time, what=what) for time, what in moments]) == 22
    assert trained_seconds([]) == 0


def test_curves_are_gathered_by_split_in_the_order_of_first_sight() -> None:
    events = [
        Scored(0, "train", Metrics(accuracy=0.3)),
        Scored(5, "validation", Metrics(accuracy=0.4)),
        Stepped(5, 1.0, 0.1),
        Scored(5, "train", Metrics(accuracy=0.5)),
    ]
    train = Curve("train", "accuracy", ((0, 0.3), (5, 0.5)))
    assert curves_of(events) == [train, Curve("validation", "accuracy", ((5, 0.4),))]


def test_the_loss_curve_averages_neighbours() -> None:
    events = [Stepped(step, float(step), 0.1) for step in range(1, 8)]
    assert loss_curve(events, most=3).points == ((3, 2.0), (6, 5.0))  # a last point of one batch would only be noise
    assert loss_curve([*events, Stepped(8, 8.0, 0.1)], most=3).points[-1] == (8, 7.5)
    assert loss_curve([]).points == ()


def test_a_long_curve_is_told_in_21_rows_with_its_ends() -> None:
    points = tuple((step, step / 1000) for step in range(0, 1001, 10))
    curves = [Curve("train", "accuracy", points), Curve("validation", "accuracy", points[::2])]
    rows = curve_table(curves).rows
    steps = [int(row[0].text) for row in rows]
    assert len(steps) == 21
    assert (steps[0], steps[-1]) == (0, 1000)
    assert [cell.text for cell in rows[-1]] == ["1000", "100.0%", "100.0%"]
    assert not curve_table([]).rows


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert plain("a\x1b[2Jb\nc\x9bd grün ▁") == "a�[2Jb�c�d grün ▁"


@pytest.mark.parametrize("name", ["classify", "lm"])
def test_a_records_lines_tell_its_result(name: str, finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records[name])
    text = render(describe_record(record), "terminal")
    assert all(sentence in text for sentence in describe_trial(record.result, record.recipe).sentences)
    assert re.search(rf"size +{record.result.parameters:,} parameters", text)
    assert f"recipe {record.trial.recipe}, code {record.trial.code}" in text
    assert ("confusion on test (rows: true class, columns: guessed class)" in text) == (name == "classify")
    assert ("perplexity, non-overlapping windows" in text) == (name == "lm")
    assert "not finished" not in text


def test_the_confusion_table_counts_every_test_item(finished_records: dict[str, Path]) -> None:
    lines = render(describe_record(Record.open(finished_records["classify"])), "terminal").splitlines()
    head = next(at for at, line in enumerate(lines) if "confusion on test" in line)
    rows = [line.split() for line in lines[head + 3 : head + 6]]
    assert [" ".join(row[:-3]) for row in rows] == ["Obama", "W. Bush", "H. W. Bush"]
    assert sum(int(count) for row in rows for count in row[-3:]) == 30


def test_an_unfinished_records_lines_say_how_to_continue(finished_records: dict[str, Path]) -> None:
    text = render(describe_record(Record.open(finished_records["unfinished"])), "terminal")
    command = f"fairtrial train --resume {finished_records['unfinished']}"
    assert f"not finished; continue with: {command}" in " ".join(text.split())
    assert "result (" not in text


def test_a_language_models_result_fits_the_width_of_a_terminal_whatever_its_figures() -> None:
    large = {**LM, "perplexity": 12345.6, "interval": [11111.1, 13333.3], "tokens": 1_234_567, "full_context": 0.5}
    subsets = {subset: {"perplexity": 2345.6} for subset in ("all", "clean", "contaminated")}
    result = result_of({**CLASSIFY, "validation": large, "tests": {"test": large}})
    plain = {"name": "Kneser-Ney trigram", "baseline": {"test": subsets}, "trial": {"test": {"clean": large}}}
    baseline = structure(BaselineScores, plain)
    lines = as_text(score_table(result, baseline), width=100)
    assert max(map(len, lines)) <= 100
    assert describe_result(result, Recipe(), baseline)[-len(lines) :] == lines  # also where it is piped
    row = next(line for line in lines if line.startswith("  test, clean items"))
    assert row.split() == "test, clean items 12345.6 [11111.1, 13333.3] 2345.6 1.500 110.0 12.3% 1,234,567".split()
    assert "Scored in strides (validation, test)" in " ".join(lines)
    assert not any("..." in line or "…" in line for line in as_text(score_table(result, baseline), width=80))
