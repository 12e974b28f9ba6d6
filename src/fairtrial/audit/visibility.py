"""Attention rows: each is a set of shares (M1), and none falls on what is hidden (M2).

The future: a decoder's answers up to a token must not know what comes after it (M3, M4, M5).

Padding and batch mates: what a row says must not depend on what it stands beside (M6, M7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fairtrial.audit.finding import Measured, at_most
from fairtrial.audit.subject import Subject, as_batch, largest_change
from fairtrial.model.layers import watch
from fairtrial.model.part import Site
from fairtrial.rng import seed_for


@torch.no_grad()
def maps_of(subject: Subject, fresh: bool = False) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Each layer's (number, maps [batch head query key], open [batch query key], real queries [batch query]).

    `open` is worked out here, from lengths, causality and the parts' own `allow`, not taken from attention."""
    network: Any = subject.fresh if fresh else subject.network
    ids, lengths = as_batch(subject.rows)
    views: list[Any] = []
    hooks = [
        block.attention.register_forward_pre_hook(lambda module, given: views.append(given[1]))
        for block in network.body.blocks
    ]
    try:
        with watch(network) as seen:
            network(ids, lengths)
    finally:
        for hook in hooks:
            hook.remove()
    for layer, view in enumerate(views):
        maps = seen[f"body.blocks.{layer}.attention.maps"]
        site = Site(layer, subject.causal, view.queries, view.keys)
        added = maps.shape[-1] - ids.shape[1]  # a token that a part has added is real
        real = torch.arange(maps.shape[-1]) < (lengths + added)[:, None]  # batch key
        open_keys = real[:, None, :].expand(-1, maps.shape[-2], -1)
        if subject.causal:
            open_keys = open_keys & (site.offset >= 0)
        for part in subject.parts.values():
            allowed = part.allow(site)
            open_keys = open_keys if allowed is None else open_keys & allowed
        yield layer, maps, open_keys, real


def rows_sum(subject: Subject) -> Measured:
    worst = 0.0
    for _, maps, open_keys, real in maps_of(subject):
        sees = (open_keys.any(-1) & real)[:, None].expand(maps.shape[:-1])  # a row with nothing to see is zeros
        totals, least = maps.sum(-1)[sees], maps.amin(-1)[sees]
        gap = torch.maximum((totals - 1).abs(), -least).nan_to_num(torch.inf)
        worst = max(worst, float(gap.max()) if len(gap) else 0.0)
    return at_most(
        worst,
        1e-6,
        "Every token shares out its attention completely.",
        "Attention weights of a token do not add up to one: what is drawn as attention is none.",
    )


def nothing_hidden(subject: Subject) -> Measured:
    worst = 0.0
    for _, maps, open_keys, real in maps_of(subject):
        hidden = (real[:, :, None] & ~open_keys)[:, None]
        worst = max(worst, float((maps * hidden).abs().nan_to_num(torch.inf).max()))
    return at_most(
        worst,
        0.0,
        "No token attends to padding or to what is hidden from it.",
        "Tokens attend to padding or to places that are hidden from them.",
    )


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
    rng = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "future"))
    for cut in cut_points(ids.shape[1]):
        chance = torch.randint(subject.plan.vocabulary, ids.shape, generator=rng)
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
    rng = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "gradient"))
    weights = torch.randn(logits.shape[-1], generator=rng).to(logits.dtype)  # so that no sum cancels by itself
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


def padding_widths(size: int, most: int) -> list[int]:
    return sorted({width for width in (size + 1, 2 * size, most) if size < width <= most})


def padding(subject: Subject) -> Measured:
    rng = torch.Generator().manual_seed(seed_for(subject.plan.seed, "passport", "padding"))
    chance = torch.randint(subject.plan.vocabulary, (subject.longest,), generator=rng)
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
