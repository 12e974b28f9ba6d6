"""Kneser-Ney: the textbook's formulas, probabilities that sum to one, and no run across sequences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from fairtrial.baselines.kneser_ney import USUAL_DISCOUNTS, KneserNey, discounts
from fairtrial.errors import BadInput
from sampling import cases

SIZE = 12


def sequences(seed: int, count: int = 30) -> list[np.ndarray]:
    """Zipf-like tokens; 11, the unknown one, never occurs."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, SIZE)
    return [rng.choice(SIZE - 1, rng.integers(1, 25), p=shares / shares.sum()) for _ in range(count)]


class Textbook:
    """Chen and Goodman 1998, with dictionaries. What stands before the first token is a context of its own."""

    def __init__(self, sequences: Sequence[np.ndarray], order: int) -> None:
        self.counts: list[Counter[tuple[int, ...]]] = []
        for length in range(1, order + 1):
            before: defaultdict[tuple[int, ...], set[object]] = defaultdict(set)
            raw: Counter[tuple[int, ...]] = Counter()
            for number, sequence in enumerate(sequences):
                tokens = [int(token) for token in sequence]
                for end in range(max(1, length - 1), len(tokens)):
                    run = tuple(tokens[end - length + 1 : end + 1])
                    raw[run] += 1
                    before[run].add(tokens[end - length] if end >= length else ("beginning", number))
            self.counts.append(raw if length == order else Counter({run: len(each) for run, each in before.items()}))
        self.taken = [discounts(np.array(list(counts.values()))) for counts in self.counts]

    def probability(self, context: tuple[int, ...], token: int) -> float:
        length = len(context) + 1
        lower = self.probability(context[1:], token) if context else 1 / SIZE
        counts, taken = self.counts[length - 1], self.taken[length - 1]
        followers = {run: count for run, count in counts.items() if run[:-1] == context}
        total = sum(followers.values())
        if not total:
            return lower
        count = counts[(*context, token)]
        rest = sum(taken[min(each, 3)] for each in followers.values())
        return (count - taken[min(count, 3)] + rest * lower) / total


@cases(("order", "seed"), [(1, 0), (2, 1), (3, 0), (3, 1)])
def test_probabilities_are_the_textbooks(order: int, seed: int) -> None:
    train, test = sequences(seed), sequences(seed + 10, count=4)
    book, model = Textbook(train, order), KneserNey(train, SIZE, order)
    wanted = [
        book.probability(tuple(int(token) for token in sequence[max(0, end - order + 1) : end]), int(sequence[end]))
        for sequence in test
        for end in range(1, len(sequence))
    ]
    assert model.probabilities(test) == pytest.approx(wanted, rel=1e-12)


@cases("order", [1, 2, 3])
def test_probabilities_sum_to_one_over_the_vocabulary(order: int) -> None:
    model = KneserNey(sequences(0), SIZE, order)
    for context in ([0], [3, 1], [0, 0], [10, 10], [11], [11, 4]):  # common, rare, never seen, unknown
        asked = [np.array([*context, token]) for token in range(SIZE)]
        each = model.probabilities(asked).reshape(SIZE, len(context))[:, -1]
        assert each.sum() == pytest.approx(1, abs=1e-12)
        assert (each > 0).all()
        assert each[11] == each.min()  # the unknown token never occurred: it gets its share of the uniform part


def test_more_context_helps_where_there_is_something_to_learn() -> None:
    cycle = [np.tile(np.arange(5), 40)]
    test = [np.tile(np.arange(5), 3)]
    unigram, bigram, trigram = (
        -np.log(KneserNey(cycle, SIZE, order).probabilities(test)).mean() for order in (1, 2, 3)
    )
    assert unigram > 1.5
    assert bigram < 0.2
    assert trigram < bigram + 0.1


def test_no_run_reaches_from_one_sequence_into_the_next() -> None:
    apart = KneserNey([np.array([0, 1]), np.array([2, 3])], SIZE, 2).probabilities([np.array([1, 2])])
    joined = KneserNey([np.array([0, 1, 2, 3])], SIZE, 2).probabilities([np.array([1, 2])])
    assert joined[0] > apart[0]


def test_each_sequence_but_its_first_token_is_scored() -> None:
    model = KneserNey(sequences(0), SIZE, 3)
    assert len(model.probabilities([np.array([1]), np.array([1, 2, 3]), np.array([4, 5])])) == 3


def test_discounts_of_too_little_text_are_the_usual_ones() -> None:
    assert discounts(np.array([1, 1, 1])).tolist() == [0.0, *USUAL_DISCOUNTS]
    estimated = discounts(np.repeat([1, 2, 3, 4], [400, 120, 60, 35]))
    share = 400 / (400 + 240)
    assert estimated[1] == pytest.approx(1 - 2 * share * 120 / 400)
    assert (np.diff(estimated) > 0).all()


def test_a_vocabulary_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(BadInput, match="too large"):
        KneserNey([np.array([0, 1])], 1 << 22, 3)


def test_text_that_is_shorter_than_the_longest_run_is_counted_all_the_same() -> None:
    model = KneserNey([np.array([1, 2])], 5, 3)
    assert model.probabilities([np.array([1, 2, 3, 4])]).shape == (3,)
