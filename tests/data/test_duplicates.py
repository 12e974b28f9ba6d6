"""Duplicates: every near and exact one is found, by the definition, and nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fairtrial.data import duplicates
from fairtrial.data.duplicates import CLEAN, EXACT, NEAR, find_duplicates, words
from fairtrial.data.splits import text_key

SPEECH = "We choose to go to the moon in this decade and do the other things."


def grams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[at : at + 3]) for at in range(len(found) - 2)}


def brute(known: list[str], items: list[str]) -> tuple[list[int], list[int]]:
    """The definition, pair by pair: statuses of items and of known texts."""
    status, known_status, near = [CLEAN] * len(items), [CLEAN] * len(known), []
    for row, item in enumerate(items):
        for column, text in enumerate(known):
            shared = len(grams(item) & grams(text))
            if text_key(item) == text_key(text):
                status[row] = known_status[column] = EXACT
            elif shared >= 3 and len(words(item)) >= 8:
                half = shared / len(grams(item) | grams(text)) >= 0.5
                inside = shared / min(len(grams(item)), len(grams(text))) >= 0.8
                if half or inside:
                    near.append((row, column))
    for row, column in near:
        status[row], known_status[column] = status[row] or NEAR, known_status[column] or NEAR
    return status, known_status


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_what_comparing_all_pairs_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "PAIRS", 64)  # several rounds
    rng = random.Random(seed)

    def changed(text: str) -> str:
        found = text.split()
        for _ in range(rng.randint(0, 3)):
            found[rng.randrange(len(found))] = rng.choice("abcde")
        cut = rng.randint(0, len(found) // 2)
        return " ".join(found[cut:] if rng.random() < 0.5 else found[: len(found) - cut])

    known = [" ".join(rng.choices("abcdefghijkl", k=rng.randint(1, 20))) for _ in range(80)]
    items = [changed(rng.choice(known)) for _ in range(60)]
    items += [" ".join(rng.choices("abcdefghijkl", k=rng.randint(1, 20))) for _ in range(20)]
    found = find_duplicates(known, items)
    status, known_status = brute(known, items)
    assert {CLEAN, EXACT, NEAR} <= set(status)
    assert found.status.tolist() == status
    assert found.known_status.tolist() == known_status
    for at in np.flatnonzero(found.status == EXACT):
        assert text_key(items[at]) == text_key(known[found.partner[at]])
    for at in np.flatnonzero(found.status == NEAR):
        assert grams(items[at]) & grams(known[found.partner[at]])


@pytest.mark.parametrize(
    ("item", "status"),
    [
        (SPEECH, EXACT),
        (SPEECH.upper().replace(".", "!"), EXACT),
        ("\ufeff" + SPEECH.replace(" ", "  "), EXACT),
        (SPEECH.replace("decade", "century"), NEAR),
        ("We choose to go to the moon in this decade.", NEAR),
        ("They said: " + SPEECH + " And so they did, as you know, in the summer of that year, to much applause.", NEAR),
        ("We choose to go home.", CLEAN),
        ("We choose", CLEAN),
        ("Nothing of the kind was said in this room by anyone who sits here.", CLEAN),
        ("?", CLEAN),
        ("", CLEAN),
    ],
)
def test_duplicates_by_kind(item: str, status: int) -> None:
    assert find_duplicates([SPEECH, "!"], [item]).status.tolist() == [status]


def test_a_phrase_inside_a_text_makes_no_duplicate() -> None:
    long = "I went to see them, and it was good of them to wait, so thank you very much, and good night to all of you."
    assert find_duplicates(["Thank you very much"], [long]).status.tolist() == [CLEAN]
    assert find_duplicates([long], ["Thank you very much"]).status.tolist() == [CLEAN]


def test_half_of_the_grams_are_enough_also_where_they_are_the_common_ones() -> None:
    """The shared grams are the item's most common ones, and the search must look up one of them all the same."""
    assert find_duplicates(["e f g h i j"], ["a b c d e f g h i j"]).status.tolist() == [NEAR]
    assert find_duplicates(["f g h i j k"], ["a b c d e f g h i j"]).status.tolist() == [CLEAN]


def test_nothing_against_nothing() -> None:
    assert find_duplicates([], ["a b c d e f g h"]).status.tolist() == [CLEAN]
    assert find_duplicates(["a b c d e f g h"], []).known_status.tolist() == [CLEAN]


@pytest.mark.slow
def test_a_hundred_thousand_sentences_take_no_quadratic_time() -> None:
    """With a phrase that opens every one of them, which would make a plain inverted index quadratic."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 30_001)
    drawn = rng.choice(30_000, (100_000, 25), p=shares / shares.sum())
    texts = ["the following is an example of " + " ".join(f"w{number}" for number in row) for row in drawn]
    found = find_duplicates(texts[:80_000], texts[80_000:] + texts[:50])
    assert (found.status == EXACT).sum() == 50
