"""A study's page: one HTML file that needs no network and no script, made from the files of the study alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.disk import write_text
from fairtrial.recipe import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report import verdict_tables as tables
from fairtrial.report.charts import (
    MOST_CELLS,
    STYLES,
    Band,
    Scale,
    axis_strip,
    band_chart,
    band_of,
    difference_strip,
    large_map,
    mean_over_heads,
    score_strip,
    small_map,
    without_future,
)
from fairtrial.report.curves import Curve, curves_of, loss_curve
from fairtrial.report.page import render
from fairtrial.report.study_files import StudyFiles
from fairtrial.report.table import MISSING, Cell, Table, row
from fairtrial.report.verdict_tables import (
    SUBSETS,
    Row,
    Task,
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
from fairtrial.report.words import decimals_for, few_digits, interval_text, plain_number, probability

LOSS_POINTS = 60
Styles = dict[str, int]  # variant -> which colour and dash its lines have


def write_study_page(folder: Path) -> Path:
    """`report.html` in the study's folder."""
    page = folder / "report.html"
    write_text(page, study_page(StudyFiles.open(folder)))
    return page


def study_page(study: StudyFiles) -> str:
    return re.sub(r"\n\s*\n+", "\n", render("study", **about_study(study)))


def about_study(study: StudyFiles) -> dict[str, Any]:
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


def stamps_of(task: Task, more: dict[str, Any]) -> dict[str, str]:
    names = dict.fromkeys([*task.get("scores", {}), *task.get("passports", {}), *more])
    return {name: stamp_of(task, name) for name in names}


def counts_line(study: StudyFiles) -> str:
    """`3 variants, 8 seeds, 2 tasks, 48 trials`."""
    tasks = study.verdict.get("tasks", {}).values()
    variants = len({name for task in tasks for name in task.get("scores", {})})
    seeds = max((len(task.get("seeds", [])) for task in tasks), default=0)
    trials = sum(len(trials) for variants in study.records.values() for trials in variants.values())
    counts = [(variants, "variant"), (seeds, "seed"), (len(tasks), "task"), (trials, "trial")]
    line = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    look = study.verdict.get("look", {})
    if "seeds" not in look:
        return line
    further = f"the next is at {look['next']}" if "next" in look else "the last one"
    return f"{line}; an interim look at {look['seeds']} seeds ({further}), with its share of the 5% of false alarms"


def tries_line(search: dict[str, Any]) -> str:
    """Whether the variants were tuned alike: more tries mean more luck."""
    if "tries" not in search:
        return ""
    same = len({facts.get("tries") for facts in search.get("variants", {}).values()}) == 1
    spread = "the same number for every variant that was searched" if same else "not the same number for every variant"
    return f"{search['tries']} tries in all, {spread}."


def about_task(study: StudyFiles, name: str, reference: str, stamps: dict[str, str]) -> dict[str, Any]:
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


