"""One folder per class, one text file per document; train/ and test/ (and dev/) above the classes are honoured."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.lines import SPLIT_NAMES, TextFile, entries, hashes, read_lines


def read_folder(folder: Path, task: str) -> Corpus:
    splits: dict[str, Path] = {}
    for entry in _folders(folder):
        split = SPLIT_NAMES.get(entry.name.lower())
        if split is None:
            continue
        if split in splits:
            what = f"two folders could be the {split} set: {splits[split].name} and {entry.name}"
            raise BadInput(what, "keep one of them", path=folder)
        splits[split] = entry
    if "train" not in splits:
        splits = {"train": folder}  # then its folders are the classes

    files: list[TextFile] = []
    notes: list[str] = []
    documents = {split: _classes(place, task, files, notes) for split, place in splits.items()}
    return Corpus(
        train=documents["train"],
        validation=documents.get("validation", ()),
        tests={"test": documents["test"]} if "test" in documents else {},
        files=hashes(folder, files),
        notes=tuple(notes),
    )


def _classes(folder: Path, task: str, files: list[TextFile], notes: list[str]) -> tuple[Document, ...]:
    classes = _folders(folder)
    if not classes:
        raise BadInput("there is no class folder in it", "one folder per class, text files in each", path=folder)
    if beside := len(entries(folder)) - len(classes):
        notes.append(f"{beside} file{'s' if beside > 1 else ''} beside the class folders of {folder.name} not read")
    documents = []
    for place in classes:
        texts = entries(place)
        if not texts:
            raise BadInput("this class is empty: its folder holds no text file", "fill or remove it", path=place)
        for path in texts:
            file = read_lines(path)
            files.append(file)
            label = place.name.strip() if task == "classify" else ""
            documents.append(Document("\n".join(file.lines).strip(), label=label, place=str(path)))
    return tuple(documents)


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if entry.is_dir()]
