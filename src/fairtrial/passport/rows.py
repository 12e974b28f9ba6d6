"""Attention rows: each is a set of shares (M1), and none falls on what is hidden (M2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fairtrial.model.part import Site
from fairtrial.model.tap import watch
from fairtrial.passport.finding import Measured, at_most
from fairtrial.passport.subject import Subject, as_batch


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