def sentences_by_task(verdict: dict[str, Any]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The first sentence, and the others by task: where there are several, each sentence begins with its task."""
    lines = [split_off_task(verdict, sentence) for sentence in verdict.get("sentences", [])]
    groups: dict[str, list[str]] = {}
    for task, sentence in lines[1:]:
        groups.setdefault(task, []).append(sentence)
    lead = ": ".join(filter(None, (task_title(lines[0][0]), lines[0][1]))) if lines else ""
    return lead, [(task_title(name), sentences) for name, sentences in groups.items()]


def split_off_task(verdict: dict[str, Any], sentence: str) -> tuple[str, str]:
    for name in verdict.get("tasks", {}):
        for lead in (f"[{name}] ", f"{name}: "):  # the second in older studies
            if sentence.startswith(lead):
                return name, sentence.removeprefix(lead)
    return "", sentence


def glance(verdict: dict[str, Any]) -> dict[str, Any]:
    """Every verdict of the study in one small table: variants down, test sets across."""
    columns: dict[tuple[str, str], None] = {}
    rows: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    stamps: dict[str, str] = {}
    for name, task in verdict.get("tasks", {}).items():
        for comparison in task.get("comparisons", []):
            column = (task_title(name), comparison.get("set", ""))
            columns[column] = None
            variant = named(task, comparison.get("variant", ""))
            stamps[variant.text] = variant.stamp or stamps.get(variant.text, "")
            difference, low, high = shown_difference(task, comparison)
            number = plain_number(difference, decimals_for(low, high), sign=True)
            unit = "%" if is_perplexity(task) else " points"
            figure = "" if number == MISSING else number + unit
            rows.setdefault(variant.text, {})[column] = {"verdict": verdict_cell(comparison), "figure": figure}
    tasks = [task for task, _ in columns]
    return {
        "columns": list(columns),
        "tasks": [(task, tasks.count(task)) for task in dict.fromkeys(tasks)],
        "rows": [
            {"variant": Cell(name, stamps[name]), "cells": [cells.get(column) for column in columns]}
            for name, cells in rows.items()
        ],
    }


def score_panels(task: Task, reference: str) -> list[dict[str, Any]]:
    """For each test set and subset, a row of dots for every variant. What the verdict is on comes first."""
    panels = []
    for test_set in set_names(task):
        facts = task.get("sets", {}).get(test_set, {})
        decisive = facts.get("basis", "all")
        for subset in sorted(SUBSETS, key=lambda subset: subset != decisive):
            panel = score_panel(task, reference, test_set, subset)
            if panel is not None:
                count = items_in(facts, subset)
                panel["title"] = f"{test_set}, {subset} items" + (f" ({count})" if count else "")
                panel["decisive"] = subset == decisive
                panel["aside"] = decisive == "all" != subset  # too few copies to matter
                panels.append(panel)
    return panels


def items_in(facts: dict[str, Any], subset: str) -> str:
    if subset == "contaminated":
        copied = [facts[kind] for kind in ("exact", "near") if kind in facts]
        return few_digits(sum(copied)) if copied else ""
    count = facts.get("items" if subset == "all" else "clean")
    return "" if count is None else few_digits(count)


def score_panel(task: Task, reference: str, test_set: str, subset: str) -> dict[str, Any] | None:
    shown = [(cell, by_set.get(test_set, {}).get(subset, {}), ours) for cell, by_set, ours in contenders(task)]
    shown = [(cell, estimate, ours) for cell, estimate, ours in shown if "mean" in estimate]
    inside = [number for _, estimate, ours in shown if ours for number in numbers_of(estimate)]
    outside = [numbers_of(estimate) for _, estimate, ours in shown if not ours]
    scale = Scale.around(inside or [number for group in outside for number in group], near=outside)
    if scale is None:
        return None
    kinds = {
        comparison.get("variant"): verdict_cell(comparison).kind
        for comparison in task.get("comparisons", [])
        if (comparison.get("set"), comparison.get("basis")) == (test_set, subset)
    }
    rows = []
    for cell, estimate, ours in shown:
        kind = kinds.get(cell.text, "") if ours else "simple"
        if ours:
            kind = "not_comparable" if cell.stamp else "reference" if cell.text == reference else kind
        label = f"{cell.stamped}, {test_set}, {subset} items"
        drawn = score_strip(label, estimate, scale, task.get("seeds", []), kind)
        rows.append({"name": cell, "chart": drawn, "figure": estimate_text(estimate), "kind": kind})
    return {"rows": rows, "axis": axis_strip(scale)}


def numbers_of(estimate: dict[str, Any]) -> list[Any]:
    return [estimate.get("mean"), estimate.get("low"), estimate.get("high"), *estimate.get("by_seed", [])]


def comparison_panel(task: Task) -> dict[str, Any] | None:
    """All comparisons of a task on one scale that includes zero."""
    shown = [(comparison, shown_difference(task, comparison)) for comparison in task.get("comparisons", [])]
    least = shown_least(task, task.get("least_difference"))
    ends = [] if least is None else [-least, least]
    scale = Scale.around([0.0, *ends, *(value for _, values in shown for value in values)])
    if not shown or scale is None:
        return None
    rows = []
    for comparison, values in shown:
        difference, low, high = values
        variant, verdict = named(task, comparison.get("variant", "")), verdict_cell(comparison)
        test_set = comparison.get("set", "")
        label = f"{variant.stamped} against {comparison.get('against', '')} on {test_set}, {verdict.text}"
        rows.append(
            {
                "name": variant,
                "where": f"{test_set}, {comparison.get('basis', '')} items",
                "verdict": verdict,
                "chart": difference_strip(label, values, least, scale, verdict.kind),
                "figure": plain_number(difference, decimals_for(low, high), sign=True),
                "interval": interval_text(low, high, sign=True),
                "p": probability(comparison.get("p_adjusted")),
                "sentence": comparison.get("sentence", ""),
                "more": fine_print(task, comparison),
            }
        )
    return {"rows": rows, "axis": axis_strip(scale, sign=True), "least": least_text(task, task.get("least_difference"))}


def fine_print(task: Task, comparison: Row) -> str:
    """What a statistician asks next."""
    facts = [f"{few_digits(comparison.get('seeds'))} seeds, {few_digits(comparison.get('items'))} items"]
    if "smallest_detectable" in comparison:
        facts.append(f"smallest detectable {least_text(task, comparison['smallest_detectable'])}")
    if "more_seeds" in comparison:
        facts.append(f"more seeds needed: {comparison['more_seeds']}")
    if "more_items" in comparison:
        facts.append(f"test items needed: {comparison['more_items']}")
    if "share" in comparison.get("share_of_seeds_better", {}):
        facts.append(f"better in {comparison['share_of_seeds_better']['share']:.0%} of seeds")
    if shares := comparison.get("variance_shares", {}):
        facts.append("variance " + ", ".join(f"{name} {value:.0%}" for name, value in shares.items()))
    return "; ".join(facts)


def copy_bars(task: Task) -> list[dict[str, Any]]:
    """Shares of clean items, near duplicates and exact duplicates in each test set."""
    bars = []
    for name, facts in task.get("sets", {}).items():
        items = facts.get("items", 0)
        if items and ("exact" in facts or "near" in facts):
            counts = {kind: facts.get(kind, 0) for kind in ("exact", "near")}
            counts["clean"] = facts.get("clean", items - sum(counts.values()))
            parts = [(kind, count, 100 * count / items) for kind, count in counts.items() if count]
            bars.append({"name": name, "parts": parts, "items": few_digits(items), "why": facts.get("basis_why", "")})
    return bars


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

    def bands(curves: dict[str, list[Curve]], log: bool) -> list[Band]:
        return [
            band_of(Cell(name, stamps.get(name, "")).stamped, styles.get(name, 0), found, log=log)
            for name, found in curves.items()
        ]

    charts = [band_chart(bands(losses, False), title="Training loss", unit="nats per answer")]
    for split, curves in scored.items():
        log = next(iter(curves.values()))[0].unit != "accuracy"
        title = f"{'Perplexity' if log else 'Accuracy'} on {split} during training"
        unit = "windows, log scale" if log else "share"
        charts.append(band_chart(bands(curves, log), title=title, unit=unit, log=log))
    return [chart for chart in charts if chart]


def map_rows(maps: dict[str, Any], task: str, stamps: dict[str, str]) -> dict[str, Any] | None:
    """A row of small maps for each variant, the same heads below one another, and the same maps with their words."""
    hide = without_future if task == "lm" else list
    variants = {name: hide(layers) for name, layers in maps.get("variants", {}).get(task, {}).items() if layers}
    if not variants:
        return None
    cells = sum(
        len(row)
        for by_variant in maps["variants"].values()
        for layers in by_variant.values()
        for heads in layers
        for head in heads
        for row in head
    )
    merged = cells > MOST_CELLS
    rows = []
    for number, (variant, layers) in enumerate(variants.items()):
        small, large = [], []
        words = maps.get("words_of", {}).get(task, {}).get(variant, maps.get("words", []))
        for layer, heads in enumerate(layers):
            for head, values in enumerate([mean_over_heads(heads)] if merged else heads):
                identity = f"map-{task}-{number}-{layer}-{head}".replace(" ", "-")
                name = f"layer {layer}" if merged else f"layer {layer}, head {head}"
                small.append({"name": name, "map": small_map(identity, f"{variant}, {name}", values, words)})
                large.append({"name": name, "map": large_map(identity, f"{variant}, {name}", len(values), words)})
        rows.append({"name": Cell(variant, stamps.get(variant, "")), "small": small, "large": large})
    return {
        "rows": rows,
        "hidden": any(
            None in row for layers in variants.values() for heads in layers for head in heads for row in head
        ),
        "sentence": maps.get("sentence", " ".join(maps.get("words", []))),
        "merged": merged,
    }


def ledger_tables(ledger: dict[str, Any], task: str, stamps: dict[str, str]) -> list[Table]:
    """The parameters of each variant."""
    tables = []
    for variant, lines in ledger.get(task, {}).items():
        counts = [[line.get(key) for key in ("count", "bias_free")] for line in lines]
        rows = [
            row(line.get("component", ""), line.get("formula", ""), *map(few_digits, count))
            for line, count in zip(lines, counts, strict=True)
        ]
        if all(None not in count for count in counts):
            rows.append(row("sum", "", *(few_digits(sum(column)) for column in zip(*counts, strict=True))))
        columns = ("component", "formula", "parameters", "weight matrices only")
        title = Cell(variant, stamps.get(variant, "")).stamped
        tables.append(Table(title, columns, tuple(rows), text_columns=2).without_empty_columns())
    return tables


def recipe_facts(study: StudyFiles, reference: str, stamps: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """For each task: the full recipe of the reference variant, and where the others differ from it."""
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
            rows.append(row(Cell(name, stamp), "; ".join(changed) or "nothing", record.trial["recipe"]))
        facts.append(
            {
                "task": task,
                "reference": start,
                "table": Table(
                    "recipes", ("variant", f"differs from {start} in", "fingerprint"), tuple(rows), text_columns=3
                ),
                "recipe": write_recipe(firsts[start].recipe),
                "data": sorted(firsts[start].trial["data"].items()),
                "cite": firsts[start].trial["cite"],
                "notes": firsts[start].trial["notes"],
            }
        )
    return facts


def environments(study: StudyFiles) -> list[str]:
    """Code and machine of all trials: one line where they agree."""
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


def failed_checks(study: StudyFiles, task: str, variants: Sequence[str]) -> list[dict[str, str]]:
    """What each failed check found, in its own words."""
    return [
        {
            "variant": variant,
            "check": f"{finding.get('id', '')} {finding.get('name', '')}",
            "level": finding.get("level", ""),
            "meaning": finding.get("meaning", ""),
        }
        for variant in variants
        for finding in study.passport(task, variant).get("findings", [])
        if finding.get("verdict") == "FAIL"
    ]
