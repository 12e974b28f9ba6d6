"""Every part inherits every test: what a token may not see changes nothing, however the network is run.

`reweight` is the known cheat. The same measurements convict it, so they can fail."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from subjects import (
    CHEATS,
    DROPOUTS,
    ENTRIES,
    EXACT,
    HEADS,
    HONEST,
    KINDS,
    LAYERS,
    LENGTHS,
    LONGEST,
    OTHER_SUMS,
    SUBJECTS,
    build,
    changed,
    far,
    in_pieces,
    kinds_of,
    run,
    sampled,
    some_lengths,
    some_tokens,
    title,
)
from torch import Tensor, nn

from fairtrial.model.layers import capture
from fairtrial.model.part import parts
from fairtrial.recipe import PartChoice

REWEIGHTS = [PartChoice(name="reweight"), PartChoice(name="reweight", options={"over": "row"})]


def some_times(time: int) -> list[int]:
    return sorted({0, time // 2, max(0, time - 2)})


def future_matters(network: nn.Module, time: int) -> float:
    """The largest change of a logit when later tokens are changed."""
    ids = some_tokens(2, time)
    before = run(network, ids)
    arrived = (run(network, changed(ids, 0, 1)) - before).abs().amax(-1)  # batch time
    assert arrived[:, :2].min() > 1e-6  # a token matters to itself and to the next
    return max(far(run(network, changed(ids, now + 1))[:, : now + 1], before[:, : now + 1]) for now in some_times(time))


def padding_matters(network: nn.Module, time: int) -> float:
    """The largest change of an answer when padding comes, grows, and holds other tokens."""
    ids, filler = some_tokens(3, time), some_tokens(3, 7, seed=1)
    lengths, alone = torch.full((3,), time), run(network, ids)
    changes = []
    for padding in (torch.zeros_like(filler[:, :1]), filler):
        padded = run(network, torch.cat((ids, padding), 1), lengths)
        changes.append(far(padded[:, :time] if padded.ndim == 3 else padded, alone))
    return max(changes)


def mates_matter(network: nn.Module, time: int) -> float:
    """The largest change of a row's answer when the other rows hold other tokens."""
    ids = some_tokens(3, time)
    before, after = run(network, ids), run(network, torch.cat((ids[:1], changed(ids[1:], 0))))
    assert far(before[1:], after[1:]) > 1e-6  # the mates did change
    return far(before[0], after[0])


@sampled(HONEST, heads=HEADS, dropout=DROPOUTS)
def test_future_tokens_never_matter(subject: PartChoice, heads: int, dropout: float) -> None:
    network = build("decoder", subject, heads=heads, dropout=dropout)
    for time in some_lengths(subject):
        assert future_matters(network, time) < EXACT


@sampled(HONEST, heads=HEADS, dropout=DROPOUTS)
def test_padding_never_matters(subject: PartChoice, heads: int, dropout: float) -> None:
    for kind, time in product(kinds_of(subject), some_lengths(subject)):
        network = build(kind, subject, heads=heads, dropout=dropout)
        if time + 7 > LONGEST:
            time = LONGEST - 7
        assert padding_matters(network, time) < EXACT
        ids, more = some_tokens(3, time), some_tokens(3, 1, seed=1)
        if kind == "encoder":  # the same tokens matter once they are no padding
            assert far(run(network, torch.cat((ids, more), 1)), run(network, ids)) > 1e-6
        else:
            assert far(run(network, changed(ids, time - 1)), run(network, ids)) > 1e-6


