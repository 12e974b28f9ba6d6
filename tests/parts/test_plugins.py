"""Parts from outside: a user's file or an installed package, told apart from ours by nothing but their origin."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, parts
from fairtrial.plugins import load_file, load_files
from fairtrial.stored import write_document
from sealed import plain_of, reseal

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "add-a-part.md").read_text()
FADE = re.findall(r"```python\n(.*?)```", TUTORIAL, flags=re.S)[0]
Call = Callable[..., Any]
Leave = Callable[[], None]

pytestmark = pytest.mark.usefixtures("plugins_leave")


@pytest.fixture
def fade(tmp_path: Path) -> Path:
    path = tmp_path / "fade.py"
    path.write_text(FADE)
    return path


def part_file(path: Path, name: str, body: str = "pass") -> Path:
    path.write_text(
        f"from fairtrial.model.part import Part, parts\n@parts.add('{name}')\nclass Mine(Part):\n    {body}\n"
    )
    return path


def test_a_file_brings_its_parts_and_is_run_once(fade: Path) -> None:
    fade.write_text(FADE + "\nimport sys\nsys.fade_runs = getattr(sys, 'fade_runs', 0) + 1\n")
    assert [load_file(fade), load_file(fade)] == [["fade"], ["fade"]]
    assert issubclass(parts.find("fade"), Part)
    assert sys.__dict__.pop("fade_runs") == 1


def test_the_fingerprint_is_that_of_the_bytes_that_ran_even_after_an_edit_of_equal_size(
    tmp_path: Path, plugins_leave: Leave
) -> None:
    path = part_file(tmp_path / "mine.py", "mine", "mark = 1")
    first, stamp = load_files([path]), path.stat()
    assert parts.find("mine").mark == 1  # type: ignore[attr-defined]
    plugins_leave()
    path.write_text(path.read_text().replace("mark = 1", "mark = 2"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # where a compiled copy would be taken for the file
    second = load_files([path])
    assert parts.find("mine").mark == 2  # type: ignore[attr-defined]
    assert first != second == {"mine.py": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("x = 1\ndef f(:\n", 2, "SyntaxError: "),
        ("x = 1\n\nimport no_such_package\n", 3, "ModuleNotFoundError: No module named 'no_such_package'"),
        ("def f():\n    raise ValueError('heads must be odd')\nf()\n", 2, "ValueError: heads must be odd"),
        ("import sys\nsys.exit()\n", 2, "SystemExit"),
        ("x = 1\n", None, "registers no part"),
        ("from fairtrial.model.part import Part, parts\n@parts.add('rope')\nclass A(Part): pass\n", 2, "called 'rope'"),
        ("from fairtrial.model.part import parts\n@parts.add('mine')\nclass A: pass\n", None, "'mine' is not a Part"),
        ("x = '\x00'\n", None, "null bytes"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line_and_leaves_no_part_behind(
    text: str, line: int | None, told: str, tmp_path: Path
) -> None:
    path, before = tmp_path / "bad.py", parts.list()
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        load_file(path)
    assert refused.value.what.startswith(f"{path}:{line}: " if line else str(path))
    assert told in refused.value.what
    assert parts.list() == before


def test_a_file_that_fails_half_way_can_be_mended_and_loaded(tmp_path: Path) -> None:
    path = part_file(tmp_path / "mine.py", "mine")
    whole = path.read_text()
    path.write_text(whole + "1 / 0\n")
    with pytest.raises(BadInput, match=r"mine\.py:5: ZeroDivisionError"):
        load_file(path)
    path.write_text(whole)
    assert load_file(path) == ["mine"]


@pytest.mark.parametrize(("name", "told"), [("none.py", "No such file"), ("part.txt", r"a Python file \(.py\)")])
def test_what_is_no_python_file_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=told):
        load_file(tmp_path / name)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = [part_file(tmp_path / "mine.py", "one"), part_file(tmp_path / "other" / "mine.py", "two")]
    with pytest.raises(BadInput, match="two files have the same name"):
        load_files(files)


@pytest.fixture
def begun(fairtrial: Call, fade: Path, course_folder: Path, tiny: list[str], tmp_path: Path, plugins_leave: Leave,
          monkeypatch: pytest.MonkeyPatch) -> Path:  # fmt: skip
    """A record that was begun with a stranger's file, and stopped; the process that began it is gone."""
    from contextlib import contextmanager

    from fairtrial.cli import commands

    @contextmanager
    def at_once(**how: Any) -> Any:
        yield lambda: True

    small = [f"--set={each}" for each in tiny]
    with monkeypatch.context() as patch:
        patch.setattr(commands, "stopping", at_once)
        said = fairtrial("train", "classify", "--with", fade, "--set", "parts=fade", "--data", course_folder,
                         "--steps", 6, "--out", tmp_path / "run", *small)  # fmt: skip
    assert said.code == 130, said.err
    plugins_leave()
    return tmp_path / "run"


