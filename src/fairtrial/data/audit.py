"""What an audit of data found: a measured value, its limit, a verdict, one plain sentence, and examples to look up.

D1 and D7: texts, and documents of one group, that stand on both sides of a split. A score on them tests memory.

D3 and D5: texts under two labels, and words that give the label away.

D4, P3 and the unknown words of D6: what the tokenizer saw, and what it will not know.

D6: how test sets differ from train, and rows that the files of one folder share. Things to know beside a score.

Contamination: does a test set test what it should? Copies, labels, vocabulary, drift, in one value to keep.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from statistics import median
from typing import Any

import numpy as np

from fairtrial.data.corpus import Document, Splits
from fairtrial.data.duplicates import CLEAN, EXACT, NEAR, Copies, key, match, words
from fairtrial.data.readers import find_format, read
from fairtrial.data.tokenizer import NO_COURSE, Tokenizer, fit
from fairtrial.errors import BadInput
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Data, Recipe

PASS, AMBER, RED, REPORT = "PASS", "AMBER", "RED", "REPORT"
MANY = 0.01  # a share of the test items above which a score on all of them is not believed
EXAMPLES = 3


@dataclass(frozen=True)
class DataFinding:
    id: str
    name: str
    where: str  # the test set or split that was looked at
    value: float
    shown: str  # the value as people read it
    limit: str
    verdict: str
    meaning: str
    examples: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"examples": list(self.examples)}


def by_share(count: int, of: int, most: str = RED) -> str:
    """PASS at none, AMBER above, `most` above one per cent."""
    if not count:
        return PASS
    return most if count > MANY * of else AMBER


def count_of(count: int, of: int) -> str:
    return f"{count:,} of {of:,} ({count / of:.1%})" if of else "0"


def quote(document: Document) -> str:
    """`test_CLS.tsv:12 "We will ..."`"""
    return f'{file_of(document)} "{shorten(document.text)}"'


def file_of(document: Document) -> str:
    """`test_CLS.tsv:12`"""
    return PurePath(document.place).name or "(no file)"


def shorten(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3].rstrip() + "..."


def first_few(lines: Iterable[str]) -> tuple[str, ...]:
    found = []
    for line in lines:
        found.append(line)
        if len(found) == EXAMPLES:
            break
    return tuple(found)


LIMIT = "0; red > 1%"


def audit_copies(
    name: str, known: Sequence[Document], items: Sequence[Document], copies: Copies, most: str = RED
) -> Iterator[DataFinding]:
    """One test set against all that training sees. `most`: the verdict on more than a few."""
    exact, near = (int((copies.status == kind).sum()) for kind in (EXACT, NEAR))
    same = f"; {copies.identical:,} to the letter" if exact else ""
    yield DataFinding(
        "D1",
        "copies from train",
        name,
        exact / len(items),
        count_of(exact, len(items)),
        LIMIT,
        by_share(exact, len(items), most),
        f"test items that stand in the training text, but for case and punctuation{same}: a score on them tests memory."
        if exact
        else "no test item stands in the training text.",
        _examples(copies, EXACT, known, items),
    )
    yield DataFinding(
        "D1n",
        "near copies from train",
        name,
        near / len(items),
        count_of(near, len(items)),
        LIMIT,
        by_share(near, len(items), most),
        "test items of 8 words or more that share half of their 3-word runs with a training text, stand in one or"
        " hold one."
        if near
        else "no test item is nearly a training text.",
        _examples(copies, NEAR, known, items),
    )


def audit_repeats(name: str, documents: Sequence[Document]) -> DataFinding:
    """Texts that stand more than once in one split."""
    counts = Counter(key(document.text) for document in documents)
    extra = len(documents) - len(counts)
    verdict = PASS if not extra else REPORT if name == "train" or extra <= MANY * len(documents) else AMBER
    meaning = "no text stands twice." if not extra else "texts that stand there before: they count more than once."
    often = (
        f"{count} times: {quote(next(each for each in documents if key(each.text) == text))}"
        for text, count in counts.most_common()
        if count > 1
    )
    return DataFinding(
        "D1r",
        "repeated inside the set",
        name,
        extra / len(documents),
        count_of(extra, len(documents)),
        "1%",
        verdict,
        meaning,
        first_few(often),
    )


def audit_groups(name: str, known: Sequence[Document], items: Sequence[Document]) -> DataFinding:
    groups = {document.group for document in known} - {""}
    named = any(document.group for document in items)
    straddling = [document for document in items if document.group in groups]
    if not groups or not named:
        meaning = "the data name no documents (a column or key `group`), so neighbours on both sides cannot be found."
        return DataFinding("D7", "documents on both sides", name, 0.0, "not known", "0; red > 1%", REPORT, meaning)
    meaning = (
        "test items whose document (group) is also trained on: its names and phrases are known."
        if straddling
        else "no document is on both sides."
    )
    return DataFinding(
        "D7",
        "documents on both sides",
        name,
        len(straddling) / len(items),
        count_of(len(straddling), len(items)),
        LIMIT,
        by_share(len(straddling), len(items)),
        meaning,
        first_few(f"group {document.group!r}: {quote(document)}" for document in straddling),
    )


def _examples(copies: Copies, kind: int, known: Sequence[Document], items: Sequence[Document]) -> tuple[str, ...]:
    places = np.flatnonzero(copies.status == kind)
    pairs = ((items[int(at)], known[int(copies.partner[at])]) for at in places)
    if kind == EXACT:
        return first_few(f"{quote(item)} = {file_of(other)}" for item, other in pairs)
    return first_few(f"{quote(item)} ~ {quote(other)}" for item, other in pairs)


ROWS = 20  # a word in fewer texts may be of one class by chance
PURE = 0.99
CHANCE = 1e-6  # that all its texts are of one class although it says nothing of classes


def audit_conflicts(splits: Mapping[str, Sequence[Document]]) -> Iterator[DataFinding]:
    """The same text under two labels: inside train, inside each test set, and between them."""
    train = splits["train"]
    for name, documents in splits.items():
        yield _conflicts(name, documents, documents)
        if name != "train":
            yield _conflicts(f"{name} and train", documents, train)


def _conflicts(where: str, documents: Sequence[Document], others: Sequence[Document]) -> DataFinding:
    labels: defaultdict[str, dict[str, Document]] = defaultdict(dict)
    for document in others:
        labels[key(document.text)].setdefault(document.label, document)
    against = [
        (document, other)
        for document in documents
        for label, other in labels.get(key(document.text), {}).items()
        if label != document.label
    ]
    torn = {document.place: document for document, _ in against}
    told = (f"{one.label!r} {quote(one)}, {other.label!r} {quote(other)}" for one, other in against)
    return DataFinding(
        "D3",
        "one text, two labels",
        where,
        len(torn) / len(documents),
        count_of(len(torn), len(documents)),
        "0",
        AMBER if torn else PASS,
        "texts that stand under another label, too: at most one of the two can be guessed."
        if torn
        else "no text stands under two labels.",
        first_few(told),
    )


def audit_leaks(train: Sequence[Document], labels: Sequence[str]) -> Iterator[DataFinding]:
    """Words that almost alone tell the class."""
    classes = Counter(document.label for document in train)
    rows: Counter[str] = Counter()
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in train:
        for word in set(words(document.text)):
            rows[word] += 1
            by_class[word][document.label] += 1
    telling = []
    for word, count in rows.most_common():
        if count < ROWS:
            break
        label, own = by_class[word].most_common(1)[0]
        if own >= PURE * count and (classes[label] / len(train)) ** own < CHANCE:
            telling.append(f"{word!r}: {own} of its {count} texts are {label!r}")
    yield DataFinding(
        "D5",
        "words that tell the class",
        "train",
        float(len(telling)),
        f"{len(telling)} words",
        "0",
        AMBER if telling else PASS,
        f"words in at least {ROWS} texts, {PURE:.0%} of them of one class: is that the task, or a trace of how the data"
        " were made?"
        if telling
        else f"no word of {ROWS} texts or more stands for one class alone.",
        first_few(telling),
    )
    yield _spelled(train, labels, by_class)


def _spelled(train: Sequence[Document], labels: Sequence[str], by_class: Mapping[str, Counter[str]]) -> DataFinding:
    """A label's own name in its texts."""
    own = any_class = 0
    for label in labels:
        spelled = words(label)
        if len(spelled) == 1 and spelled[0] in by_class:
            own += by_class[spelled[0]][label]
            any_class += by_class[spelled[0]].total()
    leaks = own >= ROWS and own >= 0.9 * any_class
    return DataFinding(
        "D5n",
        "label named in its text",
        "train",
        own / len(train),
        count_of(own, len(train)),
        f"{ROWS} texts",
        AMBER if leaks else REPORT if own else PASS,
        f"texts that name their own label; {any_class - own:,} texts name another."
        if own
        else "no text names its label.",
    )


