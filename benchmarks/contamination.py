"""What the audit of data finds of planted contamination, how often it accuses clean data, and how long it takes:
`FAIRTRIAL_DATA=FOLDER python benchmarks/contamination.py` prints the tables of docs/contamination.md."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from fairtrial.data.corpus import Document
from fairtrial.data.duplicates import CLEAN, find_duplicates
from fairtrial.data.probes import probe_columns, probe_labels
from fairtrial.data.resemblance import find_resembling

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "data"))
from test_resemblance import KINDS, speeches  # the changes that are planted

PLANTED = 0.15  # of a test set
SETS, CLEAN_SETS, ROWS = 6, 24, 600  # labelled sets of one kind, sets without a leak, and rows of each
STRENGTHS = (1.0, 0.5)  # share of the rows of a class whose surface tells it
LEAKS: dict[str, Callable[[str, int, random.Random], str]] = {
    "length": lambda text, label, rng: text if label else f"{text} {text}",
    "punctuation": lambda text, label, rng: text.rstrip(" .") + (" ." if label else ""),
    "casing": lambda text, label, rng: text.capitalize() if label else text.lower(),
    "an ID in the text": lambda text, label, rng: f"{text} {2 * rng.randrange(5000) + label}",
    "a code in the text": lambda text, label, rng: f"{'ab'[label]}{rng.randrange(9999)} {text}",
    "white space": lambda text, label, rng: text.replace(" ", "  ", 1 + label) if label else text,
}
COLUMNS = ("review_id", "doc_id", "url", "speaker", "authorId", "thread", "session-id", "product")
MANY = 100_000


def sources(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """(name, training texts, clean test texts)"""
    yield ("speeches", *speeches())
    rows = [line.split("\t")[0] for line in read_lines(folder / "sst2" / "train.tsv")]
    lines = [line for line in read_lines(folder / "lm1b" / "1b_benchmark.dev.tokens") if line]
    for name, texts in (("SST-2", rows), ("LM1B", lines)):
        texts = list(dict.fromkeys(texts))
        random.Random(1).shuffle(texts)
        items, known = texts[:1000], texts[1000:8000]
        status = find_duplicates(known, items).status
        yield name, known, [item for item, kind in zip(items, status, strict=True) if kind == CLEAN]


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def planted(kind: str, known: list[str], count: int) -> list[str]:
    rng, change = random.Random(0), KINDS[kind][0]
    vocabulary = sorted({word for text in known for word in text.split()})
    lengths = range(4, 9) if kind.startswith("short") else range(8, 100)
    fitting = [
        text for text in known if len(text.split()) in lengths and ("digits" not in kind or re.search(r"\d", text))
    ]
    return [" ".join(change(text.split(), rng, vocabulary)) for text in rng.sample(fitting, min(count, len(fitting)))]


def copies(folder: Path) -> None:
    """Each kind is planted alone; all are asked about at once, as items do not see one another."""
    columns, names = [], []
    for name, known, clean in sources(folder):
        copied = [planted(kind, known, round(PLANTED * len(clean))) for kind in KINDS]
        items = [*clean, *(text for some in copied for text in some)]
        caught = (find_resembling(known, items).partner >= 0) | (find_duplicates(known, items).status != CLEAN)
        ends = np.cumsum([len(clean), *map(len, copied)])
        recall = [f"{caught[begin:end].mean():.0%}" if end > begin else "-" for begin, end in pairwise(ends)]
        columns.append([*recall, f"{caught[: len(clean)].mean():.2%}"])
        names.append(name)
    print_table(["change", *names], zip([*KINDS, "flagged clean items"], *columns, strict=True))


def labelled(texts: list[str], rng: random.Random, kind: str = "", strength: float = 1.0) -> list[Document]:
    labels = [number % 2 for number in range(ROWS)]
    rng.shuffle(labels)
    if kind == "position":
        labels = [int(number > ROWS / 2) if rng.random() < strength else label for number, label in enumerate(labels)]
    rows = []
    for number, (text, label) in enumerate(zip(rng.sample(texts, ROWS), labels, strict=True)):
        changed = LEAKS[kind](text, label, rng) if kind in LEAKS and rng.random() < strength else text
        rows.append(Document(changed, label="ab"[label], location=f"train.tsv:{number + 1}"))
    return rows


def surface(texts: list[str]) -> None:
    rows = []
    for kind in (*LEAKS, "position"):
        shares = []
        for strength in STRENGTHS:
            told = [
                any(probe.leaks for probe in probe_labels(labelled(texts, random.Random(seed), kind, strength)))
                for seed in range(SETS)
            ]
            shares.append(f"{sum(told)} of {SETS}")
        rows.append([kind, *shares])
    unchanged = [labelled(texts, random.Random(seed)) for seed in range(CLEAN_SETS)]
    told = [any(probe.leaks for probe in probe_labels(rows_)) for rows_ in unchanged]
    rows.append(["none (false alarms)", f"{sum(told)} of {CLEAN_SETS}", ""])
    print_table(["labels told by", *(f"in {share:.0%} of rows" for share in STRENGTHS)], rows)


def groups(texts: list[str]) -> None:
    """300 groups of ten texts, split at random or by group, under usual names and under a name that says nothing."""
    rng, rows = random.Random(0), []
    documents = [Document(text, location=f"all.tsv:{number}") for number, text in enumerate(texts[:3000])]
    cells = {document.location: f"g{number // 10}" for number, document in enumerate(documents)}
    shuffled = rng.sample(documents, len(documents))
    by_group = [each for each in documents if int(cells[each.location][1:]) % 5]
    held = [each for each in documents if not int(cells[each.location][1:]) % 5]
    splits = ((shuffled[600:], shuffled[:600]), (by_group, held), (by_group + held[:25], held[25:]))
    for name in (*COLUMNS, "field_7"):
        told = [any(each.leaks for each in probe_columns(known, items, {name: cells})) for known, items in splits]
        rows.append([f"`{name}`", *("found" if each else "-" for each in told)])
    print_table(["column of the groups", "split at random", "split by it", "split by it but for some"], rows)


def seconds(texts: list[str]) -> None:
    rng = random.Random(0)
    words = [word for text in texts for word in text.split()]
    many = [" ".join(rng.choices(words, k=rng.randint(5, 40))) for _ in range(MANY)]
    for name, search in (("duplicates", find_duplicates), ("reworded copies", find_resembling)):
        begun = time.process_time()
        search(many[: MANY * 9 // 10], many[MANY * 9 // 10 :])
        print(f"{name}: {time.process_time() - begun:.1f} s of processor time for {MANY:,} texts")


def print_table(header: list[str], rows: object) -> None:
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:  # type: ignore[attr-defined]
        print("| " + " | ".join(row) + " |")
    print(flush=True)


if __name__ == "__main__":
    place = Path(os.environ["FAIRTRIAL_DATA"])
    reviews = [line.split("\t")[0] for line in read_lines(place / "sst2" / "train.tsv")]
    groups(reviews)
    copies(place)
    surface([text for text in reviews if len(text.split()) > 3])
    seconds(reviews)
