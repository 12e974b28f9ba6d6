"""`fairtrial look`, as a user runs it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sampling import cases

TEXT = "schools will build bridges tonight."
Command = Callable[..., Any]


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_sentence_gives_a_folder_of_figures_and_a_page(
    fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path, task: str
) -> None:
    said = fairtrial("look", finished_records[task], TEXT, "--out", tmp_path / "out", "--format", "svg")
    assert said.code == 0, said.err
    assert "not why the model decided" in said.out
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {"index.html", "text-1.svg"}
    page = (tmp_path / "out" / "index.html").read_text()
    assert "schools will build bridges tonight." in page


def test_the_record_is_left_as_it_was(fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path) -> None:
    record = tmp_path / "mine"
    shutil.copytree(finished_records["classify"], record)
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    assert fairtrial("look", record, TEXT, "--head", 1).code == 0
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before
    assert sorted(path.name for path in (tmp_path / "mine-look").iterdir()) == ["index.html", "text-1.png"]
    for inside in (record, record / "look"):
        said = fairtrial("look", record, TEXT, "--out", inside)
        assert said.code == 2
        assert "is a record or inside one" in said.err


def test_a_second_look_leaves_no_figure_of_the_first(
    fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    for words in ([], ["--head", 0, "--format", "svg"]):
        assert fairtrial("look", finished_records["lm"], TEXT, "--out", tmp_path / "o", *words).code == 0
    assert [path.name for path in (tmp_path / "o").glob("text-*")] == ["text-1.svg"]
    drawn = (tmp_path / "o" / "text-1.svg").read_text()
    assert "layer 0, head 0" in drawn
    assert "head 1" not in drawn


def test_a_thousand_sentences_are_read_and_three_are_drawn(
    fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    lines = [f"schools will {'build ' * (number % 15)}bridges tonight." for number in range(1000)]
    (tmp_path / "many.txt").write_text("\n\n".join(lines) + "\n")
    words = ["--text-file", tmp_path / "many.txt", "--out", tmp_path / "out", "--layer", 0, "--head", 0]
    said = fairtrial("look", finished_records["classify"], *words)
    assert said.code == 0, said.err
    assert "maps of the first 3 of 1,000 texts" in said.out
    assert sorted(path.name for path in (tmp_path / "out").glob("text-*")) == [f"text-{n}.png" for n in (1, 2, 3)]


def test_without_a_text_the_test_set_is_read(
    fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    said = fairtrial("look", finished_records["classify"], "--out", tmp_path / "out", "--head", 0)
    assert said.code == 0, said.err
    assert "the first texts of the test set &#39;test&#39;" in (tmp_path / "out" / "index.html").read_text()


def test_one_word_has_nothing_to_choose_from(
    fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    said = fairtrial("look", finished_records["lm"], "bridges", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert "nothing to choose from" in said.out


def test_maps_do_without_the_data(fairtrial: Command, finished_records: dict[str, Path], tmp_path: Path) -> None:
    record = tmp_path / "mine"
    shutil.copytree(finished_records["lm"], record)
    recipe = (record / "recipe.toml").read_text()
    source = next(line for line in recipe.splitlines() if line.startswith("source"))
    (record / "recipe.toml").write_text(recipe.replace(source, f'source = "{tmp_path}/gone"'))
    said = fairtrial("look", record, TEXT, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    said = fairtrial("look", record, "--out", tmp_path / "out")  # the test set is gone too
    assert said.code == 2


@cases(
    ("words", "told"),
    [
        ([""], "text 1 is empty"),
        (["  "], "text 1 is empty"),
        ([TEXT, "--layer", 7], "there is no layer 7"),
        ([TEXT, "--head", 2], "heads 0 to 1"),
        ([TEXT, "--format", "gif"], "svg"),
        (["--text-file", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    fairtrial: Command, finished_records: dict[str, Path], words: list[Any], told: str
) -> None:
    said = fairtrial("look", finished_records["classify"], *words)
    assert said.code == 2
    assert told in said.err
    assert "Traceback" not in said.err


def test_an_unfinished_record_is_refused(fairtrial: Command, finished_records: dict[str, Path]) -> None:
    said = fairtrial("look", finished_records["unfinished"], TEXT)
    assert said.code == 2
    assert "is not finished" in said.err
