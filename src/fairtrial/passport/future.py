"""The future: a decoder's answers up to a token must not know what comes after it (M3, M4, M5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairtrial.passport.finding import Measured, at_most
from fairtrial.passport.subject import Subject, largest_change
from fairtrial.streams import seed_for

CUTS = 5


def cut_points(time: int) -> list[int]:
    """The last places that keep their token: at most five, the first and the last but one among them."""
    if time < 2:
        return []
    return sorted({round(place) for place in torch.linspace(0, time - 2, CUTS).tolist()})


def future_changed(subject: Subject) -> Measured | None:
    if not subject.causal:
        return None
    ids = subject.full_rows
    before, worst = subject.log_p(ids), 0.0
    dice = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "future"))
    for cut in cut_points(ids.shape[1]):
        chance = torch.randint(subject.plan.vocabulary, ids.shape, generator=dice)
        for later in (chance, torch.zeros_like(ids)):
            other = torch.cat((ids[:, : cut + 1], later[:, cut + 1 :]), 1)
            worst = max(worst, largest_change([before[:, : cut + 1]], [subject.log_p(other)[:, : cut + 1]]))
    return at_most(
        worst,
        subject.tolerance,
        "Changing later words changes no earlier prediction.",
        f"Changing later words changes earlier predictions, by up to {worst:.2g} nats: it sees the future.",
    )


def future_gradient(subject: Subject) -> Measured | None:
    if not subject.causal:
        return None
    ids = subject.full_rows[:: max(1, len(subject.full_rows) // 2)]  # a real and a random row
    leaf: list[Tensor] = []

    def cut_off(module: torch.nn.Module, given: object, vectors: Tensor) -> Tensor:
        leaf.append(vectors.detach().requires_grad_())
        return leaf[-1]

    hook = subject.network.body.tokens.register_forward_hook(cut_off)
    try:
        logits = subject.network(ids)
    finally:
        hook.remove()
    dice = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "gradient"))
    weights = torch.randn(logits.shape[-1], generator=dice).to(logits.dtype)  # so that no sum cancels by itself
    worst = 0.0
    for cut in cut_points(ids.shape[1]):
        aim = (logits[:, : cut + 1] @ weights).sum()
        (gradient,) = torch.autograd.grad(aim, leaf[0], retain_graph=True)
        later = gradient.view(*ids.shape, -1)[:, cut + 1 :]
        worst = max(worst, float(later.abs().nan_to_num(torch.inf).max()))
    return at_most(
        worst,
        0.0,
        "No gradient flows from a prediction to a later word.",
        "A gradient flows from a prediction to later words: training can learn to read the answer.",
    )


def bare_prefixes(subject: Subject) -> Measured | None:
    if not subject.causal:
        return None
    rows = [row for row in subject.rows[: len(subject.rows) // 2] if len(row) > 1]
    batched = alone = 0.0
    count = 0
    for row, said in zip(rows, subject.answers(rows) if rows else [], strict=True):
        for place in range(len(row) - 1):
            answer = row[place + 1]
            batched -= float(said[place, answer])
            alone -= float(subject.log_p(row[None, : place + 1])[0, -1, answer])
            count += 1
    ratio = math.exp((alone - batched) / count) if count else 1.0
    return at_most(
        abs(ratio - 1),
        1e-6 if subject.tolerance <= 1e-6 else subject.tolerance,
        "Its perplexity is the same when every word is predicted from nothing but the words before it.",
        f"Predicting from nothing but the words before, its perplexity is {ratio:.3g} times the one it reports.",
    )
