"""The score of a language model: every target once, at full context, equal to brute force."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import PartChoice, Shape
from fairtrial.training import scoring as module
from fairtrial.training.scoring import TokenSet, Window, score_lm, score_windows, sliding
from fairtrial.training.tasks import LanguageTask

ENTRIES, LENGTH, UNKNOWN = 23, 6, 1
FULL = {"length": LENGTH, "full_context": 1.0}


@pytest.fixture(scope="module")
def network() -> LanguageModel:
    shape = Shape(layers=2, heads=2, width=8, hidden=12, length=LENGTH, dropout=0.4)
    return LanguageModel(shape, [PartChoice(name="learned")], ENTRIES, seed=3).double()


def documents(*sizes: int) -> list[np.ndarray]:
    """Tokens of each document; a few are unknown, none is padding."""
    rng = np.random.default_rng(7)
    return [rng.integers(UNKNOWN, 8 if size < 10 else ENTRIES, size) for size in sizes]


def running(*sizes: int) -> TokenSet:
    found = documents(*sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return TokenSet((np.concatenate(found),), (owners,), len(sizes), np.array(sizes) * 5, UNKNOWN)


def sentences(*sizes: int) -> TokenSet:
    owners = tuple(np.full(size, number) for number, size in enumerate(sizes))
    return TokenSet(tuple(documents(*sizes)), owners, len(sizes), np.array(sizes) * 5, UNKNOWN)


@torch.no_grad()
def nats_of(network: LanguageModel, inputs: np.ndarray, target: int) -> float:
    """One target behind its inputs, alone."""
    network.eval()
    logits = network(torch.from_numpy(inputs)[None])[0, -1]
    return float(-logits.log_softmax(-1)[target])


def brute_force(network: LanguageModel, tokens: TokenSet) -> list[tuple[int, int, float]]:
    """(document, target, nats) of every target, each behind its last LENGTH inputs."""
    return [
        (
            int(owners[place]),
            int(sequence[place]),
            nats_of(network, sequence[max(0, place - LENGTH) : place], sequence[place]),
        )
        for sequence, owners in zip(tokens.sequences, tokens.owners, strict=True)
        for place in range(1, len(sequence))
    ]


def ratio_interval(nll: np.ndarray, tokens: np.ndarray) -> tuple[float, float]:
    """The ratio estimator, document by document, with the leverage and the effective number of docs/statistics.md."""
    ratio, count, shares = nll.sum() / tokens.sum(), len(nll), tokens / tokens.sum()
    variance = sum(
        (share * (own / size - ratio)) ** 2 / ((1 - share) ** 1.5 / (1 - 1 / count) ** 0.5)
        for own, size, share in zip(nll, tokens, shares, strict=True)
    )
    half = stats.t.ppf(0.975, 1 / sum(shares**2) - 1) * math.sqrt(variance)
    return math.exp(ratio - half), math.exp(ratio + half)


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(1, 12), st.data())
def test_sliding_scores_every_target_once_with_the_context_it_promises(sizes: list[int], length: int, data) -> None:
    stride = data.draw(st.integers(1, length))
    scored: list[tuple[int, int]] = []
    for window in sliding([np.zeros(size) for size in sizes], length, stride):
        assert 0 <= window.begin <= window.counted < window.end <= sizes[window.sequence] - 1
        assert window.end - window.begin <= length
        for place in range(window.counted, window.end):
            scored.append((window.sequence, place))
            assert place - window.begin >= min(place, length - stride)  # inputs seen before its own
    assert scored == [(number, place) for number, size in enumerate(sizes) for place in range(size - 1)]


def test_at_stride_one_every_target_sees_all_that_the_model_can_see() -> None:
    for window in sliding([np.zeros(30)], 6, 1):
        for place in range(window.counted, window.end):
            assert place - window.begin == min(place, 5)


@pytest.mark.parametrize("tokens", [running(5, 1, 17, 2), sentences(5, 12, 1, 2, 9), running(3), sentences(LENGTH + 1)])
def test_perplexity_equals_brute_force(network: LanguageModel, tokens: TokenSet) -> None:
    score, expected = score_lm(network, tokens, **FULL), brute_force(network, tokens)
    assert score.metrics.tokens == len(expected) == tokens.targets
    loss = math.fsum(nats for *_, nats in expected) / len(expected)
    assert score.metrics.perplexity == pytest.approx(math.exp(loss), rel=1e-9)
    assert score.selection_key == pytest.approx((-loss,), rel=1e-9)
    for document in range(tokens.documents):
        mine = [nats for owner, _, nats in expected if owner == document]
        assert score.outcomes["tokens"][document] == len(mine)
        assert score.outcomes["nll"][document] == pytest.approx(math.fsum(mine), rel=1e-9)
    total_bytes = int(tokens.bytes.sum())
    assert score.metrics.bits_per_byte == pytest.approx(loss * len(expected) / math.log(2) / total_bytes, rel=1e-9)
    assert score.outcomes["bytes"].tolist() == tokens.bytes.tolist()


@pytest.mark.parametrize("tokens", [running(5, 1, 17, 2), sentences(5, 12, 1, 2, 9), running(3), sentences(LENGTH + 1)])
def test_windows_that_do_not_overlap_are_scored_once_where_the_exact_score_is_theirs(
    network: LanguageModel, tokens: TokenSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = score_windows(network, tokens, length=LENGTH).metrics.window_perplexity
    scored: list[int] = []
    score_once = module.window_nats

    def counted(network: LanguageModel, tokens: TokenSet, windows: Iterable[Window]) -> Iterator[np.ndarray]:
        for nats in score_once(network, tokens, windows):
            scored.append(len(nats))
            yield nats

    monkeypatch.setattr(module, "window_nats", counted)
    assert score_lm(network, tokens, **FULL).metrics.window_perplexity == pytest.approx(expected, rel=1e-12)
    again = tokens.sizes[tokens.sizes > LENGTH]
    left_out = again[0] % LENGTH if len(tokens.sequences) == 1 and len(again) else 0  # a running text's last window
    assert sum(scored) == tokens.targets + again.sum() - left_out


def test_perplexity_is_the_exponential_of_total_nats_by_total_tokens(network: LanguageModel) -> None:
    for tokens in (running(5, 30, 17, 8, 21), sentences(5, 30, 17, 8, 21)):
        score = score_lm(network, tokens, **FULL)
        total = score.outcomes["nll"].sum() / score.outcomes["tokens"].sum()
        assert score.metrics.perplexity == pytest.approx(math.exp(total), rel=1e-12)
        expected = ratio_interval(score.outcomes["nll"], score.outcomes["tokens"])
        assert score.metrics.interval == pytest.approx(expected)
        cousin = np.exp(score.outcomes["nll"] / score.outcomes["tokens"]).mean()
        assert score.metrics.perplexity != pytest.approx(cousin, rel=1e-6)  # no mean of documents' perplexities


def test_less_context_is_another_score_but_the_same_targets(network: LanguageModel) -> None:
    tokens = running(40, 30)
    scores = [score_lm(network, tokens, length=LENGTH, full_context=share) for share in (0.0, 0.5, 1.0)]
    assert len({score.metrics.tokens for score in scores}) == 1
    assert len({score.metrics.perplexity for score in scores}) == 3


def test_a_large_set_is_scored_in_strides_of_half_a_length_and_the_score_says_so(
    network: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = running(40, 30)
    task = LanguageTask(network, None, None, (), {"test": tokens}, {}, {}, LENGTH, 1.0)  # type: ignore[arg-type]
    whole = task.score("test")
    monkeypatch.setattr("fairtrial.training.tasks.EXACT_BYTES", int(tokens.bytes.sum()) - 1)
    large = task.score("test")
    assert whole.metrics.full_context is None
    assert whole.metrics == score_lm(network, tokens, **FULL).metrics
    strided = score_lm(network, tokens, length=LENGTH, full_context=0.5).metrics
    assert large.metrics == replace(strided, full_context=0.5) != whole.metrics
    windows = [each for each in sliding(tokens.sequences, LENGTH, LENGTH // 2) if each.counted]
    assert all(each.counted - each.begin >= LENGTH // 2 for each in windows[:-1])  # context of the first that counts


@pytest.mark.parametrize("tokens", [running(5, 1, 27, 2), sentences(5, 16, 9), sentences(3, 4)])
def test_the_window_way_equals_a_plain_loop_over_disjoint_windows(network: LanguageModel, tokens: TokenSet) -> None:
    whole: list[list[float]] = []
    short: list[list[float]] = []
    for sequence in tokens.sequences:
        for begin in range(0, len(sequence) - 1, LENGTH):
            end = min(begin + LENGTH, len(sequence) - 1)
            nats = [nats_of(network, sequence[begin : place + 1], sequence[place + 1]) for place in range(begin, end)]
            (whole if end - begin == LENGTH else short).append(nats)
    # running text leaves a last, shorter window out; sentences that stand alone all count, token by token
    counted = (whole or short) if len(tokens.sequences) == 1 else whole + short
    loss = float(np.mean([nat for nats in counted for nat in nats]))
    score = score_windows(network, tokens, length=LENGTH)
    assert score.metrics.window_nll == pytest.approx(loss, rel=1e-9)
    assert score.metrics.window_perplexity == pytest.approx(math.exp(loss), rel=1e-9)
    exact = score_lm(network, tokens, **FULL)
    assert exact.metrics.window_perplexity == score.metrics.window_perplexity
    if tokens.targets > 10:
        assert exact.metrics.perplexity != pytest.approx(math.exp(loss), rel=1e-6)


def test_a_few_windows_are_spread_evenly_from_the_first_to_the_last(
    network: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    plain = module.window_nats

    def watched(network: LanguageModel, tokens: TokenSet, windows: Iterable[Any]) -> Any:
        windows = list(windows)
        seen.extend(each.begin for each in windows)
        return plain(network, tokens, windows)

    monkeypatch.setattr(module, "window_nats", watched)
    tokens = running(LENGTH * 9 + 1)
    few = score_windows(network, tokens, length=LENGTH, most=3)
    assert seen == [0, 4 * LENGTH, 8 * LENGTH]
    everything = score_windows(network, tokens, length=LENGTH, most=9)
    assert seen[3:] == list(range(0, 9 * LENGTH, LENGTH))
    assert few.metrics != everything.metrics


@pytest.mark.parametrize("tokens", [running(9, 9, 30), sentences(9, 9, 30)])
def test_unknown_targets_are_counted_and_can_be_left_out(network: LanguageModel, tokens: TokenSet) -> None:
    expected = brute_force(network, tokens)
    lost = [nats for _, target, nats in expected if target == UNKNOWN]
    rest = [nats for _, target, nats in expected if target != UNKNOWN]
    assert lost
    score = score_lm(network, tokens, **FULL)
    assert score.metrics.unknown_share == pytest.approx(len(lost) / len(expected), rel=1e-12)
    assert score.metrics.unknown_nll == pytest.approx(np.mean(lost), rel=1e-9)
    assert score.metrics.perplexity_without_unknown == pytest.approx(math.exp(np.mean(rest)), rel=1e-9)
    by_document = [sum(owner == d and target == UNKNOWN for owner, target, _ in expected) for d in range(3)]
    assert score.outcomes["unknown"].tolist() == by_document


def test_without_an_unknown_token_nothing_is_unknown(network: LanguageModel) -> None:
    with_unknown = running(9, 30)
    tokens = TokenSet(with_unknown.sequences, with_unknown.owners, 2, with_unknown.bytes, None)
    figures = score_lm(network, tokens, **FULL).metrics
    assert (figures.unknown_share, figures.unknown_nll) == (0.0, 0.0)
    assert figures.perplexity_without_unknown == figures.perplexity


def test_sentences_do_not_see_one_another(network: LanguageModel) -> None:
    """Sentences with marks, each a sequence of its own: the first token of each is given, never predicted."""
    tokens = sentences(5, 12, 4)
    plain = score_lm(network, tokens, **FULL)
    assert plain.outcomes["tokens"].tolist() == [4, 11, 3]
    changed = TokenSet((tokens.sequences[0] + 1, *tokens.sequences[1:]), tokens.owners, 3, tokens.bytes, UNKNOWN)
    after = score_lm(network, changed, **FULL)
    np.testing.assert_allclose(after.outcomes["nll"][1:], plain.outcomes["nll"][1:], rtol=1e-12)
    assert after.outcomes["nll"][0] != pytest.approx(plain.outcomes["nll"][0], rel=1e-6)


@pytest.mark.parametrize("tokens", [running(5, 1, 17, 2), sentences(5, 12, 1, 2, 9)])
def test_the_score_does_not_depend_on_how_many_tokens_are_scored_at_once(
    network: LanguageModel, tokens: TokenSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, rows = [], []
    plain = LanguageModel.nll
    monkeypatch.setattr(LanguageModel, "nll", lambda *got: rows[-1].append(len(got[1])) or plain(*got))
    for size in (1, 13, 10**6):
        monkeypatch.setattr(module, "TOKENS", size)
        rows.append([])
        scores.append(score_lm(network, tokens, **FULL))
    assert len(rows[0]) > len(rows[1]) > len(rows[2])  # the batches did differ
    for score in scores[1:]:
        np.testing.assert_allclose(score.outcomes["nll"], scores[0].outcomes["nll"], rtol=1e-12)
        assert score.metrics.window_perplexity == pytest.approx(scores[0].metrics.window_perplexity, rel=1e-12)


def test_scoring_drops_nothing_and_leaves_the_network_as_it_was(network: LanguageModel) -> None:
    tokens = running(30)
    scores = []
    for training in (True, False):
        network.train(training)
        scores.append(score_lm(network, tokens, **FULL).metrics.perplexity)
        assert network.training is training
    assert scores[0] == scores[1]
    network.train()
    one, two = (network(torch.arange(1, 6)[None]) for _ in range(2))
    assert not torch.equal(one, two)  # in training it does drop


@pytest.mark.parametrize("tokens", [running(20, 31), sentences(9, 4, 15)])
def test_the_work_of_a_score_is_what_blocks_read_and_the_output_layer_predicts(
    network: LanguageModel, tokens: TokenSet
) -> None:
    read = 0

    def count(module: object, given: tuple[torch.Tensor, ...], _: object) -> None:
        nonlocal read
        lengths = given[1] if len(given) > 1 and given[1] is not None else None
        read += given[0].numel() if lengths is None else int(lengths.sum())

    task = LanguageTask(network, None, None, (), {"test": tokens}, {}, {}, LENGTH, 1.0)  # type: ignore[arg-type]
    hook = network.body.register_forward_hook(count)
    try:
        task.score("test")
    finally:
        hook.remove()
    predicted = 2 * tokens.targets  # once sliding, once in windows that do not overlap
    blocks = sum(parameter.numel() for parameter in network.body.blocks.parameters())
    expected = read + predicted * ENTRIES * 8 / blocks
    assert task.work("test") == pytest.approx(expected, abs=1 + LENGTH)  # a last, shorter window is left out
    assert task.work("test", quick=True) < task.work("test")
