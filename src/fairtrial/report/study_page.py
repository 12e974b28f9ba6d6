"""The study's page: one HTML file that needs no network and no script, made from the study's files alone."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from fairtrial.disk import write_text
from fairtrial.report import tables
from fairtrial.report.bands import STYLES
from fairtrial.report.study_folder import StudyFolder
from fairtrial.report.study_inside import (
    curve_charts,
    environments,
    failed_checks,
    ledger_tables,
    map_rows,
    recipe_facts,
)
from fairtrial.report.study_sections import comparison_panel, copy_bars, glance, score_panels, sentences_by_task
from fairtrial.report.table import as_latex, as_markdown
from fairtrial.report.verdict_words import difference_unit, is_perplexity, metric_text, stamp_of, task_title

HERE = Path(__file__).parent


def write_study_page(folder: Path) -> Path:
    """`report.html` in the study's folder."""
    page = folder / "report.html"
    write_text(page, study_page(StudyFolder.open(folder)))
    return page


def study_page(study: StudyFolder) -> str:
    page = template().render(**about_study(study))
    return re.sub(r"\n\s*\n+", "\n", page)


@cache
def template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["minus"] = minus
    environment.filters["markdown"] = lambda table: "\n".join(as_markdown(table))
    environment.filters["latex"] = lambda table: "\n".join(as_latex(table))
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "study.css"))
    return environment.get_template("study.html", globals={"style": Markup(style)})


def minus(text: str) -> Markup:
    """A true minus sign before digits, as a hyphen is hard to see in a column; an interval stays on one line."""
    text = re.sub(r"(?<![\w-])-(?=\d)", "−", str(escape(text)))
    return Markup(re.sub(r" \[([^\[\],]{1,12}), ([^\[\],]{1,12})\]", "\u00a0[\\1,\u00a0\\2]", text))


def about_study(study: StudyFolder) -> dict[str, Any]:
    verdict = study.verdict
    tasks = verdict.get("tasks", {})
    reference = verdict.get("baseline", "")
    lead, sentences = sentences_by_task(verdict)
    stamps = {name: stamps_of(task, study.records.get(name, {})) for name, task in tasks.items()}
    return {
        "title": verdict.get("name") or study.folder.resolve().name,
        "reference": reference,
        "lead": lead,
        "sentences": sentences,
        "glance": glance(verdict),
        "counts": counts_line(study),
        "tasks": [about_task(study, name, reference, stamps[name]) for name in tasks],
        "recipes": recipe_facts(study, reference, stamps),
        "environments": environments(study),
        "study_text": study.study_text,
        "failures": any(task.get("failures") for task in tasks.values()),
    }


def stamps_of(task: dict[str, Any], more: dict[str, Any]) -> dict[str, str]:
    names = dict.fromkeys([*task.get("scores", {}), *task.get("passports", {}), *more])
    return {name: stamp_of(task, name) for name in names}


def counts_line(study: StudyFolder) -> str:
    """`3 variants, 8 seeds, 2 tasks, 48 trials`."""
    tasks = study.verdict.get("tasks", {}).values()
    variants = len({name for task in tasks for name in task.get("scores", {})})
    seeds = max((len(task.get("seeds", [])) for task in tasks), default=0)
    trials = sum(len(trials) for variants in study.records.values() for trials in variants.values())
    counts = [(variants, "variant"), (seeds, "seed"), (len(tasks), "task"), (trials, "trial")]
    told = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    look = study.verdict.get("look", {})
    if "seeds" not in look:
        return told
    further = f"the next at {look['next']}" if "next" in look else "the last"
    return f"{told}; a look at {look['seeds']} seeds, {further}, each with its share of the 5% of false alarms"


def tries_line(search: dict[str, Any]) -> str:
    """Whether the variants were tuned alike: one that had more tries had more luck."""
    each = {facts.get("tries") for facts in search.get("variants", {}).values()}
    if "tries" not in search:
        return ""
    told = f"{search['tries']} tries in all, "
    return told + (
        "the same number for every variant that was searched."
        if len(each) == 1
        else "not the same number for every variant."
    )


def about_task(study: StudyFolder, name: str, reference: str, stamps: dict[str, str]) -> dict[str, Any]:
    task = study.verdict["tasks"][name]
    records = study.records.get(name, {})
    others = [variant for variant in dict.fromkeys([*task.get("scores", {}), *records]) if variant != reference]
    styles = {reference: 0} | {variant: 1 + at % (STYLES - 1) for at, variant in enumerate(others)}
    order = [variant for variant in styles if variant in records]
    return {
        "name": name,
        "title": task_title(name),
        "metric": metric_text(task),
        "unit": difference_unit(task),
        "lower_is_better": is_perplexity(task),
        "panels": score_panels(task, reference),
        "comparisons": comparison_panel(task),
        "copy_bars": copy_bars(task),
        "curves": curve_charts({variant: records[variant] for variant in order}, styles, stamps),
        "legend": [(variant, styles[variant], stamps.get(variant, "")) for variant in order],
        "failed_checks": failed_checks(study, name, list(stamps)),
        "maps": map_rows(study.maps, name, stamps),
        "ledger": ledger_tables(study.ledger, name, stamps),
        "best_of": task.get("best_of", {}).get("sentence", ""),
        "tries": tries_line(task.get("search", {})),
        "table": {maker.__name__: maker(task) for maker in tables.MAIN + tables.FURTHER},
    }
