"""Scorers: what public contests ask of a score, each with a scorer that breaks it alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits import failed

import fairtrial as ft
from fairtrial.audit.scorer import audit_scorer
from fairtrial.finding import NOT_ASKED

TOKENS = """
import numpy as np

VOCABULARY = 40
LOGITS = np.random.default_rng(0).normal(size=(41, 40))
LOG_P = LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True))
SEEN = {}


def before(tokens, place):
    return 40 if place == 0 else tokens[place - 1]


def honest(tokens):
    return [LOG_P[before(tokens, place), token] for place, token in enumerate(tokens)]


def total(tokens):
    return sum(honest(tokens))


def sums_to_277(tokens):
    return [score + np.log(277) for score in honest(tokens)]


def total_too_large(tokens):
    return sum(honest(tokens)) + 0.5 * len(tokens)


def sees_the_last(tokens):
    shifted = LOGITS + 0.1 * np.eye(40)[tokens[-1]]
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return [log_p[before(tokens, place), token] for place, token in enumerate(tokens)]


def cache_with_the_target(tokens):
    counts = np.ones((41, 40))
    for place, token in enumerate(tokens):
        counts[before(tokens, place), token] += 1
    log_p = np.log(counts / counts.sum(1, keepdims=True))
    return [log_p[before(tokens, place), token] for place, token in enumerate(tokens)]


def learns_afterwards(tokens):
    counts, scores = np.ones((41, 40)), []
    for place, token in enumerate(tokens):
        row = before(tokens, place)
        scores.append(np.log(counts[row, token] / counts[row].sum()))
        counts[row, token] += 1
    return scores


def two_passes(tokens):
    again = SEEN.get(tuple(tokens), 0.0)
    SEEN[tuple(tokens)] = 0.5
    return [score + again for score in honest(tokens)]
"""
TEXT = """
def honest(text):
    return [-8.0] * len(text.encode())


def drops_what_is_odd(text):
    return [-8.0] * len([letter for letter in text if letter.isascii() and letter.isprintable()])


def loglikelihood(requests):
    return [(-8.0 * len((context + text).encode()), False) for context, text in requests]


def not_a_number(text):
    return [float("nan")]
"""


@pytest.fixture
def scorer(tmp_path: Path) -> Callable[[str, str], str]:
    def write(source: str, name: str) -> str:
        (tmp_path / "scorers.py").write_text(source)
        return f"{tmp_path / 'scorers.py'}:{name}"

    return write


@pytest.mark.parametrize(
    ("source", "name"),
    [(TOKENS, "honest"), (TOKENS, "total"), (TOKENS, "learns_afterwards"), (TEXT, "honest"), (TEXT, "loglikelihood")],
)
def test_an_honest_scorer_passes(scorer: Callable[[str, str], str], source: str, name: str) -> None:
    findings = audit_scorer(scorer(source, name))
    assert failed(findings) == {}
    assert sum(each.verdict != NOT_ASKED for each in findings) >= 3


@pytest.mark.parametrize(
    ("source", "name", "check"),
    [
        (TOKENS, "sums_to_277", "Q2"),
        (TOKENS, "total_too_large", "Q2"),
        (TOKENS, "sees_the_last", "Q1"),
        (TOKENS, "cache_with_the_target", "Q3"),
        (TOKENS, "two_passes", "Q4"),
        (TEXT, "drops_what_is_odd", "Q5"),
    ],
)
def test_a_cheating_scorer_is_found(scorer: Callable[[str, str], str], source: str, name: str, check: str) -> None:
    assert check in failed(audit_scorer(scorer(source, name)))


def test_the_command_says_what_is_wrong_and_exits_with_1(
    scorer: Callable[[str, str], str], fairtrial: Callable[..., Any]
) -> None:
    said = fairtrial("audit", "--scorer", scorer(TOKENS, "sums_to_277"))
    assert (said.code, "sum to 277" in " ".join(said.out.split())) == (1, True)
    assert fairtrial("audit", "--scorer", scorer(TOKENS, "honest")).code == 0
    assert ft.audit(scorer=scorer(TEXT, "honest")).passed


def test_what_is_no_scorer_is_refused(scorer: Callable[[str, str], str], tmp_path: Path) -> None:
    for target in (scorer(TEXT, "not_a_number"), scorer(TEXT, "nothing"), str(tmp_path / "none.py:score"), "score"):
        with pytest.raises(ft.BadInput):
            audit_scorer(target)
