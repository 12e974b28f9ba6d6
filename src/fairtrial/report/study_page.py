"""A study's page: one HTML file that needs no network and no script, made from the files of the study alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtrial.disk import write_text
from fairtrial.recipe import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report import charts
from fairtrial.report import verdict_tables as tables
from fairtrial.report.curves import Curve, curves_of, loss_curve
from fairtrial.report.page import fragment, render
from fairtrial.report.study_files import StudyFiles
from fairtrial.report.table import MISSING, Cell, Table, row
from fairtrial.report.text import MAP_SCALE
from fairtrial.report.words import decimals_for, few_digits, interval_text, plain_number, probability

LOSS_POINTS = 60
CURVES = {"nats": ("Training loss", "nats per answer"), "accuracy": ("Accuracy on {} during training", "share")}
ITEMS_IN = {"all": ("items",), "clean": ("clean",), "contaminated": ("exact", "near")}  # counts of a test set


def write_study_page(folder: Path) -> Path:
    """`report.html` in the study's folder."""
    page = folder / "report.html"
    study = StudyFiles.open(folder)
    study.check_unchanged()
    write_text(page, study_page(study))
    return page


def study_page(study: StudyFiles) -> str:
    verdict = study.verdict
    tasks, reference = verdict.get("tasks", {}), verdict.get("baseline", "")
    lead, sentences = sentences_by_task(verdict)
    page = render(
        "study",
        verdict.get("name") or study.folder.resolve().name,
        reference=reference,
        lead=lead,
        sentences=sentences,
        glance=glance(verdict),
        counts=counts_line(study),
        tasks=[about_task(study, name, reference) for name in tasks],
        recipes=recipe_facts(study, reference),
        environments=list(dict.fromkeys(map(environment_line, study.trials()))),
        study_text=study.study_text,
        failures=any(task.get("failures") for task in tasks.values()),
        results=verdict.get("results"),
        checkpoints=on_checkpoints(verdict),
    )
    return re.sub(r"\n\s*\n+", "\n", page)


def on_checkpoints(verdict: dict[str, Any]) -> bool:
    """Whether there is one network of each variant, so that nothing is said of seeds."""
    rows = [row for task in verdict.get("tasks", {}).values() for row in task.get("comparisons", [])]
    return any(row.get("verdict", "").startswith("checkpoint_") for row in rows)


def verdict_fragment(verdict: dict[str, Any]) -> str:
    """The first screen of a study's page, and the comparisons below it, for a notebook."""
    lead, sentences = sentences_by_task(verdict)
    reference = verdict.get("baseline", "")
    tasks = [
        {"title": tables.task_title(name), "unit": tables.difference_unit(task), "comparisons": comparison_panel(task)}
        for name, task in verdict.get("tasks", {}).items()
    ]
    return fragment(lead=lead, sentences=sentences, glance=glance(verdict), tasks=tasks, reference=reference)


def counts_line(study: StudyFiles) -> str:
    """`3 variants, 8 seeds, 2 tasks, 48 trials`."""
    tasks = study.verdict.get("tasks", {}).values()
    variants = len({name for task in tasks for name in task.get("scores", {})})
    seeds = max((len(task.get("seeds", [])) for task in tasks), default=0)
    counts = [(variants, "variant"), (seeds, "seed"), (len(tasks), "task"), (len(list(study.trials())), "trial")]
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


