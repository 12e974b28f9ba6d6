"""A whole replication of tiny models: run, answered, shown, gone on with."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from published_numbers import missing

from fairtrial.apps.reports.claims import Found, answer, describe_mean, gaps
from fairtrial.apps.reports.evidence import decide_all, mean_of, our_counts, our_setting, with_validated
from fairtrial.apps.reports.measures import Retried, in_batches, retry_one
from fairtrial.apps.reports.page import counting_table, counting_tables, write_page
from fairtrial.apps.reports.published import REPORTS, Claim, Figure, claims, published, studies_of
from fairtrial.apps.reports.run import Replication, Selection, at_hand, find_answers, read_samples
from fairtrial.apps.series import estimate, planned, run_all
from fairtrial.engines.job import InProcess
from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput
from fairtrial.recipe import Duration
from fairtrial.statistics.outcomes import SetOutcomes
from fairtrial.study.run import Options
from fairtrial.trial import run_trial

SMALL = {
    "shape.layers": 2, "shape.width": 24, "shape.hidden": 16, "shape.length": 12, "shape.classifier_hidden": 8,
    "training.batch": 8, "training.duration": "6 steps", "scoring.curve_every": "3 steps",
    "training.select_every": "2 steps",
}  # fmt: skip


def tiny(folder: Path, *reports: str) -> Selection:
    selection = at_hand(with_validated(studies_of(reports)), folder)
    studies = {key: replace(study, settings={**study.settings, **SMALL}) for key, study in selection.studies.items()}
    return Selection(studies, selection.left_out)


def answered(selection: Selection, out: Path, *reports: str) -> Replication:
    return find_answers(reports, selection, out, lambda text: None)


@pytest.fixture(scope="module")
def replication(tmp_path_factory: pytest.TempPathFactory) -> tuple[Selection, Path]:
    """The trials of report r1 on a small folder in the form of the speeches, without audits and baselines."""
    room = write_data(tmp_path_factory.mktemp("replication"))
    selection, out = tiny(room, "r1"), room / "out"
    plans = estimate(selection, out, InProcess(), lambda kind, facts: None, lambda: False, write=True)
    assert {key: plan["left"] for key, plan in plans.items()} == {
        "speeches-classify": 5, "speeches-lm": 10, "speeches-classify-chosen": 5, "speeches-lm-chosen": 10,
    }  # fmt: skip
    for key, study in selection.studies.items():
        for trial in planned(study, out / key).trials():
            run_trial(trial.recipe, trial.seed, trial.folder)
    return selection, out


def write_data(room: Path) -> Path:
    from course_text import sentence, write_course

    rng = random.Random(2)
    write_course(room / "speeches")
    (room / "lm1b").mkdir()
    for name, rows in (("dev", 90), ("test", 40)):
        lines = [sentence(rng.choice("012"), rng).replace(".", " .") for _ in range(rows)]
        (room / "lm1b" / f"small.{name}.tokens").write_text("\n".join(lines) + "\n")
    return room


def test_a_claim_is_answered_out_of_the_records(replication: tuple[Selection, Path]) -> None:
    (window,) = answered(*replication, "r1").answers
    assert window.claim.id == "r1-window"
    assert window.outcome in ("holds", "does not hold", "inconclusive")
    assert window.decided is not None
    assert window.decided.comparison.items == 36  # 12 sentences of each of three speakers, as one
    assert window.decided.comparison.seeds == 5


def test_figures_are_those_of_the_records(replication: tuple[Selection, Path]) -> None:
    selection, out = replication
    found = answered(selection, out, "r1")
    row = next(row for row in found.retried if row.figure.variant == "window 8" and row.figure.set == "obama")
    records = found.evidences["speeches-lm"].records["window 8"]
    assert row.by_seed == tuple(each.result["tests"]["obama"]["window_perplexity"] for each in records.values())
    picked = next(row for row in found.retried if row.figure.picked_on_test)
    last = next(row for row in found.retried if row.figure.measure == "accuracy" and not row.figure.picked_on_test)
    assert all(best >= end for best, end in zip(picked.by_seed, last.by_seed, strict=True))


def test_honest_figures_are_of_weights_that_were_chosen_on_validation(replication: tuple[Selection, Path]) -> None:
    found = answered(*replication, "r1")
    validated = found.validated["speeches-lm"].records["window 8"]
    assert found.evidences["speeches-lm"].records["window 8"].keys() == validated.keys()
    for record in validated.values():
        assert record.recipe.data.validation == 0.1
        assert record.result["test_reads"] == {"hbush": 1, "obama": 1, "wbush": 1}
        assert record.result["kept_step"] in (2, 4, 6)
    row = next(row for row in found.retried if row.figure.variant == "window 8" and row.figure.set == "obama")
    assert row.honest is not None
    exact = [each.result["tests"]["obama"]["perplexity"] for each in validated.values()]
    assert row.honest["mean"] == pytest.approx(math.exp(sum(map(math.log, exact)) / len(exact)), rel=1e-6)
    (window,) = found.answers
    assert "the weights chosen on it: perplexity" in window.because
    fewer = Selection({key: each for key, each in replication[0].studies.items() if "chosen" not in key}, ())
    assert all(row.honest is None for row in answered(fewer, replication[1], "r1").retried)


def test_the_page_is_whole_and_says_the_same_twice(replication: tuple[Selection, Path], tmp_path: Path) -> None:
    text, pictures = page_of(answered(*replication, "r1"), tmp_path)
    assert len(pictures) == 3
    assert page_of(answered(*replication, "r1"), tmp_path / "again") == (text, pictures)


def test_single_sentences_are_scored_where_the_user_gives_them(replication: tuple[Selection, Path]) -> None:
    """Of any study whose figures ask for them; here of trials that are there."""
    selection, out = replication
    evidence = answered(selection, out, "r1").evidences["speeches-lm"]
    figure = Figure("r4", "speeches-lm", "learned", "weird", "sentence perplexity", 12820.43, other_data=True)
    why = retry_one(figure, evidence, None, {})
    assert isinstance(why, str)
    assert "r4-samples.tsv" in why
    text, kept = "We will build many more green bridges over the old river tonight, my friends.", out / "samples.json"
    said: list[str] = []
    scored = in_batches(evidence, ["learned"], {"weird": text}, kept, said.append)
    found = retry_one(figure, evidence, None, scored)
    assert isinstance(found, Retried)
    assert len(found.by_seed) == len(said) == 5
    assert found.honest is None
    losses = retry_one(replace(figure, measure="sentence loss"), evidence, None, scored)
    assert isinstance(losses, Retried)
    assert [math.exp(loss) for loss in losses.by_seed] == pytest.approx(found.by_seed)
    assert in_batches(evidence, ["learned"], {"weird": text}, kept, said.append) == scored
    assert len(said) == 5  # kept
    in_batches(evidence, ["learned"], {"weird": text + " Thanks."}, kept, said.append)
    assert len(said) == 10  # another sentence


def test_samples_are_read_and_mistakes_are_refused(tmp_path: Path) -> None:
    assert read_samples(tmp_path) == {}
    (tmp_path / "r4-samples.tsv").write_text("normal\tWe came .\r\nlong\t We saw ,\tand left .\n")
    assert read_samples(tmp_path) == {"normal": "We came .", "long": "We saw ,\tand left ."}
    for line in ("odd\tWe came .", "normal We came .", "weird\t "):
        (tmp_path / "r4-samples.tsv").write_text(f"normal\tWe came .\n{line}\n")
        with pytest.raises(BadInput) as refused:
            read_samples(tmp_path)
        assert "r4-samples.tsv:2" in refused.value.what


def test_models_that_count_stand_beside_the_transformers_best_first(replication: tuple[Selection, Path]) -> None:
    evidence = answered(*replication, "r1").evidences["speeches-lm"]
    assert counting_tables(answered(*replication, "r1")) == {}  # nobody has counted yet
    learned = evidence.outcomes.variants["learned"]
    counted = {"counted": with_nll(learned, 2.0), "counted well": with_nll(learned, 0.5)}
    beside = replace(evidence, outcomes=replace(evidence.outcomes, baselines=counted))
    header, *cells = counting_table(beside)
    names = [name for name, *_ in cells]
    assert (names[0], names[-1]) == ("**counted well**", "**counted**")
    assert set(names[1:-1]) == {"learned", "window 8"}
    place = header[1]
    shown = {name: float(first.split(" ")[0].replace(",", "")) for name, first, *_ in cells}
    exact = [record.result["tests"][place]["perplexity"] for record in evidence.records["learned"].values()]
    assert min(exact) * 0.99 <= shown["learned"] <= max(exact) * 1.01
    assert shown["**counted well**"] == pytest.approx(shown["learned"] ** 0.5, rel=0.01)


def with_nll(sets: Mapping[str, SetOutcomes], times: float) -> dict[str, SetOutcomes]:
    return {place: SetOutcomes(each.seeds, {**each.arrays, "nll": each["nll"] * times}) for place, each in sets.items()}


def page_of(found: Replication, folder: Path) -> tuple[str, dict[str, bytes]]:
    page = folder / "five-reports.md"
    text = write_page(found, page, command="fairtrial replicate", quick=False, seconds=61.0, width=2).read_text()
    for each in found.answers:
        assert each.claim.says in text
    pictures = {path.name: path.read_bytes() for path in (folder / "five-reports").iterdir()}
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert sorted(shown) == sorted(f"five-reports/{name}" for name in pictures)
    assert all(content.startswith(b"<?xml") for content in pictures.values())
    assert str(folder) not in text
    return text, pictures


def test_a_page_without_most_trials_still_deals_with_every_published_number(
    replication: tuple[Selection, Path], tmp_path: Path
) -> None:
    found = answered(*replication, *REPORTS)
    text, _ = page_of(found, tmp_path)
    assert not missing(text, published())
    assert {why for figure, why in found.missed if figure.study == "lm1b-lm"} == {
        "the trials that it needs were not run: see what was left out"
    }
    assert all(why in text for _, why in found.missed)
    gone = next(each for each in found.missed if each[0].value == 525.31)
    fewer = replace(found, missed=[each for each in found.missed if each is not gone])
    assert missing(page_of(fewer, tmp_path)[0], published()) == {("r4", 525.31): 1}


def test_points_of_curves_are_the_looks_of_that_moment(replication: tuple[Selection, Path]) -> None:
    evidence = answered(*replication, "r1").evidences["speeches-lm"]
    figure = Figure("r1", "speeches-lm", "learned", "obama", "window perplexity", 375.02, at=Duration(3, "steps"))
    found = retry_one(figure, evidence, None, {})
    assert isinstance(found, Retried)
    looks = [
        [line for line in each.events() if line["event"] == "score"] for each in evidence.records["learned"].values()
    ]
    expected = [
        line["window_perplexity"] for lines in looks for line in lines if (line["step"], line["split"]) == (3, "obama")
    ]
    assert list(found.by_seed) == expected
    assert len(expected) == 5
    assert retry_one(replace(figure, at=Duration(4, "steps")), evidence, None, {}) == "the records store no such score"


def test_parameters_are_counted_as_the_reports_count(replication: tuple[Selection, Path]) -> None:
    evidences = answered(*replication, "r1").evidences
    for evidence in evidences.values():
        shape = evidence.plan.recipes[evidence.task]["learned"].shape
        vocabulary = our_setting("vocabulary", evidence)
        ours = our_counts(evidence)
        assert ours["everything"] == evidence.results("learned")[0]["parameters"]
        assert ours["token embedding"] == vocabulary * shape.width
        assert ours["attention matrices of one layer"] == 4 * shape.width**2
        assert ours["feed-forward matrices of one layer"] == 2 * shape.width * shape.hidden
        layer = ours["attention matrices of one layer"] + ours["feed-forward matrices of one layer"]
        assert ours["matrices"] == ours["token embedding"] + shape.layers * layer
    assert our_setting("training.batch", evidences["speeches-lm"]) == 8


def test_optimizers_are_answered_at_one_rate_and_at_their_own(replication: tuple[Selection, Path]) -> None:
    """A claim of that form: both comparisons are of the same trials, and the answer says so."""
    evidences = answered(*replication, "r1").evidences
    claim = Claim(
        "x", "r4", "", "better", "speeches-lm", "window 8", "learned", one_rate="speeches-lm", setting="theirs"
    )
    decided = decide_all([claim], evidences)
    found = answer(claim, Found(evidences, {}, decided, None))
    assert found.at_one_rate is not None
    assert found.headline.startswith(f"at one learning rate, as the report did it: {found.at_one_rate.outcome}; each")
    assert "The 5 trials of window 8 and learned are the same in both comparisons" in found.because
    assert found.because.index("With one learning rate for all (0.001)") < found.because.index("With each at its own")
    left = answer(replace(claim, study="elsewhere"), Found(evidences, {}, decided, None))
    assert left.outcome == "not run"
    assert "With one learning rate" in left.because


def test_gaps_are_paired_by_seed_where_one_is_missing(replication: tuple[Selection, Path]) -> None:
    evidence = answered(*replication, "r1").evidences["speeches-classify"]
    both = gaps(evidence, "learned")
    assert both.keys() == evidence.records["learned"].keys()
    lacking = replace(
        evidence,
        outcomes=replace(
            evidence.outcomes,
            variants={
                name: {place: each.rows((0, 1, 3, 4)) for place, each in sets.items()}
                for name, sets in evidence.outcomes.variants.items()
            },
        ),
        records={"learned": {seed: each for seed, each in evidence.records["learned"].items() if seed != 2}},
    )
    assert gaps(lacking, "learned") == {seed: gap for seed, gap in both.items() if seed != 2}
    assert "nan" not in describe_mean(mean_of([1.0]), "points")


@pytest.mark.slow
def test_all_reports_are_answered_and_their_flaws_caught(tmp_path: Path, plugins_leave: Callable[[], None]) -> None:
    selection, out = tiny(write_data(tmp_path), *REPORTS), tmp_path / "out"
    assert run_all(selection, out, Processes(2), Options(), lambda kind, facts: None, lambda: False) > 0
    found = answered(selection, out, *REPORTS)
    answers = {each.claim.id: each for each in found.answers}
    assert answers.keys() == {claim.id for claim in claims()}
    run = {name for name, each in answers.items() if each.outcome != "not run"}
    assert answers.keys() - run == {"r4-sgd", "r4-adagrad"}
    caught = {name for name, each in answers.items() if any("passport" in reason for reason in each.unsound)}
    assert caught == {"r2-accuracy", "r2-perplexity", "r2-generalises", "r2-cost", "r4-reweight"}
    ratios = {name: seeds[0][1] / seeds[0][0] for name, seeds in found.alone.items()}
    changed = {name for name, ratio in ratios.items() if abs(ratio - 1) > 1e-4}
    assert "re-weight by batch" in changed
    assert not changed & {"learned", "sinusoidal", "shuffle", "shift", "re-weight causal"}
    text, pictures = page_of(found, tmp_path / "page")
    assert not missing(text, published())
    assert len(pictures) == 6
    assert "**red**" in text


def test_what_is_there_is_not_run_again(replication: tuple[Selection, Path]) -> None:
    selection, out = replication
    plans = estimate(selection, out, InProcess(), lambda kind, facts: None, lambda: False, write=False)
    assert {plan["left"] for plan in plans.values()} == {0}
    more = {key: study.with_seeds(6) for key, study in selection.studies.items()}
    plans = estimate(Selection(more, ()), out, InProcess(), lambda kind, facts: None, lambda: False, write=False)
    assert {key: plan["left"] for key, plan in plans.items()} == {
        key: len(study.variants) for key, study in more.items()
    }


def test_mistakes_on_the_command_line_are_explained(
    fairtrial: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, _, err = fairtrial("replicate", "r7", "--data", tmp_path)
    assert code == 2
    assert "no report is called 'r7'" in err
    code, _, err = fairtrial("replicate")
    assert code == 2
    assert "--quick" in err
    code, _, err = fairtrial("replicate", "--data", tmp_path / "nowhere")
    assert code == 2
    assert "is not a folder" in err
