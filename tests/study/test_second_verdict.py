"""Every verdict of a study's folder is remembered; a second one on other data or another question claims nothing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.results.records import plan_lines
from fairtrial.results.study import StudyFiles
from fairtrial.results.values import ReasonCode, Rule, Verdict, VerdictKind
from fairtrial.statistics.outcomes import CLEAN, EXACT
from fairtrial.stored import FORMAT, PastLook, StoredPlan, read_document, write_document
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import EvalSets, make_plan
from fairtrial.study.run import Options, run_study, uncorrected
from fairtrial.study.tables import study_from, write_study


def judged(study: Study, folder: Path, rule: Rule = Rule.FIXED) -> Verdict:
    verdict = run_study(study, folder, InProcess(), Options(rule=rule))
    assert verdict is not None
    return verdict


def exploratory(verdict: Verdict) -> bool:
    """All of it, or nothing."""
    (answer,) = {each.judged_before for each in verdict.comparisons}
    return answer


def test_the_same_verdict_again_is_no_second_look(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    before = StudyFiles.open(folder).verdict
    again = judged(study, folder)
    assert again.sentences == before.sentences
    assert len(StudyFolder(folder).read_plan().looks) == 1


def test_added_seeds_make_a_verdict_exploratory_and_going_back_does_not(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    more = judged(study.with_seeds(7), folder)
    assert exploratory(more)
    for each in more.comparisons:
        assert each.verdict == VerdictKind.UNDECIDED
        assert [reason.code for reason in each.reasons] == [ReasonCode.EARLIER_LOOK]
        assert each.q is not None
        assert each.p_adjusted is None
    line = next(line for line in more.text if "judged before" in line)
    assert "--open-ended" in line
    assert "(exploratory)" in more.to_text()
    assert exploratory(judged(study.with_seeds(7), folder))  # however often it is asked
    assert not exploratory(judged(study, folder))  # the first verdict stands
    assert len(StudyFolder(folder).read_plan().looks) == 2


def test_another_baseline_margin_or_endpoint_is_a_second_look(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    changes: list[dict[str, object]] = [
        {"baseline": "again"},
        {"least_difference": {"accuracy": 5.0, "perplexity": 0.01}},
        {"endpoint": {"lm": "obama"}},
    ]
    for change in changes:
        verdict = judged(replace(study, **change), folder)
        assert exploratory(verdict)
        assert any("this study was judged before" in line for line in verdict.text)


def look(rule: Rule = Rule.FIXED, outcomes: str = "", **seeds: int) -> PastLook:
    digest = outcomes or str(sorted(seeds.items()))
    return PastLook(baseline="a", seeds={"lm": seeds}, margins={"perplexity": 0.01}, rule=rule, outcomes=digest)


def test_variants_that_are_added_removed_or_renamed_are_another_question() -> None:
    first = look(a=5, b=5, c=5)
    for now in (look(a=5, b=5), look(a=5, b=5, c=5, d=5), look(a=5, b=5, e=5), look(a=5, b=5, c=5, outcomes="x")):
        assert uncorrected([first], now) is first
    assert uncorrected([first], first) is None
    planned = [look(Rule.UNTIL_CLEAR, a=count, b=5) for count in (5, 10, 20)]
    assert uncorrected(planned[:2], planned[2]) is None
    assert uncorrected(planned[:1], look(a=10, b=5)) is planned[0]  # without the rule
    assert uncorrected([look(a=5, b=5)], planned[1]) is not None  # a verdict at 5% came before the planned looks


def test_looks_of_version_0_2_were_numbers_of_seeds(tmp_path: Path) -> None:
    old = {"format": FORMAT - 1, "tasks": ["lm"], "variants": ["a", "b"], "seeds": [0, 1], "trials": [], "looks": [6]}
    write_document(tmp_path / "plan.json", {key: value for key, value in old.items() if key != "format"})
    stored = json.loads((tmp_path / "plan.json").read_text()) | {"format": FORMAT - 1}
    (tmp_path / "plan.json").write_text(json.dumps(stored))
    (past,) = read_document(tmp_path / "plan.json", StoredPlan, edited=True).looks
    assert past.seeds == {"lm": {"a": 6, "b": 6}}
    assert uncorrected([past], look(a=6, b=6)) is None
    assert uncorrected([past], look(a=7, b=7)) is past


def test_open_ended_may_be_judged_again_with_more_seeds(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    first, second = (judged(study.with_seeds(count), folder, Rule.OPEN_ENDED) for count in (3, 7))
    assert not exploratory(first)
    assert not exploratory(second)
    assert second.open_ended
    assert {each.family for each in second.comparisons} == {2}
    assert {each.seeds for each in second.comparisons} == {7}
    assert exploratory(judged(study.with_seeds(7), folder))  # by the usual rule it is not the first verdict


def test_the_endpoint_decides_everywhere(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    (folder / "plan.json").unlink()
    chosen = replace(study, endpoint={"lm": "obama"})
    assert study_from(tomllib.loads(write_study(chosen))).endpoint == {"lm": "obama"}
    verdict = judged(chosen, folder)
    (found,) = verdict.tasks["lm"].comparisons
    assert found.test_set == "obama"
    assert not found.judged_before
    others = {each.test_set for each in verdict.tasks["lm"].exploratory}
    assert others >= {"wbush", "hbush"}
    assert all(each.q is not None for each in verdict.tasks["lm"].exploratory if each.p is not None)
    stored = StudyFiles.open(folder).verdict
    assert [each.test_set for each in stored.tasks["lm"].comparisons] == ["obama"]
    assert [each.test_set for each in stored.comparisons if "obama" in each.test_set]
    assert not [each.test_set for each in stored.comparisons if "wbush" in each.test_set]
    assert any("endpoint, lm: obama decides" in line for line in plan_lines(StudyFolder(folder).read_plan().summary))


def test_an_unknown_endpoint_is_refused_before_any_work(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"endpoint = 'obma': lm has no such test set; did you mean 'obama'"):
        make_plan(tiny_study(tasks=["lm"], endpoint="obma"), StudyFolder(tmp_path / "study"))
    with pytest.raises(BadInput, match="must name a test set"):
        tiny_study(endpoint=3)
    assert tiny_study(tasks=["classify", "lm"], endpoint={"lm": "obama"}).endpoint == {"lm": "obama"}


def test_a_plan_counts_the_units_that_the_verdict_will_use() -> None:
    sets = EvalSets({}, (), {"one": 100, "two": 300}, {"two": tuple(item // 10 for item in range(300))})
    assert sets.units("one") == (100, 1)
    assert sets.units("two")[0] == pytest.approx(30)  # groups
    assert sets.units()[0] == pytest.approx(4 / (1 / 100 + 1 / 30))  # worth less than their sum
    copied = {"one": [EXACT] * 60 + [CLEAN] * 40, "two": [CLEAN] * 300}
    assert sets.units("one", copied)[0] == pytest.approx(40)
    assert sets.units("one", {"one": [EXACT] + [CLEAN] * 99})[0] == pytest.approx(100)  # few enough for all


def test_what_is_decided_at_a_look_is_trained_no_further(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    plan = make_plan(tiny_study(variants=["learned", "rope", "alibi"]), StudyFolder(tmp_path / "study"))
    plan = replace(plan, study=plan.study.with_seeds(10), settled={("classify", "rope"): 5})
    seeds = {
        name: [trial.seed for trial in plan.trials() if trial.variant.name == name] for name in plan.recipes["classify"]
    }
    assert seeds == {"learned": list(range(10)), "rope": list(range(5)), "alibi": list(range(10))}
