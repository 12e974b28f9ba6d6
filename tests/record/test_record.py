"""One trial on disk: made in one move, written by one process, read without trust."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtrial.disk import preparing
from fairtrial.errors import BadInput, Busy, DiskTrouble, FairtrialError
from fairtrial.events import Stepped
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record, ensure_free
from fairtrial.stored import DataCounts, Environment, Metrics, TrialInfo, TrialResult
from forked import Forked

MACHINE = Environment(
    python="", fairtrial="", torch="", numpy="", tokenizers="", safetensors="", threads=1, machine="", system=""
)
TRIAL = TrialInfo(
    seed=3, recipe=fingerprint(Recipe()), asked="", data={}, code="", labels=(), test_sets=(), environment=MACHINE,
    tokenizer={}, counts=DataCounts(documents={}, vocabulary=1),
)  # fmt: skip
RESULT = TrialResult(
    task="lm", seed=3, parameters=1, steps=1, steps_per_epoch=1, kept_step=1, kept="last", test_watched=False,
    test_reads={}, train=Metrics(), tests={}, picked_on_test={}, model_sha256="",
)  # fmt: skip


@pytest.fixture
def record(tmp_path: Path) -> Record:
    with Record.create(tmp_path / "runs" / "a", Recipe(), TRIAL, "{}") as made:
        return made


def test_a_new_record_holds_its_recipe_trial_and_tokenizer_and_nothing_stands_beside_it(record: Record) -> None:
    assert {path.name for path in record.folder.iterdir()} == {
        "recipe.toml",
        "trial.json",
        "tokenizer.json",
        "run.lock",
    }
    assert [path.name for path in record.folder.parent.iterdir()] == ["a"]
    assert record.recipe == Recipe()
    assert not record.complete


def test_an_exception_while_preparing_leaves_nothing(tmp_path: Path) -> None:
    making = Record.create(tmp_path / "a", Recipe(), replace(TRIAL, seed=object()), "{}")
    with pytest.raises(TypeError), making:
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_while_preparing_leaves_nothing(error: int, tmp_path: Path, broken_disk: Any) -> None:
    for at in range(1, 13):  # four steps for each of three files
        broken_disk.fail(at, error)
        with pytest.raises(DiskTrouble), Record.create(tmp_path / "a", Recipe(), TRIAL, "{}"):
            pass
        assert not list(tmp_path.iterdir()), f"left behind by step {at}"
    broken_disk.fail(0)
    with Record.create(tmp_path / "a", Recipe(), TRIAL, "{}"):
        assert len(broken_disk.done) == 12


def test_what_a_killed_preparation_left_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / ".a.new").mkdir()
    (tmp_path / ".a.new" / "recipe.toml").write_text("half a rec")
    (tmp_path / ".a.new.lock").touch()
    with Record.create(tmp_path / "a", Recipe(), TRIAL, "{}") as record:
        assert record.recipe == Recipe()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_kill_left_of_a_finished_record_is_swept_away_unless_somebody_holds_it(record: Record) -> None:
    folder = record.folder
    lock, draft, checkpoint = folder.parent / ".a.new.lock", folder / "baseline.json.tmp", folder / "checkpoints" / "x"
    before = {path.name for path in folder.iterdir()}

    def leave() -> None:
        lock.touch()
        draft.write_text("half a base")
        checkpoint.parent.mkdir()
        checkpoint.touch()

    leave()
    record.tidy()  # not finished: checkpoints are what it goes on from
    assert checkpoint.exists()
    record.write_result(RESULT)
    with record.hold():
        record.tidy()
        assert draft.exists()
    with preparing(folder):
        record.tidy()
        assert lock.exists()
        assert not draft.exists()
    leave()
    record.tidy()
    assert {path.name for path in folder.iterdir()} == before | {"result.json"}
    assert [path.name for path in folder.parent.iterdir()] == ["a"]


def test_a_taken_folder_is_refused_with_what_it_is(record: Record, tmp_path: Path) -> None:
    folder = record.folder
    with pytest.raises(BadInput, match=rf"fairtrial show {folder} ; continue it: fairtrial train --resume {folder}"):
        ensure_free(folder)
    with pytest.raises(BadInput, match="exists already"):
        ensure_free(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="exists already"):
        ensure_free(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    ensure_free(tmp_path / "empty")
    with pytest.raises(BadInput, match="cannot become a record"):
        ensure_free(Path())
    with pytest.raises(DiskTrouble, match="name too long"):
        ensure_free(tmp_path / ("x" * 300))


def test_of_many_who_begin_at_once_one_wins_and_the_others_are_refused(tmp_path: Path) -> None:
    for round_number in range(10):
        folder = tmp_path / str(round_number) / "a"
        gate, outcomes = threading.Barrier(6), list[str]()

        def begin(folder: Path = folder, gate: threading.Barrier = gate, outcomes: list[str] = outcomes) -> None:
            gate.wait()
            try:
                with Record.create(folder, Recipe(), TRIAL, "{}"):
                    outcomes.append("won")
                    while len(outcomes) < 6:
                        time.sleep(0.001)
            except FairtrialError as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert sorted(outcomes) == ["Busy"] * 5 + ["won"]
        assert [path.name for path in folder.parent.iterdir()] == ["a"]


def test_a_second_trainer_is_refused_at_once_and_a_dead_one_holds_nothing(
    course_folder: Path, tmp_path: Path, tiny: list[str], fairtrial: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    words = ["train", "lm", "--data", str(course_folder), *(f"--set={each}" for each in tiny), "--steps", "100000"]
    words += ["--out", str(out)]
    first = Forked(*words)
    try:
        while not (out / "events.jsonl").exists():
            assert first.returncode is None
            time.sleep(0.01)
        for again in (words, ["resume", str(out)]):
            said = fairtrial(*again)
            assert said.code == 3
            assert f"{out}: another process is writing this record" in said.err
        for _ in range(50):  # a reader beside the writer never sees half a line
            assert all(event.kind for event in Record.open(out).events())
        assert "not finished" in fairtrial("show", out).out
    finally:
        first.kill()
        first.communicate()
    with Record.open(out).hold():
        pass
    assert "continue it: fairtrial train --resume" in fairtrial(*words).err


def test_a_torn_last_line_is_dropped(record: Record) -> None:
    for step in range(3):
        record.log.add(Stepped(step, 0.5, 0.1))
    path = record.folder / "events.jsonl"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert len(record.events()) == whole[:length].count(b"\n")


@pytest.mark.parametrize(
    "damage",
    [
        b'{"event": "st',
        b"\xff\xfe",
        b"5",
        b"[" * 100_000,
        b"",
        b'{"event": "score", "step": 2}',
        b'{"event": "step", "step": -1}',
        b'"\\ud800"',
    ],
)
def test_a_damaged_line_in_the_middle_is_named(damage: bytes, record: Record) -> None:
    path = record.folder / "events.jsonl"
    good = b'{"event": "best", "step": 1, "split": "validation"}\n'
    path.write_bytes(good + damage + b"\n" + good)
    with pytest.raises(BadInput, match=r"events\.jsonl:2: damaged line"):
        record.events()


def test_events_are_cut_back_and_never_lengthened(record: Record) -> None:
    record.log.cut(0)  # there are none yet
    record.log.add(Stepped(1, 0.5, 0.1))
    size, digest = record.log.sync()
    record.log.add(Stepped(2, 0.5, 0.1))
    record.log.cut(size)
    record.log.cut(size + 100)
    assert record.events() == [Stepped(1, 0.5, 0.1)]
    assert (
        (record.log.size, record.log.sha256)
        == (size, digest)
        == (record.log.path.stat().st_size, record.log.sha256_at(size))
    )
    assert record.log.sha256_at(size - 1) not in (None, digest)
    assert record.log.sha256_at(size + 1) is None


def test_no_result_is_written_beside_a_log_that_was_changed_meanwhile(record: Record) -> None:
    record.log.add(Stepped(1, 0.5, 0.1))
    record.log.path.write_text('{"event": "step", "step": 2}\n')
    with pytest.raises(BadInput, match=r"events\.jsonl: was changed while the trial was writing it"):
        record.write_result(RESULT)
    assert not record.complete


def test_outcomes_come_back_as_they_were(record: Record) -> None:
    outcomes = {
        "test/nll": np.array([0.1, np.inf, 3.0]),
        "test/guess": np.arange(4),
        "no items/guess": np.zeros(0, np.int64),
    }
    record.write_outcomes(outcomes)
    record.write_result(RESULT)
    back = record.outcomes()
    assert back.keys() == outcomes.keys()
    for name, values in outcomes.items():
        assert back[name].dtype == values.dtype
        np.testing.assert_array_equal(back[name], values)


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"seed": 1}', b"\xff", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_a_damaged_trial_file_is_said_and_not_a_traceback(
    content: bytes, record: Record, fairtrial: Callable[..., Any]
) -> None:
    (record.folder / "trial.json").write_bytes(content)
    said = fairtrial("show", record.folder)
    assert said.code == 2
    assert "trial.json is damaged" in said.err


def test_holding_a_record_twice_is_refused(record: Record) -> None:
    with record.hold(), pytest.raises(Busy), record.hold():
        pass


def test_a_file_that_a_writer_has_just_moved_is_no_link(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    ghost = record.folder / "trial.json.tmp"
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: iter([ghost]))
    assert Record.open(record.folder).folder == record.folder


def test_damaged_outcomes_are_told(record: Record) -> None:
    with pytest.raises(BadInput, match="is not finished"):
        record.outcomes()
    for content in (b"no tensors", b"", (1 << 40).to_bytes(8, "little") + b"{}", b"\2\0\0\0\0\0\0\0[]"):
        (record.folder / "outcomes.safetensors").write_bytes(content)
        record.write_result(RESULT)
        with pytest.raises(BadInput, match=r"outcomes\.safetensors: is damaged"):
            Record.open(record.folder).outcomes()
    (record.folder / "outcomes.safetensors").unlink()
    with pytest.raises(BadInput, match=r"outcomes\.safetensors: cannot be read"):
        Record.open(record.folder).outcomes()