MOST = 5000  # documents that are encoded for a share
MORE_UNKNOWN = 0.05  # unknown share of a test set above that of train


def audit_vocabulary(prepared: Prepared) -> Iterator[DataFinding]:
    if prepared.recipe.tokens.kind == "encoder" or prepared.recipe.encoder.source != "none":
        return  # a pretrained encoder brings its vocabulary
    if prepared.recipe.tokens.fit not in ("train", "course"):
        return  # so does a record
    fitted = fitted_lines(prepared)
    yield from _fitted_on_tests(prepared, fitted)
    yield _labels_fitted(prepared, fitted)
    tokenizer = fit(prepared.recipe.tokens, fitted)
    if tokenizer.unknown is not None:
        yield _unknown_trained(prepared, tokenizer)
        yield from _unknown_shares(prepared, tokenizer)


def fitted_lines(prepared: Prepared) -> Sequence[str]:
    """The texts that a trial of this recipe fits its tokenizer on."""
    if prepared.recipe.tokens.fit == "course":
        if not prepared.corpus.course_lines:
            raise BadInput(*NO_COURSE)
        return prepared.corpus.course_lines
    return [document.text for document in prepared.splits.train]


def _fitted_on_tests(prepared: Prepared, fitted: Sequence[str]) -> Iterator[DataFinding]:
    """Test items in the text of the vocabulary that do not stand in train: copies in train are told by D1."""
    known = {key(document.text) for document in prepared.known}
    seen = {key(line.partition("\t")[2] or line) for line in fitted} - known
    for name, documents in prepared.splits.tests.items():
        found = [document for document in documents if key(document.text) in seen]
        yield DataFinding(
            "D4",
            "vocabulary fitted on test",
            name,
            len(found) / len(documents),
            count_of(len(found), len(documents)),
            "0",
            RED if found else PASS,
            "test items that are not in the training split, but in the text that the vocabulary is made from: their"
            " words are never unknown."
            if found
            else "the vocabulary is made from text that holds no further test item.",
            first_few(map(quote, found)),
        )


