"""`fairtrial puzzle` as a user calls it: answers, files, and mistakes with file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KEYS = "name,x,y\ncat,0,0\ndog,4,0\ncow,0,4\nhen,4,4\npig,1,2\n"


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
        ("mix", "0:0.5", "2:0.3", "3:0.2"),
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


def test_keys_have_names(fairtrial: Callable, keys: Path) -> None:
    said = fairtrial("puzzle", "select", "pig", "--keys", keys)
    assert "In the way: cat, cow and hen" in said.out
    assert fairtrial("puzzle", "select", 4, "--keys", keys).out == said.out
    assert "Possible" in fairtrial("puzzle", "average", "cow", "hen", "--keys", keys).out


def test_precision_and_json(fairtrial: Callable, keys: Path) -> None:
    answer = json.loads(fairtrial("puzzle", "select", "hen", "--keys", keys, "--json", "--precision", 0.9).out)
    assert answer["precision"] == pytest.approx(0.9, abs=1e-4)


def test_mistakes_in_a_file_are_reported_with_their_line(fairtrial: Callable, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for content, line, what in (
        ("1,2\n3\n", 2, "this row has 1 numbers and no name"),
        ("1,2\n3,x\n", 2, "'x' is not a finite number"),
        ("1,2\n\n3,nan\n", 3, "'nan' is not a finite number"),
        ("1,2\n3,\n", 2, "'' is not a finite number"),
        ("a,1,2\n3,4\n", 2, "this row has 2 numbers and no name"),
        ("1,2\nb,3,4\n", 2, "this row has 2 numbers and a name"),
        ("x,y\n", None, "no numbers"),
        ("", None, "the file is empty"),
        ("a,1\na,2\n", None, "two rows are named 'a'"),
        ("1,2\n3,1e999\n", 2, "'1e999' is not a finite number"),
    ):
        path.write_text(content)
        said = fairtrial("puzzle", "select", 0, "--keys", path)
        assert said.code == 2
        assert what in said.err
        assert (f"{path}:{line}: " if line else f"{path}: ") in said.err


def test_tables_with_any_separator_names_and_comments_are_read(fairtrial: Callable, tmp_path: Path) -> None:
    path = tmp_path / "good.csv"
    for content in ("# of a notebook\n1 2\n 3  4\n", "1;2\n3;4\n", '"a",1,2\n"b",3,4\n', "1\t2\r\n3\t4\r\n\r\n"):
        path.write_text(content, newline="")
        said = fairtrial("puzzle", "select", 0, "--keys", path, "--json")
        assert json.loads(said.out)["keys"] == [[1, 2], [3, 4]]


def test_mistakes_on_the_command_line_are_explained(fairtrial: Callable) -> None:
    for words, what in (
        ("select 4", "there is no key '4'"),
        ("select cat", "there is no key 'cat'"),
        ("average 0 0", "named twice"),
        ("mix 0:0.5", "must sum to 1, got 0.5"),
        ("mix 0", "not a key with its weight"),
        ("mix 0:-1 1:2", "at most 1, got -1"),
        ("mix 0:0.5 0:0.5", "named twice"),
        ("select 0 --precision 1", "at most 0.999999, got 1"),
        ("select 0 --figure x.gif", "'gif'"),
        ("dance 0", "dance"),
        ("select 0 1", "select takes one key, got 2"),
        ("average", "nothing to average"),
        ("select 0 --keys nowhere.csv", "nowhere.csv"),
    ):
        said = fairtrial("puzzle", *words.split())
        assert said.code == 2
        assert what in said.err
        assert "Traceback" not in said.err


def test_names_are_words_not_formulas(fairtrial: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("x,1,0\n$\\bad$,0,1\na/b,-1,-1\n")
    said = fairtrial("puzzle", "select", "a/b", "--keys", keys, "--figure", tmp_path / "drawn.svg")
    assert said.code == 0, said.err
    assert "$" in (tmp_path / "drawn.svg").read_text()
