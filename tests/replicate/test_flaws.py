"""The reports' code, repeated: the passport catches it, and lets pass what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fairtrial.model.network import LanguageModel
from fairtrial.passport.finding import FAIL
from fairtrial.passport.run import audit
from fairtrial.passport.subject import Plan, subject_of
from fairtrial.recipe import PartChoice, Shape
from fairtrial.replicate.alone import scored
from fairtrial.strangers import load_files

REPORTS = Path(__file__).parents[2] / "examples" / "reports"
SMALL = Shape(layers=2, heads=2, width=16, hidden=16, length=12, classifier_hidden=8, dropout=0.0)
CHECKS = ["M3", "M4", "M6", "M7", "M7s", "M8", "M9"]


@pytest.fixture(autouse=True)
def brought(strangers_leave: Callable[[], None]) -> None:
    load_files([REPORTS / "r2_flaws.py", REPORTS / "r4_flaws.py"])


def red(task: str, *names: str) -> set[str]:
    choices = tuple(PartChoice(name=name) for name in names)
    findings = audit(subject_of(Plan(task, SMALL, choices)), only=CHECKS)
    return {each.id for each in findings if each.verdict == FAIL and each.level == "red"}


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_what_report_r2_coded_is_red_and_what_it_meant_is_not(task: str) -> None:
    assert red(task, "rope-by-content") == {"M8", "M9"}
    assert {"M7", "M7s"} <= red(task, "alibi-by-row")
    assert {"M7", "M7s"} <= red(task, "learned", "rope-by-content", "alibi-by-row")
    assert red(task, "alibi", "rope") == set()


def test_what_report_r4_coded_sees_the_future_and_its_batch_and_what_it_meant_does_not() -> None:
    assert {"M3", "M4", "M7", "M7s"} <= red("lm", "learned", "reweight-by-batch")
    assert red("lm", "learned", "reweight-causal") == set()


def test_only_the_flawed_model_answers_otherwise_when_a_sentence_comes_alone() -> None:
    dice = np.random.default_rng(0)
    rows = [dice.integers(1, 30, size=dice.integers(3, 12)) for _ in range(20)]

    def ways(*names: str) -> tuple[float, float]:
        network = LanguageModel(SMALL, [PartChoice(name=name) for name in names], 30).eval()
        return scored(network, rows, 8, 0), scored(network, rows, 1, 0)

    together, alone = ways("learned")
    assert together == pytest.approx(alone, rel=1e-5)
    together, alone = ways("learned", "reweight-by-batch")
    assert together != pytest.approx(alone, rel=1e-5)