def about_task(study: StudyFiles, name: str, reference: str) -> dict[str, Any]:
    task, records = study.verdict["tasks"][name], study.records.get(name, {})
    others = [variant for variant in dict.fromkeys([*task.get("scores", {}), *records]) if variant != reference]
    styles = {reference: 0} | {variant: 1 + at % (charts.STYLES - 1) for at, variant in enumerate(others)}
    shown = [(tables.named(task, variant), style) for variant, style in styles.items() if variant in records]
    return {
        "name": name,
        "title": tables.task_title(name),
        "metric": tables.metric_text(task),
        "strides": tables.strides_of(task),
        "vocabularies_differ": bool(task.get("metric_why")),
        "unit": tables.difference_unit(task),
        "lower_is_better": tables.lower_is_better(task),
        "panels": score_panels(task, reference),
        "comparisons": comparison_panel(task),
        "copy_bars": copy_bars(task),
        "curves": curve_charts([(cell.stamped, style, records[cell.text]) for cell, style in shown]),
        "legend": shown,
        "failed_checks": failed_checks(study, name),
        "maps": map_rows(study.maps, name, task),
        "ledger": ledger_tables(study.ledger.get(name, {}), task),
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
    lead = ": ".join(filter(None, (tables.task_title(lines[0][0]), lines[0][1]))) if lines else ""
    return lead, [(tables.task_title(name), sentences) for name, sentences in groups.items()]


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
            column = (tables.task_title(name), comparison.get("set", ""))
            columns[column] = None
            variant = tables.named(task, comparison.get("variant", ""))
            stamps[variant.text] = variant.stamp or stamps.get(variant.text, "")
            difference, low, high = tables.shown_difference(task, comparison)
            number = plain_number(difference, decimals_for(low, high), sign=True)
            unit = "%" if tables.is_perplexity(task) else f" {tables.difference_unit(task)}"
            figure = "" if number == MISSING else number + unit
            rows.setdefault(variant.text, {})[column] = {"verdict": tables.verdict_cell(comparison), "figure": figure}
    tasks = [task for task, _ in columns]
    return {
        "columns": list(columns),
        "tasks": [(task, tasks.count(task)) for task in dict.fromkeys(tasks)],
        "rows": [
            {"variant": Cell(name, stamps[name]), "cells": [cells.get(column) for column in columns]}
            for name, cells in rows.items()
        ],
    }


def score_panels(task: tables.Task, reference: str) -> list[dict[str, Any]]:
    """For each test set and subset, a row of dots for every variant. What the verdict is on comes first."""
    panels = []
    for test_set in tables.set_names(task):
        facts = task.get("sets", {}).get(test_set, {})
        decisive = facts.get("basis", "all")
        for subset in sorted(ITEMS_IN, key=lambda subset: subset != decisive):
            if drawn := draw_scores(task, reference, test_set, subset):
                counts = [facts[kind] for kind in ITEMS_IN[subset] if kind in facts]
                title = f"{test_set}, {subset} items" + (f" ({few_digits(sum(counts))})" if counts else "")
                aside = decisive == "all" != subset  # too few copies to matter
                panels.append({"title": title, "decisive": subset == decisive, "aside": aside, **drawn})
    return panels


def draw_scores(task: tables.Task, reference: str, test_set: str, subset: str) -> dict[str, Any] | None:
    found = [(cell, by_set.get(test_set, {}).get(subset, {}), ours) for cell, by_set, ours in tables.contenders(task)]
    shown = [(cell, estimate, ours) for cell, estimate, ours in found if "mean" in estimate]
    inside = [number for _, estimate, ours in shown if ours for number in numbers_of(estimate)]
    outside = [numbers_of(estimate) for _, estimate, ours in shown if not ours]
    scale = charts.Scale.around(inside or [number for group in outside for number in group], near=outside)
    if scale is None:
        return None
    kinds = {
        comparison.get("variant"): tables.verdict_cell(comparison).kind
        for comparison in task.get("comparisons", [])
        if (comparison.get("set"), comparison.get("basis")) == (test_set, subset)
    } | {reference: "reference"}
    rows = []
    for cell, estimate, ours in shown:
        kind = "simple" if not ours else "not_comparable" if cell.stamp else kinds.get(cell.text, "")
        label = f"{cell.stamped}, {test_set}, {subset} items"
        drawn = charts.score_strip(label, estimate, scale, task.get("seeds", []), kind)
        rows.append({"name": cell, "chart": drawn, "figure": tables.estimate_text(estimate), "kind": kind})
    return {"rows": rows, "axis": charts.axis_strip(scale)}


def numbers_of(estimate: dict[str, Any]) -> list[Any]:
    return [estimate.get("mean"), estimate.get("low"), estimate.get("high"), *estimate.get("by_seed", [])]


def comparison_panel(task: tables.Task) -> dict[str, Any] | None:
    """All comparisons of a task on one scale that includes zero."""
    shown = [(comparison, tables.shown_difference(task, comparison)) for comparison in task.get("comparisons", [])]
    least = tables.shown_least(task, task.get("least_difference"))
    ends = [] if least is None else [-least, least]
    scale = charts.Scale.around([0.0, *ends, *(value for _, values in shown for value in values)])
    if not shown or scale is None:
        return None
    rows = []
    for comparison, values in shown:
        (difference, low, high), test_set = values, comparison.get("set", "")
        variant, verdict = tables.named(task, comparison.get("variant", "")), tables.verdict_cell(comparison)
        label = f"{variant.stamped} against {comparison.get('against', '')} on {test_set}, {verdict.text}"
        rows.append(
            {
                "name": variant,
                "where": f"{test_set}, {comparison.get('basis', '')} items",
                "verdict": verdict,
                "chart": charts.difference_strip(label, values, least, scale, verdict.kind),
                "figure": plain_number(difference, decimals_for(low, high), sign=True),
                "interval": interval_text(low, high, sign=True),
                "p": probability(comparison.get("p_adjusted")),
                "sentence": comparison.get("sentence", ""),
                "more": fine_print(task, comparison),
            }
        )
    least_shown = tables.least_text(task, task.get("least_difference"))
    return {"rows": rows, "axis": charts.axis_strip(scale, sign=True), "least": least_shown}


def fine_print(task: tables.Task, comparison: tables.Row) -> str:
    """What a statistician asks next."""
    facts = [f"{few_digits(comparison.get('seeds'))} seeds, {few_digits(comparison.get('items'))} items"]
    if "smallest_detectable" in comparison:
        facts.append(f"smallest detectable {tables.least_text(task, comparison['smallest_detectable'])}")
    units = "groups of test items" if comparison.get("groups") else "test items"
    needed = {"more_seeds": "more seeds needed", "more_items": f"{units} needed"}
    facts += [f"{words}: {comparison[key]}" for key, words in needed.items() if key in comparison]
    if "share" in comparison.get("share_of_seeds_better", {}):
        facts.append(f"better in {comparison['share_of_seeds_better']['share']:.0%} of seeds")
    if shares := comparison.get("variance_shares", {}):
        sources = ", ".join(f"{name} {value:.0%}" for name, value in shares.items())
        facts.append(f"variance of the difference: {sources}")
    return "; ".join(facts)


def copy_bars(task: tables.Task) -> list[dict[str, Any]]:
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


def curve_charts(variants: Sequence[tuple[str, int, list[Record]]]) -> list[str]:
    """Loss and scores of variants (name, style, records) during training, one chart for each split that was scored."""
    found: dict[tuple[str, str], dict[tuple[str, int], list[Curve]]] = {}  # split and unit, variant
    for name, style, records in variants:
        for record in records:
            events = record.events()
            for curve in (loss_curve(events, LOSS_POINTS), *curves_of(events)):
                found.setdefault((curve.name, curve.unit), {}).setdefault((name, style), []).append(curve)
    drawn = []
    for (split, unit), by_variant in found.items():
        title, shown = CURVES.get(unit, ("Perplexity on {} during training", "windows, log scale"))
        log = unit not in CURVES
        bands = [charts.band_of(*variant, curves, log=log) for variant, curves in by_variant.items()]
        drawn.append(charts.band_chart(bands, title=title.format(split), unit=shown, log=log))
    return [chart for chart in drawn if chart]


def map_rows(maps: dict[str, Any], name: str, task: tables.Task) -> dict[str, Any] | None:
    """A row of small maps for each variant, the same heads below one another, and the same maps with their words."""
    hide = charts.without_future if name == "lm" else list
    variants = {variant: hide(layers) for variant, layers in maps.get("variants", {}).get(name, {}).items() if layers}
    if not variants:
        return None
    everywhere = [layers for by_variant in maps["variants"].values() for layers in by_variant.values()]
    merged = sum(len(row) for row in rows_in(everywhere)) > charts.MOST_CELLS
    rows = []
    for number, (variant, layers) in enumerate(variants.items()):
        small, large = [], []
        given = maps.get("words_of", {}).get(name, {}).get(variant, maps.get("words", []))
        for layer, heads in enumerate(layers):
            for head, values in enumerate([charts.mean_over_heads(heads)] if merged else heads):
                across = max(map(len, [values, *values]))
                words = given + [f"word {at + 1}" for at in range(len(given), across)]
                identity = f"map-{name}-{number}-{layer}-{head}".replace(" ", "-")
                place = f"layer {layer}" if merged else f"layer {layer}, head {head}"
                label = f"{variant}, {place}"
                small.append({"name": place, "map": charts.small_map(identity, label, values, words)})
                large.append({"name": place, "map": charts.large_map(identity, label, len(values), words)})
        rows.append({"name": tables.named(task, variant), "small": small, "large": large})
    hidden = any(None in row for row in rows_in(variants.values()))
    sentence = maps.get("sentence", " ".join(maps.get("words", [])))
    told = {"sentence": sentence, "scale": MAP_SCALE, "key": charts.map_key()}
    return {"rows": rows, "hidden": hidden, "merged": merged, **told}


def rows_in(variants: Iterable[Any]) -> Iterator[Any]:
    """All rows of maps [layer head query key]."""
    return (row for layers in variants for heads in layers for head in heads for row in head)


def ledger_tables(ledger: dict[str, Any], task: tables.Task) -> list[Table]:
    """The parameters of each variant."""
    found = []
    for variant, lines in ledger.items():
        counts = [[line.get(key) for key in ("count", "bias_free")] for line in lines]
        rows = [
            row(line.get("component", ""), line.get("formula", ""), *map(few_digits, count))
            for line, count in zip(lines, counts, strict=True)
        ]
        if all(None not in count for count in counts):
            rows.append(row("sum", "", *(few_digits(sum(column)) for column in zip(*counts, strict=True))))
        columns = ("component", "formula", "parameters", "weight matrices only")
        title = tables.named(task, variant).stamped
        found.append(Table(title, columns, tuple(rows), text_columns=2).without_empty_columns())
    return found


def recipe_facts(study: StudyFiles, reference: str) -> list[dict[str, Any]]:
    """For each task: the full recipe of the reference variant, and where the others differ from it."""
    facts = []
    for task, variants in study.records.items():
        firsts = {name: trials[0] for name, trials in variants.items()}
        start = reference if reference in firsts else next(iter(firsts))
        base, trial = flat(to_table(firsts[start].recipe)), firsts[start].trial
        rows = []
        for name, record in firsts.items():
            own = flat(to_table(record.recipe))
            changed = [f"{key} = {own.get(key, 'absent')}" for key in {**base, **own} if own.get(key) != base.get(key)]
            variant = tables.named(study.verdict.get("tasks", {}).get(task, {}), name)
            rows.append(row(variant, "; ".join(changed) or "nothing", record.trial["recipe"]))
        columns = ("variant", f"differs from {start} in", "fingerprint")
        table, recipe = Table("recipes", columns, tuple(rows), text_columns=3), write_recipe(firsts[start].recipe)
        told = {"cite": trial["cite"], "notes": trial["notes"], "data": sorted(trial["data"].items())}
        facts.append({"task": task, "reference": start, "table": table, "recipe": recipe, **told})
    return facts


def environment_line(trial: dict[str, Any]) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in trial["environment"].items())
    return f"code {trial['code']}; {machine}"


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """`training.batch` -> 16."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found


def failed_checks(study: StudyFiles, name: str) -> list[dict[str, str]]:
    """What each failed check found, in its own words."""
    task, unknown = study.verdict["tasks"][name], dict.fromkeys(("id", "name", "level", "meaning"), "")
    variants = dict.fromkeys([*task.get("scores", {}), *task.get("passports", {}), *study.records.get(name, {})])
    return [
        {**unknown, **finding, "variant": variant}
        for variant in variants
        for finding in study.passport(name, variant).get("findings", [])
        if finding.get("verdict") == "FAIL"
    ]
