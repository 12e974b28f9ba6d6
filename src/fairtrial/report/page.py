"""One self-contained HTML page for one or several records: no network, no scripts.

One self-contained page about where heads look: maps with hover values, portraits, heads switched off. It takes an
album (`look/album.py`), which is plain numbers; its script draws what stands in the page and asks no one.

A classifier's mistakes as one self-contained HTML page: no network, no scripts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairtrial.recipe import write_recipe
from fairtrial.record import Record
from fairtrial.report.charts import curves_of, line_chart, loss_curve, reliability_chart, trained_seconds
from fairtrial.report.text import ERROR_FORMATS as WAYS
from fairtrial.report.text import SAYING, change, notices_of, percent
from fairtrial.report.words import KINDS, spoken_parts, spoken_time


def records_page(records: Sequence[Record], title: str) -> str:
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["percent"] = lambda value: f"{value:.1%}"
    template = environment.get_template("page.html")
    style = (here / "page.css").read_text(encoding="utf-8")
    return template.render(title=title, style=style, trials=[about(record) for record in records])


def about(record: Record) -> dict[str, Any]:
    """All that the page says of one record."""
    recipe, trial, events = record.recipe, record.trial, record.events()
    classify = recipe.task == "classify"
    y_labels = {
        "classify": "share right",
        "lm": f"the course's way: windows of {recipe.shape.length} tokens, log scale",
        "mlm": "of hidden words, log scale",
    }
    scores = line_chart(
        curves_of(events),
        title="Accuracy during training" if classify else "Perplexity during training",
        y_label=y_labels[recipe.task],
        percent=classify,
        log=not classify,
    )
    return {
        "name": record.folder.name,
        "folder": str(record.folder),
        "kind": KINDS[recipe.task].capitalize(),
        "classify": classify,
        "parts": spoken_parts(recipe),
        "recipe": recipe,
        "recipe_text": write_recipe(recipe),
        "trial": trial,
        "result": record.result if record.complete else None,
        "took": spoken_time(trained_seconds(record.clock())),
        "charts": [scores, line_chart([loss_curve(events)], title="Training loss", y_label="nats per answer")],
    }


SHARES = 65535  # a weight is kept as a 16-bit share

COLUMNS = (
    ("entropy", "entropy, nats", "{:.2f}"),
    ("entropy_share", "of the most", "{:.0%}"),
    ("distance", "distance", "{:.1f}"),
    ("itself", "itself", "{:.0%}"),
    ("previous", "previous", "{:.0%}"),
    ("next", "next", "{:.0%}"),
    ("first", "first", "{:.0%}"),
    ("punctuation", "punctuation", "{:.0%}"),
    ("stripe", "stripe", "{:.0%}"),
)


@dataclass(frozen=True)
class Frame:
    """What stands around an album on its page."""

    title: str
    about: str  # which network this is
    notes: Sequence[str]  # what a reader of the record must know
    read: str  # which texts the portraits are over
    command: str  # that made it
    why_not: str = ""  # no head was switched off
    sections: Sequence[tuple[str, str]] = ()  # more of it: title and safe HTML


def look_page(album: Any, heads: Sequence[tuple[int, int]], frame: Frame) -> str:
    """The page; maps of these (layer, head) are drawn."""
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "change": change, "notices": notices_of}
    captions = album.captions
    data = {
        "heads": [{"layer": layer, "head": head, "caption": captions[layer, head]} for layer, head in heads],
        "stage": album.stage,
        "texts": [packed(drawn, heads) for drawn in album.drawn],
    }
    portraits = [asdict(each) for each in album.heads]
    ahead = any(each["uniform"]["next"] is not None for each in portraits)
    effects = [asdict(each) | {"clear": each.clear} for each in album.effects]
    return environment.get_template("look.html").render(
        album=album,
        frame=frame,
        saying=SAYING,
        hidden=hidden(album),
        style="".join((here / name).read_text(encoding="utf-8") for name in ("page.css", "look.css")),
        script=(here / "look.js").read_text(encoding="utf-8"),
        data=data,
        portraits=portraits,
        columns=[column for column in COLUMNS if ahead or column[0] != "next"],
        tests={test: [each for each in effects if each["test"] == test] for test in {e["test"]: 0 for e in effects}},
        bars=bars(effects),
    )


def packed(drawn: Any, heads: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Small enough to stand in a page: 16-bit shares, and one bit for what is open. Arrays are [head query key]."""
    layers, places = (list(each) for each in zip(*heads, strict=True))
    trained, untrained = (
        b64encode(np.round(np.clip(maps.weights[layers, places], 0, 1) * SHARES).astype("<u2").tobytes()).decode()
        for maps in (drawn.trained, drawn.untrained)
    )
    seen = np.packbits(drawn.trained.open[layers].reshape(len(layers), -1), axis=1)
    words = list(drawn.trained.words)
    return {"words": words, "trained": trained, "untrained": untrained, "open": b64encode(seen.tobytes()).decode()}


def hidden(album: Any) -> str:
    """What the hatched cells are."""
    maps = album.drawn[0].trained
    inside = maps.open[:, : maps.real, : maps.real]
    allowed = np.tri(maps.real, dtype=bool) if maps.causal else np.ones((maps.real, maps.real), dtype=bool)
    forbidden = bool((allowed & ~inside).any())
    return " and ".join(["padding", *["the future"] * maps.causal, *["what a part forbids"] * forbidden])


def bars(effects: Sequence[dict[str, Any]]) -> list[float]:
    """How much worse each effect is, as a share of the largest; below zero it is better."""
    harms = [-each["change"] if each["measure"] == "accuracy" else each["change"] - 1 for each in effects]
    longest = max(map(abs, harms), default=0.0) or 1.0
    return [harm / longest for harm in harms]


def number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def errors_page(whole: dict[str, Any]) -> str:
    """`whole`: record, parts, labels, and what was found on each test set."""
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["percent"] = percent
    charts = {
        name: reliability_chart(found["calibration"]["bins"], f"Share right over confidence on {name}")
        for name, found in whole["tests"].items()
    }
    style = (here / "page.css").read_text(encoding="utf-8")
    return environment.get_template("errors.html").render(**whole, charts=charts, style=style, ways=WAYS)
