"""Real studies of tiny models: paired, resumable, robust against what fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairtrial.cli.screen import plan_lines
from fairtrial.engines import InProcess
from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import JobStarted, StudyEvent
from fairtrial.prepare import prepare
from fairtrial.record import Record
from fairtrial.results.study import StudyFiles, from_json, to_json
from fairtrial.results.values import Cost, Rule, Verdict
from fairtrial.stored import FailedTrial, Metrics, PickedOnTest, PlanSummary, TrialResult
from fairtrial.study import artifacts
from fairtrial.study.artifacts import data_audit_jobs
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import calibrate, make_plan, missing, to_run
from fairtrial.study.run import Options, run_study
from fairtrial.study.tables import study_from, write_study
from fairtrial.training.loop import Loop
from fairtrial.trial import run_trial
from fairtrial.typed import structure
from forked import Forked

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")


def without_times(verdict: Verdict) -> Verdict:
    """What must be equal however a study was run: all but what a clock or a memory gauge says."""
    tasks = {
        name: replace(
            task, cost={variant: Cost(cost.parameters, cost.flops_per_step) for variant, cost in task.cost.items()}
        )
        for name, task in verdict.tasks.items()
    }
    return replace(verdict, tasks=tasks)


def verdict_of(folder: Path) -> Verdict:
    return without_times(StudyFiles.open(folder).verdict)


def test_the_same_variant_twice_is_told_to_show_no_difference(same_twice: tuple[Study, Path]) -> None:
    verdict = StudyFiles.open(same_twice[1]).verdict
    assert len(verdict.comparisons) == 2  # one for each task
    assert {each.seeds for each in verdict.comparisons} == {6}
    assert {each.verdict for each in verdict.comparisons} <= {"undecided", "equivalent"}
    assert any("is undecided" in line for line in verdict.text)


def test_a_verdict_on_language_models_says_how_much_less_training_reaches_the_same_loss(
    same_twice: tuple[Study, Path],
) -> None:
    verdict = StudyFiles.open(same_twice[1]).verdict
    (speedup,) = verdict.tasks["lm"].speedups
    assert verdict.tasks["classify"].speedups == ()
    assert speedup.runs == (6, 6)
    assert speedup.ratio.low < 1 < speedup.ratio.high  # type: ignore[operator]  # the same variant twice
    assert sum("Exploratory: again reaches" in text for text in verdict.text) == 1
    assert "training to the same loss" in verdict.to_text()
    assert from_json(to_json(verdict)) == verdict


def test_a_study_leaves_all_that_a_reader_needs(same_twice: tuple[Study, Path]) -> None:
    study, folder = same_twice
    task = json.loads((folder / "verdict.json").read_text())["tasks"]["lm"]
    assert task["cost"]["learned"]["parameters"] == Record.open(folder / "trials/lm/learned/seed-0").result.parameters
    assert task["cost"]["learned"]["flops_per_step"] > 1000
    assert task["cost"]["again"]["peak_memory_mb"] > 50
    assert task["cost"]["learned"]["seconds_ratio"] == 1.0
    assert task["audits"]["again"] == {"level": "pass", "failed": [], "accepted": False, "own_code": []}
    assert task["test_reuse"]["learned"]["obama"]["reads"] == 6  # once for each seed
    assert "Kneser-Ney trigram" in task["baseline_scores"]
    assert "<html" in (folder / "report.html").read_text()
    assert study_from(tomllib.loads((folder / "study.toml").read_text())) == study


def test_variants_at_one_seed_share_batches_and_common_weights(
    tiny_study: Callable[..., Study], tmp_path: Path
) -> None:
    recipes = make_plan(tiny_study(), StudyFolder(tmp_path)).recipes["classify"]
    names_seeds = (("learned", 3), ("rope", 3), ("rope", 4))
    learned, rope, other = (prepare(recipes[name], seed).task for name, seed in names_seeds)
    for place in range(5):
        one, two = learned.batches.batch(place), rope.batches.batch(place)
        assert (one.ids == two.ids).all()
        assert (one.answers == two.answers).all()
    ours, theirs = dict(learned.network.named_parameters()), dict(rope.network.named_parameters())
    common = ours.keys() & theirs.keys()
    assert len(common) > 5
    assert all(torch.equal(ours[name], theirs[name]) for name in common)
    moved = dict(other.network.named_parameters())  # control: another seed has other weights
    assert not all(torch.equal(moved[name], theirs[name]) for name in common)


def test_a_study_that_is_stopped_early_has_whole_pairs(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    trials = make_plan(tiny_study(), StudyFolder(tmp_path)).trials()
    assert [(trial.variant.name, trial.seed) for trial in trials[:4]] == [
        ("learned", 0), ("rope", 0), ("learned", 1), ("rope", 1),
    ]  # fmt: skip


def test_a_record_of_another_recipe_or_on_other_data_is_not_taken(
    tiny_study: Callable[..., Study], course_folder: Path, tmp_path: Path
) -> None:
    plan = make_plan(tiny_study(), StudyFolder(tmp_path / "study"))
    first, *others = plan.trials()
    run_trial(first.recipe, first.seed, first.folder)
    assert missing(plan, plan.trials())[0] == others
    other = make_plan(tiny_study(set={"training.batch": 4}), StudyFolder(tmp_path / "study"))
    with pytest.raises(BadInput, match="another recipe"):
        missing(other, other.trials())
    with (course_folder / "train_CLS.tsv").open("a") as file:
        file.write("0\tOne more line of text.\n")
    changed = make_plan(tiny_study(), StudyFolder(tmp_path / "study"))
    with pytest.raises(BadInput, match="other data"):
        missing(changed, changed.trials())


def test_a_trial_that_failed_or_was_stopped_is_not_counted(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    plan = make_plan(tiny_study(), StudyFolder(tmp_path / "study"))
    failed, stopped, *others = plan.trials()
    with pytest.raises(Interrupted):
        run_trial(stopped.recipe, stopped.seed, stopped.folder, stop=lambda: True)
    failure = FailedTrial(error="out of memory", task=failed.task, variant=failed.variant.name, seed=failed.seed)
    plan.home.add_failure(failure)
    assert plan.home.finished(stopped.folder) is None
    assert [row.error for row in plan.home.failures()] == ["out of memory"]
    assert to_run(plan, plan.trials(), heard) == [stopped, *others]
    assert to_run(plan, plan.trials(), heard, retry_failed=True)[0] == failed
    assert plan.home.failures() == []


def test_what_is_finished_is_not_run_again_and_what_is_missing_is(copied: tuple[Study, Path], heard: Any) -> None:
    study, folder = copied
    before = verdict_of(folder)
    whole = (folder / "trials/classify/again/seed-103/result.json").read_bytes()
    shutil.rmtree(folder / "trials/classify/again/seed-103")
    left = folder / "trials/classify/again/seed-102/checkpoints"  # killed between its result and its last word
    left.mkdir()
    run_study(study, folder, InProcess(), Options(), heard)
    assert not left.exists()
    assert [facts["key"] for facts in heard.of("done", "trial")] == [["classify", "again", "seed 103"]]
    assert not heard.of("begin", "passport")
    assert not heard.of("begin", "calibrate")
    assert (folder / "trials/classify/again/seed-103/result.json").read_bytes() == whole
    assert verdict_of(folder) == before


def test_more_seeds_reuse_what_is_there_and_an_earlier_verdict_is_told(copied: tuple[Study, Path], heard: Any) -> None:
    study, folder = copied
    verdict = run_study(study.with_seeds(7), folder, InProcess(), Options(), heard)
    assert verdict is not None
    assert len(heard.of("done", "trial")) == 4  # one seed, two variants, two tasks
    assert any("this study was judged before" in line for line in verdict.text)
    assert [look.seeds["lm"]["again"] for look in StudyFolder(folder).read_plan().looks] == [6, 7]


def test_a_folder_with_another_study_is_refused_and_left_alone(copied: tuple[Study, Path]) -> None:
    study, folder = copied
    before = (folder / "study.toml").read_text()
    changed = study_from(tomllib.loads(write_study(study).replace('"training.batch" = 8', '"training.batch" = 4')))
    with pytest.raises(BadInput, match="another recipe"):
        run_study(changed, folder, InProcess())
    assert (folder / "study.toml").read_text() == before


@pytest.mark.second
def test_a_killed_study_goes_on_to_the_same_verdict(same_twice: tuple[Study, Path], copied: tuple[Study, Path]) -> None:
    whole, folder = same_twice[1], copied[1]
    shutil.rmtree(folder / "trials" / "classify")
    for name in ("verdict.json", "report.html"):
        (folder / name).unlink()
    process, done = Forked("study", folder, "--json"), 0
    while done < 3:
        line = process.stdout.readline()
        assert line, process.communicate()
        done += '"event": "done"' in line and '"work": "trial"' in line
    process.kill()
    process.communicate()
    assert 3 <= len(list(folder.glob("trials/classify/*/*/result.json"))) < 12
    again = Forked("study", folder, "--json")
    out, said = again.communicate()
    assert again.returncode == 0, said
    told = [json.loads(line) for line in out.splitlines()]
    run = [facts for facts in told if facts["event"] == "done" and facts.get("work") == "trial"]
    assert 0 < len(run) <= 12 - 3
    assert verdict_of(folder) == verdict_of(whole)
    for path in whole.glob("trials/*/*/*/*"):
        if path.name in SAME:
            assert (folder / path.relative_to(whole)).read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(copied: tuple[Study, Path]) -> None:
    _, folder = copied
    shutil.rmtree(folder / "trials" / "lm")
    process = Forked("study", folder, "--json", "--jobs", "1")
    while '"event": "done"' not in process.stdout.readline():
        assert process.returncode is None
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert f"fairtrial study {folder}" in said
    assert len(list(folder.glob("trials/lm/*/*/result.json"))) < 12


def test_a_trial_that_is_sent_sigterm_is_resumed_and_has_not_failed(copied: tuple[Study, Path], heard: Any) -> None:
    study, folder = copied
    before = verdict_of(folder)
    trial = folder / "trials/classify/again/seed-103"
    whole = (trial / "result.json").read_bytes()
    shutil.rmtree(trial)

    def on_event(event: StudyEvent) -> None:
        heard(event)
        if isinstance(event, JobStarted) and event.work == "trial" and len(heard.of("begin", "trial")) == 1:
            for child in multiprocessing.active_children():
                child.terminate()

    run_study(study, folder, Processes(1), Options(), on_event)
    assert len(heard.of("begin", "trial")) == 2
    assert not heard.of("failed")
    assert StudyFolder(folder).failures() == []
    assert (trial / "result.json").read_bytes() == whole
    assert verdict_of(folder) == before


@pytest.mark.second
@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_study_whose_process_group_is_sent_sigterm_books_no_failure(
    tiny_study: Callable[..., Study], tmp_path: Path
) -> None:
    """As `timeout`, systemd and schedulers send it: to the study, its fork server and its trials at once."""
    settings = {"shape.layers": 1, "shape.width": 16, "training.batch": 8, "training.duration": "100000 steps"}
    (tmp_path / "long.toml").write_text(write_study(tiny_study(seeds=1, set=settings)))
    folder = tmp_path / "study"
    process = Forked("study", tmp_path / "long.toml", "--out", folder, "--json")
    for line in process.stdout:
        if json.loads(line)["event"] == "step" and json.loads(line)["step"] > 0:
            break
    os.killpg(process.pid, signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert StudyFolder(folder).failures() == []
    assert list(folder.glob("trials/classify/*/*/checkpoints/step-*.safetensors"))


CRASH = """
import os
from fairtrial.model.part import Part, parts

