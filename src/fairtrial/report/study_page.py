"""What the study's page shows of one task, as plain values for its template.

What the study's page shows out of the trials themselves: curves, maps, ledger, recipes, fingerprints.

The study's page: one HTML file that needs no network and no script, made from the study's files alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from fairtrial.disk import write_text
from fairtrial.recipe import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report import verdict_tables as tables
from fairtrial.report.charts import (
    MOST_CELLS,
    STYLES,
    Curve,
    Scale,
    axis_strip,
    band_chart,
    band_of,
    curves_of,
    difference_strip,
    large_map,
    loss_curve,
    mean_over_heads,
    score_strip,
    small_map,
    without_future,
)
from fairtrial.report.study_folder import StudyFolder
from fairtrial.report.table import Cell, Table, as_latex, as_markdown, row, without_empty_columns
from fairtrial.report.verdict_tables import (
    BASES,
    contenders,
    difference_unit,
    estimate_text,
    is_perplexity,
    least_text,
    metric_text,
    named,
    set_names,
    shown_difference,
    shown_least,
    stamp_of,
    task_title,
    verdict_cell,
)
from fairtrial.report.words import MISSING, decimals_for, few_digits, interval_text, plain_number, probability

Task = dict[str, Any]


def sentences_by_task(verdict: dict[str, Any]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The first sentence, and the others under their tasks, as the judge begins each with its task where there are
    several."""
    told = [split_off_task(verdict, sentence) for sentence in verdict.get("sentences", [])]
    groups: dict[str, list[str]] = {}
    for task, sentence in told[1:]:
        groups.setdefault(task, []).append(sentence)
    lead = ": ".join(filter(None, (task_title(told[0][0]), told[0][1]))) if told else ""
    return lead, [(task_title(name), lines) for name, lines in groups.items()]


def split_off_task(verdict: dict[str, Any], sentence: str) -> tuple[str, str]:
    for name in verdict.get("tasks", {}):
        if sentence.startswith(f"{name}: "):
            return name, sentence.removeprefix(f"{name}: ")
    return "", sentence


def glance(verdict: dict[str, Any]) -> dict[str, Any]:
    """Every verdict of the study in one small table: variants down, test sets across."""
    columns: list[tuple[str, str]] = []
    rows: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    stamps: dict[str, str] = {}
    for name, task in verdict.get("tasks", {}).items():
        for each in task.get("comparisons", []):
            place = (task_title(name), each.get("set", ""))
            if place not in columns:
                columns.append(place)
            variant = named(task, each.get("variant", ""))
            stamps[variant.text] = variant.stamp or stamps.get(variant.text, "")
            difference, low, high = shown_difference(task, each)
            told = plain_number(difference, decimals_for(low, high), sign=True)
            unit = "%" if task.get("metric") == "perplexity" else " points"
            figure = "" if told == MISSING else told + unit
            rows.setdefault(variant.text, {})[place] = {"verdict": verdict_cell(each), "figure": figure}
    return {
        "columns": columns,
        "tasks": [
            (task, sum(task == each for each, _ in columns)) for task in dict.fromkeys(each for each, _ in columns)
        ],
        "rows": [
            {"variant": Cell(name, stamps[name]), "cells": [cells.get(place) for place in columns]}
            for name, cells in rows.items()
        ],
    }


def score_panels(task: Task, reference: str) -> list[dict[str, Any]]:
    """For each test set and kind of items: a row of dots for every variant. What the verdict is on comes first."""
    panels = []
    for set_name in set_names(task):
        facts = task.get("sets", {}).get(set_name, {})
        decisive = facts.get("basis", "all")
        for basis in sorted(BASES, key=lambda basis: basis != decisive):
            panel = score_panel(task, reference, set_name, basis)
            if panel is not None:
                counted = items_of(facts, basis)
                panel["title"] = f"{set_name}, {basis} items" + (f" ({counted})" if counted else "")
                panel["decisive"] = basis == decisive
                panel["aside"] = decisive == "all" != basis  # too few copies to matter: nobody need look
                panels.append(panel)
    return panels


def items_of(facts: dict[str, Any], basis: str) -> str:
    if basis == "contaminated":
        copied = [facts[kind] for kind in ("exact", "near") if kind in facts]
        return few_digits(sum(copied)) if copied else ""
    count = facts.get("items" if basis == "all" else "clean")
    return "" if count is None else few_digits(count)


