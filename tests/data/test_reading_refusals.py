"""Every mistake in the data is refused with file and line, and random bytes never raise anything else."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sources import GOOD, course, refusal, write

from fairtrial.data.readers import read
from fairtrial.errors import BadInput
from fairtrial.recipe import Data
from sampling import cases


@cases(
    ("content", "line", "what"),
    [
        ("0\tA b.\nC d.\n1\tE f.\n", 2, "expected 2 columns, found 1"),
        ("0\tA\tb.\n1\tC\td.\n", 1, "expected label<TAB>text, found 3 columns"),
        ("0\tA b.\n\tC d.\n", 2, "the label is missing"),
        ("0\tA b.\n1\t  \n1\tC\n", 2, "the text is missing"),
    ],
)
def test_a_bad_row_of_the_course_is_refused_with_its_line(tmp_path: Path, content: str, line: int, what: str) -> None:
    file = write(course(tmp_path) / "train_CLS.tsv", content)
    assert refusal(tmp_path).what == f"{file}:{line}: {what}"


@cases(
    ("content", "line", "what"),
    [
        ("0\tA b.\nC d.\n1\tE f.\n", 2, "expected 2 columns, found 1"),
        ("A b.\n", 1, "it is unclear which of its columns is the text; its first row is: A b."),
        ("id\tfeedback\tmood\n7\tA b.\t1\n", 1, "it is unclear which of its columns is the text; its first row is: id, "
         "feedback, mood"),
        ("0\tA b.\n1\tC\td.\n", 2, "expected 2 columns, found 3"),
        ("0\tA b.\n \tC d.\n1\tE f\n", 2, "the label is missing"),
        ("0\tA b.\n1\t \n1\tE f g h\n", 2, "the text is missing"),
        ("label\ttext\n", None, "the table has a header, but no rows"),
        ("id\ttext\n1\tA b\n", None, "no column is the label; there is: id, text"),
        ("text\tlabel\tText\nA b\t0\tC d\n", None, "columns text, Text could all be the text"),
        ("label\ttext\tlabel\n0\tA b\t1\n", 1, "two columns are called 'label'"),
        ("0\tA b\n0\tC d\n", None, "the training set has only one class, '0'"),
        ("aa\tbb\nbb\taa\n", 1, "it is unclear which of its columns is the text; its first row is: aa, bb"),
        ("".join(f"{n}\ttext {n}\n" for n in range(50)), 1, "it is unclear which of its columns is the text; its "
         "first row is: 0, text 0"),
        ("", None, "the file is empty"),
        ("\n \n", None, "the file is empty"),
        ("0\tA b\n1\tC\0d\n", 2, "a NUL byte: it is not plain text"),
        (b"0\tA b\r\n1\tcaf\xe9 au lait\n", 2, "byte 0xE9 is not UTF-8"),
        (GOOD.encode("utf-16"), 1, "byte 0xFF is not UTF-8"),
        (GOOD.encode("utf-16-le"), 1, "a NUL byte: it is not plain text"),
        (gzip.compress(GOOD.encode(), mtime=0)[:20], None, "cannot be read: Compressed file ended before the "
         "end-of-stream marker was reached"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, line: int | None, what: str
) -> None:
    file = write(tmp_path / "a.tsv", content)
    assert refusal(file).what == f"{file}{'' if line is None else f':{line}'}: {what}"


def test_hints_guess_the_encoding_and_name_the_columns(tmp_path: Path) -> None:
    assert "iconv -f LATIN1" in refusal(write(tmp_path / "a.tsv", b"0\tA b\n1\tcaf\xe9 au lait\n")).hint
    assert "name the columns in a first row" in refusal(write(tmp_path / "a.tsv", "aa\tbb\nbb\taa\n")).hint


def test_an_unclosed_quote_is_refused_where_it_opens(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", '0,A b.\n1,"C d.\n0,E f.\n')
    assert refusal(file).what.startswith(f"{file}:2: invalid CSV")


def test_a_label_that_training_lacks_is_refused_with_its_line(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", GOOD)
    for label, suggestion in (("01", "; did you mean '1'?"), ("x", "; there is: 0, 1")):
        file = write(tmp_path / "test.tsv", GOOD + f"{label}\tIt is odd.\n")
        assert refusal(tmp_path).what == f"{file}:5: label {label!r} does not occur in the training set{suggestion}"


def test_a_line_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", GOOD.encode() + b"0\t" + b"x" * 10_000_000)
    assert refusal(file).what == f"{file}:5: this line is longer than 1,000,000 characters"


# paths


def test_a_missing_path_suggests_a_similar_name(tmp_path: Path) -> None:
    write(tmp_path / "reviews.tsv", GOOD)
    path = tmp_path / "reveiws.tsv"
    assert refusal(path).what == f"{path}: no such file or folder; did you mean 'reviews.tsv'?"
    path = tmp_path / "no" / "such.tsv"
    assert refusal(path).what == f"{path}: no such file or folder"


def test_a_folder_where_a_file_should_be_and_the_reverse(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").mkdir()
    assert refusal(tmp_path).what == f"{tmp_path / 'train.tsv'}: expected a file, found a folder"
    file = write(tmp_path / "a.tsv", GOOD)
    for format in ("course", "folder"):
        assert refusal(file, format=format).what == f"{file}: expected a folder, found a file"


def test_pipes_devices_and_circles_of_links_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    kind = "neither a file nor a folder (a pipe, a socket or a device)"
    assert refusal(tmp_path / "pipe.tsv").what == f"{tmp_path / 'pipe.tsv'}: {kind}"
    assert refusal(Path("/dev/zero"), format="table").what == f"/dev/zero: {kind}"
    (tmp_path / "one.tsv").symlink_to(tmp_path / "two.tsv")
    (tmp_path / "two.tsv").symlink_to(tmp_path / "one.tsv")
    assert refusal(tmp_path / "one.tsv").what.startswith(f"{tmp_path / 'one.tsv'}: cannot be read")


def test_formats_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pdf", "x")
    assert refusal(file).what.startswith(f"{file}: the format cannot be detected from the suffix")
    assert refusal(file, format="tabel").what == "data.format = 'tabel' is not known; did you mean 'table'?"
    assert refusal(tmp_path).what == f"{tmp_path}: unknown format: the folder contains a.pdf"
    assert refusal(write(tmp_path / "what" / "a.abc", "x")).hint.startswith("set data.format")
    assert refusal(Path("a\0b")).what.startswith("'a\\x00b' is not a path")
    with pytest.raises(BadInput, match=r"data\.source is empty"):
        read(Data(source=""), "lm")


@cases(
    ("line", "what"),
    [
        ('{"text": "A"', "invalid JSON: Expecting ',' delimiter: line 1 column 13 (char 12)"),
        ("[1]", "expected a JSON object in braces"),
        ('{"label": 1}', "the text is missing"),
        ('{"text": "A"}', "the label is missing"),
        ('{"text": "A", "label": null}', "the label is missing"),
        ('{"text": "A", "label": 0.5}', "the label must be a string or an integer, got 0.5"),
        ('{"text": ["A"], "label": 1}', "the text must be a string, got ['A']"),
        ('{"text": " ", "label": 1}', "the text is missing"),
        ('{"text": "\\u0000", "label": 1}', "the text contains an escaped NUL or half a surrogate pair"),
    ],
)
def test_a_bad_json_line_is_refused(tmp_path: Path, line: str, what: str) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "A", "label": 1}\n' + line + "\n")
    assert refusal(file).what == f"{file}:2: {what}"
    for line in ('{"text": "\\ud800", "label": 1}', "[" * 200_000, "1" * 5_000):
        file.write_text('{"text": "A", "label": 1}\n' + line + "\n")
        assert refusal(file).what.startswith(f"{file}:2: invalid JSON: ")


def test_an_empty_class_folder_or_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "pos/1.txt", "Good.")
    (tmp_path / "neg").mkdir()
    assert refusal(tmp_path).what == f"{tmp_path / 'neg'}: the folder of this class has no text file"
    file = write(tmp_path / "neg/1.txt", "")
    assert refusal(tmp_path).what == f"{file}: the file is empty"
    write(file, b"Bad.\nna\xefve")
    assert refusal(tmp_path).what == f"{file}:2: byte 0xEF is not UTF-8"


def test_a_file_that_is_missing_from_the_course_folder_is_named(tmp_path: Path) -> None:
    for name in ("train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_obama.txt"):
        folder = course(tmp_path / name, without=name)
        for task in ("classify", "lm"):
            assert refusal(folder, task).what == f"{folder}: {name.replace('obama', '*')} is missing from this folder"


# anything at all

anything = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet='01ab \t\n\r",{}:[]é\u2028', max_size=80).map(lambda text: text.encode()),
    st.text(alphabet="01 \tab\n", max_size=80).map(lambda text: ("label\ttext\n0\ta b\n1\tc d\n" + text).encode()),
)


@cases("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt", "a.tokens", "one/a.txt", "course"])
def test_random_bytes_give_a_corpus_or_a_refusal(tmp_path: Path, name: str) -> None:
    if name == "course":
        folder = course(tmp_path / "source")
        target = folder / "train_CLS.tsv"
    else:
        target = write(tmp_path / "source" / name, "x")
        write(tmp_path / "source/two/a.txt", "x")
    source = target.parent if name == "course" else tmp_path / "source" if "/" in name else target

    @settings(max_examples=60)
    @given(content=anything, task=st.sampled_from(["classify", "lm"]))
    def check(content: bytes, task: str) -> None:
        target.write_bytes(content)
        try:
            corpus = read(Data(source=str(source)), task)
        except BadInput:
            return
        assert corpus.train
        assert all(document.text == document.text.strip() != "" for document in corpus.train)
        assert all(document.label in corpus.labels for document in corpus.train if task == "classify")

    check()


def test_a_test_set_that_is_called_like_another_split_is_refused(tmp_path: Path) -> None:
    """Otherwise its text would be trained on, or selected by."""
    for name in ("train", "validation", "training"):
        write(course(tmp_path / name) / f"test_LM_{name}.txt", "Four.\n")
        assert f"a test set cannot be called '{name}'" in refusal(tmp_path / name, "lm").what


def test_names_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    for folder, text in ((b"yes", "It is."), (b"no\xff", "It is not.")):
        os.makedirs(os.path.join(os.fsencode(tmp_path), folder))
        with open(os.path.join(os.fsencode(tmp_path), folder, b"a.txt"), "w") as file:
            file.write(text)
    assert "is not UTF-8" in refusal(tmp_path).what