@parts.add("crash")
class Crash(Part):
    def embed(self, x, positions):
        if self.training and os.path.exists({flag!r}):
            os._exit(7)
        return x
"""


@pytest.mark.second
def test_a_variant_that_takes_its_process_down_is_listed_and_stops_nobody(
    copied: tuple[Study, Path], heard: Any, tmp_path: Path, audits_here: None, plugins_leave: Callable[[], None]
) -> None:
    study, folder = copied
    flag = tmp_path / "crash now"
    flag.write_text("")
    (tmp_path / "crash.py").write_text(CRASH.format(flag=str(flag)))
    table = tomllib.loads(write_study(study))
    table["variants"]["bad"] = {"parts": ["learned", "crash"], "with": [str(tmp_path / "crash.py")]}
    table["tasks"], table["seeds"] = ["classify"], 5
    verdict = run_study(study_from(table), folder, Processes(2), Options(), heard)
    assert verdict is not None
    task = verdict.tasks["classify"]
    assert {(each.variant, each.seed) for each in task.failures} == {("bad", seed) for seed in range(5)}
    assert all("ended with code 7" in each.error for each in task.failures)
    assert [each.variant for each in task.comparisons] == ["again"]
    assert task.audits["bad"].level == "unaudited"  # a process that dies is no finding about the variant
    assert any("Not audited: bad" in line for line in verdict.text)

    flag.unlink()  # mended: it is tried again on request only
    heard.told.clear()
    run_study(study_from(table), folder, InProcess(), Options(), heard)
    assert not heard.of("begin", "trial")
    assert any("--retry-failed" in facts["text"] for facts in heard.of("notice"))
    verdict = run_study(study_from(table), folder, InProcess(), Options(retry_failed=True), heard)
    assert verdict is not None
    assert not verdict.tasks["classify"].failures
    assert StudyFolder(folder).failures() == []
    assert {each.variant for each in verdict.comparisons} == {"again", "bad"}


def test_the_plan_comes_first_and_a_dry_run_leaves_nothing(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    assert run_study(tiny_study(seeds=6), tmp_path / "study", InProcess(), Options(dry_run=True), heard) is None
    (plan,) = heard.of("plan")
    assert plan["trial_count"] == plan["left"] == 12
    assert plan["expected_seconds"] > 0
    assert "points" in plan["smallest_detectable"]["classify"]
    assert not (tmp_path / "study").exists()


def test_a_large_family_is_asked_for_more_seeds(tiny_study: Callable[..., Study], tmp_path: Path, heard: Any) -> None:
    run_study(tiny_study(seeds=6), tmp_path / "study", InProcess(), Options(dry_run=True), heard)
    (plan,) = heard.of("plan")
    small = structure(PlanSummary, {name: value for name, value in plan.items() if name != "event"})
    large = replace(small, comparisons={"classify": 120})
    assert any("use 10 seeds for more than 100 comparisons" in line for line in plan_lines(large))
    assert not any("use 10 seeds" in line for line in plan_lines(small))
    assert not any("use 10 seeds" in line for line in plan_lines(replace(large, seed_count=10)))


PEEK = """
from fairtrial import Part, part

