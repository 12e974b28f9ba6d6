"""What the reports publish and claim, and the studies that retry it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.apps.reports import published
from fairtrial.apps.reports.claims import DECIDERS
from fairtrial.apps.reports.evidence import with_validated
from fairtrial.apps.reports.published import (
    REPORTS,
    all_studies,
    chosen_reports,
    claims,
    counts,
    figures,
    studies_in,
    studies_of,
)
from fairtrial.apps.reports.run import QUICK, at_hand
from fairtrial.errors import BadInput
from fairtrial.study.design import recipe_of

ROOT = Path(__file__).parents[2]


def test_every_claim_and_every_figure_has_trials_that_decide_it() -> None:
    known = {(key, variant.name) for key, study in all_studies().items() for variant in study.variants}
    needs = [need for claim in claims() for need in claim.needs] + [(each.study, each.variant) for each in figures()]
    assert set(needs) <= known
    assert {claim.rule for claim in claims()} <= DECIDERS.keys()
    assert {each.report for each in (*claims(), *figures(), *counts())} <= set(REPORTS)
    assert len({claim.id for claim in claims()}) == len(claims())


def test_every_report_is_a_study_that_stands_alone() -> None:
    from fairtrial.study.design import load_study, study_from

    paths = sorted((ROOT / "src" / "fairtrial" / "apps" / "reports" / "studies").glob("r*.toml"))
    assert {f"{report}.toml" for report in REPORTS} <= {path.name for path in paths}
    for path in paths:
        study = study_from(load_study(path))
        assert len(study.variants) > 1
        assert len(study.seeds) >= 5
        for task in study.tasks:
            for variant in study.variants:
                assert recipe_of(study, task, variant).task == task
                assert all(Path(name).is_file() for name in variant.plugins)


def test_trials_of_one_setting_are_run_once_for_all_reports() -> None:
    studies = studies_of(REPORTS)
    assert [variant.name for variant in studies["speeches-lm"].variants].count("learned") == 1
    assert {each.name for each in studies["speeches-lm"].variants} > {"learned", "window 8", "sinusoidal"}


def test_one_report_runs_only_what_it_needs() -> None:
    studies = studies_of(("r1",))
    assert {key: [each.name for each in study.variants] for key, study in studies.items()} == {
        "speeches-classify": ["learned"],
        "speeches-lm": ["learned", "window 8"],
    }


def test_each_study_that_holds_nothing_back_has_a_validated_counterpart() -> None:
    studies = studies_of(REPORTS)
    both = with_validated(studies)
    assert both.keys() - studies.keys() == {f"{key}-chosen" for key in ("lm1b-lm", "speeches-classify", "speeches-lm")}
    for key in both.keys() - studies.keys():
        own, validated = studies[key.removesuffix("-chosen")], both[key]
        (task,) = validated.tasks
        recipe, meant = (recipe_of(each, task, each.variant(each.baseline)) for each in (validated, own))
        assert (recipe.data.validation, recipe.training.keep, recipe.scoring.watch_test) == (0.1, "best", False)
        assert (meant.data.validation, meant.training.keep) == (0.0, "last")
        assert (recipe.shape, recipe.training.duration) == (meant.shape, meant.training.duration)
        names = {each.name for each in validated.variants}
        assert not names & {claim.as_coded for claim in claims()}
        needed = {each.variant for each in figures() if each.study == own.name} - {c.as_coded for c in claims()}
        assert needed <= names <= {each.name for each in own.variants}
    assert [each.name for each in with_validated(studies_of(("r1",)))["speeches-lm-chosen"].variants] == [
        "learned",
        "window 8",
    ]


def test_studies_that_are_joined_agree_in_their_setting_and_shared_variants() -> None:
    for path in (Path(published.__file__).parent / "studies").glob("r*.toml"):
        for key, study in studies_in(path).items():
            joined = all_studies()[key]
            for name in ("tasks", "recipes", "settings", "task_settings", "baseline", "search", "seeds"):
                assert getattr(study, name) == getattr(joined, name), (path.name, name)
            assert all(variant in joined.variants for variant in study.variants)


def test_an_unknown_report_is_refused_with_the_known_ones() -> None:
    assert chosen_reports(["r3", "r1"]) == ("r1", "r3")
    assert chosen_reports([]) == REPORTS
    with pytest.raises(BadInput, match="no report is called 'r9'"):
        chosen_reports(["r9"])


def test_studies_whose_data_are_not_there_are_left_out_with_a_reason(course_folder: Path, tmp_path: Path) -> None:
    studies = studies_of(REPORTS)
    selection = at_hand(studies, course_folder, seeds=7)  # the speeches themselves
    assert selection.studies.keys() == {"speeches-classify", "speeches-lm"}
    assert {len(study.seeds) for study in selection.studies.values()} == {7}
    assert [line.split(":")[0] for line in selection.left_out] == ["sst2-classify-tuned, sst2-classify", "lm1b-lm"]
    both = at_hand(with_validated(studies), course_folder)
    assert [line.split(":")[0] for line in both.left_out][1] == "lm1b-lm, lm1b-lm-chosen"  # one reason, given once
    (tmp_path / "data" / "lm1b").mkdir(parents=True)
    (tmp_path / "data" / "sst2").mkdir()
    assert at_hand(studies, tmp_path / "data").studies.keys() == {"lm1b-lm"}
    tuned = at_hand(studies, tmp_path / "data", fine_tuning=True).studies
    assert tuned.keys() == {"lm1b-lm", "sst2-classify", "sst2-classify-tuned"}
    with pytest.raises(BadInput, match="nothing can be run"):
        at_hand(studies, tmp_path)
    with pytest.raises(BadInput, match="is missing"):
        at_hand(studies, None)


def test_a_quick_look_needs_no_data_and_is_small() -> None:
    selection = at_hand(studies_of(REPORTS), None, quick=True)
    assert selection.studies.keys() == {"speeches-classify", "speeches-lm", "lm1b-lm"}
    for study in selection.studies.values():
        recipe = recipe_of(study, study.tasks[0], study.variants[0])
        assert recipe.data.source == "sotu"
        assert recipe.shape.layers == QUICK["shape.layers"]
