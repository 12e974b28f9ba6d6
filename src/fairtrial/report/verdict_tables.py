"""A verdict as tables, and as lines for the terminal, Markdown or LaTeX. The study page shows the same tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from fairtrial.report.table import FORMATS as TABLE_FORMATS
from fairtrial.report.table import MISSING, Cell, Table, markdown_escape, plain, row, wrapped
from fairtrial.report.words import (
    KINDS,
    few_digits,
    finite,
    is_number,
    plain_number,
    probability,
    strides_note,
    with_interval,
)
from fairtrial.statistics.outcomes import LANGUAGE, is_accuracy
from fairtrial.statistics.sentences import base

FORMATS = ("text", "markdown", "latex")
SUBSETS = ("all", "clean", "contaminated")
VERDICTS = {
    "better": "better", "worse": "worse", "same": "practically equal", "undetected": "no detectable difference",
    "too_few_seeds": "too few seeds", "not_comparable": "not comparable", "loses": "loses", "beats": "beats it",
    "above": "above, not clearly", "below": "below, not clearly", "equal": "the same",
    "checkpoint_better": "better, these checkpoints", "checkpoint_worse": "worse, these checkpoints",
    "checkpoint_same": "practically equal, these checkpoints",
    "checkpoint_undetected": "no detectable difference, these checkpoints",
}  # fmt: skip
BESIDE = ("bits per byte", "perplexity without unknown words", "unknown words")
LEVELS = {
    "pass": Cell("passed"), "red": Cell("failed", kind="not_comparable"), "amber": Cell("failed, amber", kind="remark"),
    "unaudited": Cell("not audited", kind="not_comparable"),
}  # fmt: skip
Task = dict[str, Any]
Row = dict[str, Any]
Makers = tuple[Callable[[Task], Table | None], ...]


def verdict_lines(
    verdict: dict[str, Any], form: str = "text", *, every: bool = True, narrow: bool = False
) -> list[str]:
    """Sentences first, then the tables. `narrow`: of each task one, which fits a column of a paper."""
    name, sentences = verdict.get("name", ""), verdict.get("sentences", [])
    if form == "markdown":
        lines = [f"# {markdown_escape(name)}", "", *(f"- {markdown_escape(sentence)}" for sentence in sentences)]
    elif form == "latex":
        needed = "booktabs,tabularx" if narrow else "booktabs"
        lines = [f"% needs \\usepackage{{{needed}}}", *(f"% {plain(sentence)}" for sentence in [name, *sentences])]
    else:
        lines = [plain(name), ""] if name else []
        for sentence in sentences:
            lines += wrapped(sentence, first="- ")
    for table in verdict_tables(verdict, MAIN + FURTHER if every else (narrow_scores,) if narrow else MAIN):
        lines += ["", *TABLE_FORMATS[form](table)]
    return lines


def verdict_tables(verdict: dict[str, Any], makers: Makers | None = None) -> list[Table]:
    """The tables of every task, the most important first: all of them, or those of `makers`."""
    found = []
    for name, task in verdict.get("tasks", {}).items():
        for maker in MAIN + FURTHER if makers is None else makers:
            if (table := maker(task)) is not None:
                found.append(replace(table, title=f"{task_title(name)}: {table.title}"))
    return found


def task_title(name: str) -> str:
    return KINDS[name].capitalize() if name in KINDS else name


def is_perplexity(task: Task) -> bool:
    return task.get("metric", "accuracy") == "perplexity"


def lower_is_better(task: Task) -> bool:
    return not task.get("higher_is_better", task.get("metric") not in LANGUAGE)


def metric_text(task: Task) -> str:
    metric = task.get("metric", "accuracy")
    if lower_is_better(task):
        return f"{metric}, lower is better"
    return f"{metric} in %" if is_accuracy(metric) else f"{metric}, higher is better"


def difference_unit(task: Task) -> str:
    return "% of perplexity" if is_perplexity(task) else task.get("unit", "points")


def stamp_of(task: Task, variant: str) -> str:
    """What is shown beside a variant's name wherever it appears."""
    passport = task.get("passports", {}).get(variant, {})
    if passport.get("level") == "unaudited":
        return "not audited"
    if passport.get("level") != "red":
        return ""
    return "failed passport, accepted" if passport.get("accepted") else "failed passport"


