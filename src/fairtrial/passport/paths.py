"""Two ways to one answer: the fast kernel says what the equation says (E1), a cache what the whole text says (C1)."""

from __future__ import annotations

from fairtrial.model.tap import watch
from fairtrial.passport.finding import Measured, at_most
from fairtrial.passport.subject import Subject, largest_change


def eager_is_fast(subject: Subject) -> Measured:
    fast = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    with watch(subject.network):  # watched attention is computed as its equation says
        eager = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    return at_most(
        largest_change(fast, eager),
        subject.tolerance,
        "The fast path gives the numbers of the equation.",
        "The fast path and the equation give different numbers: maps do not show what was computed.",
    )


def cached_is_full(subject: Subject) -> Measured | None:
    if not subject.causal:
        return None
    ids = subject.full_rows
    time = ids.shape[1]
    whole = subject.log_p(ids)
    pieces = [time // 2, 1, time - time // 2 - 1] if time > 2 else [time]
    worst = max(largest_change([whole], [subject.in_pieces(ids, sizes)]) for sizes in ([1] * time, pieces))
    return at_most(
        worst,
        subject.tolerance,
        "Reading word by word with a cache gives what reading all at once gives.",
        f"Reading word by word with a cache changes predictions by up to {worst:.2g} nats.",
    )
