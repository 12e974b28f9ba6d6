"""Pages as single HTML files that load nothing, by one base template; `study_page` makes a study's."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtrial.description import MISSING, Table
from fairtrial.disk import write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import KINDS, format_parts, format_time
from fairtrial.recipe import write_recipe
from fairtrial.record import Listed, Record
from fairtrial.report import text
from fairtrial.report.charts import line_chart, reliability_chart
from fairtrial.report.curves import curves_of, loss_curve, trained_seconds
from fairtrial.report.render import as_latex, as_markdown
from fairtrial.report.text import change, confusion_table, notices_of, odds_text, percent, quoted
from fairtrial.report.words import kept_weights, learning_notes, score_table
from fairtrial.stored import TrialInfo

HERE = Path(__file__).parent
LARGEST_SHARE = 65535  # a weight is stored as a 16-bit share
HEAD_COLUMNS = (
    ("entropy", "entropy, nats", "{:.2f}"),
    ("entropy_share", "of maximum", "{:.0%}"),
    ("distance", "distance", "{:.1f}"),
    *((name, name, "{:.0%}") for name in ("itself", "previous", "next", "first", "punctuation", "stripe")),
)
SCORES = {  # task: title and y axis of a chart; all but accuracy have a log scale
    "classify": ("Accuracy during training", "share right"),
    "lm": ("Perplexity during training", "non-overlapping windows of {} tokens, log scale"),
    "mlm": ("Perplexity during training", "of masked tokens, log scale"),
}


def render(page: str, title: str, **values: Any) -> str:
    """The template `page`.html, with the style of all pages, and `page`.css and `page`.js where they exist."""
    style, script = (
        "".join(path.read_text(encoding="utf-8") for name in names if (path := HERE / name).is_file())
        for names in (("page.css", f"{page}.css"), (f"{page}.js",))
    )
    frame = {"page": page, "title": title, "style": style, "script": script, "policy": policy(style, script)}
    return environment().get_template(f"{page}.html").render(frame, **values)


def write_page(page: Path | str, made: Callable[[], str]) -> Path:
    """A page is HTML and is named so. `made` is called once its name is known to be right."""
    page = Path(page)
    if page.suffix.lower() not in (".html", ".htm"):
        what = (
            f"a page is written as .html, not as {page.suffix}"
            if page.suffix
            else f"a page needs a name in .html: {page}"
        )
        raise BadInput(what, f"name it {page.with_suffix('.html')}; a browser prints it as PDF")
    write_text(page, made())
    return page


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy: our own style and script by their hashes, nothing else, and nothing from a network.
    Style attributes are not allowed."""
    allowed = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script))
    return "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'".format(*allowed)


def fragment(lines: Sequence[str] = (), charts: Sequence[str] = (), tables: Sequence[Table] = (), **values: Any) -> str:
    """A result for a notebook's output: like a page, but without its head and without scripts, and in light colours,
    since a notebook's theme is not the system's."""
    template = environment().get_template("fragment.html")
    drawn = re.sub(r"\n\s*\n+", "\n", template.render(lines=lines, charts=charts, tables=tables, **values))
    used = {name for names in re.findall(r'class="([^"]*)"', drawn) for name in names.split()}
    style = " ".join(rule for classes, rule in fragment_rules() if classes <= used)
    own = f"fairtrial-{sha256(style.encode()).hexdigest()[:8]}"  # a style holds for all of a notebook
    return f'<div class="{own}"><style>.{own} {{ {style} }}</style>{drawn}</div>'


@cache
def fragment_rules() -> list[tuple[set[str], str]]:
    """The pages' style, rule by rule, with the classes that a rule is about: a notebook stores only what it needs."""
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "study.css"))
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    style = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)  # of other screens, themes and paper
    style = re.sub(r"(?m)^(:root|body)(?= )", "&", style).replace("color-scheme: light dark", "color-scheme: light")
    own = "&, & .study { max-width: 60rem; margin: 0; padding: .2rem .6rem; } h3 { margin-top: 1rem; }"
    own += " .words { max-width: 24rem; } .table { background: none; }"
    own += " .charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }"
    style = f"{' '.join(style.split())} {own}"
    # on another page the root's size is another
    style = re.sub(r"(\d*\.?\d+)rem\b", lambda size: f"{16 * float(size[1]):g}px", style)
    rules = re.findall(r"[^{}]+\{[^{}]*\}", style)
    return [
        (set(re.findall(r"\.([a-z_][\w-]*)", re.sub(r":not\([^)]*\)", "", rule.split("{")[0]))), rule) for rule in rules
    ]


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "minus": minus,
        "percent": percent,
        "odds": odds_text,
        "quoted": quoted,
        "number": lambda value, form: MISSING if value is None else form.format(value),
        "change": change,
        "notices": notices_of,
        "markdown": lambda table: "\n".join(as_markdown(table)),
        "latex": lambda table: "\n".join(as_latex(table)),
    }
    return made


def minus(text: str) -> Markup:
    """A true minus sign before digits, as a hyphen is hard to see in a column; no line ends inside an interval."""
    text = re.sub(r"(?<![\w-])-(?=\d)", "−", str(escape(text)))
    return Markup(re.sub(r" \[([^\[\],]{1,12}), ([^\[\],]{1,12})\]", " [\\1,\u00a0\\2]", text))


