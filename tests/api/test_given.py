"""Data that are given as Python values."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from api_data import SMALL, reviews_of

import fairtrial as ft
from fairtrial.data.tables import rows_of, save_dataset
from sampling import cases


def test_texts_and_labelled_texts_become_rows() -> None:
    assert list(rows_of(["one", "two"])) == [{"text": "one"}, {"text": "two"}]
    assert list(rows_of([("good", "one"), (1, "two")])) == [
        {"label": "good", "text": "one"},
        {"label": 1, "text": "two"},
    ]
    named = {"train": ["one"], "test": ["two"], "news": [{"text": "three", "split": "old"}]}
    assert list(rows_of(named)) == [
        {"split": name, "text": t} for name, t in zip(named, ("one", "two", "three"), strict=True)
    ]


def test_frames_keep_the_names_of_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"stars": [1, 2], "review": ["one", None], "when": [1.5, float("nan")]})
    rows = list(rows_of(frame))
    assert rows == [{"stars": 1, "review": "one", "when": 1.5}, {"stars": 2, "review": None, "when": None}]
    assert type(rows[0]["stars"]) is int
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert list(rows_of(polars.DataFrame({"review": ["one"], "stars": [3]}))) == [{"review": "one", "stars": 3}]


def test_a_hugging_face_dataset_tells_the_names_of_its_classes() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    made = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [1, 0]}, features=features)
    assert list(rows_of(made)) == [{"text": "one", "label": "good"}, {"text": "two", "label": "bad"}]
    both = datasets.DatasetDict({"train": made, "test": made})
    assert [row["split"] for row in rows_of(both)] == ["train", "train", "test", "test"]


def test_data_are_written_once_and_named_by_their_content(tmp_path: Path) -> None:
    first, again, other = (save_dataset(texts, tmp_path) for texts in (["a\nb", "ü"], ["a\nb", "ü"], ["c"]))
    assert first == again != other
    assert [json.loads(line)["text"] for line in Path(first).read_text().splitlines()] == ["a\nb", "ü"]


def test_a_frame_trains_as_its_file_does(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = reviews_of()
    table = tmp_path / "reviews.csv"
    frame = pandas.DataFrame(rows, columns=["verdict", "words"])
    frame.to_csv(table, index=False)
    columns = {"text_column": "words", "label_column": "verdict"}
    ours, file = (
        ft.train("classify", given, out=tmp_path / name, steps=3, **columns, **SMALL)
        for name, given in (("frame", frame), ("file", table))
    )
    assert ours.record.result.model_sha256 == file.record.result.model_sha256
    assert ft.load(ours.folder).splits.tests["test"] == ours.splits.tests["test"], "it can be read again"


def test_a_dict_names_several_test_sets(tmp_path: Path) -> None:
    rows = reviews_of()
    data = {"train": rows[:180], "test": rows[180:210], "news": rows[210:]}
    run = ft.train("classify", data, out=tmp_path / "run", steps=2, **SMALL)
    assert {name: score.items for name, score in run.metrics.items() if name != "validation"} == {
        "test": 30,
        "news": 30,
    }


@cases(
    ("data", "words"),
    [
        ([], "the data are empty"),
        (7, "data of the type int cannot be read"),
        ({"a": ["one"]}, "one of them 'train'; it has 'a'"),
        ([("good", "one", "two")], "item 1 of the data is neither a text nor"),
        ([("good", "fine"), ("bad", "\ud800")], r"jsonl:2: byte 0xED is not UTF-8"),
    ],
)
def test_other_data_are_refused(data: Any, words: str) -> None:
    with pytest.raises(ft.BadInput, match=words):
        ft.baseline(data)


def test_without_pandas_a_frame_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ft.FairtrialError, match="pandas is not installed"):
        ft.power().to_frame()


def test_a_cell_that_is_run_again_finds_its_run() -> None:
    first = ft.train("classify", reviews_of(), steps=2, reuse=True, **SMALL)
    before = (first.folder / "result.json").stat().st_mtime_ns
    assert ft.train("classify", reviews_of(), steps=2, reuse=True, **SMALL).folder == first.folder
    assert (first.folder / "result.json").stat().st_mtime_ns == before
    assert ft.train("classify", reviews_of(), steps=3, reuse=True, **SMALL).folder != first.folder
    with pytest.raises(ft.BadInput, match="exists already"):
        ft.train("classify", reviews_of(), steps=2, **SMALL)
    given = Path(first.recipe.data.source)
    given.write_text(given.read_text().replace("good", "fine"))
    with pytest.raises(ft.BadInput, match="the data have changed"):
        ft.train("classify", given, steps=2, reuse=True, **SMALL)
