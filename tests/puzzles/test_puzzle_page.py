"""docs/puzzles.md: its Python gives what it shows, its commands run, its pictures are there."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "puzzles.md").read_text()
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.S)
    for line in block.splitlines()
]


def test_the_pages_python_gives_what_it_shows() -> None:
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.S))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "puzzles.md", "docs/puzzles.md", 0)
    said: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert outcome.attempted > 12
    assert outcome.failed == 0, "".join(said)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_pages_commands_run(
    fairtrial: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = fairtrial(*shlex.split(line)[1:])
    assert said.code == 0, said.err
    assert said.out


def test_the_page_shows_all_commands_and_its_pictures_are_there() -> None:
    assert {line.split()[2] for line in COMMANDS} == {"select", "average"}
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert len(pictures) == 1
    assert all((DOCS / picture).read_text().startswith("<?xml") for picture in pictures)
