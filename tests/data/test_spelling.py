"""What tokens hide is priced, so that every byte counts whatever the tokens are."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fairtrial.data.spelling import HiddenText, Speller
from fairtrial.data.tokenizer import fit
from fairtrial.recipe import Tokens
from sampling import cases

TEXTS = [
    'We met "the people" of Iowa, and they don\'t forget (not ever).',
    "The people met -- and they met again; 3,000 of them.",
    "Iowa met the people.",
] * 3


def test_spellings_of_all_words_sum_to_one() -> None:
    """Over an alphabet of two letters, all words of up to 12 letters; longer ones are missing."""
    speller = Speller(["ab", "abb", "ba", "a"], alphabet=2)
    words = ["".join(letters) for length in range(13) for letters in product("ab", repeat=length)]
    total = math.fsum(math.exp(-speller.nll(word)) for word in words)
    assert 0.99 < total < 1


def test_each_letter_is_a_distribution() -> None:
    speller = Speller(["ab", "abb", "ba", "\u00e9"])
    for context in ("\n", "\na", "ab", "zz"):
        seen = {letter for counts in speller.counts.values() for letter in counts}
        unseen = 0x110000 + 1 - len(seen)
        total = math.fsum(speller.probability(context, letter) for letter in seen)
        assert total + unseen * speller.probability(context, "\u4e00") == pytest.approx(1)


def test_words_like_those_of_the_training_text_are_cheaper() -> None:
    speller = Speller(["nation", "station", "relation", "people"])
    assert speller.nll("ration") < speller.nll("qzxwvk")


@cases("kind", ["word", "whitespace", "character", "bpe"])
def test_known_text_costs_nearly_nothing(kind: str) -> None:
    hidden = HiddenText(fit(Tokens(kind=kind, min_count=1, size=1000), TEXTS), TEXTS)
    nats = hidden.nll(TEXTS)
    assert np.isfinite(nats).all()
    assert (nats >= 0).all()
    assert nats.max() < (0.01 if kind in ("character", "bpe") else 5)


def test_an_unknown_word_costs_its_spelling() -> None:
    tokenizer = fit(Tokens(kind="word", min_count=2), TEXTS)
    hidden = HiddenText(tokenizer, TEXTS)
    known, unknown = hidden.nll(["Iowa met the people.", "Xylophones met the people."])
    assert unknown - known == pytest.approx(hidden.speller.nll("Xylophones"), abs=0.1)


def test_spaces_that_the_words_do_not_tell_are_paid_for() -> None:
    hidden = HiddenText(fit(Tokens(kind="word", min_count=1), TEXTS), TEXTS)
    usual, odd, wide = hidden.nll(["Iowa met the people.", "Iowa met the people .", "Iowa  met the people."])
    assert usual < odd
    assert usual < wide


def test_quotes_and_dashes_that_the_splitter_rewrites_are_found_in_the_text() -> None:
    hidden = HiddenText(fit(Tokens(kind="word", min_count=1), TEXTS), TEXTS)
    assert hidden.forms[False] == 0.5  # none had another form than its usual one


def test_text_in_lower_case_is_priced_as_such() -> None:
    tokenizer = fit(Tokens(kind="word", min_count=1, lowercase=True), TEXTS)
    hidden = HiddenText(tokenizer, TEXTS)
    assert hidden.nll(["Iowa Met The People."]) == pytest.approx(hidden.nll(["iowa met the people."]))
