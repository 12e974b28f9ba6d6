"""A user's mistake is one clear line and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sampling import cases

Call = Callable[..., Any]


@pytest.fixture
def refused(fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """What a refused command says on stderr. It exits with 2, prints nothing else and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        said = fairtrial(*words)
        assert said.code == 2
        assert said.out == ""
        assert "Traceback" not in said.err
        lines = said.err.splitlines()
        assert lines[0].startswith("fairtrial: ")
        assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("  "))
        assert sorted(tmp_path.rglob("*")) == before
        return said.err

    return call


@cases(
    ("words", "told"),
    [
        ("train clasify", "'clasify' is neither a task nor a recipe file; did you mean 'classify'?"),
        ("train xyz", "'xyz' is neither a task nor a recipe file; there is: classify, lm"),
        (f"train {'x' * 300}", "is neither a task nor a recipe file"),
        ("train lm --recipe cuorse", "no built-in recipe is called 'cuorse'; did you mean 'course'?"),
        ("train lm --recipe none.toml", "none.toml: no such recipe file"),
        ("train none.toml", "none.toml: no such recipe file"),
        (f"train {'x' * 300}.toml", "cannot be read (File name too long)"),
        ("train lm --set shape.haeds=4", "a recipe has no field 'shape.haeds'; did you mean 'shape.heads'?"),
        ("train lm --set haeds=4", "a recipe has no field 'haeds'; did you mean 'shape.heads'?"),
        ("train lm --set haeds=4", "a recipe has no field 'haeds'; did you mean 'shape.heads'?"),
        ("train lm --set shape.heads=two", "shape.heads = 'two' must be a whole number"),
        ("train lm --set shape.heads=5", "shape.width = 64 is not divisible by shape.heads = 5"),
        ("train lm --set shape.heads", "has no '='"),
        ("train lm --set training.optimizer=adamm", "training.optimizer = 'adamm' is not known; did you mean 'adam'?"),
        ("train lm --set task=clasify", "--set task: use --task instead"),
        ("train lm --set parts=rpoe", "no part is called 'rpoe'"),
        ("train lm --set tokens.kind=wrod", "wrod"),
        ("train lm --set data.presidents=obamma", "obamma"),
        ("train lm --steps 5 --epochs 2", "--steps and --epochs exclude each other"),
        ("train lm --data none.txt", "none.txt"),
        ("train lm --data none", "none"),
        (f"train lm --data {'x' * 300}", "File name too long"),
        ("train lm --log tensorbord", "no logger is called 'tensorbord'; did you mean 'tensorboard'?"),
        ("train lm --out .", "cannot become a record"),
        ("train", "no task was given"),
        ("train lm --seed -1", "seed must be between 0 and"),
        ("train lm --steps 0", "steps must be at least 1: 0"),
        ("study --seeds 0", "seeds must be at least 1: 0"),
        ("train clasify --print-recipe", "did you mean 'classify'?"),
        ("train lm --recipe cuorse --print-recipe", "no built-in recipe is called 'cuorse'"),
        ("show none", "none does not exist"),
        ("inspect params lm --task classify", "lm is a recipe for 'lm', not 'classify'"),
        ("audit --data reviews.tsv", "to audit data: fairtrial data audit --data reviews.tsv"),
        ("train --resume none", "none does not exist"),
        (f"show {'x' * 300}", "cannot be read (File name too long)"),
        ("show .", ". is not a record (it has no trial.json)"),
        ("train --resume .", ". is not a record (it has no trial.json)"),
    ],
)
def test_a_mistake_is_told_in_one_line(words: str, told: str, refused: Call) -> None:
    assert told in refused(*words.split())


