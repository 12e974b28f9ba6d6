"""A study's page: one HTML file that needs no network and no script, made from the files of the study alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtrial.description import MISSING, Cell, Curve, IntervalRow, Table, row
from fairtrial.finding import FAIL
from fairtrial.formatting import decimals_for, few_digits, interval_text, plain_number, probability
from fairtrial.recipe import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report import charts
from fairtrial.report.curves import curves_of, loss_curve
from fairtrial.report.page import environment_line, fragment, render, write_page
from fairtrial.report.study_files import StudyFiles
from fairtrial.results import verdict_tables as tables
from fairtrial.results.sentences import best_of_sentence, counted, subset_sentence
from fairtrial.results.values import Comparison, Question, Score, SearchSummary, TaskVerdict, Verdict
from fairtrial.stored_study import ParameterRow

LOSS_POINTS = 60
CURVES = {"nats": ("Training loss", "nats per answer"), "accuracy": ("Accuracy on {} during training", "share")}


def write_study_page(folder: Path, page: Path | None = None) -> Path:
    """`report.html` in the study's folder, unless another page is named."""
    study = StudyFiles.open(folder)
    study.check_unchanged()
    return write_page(page or folder / "report.html", lambda: study_page(study))


def write_verdict_page(verdict: Verdict, page: str | Path) -> Path:
    """A verdict without its study: of results from elsewhere."""
    return write_page(page, lambda: study_page(StudyFiles(Path(page).parent, verdict)))


def study_page(study: StudyFiles) -> str:
    verdict = study.verdict
    lead, sentences = sentences_by_task(verdict)
    page = render(
        "study",
        verdict.name or study.folder.resolve().name,
        reference=verdict.baseline,
        lead=lead,
        sentences=sentences,
        glance=glance(verdict),
        counts=counts_line(study),
        tasks=[about_task(study, name) for name in verdict.tasks],
        recipes=recipe_facts(study, verdict.baseline),
        environments=list(dict.fromkeys(map(environment_line, study.trials()))),
        study_text=study.study_text,
        failures=any(task.failures for task in verdict.tasks.values()),
        results=verdict.results,
        checkpoints=any(each.question == Question.CHECKPOINTS for each in verdict.comparisons),
    )
    return re.sub(r"\n\s*\n+", "\n", page)


def verdict_fragment(verdict: Verdict) -> str:
    """The first screen of a study's page, and the comparisons below it, for a notebook."""
    lead, sentences = sentences_by_task(verdict)
    tasks = [
        {"title": tables.task_title(name), "unit": task.metric.difference_unit, "comparisons": comparison_panel(task)}
        for name, task in verdict.tasks.items()
    ]
    return fragment(lead=lead, sentences=sentences, glance=glance(verdict), tasks=tasks, reference=verdict.baseline)


def counts_line(study: StudyFiles) -> str:
    """`3 variants, 8 seeds, 2 tasks, 48 trials`."""
    tasks, look = study.verdict.tasks.values(), study.verdict.look
    variants = len({name for task in tasks for name in task.scores})
    seeds = max((len(task.seeds) for task in tasks), default=0)
    counts = [(variants, "variant"), (seeds, "seed"), (len(tasks), "task"), (len(list(study.trials())), "trial")]
    line = ", ".join(counted(count, noun) for count, noun in counts if count)
    if look is None:
        return line
    further = "the last one" if look.next is None else f"the next is at {look.next}"
    return f"{line}; an interim look at {look.seeds} seeds ({further}), with its share of the 5% of false alarms"


def tries_line(search: SearchSummary | None) -> str:
    """Whether the variants were tuned alike: more tries mean more luck."""
    if search is None or search.tries is None:
        return ""
    same = len({choice.tries for choice in search.variants.values()}) == 1
    spread = "the same number for every variant that was searched" if same else "not the same number for every variant"
    return f"{search.tries} tries in all, {spread}."


