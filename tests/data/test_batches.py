"""Batches: pure functions of seed and index; an epoch sees every item once; targets are inputs shifted by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.data.batches import Batch, Batches, LabelledSentences, Sentences, Windows, padded
from fairtrial.errors import BadInput
from sampling import cases

PAD = 0
STREAM = np.arange(100, 153)  # each token tells where it stands
ROWS = [np.arange(size) + 10 * size for size in (3, 1, 7, 2, 5, 4, 6)]  # a row's first token tells which it is


def windows(
    length: int = 5, how: str = "disjoint", batch: int = 4, seed: int = 0, stream: np.ndarray = STREAM
) -> Windows:
    return Windows(stream, length=length, how=how, batch=batch, seed=seed)


MAKERS: dict[str, Callable[[int], Batches]] = {
    "labelled": lambda seed: LabelledSentences(ROWS, np.arange(7), batch=3, seed=seed, pad=PAD),
    "sentences": lambda seed: Sentences(ROWS, batch=3, seed=seed, pad=PAD),
    "every": lambda seed: windows(how="every", seed=seed),
    "disjoint": lambda seed: windows(how="disjoint", batch=3, seed=seed),
}


def same(one: Batch, two: Batch) -> bool:
    lengths = (one.lengths is None and two.lengths is None) or np.array_equal(one.lengths, two.lengths)
    return np.array_equal(one.ids, two.ids) and np.array_equal(one.answers, two.answers) and lengths


def epoch(batches: Batches, number: int) -> list[Batch]:
    per_epoch = batches.batches_per_epoch()
    return [batches.batch(index) for index in range(number * per_epoch, (number + 1) * per_epoch)]


def starts(batches: Batches, number: int = 0) -> list[int]:
    """Where the windows of an epoch begin in STREAM."""
    return [int(first) - 100 for batch in epoch(batches, number) for first in batch.ids[:, 0]]


@cases("kind", MAKERS)
def test_a_batch_is_a_pure_function_of_seed_and_index(kind: str) -> None:
    make = MAKERS[kind]
    indices = list(range(3 * make(0).batches_per_epoch()))
    fresh = [make(0).batch(index) for index in indices]
    asked = make(0)
    for index in [*np.random.default_rng(1).permutation(indices).tolist(), *reversed(indices)]:
        assert same(asked.batch(index), fresh[index])
    assert not all(same(make(1).batch(index), fresh[index]) for index in indices)


@cases("kind", MAKERS)
def test_two_epochs_have_different_orders(kind: str) -> None:
    batches = MAKERS[kind](0)
    assert not all(same(one, two) for one, two in zip(epoch(batches, 0), epoch(batches, 1), strict=True))


class Order(Batches):
    """Only the order of items."""

    def batch(self, index: int) -> Batch:
        raise AssertionError("no batch is made")


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_an_epoch_sees_every_item_once(items: int, batch: int, number: int) -> None:
    order = Order(items, batch, seed=3)
    seen = []
    for index in range(number * order.batches_per_epoch(), (number + 1) * order.batches_per_epoch()):
        at, chosen = order.at(index)
        assert at == number
        assert 1 <= len(chosen) <= batch
        seen.extend(chosen.tolist())
    assert sorted(seen) == list(range(items))


def test_an_epoch_of_sentences_sees_every_sentence_with_its_own_answer() -> None:
    seen = {}
    for batch in epoch(MAKERS["labelled"](0), 0):
        assert batch.count == len(batch.ids) == len(batch.lengths)
        for ids, length, answer in zip(batch.ids, batch.lengths, batch.answers, strict=True):
            assert (ids[length:] == PAD).all()
            seen[int(answer)] = ids[:length].tolist()
    assert seen == {number: row.tolist() for number, row in enumerate(ROWS)}


def test_sentences_predict_their_own_next_tokens() -> None:
    seen = []
    for batch in epoch(MAKERS["sentences"](0), 0):
        assert batch.count == int(batch.lengths.sum())
        for ids, length, answers in zip(batch.ids, batch.lengths, batch.answers, strict=True):
            assert (answers[:length] == ids[:length] + 1).all()  # tokens of a row count up
            seen.append(int(length) + 1)
    assert sorted(seen) == sorted(len(row) for row in ROWS)


@given(st.integers(2, 60), st.integers(1, 70), st.sampled_from(["every", "disjoint"]), st.integers(0, 3))
def test_targets_are_inputs_shifted_by_one_whatever_the_sizes(tokens: int, length: int, how: str, number: int) -> None:
    batches = windows(length, how, stream=np.arange(100, 100 + tokens))
    for batch in epoch(batches, number):
        assert batch.lengths is None
        assert batch.ids.shape == batch.answers.shape
        assert batch.ids.shape[1] == min(length, tokens - 1)
        assert batch.count == batch.ids.size
        assert (batch.answers == batch.ids + 1).all()
        assert batch.answers.max() < 100 + tokens
        assert (np.diff(batch.ids, axis=1) == 1).all()


@given(st.integers(2, 53), st.integers(1, 60), st.integers(0, 2))
def test_every_covers_each_start_once(tokens: int, length: int, number: int) -> None:
    found = starts(windows(length, "every", stream=STREAM[:tokens]), number)
    assert sorted(found) == list(range(max(1, tokens - length)))


@given(st.integers(2, 53), st.integers(1, 60), st.integers(0, 20))
def test_disjoint_windows_stand_side_by_side(tokens: int, length: int, number: int) -> None:
    found = sorted(starts(windows(length, "disjoint", stream=STREAM[:tokens]), number))
    length = min(length, tokens - 1)
    assert (np.diff(found) == length).all()
    assert 0 <= found[0] < 2 * length
    assert found[-1] + length < tokens
    assert tokens - found[-1] - 1 < 3 * length  # little is left over


def test_disjoint_windows_begin_at_a_new_place_in_other_epochs() -> None:
    batches = windows(5, "disjoint")
    firsts = [min(starts(batches, number)) for number in range(60)]
    assert set(firsts) == set(range(batches.slack))
    assert batches.slack >= 5


@given(st.integers(2, 53), st.integers(1, 60))
@settings(max_examples=30)
def test_every_target_is_trained_on_in_some_epoch(tokens: int, length: int) -> None:
    batches = windows(length, "disjoint", stream=STREAM[:tokens])
    seen = {
        int(answer) for number in range(300) for batch in epoch(batches, number) for answer in batch.answers.ravel()
    }
    assert seen == set(STREAM[1:tokens].tolist())


def test_a_text_shorter_than_a_window_is_one_short_window() -> None:
    for how in ("every", "disjoint"):
        batches = windows(32, how, stream=STREAM[:4])
        assert batches.batches_per_epoch() == 1
        assert batches.batch(0).ids.tolist() == [[100, 101, 102]]
        assert batches.batch(9).answers.tolist() == [[101, 102, 103]]


def test_a_text_with_nothing_to_predict_is_refused() -> None:
    for tokens in (0, 1):
        with pytest.raises(BadInput, match=f"has {tokens} tokens"):
            windows(stream=STREAM[:tokens])


def test_an_unknown_kind_of_windows_is_refused() -> None:
    with pytest.raises(BadInput, match="'evry'"):
        windows(how="evry")


def test_padding_goes_behind_the_rows() -> None:
    ids, lengths = padded([np.array([5, 6]), np.array([], dtype=np.int64), np.array([7])], 9)
    assert ids.tolist() == [[5, 6], [9, 9], [7, 9]]
    assert lengths.tolist() == [2, 0, 1]
