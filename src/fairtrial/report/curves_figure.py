"""Curves of one record as one figure: loss and score of every split that was scored, side by side. PNG, SVG or PDF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.figure import TIMELESS, figure_bytes, our_look
from fairtrial.judge.headline import headline
from fairtrial.record import Record

LOSSES = ("nats", "window_nats", "masked_nats")
TITLES = {
    "accuracy": "Accuracy",
    "window_perplexity": "Perplexity, the course's way",
    "masked_perplexity": "Perplexity of hidden words",
}


def curves_figure(record: Record, kind: str) -> bytes:
    """The same bytes for the same record."""
    if kind not in TIMELESS:
        raise BadInput(f"a figure cannot be written as {kind!r}; there is: {', '.join(TIMELESS)}")
    scores = [event for event in record.events() if event["event"] == "score"]
    if not scores:
        raise BadInput(f"{record.folder} has no scores yet, so there is nothing to draw")
    name, _ = headline(scores[0])
    loss = next(each for each in LOSSES if each in scores[0])
    from matplotlib.figure import Figure

    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw(left, scores, loss, "Loss (nats per answer)", record)
        _draw(right, scores, name, TITLES[name], record)
        if name == "accuracy":
            right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        else:
            right.set_yscale("log")
        figure.suptitle(f"{record.folder.name}: seed {record.trial['seed']}", fontsize=10)
        return figure_bytes(figure, kind, dpi=150)


def _draw(axes: Any, scores: Sequence[dict[str, Any]], name: str, title: str, record: Record) -> None:
    splits = dict.fromkeys(event["split"] for event in scores)
    for split in splits:
        points = [(event["step"], event[name]) for event in scores if event["split"] == split]
        drawn = [(step, value) for step, value in points if math.isfinite(value)]
        axes.plot(*zip(*drawn, strict=True), marker="o", markersize=3, label=split)
    if record.complete and record.result["kept"] == "best" and record.result["validation"]:
        axes.axvline(record.result["kept_step"], color="grey", linewidth=0.8, linestyle=":", label="kept")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("step")
    axes.legend(frameon=False, fontsize=8)