def about_task(study: StudyFiles, name: str) -> dict[str, Any]:
    task, records = study.verdict.tasks[name], study.records.get(name, {})
    reference = task.baseline
    others = [variant for variant in dict.fromkeys([*task.scores, *records]) if variant != reference]
    styles = {reference: 0} | {variant: 1 + at % (charts.STYLES - 1) for at, variant in enumerate(others)}
    shown = [(tables.named(task, variant), style) for variant, style in styles.items() if variant in records]
    return {
        "name": name,
        "title": tables.task_title(name),
        "metric": tables.metric_text(task.metric),
        "strides": tables.strides_of(task),
        "vocabularies_differ": task.vocabularies_differ,
        "unit": task.metric.difference_unit,
        "lower_is_better": not task.metric.higher_is_better,
        "panels": score_panels(task),
        "comparisons": comparison_panel(task),
        "copy_bars": copy_bars(task),
        "curves": curve_charts([(cell.stamped, style, records[cell.text]) for cell, style in shown]),
        "legend": shown,
        "failed_checks": failed_checks(study, name),
        "ledger": ledger_tables(study.parameters.get(name, {}), task),
        "best_of": best_of_sentence(task.best_of, task.metric.name) if task.best_of else "",
        "tries": tries_line(task.search),
        "table": {maker.__name__: maker(task) for maker in tables.MAIN + tables.FURTHER},
    }


def sentences_by_task(verdict: Verdict) -> tuple[str, list[tuple[str, list[str]]]]:
    """The first sentence, and the others by task, where there are several."""
    titles = {name: tables.task_title(name) if len(verdict.tasks) > 1 else "" for name in verdict.tasks}
    groups: dict[str, list[str]] = {}
    for sentence in verdict.sentences[1:]:
        groups.setdefault(titles.get(sentence.task or "", ""), []).append(sentence.text)
    if not verdict.sentences:
        return "", []
    first = verdict.sentences[0]
    return ": ".join(filter(None, (titles.get(first.task or "", ""), first.text))), list(groups.items())


def glance(verdict: Verdict) -> dict[str, Any]:
    """Every verdict of the study in one small table: variants down, test sets across."""
    columns: dict[tuple[str, str], None] = {}
    rows: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    stamps: dict[str, str] = {}
    for name, task in verdict.tasks.items():
        for comparison in task.comparisons:
            column = (tables.task_title(name), comparison.test_set)
            columns[column] = None
            variant = tables.named(task, comparison.variant)
            stamps[variant.text] = variant.stamp or stamps.get(variant.text, "")
            shown, metric = comparison.shown, comparison.metric
            number = plain_number(shown.estimate, decimals_for(shown.low, shown.high), sign=True)
            unit = "%" if metric.in_percent else f" {metric.unit}"
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


def score_panels(task: TaskVerdict) -> list[dict[str, Any]]:
    """For each test set and subset, a row of dots for every variant. What the verdict is on comes first."""
    panels = []
    for name in tables.set_names(task):
        test_set = task.sets.get(name)
        decisive = test_set.subset if test_set else "all"
        for subset in sorted(tables.SUBSETS, key=lambda subset: subset != decisive):
            if drawn := draw_scores(task, name, subset):
                count = test_set.count(subset) if test_set else None
                title = f"{name}, {subset} items" + ("" if count is None else f" ({few_digits(count)})")
                aside = decisive == "all" != subset  # too few copies to matter
                panels.append({"title": title, "decisive": subset == decisive, "aside": aside, **drawn})
    return panels


def draw_scores(task: TaskVerdict, test_set: str, subset: str) -> dict[str, Any] | None:
    known = [(cell, by_set.get(test_set, {}).get(subset), ours) for cell, by_set, ours in tables.contenders(task)]
    shown = [(cell, score, ours) for cell, score, ours in known if score and score.mean.estimate is not None]
    inside = [number for _, score, ours in shown if ours for number in numbers_of(score)]
    outside = [numbers_of(score) for _, score, ours in shown if not ours]
    scale = charts.Scale.around(inside or [number for group in outside for number in group], near=outside)
    if scale is None:
        return None
    kinds = {
        each.variant: each.verdict.value
        for each in task.comparisons
        if (each.test_set, each.subset) == (test_set, subset)
    } | {task.baseline: "reference"}
    rows = []
    for cell, score, ours in shown:
        kind = "simple" if not ours else "not_comparable" if cell.stamp else kinds.get(cell.text, "")
        label = f"{cell.stamped}, {test_set}, {subset} items"
        mean = score.mean
        dots = IntervalRow(cell.text, mean.estimate, mean.low, mean.high, score.by_seed, kind)
        drawn = charts.interval_strip(dots, label, scale, seeds=task.seeds)
        rows.append({"name": cell, "chart": drawn, "figure": tables.score_text(score.mean), "kind": kind})
    return {"rows": rows, "axis": charts.axis_strip(scale)}


def numbers_of(score: Score) -> list[float | None]:
    return [score.mean.estimate, score.mean.low, score.mean.high, *score.by_seed]