@sampled(HONEST, heads=HEADS, dropout=DROPOUTS, kind=KINDS)
def test_batch_mates_never_matter(subject: PartChoice, heads: int, dropout: float, kind: str) -> None:
    """A row answers as beside other tokens, and as alone."""
    network = build(kind, subject, heads=heads, dropout=dropout)
    for time in some_lengths(subject):
        assert mates_matter(network, time) < EXACT
    network, ids = build(kind, subject, heads=3), some_tokens(4, 40)
    lengths = torch.tensor([40, 1, 9, 23])
    together = run(network, ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = run(network, ids[row : row + 1, :length])[0]
        assert far(together[row, :length] if kind == "decoder" else together[row], alone) < EXACT
    assert far(together, run(network, ids, lengths.flip(0))) > 1e-3


@pytest.mark.parametrize(("subject", "heads"), [(REWEIGHTS[0], 2), (REWEIGHTS[1], 3)], ids=title)
def test_the_known_cheat_is_caught_at_every_length(subject: PartChoice, heads: int) -> None:
    encoder, decoder = (build(kind, subject, heads=heads) for kind in KINDS)
    for time in LENGTHS[1:-1]:
        assert future_matters(decoder, time) > 1e-6
        for network in (encoder, decoder):
            assert padding_matters(network, time) > 1e-6
            assert (mates_matter(network, time) > 1e-6) == (not subject.options)  # a norm for each row knows no mates
        assert far(in_pieces(decoder, some_tokens(3, time), [1] * time), run(decoder, some_tokens(3, time))) > 1e-6


def test_every_part_is_honest_or_a_known_cheat() -> None:
    assert {"none", "rope", "window", "shuffle", "pool-max"} <= {subject.name for subject in HONEST}
    assert {subject.name for subject in SUBJECTS} - {subject.name for subject in HONEST} == CHEATS


@sampled(SUBJECTS, heads=HEADS, kind=KINDS)
def test_the_rows_of_every_map_sum_to_one(subject: PartChoice, heads: int, kind: str) -> None:
    network = build(kind, subject, heads=heads)
    for time in some_lengths(subject):
        lengths = torch.tensor([time, max(1, time // 2), 1])
        with capture(network) as seen:
            network(some_tokens(3, time), lengths)
        assert len(seen) == LAYERS
        for maps in seen.values():  # batch head query key
            added = maps.shape[-1] - time  # a part may put a token of its own in front
            assert maps.shape == (3, heads, time + added, time + added)
            real = torch.arange(time + added) < lengths[:, None] + added
            rows = maps.transpose(1, 2)[real]  # token head key
            if subject.name not in OTHER_SUMS:
                assert (rows.sum(-1) - 1).abs().max() < EXACT
                assert rows.min() >= 0
            assert not maps.masked_select(~real[:, None, None, :]).any()  # nothing on padding
            if kind == "decoder":
                assert not maps.triu(1).any()  # nothing on the future


@sampled(SUBJECTS, heads=HEADS, dropout=DROPOUTS)
def test_the_eager_way_equals_the_fast_one(subject: PartChoice, heads: int, dropout: float) -> None:
    for kind, time in product(kinds_of(subject), some_lengths(subject)):
        network = build(kind, subject, heads=heads, dropout=dropout)
        ids = some_tokens(3, time)
        for lengths in (None, torch.tensor([time, max(1, time // 2), 1])):
            fast = run(network, ids, lengths)
            with capture(network) as seen:
                eager = run(network, ids, lengths)
            assert len(seen) == LAYERS
            assert far(eager, fast) < EXACT
            assert torch.isfinite(fast).all()


def test_the_fast_way_is_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above compares a thing with itself."""
    from fairtrial.model import attention

    calls = []
    kernel = attention.scaled_dot_product_attention
    monkeypatch.setattr(
        attention, "scaled_dot_product_attention", lambda *most, **more: calls.append(1) or kernel(*most, **more)
    )
    network = build("decoder", PartChoice(name="alibi"))
    network(some_tokens(2, 9))
    assert len(calls) == LAYERS
    with capture(network):
        network(some_tokens(2, 9))
    assert len(calls) == LAYERS


@sampled(HONEST, heads=HEADS)
def test_cached_decoding_equals_full_decoding(subject: PartChoice, heads: int) -> None:
    network = build("decoder", subject, heads=heads)
    for pieces in ([1], [1] * 19, [1, 8, 1, 6], [1, 30, 3, 20, 10], [LONGEST]):
        ids = some_tokens(2, sum(pieces))
        full = run(network, ids)
        assert far(in_pieces(network, ids, pieces), full) < EXACT
    again, full = some_tokens(2, 9), run(network, some_tokens(2, 9))
    assert far(in_pieces(network, changed(again, 0, 1), [1, 8])[:, 1], full[:, 1]) > 1e-6  # a piece matters to the next


def test_tokens_are_of_the_vocabulary_and_differ() -> None:
    ids = some_tokens(3, LONGEST)
    assert int(ids.max()) < ENTRIES
    assert not (changed(ids, 5)[:, 5:] == ids[:, 5:]).any()
    assert torch.equal(changed(ids, 5)[:, :5], ids[:, :5])


def test_a_difference_that_is_not_finite_counts() -> None:
    assert far(torch.tensor([float("nan")]), Tensor([1.0])) > EXACT


def test_no_part_is_forgotten() -> None:
    assert {subject.name for subject in SUBJECTS} >= {
        name for name in parts.list() if parts.find(name).__module__.startswith("fairtrial.")
    }
