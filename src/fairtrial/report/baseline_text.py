"""Baselines as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WAYS = ("all", "clean", "contaminated")
WIDTH = 25
FEW = 5  # documents; an interval over fewer says nothing


def baseline_lines(found: dict[str, Any]) -> Iterator[str]:
    """`found`: what `fairtrial baseline --json` prints for one task."""
    kind = "accuracy" if found["task"] == "classify" else "perplexity"
    yield (
        f"{found['task']}: {found['source']}, recipe {found['recipe'] or 'of your own'}, seed {found['seed']};"
        f" fitted on {found['documents']['train']:,} documents"
    )
    for name, copies in found["sets"].items():
        yield f"{name}: {spoken_copies(copies)}"
        ways = [way for way in WAYS if way == "all" or copies["exact"] + copies["near"]]
        ways = [way for way in ways if way != "clean" or copies["clean"]]
        yield f"  {kind:<22}" + "".join(f"{way:<{WIDTH}}" for way in ways).rstrip()
        for baseline, sets in found["baselines"].items():
            cells = [cell(sets[name][way]) if way in sets[name] else "" for way in ways]
            yield f"  {baseline:<22}" + "".join(f"{each:<{WIDTH}}" for each in cells).rstrip()
    yield "  intervals: 95% over test items; a transformer that does not beat these does no better than counting words"


def spoken_copies(copies: dict[str, Any]) -> str:
    """`750 items, 553 of them (73.7%) stand in the training text (551 exact, 2 near); 197 are clean`"""
    dirty = copies["exact"] + copies["near"]
    if not dirty:
        return f"{copies['items']:,} items, none of them in the training text"
    return (
        f"{copies['items']:,} items, {dirty:,} of them ({copies['share']:.1%}) stand in the training text"
        f" ({copies['exact']:,} exact, {copies['near']:,} near); {copies['clean']:,} are clean"
    )


def cell(score: dict[str, Any]) -> str:
    if "accuracy" in score:
        low, high = score["interval"]
        return f"{score['accuracy']:.1%} [{low:.1%}, {high:.1%}]"
    if score["perplexity"] is None:
        return ""
    interval = score["interval"] if score["items"] >= FEW else None
    return f"{score['perplexity']:.1f}" + ("" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}]")
