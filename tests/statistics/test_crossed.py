"""The crossed t-test against other implementations and its own symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairtrial.statistics.crossed import crossed_t, linearised, pooled, summed
from sampling import cases


def table(seeds: int = 6, items: int = 40, seed: int = 0) -> np.ndarray:
    chance = np.random.default_rng(seed)
    parts = (
        2 * chance.normal(size=(seeds, 1)),
        2 * chance.normal(size=(1, items)),
        3 * chance.normal(size=(seeds, items)),
    )
    return 0.4 + sum(parts)


def mean_squares_by_regression(values: np.ndarray) -> tuple[float, float, float]:
    """Textbook analysis of variance: residuals of least squares with and without each factor's dummy variables."""
    seeds, items = values.shape
    seed_of, item_of = (each.ravel() for each in np.indices(values.shape))
    one = np.ones((values.size, 1))
    by_seed, by_item = np.eye(seeds)[seed_of][:, 1:], np.eye(items)[item_of][:, 1:]

    def left(*columns: np.ndarray) -> float:
        design = np.hstack([one, *columns])
        fitted = design @ np.linalg.lstsq(design, values.ravel(), rcond=None)[0]
        return float(((values.ravel() - fitted) ** 2).sum())

    both = left(by_seed, by_item)
    squares = left(by_item) - both, left(by_seed) - both, both
    return squares[0] / (seeds - 1), squares[1] / (items - 1), squares[2] / ((seeds - 1) * (items - 1))


def test_it_equals_the_textbook_analysis_of_variance() -> None:
    values = table()
    seeds, items = values.shape
    seed, item, rest = mean_squares_by_regression(values)
    assert seed > rest  # the general case: all three sources vary
    assert item > rest
    total = seed + item - rest
    error = (total / values.size) ** 0.5
    df = total**2 / (seed**2 / (seeds - 1) + item**2 / (items - 1) + rest**2 / ((seeds - 1) * (items - 1)))
    found = crossed_t(values)
    assert found.df == pytest.approx(df)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(values.mean()) / error, df))
    low, high = stats.t.interval(0.95, df, values.mean(), error)
    assert found.interval() == pytest.approx((low, high))
    assert found.components.seed == pytest.approx((seed - rest) / items)
    assert found.components.item == pytest.approx((item - rest) / seeds)
    assert found.components.rest == pytest.approx(rest)


def test_items_that_all_agree_leave_the_paired_t_test() -> None:
    chance = np.random.default_rng(1)
    ours, theirs = chance.normal(80, 1, 7), chance.normal(79, 1, 7)
    found = crossed_t(np.repeat((ours - theirs)[:, None], 500, axis=1))
    oracle = stats.ttest_rel(ours, theirs)
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.interval() == pytest.approx(tuple(oracle.confidence_interval()))


def test_seeds_that_all_agree_leave_the_t_test_over_items() -> None:
    values = np.random.default_rng(2).normal(0.2, 1, 90)
    found = crossed_t(np.repeat(values[None], 5, axis=0))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


@cases(
    ("squares", "variance", "df"),
    [((1, 1, 2), 2, 4 * 9), ((1, 3, 2), 3, 9), ((3, 1, 2), 3, 4), ((3, 4, 2), 5, 25 / (9 / 4 + 16 / 9 + 4 / 36))],
)
def test_a_source_that_varies_less_than_the_rest_counts_as_none(
    squares: tuple[float, float, float], variance: float, df: float
) -> None:
    assert pooled(*squares, 5, 10) == pytest.approx((variance / 50, df))


def test_identical_variants_do_not_differ() -> None:
    found = crossed_t(np.zeros((5, 30)))
    assert (found.difference, found.p, found.interval()) == (0, 1, (0, 0))


def test_a_difference_without_any_variation_is_certain() -> None:
    assert crossed_t(np.full((5, 30), 100.0)).p == 0