def named(task: Task, variant: str) -> Cell:
    return Cell(variant, stamp_of(task, variant))


def verdict_cell(comparison: Row) -> Cell:
    verdict = comparison.get("verdict", "")
    kind = base(verdict) if verdict in VERDICTS else ""  # checkpoints have the colours of variants
    return Cell(VERDICTS.get(verdict, verdict or MISSING), kind=kind)


def estimate_text(estimate: dict[str, Any]) -> str:
    """A mean in the hundreds is a perplexity: its decimals mean nothing unless the interval is narrow."""
    mean = estimate.get("mean")
    least = 0 if is_number(mean) and mean > 100 else 1
    return with_interval(mean, estimate.get("low"), estimate.get("high"), least=least)


def shown_difference(task: Task, comparison: Row) -> tuple[float | None, float | None, float | None]:
    """Difference, low and high as a reader sees them: points, or per cent of the other's perplexity."""
    values = [comparison.get(key) for key in ("difference", "low", "high")]
    if is_perplexity(task) and comparison.get("metric", "perplexity") == "perplexity":
        ratios = [comparison.get(key) for key in ("ratio", "ratio_low", "ratio_high")]
        values = [percent_change(ratio, value) for ratio, value in zip(ratios, values, strict=True)]
    return values[0], values[1], values[2]


def percent_change(ratio: float | None, log_ratio: float | None) -> float | None:
    if not is_number(ratio):
        if not is_number(log_ratio) or log_ratio > 700:
            return None
        ratio = math.exp(log_ratio)
    return 100 * (ratio - 1)


def shown_least(task: Task, value: float | None) -> float | None:
    """A smallest difference, which has no sign, in the unit of `shown_difference`."""
    if is_perplexity(task):
        return percent_change(None, value)
    return value if is_number(value) else None


def least_text(task: Task, value: float | None) -> str:
    shown = shown_least(task, value)
    return plain_number(shown, 1 if shown is None or shown >= 0.095 else 2 if shown >= 0.0095 else 4)


def some(
    title: str, columns: tuple[str, ...], rows: Iterable[tuple[Cell, ...]], note: str = "", *, text_columns: int = 1
) -> Table | None:
    """A table without empty columns; None without rows."""
    table = Table(title, columns, tuple(rows), note, text_columns)
    return table.without_empty_columns() if table.rows else None


def comparisons(task: Task) -> Table | None:
    found = task.get("comparisons", [])
    rows = (comparison_row(task, one, "p_adjusted") for one in found)
    against = " and ".join(dict.fromkeys(named(task, one.get("against", "")).stamped for one in found))
    columns = ("variant", "test set", "verdict", "difference", "p (Holm)", "seeds", "items", "80% power", "more needed")
    least = least_text(task, task.get("least_difference"))
    note = "Difference with its 95% interval; 80% power: the difference that a study like this detects in 4 of 5 cases"
    if least != MISSING:
        note += f"; least difference of interest, fixed before any result: {least} {difference_unit(task)}"
    title = f"compared with {against}, in {difference_unit(task)}"
    return some(title, columns, rows, f"{note}.", text_columns=3)


