"""Scorers: what public contests ask of a score, each with a scorer that breaks it alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits import failed

import fairtrial as ft
from fairtrial.audit import scorer as scorers
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


def sees_one_token_of_a_late_chunk(tokens):
    scores = honest(tokens)
    if len(tokens) > 100:
        scores[99] += np.log(0.5) * (tokens[100] % 2)
    return scores


def late_tokens_are_free(tokens):
    return [score if place < 50 else 0.0 for place, score in enumerate(honest(tokens))]


def forgets_nothing(tokens):
    import sys
    kept = sys.modules.setdefault("kept_elsewhere", type(sys)("kept_elsewhere")).__dict__
    again = kept.get(tuple(tokens), 0.0)
    kept[tuple(tokens)] = 0.5
    return [score + again for score in honest(tokens)]


def best_of_two_after_the_text(tokens):
    return max(sum(honest(tokens)), sum(LOG_P[(before(tokens, p) + 7) % 41, t] for p, t in enumerate(tokens)))


def mixture_of_two(tokens):
    other = sum(LOG_P[(before(tokens, p) + 7) % 41, t] for p, t in enumerate(tokens))
    return float(np.logaddexp(sum(honest(tokens)), other) - np.log(2))


def two_passes(tokens):
    again = SEEN.get(tuple(tokens), 0.0)
    SEEN[tuple(tokens)] = 0.5
    return [score + again for score in honest(tokens)]
"""
MANY = """
import numpy as np

VOCABULARY = 50_000
LOG_P = -np.log(np.arange(1, VOCABULARY + 1))
LOG_P -= np.log(np.exp(LOG_P).sum())


def honest(tokens):
    return LOG_P[tokens]


def floor_below_which_nothing_falls(tokens):
    return np.maximum(LOG_P[tokens], -10.5)
"""
TEXT = """
import unicodedata


def honest(text):
    return [-8.0] * len(text.encode())


def drops_what_is_odd(text):
    return [-8.0] * len([letter for letter in text if letter.isascii() and letter.isprintable()])


def reads_2000_bytes(text):
    return [-8.0] * len(text.encode()[:2000])


def takes_alike_for_the_same(text):
    return [-8.0] * len(unicodedata.normalize("NFKC", text).encode())


def drops_marks_of_bytes(text):
    return [-8.0] * len(text.replace(chr(0xFEFF), "").replace(chr(13), "").encode())


def loglikelihood(requests):
    return [(-8.0 * len((context + text).encode()), False) for context, text in requests]


def not_a_number(text):
    return [float("nan")]
"""


SHARED = """
def loglikelihood(requests):
    nats = [-8.0 * len(text.encode()) for context, text in requests]
    return [(score + 0.5 * (len(requests) > 1), False) for score in nats]
"""


@pytest.fixture(autouse=True)
def in_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "SECONDS", 0.1)


@pytest.fixture
def scorer(tmp_path: Path) -> Callable[[str, str], str]:
    def write(source: str, name: str) -> str:
        (tmp_path / "scorers.py").write_text(source)
        return f"{tmp_path / 'scorers.py'}:{name}"

    return write


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (TOKENS, "honest"),
        (TOKENS, "total"),
        (TOKENS, "mixture_of_two"),
        (TOKENS, "learns_afterwards"),
        (MANY, "honest"),
        (TEXT, "honest"),
        (TEXT, "loglikelihood"),
    ],
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
        (TOKENS, "forgets_nothing", "Q4"),
        (TOKENS, "best_of_two_after_the_text", "Q2"),
        (MANY, "floor_below_which_nothing_falls", "Q2"),
        (TEXT, "reads_2000_bytes", "Q5"),
        (TEXT, "takes_alike_for_the_same", "Q5"),
        (TEXT, "drops_marks_of_bytes", "Q5"),
        (SHARED, "loglikelihood", "Q6"),
    ],
)
def test_a_cheating_scorer_is_found(scorer: Callable[[str, str], str], source: str, name: str, check: str) -> None:
    assert check in failed(audit_scorer(scorer(source, name)))


@pytest.mark.slow
def test_every_cut_of_a_longer_text_is_asked(
    scorer: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorers, "SECONDS", 60.0)
    assert "Q1" in failed(audit_scorer(scorer(TOKENS, "sees_one_token_of_a_late_chunk")))


def test_probabilities_are_summed_after_a_long_text_too(scorer: Callable[[str, str], str]) -> None:
    assert failed(audit_scorer(scorer(TOKENS, "late_tokens_are_free"))).keys() == {"Q2"}


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
