"""A console that knows few characters, and a system whose files are not UTF-8 unless one says so: as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fairtrial.recipe import load_recipe
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
    (tmp_path / "données.tsv").write_text("".join(rows), encoding="utf-8")
    small = [word for setting in TINY for word in ("--set", setting)]
    commands = [
        ["train", "classify", "--data", "données.tsv", "--steps", "2", *small, "--out", "naïve"],
        ["show", "naïve", "--html", "page.html"],
        ["predict", "naïve", "déjà 猫"],
        ["errors", "naïve"],
    ]
    environment = {**os.environ, **LATIN, "PYTHONIOENCODING": "latin-1"}
    code = COMMANDS.format(commands=commands).encode("ascii", "backslashreplace").decode()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=False)
    told = done.stdout.decode("latin-1")
    assert done.returncode == 0, done.stderr.decode("latin-1")
    assert "été" in told
    assert "?" in told, "a character that the console lacks"
    assert "été" in (tmp_path / "naïve" / "trial.json").read_text(encoding="utf-8")
    assert "été" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_goes_to_a_file_is_utf8_on_any_system(tmp_path: Path) -> None:
    """`fairtrial recipe lm > mine.toml` is read again."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"} | LATIN
    words = ["recipe", "lm", "--set", 'data.source="été–猫.txt"']
    with (tmp_path / "mine.toml").open("wb") as file:
        command = [sys.executable, "-X", "utf8=0", "-m", "fairtrial", *words]
        assert subprocess.run(command, stdout=file, env=environment, check=False).returncode == 0
    assert load_recipe(tmp_path / "mine.toml").data.source == "été–猫.txt"
