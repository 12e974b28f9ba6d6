"""Reworded copies: planted in 15% of a clean test set, are found; clean items are not. -s prints the table."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from fairtrial.data.audit import audit_reworded
from fairtrial.data.corpus import Document
from fairtrial.data.duplicates import CLEAN, find_duplicates
from fairtrial.data.resemblance import find_resembling, fold
from fairtrial.prepare import prepare
from fairtrial.recipe import built_in_recipe, with_settings

Change = Callable[[list[str], random.Random, list[str]], list[str]]
DIGITS = "zero one two three four five six seven eight nine".split()
FILLERS = "basically actually really indeed frankly well so um perhaps literally".split()
LETTERS = str.maketrans("aeopcxyijsAEOPCXHKMTB", "аеорсхуіјѕАЕОРСХНКМТВ")
MOST_FALSE = 0.01


def replaced(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    places = set(rng.sample(range(len(words)), round(0.3 * len(words))))
    return [rng.choice(vocabulary) if place in places else word for place, word in enumerate(words)]


def swapped(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    words = list(words)
    for _ in range(round(0.3 * len(words))):
        one, other = rng.randrange(len(words)), rng.randrange(len(words))
        words[one], words[other] = words[other], words[one]
    return words


def filled(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    return [new for word in words for new in ([word, rng.choice(FILLERS)] if rng.random() < 0.35 else [word])]


def reordered(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    chunks = [words[at : at + 3] for at in range(0, len(words), 3)]
    rng.shuffle(chunks)
    return [word for chunk in chunks for word in chunk]


def mistyped(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    return [word[0] + word[2] + word[1] + word[3:] if len(word) > 3 and rng.random() < 0.4 else word for word in words]


def one_word(words: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    place = rng.randrange(len(words))
    return [*words[:place], rng.choice(vocabulary), *words[place + 1 :]]


KINDS: dict[str, tuple[Change, float]] = {  # and the least recall
    "30% of words replaced": (replaced, 0.7),
    "30% of words swapped": (swapped, 0.98),
    "fillers inserted": (filled, 0.95),
    "chunks reordered": (reordered, 0.98),
    "look-alike letters": (lambda words, rng, _: [word.translate(LETTERS) for word in words], 0.98),
    "zero-width signs": (lambda words, rng, _: ["\u200b".join(word) for word in words], 0.98),
    "digits spelled out": (
        lambda words, rng, _: [re.sub(r"\d", lambda digit: f" {DIGITS[int(digit[0])]} ", word) for word in words],
        0.95,
    ),
    "stems cut": (
        lambda words, rng, _: [re.sub(r"(?<=...)(?:ing|ed|es|s|ly|er|ion|al|ment)$", "", word) for word in words],
        0.98,
    ),
    "letters exchanged": (mistyped, 0.85),
    "short, one word changed": (one_word, 0.65),
}


@cache
def speeches() -> tuple[list[str], list[str]]:
    """Training sentences, and test sentences that duplicate none."""
    splits = prepare(with_settings(built_in_recipe("default", "classify"), ["data.source=sotu"]), 0)
    known, items = [each.text for each in splits.known], [each.text for each in splits.splits.tests["test"]]
    status = find_duplicates(known, items).status
    return known, [item for item, kind in zip(items, status, strict=True) if kind == CLEAN]


@pytest.mark.parametrize("kind", KINDS)
def test_planted_copies_are_found(kind: str) -> None:
    change, least = KINDS[kind]
    known, clean = speeches()
    rng = random.Random(0)
    vocabulary = sorted({word for text in known for word in text.split()})
    lengths = range(4, 9) if kind.startswith("short") else range(8, 100)
    sources = [
        text for text in known if len(text.split()) in lengths and ("digits" not in kind or re.search(r"\d", text))
    ]
    planted = [
        " ".join(change(text.split(), rng, vocabulary)) for text in rng.sample(sources, round(0.15 * len(clean)))
    ]
    items = [*clean, *planted]
    found = (find_resembling(known, items).partner >= 0) | (find_duplicates(known, items).status != CLEAN)
    recall, false = found[len(clean) :].mean(), found[: len(clean)].mean()
    print(f"{kind:<28} recall {recall:5.1%}   false positives {false:.2%}")
    assert recall >= least
    assert false <= MOST_FALSE


def test_unrelated_texts_resemble_nothing() -> None:
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 20_001)
    drawn = rng.choice(20_000, (6000, 20), p=shares / shares.sum())
    texts = [" ".join(f"w{number}" for number in row[: 4 + at % 17]) for at, row in enumerate(drawn)]
    assert (find_resembling(texts[:5000], texts[5000:]).partner >= 0).mean() <= MOST_FALSE


def test_the_partner_is_the_text_that_was_changed() -> None:
    known, _ = speeches()
    numbers = [at for at, text in enumerate(known) if len(text.split()) > 20][:50]
    partner = find_resembling(known, [" ".join(sorted(known[at].split())) for at in numbers]).partner
    assert (partner == numbers).mean() >= 0.95


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("He was running quickly", "he was run quick"),
        ("21 ships", "twenty-one ships"),
        ("2,000 men", "two thousand men"),
        ("\u0440\u0430\u0443", "pay"),
        ("na\u00efve p\u200bay", "naive pay"),
        ("w0rd p@ss", "word pass"),
    ],
)
def test_words_that_read_alike_are_folded_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_nothing_resembles_nothing() -> None:
    assert find_resembling([], ["a b"]).partner.tolist() == [-1]
    assert find_resembling(["a b"], []).partner.tolist() == []
    assert find_resembling(["", "a b"], ["", "?"]).partner.tolist() == [-1, -1]


def test_planted_copies_are_amber_and_the_reuse_that_is_usual_is_not() -> None:
    known, clean = speeches()
    rng = random.Random(0)
    planted = [" ".join(reordered(text.split(), rng, [])) for text in rng.sample(known, round(0.15 * len(clean)))]
    for items, verdict in ((clean, "REPORT"), (clean + planted, "AMBER")):
        documents = [tuple(Document(text) for text in texts) for texts in (known, items)]
        duplicates = {"test": find_duplicates(known, items)}
        (finding,) = audit_reworded(documents[0], {"test": documents[1]}, duplicates)
        assert finding.verdict == verdict


def test_random_splits_of_clean_text_raise_no_alarm() -> None:
    known, clean = speeches()
    for seed in range(3):
        texts = random.Random(seed).sample(known + clean, len(known) + len(clean))
        items, rest = texts[:800], texts[800:]
        parts = [tuple(Document(text) for text in some) for some in (rest, items)]
        (finding,) = audit_reworded(parts[0], {"test": parts[1]}, {"test": find_duplicates(rest, items)})
        assert finding.verdict == "REPORT"
