"""How a verdict's words and numbers are told, once for tables and page.

A verdict as tables: one list for the terminal, Markdown, LaTeX and the page.

A whole verdict as lines: for the terminal, a Markdown page, a LaTeX paper.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fairtrial.report.table import (
    Cell,
    Table,
    as_latex,
    as_markdown,
    as_text,
    markdown_escape,
    row,
    without_empty_columns,
)
from fairtrial.report.text import plain
from fairtrial.report.words import (
    KINDS,
    MISSING,
    decimals_for,
    few_digits,
    interval_text,
    is_number,
    plain_number,
    probability,
    share,
    with_interval,
)

BASES = ("all", "clean", "contaminated")
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "same": "practically equal",
    "undetected": "no detectable difference",
    "too_few_seeds": "too few seeds",
    "not_comparable": "not comparable",
    "loses": "loses",
    "beats": "beats it",
    "above": "above, not clearly",
    "below": "below, not clearly",
    "equal": "the same",
}


def task_title(name: str) -> str:
    return KINDS[name].capitalize() if name in KINDS else name


def is_perplexity(task: dict[str, Any]) -> bool:
    return task.get("metric", "accuracy") == "perplexity"


def metric_text(task: dict[str, Any]) -> str:
    return "perplexity, lower is better" if is_perplexity(task) else f"{task.get('metric', 'accuracy')} in %"


def difference_unit(task: dict[str, Any]) -> str:
    return "% of perplexity" if is_perplexity(task) else task.get("unit", "points")


def stamp_of(task: dict[str, Any], variant: str) -> str:
    """What stands beside a variant's name wherever it appears."""
    passport = task.get("passports", {}).get(variant, {})
    if passport.get("level") != "red":
        return ""
    return "failed passport, accepted" if passport.get("accepted") else "failed passport"


def named(task: dict[str, Any], variant: str) -> Cell:
    return Cell(variant, stamp_of(task, variant))


def verdict_cell(comparison: dict[str, Any]) -> Cell:
    verdict = comparison.get("verdict", "")
    return Cell(VERDICTS.get(verdict, verdict or MISSING), kind=verdict if verdict in VERDICTS else "")


def estimate_text(estimate: dict[str, Any]) -> str:
    """A mean in the hundreds is a perplexity: its decimals mean nothing unless the interval is and_masks."""
    mean = estimate.get("mean")
    least = 0 if mean is not None and is_number(mean) and mean > 100 else 1
    return with_interval(mean, estimate.get("low"), estimate.get("high"), least=least)


def shown_difference(
    task: dict[str, Any], comparison: dict[str, Any]
) -> tuple[float | None, float | None, float | None]:
    """Difference, low and high as a reader sees them: points, or per cent of the other's perplexity."""
    keys = ("difference", "low", "high")
    values = [comparison.get(key) for key in keys]
    if not is_perplexity(task) or comparison.get("metric", "perplexity") != "perplexity":
        return values[0], values[1], values[2]
    ratios = [comparison.get(key) for key in ("ratio", "ratio_low", "ratio_high")]
    shown = [percent_change(ratio, value) for ratio, value in zip(ratios, values, strict=True)]
    return shown[0], shown[1], shown[2]


def percent_change(ratio: float | None, log_ratio: float | None) -> float | None:
    if ratio is None or not is_number(ratio):
        if log_ratio is None or not is_number(log_ratio) or log_ratio > 700:
            return None
        ratio = math.exp(log_ratio)
    return 100 * (ratio - 1)


def shown_least(task: dict[str, Any], value: float | None) -> float | None:
    """A smallest difference, which has no sign, in the unit of `shown_difference`."""
    if value is None or not is_number(value):
        return None
    return percent_change(None, value) if is_perplexity(task) else value


def least_text(task: dict[str, Any], value: float | None) -> str:
    shown = shown_least(task, value)
    if shown is None:
        return MISSING
    return plain_number(shown, 1 if shown >= 0.095 else 2)


Task = dict[str, Any]
AUDIT = "what an audit of the data found amiss; fairtrial audit --data shows examples"
NEEDED = ("more seeds needed", "more items needed")


def verdict_tables(verdict: dict[str, Any], *, every: bool = True) -> list[Table]:
    """The tables of every task, the most important first; or only those that a verdict cannot be read without."""
    makers = MAIN + FURTHER if every else MAIN
    found = []
    for name, task in verdict.get("tasks", {}).items():
        for maker in makers:
            table = maker(task)
            if table is not None:
                found.append(replace(table, title=f"{task_title(name)}: {table.title}"))
    return found


def some(table: Table) -> Table | None:
    return without_empty_columns(table, MISSING) if table.rows else None


