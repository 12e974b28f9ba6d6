"""A console that knows few characters, and a system whose files are not UTF-8 unless one says so: as on Windows."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.cli.main import PlainStream
from fairtrial.errors import PipeClosed
from tiny import TINY

COMMANDS = """
import sys
from fairtrial.cli.main import run
for words in {commands!r}:
    sys.argv = ["fairtrial", *words]
    try:
        run()
    except SystemExit as ended:
        assert not ended.code, words
"""
LATIN = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def test_texts_names_and_pages_survive_a_system_that_is_not_utf8(tmp_path: Path) -> None:
    rows = [f"{label}\tÇa déjà vu – 猫 {label} {number}\n" for number in range(12) for label in ("été", "hiver")]
    (tmp_path / "texts.tsv").write_text("".join(rows), encoding="utf-8")
    small = [word for setting in TINY for word in ("--set", setting)]
    commands = [
        ["train", "classify", "--data", "texts.tsv", "--steps", "2", *small, "--out", "run"],
        ["show", "run", "--html", "page.html"],
        ["predict", "run", "déjà 猫"],
        ["errors", "run"],
    ]
    environment = {**os.environ, **LATIN, "PYTHONIOENCODING": "latin-1"}
    code = COMMANDS.format(commands=commands).encode("ascii", "backslashreplace").decode()
    if subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("Python itself does not start there: its own folder has letters that this encoding lacks")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=False)
    told = done.stdout.decode("latin-1")
    assert done.returncode == 0, done.stderr.decode("latin-1")
    assert "été" in told
    assert "?" in told, "a character that the console lacks"
    assert "été" in (tmp_path / "run" / "trial.json").read_text(encoding="utf-8")
    assert "été" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_goes_to_a_file_is_utf8_on_any_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fairtrial verdict STUDY --format csv > table.csv` loses nothing."""
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    with (tmp_path / "table.csv").open("w", encoding="latin-1") as file:
        PlainStream(file).write("été – 猫")
    assert (tmp_path / "table.csv").read_bytes().decode() == "été – 猫"


def test_a_reader_that_went_away_is_no_error_in_the_words_of_windows_either() -> None:
    class Pipe:
        def write(self, text: str) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

    with pytest.raises(PipeClosed):
        PlainStream(Pipe()).write("a")
