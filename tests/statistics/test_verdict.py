"""The verdict's rules, in their order."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.results.values import Reason, ReasonCode
from fairtrial.statistics import comparison as judge
from fairtrial.statistics.comparison import Contrast, Scored, decide, may_be_judged, p_bounded, p_equivalent
from fairtrial.statistics.outcomes import METRICS, SetOutcomes, Vocabulary, stack_outcomes
from sampling import cases

NAMES = ("rope", "learned", "test", "all")


def classifier(right: np.ndarray, seeds: tuple[int, ...] | None = None) -> SetOutcomes:
    """Outcomes of a two-class task from right answers [seed item]."""
    labels = np.zeros_like(right, int)
    seeds = seeds or tuple(range(len(right)))
    return SetOutcomes(seeds, {"label": labels, "guess": np.where(right, 0, 1), "log_p": np.where(right, -0.1, -2.0)})


def compare(
    names: tuple[str, str, str, str], metric: str, pair: tuple[SetOutcomes, SetOutcomes], keep: np.ndarray
) -> Contrast:
    return judge.compare(names, metric, [Scored(*pair, keep)])


def chances(share: float, seeds: int = 8, items: int = 300, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((seeds, items)) < share


def comparison(ours: float, theirs: float, seeds: int = 8, items: int = 300) -> Contrast:
    pair = classifier(chances(ours, seeds, items, 1)), classifier(chances(theirs, seeds, items, 2))
    return compare(NAMES, "accuracy", pair, np.ones(items, bool))


def judged(found: Contrast, *, alpha: float = 0.05, margin: float = 1.0) -> str:
    p = found.test.p if may_be_judged(found) and found.test else None
    also = p_equivalent(found, margin) if p is not None else None
    return decide(found, p, alpha, margin, p_equivalent_adjusted=also).verdict


def test_a_large_gain_is_better_and_a_large_loss_worse() -> None:
    assert judged(comparison(0.8, 0.6)) == "better"
    assert judged(comparison(0.6, 0.8)) == "worse"


def test_what_cannot_be_compared_is_never_judged() -> None:
    found = comparison(0.8, 0.6)
    blocked = found.but(ReasonCode.FAILED_AUDIT, "rope failed its leak audit (M3)")
    verdict = decide(blocked, found.test and found.test.p, 0.05, 1.0)
    assert verdict.verdict == "not_comparable"
    assert verdict.reasons == (Reason(ReasonCode.FAILED_AUDIT, "rope failed its leak audit (M3)"),)
    assert not may_be_judged(blocked)


@cases("seeds", [1, 2, 4])
def test_fewer_than_five_seeds_get_no_verdict_however_clear(seeds: int) -> None:
    found = comparison(0.9, 0.3, seeds)
    decision = decide(found, None, 0.05, 1.0)
    assert (decision.verdict, [reason.code for reason in decision.reasons]) == ("undecided", ["too_few_seeds"])
    assert judged(comparison(0.9, 0.3, 5)) == "better"


def test_the_corrected_p_value_decides_not_the_raw_one() -> None:
    found = comparison(0.8, 0.6)
    assert decide(found, 0.051, 0.05, 1.0).verdict == "undecided"
    assert decide(found, 0.049, 0.05, 1.0).verdict == "better"
    assert decide(found, 0.049, 0.005, 1.0).verdict == "undecided"  # at the first look


def test_an_interval_inside_the_least_difference_is_no_difference_worth_naming() -> None:
    found = comparison(0.7, 0.7, seeds=20, items=2000)
    assert judged(found, margin=3.0) == "equivalent"
    assert judged(found, margin=0.2) == "undecided"


def plain_scores() -> Contrast:
    """Without a bound on how much one item may differ."""
    ours, theirs = np.random.default_rng(0).normal(0, 1, (2, 20, 400))
    return judge.compare_values(("ours", "theirs"), METRICS["log loss"], ours, theirs)


def test_the_same_at_an_early_look_needs_a_wider_interval() -> None:
    found = plain_scores()
    assert found.test is not None
    narrow, wide = (max(map(abs, found.test.interval(level))) for level in (0.90, 0.99))
    between = (narrow + wide) / 2
    assert judged(found, margin=between) == "equivalent"
    assert judged(found, alpha=0.005, margin=between) == "undecided"


def test_the_same_is_told_from_the_ninety_per_cent_interval() -> None:
    """Two one-sided tests at 5% (Schuirmann 1987)."""
    found = plain_scores()
    assert found.test is not None
    narrow, wide = (max(map(abs, found.test.interval(level))) for level in (0.90, 0.95))
    assert judged(found, margin=1.001 * narrow) == "equivalent"
    assert judged(found, margin=(narrow + wide) / 2) == "equivalent"
    assert judged(found, margin=0.999 * narrow) == "undecided"


def test_few_items_that_never_differ_prove_little() -> None:
    """Items that differ may be rare: 30 that all agree may miss them, 500 hardly miss a point."""
    few, many = (classifier(np.ones((5, items), bool)) for items in (30, 500))
    assert judged(compare(NAMES, "accuracy", (many, many), np.ones(500, bool))) == "equivalent"
    assert judged(compare(NAMES, "accuracy", (few, few), np.ones(30, bool))) == "undecided"


@cases("items", [50, 100, 200, 400, 1000])
def test_a_loss_on_rare_items_is_not_called_equivalent(items: int) -> None:
    """One item in a hundred is lost entirely, and the margin is one point."""
    chance = np.random.default_rng(items)
    lost = chance.random((2000, items)) < 0.01
    wrong = np.mean([p_bounded(-100.0 * row, 100.0, 1.0) < 0.05 for row in lost])
    assert wrong <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


@cases("items", [1, 2, 5])
def test_fewer_than_six_items_decide_nothing(items: int) -> None:
    ours, theirs = classifier(np.ones((5, items), bool)), classifier(np.zeros((5, items), bool))
    found = compare(NAMES, "accuracy", (ours, theirs), np.ones(items, bool))
    assert judged(found) != "better"


def test_answers_that_never_vary_are_not_certain() -> None:
    ours, theirs = classifier(np.ones((5, 12), bool)), classifier(np.zeros((5, 12), bool))
    found = compare(NAMES, "accuracy", (ours, theirs), np.ones(12, bool))
    assert judged(found) == "better"
    assert found.test is not None
    assert 0 < found.test.p < 0.001
    assert found.test.interval()[0] < 90


def test_a_difference_that_never_varies_in_any_other_metric_decides_nothing() -> None:
    ones = np.ones((5, 50))
    flat = SetOutcomes(tuple(range(5)), {"value": ones, "weight": ones}, metric=METRICS["log loss"])
    other = SetOutcomes(flat.seeds, {**flat.arrays, "value": 2 * ones}, metric=flat.metric)
    decision = decide(compare(NAMES, "log loss", (flat, other), np.ones(50, bool)), None, 0.05, 0.1)
    assert (decision.verdict, decision.reasons[0].code) == ("undecided", "no_variation")


def test_seeds_or_items_are_asked_for() -> None:
    few_seeds = decide(comparison(0.71, 0.7, 5, 3000), 0.5, 0.05, 1.0)
    assert few_seeds.more_seeds is not None
    assert few_seeds.more_items is None
    liking = np.random.default_rng(3).random((2, 1, 60)) < 0.7  # each variant knows its own items, whatever the seed
    ours, theirs = (classifier(np.repeat(each, 8, 0)) for each in liking)
    few_items = decide(compare(NAMES, "accuracy", (ours, theirs), np.ones(60, bool)), 0.5, 0.05, 1.0)
    assert few_items.verdict == "undecided"
    assert few_items.more_seeds is None
    assert few_items.more_items is not None
    assert few_items.more_items > 60


def test_lower_is_better_for_perplexity() -> None:
    def model(nats: float, seed: int) -> SetOutcomes:
        chance = np.random.default_rng(seed)
        tokens = np.full((6, 50), 20)
        return SetOutcomes(
            tuple(range(6)),
            {
                "nll": 20 * chance.normal(nats, 0.1, (6, 50)),
                "tokens": tokens,
                "bytes": 5 * tokens,
                "unknown": 0 * tokens,
            },
        )

    found = compare(("window", "full", "obama", "all"), "perplexity", (model(5.8, 1), model(6.0, 2)), np.ones(50, bool))
    assert found.difference == pytest.approx(-0.2, abs=0.03)
    assert judged(found, margin=0.01) == "better"


def test_shared_seeds_are_paired_and_all_count() -> None:
    ours, theirs = chances(0.7, 6), chances(0.6, 5, seed=1)
    pair = classifier(ours, (3, 1, 2, 9, 4, 5)), classifier(theirs, (1, 2, 3, 4, 7))
    found = compare(NAMES, "accuracy", pair, np.ones(300, bool))
    assert (found.seeds, found.paired, found.common) == (5, True, (3, 1, 2, 4))
    assert found.difference == pytest.approx(100 * (ours.mean() - theirs.mean()))
    assert found.test is not None
    assert found.test.by_seed == pytest.approx(100 * (ours[[0, 1, 2, 4]].mean(1) - theirs[[2, 0, 1, 3]].mean(1)))


@cases("seed", range(4))
def test_names_of_seeds_that_are_not_shared_change_nothing(seed: int) -> None:
    ours, theirs, chance = chances(0.7, 8), chances(0.6, 7, seed=1), np.random.default_rng(seed)
    names, order = chance.permutation(50).tolist(), chance.permutation(8)
    given = classifier(ours, tuple(range(8))), classifier(theirs, tuple(range(100, 107)))
    renamed = classifier(ours[order], tuple(names[:8])), classifier(theirs, tuple(names[8:15]))
    first, again = (compare(NAMES, "accuracy", pair, np.ones(300, bool)) for pair in (given, renamed))
    assert first.test is not None
    assert again.test is not None
    assert (again.difference, again.test.p) == (pytest.approx(first.difference), pytest.approx(first.test.p))
    assert (first.seeds, first.paired) == (7, False)


def language(tokens: np.ndarray, unknown: np.ndarray) -> SetOutcomes:
    seeds = tuple(range(len(tokens)))
    chance = np.random.default_rng(0)
    size = np.full_like(tokens, 100)
    return SetOutcomes(
        seeds,
        {
            "nll": 5 * tokens * chance.uniform(0.9, 1.1, tokens.shape),
            "tokens": tokens,
            "bytes": size,
            "unknown": unknown,
        },
    )


def test_other_tokens_leave_only_bits_per_byte() -> None:
    words, characters, none = np.full((5, 40), 20), np.full((5, 40), 90), np.zeros((5, 40), int)
    names = ("characters", "words", "test", "all")
    found = compare(names, "perplexity", (language(characters, none), language(words, none)), np.ones(40, bool))
    assert (found.metric.name, found.not_comparable) == ("bits per byte", ())
    same = compare(names, "perplexity", (language(words, none), language(words, none)), np.ones(40, bool))
    assert same.metric.name == "perplexity"


def test_bytes_are_counted_for_each_model_by_itself() -> None:
    """Two tokenizers may count a line's end or not: at the same bits per byte there is no difference."""
    size = np.random.default_rng(3).integers(30, 60, 400)
    tokens, none = np.tile(size // 4, (5, 1)), np.zeros((5, 400), int)
    noise = np.random.default_rng(4).normal(0, 0.1, (5, 400))

    def model(count: np.ndarray, tokens: np.ndarray) -> SetOutcomes:
        nats = (2 + noise) * np.log(2) * count
        nats *= 2 * np.log(2) * count.sum() / nats.sum(1, keepdims=True)
        facts = {"nll": nats, "tokens": tokens, "bytes": np.tile(count, (5, 1)), "unknown": none}
        return SetOutcomes(tuple(range(5)), facts)

    pair = model(size + 1, tokens + 1), model(size, tokens)
    found = compare(("bpe", "words", "test", "all"), "perplexity", pair, np.ones(400, bool))
    assert found.metric.name == "bits per byte"
    assert found.difference == pytest.approx(0, abs=1e-9)
    assert found.level == pytest.approx(2)


def test_vocabularies_that_hide_different_words_cannot_be_compared() -> None:
    words, none = np.full((5, 40), 20), np.zeros((5, 40), int)
    found = compare(
        ("small", "large", "test", "all"),
        "perplexity",
        (language(words, none + 2), language(words, none)),
        np.ones(40, bool),
    )
    assert judged(found) == "not_comparable"
    assert "unknown: 10.0% and 0.0%" in found.not_comparable[0].text


def test_other_items_cannot_be_compared() -> None:
    found = compare(
        NAMES, "accuracy", (classifier(chances(0.7, items=10)), classifier(chances(0.7, items=9))), np.ones(10, bool)
    )
    assert judged(found) == "not_comparable"


def test_a_single_item_cannot_be_judged() -> None:
    keep = np.arange(300) == 7
    pair = classifier(chances(0.7)), classifier(chances(0.6, seed=1))
    assert judged(compare(NAMES, "accuracy", pair, keep)) == "not_comparable"


def test_records_of_other_items_are_refused_kindly() -> None:
    from fairtrial.errors import BadInput

    one, other = (
        {"label": np.array([0, 1]), "guess": np.array([0, 1])},
        {"label": np.array([1, 0]), "guess": np.array([0, 1])},
    )
    with pytest.raises(BadInput, match="not scored on the same items"):
        stack_outcomes({0: one, 1: other})
    with pytest.raises(BadInput, match="seed 0: 2, seed 1: 1"):
        stack_outcomes({0: one, 1: {name: array[:1] for name, array in other.items()}})
    assert stack_outcomes({1: one, 0: one}).seeds == (0, 1)


def model_of(seeds: range, *, unknown: int = 1, spelling: float | None = 0.0, **facts: str) -> SetOutcomes:
    tokens = np.full((len(seeds), 40), 20)
    chance = np.random.default_rng(seeds.start)
    arrays = {"nll": 20 * chance.normal(5, 0.1, tokens.shape), "tokens": tokens, "bytes": 5 * tokens,
              "unknown": np.full_like(tokens, unknown)}  # fmt: skip
    if spelling is not None:
        arrays["spelling"] = np.full(tokens.shape, spelling)
    prints = tuple(facts.get("fingerprint", f"vocabulary {seed}") for seed in seeds)
    return SetOutcomes(
        tuple(seeds), arrays, Vocabulary(facts.get("normalisation", ""), facts.get("settings", "words"), prints)
    )


def compared(one: SetOutcomes, other: SetOutcomes) -> Contrast:
    return compare(("a", "b", "test", "all"), "perplexity", (one, other), np.ones(40, bool))


def test_a_text_in_lower_case_is_another_text() -> None:
    """With the same number of tokens and nothing unknown, as with characters."""
    found = compared(model_of(range(5), unknown=0, normalisation="lower case"), model_of(range(5), unknown=0))
    assert "different texts (lower case and the text as it is)" in found.not_comparable[0].text


def test_seeds_of_their_own_do_not_hide_other_vocabularies() -> None:
    same = compared(model_of(range(5)), model_of(range(5, 10)))
    assert (same.metric.name, same.not_comparable, same.paired) == ("perplexity", (), False)
    other = compared(model_of(range(5), settings="min_count 20"), model_of(range(5, 10)))
    assert other.metric.name == "bits per byte"
    unspelled = compared(model_of(range(5), settings="min_count 20", spelling=None), model_of(range(5, 10)))
    assert "hide different words" in unspelled.not_comparable[0].text


def test_equal_counts_are_not_equal_vocabularies() -> None:
    found = compared(model_of(range(5), fingerprint="other words"), model_of(range(5)))
    assert found.metric.name == "bits per byte"


def test_what_tokens_hide_is_spelled_out_in_bits_per_byte() -> None:
    one, other = model_of(range(5), fingerprint="x", spelling=30.0), model_of(range(5))
    difference = compared(one, other).difference
    assert difference == pytest.approx(30 / 100 / np.log(2))
