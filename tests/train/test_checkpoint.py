"""A damaged checkpoint is noticed, the one before it is used, and the trial ends with the same bits."""

from __future__ import annotations

import errno
import hashlib
import json
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from fairtrial import disk
from fairtrial.errors import BadInput, DiskTrouble, Interrupted
from fairtrial.recipe import Recipe
from fairtrial.text.reading import read
from fairtrial.text.splitting import split
from fairtrial.train.bench import build_bench
from fairtrial.train.checkpoint import Checkpoints, weights_of
from fairtrial.train.loop import Event, Loop
from fairtrial.trial import fit_tokenizer, resume_trial, run_trial

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")
STOPPED = 5  # the step after which the broken trial stops


class Pair(NamedTuple):
    whole: Path  # the undisturbed record
    broken: Path  # the same, stopped with two checkpoints


def stop_after(step: int) -> Callable[[], bool]:
    asked = iter([False] * step)
    return lambda: next(asked, True)


@pytest.fixture
def pair(tiny_recipe: Callable[..., Recipe], tmp_path: Path) -> Pair:
    recipe = tiny_recipe("classify")
    run_trial(recipe, 0, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "broken", stop=stop_after(STOPPED), save_seconds=0)
    return Pair(tmp_path / "whole", tmp_path / "broken")


def files(record: Path) -> list[Path]:
    return sorted((record / "checkpoints").glob("step-*"))


def resumed(pair: Pair, damage: Callable[[Path], Any]) -> tuple[list[str], int]:
    """Damage a copy of the broken record, resume it, hold it against the whole one: (notices, step it went on from)."""
    copy = pair.broken.with_name("copy")
    shutil.copytree(pair.broken, copy)
    damage(copy)
    events: list[Event] = []
    resume_trial(copy, listen=events.append)
    for name in SAME:
        assert (copy / name).read_bytes() == (pair.whole / name).read_bytes(), f"{name} differs"
    shutil.rmtree(copy)
    start = next(event for event in events if event.kind == "start")
    return [event.facts["text"] for event in events if event.kind == "notice"], start.step


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_an_unharmed_checkpoint_is_used_without_a_notice(pair: Pair) -> None:
    assert resumed(pair, lambda copy: None) == ([], STOPPED)


def test_only_the_last_two_are_kept_and_none_in_the_end(pair: Pair) -> None:
    assert [path.name for path in files(pair.broken)] == ["step-00000004.safetensors", "step-00000005.safetensors"]
    assert not (pair.whole / "checkpoints").exists()


def test_every_cut_and_every_flipped_bit_is_noticed_and_the_one_before_is_used(pair: Pair) -> None:
    dice = random.Random(5)
    newest = files(pair.broken)[-1]
    size = newest.stat().st_size
    cuts = [(cut, dice.randrange(size)) for _ in range(18)] + [(cut, 0), (cut, size - 1)]
    flips = [(flip, dice.randrange(8 * size)) for _ in range(20)]
    for harm, place in cuts + flips:
        notices, step = resumed(pair, lambda copy, harm=harm, place=place: harm(files(copy)[-1], place))
        assert step == STOPPED - 1, f"{harm.__name__} at {place} was not noticed"
        assert len(notices) == 1
        assert f"{newest.name} is damaged" in notices[0]
        assert "the checkpoint before it is used" in notices[0]


def test_where_both_are_damaged_it_starts_from_the_beginning(pair: Pair) -> None:
    notices, step = resumed(pair, lambda copy: [flip(path, 12345) for path in files(copy)])
    assert (len(notices), step) == (2, 0)


def test_checkpoints_written_after_both_were_damaged_are_kept(pair: Pair) -> None:
    for path in files(pair.broken):
        cut(path, 100)
    with pytest.raises(Interrupted):
        resume_trial(pair.broken, stop=stop_after(2), save_seconds=0)
    assert resumed(pair, lambda copy: None) == ([], 2)


def test_swapped_files_are_noticed(pair: Pair) -> None:
    def swap(copy: Path) -> None:
        old, new = files(copy)
        old.rename(copy / "between")
        new.rename(old)
        (copy / "between").rename(new)

    notices, step = resumed(pair, swap)
    assert (len(notices), step) == (2, 0)


def test_without_its_manifest_no_checkpoint_is_trusted_and_that_is_said(pair: Pair) -> None:
    notices, step = resumed(pair, lambda copy: (copy / "checkpoints" / "manifest.jsonl").unlink())
    assert step == 0
    assert "manifest.jsonl is missing or damaged" in notices[0]


def test_a_torn_manifest_line_leaves_the_checkpoint_before(pair: Pair) -> None:
    def tear(copy: Path) -> None:
        path = copy / "checkpoints" / "manifest.jsonl"
        cut(path, path.stat().st_size - 20)

    assert resumed(pair, tear) == ([], STOPPED - 1)


