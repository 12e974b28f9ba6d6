"""The audit of a data set: does a test set test what it should? Duplicates, labels, vocabulary, drift.

Each check gives findings; docs/contamination.md lists the checks and their limits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any

import numpy as np

from fairtrial.data.corpus import Document, Splits
from fairtrial.data.duplicates import EXACT, NEAR, Duplicates, find_duplicates, words
from fairtrial.data.readers import find_format, read
from fairtrial.data.splits import text_key
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.finding import AMBER, PASS, RED, REPORT, Finding, worst
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Data, Recipe

MANY = 0.01  # share of the test items above which a score on all of them is not believed
LIMIT = "0; red > 1%"
EXAMPLES = 3
LEAST_TEXTS = 20  # a word in fewer texts may belong to one class by chance
PURE = 0.99
CHANCE = 1e-6  # that all texts of a word are of one class although it says nothing about classes
MOST_ENCODED = 5000  # documents that are encoded to measure a share
MORE_UNKNOWN = 0.05  # unknown share of a test set above that of train
CLASS_DRIFT = 0.1  # total variation
LENGTH_RATIO = 1.5


def audit_data(recipe: Recipe, seed: int = 0, on_progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """All checks on the data of a recipe: the content of a contamination.json, see docs/contamination.md."""
    on_progress("reading")
    prepared = prepare(recipe, seed)
    duplicates = {}
    for name, documents in prepared.splits.tests.items():
        on_progress(f"comparing {len(documents):,} items of {name!r} with {len(prepared.known):,} training documents")
        duplicates[name] = duplicates_between(prepared.known, documents)
    on_progress("checking labels, vocabulary and drift")
    findings = all_findings(prepared, duplicates)
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "level": worst(findings),
        "documents": {"train": len(prepared.splits.train), "validation": len(prepared.splits.validation)},
        "sets": {name: found.counts() | {"status": found.status.tolist()} for name, found in duplicates.items()},
        "findings": [finding.to_dict() for finding in findings],
        "notes": list(prepared.corpus.notes),
    }


def all_findings(prepared: Prepared, duplicates: dict[str, Duplicates]) -> list[Finding]:
    splits = prepared.splits
    found: list[Finding] = []
    for name, documents in splits.tests.items():
        found += audit_duplicates(name, prepared.known, documents, duplicates[name])
        found.append(audit_groups(name, prepared.known, documents))
    if validation := prepared.corpus.validation:  # duplicates never straddle a validation set that we carve
        between = duplicates_between(splits.train, validation)
        found += audit_duplicates("validation", splits.train, validation, between, most=AMBER)
    found += [audit_repeats(name, documents) for name, documents in (("train", prepared.known), *splits.tests.items())]
    if splits.labels:
        found += audit_conflicts({"train": prepared.known, **splits.tests})
        found += audit_leaks(prepared.known, splits.labels)
    found += audit_vocabulary(prepared)
    found += audit_drift(splits)
    found += audit_course_files(prepared.recipe.data, prepared.recipe.task)
    return found


def duplicates_between(known: Sequence[Document], items: Sequence[Document]) -> Duplicates:
    return find_duplicates([document.text for document in known], [document.text for document in items])


def value_finding(
    id: str, name: str, where: str, value: float, shown: str, limit: str, verdict: str, meaning: str, *examples: str
) -> Finding:
    return Finding(
        id=id,
        name=name,
        where=where,
        value=value,
        shown=shown,
        limit=limit,
        verdict=verdict,
        meaning=meaning,
        examples=examples,
    )


def share_finding(
    id: str, name: str, where: str, count: int, of: int, limit: str, verdict: str, meaning: str, *examples: str
) -> Finding:
    shown = f"{count:,} of {of:,} ({count / of:.1%})"
    return value_finding(id, name, where, count / of, shown, limit, verdict, meaning, *examples)


def by_share(count: int, documents: int, most: str = RED) -> str:
    """PASS at none, AMBER above, `most` above one per cent."""
    if not count:
        return PASS
    return most if count > MANY * documents else AMBER


def quote(document: Document) -> str:
    """`test_CLS.tsv:12 "We will ..."`"""
    line = " ".join(document.text.split())
    return f'{file_of(document)} "{line if len(line) <= 60 else line[:57].rstrip() + "..."}"'


def file_of(document: Document) -> str:
    """`test_CLS.tsv:12`"""
    return PurePath(document.location).name or "(no file)"


# duplicates and groups on both sides of a split: a score on them tests memory


def audit_duplicates(
    name: str, known: Sequence[Document], items: Sequence[Document], duplicates: Duplicates, most: str = RED
) -> Iterator[Finding]:
    """D1, D1n: one test set against everything that training sees. `most`: the verdict above one per cent."""
    exact, near = np.flatnonzero(duplicates.status == EXACT), np.flatnonzero(duplicates.status == NEAR)

    def pairs(numbers: np.ndarray) -> list[tuple[Document, Document]]:
        return [(items[number], known[duplicates.partner[number]]) for number in numbers[:EXAMPLES].tolist()]

    meaning = "No test item also occurs in the training set."
    if count := len(exact):
        meaning = (
            "Test items that also occur in the training set, apart from case and punctuation;"
            f" {duplicates.identical:,} are identical character by character: a score on them tests memory."
        )
    examples = [f"{quote(item)} = {file_of(other)}" for item, other in pairs(exact)]
    verdict = by_share(count, len(items), most)
    yield share_finding("D1", "duplicates of train", name, count, len(items), LIMIT, verdict, meaning, *examples)

    meaning = "No test item is a near duplicate of a training text."
    if count := len(near):
        meaning = (
            "Test items of 8 words or more that share half of their 3-word runs with a training text, or where one of"
            " the two texts contains the other."
        )
    examples = [f"{quote(item)} ~ {quote(other)}" for item, other in pairs(near)]
    verdict = by_share(count, len(items), most)
    yield share_finding("D1n", "near duplicates of train", name, count, len(items), LIMIT, verdict, meaning, *examples)


def audit_repeats(name: str, documents: Sequence[Document]) -> Finding:
    """D1r: texts that occur more than once in one set."""
    counts = Counter(text_key(document.text) for document in documents)
    extra = len(documents) - len(counts)
    verdict = PASS if not extra else REPORT if name == "train" or extra <= MANY * len(documents) else AMBER
    first = {text_key(document.text): document for document in reversed(documents)}
    often = [(key, count) for key, count in counts.most_common(EXAMPLES) if count > 1]
    examples = [f"{count} times: {quote(first[key])}" for key, count in often]
    meaning = (
        "Texts that occurred earlier in the same set: they count more than once." if extra else "No text occurs twice."
    )
    return share_finding(
        "D1r", "repeated inside the set", name, extra, len(documents), "1%", verdict, meaning, *examples
    )


def audit_groups(name: str, known: Sequence[Document], items: Sequence[Document]) -> Finding:
    """D7: groups (speeches, threads, books) with texts on both sides."""
    title = "groups on both sides"
    groups = {document.group for document in known} - {""}
    if not groups or not any(document.group for document in items):
        meaning = (
            "The data name no groups (a column or key `group`), so texts of one source on both sides cannot be found."
        )
        return value_finding("D7", title, name, 0.0, "not known", LIMIT, REPORT, meaning)
    shared = [document for document in items if document.group in groups]
    meaning = "Test items whose group is also trained on: its names and phrases are known."
    meaning = meaning if shared else "No group is on both sides."
    examples = [f"group {document.group!r}: {quote(document)}" for document in shared[:EXAMPLES]]
    verdict = by_share(len(shared), len(items))
    return share_finding("D7", title, name, len(shared), len(items), LIMIT, verdict, meaning, *examples)


# labels


def audit_conflicts(splits: Mapping[str, Sequence[Document]]) -> Iterator[Finding]:
    """D3: the same text under two labels, inside train, inside each test set, and between them."""
    for name, documents in splits.items():
        yield _conflicts(name, documents, documents)
        if name != "train":
            yield _conflicts(f"{name} and train", documents, splits["train"])


def _conflicts(where: str, documents: Sequence[Document], others: Sequence[Document]) -> Finding:
    by_label: defaultdict[str, dict[str, Document]] = defaultdict(dict)
    for document in others:
        by_label[text_key(document.text)].setdefault(document.label, document)
    pairs = [
        (document, other)
        for document in documents
        for label, other in by_label.get(text_key(document.text), {}).items()
        if label != document.label
    ]
    count = len({document.location for document, _ in pairs})
    verdict, meaning = PASS, "No text occurs under two labels."
    if count:
        verdict, meaning = AMBER, "Texts that also occur under another label: at most one of the two can be predicted."
    examples = [f"{one.label!r} {quote(one)}, {other.label!r} {quote(other)}" for one, other in pairs[:EXAMPLES]]
    return share_finding("D3", "one text, two labels", where, count, len(documents), "0", verdict, meaning, *examples)


def audit_leaks(train: Sequence[Document], labels: Sequence[str]) -> Iterator[Finding]:
    """D5, D5n: words that give the class away almost alone, and labels that are named in their texts."""
    classes = Counter(document.label for document in train)
    texts: Counter[str] = Counter()
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in train:
        for word in set(words(document.text)):
            texts[word] += 1
            by_class[word][document.label] += 1
    leaking = []
    for word, count in texts.most_common():
        if count < LEAST_TEXTS:
            break
        label, own = by_class[word].most_common(1)[0]
        if own >= PURE * count and (classes[label] / len(train)) ** own < CHANCE:
            leaking.append(f"{word!r}: {own} of its {count} texts are {label!r}")
    verdict, meaning = PASS, f"No word in {LEAST_TEXTS} texts or more belongs to one class alone."
    if leaking:
        verdict = AMBER
        meaning = (
            f"Words in at least {LEAST_TEXTS} texts, {PURE:.0%} of them of one class: is that the task, or an artefact"
            " of how the data were made?"
        )
    count, examples = len(leaking), leaking[:EXAMPLES]
    title, shown = "words that reveal the class", f"{count} words"
    yield value_finding("D5", title, "train", float(count), shown, "0", verdict, meaning, *examples)
    own = total = 0
    for label in labels:
        spelled = words(label)
        if len(spelled) == 1 and spelled[0] in by_class:
            own += by_class[spelled[0]][label]
            total += by_class[spelled[0]].total()
    title, limit = "label named in its text", f"{LEAST_TEXTS} texts"
    meaning = (
        f"Texts that name their own label; {total - own:,} texts name another." if own else "No text names its label."
    )
    verdict = AMBER if own >= LEAST_TEXTS and own >= 0.9 * total else REPORT if own else PASS
    yield share_finding("D5n", title, "train", own, len(train), limit, verdict, meaning)


# vocabulary


def audit_vocabulary(prepared: Prepared) -> Iterator[Finding]:
    """D4, D4l, P3, D6u: what the tokenizer was fitted on, and what it will not know."""
    tokens = prepared.recipe.tokens
    if tokens.kind == "encoder" or prepared.recipe.encoder.source != "none" or tokens.fit not in ("train", "course"):
        return  # a pretrained encoder or a record brings its own vocabulary
    fitted = prepared.fitted_texts
    known = {text_key(document.text) for document in prepared.known}
    seen = {text_key(line.partition("\t")[2] or line) for line in fitted} - known  # D1 counts what occurs in train
    for name, documents in prepared.splits.tests.items():
        found = [document for document in documents if text_key(document.text) in seen]
        verdict, meaning = PASS, "The vocabulary was fitted on no test item that is not in train."
        if found:
            verdict = RED
            meaning = (
                "Test items that are not in the training split, but in the text that the vocabulary was fitted on:"
                " their words are never unknown."
            )
        title, examples = "vocabulary fitted on test", map(quote, found[:EXAMPLES])
        yield share_finding("D4", title, name, len(found), len(documents), "0", verdict, meaning, *examples)
    count = sum("\t" in line for line in fitted) if tokens.fit == "course" else 0
    verdict, meaning = PASS, "The vocabulary was fitted on no label column."
    if count:
        verdict, meaning = RED, "Lines that the vocabulary was fitted on together with their label column."
    yield share_finding("D4l", "labels in the vocabulary", "train", count, len(fitted), "0", verdict, meaning)
    if prepared.tokenizer.unknown is not None:
        yield from _unknown_tokens(prepared, prepared.tokenizer)


def _unknown_tokens(prepared: Prepared, tokenizer: Tokenizer) -> Iterator[Finding]:
    count = int(tokenizer.facts["unknown_tokens"])
    verdict, meaning = PASS, "The unknown token occurs in training, so a model can learn what to expect of it."
    if not count:
        verdict = RED if prepared.recipe.task == "lm" else AMBER
        meaning = (
            "Every training word has an entry, so the unknown token is never trained and each unknown word costs a"
            " random amount (raise tokens.min_count)."
        )
    title, shown = "unknown token never trained", f"{count:,} tokens"
    yield value_finding("P3", title, "train", float(count), shown, "> 0", verdict, meaning)
    train = unknown_share(prepared.splits.train, tokenizer)
    limit, meaning = f"train + {MORE_UNKNOWN:.0%}", "Tokens of the test set that are not in the vocabulary."
    for name, documents in prepared.splits.tests.items():
        share = unknown_share(documents, tokenizer)
        shown, verdict = f"{share:.1%} (train {train:.1%})", AMBER if share > train + MORE_UNKNOWN else REPORT
        yield value_finding("D6u", "unknown words", name, share, shown, limit, verdict, meaning)


def unknown_share(documents: Sequence[Document], tokenizer: Tokenizer) -> float:
    """Measured on evenly spaced documents where the set is large."""
    chosen = documents[:: -(-len(documents) // MOST_ENCODED)] if len(documents) > MOST_ENCODED else documents
    rows = tokenizer.encode([document.text for document in chosen])
    return sum(row.count(tokenizer.unknown or 0) for row in rows) / max(1, sum(map(len, rows)))


# drift: how test sets differ from train


def audit_drift(splits: Splits) -> Iterator[Finding]:
    """D6c, D6l"""
    for name, documents in splits.tests.items():
        if splits.labels:
            yield _class_shares(name, splits, documents)
        train, test = (median(len(words(document.text)) for document in part) for part in (splits.train, documents))
        ratio = (test + 1) / (train + 1)
        verdict = REPORT if 1 / LENGTH_RATIO <= ratio <= LENGTH_RATIO else AMBER
        shown, limit = f"{test:g} words (train {train:g})", f"{LENGTH_RATIO:g} times"
        yield value_finding(
            "D6l", "length", name, ratio, shown, limit, verdict, "Median number of words of a document."
        )


def _class_shares(name: str, splits: Splits, documents: Sequence[Document]) -> Finding:
    def shares(documents: Sequence[Document]) -> list[float]:
        counts = Counter(document.label for document in documents)
        return [counts[label] / len(documents) for label in splits.labels]

    by_label = list(zip(splits.labels, shares(splits.train), shares(documents), strict=True))
    distance = sum(abs(train - test) for _, train, test in by_label) / 2
    verdict = AMBER if distance > CLASS_DRIFT else REPORT
    shown, limit = f"{distance:.1%}", f"{CLASS_DRIFT:.0%}"
    meaning = "Share of items that would have to change class to match the class shares of train."
    examples = [f"{label}: {train:.1%} of train, {test:.1%} of {name}" for label, train, test in by_label[:12]]
    return value_finding("D6c", "class shares", name, distance, shown, limit, verdict, meaning, *examples)


def audit_course_files(data: Data, task: str) -> Iterator[Finding]:
    """D6f, D6s: the course's folder has files for two tasks, and each task's training file holds the other's tests."""
    if find_format(data) != "course":
        return
    other, file = ("lm", "train_LM") if task == "classify" else ("classify", "train_CLS")
    corpus = read(data, task)
    labels: defaultdict[str, set[str]] = defaultdict(set)  # of each text in the other task's training file
    for document in read(data, other).train:
        labels[text_key(document.text)].add(document.label)
    meaning = f"Test items in the other task's training file: for {task}, neither train nor fit a vocabulary on it."
    for name, documents in corpus.tests.items():
        count = sum(text_key(document.text) in labels for document in documents)
        title = f"rows shared with {file}"
        yield share_finding("D6f", title, name, count, len(documents), "to know", REPORT, meaning)
    if task == "lm":
        found = [labels[key] for document in corpus.train if (key := text_key(document.text)) in labels]
        counts = Counter(label for names in found for label in names)
        known = sorted({label for names in labels.values() for label in names})
        by_speaker = ", ".join(f"{counts[label]:,} of class {label}" for label in known)
        meaning = f"Training rows that train_CLS labels: {by_speaker}. A speaker who is missing is harder to predict."
        title, count, rows = "speakers in train_LM", len(found), len(corpus.train)
        yield share_finding("D6s", title, "train", count, rows, "to know", REPORT, meaning)
