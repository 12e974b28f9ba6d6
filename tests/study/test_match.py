"""Equal cost and equal tuning: variants at the baseline's number of parameters."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines.job import InProcess
from fairtrial.errors import BadInput
from fairtrial.record import Record
from fairtrial.results.values import Comparison, Matched, MatchSummary, Metric, TaskVerdict, VerdictKind
from fairtrial.results.verdict_tables import equal_cost
from fairtrial.study.design import Study
from fairtrial.study.match import match_sentences
from fairtrial.study.run import run_study
from fairtrial.study.tables import study_from, write_study

GATED = {
    "learned": {"parts": ["learned"]},
    "gated": {"parts": ["learned", "swiglu"]},
    "squared": {"parts": ["learned", "relu-squared"]},
}


@pytest.mark.usefixtures("audits_here")
def test_a_variant_with_more_parameters_is_judged_at_the_baselines_too(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    study = tiny_study(match="parameters", variants=GATED, seeds=2, set={"shape.hidden": 64, **SMALL})
    verdict = run_study(study, tmp_path / "study", InProcess(), on_event=heard)
    assert verdict is not None
    judged = verdict.tasks["classify"]
    assert judged.match is not None
    matched = judged.match.variants
    twin = "gated (same parameters)"
    assert [each.variant for each in judged.comparisons] == ["gated", "squared", twin]
    base, more, same = (judged.cost[name].parameters or 0 for name in ("learned", "gated", twin))
    assert more > 1.05 * base
    assert abs(same / base - 1) < 0.01
    assert matched["gated"].before == pytest.approx(more / base, rel=0.01)  # each seed has a vocabulary of its own
    assert matched["gated"].after == pytest.approx(same / base, rel=0.01)
    assert matched["gated"].field == "shape.hidden"
    assert matched["gated"].original == 64
    record = Record.open(tmp_path / "study/trials/classify" / twin / "seed-1")
    assert record.recipe.shape.hidden == matched["gated"].value < 50
    assert [choice.name for choice in record.recipe.parts] == ["learned", "swiglu"]
    assert matched["squared"] == Matched(1.0)
    (line,) = [each.text for each in verdict.sentences if each.text.startswith("gated has ")]
    assert f"shape.hidden = {matched['gated'].value} instead of 64" in line
    table = equal_cost(judged)
    assert table is not None
    assert table.title == "at equal parameters"
    assert study_from(tomllib.loads(write_study(study))) == study
    assert twin not in (tmp_path / "study/study.toml").read_text()
    heard.told.clear()
    assert run_study(study, tmp_path / "study", InProcess(), on_event=heard) == verdict
    assert {facts["work"] for facts in heard.of("begin")} == set()


SMALL = {
    "shape.layers": 1, "shape.width": 16, "shape.length": 12, "shape.classifier_hidden": 8, "training.batch": 8,
    "training.duration": "12 steps",
}  # fmt: skip


def test_what_equal_parameters_change_is_told() -> None:
    metric = Metric("perplexity", "nats per token", False)
    kinds = {
        "gated": VerdictKind.BETTER,
        "gated (same parameters)": VerdictKind.UNDECIDED,
        "rope": VerdictKind.WORSE,
    }
    comparisons = tuple(
        Comparison(name, "learned", "test", "all", metric, 5, 9, verdict=kind) for name, kind in kinds.items()
    )
    gated = Matched(1.5, 1.001, "gated (same parameters)", "shape.hidden", 200, 300)
    match = MatchSummary("parameters", {"gated": gated, "rope": Matched(1.002)})
    assert match_sentences(TaskVerdict("learned", metric, 0.01, (), {}, {}, comparisons, match=match)) == [
        "gated has +50.0% parameters; with shape.hidden = 200 instead of 300, +0.1%. On test it is better"
        " at the equal recipe, undecided at equal parameters.",
        "rope has +0.2% parameters: it is judged at equal parameters.",
    ]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"match": "flops"}, "match = 'flops' is not known"),
        ({"match": "parameters", "search": {"shape.hidden": [8, 16]}}, "adjusts shape.hidden, which"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(tiny_study: Callable[..., Study], more: Any, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        tiny_study(**more)
    assert told in refused.value.what


def test_a_study_file_of_version_0_2_may_say_untuned(tiny_study: Callable[..., Study]) -> None:
    rates = {"training.learning_rate": [1e-2]}
    assert tiny_study(search=rates | {"untuned": False}) == tiny_study(search=rates)