def comparisons(task: Task) -> Table | None:
    found = task.get("comparisons", [])
    rows = tuple(comparison_row(task, each, "p_adjusted") for each in found)
    against = " and ".join(dict.fromkeys(named(task, each.get("against", "")).whole for each in found))
    columns = (
        "variant",
        "test set",
        "items",
        "verdict",
        "difference",
        "p (Holm)",
        "seeds",
        "count",
        "could see",
        *NEEDED,
    )
    least = least_text(task, task.get("least_difference"))
    note = "difference with its 95% interval; could see: the difference that such a study finds in 4 of 5 cases"
    if least != MISSING:
        note += f"; smallest difference of interest, set before: {least} {difference_unit(task)}"
    return some(Table(f"compared with {against}, in {difference_unit(task)}", columns, rows, note, words=4))


def exploratory(task: Task) -> Table | None:
    rows = []
    for each in task.get("exploratory", []):
        cells = comparison_row(task, each, "q")
        percent = is_perplexity(task) and each.get("metric", "perplexity") == "perplexity"
        unit = "%" if percent else each.get("unit", "")
        metric = f"{each.get('metric', '')} ({unit})" if unit else each.get("metric", "")
        rows.append((*cells[:3], Cell(metric), *cells[4:8]))
    columns = ("variant", "test set", "items", "metric", "difference", "q", "seeds", "count")
    note = "not what the study asked: no verdict follows from these; q: false discovery rate over all of them"
    return some(Table("exploratory comparisons", columns, tuple(rows), note, words=4))


def comparison_row(task: Task, each: dict[str, Any], chance: str) -> tuple[Cell, ...]:
    return row(
        named(task, each.get("variant", "")),
        each.get("set", ""),
        each.get("basis", ""),
        verdict_cell(each),
        difference_text(task, each),
        probability(each.get(chance)),
        few_digits(each.get("seeds")),
        few_digits(each.get("items")),
        least_text(task, each.get("smallest_detectable")),
        str(each.get("more_seeds", MISSING)),
        str(each.get("more_items", MISSING)),
    )


def difference_text(task: Task, each: dict[str, Any]) -> str:
    """`-0.5 [-5.3, +4.3]`."""
    difference, low, high = shown_difference(task, each)
    return f"{plain_number(difference, decimals_for(low, high), sign=True)} {interval_text(low, high, sign=True)}"


def scores(task: Task) -> Table | None:
    """Variants first, then what needs no transformer."""
    rows = []
    for set_name in set_names(task):
        for cell, by_set, ours in contenders(task):
            estimates = by_set.get(set_name, {})
            cell = cell if ours else Cell(f"{cell.text} (no transformer)")
            rows.append(row(cell, set_name, *(estimate_text(estimates.get(basis, {})) for basis in BASES)))
    columns = ("variant", "test set", "all items", "clean items", "contaminated items")
    note = "mean over seeds, 95% interval; contaminated: items that stand in the training text, too"
    return some(Table(f"scores ({metric_text(task)})", columns, tuple(rows), note, words=2))


def contenders(task: Task) -> Iterator[tuple[Cell, dict[str, Any], bool]]:
    """Name, scores by test set, and whether it is a transformer."""
    for variant, by_set in task.get("scores", {}).items():
        yield named(task, variant), by_set, True
    for baseline, by_set in task.get("baselines", {}).items():
        yield Cell(baseline), by_set, False


def set_names(task: Task) -> list[str]:
    every = [task.get("sets", {}), *(by_set for _, by_set, _ in contenders(task))]
    return list(dict.fromkeys(name for names in every for name in names))


def against_baselines(task: Task) -> Table | None:
    """A row for each variant, a column for each thing that needs no transformer."""
    found = task.get("against_baselines", [])
    baselines = list(dict.fromkeys(each.get("baseline", each.get("against", "")) for each in found))
    rows: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for each in found:
        verdict = verdict_cell(each)
        text = f"{verdict.text} {difference_text(task, each)}"
        place = (each.get("variant", ""), each.get("set", ""), each.get("basis", ""))
        rows.setdefault(place, {})[each.get("baseline", each.get("against", ""))] = Cell(
            text, kind="unfit" if verdict.kind == "not_comparable" else verdict.kind
        )
    told_rows = tuple(
        row(named(task, variant), set_name, basis, *(cells.get(name, Cell(MISSING)) for name in baselines))
        for (variant, set_name, basis), cells in sorted(
            rows.items(), key=lambda each: not is_decisive(task, *each[0][1:])
        )
    )
    note = f"difference in {difference_unit(task)}, 95% interval; the word is after Holm's correction, not the interval"
    return some(
        Table(
            "against what needs no transformer", ("variant", "test set", "items", *baselines), told_rows, note, words=3
        )
    )


def data_audit(task: Task) -> Table | None:
    """What an audit of the data found amiss."""
    levels = {"RED": "not_comparable", "AMBER": "remark"}
    rows = tuple(
        row(
            f"{each.get('id', '')} {each.get('name', '')}",
            each.get("where", ""),
            Cell(each["verdict"].lower(), kind=levels[each["verdict"]]),
            each.get("shown", ""),
            each.get("meaning", ""),
        )
        for each in task.get("contamination", {}).get("findings", [])
        if each.get("verdict") in levels
    )
    return some(Table("audit of the data", ("check", "where", "level", "found", "meaning"), rows, AUDIT, words=5))