def exploratory(task: Task) -> Table | None:
    rows = []
    for one in task.get("exploratory", []):
        if one.get("difference") is None:
            continue  # a subset of too few items
        cells = comparison_row(task, one, "q")
        percent = is_perplexity(task) and one.get("metric", "perplexity") == "perplexity"
        unit = "%" if percent else one.get("unit", "")
        metric = f"{one.get('metric', '')} ({unit})" if unit else one.get("metric", "")
        rows.append((*cells[:2], Cell(metric), *cells[3:7]))
    columns = ("variant", "test set", "metric", "difference", "q", "seeds", "items")
    note = "Not what the study asked: no verdict follows from these. q: false discovery rate over all of them."
    return some("exploratory comparisons", columns, rows, note, text_columns=3)


def comparison_row(task: Task, comparison: Row, chance: str) -> tuple[Cell, ...]:
    subset, needed = comparison.get("basis", "all"), MISSING
    if "more_seeds" in comparison:
        needed = f"{comparison['more_seeds']} seeds"
    elif "more_items" in comparison:
        needed = f"{few_digits(comparison['more_items'])} {'groups' if comparison.get('groups') else 'items'}"
    return row(
        named(task, comparison.get("variant", "")),
        comparison.get("set", ""),
        verdict_cell(comparison),
        difference_text(task, comparison),
        probability(comparison.get(chance)),
        few_digits(comparison.get("seeds")),
        few_digits(comparison.get("items")) + ("" if subset == "all" else f" {subset}"),
        least_text(task, comparison.get("smallest_detectable")),
        needed,
    )


def difference_text(task: Task, comparison: Row) -> str:
    """`-0.5 [-5.3, +4.3]`."""
    return with_interval(*shown_difference(task, comparison), sign=True)


def scores(task: Task) -> Table | None:
    """Variants first, then what needs no transformer."""
    rows = []
    for test_set in set_names(task):
        for cell, by_set, ours in contenders(task):
            estimates = by_set.get(test_set, {})
            cell = cell if ours else Cell(f"{cell.text} (no transformer)")
            means = [estimate_text(estimates.get(subset, {})) for subset in SUBSETS]
            rows.append(row(cell, test_set, *means, *beside_cells(task, estimates.get("all", {}))))
    columns = ("variant", "test set", "all items", "clean items", "contaminated items", *BESIDE)
    note = "Mean over seeds, 95% interval; contaminated: items that also occur in the training set."
    note += f" {task['metric_why']}" if task.get("metric_why") else ""
    note += strides_of(task)
    return some(f"scores ({metric_text(task)})", columns, rows, note, text_columns=2)


SHORT_VERDICTS = {"same": "equal", "undetected": "unclear", "too_few_seeds": "few seeds", "not_comparable": "none"}
MEANINGS = {
    "unclear": "no detectable difference", "equal": "no difference of interest",
    "none": "not comparable", "few seeds": "fewer than a verdict needs",
}  # fmt: skip


def narrow_scores(task: Task) -> Table | None:
    """Scores, differences and verdicts, on the items that verdicts are on; of what needs no transformer, the best."""
    judged = {(one.get("variant"), one.get("set")): one for one in task.get("comparisons", [])}
    found: list[tuple[Cell, ...]] = []
    sign = 1 if lower_is_better(task) else -1
    for test_set in set_names(task):
        subset, items = basis_of(task, test_set)
        items = next((one["items"] for one in judged.values() if one.get("set") == test_set and "items" in one), items)
        found.append((Cell(f"{test_set} ({few_digits(items)}{'' if subset == 'all' else f' {subset}'} items)"),))
        simple = []
        for cell, by_set, ours in contenders(task):
            estimate = by_set.get(test_set, {}).get(subset, {})
            mean = estimate_text({"mean": estimate.get("mean")})
            one = judged.get((cell.text, test_set), {})
            verdict = verdict_cell(one).text if one else MISSING
            verdict = SHORT_VERDICTS.get(one.get("verdict", ""), verdict)
            difference = difference_text(task, one) if one else MISSING
            if ours:
                found.append(row(cell, mean, difference, verdict))
            elif is_number(estimate.get("mean")):
                simple.append((sign * estimate["mean"], row(f"{cell.text} (no transformer)", mean, MISSING, MISSING)))
        found += [cells for _, cells in sorted(simple, key=lambda each: each[0])[:1]]
    against = " and ".join(dict.fromkeys(str(one.get("against", "")) for one in judged.values()))
    seeds = sorted({one["seeds"] for one in judged.values() if is_number(one.get("seeds"))})
    note = f"Mean over {' or '.join(map(str, seeds))} seeds." if seeds else "Mean over seeds."
    if any(base(one.get("verdict", "")) != one.get("verdict", "") for one in judged.values()):
        note = "One checkpoint of each."
    if judged:
        note += f" Difference from {against} in {difference_unit(task)}, with its 95% interval; the verdict is after"
        note += " Holm's correction."
    used = {cells[-1].text for cells in found}
    note += "".join(f" {word.capitalize()}: {meaning}." for word, meaning in MEANINGS.items() if word in used)
    note += strides_of(task)
    metric = task.get("metric", "accuracy")
    columns = ("variant", "score", "difference", "verdict")
    table = Table(metric_text(task), columns, tuple(found), note, narrow=True)
    return table if len(found) > len(set_names(task)) and metric else None


