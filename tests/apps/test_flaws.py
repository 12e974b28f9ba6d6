"""The reports' code, repeated: the passport catches it, and lets pass what was meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fairtrial.apps import reports
from fairtrial.apps.reports.measures import sentence_means, sentence_nll
from fairtrial.audit.run import audit
from fairtrial.audit.subject import Plan, subject_of
from fairtrial.finding import FAIL
from fairtrial.model.network import LanguageModel
from fairtrial.plugins import load_files
from fairtrial.recipe import PartChoice, Shape

REPORTS = Path(reports.__file__).parent / "studies"
SMALL = Shape(layers=2, heads=2, width=16, hidden=16, length=12, classifier_hidden=8, dropout=0.0)
CHECKS = ["M3", "M4", "M6", "M7", "M7s", "M8", "M9"]


@pytest.fixture(autouse=True)
def brought(plugins_leave: Callable[[], None]) -> None:
    load_files([REPORTS / "r0_flaws.py", REPORTS / "r2_flaws.py", REPORTS / "r4_flaws.py"])


def red(task: str, *names: str) -> set[str]:
    choices = tuple(PartChoice(name=name) for name in names)
    findings = audit(subject_of(Plan(task, SMALL, choices)), only=CHECKS)
    return {each.id for each in findings if each.verdict == FAIL and each.level == "red"}


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_what_report_r0_coded_is_no_pre_norm_block_and_what_it_meant_is(task: str) -> None:
    def failed(*names: str) -> set[str]:
        subject = subject_of(Plan(task, SMALL, tuple(PartChoice(name=name) for name in names)))
        return {each.id for each in audit(subject, only=[*CHECKS, "M11"]) if each.verdict == FAIL}

    assert failed("learned", "normed-stream") == {"M11"}
    assert failed("learned") == set()


def test_what_report_r0_coded_is_a_post_norm_network() -> None:
    """The same weights, one norm later."""
    coded = LanguageModel(SMALL, [PartChoice(name="normed-stream")], 30, seed=3).double()
    post = LanguageModel(replace(SMALL, norm_place="post"), [], 30, seed=3).double()
    rng = torch.Generator().manual_seed(0)
    for weight in coded.parameters():
        weight.data.add_(torch.randn(weight.shape, generator=rng, dtype=weight.dtype), alpha=0.1)
    weights = coded.state_dict()
    norms = [name for name in weights if "norm" in name]
    for place in ("weight", "bias"):
        before = [name for name in norms if name.endswith(place)]  # a block's two, the next one's, ..., the last
        behind = [f"body.norm.{place}", *(name for name in before if name != f"body.norm.{place}")]
        moved = {new: weights[old].clone() for new, old in zip(behind, before, strict=True)}
        weights |= moved
    post.load_state_dict(weights)
    ids = torch.randint(1, 30, (3, 9), generator=rng)
    torch.testing.assert_close(coded(ids), post(ids), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_what_report_r2_coded_is_red_and_what_it_meant_is_not(task: str) -> None:
    assert red(task, "rope-by-content") == {"M8", "M9"}
    assert {"M7", "M7s"} <= red(task, "alibi-by-row")
    assert {"M7", "M7s"} <= red(task, "learned", "rope-by-content", "alibi-by-row")
    assert red(task, "alibi", "rope") == set()


def test_what_report_r4_coded_sees_the_future_and_its_batch_and_what_it_meant_does_not() -> None:
    assert {"M3", "M4", "M7", "M7s"} <= red("lm", "learned", "reweight-by-batch")
    assert red("lm", "learned", "reweight-causal") == set()


def test_only_the_flawed_model_changes_its_score_when_a_sentence_comes_alone() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 30, size=rng.integers(3, 12)) for _ in range(20)]

    def ways(*names: str) -> tuple[float, float]:
        network = LanguageModel(SMALL, [PartChoice(name=name) for name in names], 30).eval()
        in_batches, alone = (sentence_means(*sentence_nll(network, rows, size, 0))[0] for size in (8, 1))
        return in_batches, alone

    together, alone = ways("learned")
    assert together == pytest.approx(alone, rel=1e-5)
    together, alone = ways("learned", "reweight-by-batch")
    assert together != pytest.approx(alone, rel=1e-5)