def test_the_order_of_seeds_and_items_does_not_matter() -> None:
    values, chance = table(), np.random.default_rng(3)
    shuffled = values[chance.permutation(6)][:, chance.permutation(40)]
    one, other = crossed_t(values), crossed_t(shuffled)
    assert (one.difference, one.p, one.df) == pytest.approx((other.difference, other.p, other.df))
    assert crossed_t(np.random.default_rng(4).permutation(values.ravel()).reshape(6, 40)).p != pytest.approx(one.p)


def test_swapping_the_variants_turns_the_sign_only() -> None:
    one, other = crossed_t(table()), crossed_t(-table())
    assert one.difference == -other.difference
    assert one.p == other.p


def test_equal_weights_make_the_ratio_form_the_plain_form() -> None:
    values = table()
    assert linearised(values, np.ones_like(values)) == pytest.approx(values)
    assert crossed_t(linearised(7 * values, np.full_like(values, 7))).p == pytest.approx(crossed_t(values).p)


def test_the_ratio_form_has_the_ratio_as_its_mean_and_its_textbook_error() -> None:
    """For a single seed: Cochran's variance of a ratio, (1 / n) sum (y - r x)^2 / (n - 1) / mean(x)^2."""
    chance = np.random.default_rng(5)
    tokens = chance.integers(1, 60, (1, 80)).astype(float)
    nats = tokens * chance.normal(0.1, 0.3, (1, 80))
    values = linearised(nats, tokens)
    ratio = nats.sum() / tokens.sum()
    assert values.mean() == pytest.approx(ratio)
    textbook = ((nats - ratio * tokens) ** 2).sum() / 79 / 80 / tokens.mean() ** 2
    assert values.var(ddof=1) / 80 == pytest.approx(textbook)


def test_documents_of_other_tokens_in_other_seeds_keep_the_mean_of_seed_ratios() -> None:
    chance = np.random.default_rng(6)
    tokens = chance.integers(5, 60, (4, 30)).astype(float)
    nats = chance.normal(0, 9, (4, 30))
    assert linearised(nats, tokens).mean() == pytest.approx((nats.sum(1) / tokens.sum(1)).mean())


def test_clusters_are_summed_under_any_name() -> None:
    values = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    assert summed(values, np.array([9, 2, 9, 2])).tolist() == [[6, 4], [14, 12]]
    assert summed(values, None) is values


def test_clustered_items_give_wider_intervals_than_items_taken_as_independent() -> None:
    chance = np.random.default_rng(7)
    speeches = np.repeat(np.arange(20), 10)
    liking = chance.normal(0, 3, 20)[speeches]
    values = liking + chance.normal(size=(6, 200))
    alone = crossed_t(values)
    together = crossed_t(linearised(summed(values, speeches), summed(np.ones_like(values), speeches)))
    assert together.difference == pytest.approx(alone.difference)
    assert together.error > 2 * alone.error


def test_running_text_is_cut_into_blocks_of_neighbours() -> None:
    pytest.importorskip("tokenizers", reason="reading text needs fairtrial[train]")
    from fairtrial.data.splits import contiguous_blocks

    blocks = contiguous_blocks(np.full(100, 20), length=32)
    sizes = np.bincount(blocks) * 20
    assert (np.diff(blocks) >= 0).all()
    assert (sizes >= 256).all()
    assert len(sizes) == 7  # 13 documents fill a block; the short end joins the last
    assert contiguous_blocks(np.array([5, 5]), 32).tolist() == [0, 0]


def test_the_sources_of_a_variance_are_those_of_the_mean_not_of_one_answer() -> None:
    """Seeds that differ by 3 points and answers that differ by 45: over 2,000 items the seeds are nearly all of it."""
    rng = np.random.default_rng(1)
    values = 3 * rng.normal(size=(8, 1)) + 45 * rng.normal(size=(8, 2000))
    found = crossed_t(values)
    assert found.components.seed < 0.02 * found.components.rest
    assert found.variance_shares["seed"] > 0.8
    assert sum(found.variance_shares.values()) == pytest.approx(1)
    assert found.variance_shares["seed"] * found.variance == pytest.approx(found.components.seed / 8, rel=0.05)
    assert crossed_t(np.zeros((3, 4))).variance_shares == {"seed": 0.0, "item": 0.0, "rest": 0.0}