def basis_of(task: Task, test_set: str) -> tuple[str, int | None]:
    """The items that verdicts on a test set are on, and how many they are."""
    facts = task.get("sets", {}).get(test_set, {})
    subset = facts.get("basis", "all")
    return subset, facts.get("items" if subset == "all" else subset)


def strides_of(task: Task) -> str:
    return strides_note({name: facts["context"] for name, facts in task.get("sets", {}).items() if "context" in facts})


def beside_cells(task: Task, estimate: dict[str, Any]) -> tuple[str, ...]:
    """A language model's score with every byte counted, and without unknown words; of all items. Where bits per byte
    are compared, perplexities are not."""
    bits, known, share = (estimate.get(key) for key in ("bits_per_byte", "perplexity_without_unknown", "unknown_share"))
    if not is_perplexity(task):
        bits = known = None
    return (
        plain_number(bits, 3),
        plain_number(known, 0 if is_number(known) and known > 100 else 1),
        f"{share:.1%}" if is_number(share) else MISSING,
    )


def contenders(task: Task) -> Iterator[tuple[Cell, dict[str, Any], bool]]:
    """Name, scores by test set, and whether it is a transformer."""
    for variant, by_set in task.get("scores", {}).items():
        yield named(task, variant), by_set, True
    for baseline, by_set in task.get("baselines", {}).items():
        yield Cell(baseline), by_set, False


def set_names(task: Task) -> list[str]:
    every = [task.get("sets", {}), *(by_set for _, by_set, _ in contenders(task))]
    return list(dict.fromkeys(name for names in every for name in names))


def versus_baselines(task: Task) -> Table | None:
    """A row for each variant, a column for each baseline; the subset that verdicts are on comes first."""
    baselines: dict[str, None] = {}
    rows: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for one in task.get("against_baselines", []):
        verdict, baseline = verdict_cell(one), one.get("baseline", one.get("against", ""))
        baselines[baseline] = None
        kind = "unfit" if verdict.kind == "not_comparable" else verdict.kind
        place = (one.get("variant", ""), one.get("set", ""), one.get("basis", ""))
        rows.setdefault(place, {})[baseline] = Cell(f"{verdict.text} {difference_text(task, one)}", kind=kind)

    def secondary(place: tuple[str, str, str]) -> bool:
        return bool(task.get("sets", {}).get(place[1], {}).get("basis", "all") != place[2])

    cells = (
        row(named(task, place[0]), *place[1:], *(rows[place].get(name, Cell(MISSING)) for name in baselines))
        for place in sorted(rows, key=secondary)
    )
    unit = difference_unit(task)
    note = f"Difference in {unit}, 95% interval; the word is after Holm's correction, not the interval."
    columns = ("variant", "test set", "subset", *baselines)
    return some("compared with what needs no transformer", columns, cells, note, text_columns=3)


