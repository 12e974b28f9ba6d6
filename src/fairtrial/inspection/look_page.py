"""The page of a look: maps that its own script draws, head statistics, heads switched off."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairtrial.inspection.heads import Effect
from fairtrial.report.charts import MAP_SCALE
from fairtrial.report.page import render

if TYPE_CHECKING:
    from fairtrial.inspection.look import Drawn, LookResult

CAUTION = "Attention is where a head looked, not why the model decided."
LARGEST_SHARE = 65535  # a weight is stored as a 16-bit share
HEAD_COLUMNS = (
    ("entropy", "entropy, nats", "{:.2f}"),
    ("entropy_share", "of maximum", "{:.0%}"),
    ("distance", "distance", "{:.1f}"),
    *((name, name, "{:.0%}") for name in ("itself", "previous", "next", "first", "punctuation", "stripe")),
)


def look_page(look: LookResult, heads: Sequence[tuple[int, int]], title: str, about: Mapping[str, object]) -> str:
    """Where heads look: maps of these (layer, head), which the page's own script draws, head statistics, heads switched
    off. `about`: the network, notes on its record, the texts read, the command"""
    data = {
        "heads": [{"layer": layer, "head": head, "caption": look.captions[layer, head]} for layer, head in heads],
        "stage": look.stage,
        "texts": [packed(drawn, heads) for drawn in look.drawn],
    }
    ahead = any(head.uniform.next is not None for head in look.heads)
    tests: dict[str, list[tuple[Effect, float]]] = {}
    for effect, bar in zip(look.effects, bars(look.effects), strict=True):
        tests.setdefault(effect.test, []).append((effect, bar))
    return render(
        "look",
        title,
        look=look,
        **about,
        caution=CAUTION,
        scale=MAP_SCALE,
        hidden=hidden(look),
        data=data,
        heads=look.heads,
        columns=[column for column in HEAD_COLUMNS if ahead or column[0] != "next"],
        tests=tests,
    )


def packed(drawn: Drawn, heads: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Small enough for a page: 16-bit shares, and one bit for what is visible. Arrays are [head query key]."""
    layers, numbers = (list(column) for column in zip(*heads, strict=True))
    arrays = {"open": np.packbits(drawn.trained.open[layers].reshape(len(layers), -1), axis=1)}
    for name in ("trained", "untrained"):
        shares = np.clip(getattr(drawn, name).weights[layers, numbers], 0, 1)
        arrays[name] = np.round(shares * LARGEST_SHARE).astype("<u2")
    encoded = {name: b64encode(array.tobytes()).decode() for name, array in arrays.items()}
    return {"words": drawn.trained.words, **encoded}


def hidden(look: LookResult) -> str:
    """What the hatched cells are; empty where there are none."""
    maps, size = look.drawn[0].trained, len(look.drawn[0].trained.words)
    allowed = np.tri(size, dtype=bool) if maps.causal else np.ones((size, size), dtype=bool)
    forbidden = bool((allowed & ~maps.open).any())
    return " and ".join([*["the future"] * (maps.causal and size > 1), *["what a part forbids"] * forbidden])


def bars(effects: Sequence[Effect]) -> list[float]:
    """How much worse each effect is, as a share of the largest; below zero it is better."""
    harms = [-effect.change if effect.measure == "accuracy" else effect.change - 1 for effect in effects]
    longest = max(map(abs, harms), default=0.0) or 1.0
    return [harm / longest for harm in harms]
