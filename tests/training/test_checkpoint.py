"""A damaged checkpoint is noticed, the one before it is used, and the trial ends with the same bits."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save

from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import Event, Notice, Started
from fairtrial.recipe import Recipe
from fairtrial.trial import resume_trial, run_trial

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
    resume_trial(copy, on_event=events.append)
    for name in SAME:
        assert (copy / name).read_bytes() == (pair.whole / name).read_bytes(), f"{name} differs"
    shutil.rmtree(copy)
    start = next(event for event in events if isinstance(event, Started))
    return [event.text for event in events if isinstance(event, Notice)], start.step


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_an_unharmed_checkpoint_is_used_without_a_notice(pair: Pair) -> None:
    assert resumed(pair, lambda copy: None) == ([], STOPPED)


@pytest.mark.parametrize("step", [0, 1, 3, 7, 8])
def test_a_trial_stopped_after_any_step_ends_with_the_same_bits(
    step: int, pair: Pair, tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    with pytest.raises(Interrupted):
        run_trial(tiny_recipe("classify"), 0, tmp_path / "again", stop=stop_after(step))
    assert resumed(Pair(pair.whole, tmp_path / "again"), lambda copy: None) == ([], step)


def test_only_the_last_two_are_kept_and_none_in_the_end(pair: Pair) -> None:
    assert [path.name for path in files(pair.broken)] == ["step-00000004.safetensors", "step-00000005.safetensors"]
    assert not (pair.whole / "checkpoints").exists()


def test_every_cut_and_every_flipped_bit_is_noticed_and_the_one_before_is_used(pair: Pair) -> None:
    rng = random.Random(5)
    newest = files(pair.broken)[-1]
    size = newest.stat().st_size
    cuts = [(cut, rng.randrange(size)) for _ in range(18)] + [(cut, 0), (cut, size - 1)]
    flips = [(flip, rng.randrange(8 * size)) for _ in range(20)]
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
    rng = random.Random(6)
    size = (pair.broken / "checkpoints" / "manifest.jsonl").stat().st_size
    for _ in range(12):
        bit = rng.randrange(8 * size)
        resumed(pair, lambda copy, bit=bit: flip(copy / "checkpoints" / "manifest.jsonl", bit))


def test_a_checkpoint_ahead_of_the_event_log_is_passed_over(pair: Pair) -> None:
    def lose_end(copy: Path) -> None:
        cut(copy / "events.jsonl", (copy / "events.jsonl").stat().st_size - 3)

    notices, step = resumed(pair, lose_end)
    assert step == STOPPED - 1
    assert "ahead of the event log" in notices[0]


def test_a_flipped_bit_of_the_event_log_does_not_stay(pair: Pair) -> None:
    size = (pair.broken / "events.jsonl").stat().st_size
    for place, step, count in ((0, 0, 2), (size - 3, STOPPED - 1, 1)):  # before both checkpoints, between them
        notices, start = resumed(pair, lambda copy, place=place: flip(copy / "events.jsonl", 8 * place))
        assert (len(notices), start) == (count, step)
        assert "events.jsonl was damaged or changed since step-00000005" in notices[0]


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
    with pytest.raises(BadInput, match="not a checkpoint of fairtrial"):
        resume_trial(pair.broken)
    assert not (tmp_path / "canary").exists()
    pickle.loads(bomb)
    assert (tmp_path / "canary").exists()  # the bomb does work


def test_a_checkpoint_of_another_network_is_refused(
    pair: Pair, tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    with pytest.raises(Interrupted):
        run_trial(tiny_recipe("classify", "shape.width=32"), 0, tmp_path / "wide", stop=lambda: True)
    with safe_open(files(pair.broken)[-1], "pt") as file:
        progress = file.metadata()  # else it belongs to another event log and is passed over
    replace_newest(pair.broken, save(load_file(files(tmp_path / "wide")[-1]), progress))
    with pytest.raises(BadInput, match="does not fit the network"):
        resume_trial(pair.broken)
