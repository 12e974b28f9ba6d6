"""What the study's page shows of one task, as plain values for its template."""

from __future__ import annotations

from typing import Any

from fairtrial.report.rounding import MISSING, decimals_for, few_digits, interval_text, plain_number, probability
from fairtrial.report.study_charts import Scale, axis_strip, difference_strip, score_strip
from fairtrial.report.table import Cell
from fairtrial.report.tables import contenders, set_names
from fairtrial.report.verdict_words import (
    BASES,
    estimate_text,
    least_text,
    metric_text,
    named,
    shown_difference,
    shown_least,
    task_title,
    verdict_cell,
)

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
