"""Outcomes -> figures with intervals, three ways: on all items, on clean ones, on those that stand in train."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairtrial.judge.interval import perplexity_interval, wilson

Figures = dict[str, dict[str, dict[str, Any]]]  # set -> all | clean | contaminated -> figures


def figures_of(outcomes: Mapping[str, np.ndarray], status: Mapping[str, np.ndarray]) -> Figures:
    """`outcomes` are named `set/what`; sets without a status, such as validation, have all items only."""
    found: Figures = {}
    for name in dict.fromkeys(place.rpartition("/")[0] for place in outcomes):
        arrays = {place.rpartition("/")[2]: a for place, a in outcomes.items() if place.rpartition("/")[0] == name}
        items = len(next(iter(arrays.values())))
        ways = {"all": np.ones(items, bool)}
        if name in status:
            ways |= {"clean": status[name] == 0, "contaminated": status[name] > 0}
        found[name] = {
            way: _figures({what: array[chosen] for what, array in arrays.items()})
            for way, chosen in ways.items()
            if chosen.any()
        }
    return found


def _figures(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if "guess" in arrays:
        right = arrays["guess"] == arrays["label"]
        return {
            "items": len(right),
            "accuracy": float(right.mean()),
            "interval": list(wilson(int(right.sum()), len(right))),
            "nats": -float(arrays["log_p"].mean()),
        }
    nats, tokens = float(arrays["nats"].sum()), int(arrays["tokens"].sum())
    return {
        "items": len(arrays["nats"]),
        "tokens": tokens,
        "perplexity": math.exp(nats / tokens) if tokens else None,
        "interval": perplexity_interval(arrays["nats"], arrays["tokens"]),
        "bits_per_byte": nats / math.log(2) / max(1, int(arrays["bytes"].sum())),
        "unknown_share": int(arrays["unknown"].sum()) / max(1, tokens),
    }
