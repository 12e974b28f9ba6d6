"""A classifier's mistakes as one self-contained HTML page: no network, no scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairtrial.report.errors_text import WAYS, percent
from fairtrial.report.reliability import reliability_chart


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