def score_panel(task: Task, reference: str, set_name: str, basis: str) -> dict[str, Any] | None:
    shown = [(cell, by_set.get(set_name, {}).get(basis, {}), ours) for cell, by_set, ours in contenders(task)]
    shown = [(cell, estimate, ours) for cell, estimate, ours in shown if "mean" in estimate]
    inside = [each for _, estimate, ours in shown if ours for each in numbers_of(estimate)]
    beside = [numbers_of(estimate) for _, estimate, ours in shown if not ours]
    scale = Scale.around(inside or [each for group in beside for each in group], near=beside)
    if scale is None:
        return None
    kinds = {
        each.get("variant"): verdict_cell(each).kind
        for each in task.get("comparisons", [])
        if (each.get("set"), each.get("basis")) == (set_name, basis)
    }
    rows = []
    for cell, estimate, ours in shown:
        kind = kinds.get(cell.text, "") if ours else "simple"
        if ours:
            kind = "not_comparable" if cell.stamp else "reference" if cell.text == reference else kind
        spoken = f"{cell.whole}, {set_name}, {basis} items"
        drawn = score_strip(spoken, estimate, scale, task.get("seeds", []), kind)
        rows.append({"name": cell, "chart": drawn, "figure": estimate_text(estimate), "kind": kind})
    return {"rows": rows, "axis": axis_strip(scale), "metric": metric_text(task)}


def numbers_of(estimate: dict[str, Any]) -> list[Any]:
    return [estimate.get("mean"), estimate.get("low"), estimate.get("high"), *estimate.get("by_seed", [])]


def comparison_panel(task: Task) -> dict[str, Any] | None:
    """All comparisons of a task on one scale, zero in sight."""
    shown = [(each, shown_difference(task, each)) for each in task.get("comparisons", [])]
    least = shown_least(task, task.get("least_difference"))
    ends = [] if least is None else [-least, least]
    scale = Scale.around([0.0, *ends, *(value for _, values in shown for value in values)])
    if not shown or scale is None:
        return None
    rows = []
    for each, values in shown:
        difference, low, high = values
        variant, verdict = named(task, each.get("variant", "")), verdict_cell(each)
        spoken = f"{variant.whole} against {each.get('against', '')} on {each.get('set', '')}, {verdict.text}"
        rows.append(
            {
                "name": variant,
                "against": named(task, each.get("against", "")),
                "where": f"{each.get('set', '')}, {each.get('basis', '')} items",
                "verdict": verdict,
                "chart": difference_strip(spoken, values, least, scale, verdict.kind),
                "figure": plain_number(difference, decimals_for(low, high), sign=True),
                "interval": interval_text(low, high, sign=True),
                "p": probability(each.get("p_adjusted")),
                "sentence": each.get("sentence", ""),
                "more": fine_print(task, each),
            }
        )
    return {"rows": rows, "axis": axis_strip(scale, sign=True), "least": least_text(task, task.get("least_difference"))}


def fine_print(task: Task, each: dict[str, Any]) -> str:
    """What a statistician asks next."""
    told = [f"{few_digits(each.get('seeds'))} seeds, {few_digits(each.get('items'))} items"]
    if "smallest_detectable" in each:
        told.append(f"smallest detectable {least_text(task, each['smallest_detectable'])}")
    if "more_seeds" in each:
        told.append(f"seeds needed: {each['more_seeds']}")
    if "more_items" in each:
        told.append(f"test items needed: {each['more_items']}")
    if "share" in each.get("share_of_seeds_better", {}):
        told.append(f"ahead in {each['share_of_seeds_better']['share']:.0%} of seeds")
    shares = each.get("variance_shares", {})
    if shares:
        told.append("variance " + ", ".join(f"{name} {value:.0%}" for name, value in shares.items()))
    return "; ".join(told)


def copy_bars(task: Task) -> list[dict[str, Any]]:
    """Shares of clean, nearly copied and copied items of each test set."""
    bars = []
    for name, facts in task.get("sets", {}).items():
        items = facts.get("items", 0)
        if items and ("exact" in facts or "near" in facts):
            counts = {kind: facts.get(kind, 0) for kind in ("exact", "near")}
            counts["clean"] = facts.get("clean", items - sum(counts.values()))
            parts = [(kind, count, 100 * count / items) for kind, count in counts.items() if count]
            bars.append({"name": name, "parts": parts, "items": few_digits(items), "why": facts.get("basis_why", "")})
    return bars


LOSS_POINTS = 60
Styles = dict[str, int]


def curve_charts(records: dict[str, list[Record]], styles: Styles, stamps: dict[str, str]) -> list[str]:
    """Loss and scores during training, one chart for each split that was scored."""
    losses: dict[str, list[Curve]] = {}
    scored: dict[str, dict[str, list[Curve]]] = {}
    for variant, trials in records.items():
        for record in trials:
            events = record.events()
            losses.setdefault(variant, []).append(loss_curve(events, LOSS_POINTS))
            for curve in curves_of(events):
                scored.setdefault(curve.name, {}).setdefault(variant, []).append(curve)

    def bands(curves: dict[str, list[Curve]], log: bool) -> list[Any]:
        told = {name: f"{name} [{stamps[name]}]" if stamps.get(name) else name for name in curves}
        return [band_of(told[name], styles.get(name, 0), found, log=log) for name, found in curves.items()]

    charts = [band_chart(bands(losses, False), title="Training loss", unit="nats per answer")]
    for split, curves in scored.items():
        unit = next(iter(curves.values()))[0].unit
        log = unit != "accuracy"
        title = f"{'Perplexity' if log else 'Accuracy'} on {split} during training"
        charts.append(
            band_chart(bands(curves, log), title=title, unit="windows, log scale" if log else "share", log=log)
        )
    return [chart for chart in charts if chart]


