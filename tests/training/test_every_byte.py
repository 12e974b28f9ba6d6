"""Bits per byte count every byte, whatever the tokens: a model's probabilities of all strings sum to 1 at most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.baselines.kneser_ney import KneserNey
from fairtrial.data.corpus import Document
from fairtrial.data.spelling import HiddenText
from fairtrial.data.tokenizer import Tokenizer, fit
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import Shape, Tokens
from fairtrial.training.scoring import TokenSet, document_outcomes, score_lm
from fairtrial.training.tasks import token_set
from sampling import cases

KINDS = ("character", "bpe", "word", "whitespace")
TRAIN = ["a bb abba.", "abba bb a a bb", "bb, abba a", "abba abba bb bb a"] * 3
TEXT = [
    "abba bb a.",
    "a caab abba",
    "xyz  a",
    "a \u00fcber bb",
]  # not all of it occurs in TRAIN


def documents(texts: Sequence[str]) -> list[Document]:
    return [Document(text=text) for text in texts]


def encoded(kind: str, texts: Sequence[str], *, running: bool = False) -> tuple[Tokenizer, TokenSet]:
    tokenizer = fit(Tokens(kind=kind, min_count=2, size=300), TRAIN, marks=not running)
    return tokenizer, token_set(documents(texts), tokenizer, running, lambda: HiddenText(tokenizer, TRAIN))


@cases("running", [False, True])
@cases("kind", KINDS)
def test_a_model_that_knows_nothing_pays_for_every_token_and_all_that_tokens_hide(kind: str, running: bool) -> None:
    """With an output layer of zeros all entries are equally likely, so the figure can be computed by hand."""
    tokenizer, tokens = encoded(kind, TEXT, running=running)
    network = LanguageModel(Shape(layers=1, heads=1, width=4, hidden=4, length=8), [], tokenizer.size).double()
    torch.nn.init.zeros_(network.out.weight)
    torch.nn.init.zeros_(network.out.bias)
    found = score_lm(network, tokens, length=8, full_context=1.0)
    # each token and the end of each document, or in a running text each token: the first as well
    count = sum(len(ids) for ids in tokenizer.encode(TEXT)) + (0 if running else len(TEXT))
    nats = count * math.log(tokenizer.size) + HiddenText(tokenizer, TRAIN).nll(TEXT).sum()
    size = sum(len(text.encode()) for text in TEXT)
    assert found.metrics.bits_per_byte == pytest.approx(nats / math.log(2) / size)
    if kind == "character":  # all letters but three are known
        known = sum(map(len, TEXT)) - len(set("".join(TEXT)) - set("".join(TRAIN)))
        assert found.metrics.bits_per_byte > known * math.log2(tokenizer.size) / size


@cases("kind", KINDS)
def test_the_probabilities_of_all_strings_sum_to_one(kind: str) -> None:
    """A Kneser-Ney model of tokens and all strings of up to nine letters over a small alphabet. What is missing to 1 is
    on longer strings, on other letters and on entries that are never in a text; more than 1 would be for free."""
    train = ["ab", "a", "", "b a", "ba", "a b", "aab", "a", "b", "ab", " a", "a ", "bb", "abab"] * 20
    tokenizer = fit(Tokens(kind=kind, min_count=25, size=300), train, marks=True)
    hidden = HiddenText(tokenizer, train)
    model = KneserNey(token_set(documents(train), tokenizer, False).sequences, tokenizer.size, 3)

    def probabilities(texts: Sequence[str]) -> np.ndarray:
        tokens = token_set(documents(texts), tokenizer, False, lambda: hidden)
        outcomes = document_outcomes(tokens, -np.log(model.probabilities(tokens.sequences)))
        return np.exp(-outcomes["nll"] - outcomes["spelling"])

    strings = ["".join(letters) for length in range(10) for letters in product("ab ", repeat=length)]
    total = math.fsum(probabilities(strings))
    assert 0.75 < total <= 1


def test_one_text_has_comparable_figures_with_characters_byte_pairs_and_words() -> None:
    """The same kind of model with each kind of token. Words hide what is rare: their perplexity falls as they hide
    more, their bits per byte do not."""
    texts = [f"the {noun} of the {other}." for noun in ("house", "garden", "river") for other in ("king", "town")]
    texts = [*texts * 4, *(f"the {rare} of the town." for rare in ("quarry", "zenith", "vortex", "walnut"))]

    def figures(kind: str, min_count: int) -> tuple[float, float]:
        """Perplexity, bits per byte"""
        tokenizer = fit(Tokens(kind=kind, min_count=min_count, size=400), texts, marks=True)
        train = token_set(documents(texts), tokenizer, False)
        test = token_set(documents(texts), tokenizer, False, partial(HiddenText, tokenizer, texts))
        model = KneserNey(train.sequences, tokenizer.size, 3)
        found = document_outcomes(test, -np.log(model.probabilities(test.sequences)))
        bits = (found["nll"].sum() + found["spelling"].sum()) / math.log(2) / found["bytes"].sum()
        return math.exp(found["nll"].sum() / found["tokens"].sum()), float(bits)

    few, hiding = figures("word", 2), figures("word", 9)
    assert hiding[0] < few[0]
    assert hiding[1] > few[1]
    uniform = math.log2(len(set("".join(texts))) + 1)  # all letters of the text, and its end, are equally likely
    for kind in ("character", "bpe", "word"):
        assert 0 < figures(kind, 1)[1] < uniform / 2