def _labels_fitted(prepared: Prepared, fitted: Sequence[str]) -> DataFinding:
    lines = [line for line in fitted if "\t" in line and prepared.recipe.tokens.fit == "course"]
    return DataFinding(
        "D4l",
        "labels in the vocabulary",
        "train",
        len(lines) / len(fitted),
        count_of(len(lines), len(fitted)),
        "0",
        RED if lines else PASS,
        "lines that the vocabulary is made from with their label column."
        if lines
        else "no label column was fitted on.",
    )


def _unknown_trained(prepared: Prepared, tokenizer: Tokenizer) -> DataFinding:
    count = int(tokenizer.facts["unknown_tokens"])
    bad = RED if prepared.recipe.task == "lm" else AMBER
    return DataFinding(
        "P3",
        "unknown word never trained",
        "train",
        float(count),
        f"{count:,} tokens",
        "> 0",
        PASS if count else bad,
        "the unknown token occurs in training, so a model can learn what to expect of it."
        if count
        else "every training word has an entry, so the unknown token is never trained and each unknown word costs a"
        " random amount (raise tokens.min_count).",
    )


def _unknown_shares(prepared: Prepared, tokenizer: Tokenizer) -> Iterator[DataFinding]:
    train = unknown_share(prepared.splits.train, tokenizer)
    for name, documents in prepared.splits.tests.items():
        share = unknown_share(documents, tokenizer)
        yield DataFinding(
            "D6u",
            "unknown words",
            name,
            share,
            f"{share:.1%} (train {train:.1%})",
            f"train + {MORE_UNKNOWN:.0%}",
            AMBER if share > train + MORE_UNKNOWN else REPORT,
            "tokens of the test set that the vocabulary does not hold.",
        )