def test_no_flipped_bit_of_the_manifest_misleads(pair: Pair) -> None:
    dice = random.Random(6)
    size = (pair.broken / "checkpoints" / "manifest.jsonl").stat().st_size
    for _ in range(12):
        bit = dice.randrange(8 * size)
        resumed(pair, lambda copy, bit=bit: flip(copy / "checkpoints" / "manifest.jsonl", bit))


def test_a_checkpoint_ahead_of_the_event_log_is_passed_over(pair: Pair) -> None:
    def lose_end(copy: Path) -> None:
        cut(copy / "events.jsonl", (copy / "events.jsonl").stat().st_size - 3)

    notices, step = resumed(pair, lose_end)
    assert step == STOPPED - 1
    assert "ahead of the event log" in notices[0]


def test_the_manifest_names_nothing_outside_the_record(pair: Pair) -> None:
    def point_outside(copy: Path) -> None:
        files(copy)[-1].rename(copy.parent / "outside.safetensors")
        path = copy / "checkpoints" / "manifest.jsonl"
        path.write_text(path.read_text().replace(files(pair.broken)[-1].name, "../../outside.safetensors"))

    assert resumed(pair, point_outside) == ([], STOPPED - 1)


def replace_newest(record: Path, content: bytes) -> None:
    """As a stranger would: the checksum fits."""
    path = files(record)[-1]
    path.write_bytes(content)
    line = {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with (record / "checkpoints" / "manifest.jsonl").open("a") as manifest:
        manifest.write(json.dumps(line) + "\n")


class Bomb:
    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.canary,)


def test_a_pickle_in_place_of_a_checkpoint_is_refused_and_not_run(pair: Pair, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "canary"))
    replace_newest(pair.broken, bomb)
    with pytest.raises(BadInput, match="this is no checkpoint of fairtrial"):
        resume_trial(pair.broken)
    assert not (tmp_path / "canary").exists()
    pickle.loads(bomb)
    assert (tmp_path / "canary").exists()  # the bomb does work


def test_a_checkpoint_of_another_network_is_refused(pair: Pair, tiny_recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run_trial(tiny_recipe("classify", "shape.width=32"), 0, tmp_path / "wide", stop=lambda: True)
    replace_newest(pair.broken, files(tmp_path / "wide")[-1].read_bytes())
    with pytest.raises(BadInput, match="does not fit the network"):
        resume_trial(pair.broken)


def make_loop(recipe: Recipe) -> Loop:
    corpus = read(recipe.data, recipe.task)
    splits = split(corpus, recipe.data, 0)
    tokenizer = fit_tokenizer(recipe, corpus, [document.text for document in splits.train])
    return Loop(build_bench(recipe, 0, splits, tokenizer), recipe.training, recipe.scoring, 0)


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
            checkpoints.save(loop, events_size=step)
    before = {path.name: path.read_bytes() for path in checkpoints.folder.iterdir()}
    failures = 0
    for at in range(1, 20):
        for path in checkpoints.folder.iterdir():
            path.unlink()
        for name, content in before.items():
            (checkpoints.folder / name).write_bytes(content)
        broken_disk.fail(at, error)
        try:
            checkpoints.save(loop, events_size=3)
        except DiskTrouble as trouble:
            failures += 1
            assert trouble.exit_code == 5
            assert str(checkpoints.folder) in trouble.what
            fresh = make_loop(recipe)
            assert checkpoints.load(fresh, 99, notice=pytest.fail) == 2
            assert all(torch.equal(tensor, saved[2][name]) for name, tensor in weights_of(fresh.network).items())
        else:
            break
    assert broken_disk.done == ["write", "fsync", "replace", "fsync", "write"]
    assert failures == 5
    fresh = make_loop(recipe)
    assert checkpoints.load(fresh, 99, notice=pytest.fail) == 3
    assert all(torch.equal(tensor, saved[3][name]) for name, tensor in weights_of(fresh.network).items())


def test_less_room_than_three_checkpoints_is_refused_before_training(
    tiny_recipe: Callable[..., Recipe], pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = max(path.stat().st_size for path in files(pair.broken))
    needed = Checkpoints(tmp_path).size_needed(make_loop(tiny_recipe("classify")))
    assert largest < needed + 20_000  # names and shapes
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=3 * needed - 1))
    events: list[Event] = []
    with pytest.raises(DiskTrouble, match="MB free on this disk") as trouble:
        run_trial(tiny_recipe("classify"), 0, tmp_path / "full", listen=events.append)
    assert trouble.value.exit_code == 5
    assert not events
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=3 * needed))
    assert resume_trial(tmp_path / "full").complete
