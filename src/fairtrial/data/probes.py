"""Probes of labels and of columns.

Can the label be told from something cheap that should not matter, such as the length of a text or its place
in the file? Each probe knows one feature. It predicts the class that is most over-represented among training texts of
like value, by cross-validation. Permuted labels show what chance gives; the largest of all probes counts (Westfall and
Young 1993), so that many probes do not raise false alarms.

Which unused column names the source of a text? One that separates the splits better than chance was used to split the
data, so the values that are on both sides all the same are leaks. One with a usual name, such as `review_id`, should
have been used."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.data.cleaning import split_location
from fairtrial.data.corpus import Document
from fairtrial.rng import generator_for

MOST_ROWS = 5000
BINS = 12
FOLDS = 5
PERMUTATIONS = 200
P_LIMIT = 0.01  # after the correction
EFFECT = 0.15  # of the way from chance to perfect: natural texts differ a little by class in length and style
NUMBER = re.compile(r"\d+")
CODE = re.compile(r"\S*\d\S*")  # a word with a digit, such as an ID


@dataclass(frozen=True)
class Probe:
    feature: str
    accuracy: float  # balanced: the mean over classes
    effect: float  # 0: chance, 1: perfect
    p: float  # adjusted for all probes

    @property
    def leaks(self) -> bool:
        return self.p <= P_LIMIT and self.effect >= EFFECT


def found_at(place: int, pattern: re.Pattern[str], text: str) -> str:
    """The first or last (0, -1) match in a text, or nothing."""
    return (pattern.findall(text) or [""])[place]


def share(count: Callable[[str], bool]) -> Callable[[str], float]:
    """Of the characters of a text."""
    return lambda text: sum(map(count, text)) / max(1, len(text))


NUMERIC: dict[str, Callable[[str], float]] = {
    "length in characters": len,
    "length in words": lambda text: len(text.split()),
    "share of punctuation": share(lambda sign: not sign.isalnum() and not sign.isspace()),
    "share of capitals": share(str.isupper),
    "share of digits": share(str.isdigit),
    "signs outside ASCII": lambda text: len(text) - len(text.encode("ascii", "ignore")),
    "white space": lambda text: len(re.findall(r"\s\s|[^\S ]", text)),
    "first number": lambda text: float(found_at(0, NUMBER, text)[:15] or -1),
    "last digit of the first number": lambda text: float(found_at(0, NUMBER, text)[-1:] or -1),
    "last number": lambda text: float(found_at(-1, NUMBER, text)[:15] or -1),
    "last digit of the last number": lambda text: float(found_at(-1, NUMBER, text)[-1:] or -1),
}
NAMED: dict[str, Callable[[str], str]] = {
    "first sign": lambda text: text[:1],
    "last sign": lambda text: text[-1:],
    "case of the first letter": lambda text: str(text[:1].isupper()),
    "form of the first code": lambda text: re.sub(r"\d+", "0", found_at(0, CODE, text)),
    "first sign of the first code": lambda text: found_at(0, CODE, text)[:1],
}


def probe_labels(documents: Sequence[Document]) -> list[Probe]:
    """Of training documents, evenly spaced where there are many."""
    sample = documents[:: -(-len(documents) // MOST_ROWS)]
    values, labels = np.unique([document.label for document in sample], return_inverse=True)
    features = {name: bin_numbers([measure(each.text) for each in sample]) for name, measure in NUMERIC.items()}
    features |= {name: number_common([measure(each.text) for each in sample]) for name, measure in NAMED.items()}
    features |= place_in_file(sample)
    features = {name: bins for name, bins in features.items() if bins.max(initial=0)}  # others say nothing
    if len(values) < 2 or len(sample) < FOLDS * len(values) or not features:
        return []
    rng = generator_for(0, "audit", "probes")
    folds = rng.permutation(len(sample)) % FOLDS
    shuffled = [labels, *(rng.permutation(labels) for _ in range(PERMUTATIONS))]
    accuracy = np.array([[balanced_accuracy(bins, each, folds) for each in shuffled] for bins in features.values()])
    chance = accuracy[:, 1:]
    scaled = (accuracy - chance.mean(1, keepdims=True)) / np.maximum(chance.std(1, keepdims=True), 1e-9)
    largest = scaled[:, 1:].max(0)
    least = 1 / len(values)
    return [
        Probe(name, own, (own - least) / (1 - least), (1 + (largest >= z).sum()) / (1 + PERMUTATIONS))
        for name, own, z in zip(features, accuracy[:, 0].tolist(), scaled[:, 0].tolist(), strict=True)
    ]


def balanced_accuracy(bins: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> float:
    """Of the class that is most over-represented in a text's bin, in the other folds; the mean over classes."""
    shape = (FOLDS, int(bins.max()) + 1, int(labels.max()) + 1)
    numbers = np.ravel_multi_index((folds, bins, labels), shape)
    counts = np.bincount(numbers, minlength=int(np.prod(shape))).reshape(shape)  # fold bin class
    sizes = counts.sum((0, 1))
    others = (counts.sum(0) - counts + 1 / shape[1]) / (sizes - counts.sum(1, keepdims=True) + 1)
    guesses = others.argmax(2)[..., None]
    right = np.take_along_axis(counts, guesses, 2) * (guesses == np.arange(shape[2]))
    return float((right.sum((0, 1)) / sizes).mean())