def comparison_panel(task: TaskVerdict) -> dict[str, Any] | None:
    """All comparisons of a task on one scale that includes zero."""
    margin = task.metric.shown(task.margin)
    drawn = [
        IntervalRow(each.variant, each.shown.estimate, each.shown.low, each.shown.high, (), each.verdict.value)
        for each in task.comparisons
    ]
    scale = charts.scale_of(drawn, difference=True, margin=margin)
    if not task.comparisons or scale is None:
        return None
    rows = []
    for comparison, interval in zip(task.comparisons, drawn, strict=True):
        variant, verdict, shown = (
            tables.named(task, comparison.variant),
            tables.verdict_cell(comparison),
            comparison.shown,
        )
        label = f"{variant.stamped} against {comparison.baseline} on {comparison.test_set}, {verdict.text}"
        rows.append(
            {
                "name": variant,
                "where": f"{comparison.test_set}, {comparison.subset} items",
                "verdict": verdict,
                "chart": charts.interval_strip(interval, label, scale, difference=True, margin=margin),
                "figure": plain_number(shown.estimate, decimals_for(shown.low, shown.high), sign=True),
                "interval": interval_text(shown.low, shown.high, sign=True),
                "p": probability(comparison.p_adjusted),
                "sentence": comparison.sentence,
                "more": fine_print(comparison),
            }
        )
    least = tables.size_text(task.metric, task.margin)
    return {"rows": rows, "axis": charts.axis_strip(scale, sign=True), "least": least}


def fine_print(comparison: Comparison) -> str:
    """What a statistician asks next."""
    parts = [f"{few_digits(comparison.seeds)} seeds, {few_digits(comparison.items)} items"]
    if comparison.detectable is not None:
        parts.append(f"smallest detectable {tables.size_text(comparison.metric, comparison.detectable)}")
    if comparison.more_seeds is not None:
        parts.append(f"more seeds needed: {comparison.more_seeds}")
    if comparison.more_items is not None:
        parts.append(f"{'groups of test items' if comparison.groups else 'test items'} needed: {comparison.more_items}")
    if comparison.share_of_seeds_better and comparison.share_of_seeds_better.estimate is not None:
        parts.append(f"better in {comparison.share_of_seeds_better.estimate:.0%} of seeds")
    if comparison.variance_shares:
        sources = ", ".join(f"{name} {value:.0%}" for name, value in comparison.variance_shares.items())
        parts.append(f"variance of the difference: {sources}")
    return "; ".join(parts)


def copy_bars(task: TaskVerdict) -> list[dict[str, Any]]:
    """Shares of clean items, near duplicates and exact duplicates in each test set."""
    bars = []
    for name, each in task.sets.items():
        if each.items and each.copies is not None:
            clean = each.items - each.copies if each.clean is None else each.clean
            counts = {"exact": each.exact, "near": each.near, "clean": clean}
            parts = [(kind, count, 100 * count / each.items) for kind, count in counts.items() if count]
            bars.append({"name": name, "parts": parts, "items": few_digits(each.items), "why": subset_sentence(each)})
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


def ledger_tables(by_variant: Mapping[str, Sequence[ParameterRow]], task: TaskVerdict) -> list[Table]:
    """The parameters of each variant."""
    found = []
    for variant, lines in by_variant.items():
        rows = [row(each.component, each.formula, few_digits(each.count), few_digits(each.bias_free)) for each in lines]
        count, bias_free = sum(each.count for each in lines), sum(each.bias_free for each in lines)
        rows.append(row("sum", "", few_digits(count), few_digits(bias_free)))
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
            variant = tables.named(study.verdict.tasks[task], name) if task in study.verdict.tasks else Cell(name)
            rows.append(row(variant, "; ".join(changed) or "nothing", record.trial.recipe))
        columns = ("variant", f"differs from {start} in", "fingerprint")
        table, recipe = Table("recipes", columns, tuple(rows), text_columns=3), write_recipe(firsts[start].recipe)
        told = {"cite": trial.cite, "notes": trial.notes, "data": sorted(trial.data.items())}
        facts.append({"task": task, "reference": start, "table": table, "recipe": recipe, **told})
    return facts


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """`training.batch` -> 16."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found


def failed_checks(study: StudyFiles, name: str) -> list[dict[str, str]]:
    """What each failed check found, in its own words."""
    task = study.verdict.tasks[name]
    variants = dict.fromkeys([*task.scores, *task.audits, *study.records.get(name, {})])
    passports = {variant: study.passport(name, variant) for variant in variants}
    return [
        {"id": each.id, "name": each.name, "level": each.level, "meaning": each.meaning, "variant": variant}
        for variant, passport in passports.items()
        for each in (passport.findings if passport else ())
        if each.verdict == FAIL
    ]
