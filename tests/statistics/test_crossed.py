"""The crossed t-test against other implementations and its own symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairtrial.statistics.crossed import compare_seeds, crossed_t, linearised, runs_t, summed
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


def test_its_sources_are_those_of_the_textbook_analysis_of_variance() -> None:
    values = table()
    seeds, items = values.shape
    seed, item, rest = mean_squares_by_regression(values)
    found = crossed_t(values)
    assert found.seed is not None
    assert found.item is not None
    assert (found.seed.variance, found.seed.df) == pytest.approx((seed / values.size, seeds - 1))
    assert (found.item.variance, found.item.df) == pytest.approx((item / values.size, items - 1))
    assert found.rest == pytest.approx(rest / values.size)
    assert found.components.seed == pytest.approx((seed - rest) / items)
    assert found.components.item == pytest.approx((item - rest) / seeds)
    assert found.components.rest == pytest.approx(rest)


def test_its_p_value_is_averaged_over_what_the_variances_may_be() -> None:
    """Against plain draws: each true mean square is its estimate over a chi-square per degree of freedom."""
    found, chance = crossed_t(table()), np.random.default_rng(0)
    assert found.seed is not None
    assert found.item is not None
    seed, item = (
        source.variance * source.df / chance.chisquare(source.df, 400_000) for source in (found.seed, found.item)
    )
    total = np.maximum(np.maximum(seed, item), seed + item - found.rest)
    assert found.p == pytest.approx(float(2 * stats.norm.sf(abs(found.difference) / np.sqrt(total)).mean()), rel=0.01)
    low, high = found.interval()
    assert float(2 * stats.norm.sf((high - low) / 2 / np.sqrt(total)).mean()) == pytest.approx(0.05, rel=0.01)


def test_one_number_per_run_is_the_paired_t_test() -> None:
    chance = np.random.default_rng(1)
    ours, theirs = chance.normal(80, 1, 7), chance.normal(79, 1, 7)
    found = runs_t(ours, theirs, (range(7), range(7)))
    oracle = stats.ttest_rel(ours, theirs)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-12)
    assert found.interval() == pytest.approx(tuple(oracle.confidence_interval()), rel=1e-12)


def test_runs_of_other_seeds_are_welchs_t_test() -> None:
    chance = np.random.default_rng(2)
    ours, theirs = chance.normal(80, 1, 7), chance.normal(79, 3, 12)
    found = runs_t(ours, theirs, ((), ()))
    oracle = stats.ttest_ind(ours, theirs, equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-12)
    assert found.interval() == pytest.approx(tuple(oracle.confidence_interval()), rel=1e-12)


@cases("shared", [0, 1, 5, 9])
def test_all_seeds_count_whichever_are_shared(shared: int) -> None:
    """Ten against ten: the difference is that of the means of all, and names and order of the others do not matter."""
    chance = np.random.default_rng(3)
    ours, theirs = chance.normal(1, 1, (10, 30)), chance.normal(0, 1, (10, 30))
    common = (list(range(shared)), list(range(shared)))
    found = compare_seeds(ours, theirs, common)
    assert found.difference == pytest.approx(ours.mean() - theirs.mean())
    order = [*range(shared), *(shared + chance.permutation(10 - shared))]
    again = compare_seeds(ours[order], theirs, common)
    assert (again.p, again.interval()) == (pytest.approx(found.p), pytest.approx(found.interval()))
    swapped = compare_seeds(ours[order][::-1], theirs[::-1], ([9 - n for n in common[0]], [9 - n for n in common[1]]))
    assert swapped.p == pytest.approx(found.p)


def test_shared_seeds_help_where_seeds_matter() -> None:
    chance = np.random.default_rng(4)
    luck = chance.normal(0, 3, (10, 1))
    ours, theirs = (luck + chance.normal(0, 1, (10, 200)) for _ in range(2))
    errors = [compare_seeds(ours, theirs, (range(n), range(n))).error for n in (10, 5, 0)]
    assert errors[0] < errors[1] < errors[2]


def test_identical_variants_do_not_differ() -> None:
    found = crossed_t(np.zeros((5, 30)))
    assert (found.difference, found.p, found.interval()) == (0, 1, (0, 0))


def test_a_difference_without_any_variation_is_no_evidence() -> None:
    found = crossed_t(np.full((5, 30), 100.0))
    assert not found.varies
    assert found.p == 1


def test_the_order_of_seeds_and_items_does_not_matter() -> None:
    values, chance = table(), np.random.default_rng(3)
    shuffled = values[chance.permutation(6)][:, chance.permutation(40)]
    one, other = crossed_t(values), crossed_t(shuffled)
    assert (one.difference, one.p) == pytest.approx((other.difference, other.p))
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
    from fairtrial.data.corpus import contiguous_blocks

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
    assert crossed_t(np.zeros((3, 4))).variance_shares == {"seed": 0.0, "item": 0.0, "rest": 0.0}