def unknown_share(documents: Sequence[Document], tokenizer: Tokenizer) -> float:
    """On documents evenly spread over the set, where it is large."""
    chosen = documents[:: -(-len(documents) // MOST)] if len(documents) > MOST else documents
    rows = tokenizer.encode([document.text for document in chosen])
    tokens = sum(map(len, rows))
    return sum(row.count(tokenizer.unknown or 0) for row in rows) / max(1, tokens)


SHARES = 0.1  # total variation
LONGER = 1.5  # times


def audit_drift(splits: Splits) -> Iterator[DataFinding]:
    for name, documents in splits.tests.items():
        if splits.labels:
            yield _classes(name, splits, documents)
        yield _lengths(name, splits.train, documents)


def _classes(name: str, splits: Splits, documents: Sequence[Document]) -> DataFinding:
    train, test = (_shares(each, splits.labels) for each in (splits.train, documents))
    distance = sum(abs(one - other) for one, other in zip(train, test, strict=True)) / 2
    told = [
        f"{label}: {one:.1%} of train, {other:.1%} of {name}"
        for label, one, other in zip(splits.labels, train, test, strict=True)
    ]
    meaning = "share of items that would have to change class for the shares of train."
    verdict = AMBER if distance > SHARES else REPORT
    return DataFinding(
        "D6c", "class shares", name, distance, f"{distance:.1%}", f"{SHARES:.0%}", verdict, meaning, tuple(told[:12])
    )


def _shares(documents: Sequence[Document], labels: Sequence[str]) -> list[float]:
    counts = Counter(document.label for document in documents)
    return [counts[label] / len(documents) for label in labels]


def _lengths(name: str, train: Sequence[Document], documents: Sequence[Document]) -> DataFinding:
    one, other = (median(len(words(document.text)) for document in each) for each in (train, documents))
    ratio = (other + 1) / (one + 1)
    return DataFinding(
        "D6l",
        "length",
        name,
        ratio,
        f"{other:g} words (train {one:g})",
        f"{LONGER:g} times",
        REPORT if 1 / LONGER <= ratio <= LONGER else AMBER,
        "words in the middle document of each.",
    )


def audit_files(data: Data, task: str) -> Iterator[DataFinding]:
    """The course's folder has files for two tasks, and each task's training files hold the other's test rows."""
    if find_format(data) != "course":
        return
    other = "lm" if task == "classify" else "classify"
    here, there = read(data, task), read(data, other)
    from_there: defaultdict[str, set[str]] = defaultdict(set)
    for document in there.train:
        from_there[key(document.text)].add(document.label)
    name = {"classify": "train_CLS", "lm": "train_LM"}[other]
    for test, documents in here.tests.items():
        shared = sum(key(document.text) in from_there for document in documents)
        yield DataFinding(
            "D6f",
            f"rows shared with {name}",
            test,
            shared / len(documents),
            count_of(shared, len(documents)),
            "to know",
            REPORT,
            f"test items in the other task's training file: never train on it, nor fit a vocabulary on it, for {task}.",
        )
    if task == "lm":
        yield _speakers(here.train, from_there)


def _speakers(train: Sequence[Document], labelled: dict[str, set[str]]) -> DataFinding:
    """Whose sentences a language model is trained on, as far as the labelled file tells."""
    counts = Counter(label for document in train for label in labelled.get(key(document.text), ()))
    labels = sorted({label for found in labelled.values() for label in found})
    rows = sum(key(document.text) in labelled for document in train)
    told = ", ".join(f"{counts[label]:,} of class {label}" for label in labels)
    return DataFinding(
        "D6s",
        "whose text is in train_LM",
        "train",
        rows / len(train),
        count_of(rows, len(train)),
        "to know",
        REPORT,
        f"training rows that train_CLS labels: {told}. A speaker who is missing is harder to predict.",
    )


Tell = Callable[[str], None]


def find_copies(train_texts: Sequence[str], test_texts: Sequence[str]) -> np.ndarray:
    """The status of each test text: 0 clean, 1 a copy of a training text, 2 nearly one."""
    return match(train_texts, test_texts).status


def audit_data(recipe: Recipe, seed: int = 0, tell: Tell = lambda what: None) -> dict[str, Any]:
    """All checks on the data of a recipe; docs/contamination.md tells the shape. `tell` hears what is being done."""
    tell("reading")
    prepared = prepare(recipe, seed)
    copies = {}
    for name, documents in prepared.splits.tests.items():
        tell(f"looking for copies of {len(prepared.known):,} training documents among {len(documents):,} of {name!r}")
        copies[name] = match([each.text for each in prepared.known], [each.text for each in documents])
    tell("looking at labels, vocabulary and drift")
    findings = [*_all_findings(prepared, copies)]
    verdicts = {finding.verdict for finding in findings}
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "level": (RED if RED in verdicts else AMBER if AMBER in verdicts else PASS).lower(),
        "documents": {"train": len(prepared.splits.train), "validation": len(prepared.splits.validation)},
        "sets": {name: summary(found) for name, found in copies.items()},
        "findings": [finding.to_dict() for finding in findings],
        "notes": list(prepared.corpus.notes),
    }


def summary(copies: Copies) -> dict[str, Any]:
    status = copies.status
    count = {name: int((status == kind).sum()) for name, kind in (("exact", EXACT), ("near", NEAR), ("clean", CLEAN))}
    share = 1 - count["clean"] / len(status)
    return {"items": len(status), "identical": copies.identical, **count, "share": share, "status": status.tolist()}


def _all_findings(prepared: Prepared, copies: dict[str, Copies]) -> Sequence[DataFinding]:
    splits = prepared.splits
    found: list[DataFinding] = []
    for name, documents in splits.tests.items():
        found += audit_copies(name, prepared.known, documents, copies[name])
        found.append(audit_groups(name, prepared.known, documents))
    if prepared.corpus.validation:  # where we carve it, copies never straddle
        validation = prepared.corpus.validation
        between = match([each.text for each in splits.train], [each.text for each in validation])
        found += audit_copies("validation", splits.train, validation, between, most=AMBER)
    found += [audit_repeats(name, documents) for name, documents in (("train", prepared.known), *splits.tests.items())]
    if splits.labels:
        found += audit_conflicts({"train": prepared.known, **splits.tests})
        found += audit_leaks(prepared.known, splits.labels)
    found += audit_vocabulary(prepared)
    found += audit_drift(splits)
    found += audit_files(prepared.recipe.data, prepared.recipe.task)
    return found
