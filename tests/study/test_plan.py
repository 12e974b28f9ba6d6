"""Plans tell the truth: lost positions, busy machines, and plugin files only where they are used."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial import environment
from fairtrial.engines import InProcess
from fairtrial.events import StudyEvent, StudyNotice
from fairtrial.record import Record
from fairtrial.results.values import Cost
from fairtrial.results.verdict_tables import cost
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import Plan, calibrate, make_plan
from fairtrial.study.run import position_sentences
from fairtrial.study.tables import design_study
from fairtrial.trial import run_trial
from sampling import cases
from tiny import TINY, make_tiny

PART = '''"""A part of a user's own."""
import fairtrial as ft


@ft.part("fade")
class Fade(ft.Part):
    """Embeddings fade."""

    def score(self, scores, q, k, context):
        return scores * 0.5
'''


def planned(course: Path, home: Path, *variants: str, plugins: tuple[Path, ...] = ()) -> Plan:
    overrides = dict(setting.split("=") for setting in TINY)
    numbers = {name: int(value) for name, value in overrides.items()}
    study = design_study(
        {}, data=str(course), task="lm", variants=list(variants), seeds=2, overrides=numbers, plugins=plugins
    )
    return make_plan(study, StudyFolder(home))


@cases(
    ("variants", "lost"),
    [
        (["learned", "window:size=5", "rope"], "window size=5"),
        (["learned", "swiglu", "window:size=5", "learned+window:size=5"], "swiglu, window size=5"),
        (["learned", "rope", "alibi+swiglu"], ""),
        (["learned", "none"], ""),  # it says so itself
        (["none", "window:size=5"], ""),
    ],
)
def test_a_plan_warns_where_a_variant_drops_the_positions_of_the_baseline(
    variants: list[str], lost: str, course_folder: Path, tmp_path: Path
) -> None:
    told = position_sentences(planned(course_folder, tmp_path / "-".join(variants).replace(":", ""), *variants))
    assert len(told) == bool(lost)
    assert all(f"the baseline has learned positions, {lost} has none" in text for text in told)


def test_a_plugin_file_belongs_to_the_variants_that_use_it(course_folder: Path, tmp_path: Path) -> None:
    mine, dynamic = tmp_path / "mine.py", tmp_path / "dynamic.py"
    mine.write_text(PART)
    dynamic.write_text(PART.replace('"fade"', '"fa" + "de"'))
    for file, users in ((mine, ["fade"]), (dynamic, ["learned", "rope", "fade"])):
        plan = planned(course_folder, tmp_path / "study", "learned", "rope", "fade", plugins=(file,))
        assert [each.name for each in plan.study.variants if each.plugins == (str(file),)] == users


def test_times_say_when_the_machine_was_busy(
    course_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[StudyEvent] = []
    calibrated = []
    for load in (0.5, 3.0):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load * (os.cpu_count() or 1), 0, 0))
        monkeypatch.setattr(environment, "MOST_LOAD", 1.0)
        record: Record = run_trial(make_tiny("lm", course_folder), 0, tmp_path / str(load))
        calibrated.append(next(entry.load for entry in record.clock() if entry.what == "trained"))
        calibrate(planned(course_folder, tmp_path / "s", "learned", "rope"), InProcess(), heard.append, lambda: False)
    assert calibrated == [None, 3.0]
    (text,) = [event.text for event in heard if isinstance(event, StudyNotice) and "busy" in event.text]
    assert "load 3.0 per core" in text


def test_the_table_of_costs_says_whose_times_are_of_a_busy_machine() -> None:
    (task,) = ft.verdict({"old": [[1, 0, 1, 0]] * 5, "new": [[1, 1, 1, 0]] * 5}).tasks.values()
    calm = {name: Cost(seconds_per_step=0.01) for name in ("old", "new")}
    for costs, wanted in (
        (calm, ""),
        (calm | {"new": Cost(seconds_per_step=0.02, load=2.5)}, "while new trained (load 2.5"),
    ):
        table = cost(replace(task, cost=costs))
        assert table is not None
        assert wanted in table.note
        assert bool(table.note) == bool(wanted)
