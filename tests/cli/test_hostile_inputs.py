"""Nonsense is refused in a sentence: no traceback, no silence, no writing elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.disk import append_line, is_running, locked, process_folder, write_text
from fairtrial.errors import BadInput, DiskTrouble
from fairtrial.explore.server import RequestParams
from fairtrial.plugins import explained_error, load_file, run_file
from fairtrial.prepare import prepare
from fairtrial.recipe import with_changes

Call = Callable[..., Any]


def test_a_working_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    code = "import os, runpy; os.rmdir(os.getcwd()); runpy.run_module('fairtrial', run_name='__main__')"
    (tmp_path / "gone").mkdir()
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "gone", capture_output=True, text=True)
    assert (said.returncode, said.stderr.splitlines()[0]) == (
        2,
        "fairtrial: the working folder does not exist any more",
    )


@pytest.mark.parametrize("value", ["1e308", "-1.7e308", "1e-320"])
def test_values_that_nobody_can_compute_with_are_refused(value: str, tmp_path: Path, fairtrial: Call) -> None:
    rows = [f"{name},{seed},{value if seed else 1.0}" for name in ("old", "new") for seed in range(6)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,seed,loss", *rows]) + "\n")
    said = fairtrial("verdict", tmp_path / "runs.csv", "--metric", "loss")
    assert said.code == 2
    assert "runs.csv:3" in said.err
    with pytest.raises(BadInput):
        ft.compare_runs([float(value)] * 6, [1.0] * 6)
    with pytest.raises(BadInput):
        ft.compare([[float(value), 1.0]] * 6, [[1.0, 1.0]] * 6)


def test_a_small_difference_is_never_shown_as_zero() -> None:
    found = ft.compare_runs(
        [1e-9 * (1 + n / 50) for n in range(6)], [2e-9 * (1 + n / 60) for n in range(6)], metric="loss"
    )
    assert found.verdict == "better"
    assert "0.0000" not in str(found).replace("p < 0.0001", "").replace("p <\n0.0001", "")


def test_a_number_of_400_digits_is_refused_by_the_explorer() -> None:
    for text in (b'{"n": %s}' % (b"9" * 400), b'{"n": -%s}' % (b"9" * 400)):
        params = RequestParams.read(text)
        for ask in (lambda: params.number("n", 0, 1), lambda: params.whole("n", 0, 1)):  # noqa: B023
            with pytest.raises(BadInput):
                ask()


RAISES = {
    "GeneratorExit": "raise GeneratorExit('x')",
    "Own": "class Own(BaseException): pass\nraise Own('x')",
    "Silent": "class Silent(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Silent()",
}


@pytest.mark.parametrize("name", RAISES)
def test_whatever_a_plugin_raises_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RAISES[name])
    with pytest.raises(BadInput, match=rf"mine\.py:\d: {name}"):
        load_file(tmp_path / "mine.py")


@pytest.mark.parametrize("name", RAISES)
def test_whatever_a_plugin_raises_later_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    body = "\n    ".join(RAISES[name].splitlines())
    (tmp_path / "mine.py").write_text(f"def later():\n    {body}\n")
    module = run_file("fairtrial_plugin_mine", tmp_path / "mine.py", (tmp_path / "mine.py").read_bytes())
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        module.later()
    assert re.search(rf"mine\.py:\d: {name}", str(explained_error(raised.value)))
    assert explained_error(ValueError("not a plugin's")) is None


def test_a_plugin_does_not_end_the_process_in_silence(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\nos._exit(0)\n")
    words = ["audit", "rope", "--with", str(tmp_path / "mine.py")]
    said = subprocess.run([sys.executable, "-m", "fairtrial", *words], capture_output=True, text=True)
    assert said.returncode == 2
    assert "mine.py ended the process" in said.stderr


@pytest.mark.parametrize("data", ["data.windows=nonsense", "data.presidents=nonsense", "encoder.sha256=nonsense"])
def test_unknown_values_are_refused_whatever_the_data(data: str, course_folder: Path, fairtrial: Call) -> None:
    said = fairtrial("train", "classify", "--data", course_folder, "--set", data, "--out", course_folder / "out")
    assert said.code == 2
    assert "nonsense" in said.err


@pytest.mark.parametrize("name", [" ", "a\u202eb", "a\x1b[31mb", "a\u200bb"])
def test_names_can_be_read(name: str) -> None:
    with pytest.raises(BadInput, match="readable"):
        prepare(with_changes(ft.Recipe(), {"name": name}), 0)


def test_a_study_of_no_variants_is_refused(course_folder: Path, tmp_path: Path, fairtrial: Call) -> None:
    (tmp_path / "study.toml").write_text(f'data = "{course_folder}"\nvariants = {{}}\n')
    assert fairtrial("study", tmp_path / "study.toml", "--dry-run").code == 2


def test_writing_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    for write in (lambda path: append_line(path, "x"), lambda path: locked(path).__enter__()):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(target)
        with pytest.raises(DiskTrouble):
            write(tmp_path / "link")
        assert not target.exists()
    write_text(tmp_path / "link", "x")
    assert not target.exists()
    assert not (tmp_path / "link").is_symlink()


def test_temporary_folders_of_killed_processes_are_removed() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, ours = (Path(tempfile.mkdtemp(prefix=f"fairtrial-{number}-")) for number in (ended.pid, os.getpid()))
    process_folder.cache_clear()
    process_folder()
    assert not left.exists() or is_running(ended.pid)
    assert ours.exists()
    ours.rmdir()