def data_audit(task: Task) -> Table | None:
    levels = {"RED": "not_comparable", "AMBER": "remark"}
    rows = []
    for finding in task.get("contamination", {}).get("findings", []):
        if (verdict := finding.get("verdict")) in levels:
            id_, name, where, shown, why = (finding.get(key, "") for key in ("id", "name", "where", "shown", "meaning"))
            rows.append(row(f"{id_} {name}", where, Cell(verdict.lower(), kind=levels[verdict]), shown, why))
    note = "Failed checks of the data audit; `fairtrial audit --data` shows examples."
    return some("audit of the data", ("check", "where", "level", "found", "meaning"), rows, note, text_columns=5)


def copies(task: Task) -> Table | None:
    rows = []
    for name, facts in task.get("sets", {}).items():
        counts = [facts.get(key) for key in ("items", "exact", "near", "clean")]
        items, exact, near = counts[:3]
        copied = MISSING if None in (exact, near) or not items else f"{(exact + near) / items:.1%}"
        rows.append(row(name, facts.get("basis", ""), *map(few_digits, counts), copied))
    columns = ("test set", "verdict on", "items", "exact duplicates", "near duplicates", "clean", "contaminated")
    return some("test items that also occur in the training set", columns, rows, text_columns=2)


def reuse(task: Task) -> Table | None:
    rows = []
    for variant, by_set in task.get("peeks", {}).items():
        for name, use in by_set.items():
            picked, honest = use.get("picked_on_test"), use.get("honest")
            scores = MISSING if picked is None or honest is None else f"{picked:.1f} instead of {honest:.1f}"
            watched = "yes" if use.get("watched") else "no"
            rows.append(row(named(task, variant), name, watched, few_digits(use.get("reads")), scores))
    columns = ("variant", "test set", "scored while training", "times, all seeds", "best step picked on test")
    note = ""
    if any(cells[4].text != MISSING for cells in rows):
        note = "A step picked on test flatters: the first number would be claimed, the second is unbiased"
        note += "; perplexity while training is over non-overlapping windows." if lower_is_better(task) else "."
    return some("use of the test sets", columns, rows, note, text_columns=3)


def learning(task: Task) -> Table | None:
    """Whether each variant was trained long enough, by its validation curves."""
    rows = []
    for variant, by_seed in task.get("learning", {}).get("training", {}).items():
        ends, best_steps = ([seed.get(key) for seed in by_seed.values()] for key in ("end", "best_step"))
        if found := finite(best_steps):
            counts = [f"{ends.count(end)} of {len(ends)}" for end in ("still improving", "settled", "overfitted")]
            steps = max(seed.get("steps", 0) for seed in by_seed.values())
            rows.append(row(named(task, variant), *counts, f"{median(found):,.0f} of {steps:,}"))
    columns = ("variant", "underfitted", "settled", "overfitted", "best step")
    note = (
        "Seeds, by their loss on validation. Underfitted: still improving at the last step, so train longer;"
        " overfitted: worse since its best."
    )
    return some("was training long enough?", columns, rows, note)


def cost(task: Task) -> Table | None:
    rows = []
    for variant, facts in task.get("cost", {}).items():
        sizes = few_digits(facts.get("parameters")), few_digits(facts.get("flops_per_step"), whole_below=1e6)
        seconds, ratio, memory = (facts.get(key) for key in ("seconds_per_step", "seconds_ratio", "peak_memory_mb"))
        milliseconds = MISSING if seconds is None else few_digits(1000 * seconds)
        relative = MISSING if ratio is None else f"{ratio:.2f}×"
        rows.append(row(named(task, variant), *sizes, milliseconds, relative, plain_number(memory, 0)))
    columns = ("variant", "parameters", "FLOPs per step", "ms per step", "time, relative", "peak memory, MB")
    return some("cost", columns, rows)


