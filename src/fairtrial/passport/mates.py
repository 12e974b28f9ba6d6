"""Padding and batch mates: what a row says must not depend on what it stands beside (M6, M7)."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtrial.passport.finding import Measured, at_most
from fairtrial.passport.subject import Subject, largest_change
from fairtrial.streams import seed_for


def padding_widths(size: int, most: int) -> list[int]:
    return sorted({width for width in (size + 1, 2 * size, most) if size < width <= most})


def padding(subject: Subject) -> Measured:
    dice = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "padding"))
    chance = torch.randint(subject.plan.vocabulary, (subject.longest,), generator=dice)
    worst = 0.0
    for row in subject.rows:
        alone = subject.answers([row])
        for width in padding_widths(len(row), subject.longest):
            for filler in (0, chance):
                worst = max(worst, largest_change(alone, subject.answers([row], width, filler)))
    return at_most(
        worst,
        subject.tolerance,
        "Padding changes nothing.",
        f"Padding after a text changes what is said about it, by up to {worst:.2g} nats.",
    )


def batch_mates(subject: Subject) -> Measured:
    rows = list(subject.rows)
    alone = [subject.answers([row])[0] for row in rows]
    worst = largest_change(alone, subject.answers(rows))
    worst = max(worst, largest_change(alone[::-1], subject.answers(rows[::-1])))
    for size in (2, 3):
        for begin in range(0, len(rows) - size, 4):
            worst = max(worst, largest_change(alone[begin : begin + size], subject.answers(rows[begin : begin + size])))
    full = [place for place, row in enumerate(rows) if len(row) == subject.longest]  # a batch without any padding
    together = subject.answers([rows[place] for place in full])
    worst = max(worst, largest_change([alone[place] for place in full], together))
    return at_most(
        worst,
        subject.tolerance,
        "What is said about a text does not depend on its batch.",
        f"What is said about a text depends on the other texts in its batch, by up to {worst:.2g} nats.",
    )


def batch_size(subject: Subject) -> Measured:
    """The score of all rows, in batches of 1, 2, 5 and all."""
    totals = [score(subject, size) for size in (1, 2, 5, len(subject.rows))]
    worst = max(abs(total - totals[0]) for total in totals) / max(1.0, abs(totals[0]))
    return at_most(
        worst if worst == worst else torch.inf,
        subject.tolerance,
        "The score does not depend on the batch size.",
        f"The score depends on the batch size: {totals[0]:.6g} nats one by one, {totals[-1]:.6g} all at once.",
    )


def score(subject: Subject, size: int) -> float:
    """Summed nats of next tokens, or of one class for each row."""
    total = 0.0
    for begin in range(0, len(subject.rows), size):
        rows = subject.rows[begin : begin + size]
        for place, (row, said) in enumerate(zip(rows, subject.answers(rows), strict=True)):
            answer: Tensor | int = (begin + place) % subject.plan.classes
            total -= float(said[:-1].gather(1, row[1:, None]).sum() if subject.causal else said[answer])
    return total