def bin_numbers(values: Sequence[float]) -> np.ndarray:
    """[text] the number of its bin: each value of few, else quantiles"""
    array = np.array(values, float)
    distinct = np.unique(array)
    edges = distinct[1:] if len(distinct) <= BINS else np.unique(np.quantile(array, np.arange(1, BINS) / BINS))
    return np.searchsorted(edges, array, "right")


def number_common(values: Sequence[str]) -> np.ndarray:
    """[text] the number of its value; rare values share one"""
    numbers = {value: number for number, (value, _) in enumerate(Counter(values).most_common(BINS), 1)}
    return np.array([numbers.get(value, 0) for value in values])


def place_in_file(documents: Sequence[Document]) -> dict[str, np.ndarray]:
    """Which part of its file a text is from. Files that each hold one class (a folder for each) say nothing new."""
    places = [split_location(document.location) for document in documents]
    classes: defaultdict[object, set[str]] = defaultdict(set)
    for (path, _), document in zip(places, documents, strict=True):
        classes[path].add(document.label)
    if all(len(own) == 1 for own in classes.values()):
        return {}
    return {"place in the file": bin_numbers([line for _, line in places])}


FEWEST_VALUES = 10  # fewer are kinds (a language, a rating), not sources
FEWEST_EXPECTED = 5  # items whose value is on both sides by chance, to tell whether a column separates the splits
GROUP_WORDS = frozenset(
    "id ids uid guid url link uri source doc document review thread speaker author user writer customer product item"
    " book speech conversation dialog dialogue session video film movie article page patient subject paper post channel"
    " story chapter email sender account group file recording".split()
)


@dataclass(frozen=True)
class SharedColumn:
    name: str
    shared: np.ndarray  # [item] whether its value also occurs in training
    expected: float  # share of items that a random split would give
    named: bool  # as columns of sources usually are

    @property
    def separates(self) -> bool:
        """Whether far fewer values are on both sides than a random split gives."""
        return float(self.shared.mean()) <= self.expected / 2

    @property
    def leaks(self) -> bool:
        return bool(self.shared.any()) and (self.separates or self.named)


def probe_columns(
    known: Sequence[Document], items: Sequence[Document], columns: Mapping[str, Mapping[str, str]]
) -> list[SharedColumn]:
    """Unused columns that may name the source of texts, and how they lie over training and test."""
    probed = []
    for name, cells in columns.items():
        sides = [[cells.get(document.location, "") for document in side] for side in (known, items)]
        if all(count == 1 for value, count in Counter(sides[0] + sides[1]).items() if value):  # doc12-3: of doc12
            sides = [[re.sub(r"[-_#/:.][^-_#/:.]*$", "", value) for value in side] for side in sides]
        counts = Counter(sides[0] + sides[1])
        del counts[""]
        trained = set(sides[0]) - {""}
        rest = len(items) / (len(known) + len(items))
        expected = float(np.mean([1 - rest ** (counts[value] - 1) if value else 0.0 for value in sides[1]]))
        if len(counts) < FEWEST_VALUES or expected * len(items) < FEWEST_EXPECTED:
            continue
        named = not GROUP_WORDS.isdisjoint(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
        probed.append(SharedColumn(name, np.array([value in trained for value in sides[1]]), expected, named))
    return probed
