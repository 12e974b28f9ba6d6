"""A disk that is full or fails: the checkpoint before stays sound, and what was saved is not lost."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairtrial import disk
from fairtrial.errors import DiskTrouble, Interrupted
from fairtrial.events import Event
from fairtrial.prepare import prepare
from fairtrial.recipe import Recipe
from fairtrial.training.checkpoint import Checkpoints
from fairtrial.training.loop import Loop, weights_of
from fairtrial.trial import resume_trial, run_trial

STEPS = ["write", "fsync", "replace", "fsync", "write"]  # the file, its folder, the manifest's line


def make_loop(recipe: Recipe) -> Loop:
    return Loop(prepare(recipe, 0).task, recipe.training, recipe.scoring, 0)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failing_write_at_any_moment_of_saving_keeps_a_sound_checkpoint(
    error: int, tiny_recipe: Callable[..., Recipe], tmp_path: Path, broken_disk: Any
) -> None:
    recipe = tiny_recipe("classify")
    loop = make_loop(recipe)
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    saved = {}
    for step in range(1, 4):
        loop.train_step(step - 1)
        loop.progress.step = step
        saved[step] = {name: tensor.clone() for name, tensor in weights_of(loop.network).items()}
        if step < 3:
            checkpoints.save(loop, step, "")
    before = {path.name: path.read_bytes() for path in checkpoints.folder.iterdir()}
    for at in range(1, len(STEPS) + 1):
        for path in checkpoints.folder.iterdir():
            path.unlink()
        for name, content in before.items():
            (checkpoints.folder / name).write_bytes(content)
        broken_disk.fail(at, error)
        with pytest.raises(DiskTrouble) as trouble:
            checkpoints.save(loop, 3, "")
        assert trouble.value.exit_code == 5
        assert str(checkpoints.folder) in trouble.value.what
        fresh = make_loop(recipe)
        assert checkpoints.load(fresh, lambda size: "", notice=pytest.fail) == 2
        assert all(torch.equal(tensor, saved[2][name]) for name, tensor in weights_of(fresh.network).items())
    broken_disk.fail(0)
    checkpoints.save(loop, 3, "")
    assert broken_disk.done == STEPS
    fresh = make_loop(recipe)
    assert checkpoints.load(fresh, lambda size: "", notice=pytest.fail) == 3
    assert all(torch.equal(tensor, saved[3][name]) for name, tensor in weights_of(fresh.network).items())


def test_less_room_than_three_checkpoints_is_refused_before_training(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe("classify")
    needed = Checkpoints(tmp_path).size_needed(make_loop(recipe))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=3 * needed - 1))
    events: list[Event] = []
    with pytest.raises(DiskTrouble, match="MB free on this disk") as trouble:
        run_trial(recipe, 0, tmp_path / "full", on_event=events.append)
    assert trouble.value.exit_code == 5
    assert not events
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=3 * needed))
    asked = iter([False] * 6)  # after the first choice, so that the best weights are kept, too
    with pytest.raises(Interrupted):
        resume_trial(tmp_path / "full", stop=lambda: next(asked, True))
    (saved,) = (tmp_path / "full" / "checkpoints").glob("step-*")
    assert needed < saved.stat().st_size < needed + 20_000  # names, shapes and progress


def test_a_disk_that_fills_up_loses_nothing_that_was_saved(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path, broken_disk: Any
) -> None:
    whole = run_trial(tiny_recipe("lm"), 0, tmp_path / "whole", save_seconds=0)
    writes = len(broken_disk.done)
    assert writes > 60
    for at in range(16, writes, 7):
        broken_disk.fail(at)
        with pytest.raises(DiskTrouble) as trouble:
            run_trial(tiny_recipe("lm"), 0, tmp_path / str(at), save_seconds=0)
        assert f"fairtrial train --resume {tmp_path / str(at)}" in trouble.value.hint
        broken_disk.fail(0)
        resumed = resume_trial(tmp_path / str(at))
        for name in ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors"):
            assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes(), f"{name}, write {at}"
