"""What the study's page shows out of the trials themselves: curves, maps, ledger, recipes, fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairtrial.recipe_file import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report.bands import band_chart, band_of
from fairtrial.report.curves import Curve, curves_of, loss_curve
from fairtrial.report.map_svg import MOST_CELLS, large_map, mean_over_heads, small_map, without_future
from fairtrial.report.rounding import MISSING, few_digits
from fairtrial.report.study_folder import StudyFolder
from fairtrial.report.table import Cell, Table, row, without_empty_columns

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
