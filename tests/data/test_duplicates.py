"""Duplicates: every near and exact one is found, by the definition, and nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fairtrial.data import duplicates
from fairtrial.data.duplicates import CLEAN, EXACT, NEAR, find_duplicates, near_clusters, words
from fairtrial.data.words import text_key
from sampling import cases

SPEECH = "We choose to go to the moon in this decade and do the other things."


def grams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[at : at + 3]) for at in range(len(found) - 2)}


def brute(known: list[str], items: list[str]) -> tuple[list[int], list[int], list[float]]:
    """The definition, pair by pair: statuses of items and of known texts, and shares of items."""
    status, known_status, shares = [CLEAN] * len(items), [CLEAN] * len(known), [0.0] * len(items)
    for row, item in enumerate(items):
        own, near, inside = grams(item), [], []
        for column, text in enumerate(known):
            shared = len(own & grams(text))
            if text_key(item) == text_key(text):
                status[row] = known_status[column] = EXACT
            if shared >= 3 and len(words(item)) >= 8:
                if shared / len(own | grams(text)) >= 0.5:
                    near.append(column)
                elif shared / min(len(own), len(grams(text))) >= 0.8:
                    inside.append(column)
        share = len(own & set().union(*(grams(known[column]) for column in inside))) / max(1, len(own))
        inside = inside if share >= 0.5 else []
        if near or inside:
            shares[row] = 0.0 if near or status[row] else share
            status[row] = status[row] or NEAR
        for column in near + inside:
            known_status[column] = known_status[column] or NEAR
    return status, known_status, shares


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
    items += [" ".join(rng.sample(known, 4)) for _ in range(10)]
    found = find_duplicates(known, items)
    status, known_status, shares = brute(known, items)
    assert any(0.5 <= share < 0.9 for share in shares)
    assert found.share == pytest.approx(shares)
    assert {CLEAN, EXACT, NEAR} <= set(status)
    assert found.status.tolist() == status
    assert found.known_status.tolist() == known_status
    for at in np.flatnonzero(found.status == EXACT):
        assert text_key(items[at]) == text_key(known[found.partner[at]])
    for at in np.flatnonzero(found.status == NEAR):
        assert grams(items[at]) & grams(known[found.partner[at]])


@cases(
    ("item", "status"),
    [
        (SPEECH, EXACT),
        (SPEECH.upper().replace(".", "!"), EXACT),
        ("\ufeff" + SPEECH.replace(" ", "  "), EXACT),
        (SPEECH.replace("decade", "century"), NEAR),
        ("We choose to go to the moon in this decade.", NEAR),
        (
            "They said: " + SPEECH + " And so they did, as you know, in the summer of that year, to applause.",
            CLEAN,
        ),
        ("They said: " + SPEECH + " And so they did, as you know, in the summer.", NEAR),
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


def test_training_sentences_inside_an_item_count_by_their_share_of_it() -> None:
    known = ["take it with a grain of salt", "the good old days are behind us", "nobody longs for what never was"]
    salt = f"Point number one: when you hear someone longing for the good old days, {known[0]}."
    assert find_duplicates(known, [salt]).status.tolist() == [CLEAN]
    made = find_duplicates(known, [". ".join(known)])  # no sentence is half of it; all together are 14 of its 18 grams
    assert made.status.tolist() == [NEAR]
    assert made.share == pytest.approx(14 / 18)
    assert made.known_status.tolist() == [NEAR] * 3


def test_half_of_the_grams_are_enough_also_where_they_are_the_common_ones() -> None:
    """The shared grams are the item's most common ones, and the search must look up one of them all the same."""
    assert find_duplicates(["e f g h i j"], ["a b c d e f g h i j"]).status.tolist() == [NEAR]
    assert find_duplicates(["f g h i j k"], ["a b c d e f g h i j"]).status.tolist() == [CLEAN]


def test_texts_of_one_pattern_are_one_cluster_though_their_grams_are_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "COMMON", 5)
    texts = [f"please send parcel {n} to the house at the end of the long street" for n in range(40)]
    others = ["the house at the end", "nobody has ever seen a bird of that colour in this part of the country"]
    assert near_clusters([*texts, *others]).tolist() == [0] * 40 + [1, 2]
    assert near_clusters(["", "a b"]).tolist() == [0, 1]


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
