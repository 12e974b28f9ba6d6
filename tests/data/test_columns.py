"""Columns: a split column is honoured, unused columns are named, other names are given or guessed without doubt."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path

import pytest
from sources import write

from fairtrial.data.cleaning import clean_data
from fairtrial.data.corpus import Corpus
from fairtrial.data.readers import read
from fairtrial.errors import BadInput
from fairtrial.recipe import Data, Recipe, fingerprint, with_settings

SPLITS = ("train", "Training", "dev", "test", "VALID", "hard", "train", "train")


def table(path: Path, names: str, splits: tuple[str, ...] = SPLITS, between: str = ",") -> Path:
    """Rows of a number, a text, a label and a split."""
    rows = [f"{n}{between}text {n}{between}{n % 2}{between}{split}" for n, split in enumerate(splits)]
    return write(path, "\n".join([names.replace(",", between), *rows]))


def texts(corpus: Corpus) -> dict[str, list[str]]:
    sets = {"train": corpus.train, "validation": corpus.validation, **corpus.tests}
    return {name: [document.text for document in documents] for name, documents in sets.items()}


def read_as(path: Path, task: str = "classify", **columns: str) -> Corpus:
    return read(Data(source=str(path), **{f"{kind}_column": name for kind, name in columns.items()}), task)


def refused(path: Path, task: str = "classify", **columns: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read_as(path, task, **columns)
    return caught.value


EXPECTED = {
    "train": ["text 0", "text 1", "text 6", "text 7"],
    "validation": ["text 2", "text 4"],
    "test": ["text 3"],
    "hard": ["text 5"],
}


@pytest.mark.parametrize("task", ["classify", "lm"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_a_split_column_is_honoured_and_an_unused_one_named(tmp_path: Path, kind: str, task: str) -> None:
    if kind == "jsonl":
        rows = [{"id": n, "text": f"text {n}", "label": n % 2, "split": split} for n, split in enumerate(SPLITS)]
        path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    else:
        path = table(tmp_path / f"a.{kind}", "id,text,label,split", between="\t" if kind == "tsv" else ",")
    corpus = read_as(path, task)
    assert texts(corpus) == EXPECTED
    assert list(corpus.tests) == ["test", "hard"]
    note = (
        "columns: text, label, split; not used: id"
        if task == "classify"
        else "columns: text, split; not used: id, label"
    )
    assert note in corpus.notes


def test_other_names_are_given_or_guessed_where_there_is_no_doubt(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "uid,review,Sentiment,split")
    note = "columns: text from 'review', label from 'Sentiment', split; not used: uid"
    for corpus in (read_as(path), read_as(path, text="review", label="Sentiment", split="split")):
        assert texts(corpus) == EXPECTED
        assert note in corpus.notes
    assert len(read_as(path, split="none").train) == 8
    path = table(tmp_path / "b.csv", "a,b,c,d")
    assert texts(read_as(path, text="b", label="c", split="d")) == EXPECTED
    assert read_as(path, text="b", label="c", group="d").train[5].group == "hard"
    assert refused(path, text="bb", label="c").what == f"{path}: no column is called 'bb'; did you mean 'b'?"


def test_where_there_is_doubt_the_user_chooses(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "rating,review,author,split")
    assert refused(path).what == f"{path}: columns rating, author could all be the label"
    assert len(read_as(path, label="author").tests) == 2


def test_a_column_called_split_that_names_no_splits_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "id,text,label,split", tuple("01230123"))
    assert "it has 4 values: 0, 1, 2, 3" in refused(path).what
    assert "--split-column none" in refused(path).hint
    assert len(read_as(path, split="none").train) == 8
    for bad in ("", "a/b"):
        path = table(tmp_path / "a.csv", "id,text,label,split", ("train", "train", bad, "test"))
        assert refused(path).what.startswith(f"{path}:4: ")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet", "csv.gz"])
def test_a_table_of_any_kind_is_the_same_corpus(tmp_path: Path, kind: str) -> None:
    path = table(tmp_path / "a.csv", "id,text,label,split", between=";")
    rows = [{"text": f"text {n}", "label": n % 2, "split": split} for n, split in enumerate(SPLITS)]
    if kind == "csv.gz":
        path = write(tmp_path / "b.csv.gz", gzip.compress(path.read_bytes()))
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        path = tmp_path / "b.parquet"
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    elif kind != "csv":
        lines = map(json.dumps, rows)
        path = write(tmp_path / f"b.{kind}", "\n".join(lines) if kind == "jsonl" else json.dumps(rows))
    assert texts(read_as(path)) == EXPECTED


def test_a_row_whose_file_is_of_another_split_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "train.csv", "id,text,label,split", ("train", "train", "dev"))
    path = table(tmp_path / "test.csv", "id,text,label,split", ("test", "train"))
    assert refused(tmp_path).what == f"{path}:3: this row is of the split 'train', and its file is of 'test'"
    table(path, "id,text,label,split", ("test", "hard"))
    assert {name: len(found) for name, found in texts(read_as(tmp_path)).items()} == {
        "train": 2,
        "validation": 1,
        "test": 1,
        "hard": 1,
    }


def test_data_without_columns_refuse_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "novel.txt", "One.\n\nTwo.\n")
    assert "data of the format 'text' have none" in refused(path, "lm", text="text").what


def test_a_hugging_face_folder_is_read_shard_by_shard(tmp_path: Path) -> None:
    for split, count in (("train", 2), ("validation", 1), ("test", 1), ("test_hard", 1), ("unsupervised", 1)):
        for shard in range(count):
            rows = [{"text": f"{split} {shard} {n}", "label": n} for n in range(2)]
            name = f"{split}-{shard:05d}-of-{count:05d}.jsonl"
            write(tmp_path / "data" / name, "\n".join(map(json.dumps, rows)))
    corpus = read_as(tmp_path)
    assert texts(corpus)["train"] == ["train 0 0", "train 0 1", "train 1 0", "train 1 1"]
    assert {name: len(found) for name, found in texts(corpus).items()} == {
        "train": 4,
        "validation": 2,
        "test": 2,
        "test_hard": 2,
    }
    (tmp_path / "data" / "train-00001-of-00002.jsonl").unlink()
    assert "is one of 2 files of the train set; 1 are here" in refused(tmp_path).what


def test_files_in_folders_of_splits_are_read(tmp_path: Path) -> None:
    for name in ("train/a.csv", "train/b.csv", "test/a.csv"):
        table(tmp_path / name, "id,text,label,extra", ("x", "y"))
    assert {name: len(found) for name, found in texts(read_as(tmp_path)).items()} == {
        "train": 4,
        "validation": 0,
        "test": 2,
    }
    table(tmp_path / "train.csv", "id,text,label,extra", ("x", "y"))
    assert "train.csv and a.csv could both be the train set" in refused(tmp_path).what


def test_a_file_with_a_split_column_is_cleaned_row_by_row(tmp_path: Path) -> None:
    long = "we will build a bridge over the river this year"
    rows = ["a,0,train", "b,1,train", f"{long},0,train", f"{long},0,test", "c,1,test"]
    path = write(tmp_path / "a.csv", "\n".join(["t,y,part", *rows]))
    data = Data(source=str(path), text_column="t", label_column="y", split_column="part")
    clean_data(data, tmp_path / "out")
    assert (tmp_path / "out/a.csv").read_text().splitlines() == ["t,y,part", *rows[:2], *rows[3:]]


def test_columns_count_in_a_fingerprint_only_where_they_are_named() -> None:
    assert fingerprint(Recipe()) == "b713546edafd8663"  # as before there were such fields
    assert fingerprint(with_settings(Recipe(), ["data.text_column=t"])) != fingerprint(Recipe())
