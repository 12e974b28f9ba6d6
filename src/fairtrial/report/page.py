"""One self-contained HTML page for one or several records: no network, no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairtrial.recipe_file import write_recipe
from fairtrial.record import Record
from fairtrial.report.chart import line_chart
from fairtrial.report.curves import curves_of, loss_curve, trained_seconds
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
