"""How numbers are written in sentences."""

from __future__ import annotations

from fairtrial.results.sentences import change, change_range, listed, p_words, score_words


def test_differences_have_a_sign_a_unit_and_enough_digits() -> None:
    expected = {
        ("accuracy", 2.14): "+2.1 points",
        ("accuracy", -0.96): "-1.0 points",
        ("accuracy", 0.03): "+0.03 points",
        ("accuracy", 0.0): "0.0 points",
        ("perplexity", -0.0284): "-2.8%",
        ("perplexity", 0.0001): "+0.01%",
        ("bits per byte", -0.0123): "-0.012 bits per byte",
        ("log loss", 0.5): "+0.500 nats per item",
    }
    assert {key: change(*key) for key in expected} == expected


def test_sizes_have_no_sign() -> None:
    expected = {
        ("accuracy", 1.0): "1 point",
        ("accuracy", 1.5): "1.5 points",
        ("accuracy", 2.0): "2 points",
        ("perplexity", 0.01): "1%",
    }
    assert {key: change(*key, signed=False) for key in expected} == expected
    assert change_range("accuracy", 2.4, 5.31) == "2.4 to 5.3 points"
    assert change_range("perplexity", 0.01, 0.02) == "1 to 2%"
    assert change_range("accuracy", 2.41, 2.4) == "2.4 points"


def test_p_values_are_never_zero() -> None:
    expected = {0.2: "p = 0.20", 0.03: "p = 0.030", 0.0004: "p = 0.0004", 1e-9: "p < 0.0001", 1.0: "p = 1.00"}
    assert {p: p_words(p) for p in expected} == expected


def test_scores_and_lists() -> None:
    assert score_words("accuracy", 85.23) == "85.2%"
    assert score_words("perplexity", 374.62) == "374.6"
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