@part("peek")
class Peek(Part):  # it looks at the neighbours in its batch
    def embed(self, x, positions):
        return x - x.mean(0, keepdim=True)
"""


@pytest.mark.usefixtures("audits_here")
def test_what_stands_in_the_way_of_a_verdict_is_told_before_the_trials(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any, plugins_leave: Callable[[], None]
) -> None:
    """A part that fails its audit."""
    (tmp_path / "peek.py").write_text(PEEK)
    (tmp_path / "novel.txt").write_text("\n\n".join(f"A sentence of some words, number {n}." for n in range(80)))
    peek = {"parts": ["learned", "peek"], "with": [str(tmp_path / "peek.py")]}
    variants = {"learned": {"parts": ["learned"]}, "peek": peek}
    study = tiny_study(data=str(tmp_path / "novel.txt"), tasks=["lm"], seeds=1, variants=variants)
    run_study(study, tmp_path / "study", InProcess(), Options(), heard)
    kinds = [kind if kind != "notice" else facts["text"] for kind, facts in heard.told]
    failed = next(
        n for n, what in enumerate(kinds) if what.startswith("[lm] peek failed its leak audit and is not trained")
    )
    trial = next(n for n, (kind, facts) in enumerate(heard.told) if kind == "begin" and facts.get("work") == "trial")
    assert kinds.index("plan") < failed < trial
    assert heard.of("plan")[0]["smallest_detectable"]["lm"] == ""


@pytest.mark.usefixtures("audits_here")
def test_variants_with_other_batches_are_told_their_steps_and_epochs(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    large = {"parts": ["learned"], "training.batch": 64}
    settings = {"shape.layers": 1, "shape.width": 16, "training.batch": 8, "training.duration": "2 epochs"}
    study = tiny_study(variants={"learned": {"parts": ["learned"]}, "large": large}, set=settings, seeds=1)
    verdict = run_study(study, tmp_path / "study", InProcess(), Options(), heard)
    assert verdict is not None
    (told,) = heard.of("plan")[0]["training"]
    found = re.fullmatch(
        r"\[classify\] Training differs: learned (\d+) steps of 8 rows \(2\.0 epochs\),"
        r" large (\d+) steps of 64 rows \(2\.0 epochs\)\.",
        told,
    )
    assert found
    assert int(found[1]) > 4 * int(found[2])
    assert told.removeprefix("[classify] ") in verdict.text
    without_kind = {name: value for name, value in heard.of("plan")[0].items() if name != "event"}
    assert told in plan_lines(structure(PlanSummary, without_kind))


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_variants_train_for_the_same_time_in_steps_that_a_continued_study_keeps(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    deep = {"parts": ["learned"], "shape.layers": 6}
    settings = {"shape.layers": 1, "shape.width": 16, "shape.length": 12, "training.duration": "0.2 seconds"}

    def study(seeds: int, **more: Any) -> Study:
        variants = {"learned": {"parts": ["learned"]}, "deep": deep}
        return tiny_study(variants=variants, set=settings | more, seeds=seeds)

    home = tmp_path / "study"
    verdict = run_study(study(1), home, InProcess(), Options(), heard)
    assert verdict is not None
    kept = StudyFolder(home).read_plan().steps["classify"]
    assert kept["learned"].steps > kept["deep"].steps, "each has its own number, for the same time"
    (told,) = heard.of("plan")[0]["training"]
    steps = ", ".join(rf"{name} {own.steps:,} steps of \d+ rows \([\d.]+ epochs\)" for name, own in kept.items())
    assert re.fullmatch(rf"\[classify\] Training differs: {steps}\. For 0\.2 seconds of training; .*once.*\.", told)
    assert told.removeprefix("[classify] ") in verdict.text
    assert len(heard.of("timing")) == 1

    run_study(study(2), home, InProcess(), Options(), heard)
    assert len(heard.of("timing")) == 1, "nothing is measured again"
    assert StudyFolder(home).read_plan().steps["classify"] == kept
    for name, own in kept.items():
        records = [Record.open(home / "trials" / "classify" / name / f"seed-{seed}") for seed in (0, 1)]
        assert [record.result.steps for record in records] == [own.steps] * 2
    with pytest.raises(BadInput, match="another recipe"):
        run_study(study(2, **{"training.duration": "0.1 seconds"}), home, InProcess(), Options(), heard)


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_a_search_tries_the_steps_of_the_study(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    settings = {"shape.layers": 1, "shape.width": 16, "shape.length": 12, "training.duration": "0.05 seconds"}
    study = tiny_study(set=settings, seeds=1, search={"training.learning_rate": [0.01, 0.002]})
    for _ in range(2):  # the second time all is there
        assert run_study(study, tmp_path / "study", InProcess(), Options()) is not None
    for name, own in StudyFolder(tmp_path / "study").read_plan().steps["classify"].items():
        tried = sorted((tmp_path / "study" / "search" / "classify" / name).rglob("result.json"))
        trained = sorted((tmp_path / "study" / "trials" / "classify" / name).rglob("result.json"))
        assert (len(tried), len(trained)) == (2, 1)
        assert {json.loads(path.read_text())["steps"] for path in (*tried, *trained)} == {own.steps}
    times = {"training.duration": ["1 seconds", "2 seconds"]}
    with pytest.raises(BadInput, match=r"a search over training\.duration needs steps"):
        run_study(tiny_study(set=settings, search=times), tmp_path / "other", InProcess(), Options())


def test_perplexities_picked_on_test_are_averaged_by_their_logs() -> None:
    def result(best: float, honest: float) -> TrialResult:
        return TrialResult(
            task="lm",
            seed=0,
            parameters=1,
            steps=9,
            steps_per_epoch=9,
            kept_step=9,
            kept="last",
            test_watched=True,
            test_reads={"test": 3},
            train=Metrics(),
            tests={"test": Metrics(window_perplexity=honest)},
            picked_on_test={"test": PickedOnTest(step=3, window_perplexity=best)},
            model_sha256="",
        )

    found = artifacts.test_reuse([result(100.0, 200.0), result(400.0, 800.0)])["test"]
    assert found.picked_on_test == pytest.approx(200.0)
    assert found.honest == pytest.approx(400.0)


@pytest.mark.slow  # it compares times, which a busy machine spoils
def test_calibration_is_near_the_truth(tiny_study: Callable[..., Study], tmp_path: Path, heard: Any) -> None:
    study = tiny_study(set={"training.duration": "150 steps", "training.batch": 32, "shape.layers": 2})
    plan = calibrate(make_plan(study, StudyFolder(tmp_path)), InProcess(), heard, lambda: False)
    facts = plan.calibration["classify"]["learned"]
    recipe = plan.recipes["classify"]["learned"]
    loop = Loop(prepare(recipe, 0).task, recipe.training, recipe.scoring, 0)
    assert facts.steps == loop.steps == 150
    assert facts.step_seconds > 0
    assert facts.parameters == sum(weight.numel() for weight in loop.network.parameters())


def test_copies_are_looked_for_in_all_text_that_any_seed_may_take(
    tiny_study: Callable[..., Study], tmp_path: Path
) -> None:
    """With a share of the training text each seed takes its own: an item is clean if no seed can have seen it."""
    (job,) = data_audit_jobs(make_plan(tiny_study(set={"data.train_share": 0.1}), StudyFolder(tmp_path)))
    assert "train_share = 1.0" in job.recipe


def test_a_typo_in_a_variant_is_refused_before_any_trial(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    study = tiny_study(variants={"learned": {"parts": ["learned"]}, "rpoe": {"parts": ["rpoe"]}})
    with pytest.raises(BadInput, match=r"did you mean 'rope'"):
        run_study(study, tmp_path / "study", InProcess())
    assert not (tmp_path / "study").exists()


def test_stopping_before_the_first_trial_leaves_no_study(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    for options in (Options(), Options(dry_run=True)):
        with pytest.raises(Interrupted, match="no trial was run, nothing was saved"):
            run_study(tiny_study(), tmp_path / "study", InProcess(), options, stop=lambda: True)
        assert not (tmp_path / "study").exists()


def test_a_look_is_remembered_though_the_study_is_stopped_after_it(copied: tuple[Study, Path], heard: Any) -> None:
    """Else a study that was not clear at 5 seeds could go on as if nobody had looked."""
    study, folder = copied
    table = tomllib.loads(write_study(study)) | {"tasks": ["classify"], "least_difference": {"accuracy": 0.01}}
    (folder / "plan.json").unlink()
    with pytest.raises(Interrupted):
        run_study(
            study_from(table),
            folder,
            InProcess(),
            Options(rule=Rule.UNTIL_CLEAR),
            heard,
            lambda: len(heard.of("jobs")) > 1,
        )
    kept = StudyFolder(folder).read_plan()
    assert [look.seeds["classify"] for look in kept.looks] == [{"learned": 5, "again": 5}]
    assert len(kept.seeds) == 10
    assert kept.summary is not None
    assert kept.summary.until_clear
    assert kept.summary.smallest_detectable


@pytest.mark.slow
def test_until_clear_looks_at_five_ten_and_twenty_seeds_and_nowhere_else(
    copied: tuple[Study, Path], heard: Any
) -> None:
    study, folder = copied
    table = tomllib.loads(write_study(study)) | {"tasks": ["classify"], "least_difference": {"accuracy": 0.01}}
    verdict = run_study(study_from(table), folder, Processes(2), Options(rule=Rule.UNTIL_CLEAR), heard)
    assert verdict is not None
    assert verdict.until_clear
    looks = [facts["trials"] // 2 for facts in heard.of("jobs")]
    assert looks == [5, 10, 20][: len(looks)]
    (comparison,) = verdict.comparisons
    assert verdict.look is not None
    assert comparison.seeds == looks[-1] == verdict.look.seeds
    assert verdict.look.alpha == {5: 0.005, 10: 0.015, 20: 0.03}[looks[-1]]
    assert looks[-1] == 20 or comparison.decided
    assert len(study_from(tomllib.loads((folder / "study.toml").read_text())).seeds) == looks[-1]
