"""Unlabelled text: a novel in paragraphs (`text`), or sentences that stand alone, one per line (`lines`)."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.lines import TextFile, hashes, is_folder, read_lines, source_files, split_files

LINE_SUFFIXES = (".tokens", ".txt")


def read_text(path: Path, task: str) -> Corpus:
    """One plain text file, or a folder of train.txt, valid.txt, test.txt: running text in reading order."""
    _refuse_classes(path, task)
    files = {split: read_lines(file) for split, file in source_files(path, (".txt",)).items()}
    return Corpus(
        train=paragraphs(files["train"]),
        validation=paragraphs(files["validation"]) if "validation" in files else (),
        tests={"test": paragraphs(files["test"])} if "test" in files else {},
        running=True,
        paragraphs=True,
        ordered=True,
        files=hashes(path, list(files.values())),
    )


def read_sentences(path: Path, task: str) -> Corpus:
    """One sentence per line: a file, or a folder of *.train.tokens, *.dev.tokens, *.test.tokens."""
    _refuse_classes(path, task)
    notes: tuple[str, ...] = ()
    found = split_files(path, LINE_SUFFIXES) if is_folder(path) else {}
    if set(found) == {"validation", "test"}:
        notes = (f"there is no training file: trained on {found['validation'].name}, tested on {found['test'].name}",)
        found = {"train": found["validation"], "test": found["test"]}
    files = {split: read_lines(file) for split, file in (found or source_files(path, LINE_SUFFIXES)).items()}
    if "train" not in files:
        raise BadInput(f"there is only a {next(iter(files))} file here, nothing to train on", path=path)
    return Corpus(
        train=one_per_line(files["train"]),
        validation=one_per_line(files["validation"]) if "validation" in files else (),
        tests={"test": one_per_line(files["test"])} if "test" in files else {},
        spaced=files["train"].path.suffix == ".tokens",
        files=hashes(path, list(files.values())),
        notes=notes,
    )


def one_per_line(file: TextFile) -> tuple[Document, ...]:
    """Each line a document; blank lines hold none."""
    return tuple(Document(line.strip(), place=file.place(n)) for n, line in file.numbered() if line.strip())


def paragraphs(file: TextFile) -> tuple[Document, ...]:
    """Stretches between blank lines; where there is no blank line, each line. Line ends inside a paragraph stay."""
    numbered = list(file.numbered())
    start = next(n for n, line in numbered if line.strip())  # blank lines at the top separate nothing
    if all(line.strip() for _, line in numbered[start - 1 :]):
        return one_per_line(file)
    found: list[Document] = []
    open_lines: list[str] = []
    for number, line in [*numbered, (len(numbered) + 1, "")]:
        if line.strip():
            open_lines.append(line.rstrip())
        elif open_lines:
            text = "\n".join(open_lines).strip()
            found.append(Document(text, place=file.place(number - len(open_lines))))
            open_lines = []
    return tuple(found)


def _refuse_classes(path: Path, task: str) -> None:
    if task == "classify":
        hint = "classify needs a label for each text: a .tsv, .csv or .jsonl file, or one folder per class"
        raise BadInput("plain text has no labels", f"{hint}; or choose task = 'lm'", path=path)