def map_rows(maps: dict[str, Any], task: str, stamps: dict[str, str]) -> dict[str, Any] | None:
    """A row of small maps for each variant, the same heads below one another, and the same maps with their words."""
    hide = without_future if task == "lm" else list
    variants = {name: hide(heads) for name, heads in maps.get("variants", {}).get(task, {}).items() if heads}
    if not variants:
        return None
    every = maps.get("variants", {}).values()
    cells = sum(len(row) for by in every for heads in by.values() for layer in heads for head in layer for row in head)
    merged = cells > MOST_CELLS
    rows = []
    for number, (variant, heads) in enumerate(variants.items()):
        small, large = [], []
        words = maps.get("words_of", {}).get(task, {}).get(variant, maps.get("words", []))
        for layer, each in enumerate(heads):
            chosen = [mean_over_heads(each)] if merged else each
            for head, values in enumerate(chosen):
                identity = f"map-{task}-{number}-{layer}-{head}".replace(" ", "-")
                place = f"layer {layer}" if merged else f"layer {layer}, head {head}"
                small.append({"name": place, "map": small_map(identity, f"{variant}, {place}", values, words)})
                large.append({"name": place, "map": large_map(identity, f"{variant}, {place}", len(values), words)})
        rows.append({"name": Cell(variant, stamps.get(variant, "")), "small": small, "large": large})
    hidden = any(None in row for heads in variants.values() for layer in heads for head in layer for row in head)
    return {
        "rows": rows,
        "hidden": hidden,
        "sentence": maps.get("sentence", " ".join(maps.get("words", []))),
        "merged": merged,
    }


def ledger_tables(ledger: dict[str, Any], task: str, stamps: dict[str, str]) -> list[Table]:
    """One table for each variant; what is equal in all of them is seen at once by its place."""
    tables = []
    for variant, rows in ledger.get(task, {}).items():
        told = [
            row(
                each.get("component", ""),
                each.get("formula", ""),
                few_digits(each.get("count")),
                few_digits(each.get("bias_free")),
            )
            for each in rows
        ]
        for key in ("count", "bias_free"):
            if not all(key in each for each in rows):
                break
        else:
            sums = (few_digits(sum(each[key] for each in rows)) for key in ("count", "bias_free"))
            told.append(row("sum", "", *sums))
        columns = ("component", "formula", "parameters", "as the course's reports count")
        stamp = f" [{stamps[variant]}]" if stamps.get(variant) else ""
        tables.append(without_empty_columns(Table(f"{variant}{stamp}", columns, tuple(told), words=2), MISSING))
    return tables


def recipe_facts(study: StudyFolder, reference: str, stamps: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """For each task: the reference's whole recipe, and where each other variant's differs from it."""
    facts = []
    for task, variants in study.records.items():
        firsts = {name: trials[0] for name, trials in variants.items()}
        start = reference if reference in firsts else next(iter(firsts))
        base = flat(to_table(firsts[start].recipe))
        rows = []
        for name, record in firsts.items():
            own = flat(to_table(record.recipe))
            changed = [f"{key} = {own.get(key, 'absent')}" for key in {**base, **own} if own.get(key) != base.get(key)]
            stamp = stamps.get(task, {}).get(name, "")
            rows.append(row(Cell(name, stamp), "; ".join(changed) or "as below", record.trial["recipe"]))
        facts.append(
            {
                "task": task,
                "reference": start,
                "table": Table("recipes", ("variant", f"differs from {start} in", "fingerprint"), tuple(rows), words=3),
                "recipe": write_recipe(firsts[start].recipe),
                "data": sorted(firsts[start].trial["data"].items()),
                "cite": firsts[start].trial["cite"],
                "notes": firsts[start].trial["notes"],
            }
        )
    return facts


def environments(study: StudyFolder) -> list[str]:
    """The code and machine of all trials: one line if they agree, as they should."""
    found: dict[str, None] = {}
    for variants in study.records.values():
        for trials in variants.values():
            for record in trials:
                facts = record.trial
                machine = ", ".join(f"{key} {value}" for key, value in facts["environment"].items())
                found[f"code {facts['code']}; {machine}"] = None
    return list(found)


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """`training.batch` -> 16."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        else:
            found[before + key] = value
    return found


def failed_checks(study: StudyFolder, task: str, variants: Sequence[str]) -> list[dict[str, str]]:
    """What each failed check found, in its own words."""
    found = []
    for variant in variants:
        for finding in study.passport(task, variant).get("findings", []):
            if finding.get("verdict") == "FAIL":
                name = f"{finding.get('id', '')} {finding.get('name', '')}"
                found.append(
                    {
                        "variant": variant,
                        "check": name,
                        "level": finding.get("level", ""),
                        "meaning": finding.get("meaning", ""),
                    }
                )
    return found


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