def test_the_tutorials_part_is_trained_resumed_and_listed(begun: Path, fade: Path, fairtrial: Call) -> None:
    kept = json.loads((begun / "trial.json").read_text())["plugins"]
    assert kept == {"fade.py": hashlib.sha256(fade.read_bytes()).hexdigest()}
    said = fairtrial("train", "--resume", begun, "--with", fade)
    assert said.code == 0, said.err
    assert json.loads((begun / "result.json").read_text())["steps"] == 6
    listed = fairtrial("parts", "--with", fade).out.splitlines()
    line = "attention wears off with distance, at a pace that each head learns"
    assert any(re.fullmatch(rf" *fade +{line} +start = 0.1 +sees order, by distance alone", each) for each in listed)


def test_the_tutorials_part_is_short() -> None:
    assert 10 <= len(FADE.strip().splitlines()) <= 20


def test_a_stranger_resumes_to_the_same_bits(
    begun: Path, fade: Path, fairtrial: Call, course_folder: Path, tiny: list[str], tmp_path: Path
) -> None:
    assert fairtrial("train", "--resume", begun, "--with", fade).code == 0
    small = [f"--set={each}" for each in tiny]
    said = fairtrial("train", "classify", "--with", fade, "--set", "parts=fade", "--data", course_folder,
                     "--steps", 6, "--out", tmp_path / "whole", *small)  # fmt: skip
    assert said.code == 0, said.err
    for name in ("events.jsonl", "result.json", "model.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (begun / name).read_bytes()


def test_resuming_without_the_file_names_it(begun: Path, fairtrial: Call) -> None:
    said = fairtrial("train", "--resume", begun)
    assert said.code == 2
    assert f"{begun} needs code from fade.py" in said.err
    assert f"fairtrial train --resume {begun} --with fade.py" in said.err


def test_resuming_with_an_edited_file_is_refused_before_it_runs(begun: Path, fade: Path, fairtrial: Call) -> None:
    canary = fade.with_name("canary")
    fade.write_text(f"{FADE}\nopen({str(canary)!r}, 'w').close()\n")
    said = fairtrial("train", "--resume", begun, "--with", fade)
    assert said.code == 2
    assert f"fade.py has changed since {begun} was started" in said.err
    assert not canary.exists()
    assert fairtrial("train", "--resume", begun, "--with", fade, "--ignore-changes").code == 0
    assert canary.exists()


def test_the_same_file_under_another_name_will_do(begun: Path, fade: Path, fairtrial: Call) -> None:
    assert fairtrial("train", "--resume", begun, "--with", fade.rename(fade.with_name("moved.py"))).code == 0


def test_strangers_of_a_poisoned_record_are_refused_without_a_traceback(begun: Path, fairtrial: Call) -> None:
    reseal(begun)
    (begun / "clock.jsonl").unlink()  # else the trial is known to have begun otherwise
    for poison, told in (
        (["fade.py"], "damaged at plugins"),
        ({"\x1b]0;a\x07": "b"}, "needs code from \ufffd]0;a\ufffd"),
    ):
        write_document(begun / "trial.json", plain_of(begun / "trial.json") | {"plugins": poison})
        said = fairtrial("train", "--resume", begun)
        assert said.code == 2
        assert told in said.err
        assert "Traceback" not in said.err
