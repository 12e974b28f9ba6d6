"""The audit of a data set: does a test set test what it should? Duplicates, labels, vocabulary, drift. Each check gives
findings; docs/contamination.md lists the checks and their limits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import PurePath
from statistics import median

import numpy as np
from scipy.stats import binom

from fairtrial.data.corpus import Document, Splits, conflicts, text_key_of
from fairtrial.data.duplicates import CLEAN, EXACT, LEAST_WORDS, NEAR, Duplicates, find_duplicates, words
from fairtrial.data.probes import EFFECT, probe_columns, probe_labels
from fairtrial.data.resemblance import find_resembling
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import text_key
from fairtrial.finding import AMBER, PASS, RED, REPORT, Finding, worst
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe
from fairtrial.stored import DataAudit

KeyOf = Callable[[Document], Hashable]  # equal for texts that are duplicates

MANY = 0.01  # share of the test items above which a score on all of them is not believed
MOST_REUSE = 0.05  # share of reworded texts that passes as usual, however much of it the training set holds
RARELY = 0.01  # chance of so many reworded items where there are no more of them than usual
EXAMPLES = 3
LEAST_TEXTS = 20  # a word in fewer texts may belong to one class by chance
PURE = 0.99
CHANCE = 1e-6  # that all texts of a word are of one class although it says nothing about classes
MOST_ENCODED = 5000  # documents that are encoded to measure a share
MORE_UNKNOWN = 0.05  # unknown share of a test set above that of train
CLASS_DRIFT = 0.1  # total variation
LENGTH_RATIO = 1.5
CHECKS = {  # name and limit
    "D1": ("duplicates of train", "0; red > 1%"),
    "D1n": ("near duplicates of train", "0; red > 1%"),
    "D1c": ("contained in train, or made of it", "0; red > 1%"),
    "D1w": ("reworded copies of train", "as within train"),
    "D1r": ("repeated inside the set", "1%"),
    "D7": ("groups on both sides", "0; red > 1%"),
    "D7c": ("sources in a column on both sides", "0"),
    "D3": ("one text, two labels", "0"),
    "D5": ("words that reveal the class", "0"),
    "D5p": ("labels predicted by surface features", f"{EFFECT:.0%} above chance"),
    "D5n": ("label named in its text", f"{LEAST_TEXTS} texts"),
    "D4": ("vocabulary fitted on test", "0"),
    "D4l": ("labels in the vocabulary", "0"),
    "P3": ("unknown token never trained", "> 0"),
    "D6u": ("unknown words", f"train + {MORE_UNKNOWN:.0%}"),
    "D6l": ("length", f"{LENGTH_RATIO:g} times"),
    "D6c": ("class shares", f"{CLASS_DRIFT:.0%}"),
}


def audit_data(recipe: Recipe, seed: int = 0, on_progress: Callable[[str], None] = lambda what: None) -> DataAudit:
    """All checks on the data of a recipe."""
    on_progress("reading")
    prepared = prepare(recipe, seed)
    splits = prepared.splits
    items = sum(map(len, splits.tests.values()))
    on_progress(f"comparing {items:,} test items with {len(prepared.known):,} training documents")
    duplicates = prepared.copies
    on_progress("checking labels, vocabulary and drift")
    findings = tuple(all_findings(prepared, duplicates))
    return DataAudit(
        task=recipe.task,
        source=recipe.data.source,
        recipe=recipe.name,
        seed=seed,
        level=worst(findings),
        documents={"train": len(splits.train), "validation": len(splits.validation)},
        sets={name: copied.items() for name, copied in duplicates.items()},
        findings=findings,
        notes=tuple(prepared.corpus.notes),
    )


def all_findings(prepared: Prepared, duplicates: dict[str, Duplicates]) -> list[Finding]:
    splits = prepared.splits
    found: list[Finding] = []
    for name, documents in splits.tests.items():
        found += audit_duplicates(name, prepared.known, documents, duplicates[name])
        found.append(audit_groups(name, prepared.known, documents))
        found += audit_columns(name, prepared, documents)
    if prepared.recipe.tokens.kind != "ids":  # all texts share the letters that a vocabulary of 65 entries has
        found += audit_reworded(prepared.known, splits.tests, duplicates)
    if validation := prepared.corpus.validation:  # duplicates never straddle a validation set that we carve
        between = duplicates_between(splits.train, validation)
        found += audit_duplicates("validation", splits.train, validation, between, most=AMBER)
    every = {"train": prepared.known, **splits.tests}
    found += [audit_repeats(name, documents, splits.index.key_of) for name, documents in every.items()]
    if splits.labels:
        found += audit_conflicts(every, splits.class_names, splits.index.key_of)
        found += audit_leaks(prepared.known, splits.labels, splits.class_names)
        found.append(audit_surface(prepared.known))
    found += audit_vocabulary(prepared)
    found += audit_drift(splits)
    return found


def duplicates_between(known: Sequence[Document], items: Sequence[Document]) -> Duplicates:
    return find_duplicates([document.text for document in known], [document.text for document in items])


def value_finding(
    id: str, where: str, value: float, shown: str, verdict: str, meaning: str, examples: Sequence[str] = ()
) -> Finding:
    name, limit = CHECKS[id]
    return Finding(id, name, value, limit, verdict, meaning, where=where, shown=shown, examples=tuple(examples))


def share_finding(
    id: str, where: str, count: int, of: int, verdict: str, meaning: str, examples: Sequence[str] = (), none: str = ""
) -> Finding:
    """`none`: the meaning of a count of zero, which then passes."""
    if none and not count:
        verdict, meaning = PASS, none
    return value_finding(id, where, count / of, f"{count:,} of {of:,} ({count / of:.1%})", verdict, meaning, examples)


def by_share(count: int, documents: int, most: str = RED) -> str:
    """AMBER up to one per cent, `most` above."""
    return most if count > MANY * documents else AMBER


def quote(document: Document) -> str:
    """`test_CLS.tsv:12 "We will ..."`"""
    line = " ".join(document.text.split())
    return f'{file_of(document)} "{line if len(line) <= 60 else line[:57].rstrip() + "..."}"'


def file_of(document: Document) -> str:
    """`test_CLS.tsv:12`"""
    return PurePath(document.location).name or "(no file)"


def audit_duplicates(
    name: str, known: Sequence[Document], items: Sequence[Document], duplicates: Duplicates, most: str = RED
) -> Iterator[Finding]:
    """D1, D1n, D1c: one test set against everything that training sees. `most`: the verdict above one per cent."""
    exact = "Test items that also occur in the training set, apart from case and punctuation;"
    exact += f" {duplicates.identical:,} are identical character by character: scores on them measure memorization."
    near = f"Test items of {LEAST_WORDS} words or more that share half of their 3-word runs with a training text."
    contained = "Test items with half of their 3-word runs in training texts that contain them or that they contain."
    not_contained = "No test item is contained in training texts or made of them."
    is_near = (duplicates.status == NEAR) & (duplicates.share == 0)
    for id, holds, sign, meaning, none in (
        ("D1", duplicates.status == EXACT, "=", exact, "No test item also occurs in the training set."),
        ("D1n", is_near, "~", near, "No test item is a near duplicate of a training text."),
        ("D1c", duplicates.share > 0, "in", contained, not_contained),
    ):
        found = np.flatnonzero(holds).tolist()
        examples = []
        for number in found[:EXAMPLES]:
            item, other, share = items[number], known[duplicates.partner[number]], duplicates.share[number]
            shown = file_of(other) if id == "D1" else quote(other)
            examples.append(f"{quote(item)} {sign} {shown}" + (f" ({share:.0%} of the item)" if share else ""))
        verdict = by_share(len(found), len(items), most)
        yield share_finding(id, name, len(found), len(items), verdict, meaning, examples, none)


def audit_reworded(
    known: Sequence[Document], tests: Mapping[str, Sequence[Document]], duplicates: Mapping[str, Duplicates]
) -> Iterator[Finding]:
    """D1w: items that share most of their words with one training text, and are none of the duplicates above."""
    every = [document for documents in tests.values() for document in documents]
    resembling = find_resembling([document.text for document in known], [document.text for document in every])
    usual = min(max(MANY, resembling.usual), MOST_REUSE)
    meaning = (
        "Test items that share most of their words with one training text, in any order: are they reworded copies?"
    )
    meaning += " The verdict keeps them."
    begin = 0
    for name, items in tests.items():
        own = resembling.partner[begin : begin + len(items)]
        begin += len(items)
        found = np.flatnonzero((own >= 0) & (duplicates[name].status == CLEAN)).tolist()
        examples = [f"{quote(items[number])} ~ {quote(known[own[number]])}" for number in found[:EXAMPLES]]
        verdict = AMBER if binom.sf(len(found) - 1, len(items), usual) < RARELY else REPORT
        none = "No other test item shares most of its words with a training text."
        yield share_finding("D1w", name, len(found), len(items), verdict, meaning, examples, none)


def audit_repeats(name: str, documents: Sequence[Document], key_of: KeyOf) -> Finding:
    """D1r: texts that occur more than once in one set."""
    keys = list(map(key_of, documents))
    counts = Counter(keys)
    extra = len(documents) - len(counts)
    first = dict(zip(reversed(keys), reversed(documents), strict=True))
    often = [(key, count) for key, count in counts.most_common(EXAMPLES) if count > 1]
    examples = [f"{count} times: {quote(first[key])}" for key, count in often]
    verdict = REPORT if name == "train" or extra <= MANY * len(documents) else AMBER
    meaning = "Texts that occurred earlier in the same set: they count more than once."
    return share_finding("D1r", name, extra, len(documents), verdict, meaning, examples, "No text occurs twice.")


def audit_groups(name: str, known: Sequence[Document], items: Sequence[Document]) -> Finding:
    """D7: groups (speeches, threads, books) with texts on both sides."""
    groups = {document.group for document in known} - {""}
    if not groups or not any(document.group for document in items):
        unnamed = "The data name no groups (a column or key `group`)"
        meaning = f"{unnamed}, so texts of one source on both sides cannot be found."
        return value_finding("D7", name, 0.0, "not known", REPORT, meaning)
    shared = [document for document in items if document.group in groups]
    meaning = "Test items whose group also occurs in the training set: its names and phrases repeat."
    examples = [f"group {document.group!r}: {quote(document)}" for document in shared[:EXAMPLES]]
    count, of = len(shared), len(items)
    return share_finding("D7", name, count, of, by_share(count, of), meaning, examples, "No group is on both sides.")


def audit_columns(name: str, prepared: Prepared, items: Sequence[Document]) -> Iterator[Finding]:
    """D7c: unused columns that name where texts come from, with values in training and test."""
    if not (columns := probe_columns(prepared.known, items, prepared.corpus.columns)):
        return
    largest = max(columns, key=lambda column: (column.leaks, column.shared.mean()))
    examples = [
        f"{column.name}: {column.shared.mean():.1%} of items share a value with train ({column.expected:.1%} by chance)"
        for column in columns
        if column.leaks
    ]
    meaning = "Test items whose value in an unused column also occurs in the training set. If the column names their"
    meaning += f" source, split by it (--group-column {largest.name})."
    none = "No unused column that names sources has values on both sides."
    count = int(largest.shared.sum()) if largest.leaks else 0
    yield share_finding("D7c", name, count, len(items), AMBER, meaning, examples, none)


def audit_conflicts(
    splits: Mapping[str, Sequence[Document]], names: Mapping[str, str], key_of: KeyOf
) -> Iterator[Finding]:
    """D3: the same text under two labels, inside train, inside each test set, and between them."""
    meaning = "Texts that also occur under another label: at most one of the two can be predicted."
    none = "No text occurs under two labels."
    for name, documents in splits.items():
        compared = {name: documents} if name == "train" else {name: documents, f"{name} and train": splits["train"]}
        for where, others in compared.items():
            pairs = conflicts(documents, others, key_of)
            count = len({document.location for document, _ in pairs})
            shown = [
                [f"{names.get(each.label, each.label)!r} {quote(each)}" for each in pair] for pair in pairs[:EXAMPLES]
            ]
            examples = [", ".join(pair) for pair in shown]
            yield share_finding("D3", where, count, len(documents), AMBER, meaning, examples, none)


def audit_leaks(train: Sequence[Document], labels: Sequence[str], names: Mapping[str, str]) -> Iterator[Finding]:
    """D5, D5n: words that give the class away almost alone, and labels that are named in their texts."""
    classes = Counter(document.label for document in train)
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)  # texts that hold a word, by their class
    for document in train:
        for word in set(words(document.text)):
            by_class[word][document.label] += 1
    leaking = []
    for word, counts in sorted(by_class.items(), key=lambda item: -item[1].total()):
        (label, own), count = counts.most_common(1)[0], counts.total()
        if count >= LEAST_TEXTS and own >= PURE * count and (classes[label] / len(train)) ** own < CHANCE:
            leaking.append(f"{word!r}: {own} of its {count} texts are {names.get(label, label)!r}")
    none = f"No word in {LEAST_TEXTS} texts or more belongs to one class alone."
    some = f"Words in at least {LEAST_TEXTS} texts, {PURE:.0%} of them of one class"
    meaning = f"{some}: is that the task, or an artefact of how the data were made?" if leaking else none
    verdict, count = AMBER if leaking else PASS, len(leaking)
    yield value_finding(
        "D5", "train", float(count), f"{count} word{'s' * (count != 1)}", verdict, meaning, leaking[:EXAMPLES]
    )
    named = [(label, by_class[word]) for label in labels for word in words(label) if words(label) == [word]]
    own, total = sum(counts[label] for label, counts in named), sum(counts.total() for _, counts in named)
    verdict = AMBER if own >= LEAST_TEXTS and own >= 0.9 * total else REPORT
    meaning = f"Texts that name their own label; {total - own:,} texts name another."
    yield share_finding("D5n", "train", own, len(train), verdict, meaning, none="No text names its label.")


def audit_surface(train: Sequence[Document]) -> Finding:
    """D5p: labels that a single cheap feature predicts: length, punctuation, case, place in the file, a number."""
    probes = sorted(probe_labels(train), key=lambda probe: -probe.effect)
    leaking = [probe for probe in probes if probe.leaks]
    strongest = probes[0].effect if probes else 0.0
    shown = f"{max(0.0, strongest):.0%} of the way from chance to perfect" if probes else "not known"
    examples = [f"{probe.feature}: balanced accuracy {probe.accuracy:.1%} (p {probe.p:.3f})" for probe in leaking]
    some = "One surface feature alone predicts the label: is that the task, or an artefact of how the data were made?"
    meaning = some if leaking else "No surface feature alone (length, signs, case, place, numbers) predicts the label."
    return value_finding("D5p", "train", strongest, shown, AMBER if leaking else PASS, meaning, examples)


def audit_vocabulary(prepared: Prepared) -> Iterator[Finding]:
    """D4, D4l, P3, D6u: what the tokenizer was fitted on, and what it will not know."""
    tokens = prepared.recipe.tokens
    if tokens.kind == "encoder" or prepared.recipe.encoder.source != "none" or tokens.fit not in ("train", "course"):
        return  # a pretrained encoder or a record brings its own vocabulary
    fitted = prepared.fitted_texts
    key_of: KeyOf = text_key_of if tokens.fit == "course" else prepared.splits.index.key_of
    lines = (text_key(line.partition("\t")[2] or line) for line in fitted)
    seen = set[Hashable](lines if tokens.fit == "course" else map(key_of, prepared.splits.train))
    seen -= set(map(key_of, prepared.known))  # D1 counts what occurs in train
    none = "The vocabulary was fitted on no test item that is not in train."
    meaning = "Test items that are not in the training split, but in the text that the vocabulary was fitted on:"
    meaning += " their words are never unknown."
    for name, documents in prepared.splits.tests.items():
        found = [document for document in documents if key_of(document) in seen]
        examples = list(map(quote, found[:EXAMPLES]))
        yield share_finding("D4", name, len(found), len(documents), RED, meaning, examples, none)
    count = sum("\t" in line for line in fitted) if tokens.fit == "course" else 0
    meaning = "Lines that the vocabulary was fitted on together with their label column."
    none = "The vocabulary was fitted on no label column."
    yield share_finding("D4l", "train", count, len(fitted), RED, meaning, none=none)
    tokenizer = prepared.tokenizer
    if tokenizer.unknown is None:
        return
    count = int(tokenizer.facts["unknown_tokens"])
    shares = {name: unknown_share(documents, tokenizer) for name, documents in prepared.splits.tests.items()}
    verdict, meaning = PASS, "The unknown token occurs in training, so a model can learn it."
    if not count and not any(shares.values()):
        verdict, meaning = REPORT, "The unknown token is never trained, which costs nothing: no test word is unknown."
    elif not count:
        verdict = RED if prepared.recipe.task == "lm" else AMBER
        meaning = "Every training word has an entry, so the unknown token is never trained and each unknown word costs"
        meaning += " a random amount (raise tokens.min_count)."
    yield value_finding("P3", "train", float(count), f"{count:,} tokens", verdict, meaning)
    train = unknown_share(prepared.splits.train, tokenizer)
    meaning = "Tokens of the test set that are not in the vocabulary."
    for name, share in shares.items():
        shown, verdict = f"{share:.1%} (train {train:.1%})", AMBER if share > train + MORE_UNKNOWN else REPORT
        yield value_finding("D6u", name, share, shown, verdict, meaning)


def unknown_share(documents: Sequence[Document], tokenizer: Tokenizer) -> float:
    """Measured on evenly spaced documents where the set is large."""
    chosen = documents[:: max(1, -(-len(documents) // MOST_ENCODED))]
    rows = tokenizer.encode([document.text for document in chosen])
    return sum(row.count(tokenizer.unknown or 0) for row in rows) / max(1, sum(map(len, rows)))


def audit_drift(splits: Splits) -> Iterator[Finding]:
    """D6c, D6l: how test sets differ from train."""
    for name, documents in splits.tests.items():
        if splits.labels:
            yield _class_shares(name, splits, documents)
        train, test = (median(len(words(document.text)) for document in part) for part in (splits.train, documents))
        ratio = (test + 1) / (train + 1)
        verdict = REPORT if 1 / LENGTH_RATIO <= ratio <= LENGTH_RATIO else AMBER
        shown, meaning = f"{test:g} words (train {train:g})", "Median number of words of a document."
        yield value_finding("D6l", name, ratio, shown, verdict, meaning)


def _class_shares(name: str, splits: Splits, documents: Sequence[Document]) -> Finding:
    known, tested = (Counter(document.label for document in part) for part in (splits.train, documents))
    by_label = [(label, known[label] / known.total(), tested[label] / tested.total()) for label in splits.labels]
    distance = sum(abs(train - test) for _, train, test in by_label) / 2
    verdict = AMBER if distance > CLASS_DRIFT else REPORT
    meaning = "Share of items that would have to change class to match the class shares of train."
    called = ((splits.class_names.get(label, label), *shares) for label, *shares in by_label[:12])
    examples = [f"{label}: {train:.1%} of train, {test:.1%} of {name}" for label, train, test in called]
    return value_finding("D6c", name, distance, f"{distance:.1%}", verdict, meaning, examples)
