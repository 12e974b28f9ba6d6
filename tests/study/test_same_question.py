"""Variants are compared only where they answer the same question."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.record import list_records
from fairtrial.results.records import Records
from fairtrial.results.study import read_verdict
from fairtrial.stored import Metrics
from fairtrial.study.artifacts import check_same_scoring
from fairtrial.study.design import Study
from fairtrial.study.run import run_study


@pytest.mark.parametrize("kind", ["word", "character", "bpe"])
def test_lower_case_is_refused_before_anything_is_trained(
    tiny_study: Callable[..., Study], tmp_path: Path, kind: str
) -> None:
    variants = {
        "as it is": {"parts": ["learned"], "tokens.kind": kind},
        "lower": {"parts": ["learned"], "tokens.kind": kind, "tokens.lowercase": True},
    }
    with pytest.raises(BadInput, match="'lower' predicts a text in lower case, 'as it is' the text as it is"):
        run_study(tiny_study(tasks=["lm"], variants=variants), tmp_path / "study", InProcess())
    assert not list(tmp_path.rglob("trial.json"))


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_lower_case_may_help_a_classifier(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    variants = {"as it is": {"parts": ["learned"]}, "lower": {"parts": ["learned"], "tokens.lowercase": True}}
    run_study(tiny_study(variants=variants, seeds=2), tmp_path / "study", InProcess())
    (comparison,) = read_verdict(tmp_path / "study/verdict.json").comparisons
    assert comparison.too_few_seeds, "but nothing else stands against it"


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_hiding_more_words_is_no_gain_with_seeds_of_their_own_either(
    tiny_study: Callable[..., Study], tmp_path: Path
) -> None:
    """Fewer, easier words lower perplexity; counted with their spelling they do not."""
    variants = {
        "all": {"parts": ["learned"], "tokens.min_count": 1},
        "frequent": {"parts": ["learned"], "seeds_from": 100, "tokens.min_count": 8},
    }
    run_study(tiny_study(tasks=["lm"], variants=variants, seeds=5), tmp_path / "study", InProcess())
    task = read_verdict(tmp_path / "study/verdict.json").tasks["lm"]
    for each in task.comparisons:
        assert each.metric.name == "bits per byte"
        assert each.verdict != "better"
    scores = {name: next(iter(found.values()))["all"] for name, found in task.scores.items()}
    known = {name: found.perplexity_without_unknown or 0.0 for name, found in scores.items()}
    assert known["frequent"] < known["all"]  # perplexity alone would call it better
    assert {each.metric for each in task.baseline_comparisons} == {task.metric}
    assert task.metric.name == "bits per byte"
    page = (tmp_path / "study/report.html").read_text()
    assert "Vocabularies differ, so variants are compared by bits per byte" in page
    assert "% of perplexity" not in page
    assert "read each curve by itself" in page
    assert "perplexity without unknown words" not in page
    trials = list(list_records(tmp_path / "study/trials"))
    lines = str(Records(tuple(trials))).splitlines()
    both = re.compile(r"hbush perplexity \d+\.\d \(\d\.\d{3} bits per byte\)")
    assert len([line for line in lines if both.search(line)]) == 10, lines


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_tables_and_page_say_that_scores_are_in_strides(
    tiny_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairtrial.training.tasks.EXACT_BYTES", 0)
    small = {"shape.layers": 1, "shape.width": 16, "shape.hidden": 16, "shape.length": 12}
    settings = small | {"training.duration": "2 steps"}
    run_study(tiny_study(tasks=["lm"], set=settings, seeds=2), tmp_path / "study", InProcess())
    verdict = read_verdict(tmp_path / "study/verdict.json")
    told = "Scored in strides (hbush, obama, wbush): each token sees at least 50% of the length"
    assert told in " ".join(verdict.to_text(every=True).split())
    assert told in (tmp_path / "study/report.html").read_text().split("<h3>Compared with")[0]
    assert told.replace("%", "\\%") in verdict.to_latex()
    tasks = {
        name: replace(task, sets={test: replace(each, context=None) for test, each in task.sets.items()})
        for name, task in verdict.tasks.items()
    }
    assert "strides" not in replace(verdict, tasks=tasks).to_text(every=True), "as with exact scores"


def test_scores_in_strides_are_never_compared_with_exact_ones() -> None:
    exact = SimpleNamespace(folder=Path("old"), result=SimpleNamespace(tests={"test": Metrics(perplexity=9.0)}))
    halved = {"test": Metrics(perplexity=9.1, full_context=0.5)}
    strided = SimpleNamespace(folder=Path("new"), result=SimpleNamespace(tests=halved))
    check_same_scoring([exact, exact])  # type: ignore[list-item]
    check_same_scoring([strided, strided])  # type: ignore[list-item]
    with pytest.raises(BadInput, match=r"'test' was scored at full context in one trial .*\(old, new\)"):
        check_same_scoring([exact, strided])  # type: ignore[list-item]