def passports(task: Task) -> Table | None:
    rows = []
    for variant, facts in task.get("passports", {}).items():
        level, failed = facts.get("level", ""), ", ".join(facts.get("failed", [])) or MISSING
        rows.append(row(named(task, variant), LEVELS.get(level, Cell(level)), failed))
    return some("passports", ("variant", "audit", "failed checks"), rows, text_columns=3)


def search(task: Task) -> Table | None:
    rows = []
    for variant, facts in task.get("search", {}).get("variants", {}).items():
        best = ", ".join(f"{key} = {value}" for key, value in facts.get("best", {}).items())
        tried = (few_digits(facts.get("tries")), plain_number(facts.get("validation"), 1))
        rows.append(row(named(task, variant), best, *tried))
    columns = ("variant", "chosen on validation", "tries", f"validation ({metric_text(task)})")
    return some("search", columns, rows, "A try never scores a test set.", text_columns=2)


def equal_cost(task: Task) -> Table | None:
    """Each variant at the equal recipe, and at the baseline's budget."""
    facts, rows = task.get("match", {}), []
    what = facts.get("budget", "").replace("flops", "FLOPs")
    for variant, own in facts.get("variants", {}).items():
        for test_set, (one, other) in beside(task.get("comparisons", []), variant, own.get("twin", variant)).items():
            adjusted = f"{own['field']} = {own['value']}" if "twin" in own else "nothing"
            shares = (percent(own.get("before")), adjusted, percent(own.get("after", own.get("before"))))
            verdicts = (cell for each in (one, other) for cell in (verdict_cell(each), difference_text(task, each)))
            rows.append(row(named(task, variant), test_set, *verdicts, *shares))
    columns = (
        "variant",
        "test set",
        "equal recipe",
        "difference",
        f"equal {what}",
        "difference",
        what,
        "adjusted",
        "then",
    )
    note = f"{what}: relative to the baseline's, before and after one field was adjusted."
    return some(f"at equal {what}", columns, rows, note, text_columns=3)


def tuning(task: Task) -> Table | None:
    """The verdicts on tuned variants, and those on the same variants as they were given."""
    before, rows = task.get("untuned", {}).get("comparisons", []), []
    for variant in dict.fromkeys(one.get("variant", "") for one in before):
        for test_set, (one, other) in beside([*task.get("comparisons", []), *before], variant).items():
            verdicts = (cell for each in (one, other) for cell in (verdict_cell(each), difference_text(task, each)))
            rows.append(row(named(task, variant), test_set, *verdicts))
    columns = ("variant", "test set", "tuned", "difference", "untuned", "difference")
    note = "Untuned: every variant and the baseline as they were given; a family of comparisons of its own."
    return some("tuned and untuned", columns, rows, note, text_columns=3)


def beside(comparisons: list[Row], variant: str, twin: str = "") -> dict[str, tuple[Row, Row]]:
    """The first comparison of a variant and the last one of it, or of its twin, on each test set."""
    found: dict[str, tuple[Row, Row]] = {}
    for one in comparisons:
        test_set = one.get("set", "")
        if one.get("variant") == variant and test_set not in found:
            found[test_set] = (one, one)
        elif one.get("variant") == (twin or variant) and test_set in found:
            found[test_set] = (found[test_set][0], one)
    return found


def percent(ratio: float | None) -> str:
    return MISSING if ratio is None else f"{100 * (ratio - 1):+.1f}%"


def failures(task: Task) -> Table | None:
    rows = (
        row(named(task, failure.get("variant", "")), str(failure.get("seed", "")), failure.get("error", ""))
        for failure in task.get("failures", [])
    )
    return some("trials that failed", ("variant", "seed", "error"), rows, text_columns=3)


MAIN = (comparisons, equal_cost, tuning, scores, versus_baselines, learning, cost, failures)
FURTHER = (copies, data_audit, reuse, passports, exploratory, search)
