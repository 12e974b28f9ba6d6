"""Columns: a split column is honoured, unused columns are named, other names are given or guessed without doubt."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sources import write

from fairtrial.data.cleaning import clean_data
from fairtrial.data.corpus import Corpus
from fairtrial.data.readers import read
from fairtrial.data.tables import save_dataset
from fairtrial.data.tokenizer import tokenizer_of_ids
from fairtrial.errors import BadInput
from fairtrial.recipe import Data, Recipe, Tokens, fingerprint, with_settings
from fairtrial.training.tasks import bytes_of

SPLITS = ("train", "Training", "dev", "test", "VALID", "hard", "train", "train")


def table(path: Path, names: str, splits: tuple[str, ...] = SPLITS, between: str = ",") -> Path:
    """Rows of a number, a text, a label and a split."""
    rows = [f"{n}{between}text {n}{between}{n % 2}{between}{split}" for n, split in enumerate(splits)]
    return write(path, "\n".join([names.replace(",", between), *rows]))


def write_arrow(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Parquet, or Arrow's own format as a file or a stream."""
    found = pytest.importorskip("pyarrow", reason="Arrow files need the extra parquet").Table.from_pylist(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        importlib.import_module("pyarrow.parquet").write_table(found, path)
        return path
    ipc = importlib.import_module("pyarrow.ipc")
    with (
        path.open("wb") as file,
        (ipc.new_stream if "stream" in path.name else ipc.new_file)(file, found.schema) as out,
    ):
        out.write_table(found)
    return path


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


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "csv.gz", "parquet", "arrow", "stream.arrow", "feather"])
def test_a_table_of_any_kind_is_the_same_corpus(tmp_path: Path, kind: str) -> None:
    path = table(tmp_path / "a.csv", "id,text,label,split", between=";")
    rows = [{"text": f"text {n}", "label": n % 2, "split": split} for n, split in enumerate(SPLITS)]
    if kind == "csv.gz":
        path = write(tmp_path / "b.csv.gz", gzip.compress(path.read_bytes()))
    elif kind.endswith(("parquet", "arrow", "feather")):
        path = write_arrow(tmp_path / f"b.{kind}", rows)
    elif kind != "csv":
        lines = map(json.dumps, rows)
        path = write(tmp_path / f"b.{kind}", "\n".join(lines) if kind == "jsonl" else json.dumps(rows))
    assert texts(read_as(path)) == EXPECTED


def test_without_pyarrow_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fairtrial: Callable[..., Any]
) -> None:
    path = write_arrow(tmp_path / "a.arrow", [{"text": "a", "label": "b"}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = fairtrial("data", "baseline", "--data", path)
    assert found.code == 2
    assert "pyarrow" in found.err
    assert 'pip install "fairtrial[parquet]"' in found.err


def test_what_is_no_arrow_file_is_refused(tmp_path: Path) -> None:
    for kind, word in (("arrow", "an Arrow"), ("parquet", "a Parquet")):
        path = write(tmp_path / f"a.{kind}", "text,label\na,b\n")
        pytest.importorskip("pyarrow", reason="Arrow files need the extra parquet")
        assert refused(path).what.startswith(f"{path}: is not {word} file")


CLASSES = {"text": {"dtype": "string"}, "label": {"names": ["bad", "good"], "_type": "ClassLabel"}}


def save_to_disk(folder: Path, rows: list[dict[str, Any]], files: tuple[str, ...]) -> None:
    """As Hugging Face's `save_to_disk` does."""
    for number, name in enumerate(files):
        write_arrow(folder / name, rows[number :: len(files)])
    write(folder / "state.json", json.dumps({"_data_files": [{"filename": name} for name in files]}))
    write(folder / "dataset_info.json", json.dumps({"features": CLASSES}))


def test_a_saved_dataset_is_read_in_the_order_of_its_state(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "label": n % 2} for n in range(4)]
    save_to_disk(tmp_path, rows, ("b.stream.arrow", "a.stream.arrow"))
    write_arrow(tmp_path / "cache-1.stream.arrow", rows)  # not in the state, so not of the data
    corpus = read(Data(source=str(tmp_path)), "classify")
    assert [document.text for document in corpus.train] == ["text 0", "text 2", "text 1", "text 3"]
    assert [document.label for document in corpus.train] == ["bad", "bad", "good", "good"]
    assert list(corpus.files) == ["b.stream.arrow", "a.stream.arrow"]
    write(tmp_path / "dataset_info.json", json.dumps({"features": {}}))
    assert read(Data(source=str(tmp_path)), "classify").labels == ("0", "1")


def test_a_saved_dict_of_datasets_brings_its_splits(tmp_path: Path) -> None:
    for name in ("train", "valid", "test", "hard"):
        save_to_disk(tmp_path / name, [{"text": f"{name} {n}", "label": n} for n in range(2)], ("a.stream.arrow",))
    write(tmp_path / "dataset_dict.json", '{"splits": ["train", "valid", "test", "hard"]}')
    assert texts(read(Data(source=str(tmp_path)), "classify")) == {
        "train": ["train 0", "train 1"],
        "validation": ["valid 0", "valid 1"],
        "test": ["test 0", "test 1"],
        "hard": ["hard 0", "hard 1"],
    }
    write(tmp_path / "dataset_dict.json", '{"splits": ["train", "valid", "validation"]}')
    save_to_disk(tmp_path / "validation", [{"text": "a", "label": 0}], ("a.stream.arrow",))
    assert "two splits are the validation set" in refused(tmp_path).what
    write(tmp_path / "dataset_dict.json", '{"splits": ["test"]}')
    assert "no split is called 'train'" in refused(tmp_path).what


def test_what_hugging_face_saves_is_what_it_holds_in_memory(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="compared with the library itself")
    kinds = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])})
    whole = datasets.Dataset.from_list([{"text": f"text {n}", "label": n % 2} for n in range(40)], features=kinds)
    given = datasets.DatasetDict(train=whole.select(range(30)), test=whole.select(range(30, 40)))
    given.save_to_disk(tmp_path / "saved", num_shards={"train": 3, "test": 1})
    saved = read(Data(source=str(tmp_path / "saved")), "classify")
    memory = read(Data(source=save_dataset(given, tmp_path)), "classify")
    for one, other in ((saved.train, memory.train), (saved.tests["test"], memory.tests["test"])):
        assert [(each.text, each.label) for each in one] == [(each.text, each.label) for each in other]


