"""`fairtrial puzzle` as a user calls it: answers, files, and mistakes with file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

KEYS = "# x,y\n0,0\n4,0\n0,4\n4,4\n1,2\n"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.csv"
    path.write_text(KEYS)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("select", 0),
        ("average", 0, 1),
        ("average", 0, 1, "--count", 9, "--width", 5, "--no-scale"),
    ],
    ids=lambda words: words[0],
)
def test_questions_about_random_keys_are_answered(fairtrial: Callable, tmp_path: Path, words: tuple) -> None:
    said = fairtrial("puzzle", *words, "--figure", tmp_path / "drawn.png")
    assert said.code == 0, said.err
    assert "ossible" in said.out
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    assert fairtrial("puzzle", *words, "--seed", 5).out not in said.out


def test_keys_are_read_from_a_file(fairtrial: Callable, keys: Path) -> None:
    assert "because of key 0, key 2 and key 3" in fairtrial("puzzle", "select", 4, "--keys", keys).out
    assert "Possible" in fairtrial("puzzle", "average", 2, 3, "--keys", keys).out


def test_precision_and_json(fairtrial: Callable, keys: Path) -> None:
    answer = json.loads(fairtrial("puzzle", "select", 3, "--keys", keys, "--json", "--precision", 0.9).out)
    assert answer["precision"] == pytest.approx(0.9, abs=1e-4)


def test_a_file_that_is_no_table_of_numbers_is_refused(fairtrial: Callable, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for content in ("1,2\n3\n", "1,2\n3,x\n", "1,2\n3,\n", "1,2\n\n3,nan\n", "1,2\n3,1e999\n", "", "x,y\n"):
        path.write_text(content)
        said = fairtrial("puzzle", "select", 0, "--keys", path)
        assert said.code == 2, content
        assert "Traceback" not in said.err


def test_mistakes_on_the_command_line_are_explained(fairtrial: Callable) -> None:
    for words, what in (
        ("select 4", "numbered 0 to 3"),
        ("select cat", "there is no key 'cat'"),
        ("average 0 0", "named once"),
        ("select 0 --precision 1", "at most 0.999999, got 1"),
        ("select 0 --figure x.gif", "'gif'"),
        ("dance 0", "dance"),
        ("select 0 1", "select takes one key, got 2"),
        ("average", "named once"),
        ("select 0 --keys nowhere.csv", "nowhere.csv"),
    ):
        said = fairtrial("puzzle", *words.split())
        assert said.code == 2
        assert what in said.err
        assert "Traceback" not in said.err
