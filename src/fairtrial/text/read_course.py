"""The course's folder: labelled sentences (train_CLS.tsv, test_CLS.tsv), running text (train_LM.txt, test_LM_*.txt)."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.lines import TextFile, entries, hashes, read_lines
from fairtrial.text.read_text import one_per_line

TRAIN_CLS, TEST_CLS, TRAIN_LM, TEST_LM = "train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_"


def is_course(folder: Path) -> bool:
    """Any one of the files will do, so that an incomplete copy is told what it lacks."""
    names = [entry.name for entry in entries(folder)]
    return any(name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) or name.startswith(TEST_LM) for name in names)


def read_course(folder: Path, task: str) -> Corpus:
    names = [entry.name for entry in entries(folder)]
    test_names = [name for name in names if name.startswith(TEST_LM) and name.endswith(".txt")]
    missing = [name for name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) if name not in names]
    missing += [] if test_names else [f"{TEST_LM}*.txt"]
    if missing:
        hint = f"the course's folder holds {TRAIN_CLS}, {TEST_CLS}, {TRAIN_LM} and {TEST_LM}<speaker>.txt"
        raise BadInput(f"{', '.join(missing)} is missing from this folder", hint, path=folder)

    train_cls, train_lm = read_lines(folder / TRAIN_CLS), read_lines(folder / TRAIN_LM)
    course_lines = train_cls.lines + train_lm.lines
    if task == "classify":
        test_cls = read_lines(folder / TEST_CLS)
        return Corpus(
            train=_labelled(train_cls),
            tests={"test": _labelled(test_cls)},
            files=hashes(folder, [train_cls, train_lm, test_cls]),
            course_lines=course_lines,
        )
    tests = {name[len(TEST_LM) : -len(".txt")]: read_lines(folder / name) for name in test_names}
    return Corpus(
        train=one_per_line(train_lm),
        tests={speaker: one_per_line(file) for speaker, file in tests.items()},
        running=True,
        files=hashes(folder, [train_cls, train_lm, *tests.values()]),
        course_lines=course_lines,
    )


def _labelled(file: TextFile) -> tuple[Document, ...]:
    """`label<TAB>text`; a quote is a character, for csv quoting would merge rows at a text that opens with one."""
    documents = []
    for number, line in file.numbered():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            what = f"{len(cells)} column{'s' if len(cells) > 1 else ''} where label<TAB>text is expected"
            raise BadInput(what, "one tab, between label and text", path=file.path, line=number)
        label, text = cells
        if not label or not text:
            raise BadInput(f"the {'text' if label else 'label'} is missing", path=file.path, line=number)
        documents.append(Document(text, label=label, place=file.place(number)))
    return tuple(documents)