def is_decisive(task: Task, set_name: str, basis: str) -> bool:
    """Whether the verdict is on these items."""
    return bool(task.get("sets", {}).get(set_name, {}).get("basis", "all") == basis)


def copies(task: Task) -> Table | None:
    rows = []
    for name, each in task.get("sets", {}).items():
        counts = (each.get("items"), each.get("exact"), each.get("near"), each.get("clean"))
        copied = sum(each[kind] for kind in ("exact", "near")) if "exact" in each and "near" in each else None
        rows.append(row(name, each.get("basis", ""), *map(few_digits, counts), share(copied, each.get("items"))))
    columns = ("test set", "verdict on", "items", "exact copies", "near copies", "clean", "contaminated")
    return some(Table("test items that stand in the training text", columns, tuple(rows), words=2))


def peeks(task: Task) -> Table | None:
    rows = []
    for variant, by_set in task.get("peeks", {}).items():
        for name, each in by_set.items():
            picked, honest = each.get("picked_on_test"), each.get("honest")
            told = MISSING if picked is None or honest is None else f"{picked:.1f} would be {honest:.1f}"
            watched = "yes" if each.get("watched") else "no"
            rows.append(row(named(task, variant), name, watched, few_digits(each.get("reads")), told))
    columns = ("variant", "test set", "watched while training", "looks, all seeds", "best moment picked on test")
    flattered = any(cells[4].text != MISSING for cells in rows)
    note = "the best moment picked on test flatters: the first figure is what would be told, the second what is true"
    note += "; a look takes perplexity over windows side by side" * (task.get("metric") == "perplexity")
    return some(Table("looks at the test sets", columns, tuple(rows), note if flattered else "", words=3))


def cost(task: Task) -> Table | None:
    rows = []
    for variant, each in task.get("cost", {}).items():
        numbers = [each.get(key) for key in ("flops_per_step", "seconds_per_step", "seconds_ratio", "peak_memory_mb")]
        flops, seconds, ratio, memory = numbers
        milliseconds = MISSING if seconds is None else few_digits(1000 * seconds)
        told = (few_digits(each.get("parameters")), few_digits(flops, whole_below=1e6), milliseconds)
        beside = (MISSING if ratio is None else f"{ratio:.2f}×", MISSING if memory is None else f"{memory:,.0f}")
        rows.append(row(named(task, variant), *told, *beside))
    columns = (
        "variant",
        "parameters",
        "FLOPs per step",
        "milliseconds per step",
        "time against baseline",
        "peak memory, MB",
    )
    return some(Table("cost", columns, tuple(rows)))


def passports(task: Task) -> Table | None:
    rows = []
    for variant, each in task.get("passports", {}).items():
        level = each.get("level", "")
        verdict = {"pass": "passed", "red": "failed", "amber": "failed, amber"}.get(level, level)
        kind = {"red": "not_comparable", "amber": "remark"}.get(level, "")
        rows.append(row(named(task, variant), Cell(verdict, kind=kind), ", ".join(each.get("failed", [])) or MISSING))
    return some(Table("passports", ("variant", "audit", "failed checks"), tuple(rows), words=3))


def search(task: Task) -> Table | None:
    rows = []
    for variant, each in task.get("search", {}).get("variants", {}).items():
        best = ", ".join(f"{key} = {value}" for key, value in each.get("best", {}).items())
        tried = (few_digits(each.get("tries")), plain_number(each.get("validation"), 1))
        rows.append(row(named(task, variant), best, *tried))
    columns = ("variant", "chosen on validation", "tries", f"validation ({metric_text(task)})")
    return some(Table("search", columns, tuple(rows), "a try never reads a test set", words=2))


def failures(task: Task) -> Table | None:
    rows = tuple(
        row(named(task, each.get("variant", "")), str(each.get("seed", "")), each.get("error", ""))
        for each in task.get("failures", [])
    )
    return some(Table("trials that failed", ("variant", "seed", "error"), rows, words=3))


MAIN = (comparisons, scores, against_baselines, cost, failures)
FURTHER = (copies, data_audit, peeks, passports, exploratory, search)


WIDTH = 100
FORMATS: dict[str, Callable[[Table], list[str]]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}


def verdict_lines(verdict: dict[str, Any], form: str = "text", *, every: bool = True) -> list[str]:
    """Sentences first, then the tables."""
    lines = opening(verdict, form)
    for table in verdict_tables(verdict, every=every):
        lines += ["", *FORMATS[form](table)]
    return lines


def opening(verdict: dict[str, Any], form: str) -> list[str]:
    name, sentences = verdict.get("name", ""), verdict.get("sentences", [])
    if form == "markdown":
        return [f"# {markdown_escape(name)}", "", *(f"- {markdown_escape(sentence)}" for sentence in sentences)]
    if form == "latex":
        return ["% needs \\usepackage{booktabs}", *(f"% {plain(sentence)}" for sentence in [name, *sentences])]
    lines = [plain(name), ""] if name else []
    for sentence in sentences:
        lines += textwrap.wrap(plain(sentence), WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines
