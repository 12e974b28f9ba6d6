"""What is cached about texts: the same bits as without, noticed when damaged, made by two at once, and bounded."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtrial.data import cache
from fairtrial.errors import FairtrialWarning
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe, built_in_recipe, with_settings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, which takes data of any size."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "LEAST_CHARACTERS", 0)
    return tmp_path / "cache"


WORDS = [f"w{number}" for number in range(400)]


def words(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=9))


def rows(path: Path, count: int = 60) -> Path:
    texts = [f'"{words(at)}, it\'s" ({at % 7}. é).' for at in range(count)]
    labelled = [{"text": text, "label": "ab"[at % 2], "group": f"g{at // 3}"} for at, text in enumerate(texts)]
    path.write_text("\n".join(json.dumps(row) for row in labelled), encoding="utf-8")
    return path


def sources(workspace: Path, course: Path) -> list[tuple[str, Path, str]]:
    folder = workspace / "classes"
    for name in ("train/good", "train/bad", "test/good", "test/bad"):
        (folder / name).mkdir(parents=True)
        for number in range(6):
            text = f"The {name} film, {words(len(name) * 100 + number)},\nwas long.\n\nIt's “over”."
            (folder / name / f"{number}.txt").write_text(text, encoding="utf-8")
    novel = workspace / "novel.txt"
    novel.write_text("\n\n".join(f"Chapter {n}. Mr. X said no. {n} of us left, did we?" for n in range(40)), "utf-8")
    return [
        ("classify", rows(workspace / "rows.jsonl"), "word"),
        ("lm", novel, "word"),
        ("lm", novel, "character"),
        ("mlm", folder, "whitespace"),
        ("classify", folder, "bpe"),
        ("classify", course, "word"),
        ("lm", course, "word"),
    ]


def tiny(task: str, source: Path, *more: str) -> Recipe:
    return with_settings(built_in_recipe("default", task), [f"data.source={source}", "shape.length=12", *more])


def content(prepared: Prepared) -> Any:
    """All that a trial gets to see."""
    corpus, task = replace(prepared.corpus, key=""), prepared.task
    batches = [task.batches.batch(number) for number in range(2 * task.batches.batches_per_epoch())]
    arrays = [np.concatenate([batch.ids.ravel(), batch.answers.ravel()]).tolist() for batch in batches]
    return corpus, prepared.splits, prepared.tokenizer.to_json(), prepared.tokenizer.facts, task.counts, arrays


def test_the_cache_changes_no_bit(
    tmp_path: Path, course_folder: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task, source, kind in sources(tmp_path, course_folder):
        recipe = tiny(task, source, f"tokens.kind={kind}", "tokens.size=300", "tokens.min_count=1")
        monkeypatch.setenv(cache.VARIABLE, "off")
        without = content(prepare(recipe, 3))
        assert not place.exists() or cache.clear() >= 0
        monkeypatch.setenv(cache.VARIABLE, str(place))
        made, found = content(prepare(recipe, 3)), content(prepare(recipe, 3))
        assert made == found == without, (task, source, kind)
        assert len(cache.files()) > 0


def test_a_second_trial_splits_and_compares_nothing(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny("classify", rows(tmp_path / "rows.jsonl"))
    first = content(prepare(recipe, 0))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this is cached")

    for name in ("fairtrial.data.splits.word_table", "fairtrial.data.splits.cluster"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.setattr("fairtrial.data.splits.text_key", refuse)
    assert content(prepare(recipe, 0)) == first
    content(prepare(recipe, 1))  # another split and vocabulary of the same texts
    with pytest.raises(AssertionError, match="cached"):
        prepare(tiny("classify", rows(tmp_path / "rows.jsonl", 61)), 0)


def test_locations_are_those_of_the_copy_that_is_read(tmp_path: Path, place: Path) -> None:
    (tmp_path / "other").mkdir()
    one, other = rows(tmp_path / "rows.jsonl"), rows(tmp_path / "other" / "rows.jsonl")
    corpora = [prepare(tiny("classify", path), 0).corpus for path in (one, other)]
    assert len({corpus.key for corpus in corpora}) == 1
    for path, corpus in zip((one, other), corpora, strict=True):
        assert [document.location for document in corpus.train[:2]] == [f"{path}:1", f"{path}:2"]


def test_what_is_cached_for_another_recipe_or_by_other_code_is_not_taken(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [json.loads(line) for line in rows(path).read_text().splitlines()]
    path.write_text("\n".join(json.dumps(line | {"second": words(-at)}) for at, line in enumerate(lines)))
    for setting in ("data.group_column=none", "data.text_column=second", "tokens.kind=character", "tokens.min_count=1"):
        recipe = tiny("classify", path, setting)
        cached = content(prepare(recipe, 0))
        with monkeypatch.context() as context:
            context.setenv(cache.VARIABLE, "off")
            assert content(prepare(recipe, 0)) == cached, setting
    before = cache.key_of("words")
    monkeypatch.setattr(cache, "code", lambda: "newer")
    assert cache.key_of("words") != before


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "no table", "other"])
def test_a_damaged_file_is_made_again(tmp_path: Path, place: Path, damage: str) -> None:
    recipe = tiny("classify", rows(tmp_path / "rows.jsonl"))
    first = content(prepare(recipe, 0))
    whole = {path: path.read_bytes() for path, _ in cache.files()}
    assert len(whole) >= 3
    for path, raw in whole.items():
        flipped = bytes([*raw[: len(raw) // 2], raw[len(raw) // 2] ^ 1, *raw[len(raw) // 2 + 1 :]])
        other = next(each for each in whole.values() if each != raw)
        made = {"cut": raw[:-9], "flipped": flipped, "emptied": b"", "no table": b"\xff" * 99, "other": other}
        path.write_bytes(made[damage])
    assert content(prepare(recipe, 0)) == first
    assert all(cache._load(path) is not None for path in whole)


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path, place: Path) -> None:
    recipe = tiny("classify", rows(tmp_path / "rows.jsonl", 300))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(content(prepare(recipe, 0)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each == found[0] for each in found)
    assert not list(place.glob("*.tmp"))


def test_the_longest_unused_goes_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 25_000)
    for number, name in enumerate(("a", "b", "c")):
        cache.kept(name, lambda: {"x": np.arange(1000)})
        os.utime(place / f"{name}.safetensors", (number, number))
        cache.kept("a", lambda: {"x": np.arange(1000)})  # used again
    left_behind, written = place / "e.safetensors.1.tmp", place / "f.safetensors.2.tmp"
    for path in (left_behind, written):
        path.write_bytes(b"x")
    os.utime(left_behind, (0, 0))
    cache.kept("d", lambda: {"x": np.arange(1000)})
    assert written.exists()
    assert not left_behind.exists()
    written.unlink()
    assert sorted(path.stem for path, _ in cache.files()) == ["a", "c", "d"]


def test_a_cache_that_cannot_be_written_is_no_hindrance(tmp_path: Path, place: Path, broken_disk: Any) -> None:
    broken_disk.fail(1)
    with pytest.warns(FairtrialWarning, match="the disk is full"):
        found = cache.kept("key", lambda: {"x": np.arange(3)})
    assert found["x"].tolist() == [0, 1, 2]
    assert not list(place.iterdir())


def test_small_data_are_not_cached(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LEAST_CHARACTERS", 2_000_000)
    content(prepare(tiny("classify", rows(tmp_path / "rows.jsonl")), 0))
    assert not place.exists()


def test_the_command_shows_and_clears(tmp_path: Path, place: Path, fairtrial: Callable[..., Any]) -> None:
    assert "empty" in fairtrial("data", "cache").out
    content(prepare(tiny("classify", rows(tmp_path / "rows.jsonl")), 0))
    shown = fairtrial("data", "cache").out
    assert str(place) in shown
    assert "MB in 4 files" in shown or "MB in 3 files" in shown
    listed = json.loads(fairtrial("data", "cache", "--json").out)
    assert listed["bytes"] == sum(path.stat().st_size for path in place.iterdir()) <= listed["most_bytes"]
    assert "removed" in fairtrial("data", "cache", "--clear").out
    assert not list(place.iterdir())
