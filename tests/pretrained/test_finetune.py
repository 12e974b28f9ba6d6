"""Fine-tuning: it starts at the encoder's weights, repeats itself, resumes, and freezes what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import write_checkpoint
from safetensors.torch import load_file

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import StudyEvent
from fairtrial.pretrained.checkpoint import read_checkpoint
from fairtrial.record import Record
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import make_plan
from fairtrial.study.search import run_search
from fairtrial.study.tables import study_from
from fairtrial.trial import load, resume_trial, run_trial

Make = Callable[..., Any]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "bert", "bert", head=False)
    return tmp_path / "bert"


def test_training_starts_at_the_encoders_weights(encoder: Path, tiny_recipe: Make, tmp_path: Path) -> None:
    recipe = tiny_recipe("classify", f"encoder.source={encoder}", "training.learning_rate=1e-12")
    record = run_trial(recipe, 0, tmp_path / "run")
    kept, given = load_file(tmp_path / "run" / "model.safetensors"), read_checkpoint(encoder, recipe.shape)
    for name, tensor in given.weights.items():
        torch.testing.assert_close(kept[name], tensor, rtol=0, atol=1e-6)
    assert record.recipe.encoder.sha256 == given.sha256
    assert record.recipe.shape.norm_place == "post"
    assert record.recipe.shape.layers == 2
    assert record.trial.encoder.fresh == ("out.weight", "out.bias")


def test_a_killed_fine_tuning_goes_on_to_the_same_bits(encoder: Path, tiny_recipe: Make, tmp_path: Path) -> None:
    recipe = tiny_recipe("classify", f"encoder.source={encoder}", "training.duration=12 steps")
    run_trial(recipe, 0, tmp_path / "whole")
    count = iter(range(100))
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "parted", stop=lambda: next(count) > 5)
    resume_trial(tmp_path / "parted")
    for name in ("model.safetensors", "result.json", "events.jsonl"):
        assert (tmp_path / "parted" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_record_is_revived_without_the_encoders_folder(encoder: Path, tiny_recipe: Make, tmp_path: Path) -> None:
    record = run_trial(
        tiny_recipe("classify", f"encoder.source={encoder}", "training.duration=3 steps"), 0, tmp_path / "run"
    )
    encoder.rename(tmp_path / "elsewhere")
    run = load(record)
    found = run.task.score("test").metrics.nll
    assert found == pytest.approx(record.result.tests["test"].nll, rel=1e-6)  # threads may differ here


def test_an_encoder_that_has_changed_is_refused(encoder: Path, tiny_recipe: Make, tmp_path: Path) -> None:
    record = run_trial(
        tiny_recipe("classify", f"encoder.source={encoder}", "training.duration=1 steps"), 0, tmp_path / "run"
    )
    write_checkpoint(encoder, "bert", head=False, initializer_range=0.5)
    with pytest.raises(BadInput, match="has changed since"):
        run_trial(record.recipe, 0, tmp_path / "again")


def test_a_masked_language_model_of_ones_own_is_a_start(tiny_recipe: Make, tmp_path: Path) -> None:
    pretrained = run_trial(tiny_recipe("mlm", "training.duration=30 steps"), 0, tmp_path / "mlm")
    recipe = tiny_recipe("classify", f"encoder.source={tmp_path / 'mlm'}", "training.learning_rate=1e-12")
    record = run_trial(recipe, 0, tmp_path / "run")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("mlm", "run"))
    torch.testing.assert_close(after["body.tokens.weight"], before["body.tokens.weight"], rtol=0, atol=1e-6)
    assert (tmp_path / "mlm" / "tokenizer.json").read_text() == (tmp_path / "run" / "tokenizer.json").read_text()
    assert record.trial.counts.vocabulary == pretrained.trial.counts.vocabulary


def test_a_search_around_an_encoder_goes_on_where_it_was(encoder: Path, course_folder: Path, tmp_path: Path) -> None:
    table = {
        "data": str(course_folder), "tasks": ["classify"], "recipe": "finetune", "seeds": 2,
        "set": {"encoder.source": str(encoder), "training.duration": "4 steps", "training.batch": 8,
                "scoring.curve_every": "4 steps", "training.select_every": "4 steps"},
        "variants": {"adamw": {"training.optimizer": "adamw"}, "sgd": {"training.optimizer": "sgd"}},
        "search": {"training.learning_rate": [1e-3, 1e-2]},
    }  # fmt: skip
    plan = make_plan(study_from(table), StudyFolder(tmp_path))
    begun: list[str] = []

    def on_event(event: StudyEvent) -> None:
        begun.append(event.kind)

    found = run_search(plan, InProcess(), on_event, lambda: False)
    assert begun.count("begin") == 4
    begun.clear()
    assert run_search(plan, InProcess(), on_event, lambda: False) == found
    assert "begin" not in begun


def test_a_decoder_is_no_encoder(tiny_recipe: Make, tmp_path: Path) -> None:
    run_trial(tiny_recipe("lm", "training.duration=1 steps"), 0, tmp_path / "lm")
    with pytest.raises(BadInput, match="is not an encoder"):
        run_trial(tiny_recipe("classify", f"encoder.source={tmp_path / 'lm'}"), 0, tmp_path / "run")


def test_the_command_fine_tunes(encoder: Path, course_folder: Path, tmp_path: Path, fairtrial: Any) -> None:
    done = fairtrial(
        "finetune", "--encoder", str(encoder), "--data", str(course_folder), "--epochs", "2",
        "--set", "batch=8", "optimizer=sgd", "learning_rate=0.01", "--pool", "mean", "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert done.code == 0, done
    recipe = Record.open(tmp_path / "run").recipe
    assert [part.name for part in recipe.parts] == ["learned", "pool-mean"]
    assert (recipe.training.batch, recipe.training.optimizer, str(recipe.training.duration)) == (8, "sgd", "2 epochs")
    wrong = fairtrial("finetune", "--encoder", str(tmp_path / "none"), "--data", str(course_folder))
    assert wrong.code == 2
    assert "there is no folder" in wrong.err


def test_what_a_part_drew_comes_along_with_the_encoder(tiny_recipe: Make, tmp_path: Path) -> None:
    """Matrices were learnt for one order of heads: with another they would be scrambled."""
    more = ("shape.heads=4", "shape.layers=3", 'parts=["learned","shuffle"]')
    run_trial(tiny_recipe("mlm", *more), 0, tmp_path / "encoder")
    run_trial(tiny_recipe("classify", *more, f"encoder.source={tmp_path / 'encoder'}"), 1, tmp_path / "tuned")
    run_trial(tiny_recipe("classify", *more), 1, tmp_path / "fresh")
    orders = {
        name: load_file(tmp_path / name / "model.safetensors")["body.parts.shuffle.orders"]
        for name in ("encoder", "tuned", "fresh")
    }
    assert torch.equal(orders["tuned"], orders["encoder"])
    assert not torch.equal(orders["fresh"], orders["encoder"])  # a control: seeds draw different ones


def test_hidden_words_are_guessed_beside_a_prefix(tiny_recipe: Make, tmp_path: Path) -> None:
    record = run_trial(tiny_recipe("mlm", 'parts=["learned","pool-cls"]'), 0, tmp_path / "encoder")
    assert record.complete


def test_marks_of_a_borrowed_vocabulary_must_fit_the_text(
    tiny_recipe: Make, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"{row % 2}\tWe go home {row}.\n" for row in range(40)))
    recipe = tiny_recipe("lm", f"tokens.fit={finished_records['lm']}")
    with pytest.raises(BadInput, match="need start and stop marks"):
        run_trial(replace(recipe, data=replace(recipe.data, source=str(rows))), 0, tmp_path / "a")
    alone = replace(tiny_recipe("lm"), data=replace(recipe.data, source=str(rows)))
    run_trial(alone, 0, tmp_path / "marked")
    with pytest.raises(BadInput, match="a running text never trains"):
        run_trial(tiny_recipe("lm", f"tokens.fit={tmp_path / 'marked'}"), 0, tmp_path / "b")