def ids(path: Path, values: list[int], kind: str = "<u2") -> Path:
    return write(path, np.array(values, kind).tobytes())


def test_token_ids_are_one_running_text(tmp_path: Path) -> None:
    values = [n % 5 for n in range(300)]
    ids(tmp_path / "train.bin", values)
    ids(tmp_path / "val.bin", [4, 4, 3])
    write(tmp_path / "meta.json", '{"vocab_size": 6}')
    corpus = read(Data(source=str(tmp_path)), "lm")
    assert [int(word) for document in corpus.train for word in document.text.split()] == values
    assert (texts(corpus)["validation"], corpus.running, corpus.ordered) == (["4 4 3"], True, True)
    assert corpus.entries == ("0", "1", "2", "3", "4", "5")
    assert not corpus.named
    tokenizer = tokenizer_of_ids(corpus.entries, named=False)
    first = tokenizer.numbers(["0"])[0]
    encoded = [number - first for each in tokenizer.encode([d.text for d in corpus.train]) for number in each]
    assert encoded == values  # the very ids, behind the special tokens
    large = ids(tmp_path / "large" / "a.bin", [70_000, 1, 65_536], "<u4")
    assert texts(read(Data(source=str(large)), "lm", 100_000))["train"] == ["70000 1 65536"]


def test_entries_that_are_spelled_out_give_the_text_back(tmp_path: Path) -> None:
    letters = ["a", " ", "\n", "é", "<pad>"]
    ids(tmp_path / "train.bin", [0, 1, 3, 2, 4])
    for spelled in (letters, dict(enumerate(letters))):
        write(tmp_path / "meta.json", json.dumps({"vocab_size": 5, "itos": spelled}))
        corpus = read(Data(source=str(tmp_path)), "lm")
        tokenizer = tokenizer_of_ids(corpus.entries, corpus.named)
        encoded = tokenizer.encode([corpus.train[0].text])[0]
        assert [number - 2 for number in encoded] == [0, 1, 3, 2, 4]
        assert tokenizer.decode(encoded[:4]) == "a é\n"
        assert bytes_of(read(Data(source=str(tmp_path)), "lm").train[:1], tokenizer).tolist() == [1 + 1 + 2 + 1 + 6]


def test_wrong_token_ids_are_refused_with_their_place(tmp_path: Path) -> None:
    path = ids(tmp_path / "train.bin", [1, 2, 65, 3])

    def refusal(size: int = Tokens.size) -> BadInput:
        with pytest.raises(BadInput) as caught:
            read(Data(source=str(path)), "lm", size)
        return caught.value

    write(tmp_path / "meta.pkl", b"cos\nsystem\n(S'touch /tmp/never'\ntR.")
    assert "meta.pkl is not read" in refusal().what
    assert "tokens.size=65" in refusal().hint
    assert refusal(65).what == f"{path}: token 2 is 65, and the vocabulary has 65 entries"
    assert len(read(Data(source=str(path)), "lm", 66).train) == 1
    for meta, message in (
        ('{"size": 3}', "'vocab_size'"),
        ('{"vocab_size": "65"}', "not a number of entries"),
        ('{"vocab_size": 66, "itos": ["a"]}', "itos must spell 66 entries"),
        ('{"vocab_size": 66, "itos": {"0": 1}}', "itos is not a text"),
        ("{", "invalid JSON"),
    ):
        write(tmp_path / "meta.json", meta)
        assert message in refusal().what
    write(tmp_path / "meta.json", '{"vocab_size": 66}')
    assert "tokens.size is 67" in refusal(67).what
    write(path, b"abc")
    assert "3 bytes are not ids" in refusal().what
    ids(path, [1, 2, 3, 4] * 4, "<u4")
    assert "every second id is 0" in refusal().what
    with pytest.raises(BadInput, match="for language models"):
        read(Data(source=str(path)), "classify", 66)


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
