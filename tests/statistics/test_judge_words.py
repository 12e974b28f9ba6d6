"""How figures are said."""

from __future__ import annotations

import pytest

from fairtrial.statistics.sentences import bare, change, listed, p_words, score_words


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("accuracy", 2.14, "+2.1 points"),
        ("accuracy", -0.96, "-1.0 points"),
        ("accuracy", 0.03, "+0.03 points"),
        ("accuracy", 0.0, "0.0 points"),
        ("perplexity", -0.0284, "-2.8%"),
        ("perplexity", 0.0001, "+0.01%"),
        ("bits per byte", -0.0123, "-0.012 bits per byte"),
        ("log loss", 0.5, "+0.500 nats per item"),
    ],
)
def test_differences(metric: str, value: float, told: str) -> None:
    assert change(metric, value) == told
    assert bare(metric, value) == told.split(" ")[0]


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("accuracy", 1.0, "1 point"),
        ("accuracy", 1.5, "1.5 points"),
        ("accuracy", 2.0, "2 points"),
        ("perplexity", 0.01, "1%"),
    ],
)
def test_sizes(metric: str, value: float, told: str) -> None:
    assert change(metric, value, signed=False) == told


@pytest.mark.parametrize(
    ("p", "told"),
    [(0.2, "p = 0.20"), (0.03, "p = 0.030"), (0.0004, "p = 0.0004"), (1e-9, "p < 0.0001"), (1.0, "p = 1.00")],
)
def test_p_values(p: float, told: str) -> None:
    assert p_words(p) == told


def test_scores_and_lists() -> None:
    assert score_words("accuracy", 85.23) == "85.2%"
    assert score_words("perplexity", 374.62) == "374.6"
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
