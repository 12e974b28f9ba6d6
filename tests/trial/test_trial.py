"""Same recipe, same seed: same bits. Watching, scoring more often or resuming changes nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from fairtrial.errors import BadInput, Diverged, Interrupted
from fairtrial.model.network import LanguageModel
from fairtrial.model.part import Part, parts
from fairtrial.prepare import prepare
from fairtrial.recipe import Recipe, Shape, built_in_recipe, with_settings
from fairtrial.record import Record
from fairtrial.training.loop import Loop
from fairtrial.trial import located, resume_trial, run_trial
from sealed import events_of, reseal


def recipe_for(task: str, folder: Path, tiny: list[str], *more: str) -> Recipe:
    changes = [f"data.source={folder}", "training.duration=20 steps", "training.select_every=5 steps", *tiny, *more]
    return with_settings(built_in_recipe("default", task), changes)


def files_of(record: Record) -> dict[str, bytes]:
    names = (
        "events.jsonl",
        "result.json",
        "outcomes.safetensors",
        "model.safetensors",
        "tokenizer.json",
        "recipe.toml",
    )
    return {name: (record.folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_new_process_gives_the_same_bits(task: str, course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    recipe = recipe_for(task, course_folder, tiny)
    here = run_trial(recipe, 3, tmp_path / "here")
    words = [f"--set={setting}" for setting in (*tiny, "training.duration=20 steps", "training.select_every=5 steps")]
    command = [sys.executable, "-m", "fairtrial", "train", task, "--data", str(course_folder), "--seed", "3", *words]
    subprocess.run([*command, "--out", str(tmp_path / "there")], check=True, capture_output=True)
    assert files_of(here) == files_of(Record.open(tmp_path / "there"))


def test_another_seed_gives_other_bits(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    recipe = recipe_for("classify", course_folder, tiny)
    one, two = (run_trial(recipe, seed, tmp_path / str(seed)) for seed in (1, 2))
    assert files_of(one)["model.safetensors"] != files_of(two)["model.safetensors"]


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_scoring_more_often_changes_nothing(task: str, course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    rare = run_trial(recipe_for(task, course_folder, tiny, "scoring.curve_every=20 steps"), 0, tmp_path / "rare")
    often = run_trial(
        recipe_for(task, course_folder, tiny, "scoring.curve_every=1 steps", "scoring.watch_test=true"),
        0,
        tmp_path / "often",
    )
    assert len(events_of(often)) > len(events_of(rare))
    assert files_of(rare)["model.safetensors"] == files_of(often)["model.safetensors"]
    assert files_of(rare)["outcomes.safetensors"] == files_of(often)["outcomes.safetensors"]


def test_the_worlds_dice_and_threads_stay_as_they_were(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    run_trial(recipe_for("lm", course_folder, tiny), 0, tmp_path / "a")
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads


NOISY = ("training.input_noise=0.2", "shape.embedding_dropout=0.2", "training.schedule=wsd")


def test_muon_noise_and_all_dropouts_resume_to_the_same_bits(
    course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    how = ("training.optimizer=muon", "shape.start=scaled", "training.embedding_decay=3")
    recipe = recipe_for("lm", course_folder, tiny, *how, *NOISY)
    whole = run_trial(recipe, 0, tmp_path / "whole")
    asked = iter(range(10**6))
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "broken", stop=lambda: next(asked) > 7)
    assert files_of(whole) == files_of(resume_trial(tmp_path / "broken"))


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "adagrad", "sgd"])
def test_a_stopped_trial_resumes_to_the_same_bits(
    optimizer: str, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    more = (f"training.optimizer={optimizer}", "shape.tied=true")
    recipe = recipe_for("lm", course_folder, tiny, *more)
    whole = run_trial(recipe, 5, tmp_path / "whole")
    asked = iter([False] * 8 + [True])
    with pytest.raises(Interrupted):
        run_trial(recipe, 5, tmp_path / "broken", stop=lambda: next(asked))
    broken = Record.open(tmp_path / "broken")
    assert not broken.complete
    assert files_of(whole) == files_of(resume_trial(broken.folder))


@pytest.mark.parametrize(
    ("task", "setting", "why"),
    [],
)
def test_what_makes_no_sense_is_refused(
    task: str, setting: str, why: str, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    with pytest.raises(BadInput, match=why):
        run_trial(recipe_for(task, course_folder, tiny, setting), 0, tmp_path / "a")


def test_best_weights_are_those_of_the_best_validation_score(
    course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    recipe = recipe_for("classify", course_folder, tiny, "training.duration=60 steps")
    record = run_trial(recipe, 0, tmp_path / "a")
    scores = [event for event in events_of(record) if event["event"] == "score" and event["split"] == "validation"]
    chosen = [event for event in scores if event["step"] in range(5, 61, 5)]
    best = max(chosen, key=lambda event: (-round(event["nll"], 3), event["accuracy"]))
    assert record.result.kept_step == best["step"]
    assert record.result.validation.nll == pytest.approx(best["nll"], rel=1e-6)


def test_a_gradient_is_clipped_to_its_longest_norm(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    """A step of plain SGD at a rate of 1 moves the weights by the norm of the gradient."""
    plain = ("training.optimizer=sgd", "training.learning_rate=1", "training.weight_decay=0", "shape.start=small")
    plain = (*plain, "training.warmup_steps=0", "training.schedule=constant")
    one_step = (*plain, "training.keep=last", "training.duration=1 steps")

    def moved(name: str, clip: str) -> float:
        record = run_trial(
            recipe_for("lm", course_folder, tiny, *one_step, f"training.clip={clip}"), 0, tmp_path / name
        )
        recipe = record.recipe
        first = LanguageModel(recipe.shape, recipe.parts, record.trial.counts.vocabulary, seed=0)
        trained = load_file(record.folder / "model.safetensors")
        steps = [(trained[name] - weight.detach()).flatten() for name, weight in first.named_parameters()]
        return float(torch.cat(steps).norm())

    whole = moved("whole", "inf")
    assert whole > 0.02
    assert moved("clipped", "0.01") == pytest.approx(0.01, rel=1e-3)
    assert moved("wide", "100") == pytest.approx(whole, rel=1e-6)


def test_the_test_sets_are_scored_once_unless_watched(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    honest = run_trial(recipe_for("lm", course_folder, tiny), 0, tmp_path / "honest").result
    assert set(honest.test_reads.values()) == {1}
    assert not honest.test_watched
    assert not honest.picked_on_test
    watched = run_trial(
        recipe_for("lm", course_folder, tiny, "scoring.watch_test=true"), 0, tmp_path / "watched"
    ).result
    assert min(watched.test_reads.values()) > 1
    assert watched.test_watched
    assert set(watched.picked_on_test) == {"obama", "wbush", "hbush"}


def test_a_loss_that_is_not_finite_stops_with_its_step(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    recipe = recipe_for("lm", course_folder, tiny, "training.learning_rate=1e30", "training.optimizer=sgd")
    recipe = recipe.with_(warmup_steps=0)
    with pytest.raises(Diverged, match=r"loss is (nan|inf) at step \d+ \(learning rate 1e\+30, gradient"):
        run_trial(recipe, 0, tmp_path / "a")


def test_an_epoch_is_every_row_once(course_folder: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_for("classify", course_folder, tiny, "training.duration=3 epochs")
    task = prepare(recipe, 0).task
    loop, seen, batch = Loop(task, recipe.training, recipe.scoring, 0), [], task.batches.batch
    monkeypatch.setattr(task.batches, "batch", lambda index: seen.append(index) or batch(index))
    for step in range(loop.steps):
        loop.train_step(step)
    assert seen == list(range(3 * task.batches.batches_per_epoch()))


def test_a_refused_trial_leaves_nothing_behind(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    (course_folder / "train_CLS.tsv").write_text("0\tgood text\nno label here\n")
    with pytest.raises(BadInput, match=r"train_CLS.tsv:2"):
        run_trial(recipe_for("classify", course_folder, tiny), 0, tmp_path / "runs" / "a")
    assert not (tmp_path / "runs").exists()


def test_changed_data_are_not_resumed_on(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    recipe = recipe_for("lm", course_folder, tiny)
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "a", stop=lambda: True)
    with (course_folder / "train_LM.txt").open("a") as file:
        file.write("One more line.\n")
    with pytest.raises(BadInput, match="data have changed"):
        resume_trial(tmp_path / "a")


def test_another_thread_count_or_torch_is_not_resumed_on_silently(
    course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    with pytest.raises(Interrupted):
        run_trial(recipe_for("lm", course_folder, tiny), 0, tmp_path / "a", stop=lambda: True)
    record = Record.open(tmp_path / "a")
    reseal(record.folder, trial={"environment": asdict(replace(record.trial.environment, torch="2.5.0"))})
    (record.folder / "clock.jsonl").unlink()  # else the trial is known to have begun otherwise
    with pytest.raises(BadInput, match=r"started with torch 2\.5\.0"):
        resume_trial(record.folder)
    assert resume_trial(record.folder, ignore_changes=True).complete


def test_a_watched_course_recipe_says_what_it_did(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    recipe = with_settings(built_in_recipe("course", "classify"), [f"data.source={course_folder}", *tiny])
    recipe = replace(
        recipe, training=replace(recipe.training, duration=recipe.training.duration.__class__(1, "epochs"))
    )
    notes = " ".join(run_trial(recipe, 0, tmp_path / "a").trial.notes)
    assert "unknown token never occurs in training" in notes
    assert "test watched" in notes
    assert "labels included" in notes
    rare = "tokens.lowercase=false"  # in lower case this small text has no rare word left
    honest = run_trial(recipe_for("classify", course_folder, tiny, rare), 0, tmp_path / "b")
    said = " ".join(honest.trial.notes)
    assert "never occurs in training" not in said
    assert "test watched" not in said
    assert "labels included" not in said
    assert "no validation" not in said


def test_a_record_that_another_process_has_just_ended_is_left_alone(
    course_folder: Path, tmp_path: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = run_trial(recipe_for("lm", course_folder, tiny), 0, tmp_path / "a")
    before = files_of(record)
    asked = iter([False, True])
    monkeypatch.setattr(Record, "complete", property(lambda self: next(asked)))
    resume_trial(record.folder)
    assert files_of(record) == before


def test_a_folder_called_sotu_is_not_taken_for_the_embedded_speeches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sotu").mkdir()
    monkeypatch.chdir(tmp_path)
    assert located(built_in_recipe("default", "lm")).data.source == "sotu"


def test_what_a_part_remembers_is_kept_with_the_best_weights(
    course_folder: Path, tmp_path: Path, tiny: list[str], plugins_leave: None
) -> None:
    """The step at which the kept weights were best, written down by a part, is the record's own."""

    @parts.add("counts-steps")
    class CountsSteps(Part):
        def __init__(self, shape: Shape) -> None:
            super().__init__(shape)
            self.register_buffer("seen", torch.zeros(1))

        def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            if self.training:
                self.seen += 1
            return x

    more = ("parts=[counts-steps]", "training.select_every=1 steps", "training.learning_rate=0.3")
    more = (*more, "training.schedule=constant", "training.optimizer=adamw", "training.warmup_steps=0")
    record = run_trial(recipe_for("classify", course_folder, tiny, *more), 0, tmp_path / "a")
    kept = load_file(record.folder / "model.safetensors")["body.parts.counts-steps.seen"]
    assert record.result.kept_step < record.result.steps  # else this would show nothing
    assert int(kept) == record.result.kept_step