@cases(
    ("content", "told"),
    [
        (b"task = lm", "not valid TOML"),
        (b"task = 'l\xffm'", "not UTF-8 (byte 9)"),
        (b"tsak = 'lm'", "a recipe has no field 'tsak'; did you mean 'task'?"),
        (b"[shape]\nlayers = 'four'", "shape.layers = 'four' must be a whole number"),
    ],
)
def test_a_bad_recipe_file_is_named(content: bytes, told: str, refused: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(content)
    assert f"mine.toml: {told}" in refused("train", "mine.toml")


def test_a_folder_is_no_recipe(refused: Call, tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    assert "folder.toml: this is a folder; a recipe is a TOML file" in refused("train", "folder.toml")


def test_a_recipe_for_the_other_task_is_refused(refused: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("task = 'lm'")
    assert "mine.toml is a recipe for 'lm', not 'classify'" in refused("train", "classify", "--recipe", "mine.toml")


def test_a_folder_where_a_file_is_wanted_is_refused(refused: Call, tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    assert "folder.txt" in refused("train", "lm", "--data", "folder.txt")
    assert "folder.txt" in refused("train", "lm", "--data", "folder.txt", "--set", "data.format=lines")


@pytest.mark.parametrize("mirror", ["tensorboard", "wandb"])
def test_a_refused_trial_leaves_no_mirror_behind(mirror: str, refused: Call) -> None:
    assert "none.txt" in refused("train", "lm", "--data", "none.txt", "--log", mirror, "--out", "a")


@cases(
    "words",
    ["train lm --steps many", "train lm --nonsense", "sohw x", "study --seeds few", "inspect", "inspect predict"],
)
def test_a_wrong_option_is_told_with_the_usage(words: str, fairtrial: Call) -> None:
    said = fairtrial(*words.split())
    assert said.code == 2
    assert "Usage: fairtrial" in said.err
    assert "Traceback" not in said.err


def test_a_record_that_exists_is_not_overwritten(refused: Call, finished_records: dict[str, Path]) -> None:
    for name, told in (
        ("lm", "see the record there: fairtrial show"),
        ("unfinished", "continue it: fairtrial train --resume"),
    ):
        folder = finished_records[name]
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert told in refused("train", "lm", "--out", folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_trial_that_diverges_exits_with_4_and_says_where(
    fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    wild = [
        "--set=training.learning_rate=1e30",
        "--set=training.optimizer=sgd",
        "--set=training.warmup_steps=0",
        *(f"--set={each}" for each in tiny),
    ]
    for steps in (1, 20):  # after a single step no further loss would tell
        said = fairtrial(
            "train", "lm", "--data", course_folder, *wild, "--steps", steps, "--out", tmp_path / str(steps)
        )
        assert said.code == 4
        assert (
            "after step 1 (learning rate 1e+30)" in said.err or "at step 2 (learning rate 1e+30, gradient" in said.err
        )
        assert "lower learning rate" in said.err
        assert "Traceback" not in said.err
        assert not (tmp_path / str(steps) / "result.json").exists()


def test_a_full_disk_exits_with_5(
    fairtrial: Call, broken_disk: Any, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    broken_disk.fail(1)
    small = [f"--set={each}" for each in tiny]
    said = fairtrial("train", "lm", "--data", course_folder, *small, "--steps", 2, "--out", tmp_path / "a")
    assert said.code == 5
    assert "the disk is full" in said.err
    assert "free some space, then run it again" in said.err  # there is nothing to resume yet
    assert not (tmp_path / "a").exists()


def test_too_large_a_network_is_told(fairtrial: Call, course_folder: Path, tmp_path: Path) -> None:
    said = fairtrial(
        "train", "lm", "--data", course_folder, "--set", "shape.width=2000000000000", "--out", tmp_path / "a"
    )
    assert said.code == 2
    assert re.match(r"fairtrial: training needs about [\d,.]+ GB of memory; [\d.]+ GB are free", said.err)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits are read where Linux tells them")
@pytest.mark.parametrize("limit", ["AS", "DATA"])
def test_a_limit_on_memory_is_told_before_a_library_crashes(limit: str, course_folder: Path, tmp_path: Path) -> None:
    """In a process of its own, of which 300 MB are not enough to load torch."""
    words = ["train", "lm", "--data", str(course_folder), "--steps", "1", "--out", str(tmp_path / "a")]
    script = f"import resource, sys; resource.setrlimit(resource.RLIMIT_{limit}, (300_000_000,) * 2)\n"
    script += f"from fairtrial.cli.main import run; sys.argv[1:] = {words}; run()"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(
        r"^fairtrial: this command needs about \d+ MB of memory; the limit leaves \d+ MB\n", done.stderr, re.M
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("could not create a primitive"),
        BaseException("OnigError(-5), fail to memory allocation"),
    ],
)
def test_what_libraries_make_of_too_little_memory_is_told(
    error: BaseException, refused: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("fairtrial.api.check_range", fail)
    assert "not enough memory" in refused("power", "--seeds", 5, "--items", 9)


def test_whatever_the_system_refuses_is_told(fairtrial: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **named: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/place")

    monkeypatch.setattr("fairtrial.api.check_range", fail)
    said = fairtrial("power", "--seeds", 5, "--items", 9)
    assert said.code == 5
    assert said.err.startswith("fairtrial: /place: Read-only file system")


@pytest.mark.skipif(os.name == "nt", reason="file names are not bytes there")
def test_a_file_name_that_is_not_utf8_is_told(
    fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    odd = tmp_path / os.fsdecode(b"odd\xff.txt")
    odd.write_bytes((course_folder / "train_LM.txt").read_bytes())
    small = [f"--set={each}" for each in (*tiny, "data.format=lines")]
    said = fairtrial("train", "lm", "--data", odd, *small, "--steps", 1, "--out", tmp_path / "a")
    assert said.code == 2
    assert "holds bytes that are not UTF-8" in said.err
    assert not (tmp_path / "a").exists()


def test_ctrl_c_without_a_trial_exits_with_130(fairtrial: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fairtrial.recipe.built_in_recipe", interrupt)
    said = fairtrial("train", "lm", "--print-recipe")
    assert said.code == 130
    assert "Traceback" not in said.err


@pytest.mark.parametrize("swallows", [True, False])
def test_ctrl_c_while_a_library_loads_ends_the_command_even_if_the_library_would_swallow_it(
    tmp_path: Path, *, swallows: bool
) -> None:
    """`except BaseException` in a module that is being imported; torch itself has been seen to abort."""
    (tmp_path / "loading.py").write_text(f"""
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
except BaseException:
    if not {swallows}:
        raise
""")
    code = """
import sys
from fairtrial.cli import main
main.app = lambda prog_name: (__import__("loading"), print("went on"))
main.run()
"""
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "fairtrial: stopped\n")


def test_what_a_container_allows_counts_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairtrial import environment
    from fairtrial.errors import BadInput

    machine = environment.bytes_free()
    monkeypatch.setattr(environment, "CONTAINER", tmp_path)
    told = {"max": "20000000\n", "current": "5000000\n", "stat": "anon 5\ninactive_file 1000000\n"}
    for name, text in told.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert environment.bytes_free() == 16_000_000
    with pytest.raises(BadInput, match="training needs about"):
        environment.check_memory(17e6, "training")
    (tmp_path / "memory.max").write_text("max\n")
    assert environment.bytes_free() > 0.5 * machine
