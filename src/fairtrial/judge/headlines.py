"""What a reader hears of baselines: losses first, the strongest baseline only, one sentence for one story."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fairtrial.judge.measure import METRICS
from fairtrial.judge.words import listed, score_words

Rows = list[dict[str, Any]]
KINDS = {"loses": ("loses",), "open": ("above", "below"), "beats": ("beats",)}
ONE = {"loses": "loses to", "open": "is neither clearly above nor clearly below", "beats": "beats"}
MANY = {"loses": "lose to", "open": "are neither clearly above nor clearly below", "beats": "beat"}


def headlines(rows: Rows, basis: dict[str, str]) -> tuple[list[str], list[str]]:
    """Sentences that must come first (losses), and those that can wait. `basis`: test set -> items that verdicts are on."""
    stories: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for place, chosen in basis.items():
        for story, told in _of_one_set(rows, place, chosen):
            stories[story].append(told)
    first, later = [], []
    for (kind, names, strongest), places in stories.items():
        line = f"{names} {strongest}, which needs no network: {'; '.join(places)}."
        (first if kind == "loses" else later).append(line)
    return first, later


def _of_one_set(rows: Rows, place: str, chosen: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    here = [
        row for row in rows if row["set"] == place and row["basis"] == chosen and row["verdict"] != "not_comparable"
    ]
    if not here:
        return
    sign = 1 if METRICS[here[0]["metric"]].higher_is_better else -1
    strongest = max(here, key=lambda row: sign * row["theirs"])["baseline"]
    met = [row for row in here if row["baseline"] == strongest]
    for kind, verdicts in KINDS.items():
        told = [row for row in met if row["verdict"] in verdicts]
        if not told:
            continue
        every = len(told) == len(met) > 1
        names = "every variant" if every else listed([row["variant"] for row in told])
        verb = ONE[kind] if every or len(told) == 1 else MANY[kind]
        best = max(told, key=lambda row: sign * row["ours"])
        ours, theirs = (score_words(best["metric"], best[key]) for key in ("ours", "theirs"))
        who = f" at best ({best['variant']})" if len(told) > 1 else ""
        on = f"on {place}" if chosen == "all" else f"on {place} ({chosen} items)"
        yield (kind, f"{names} {verb}", strongest), f"{on} {ours}{who} against {theirs}"