def records_page(records: Sequence[Record], title: str, names: Sequence[str] | None = None) -> str:
    """`names`: of the classes, instead of their labels."""
    listing = text.listing_table(map(Listed, records)) if len(records) > 1 else None
    return render("records", title, listing=listing, trials=[about_record(record, names) for record in records])


def about_record(record: Record, names: Sequence[str] | None = None) -> dict[str, Any]:
    recipe = record.recipe
    result = record.result if record.complete else None
    confusions = [
        confusion_table(f"Confusion on {name}", score.confusion, record.class_names(names))
        for name, score in (result.tests if result else {}).items()
        if score.confusion is not None
    ]
    return {
        "record": record,
        "kind": KINDS[recipe.task].capitalize(),
        "parts": format_parts(recipe),
        "recipe_text": write_recipe(recipe),
        "result": result,
        "notes": [*(learning_notes(result) if result else []), *record.trial.notes],
        "scores": result and score_table(result, record.baseline),
        "kept": result and kept_weights(result, recipe),
        "confusions": confusions,
        "took": format_time(trained_seconds(record.clock())),
        "charts": record_charts(record),
        "environment": environment_line(record.trial),
    }


def environment_line(trial: TrialInfo) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in asdict(trial.environment).items() if value not in ("", None))
    return f"code {trial.code}; {machine}"


def record_charts(record: Record) -> list[str]:
    """Scores and loss during training."""
    recipe, events = record.recipe, record.events()
    title, y_label = SCORES[recipe.task]
    percent, y_label = recipe.task == "classify", y_label.format(recipe.shape.length)
    scores = line_chart(curves_of(events), title=title, y_label=y_label, percent=percent, log=not percent)
    return [scores, line_chart([loss_curve(events)], title="Training loss", y_label="nats per answer")]


def errors_page(found: dict[str, Any]) -> str:
    """`found`: record, parts, labels, and what was found on each test set."""
    charts = reliability_charts(found)
    return render("errors", f"Errors of {found['record']}", **found, charts=charts, methods=text.ATTRIBUTIONS)


def reliability_charts(found: Mapping[str, Any]) -> dict[str, str]:
    """By test set."""
    return {
        name: reliability_chart(of_set["calibration"]["bins"], f"Share right over confidence on {name}")
        for name, of_set in found["tests"].items()
    }


def look_page(look: Any, heads: Sequence[tuple[int, int]], title: str, facts: dict[str, Any]) -> str:
    """Where heads look (`inspection.look.LookResult`): maps of these (layer, head), which the page's own script draws,
    head statistics, heads switched off. `facts`: about the network, notes on its record, the texts read, the command"""
    data = {
        "heads": [{"layer": layer, "head": head, "caption": look.captions[layer, head]} for layer, head in heads],
        "stage": look.stage,
        "texts": [packed(drawn, heads) for drawn in look.drawn],
    }
    statistics = [asdict(head) for head in look.heads]
    ahead = any(head["uniform"]["next"] is not None for head in statistics)
    effects = [asdict(effect) | {"clear": effect.clear} for effect in look.effects]
    tests: dict[str, list[dict[str, Any]]] = {}
    for effect, bar in zip(effects, bars(effects), strict=True):
        tests.setdefault(effect["test"], []).append(effect | {"bar": bar})
    return render(
        "look",
        title,
        look=look,
        **facts,
        caution=text.CAUTION,
        scale=text.MAP_SCALE,
        hidden=hidden(look),
        data=data,
        heads=statistics,
        columns=[column for column in HEAD_COLUMNS if ahead or column[0] != "next"],
        tests=tests,
    )


def packed(drawn: Any, heads: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Small enough for a page: 16-bit shares, and one bit for what is visible. Arrays are [head query key]."""
    layers, numbers = (list(column) for column in zip(*heads, strict=True))
    arrays = {"open": np.packbits(drawn.trained.open[layers].reshape(len(layers), -1), axis=1)}
    for name in ("trained", "untrained"):
        shares = np.clip(getattr(drawn, name).weights[layers, numbers], 0, 1)
        arrays[name] = np.round(shares * LARGEST_SHARE).astype("<u2")
    encoded = {name: b64encode(array.tobytes()).decode() for name, array in arrays.items()}
    return {"words": drawn.trained.words, **encoded}


def hidden(look: Any) -> str:
    """What the hatched cells are; empty where there are none."""
    maps, size = look.drawn[0].trained, len(look.drawn[0].trained.words)
    allowed = np.tri(size, dtype=bool) if maps.causal else np.ones((size, size), dtype=bool)
    forbidden = bool((allowed & ~maps.open).any())
    return " and ".join([*["the future"] * (maps.causal and size > 1), *["what a part forbids"] * forbidden])


def bars(effects: Sequence[dict[str, Any]]) -> list[float]:
    """How much worse each effect is, as a share of the largest; below zero it is better."""
    harms = [-effect["change"] if effect["measure"] == "accuracy" else effect["change"] - 1 for effect in effects]
    longest = max(map(abs, harms), default=0.0) or 1.0
    return [harm / longest for harm in harms]
