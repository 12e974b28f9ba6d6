"""A verdict, or one comparison, described as sentences, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairtrial.description import MISSING, Cell, Description, IntervalChart, IntervalRow, Row, Table, row
from fairtrial.formatting import (
    KINDS,
    few_digits,
    is_number,
    plain_number,
    probability,
    strides_note,
    with_interval,
)
from fairtrial.results.sentences import VOCABULARIES_DIFFER
from fairtrial.results.values import (
    AuditLevel,
    Comparison,
    Cost,
    Interval,
    Metric,
    Question,
    Score,
    Speedup,
    TaskVerdict,
    Verdict,
    VerdictKind,
)

MOST_LIMITS = 3
MOST_LINES, NARROW = 12, 76  # before the first table, in a terminal of 80 columns
SUBSETS = ("all", "clean", "contaminated")
VERDICTS = {kind: kind.value.replace("_", " ") for kind in VerdictKind}
BESIDE = ("bits per byte", "perplexity without unknown words", "unknown words")
LEVELS = {
    AuditLevel.PASS: Cell("passed"),
    AuditLevel.RED: Cell("failed", kind="not_comparable"),
    AuditLevel.AMBER: Cell("failed, amber", kind="remark"),
    AuditLevel.UNAUDITED: Cell("not audited", kind="not_comparable"),
}
Makers = tuple[Callable[[TaskVerdict], Table | None], ...]


def describe_verdict(verdict: Verdict, *, every: bool = False) -> Description:
    """The first screen, then the tables."""
    makers = MAIN + FURTHER if every else MAIN
    charts = [comparison_chart(task.comparisons, f"difference from {task.baseline}") for task in verdict.tasks.values()]
    drawn = [chart for chart in charts if chart.rows]
    return replace(first_screen(verdict, every), tables=verdict_tables(verdict, makers), charts=drawn)


def first_screen(verdict: Verdict, every: bool = False) -> Description:
    """Every answer, what they rest on, and the most important limits; the others are notes."""
    pairs = list(zip(verdict.sentences, verdict.text, strict=True))
    answers = [text for each, text in pairs if not each.limit and not each.basis]
    basis = [text for each, text in pairs if each.basis]
    limits = [text for each, text in pairs if each.limit]
    shown, lines = limits[:0], 1 + sum(map(lines_of, (*answers, *basis)))
    for text in limits[:MOST_LIMITS]:
        lines += lines_of(text)
        if lines <= MOST_LINES or not shown:
            shown.append(text)
    shown = limits if every else shown
    return Description(
        answers, (), verdict.name, basis=basis, limits=shown, notes=[text for text in limits if text not in shown]
    )


def lines_of(text: str) -> int:
    """In a narrow terminal."""
    return math.ceil(len(text) / NARROW)


def comparison_chart(
    comparisons: Sequence[Comparison], title: str, name: Callable[[str], str] = lambda variant: variant
) -> IntervalChart:
    """Every difference with its 95% interval; of a single one also that of each seed. `name`: of a variant."""
    sets = {each.test_set for each in comparisons}
    rows = tuple(
        IntervalRow(
            f"{name(each.variant)}, {each.test_set}" if len(sets) > 1 else name(each.variant),
            *(each.shown.estimate, each.shown.low, each.shown.high),
            tuple(map(each.metric.shown, each.by_seed)) if len(comparisons) == 1 else (),
            each.verdict.value,
        )
        for each in comparisons
    )
    metrics = dict.fromkeys(each.metric for each in comparisons)
    margin = next((metric.shown(comparisons[0].margin) or None for metric in metrics), None)
    unit = " or ".join(metric.difference_unit for metric in metrics)
    ways = {metric.higher_is_better for metric in metrics}
    unit += f" ({'higher' if True in ways else 'lower'} is better)" if len(ways) == 1 else ""
    where = f" on {sets.pop()}" if len(sets) == 1 and "" not in sets else ""
    return IntervalChart(f"{title}{where}, 95% intervals", unit, rows, difference=True, margin=margin)


def verdict_tables(verdict: Verdict, makers: Makers) -> list[Table]:
    """The tables of every task, the most important first."""
    tables = []
    for name, task in verdict.tasks.items():
        for maker in makers:
            if (table := maker(task)) is not None:
                tables.append(replace(table, title=f"{task_title(name)}: {table.title}"))
    return tables


def describe_comparison(comparison: Comparison) -> Description:
    shares = ", ".join(f"{name} {share:.0%}" for name, share in comparison.variance_shares.items()) or MISSING
    percent = "%" if comparison.metric.in_percent else ""
    columns = ("verdict", "difference", "p", "seeds", "items", "detectable at 80% power", "variance")
    cells = row(
        verdict_cell(comparison),
        difference_text(comparison) + f" {percent}".rstrip(),
        probability(comparison.p),
        comparison.seeds,
        comparison.items,
        detectable_text(comparison) + percent,
        shares,
    )
    chart = comparison_chart([comparison], f"{comparison.variant} - {comparison.baseline}")
    return Description((comparison.sentence,), (Table("", columns, (cells,)),), charts=(chart,))


def comparison_numbers(comparison: Comparison) -> dict[str, object]:
    """A row of a data frame."""
    difference = comparison.difference
    return {
        "variant": comparison.variant,
        "baseline": comparison.baseline,
        "test_set": comparison.test_set,
        "subset": comparison.subset,
        "metric": comparison.metric.name,
        "unit": comparison.metric.unit,
        "verdict": comparison.verdict.value,
        "question": comparison.question.value,
        "difference": difference.estimate,
        "low": difference.low,
        "high": difference.high,
        **{name: getattr(comparison, name) for name in ("p", "p_adjusted", "q", "seeds", "items", "margin")},
        **dict(zip(("detectable_low", "detectable_high"), comparison.detectable or (None, None), strict=True)),
        **{f"variance_{name}": share for name, share in comparison.variance_shares.items()},
        "sentence": comparison.sentence,
    }


def task_title(name: str) -> str:
    return KINDS[name].capitalize() if name in KINDS else name


def metric_text(metric: Metric) -> str:
    if not metric.higher_is_better:
        return f"{metric.name}, lower is better"
    return f"{metric.name} in %" if metric.is_accuracy else f"{metric.name}, higher is better"


def named(task: TaskVerdict, variant: str) -> Cell:
    """With what is shown beside a variant's name wherever it appears."""
    audit = task.audits.get(variant)
    if audit is None or audit.level in (AuditLevel.PASS, AuditLevel.AMBER):
        return Cell(variant)
    if audit.level == AuditLevel.UNAUDITED:
        return Cell(variant, "not audited")
    return Cell(variant, "failed leak audit, accepted" if audit.accepted else "failed leak audit")


def verdict_cell(comparison: Comparison) -> Cell:
    checkpoints = ", these checkpoints" if comparison.question == Question.CHECKPOINTS else ""
    few = f" (too few {'runs' if comparison.runs else 'seeds'})" if comparison.too_few_seeds else ""
    few = few or (" (exploratory)" if comparison.judged_before else "")
    text = VERDICTS[comparison.verdict] + (few or checkpoints)
    return Cell(text, kind=comparison.verdict.value)


def score_text(mean: Interval, has_items: bool = True) -> str:
    """A mean in the hundreds is a perplexity: its decimals mean nothing unless the interval is narrow."""
    least = 0 if is_number(mean.estimate) and mean.estimate > 100 else 1 if has_items else 4
    return with_interval(mean.estimate, mean.low, mean.high, least=least)


def difference_text(comparison: Comparison) -> str:
    """`-0.5 [-5.3, +4.3]`."""
    shown, alone = comparison.shown, comparison.runs is not None and comparison.difference.low is None
    return with_interval(shown.estimate, shown.low, shown.high, sign=True, least=4 if alone else 1)


def size_text(metric: Metric, size: float | None) -> str:
    """A smallest difference, which has no sign."""
    shown = metric.shown(size)
    if is_number(shown) and 0 < shown < 1e-4:
        return f"{shown:.2g}"
    digits = 1 if not shown or shown >= 0.95 else 1 - math.floor(math.log10(shown))  # two that count
    return plain_number(shown, digits)


def detectable_text(comparison: Comparison) -> str:
    """`1.2 to 2.4`"""
    if comparison.detectable is None:
        return MISSING
    return " to ".join(dict.fromkeys(size_text(comparison.metric, end) for end in comparison.detectable))


def some(
    title: str, columns: tuple[str, ...], rows: Iterable[Row], note: str = "", *, text_columns: int = 1
) -> Table | None:
    """A table without empty columns; None without rows."""
    table = Table(title, columns, tuple(rows), note, text_columns)
    return table.without_empty_columns() if table.rows else None


def comparisons(task: TaskVerdict) -> Table | None:
    before = any(each.judged_before for each in task.comparisons)
    rows = [comparison_row(task, each, each.q if each.judged_before else each.p_adjusted) for each in task.comparisons]
    against = " and ".join(dict.fromkeys(named(task, each.baseline).stamped for each in task.comparisons))
    sets = {each.test_set for each in task.comparisons}
    if len(sets) == 1 and "" not in sets:  # said once, above the table
        rows, against = [(cells[0], Cell(""), *cells[2:]) for cells in rows], f"{against} on {sets.pop()}"
    columns = (
        *("variant", "test set", "verdict", "difference", "q" if before else "p (Holm)", "seeds", "items"),
        *("detectable at 80% power", "more needed"),
    )
    unit, margin = task.metric.difference_unit, size_text(task.metric, task.margin)
    note = "Difference with its 95% interval; verdicts are Holm-corrected, intervals are not"
    if before:
        note = "Difference with its 95% interval. Exploratory: the study was judged before; q: false discovery rate"
    if margin != MISSING and task.margin:
        note += f"; margin: {margin} {unit}"
    return some(f"compared with {against}, in {unit}", columns, rows, f"{note}.", text_columns=3)


def exploratory(task: TaskVerdict) -> Table | None:
    return _exploratory(task, [each for each in task.exploratory if not by_itself(task, each)], "exploratory: other")


def test_sets(task: TaskVerdict) -> Table | None:
    own = [each for each in task.exploratory if by_itself(task, each)]
    return _exploratory(task, own, "exploratory: each test set by itself")


def by_itself(task: TaskVerdict, comparison: Comparison) -> bool:
    """Whether this is the judged metric on the judged items of one test set."""
    test_set = task.sets.get(comparison.test_set)
    return comparison.metric == task.metric and test_set is not None and comparison.subset == test_set.subset


def _exploratory(task: TaskVerdict, comparisons: Sequence[Comparison], title: str) -> Table | None:
    rows = []
    for each in comparisons:
        if each.difference.estimate is None:
            continue  # a subset of too few items
        cells = comparison_row(task, each, each.q)
        unit = "%" if each.metric.in_percent else each.metric.unit
        rows.append((*cells[:2], Cell(f"{each.metric.name} ({unit})"), *cells[3:7]))
    columns = ("variant", "test set", "metric", "difference", "q", "seeds", "items")
    note = "Exploratory: these do not decide the verdict. q: false discovery rate over all of them."
    return some(title, columns, rows, note, text_columns=3)


def comparison_row(task: TaskVerdict, comparison: Comparison, chance: float | None) -> Row:
    needed = MISSING
    if comparison.more_seeds is not None:
        needed = f"{comparison.more_seeds} seeds"
    elif comparison.more_items is not None:
        needed = f"{few_digits(comparison.more_items)} {'groups' if comparison.groups else 'items'}"
    return row(
        named(task, comparison.variant),
        comparison.test_set,
        verdict_cell(comparison),
        difference_text(comparison),
        probability(chance),
        few_digits(comparison.seeds),
        few_digits(comparison.items or None) + ("" if comparison.subset == "all" else f" {comparison.subset}"),
        detectable_text(comparison),
        needed,
    )


def scores(task: TaskVerdict) -> Table | None:
    """Variants first, then what needs no transformer."""
    rows, runs = [], not any(each.items for each in task.sets.values())  # one score per run
    for test_set in set_names(task):
        for cell, by_set, ours in contenders(task):
            by_subset = by_set.get(test_set, {})
            cell = cell if ours else Cell(f"{cell.text} (no transformer)")
            means = [
                score_text(by_subset[subset].mean, by_subset[subset].items > 0) if subset in by_subset else MISSING
                for subset in SUBSETS
            ]
            count = few_digits(len(by_subset["all"].seeds)) if runs and by_subset else MISSING
            rows.append(row(cell, test_set, count, *means, *beside_cells(task, by_subset.get("all"))))
    whole = "mean of runs" if runs else "all items"
    columns = ("variant", "test set", "runs", whole, "clean items", "contaminated items", *BESIDE)
    note = "Mean over seeds, 95% interval; contaminated: items that also occur in the training set."
    note = "Mean over runs, 95% interval." if runs else note
    note += f" {VOCABULARIES_DIFFER}" * task.vocabularies_differ + strides_of(task)
    return some(f"scores ({metric_text(task.metric)})", columns, rows, note, text_columns=2)


def strides_of(task: TaskVerdict) -> str:
    return strides_note({name: each.context for name, each in task.sets.items() if each.context is not None})


def beside_cells(task: TaskVerdict, score: Score | None) -> tuple[str, ...]:
    """A language model's score with every byte counted, and without unknown words; of all items. Where bits per byte
    are compared, perplexities are not."""
    if score is None:
        return (MISSING,) * 3
    shown = task.metric.in_percent
    bits, known, share = score.bits_per_byte, score.perplexity_without_unknown, score.unknown_share
    return (
        plain_number(bits if shown else None, 3),
        plain_number(known if shown else None, 0 if is_number(known) and known > 100 else 1),
        f"{share:.1%}" if is_number(share) else MISSING,
    )


def contenders(task: TaskVerdict) -> Iterator[tuple[Cell, Mapping[str, Mapping[str, Score]], bool]]:
    """Name, scores by test set and subset, and whether it is a transformer."""
    for variant, by_set in task.scores.items():
        yield named(task, variant), by_set, True
    for baseline, by_set in task.baseline_scores.items():
        yield Cell(baseline), by_set, False


def set_names(task: TaskVerdict) -> list[str]:
    every = [task.sets, *(by_set for _, by_set, _ in contenders(task))]
    return list(dict.fromkeys(name for names in every for name in names))


def versus_baselines(task: TaskVerdict) -> Table | None:
    """A row for each variant, a column for each baseline; the subset that verdicts are on comes first."""
    places: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for each in task.baseline_comparisons:
        cell = Cell(f"{VERDICTS[each.verdict]} {difference_text(each)}", kind=each.verdict.value)
        places.setdefault((each.variant, each.test_set, each.subset), {})[each.baseline] = cell
    baselines = list(dict.fromkeys(each.baseline for each in task.baseline_comparisons))

    def secondary(place: tuple[str, str, str]) -> bool:
        return place[1] in task.sets and task.sets[place[1]].subset != place[2]

    cells = (
        row(named(task, place[0]), *place[1:], *(places[place].get(name, Cell(MISSING)) for name in baselines))
        for place in sorted(places, key=secondary)
    )
    unit = task.metric.difference_unit
    note = f"Difference in {unit}, 95% interval. Verdicts are Holm-corrected; intervals are not."
    columns = ("variant", "test set", "subset", *baselines)
    return some("compared with models that need no transformer", columns, cells, note, text_columns=3)


def data_audit(task: TaskVerdict) -> Table | None:
    rows = [
        row(
            f"{each.id} {each.name}",
            each.where,
            Cell(each.level.value, kind=LEVELS[each.level].kind),
            each.measured,
            each.meaning,
        )
        for each in task.data_findings or ()
    ]
    note = "Failed checks of the data audit; `fairtrial data audit --data` shows examples."
    return some("audit of the data", ("check", "where", "level", "measured", "meaning"), rows, note, text_columns=5)


def speedups(task: TaskVerdict) -> Table | None:
    return speedup_table(task.speedups, task.cost) if task.speedups else None


def speedup_table(speedups: Sequence[Speedup], cost: Mapping[str, Cost] | None = None) -> Table:
    """How many times less training reaches the same loss: in steps and, where the cost of a step is known, in FLOPs and
    seconds."""
    rows = []
    for each in speedups:
        ours, theirs = ((cost or {}).get(name, Cost()) for name in (each.variant, each.baseline))
        flops = theirs.flops_per_step / ours.flops_per_step if theirs.flops_per_step and ours.flops_per_step else None
        seconds = 1 / ours.seconds_ratio if ours.seconds_ratio else None
        shown = [MISSING if factor is None else speedup_text(each.ratio, factor) for factor in (1.0, flops, seconds)]
        where = (
            (few_digits(each.cost), few_digits(each.cost / each.ratio.estimate))
            if each.cost and each.ratio.estimate
            else (MISSING, MISSING)
        )
        rows.append(
            row(each.variant, each.baseline, f"{each.loss:.3f}" if each.loss is not None else MISSING, *where, *shown)
        )
    columns = (
        "variant",
        "baseline",
        "loss",
        "reached by the baseline at",
        "by the variant at",
        "less training",
        "fewer FLOPs",
        "less time",
    )
    note = "Ratio with its 95% interval over seeds, at the lowest loss that every run reaches. Exploratory."
    return Table("training to the same loss", columns, tuple(rows), note, text_columns=2).without_empty_columns()


def speedup_text(ratio: Interval, factor: float) -> str:
    """`1.31 [1.22, 1.40]`"""
    ends = [f"{end * factor:.2f}" for end in (ratio.estimate, ratio.low, ratio.high) if end is not None]
    return f"{ends[0]} [{ends[1]}, {ends[2]}]" if len(ends) == 3 else ends[0] if ends else MISSING


def speedup_numbers(speedup: Speedup) -> dict[str, object]:
    """A row of a data frame."""
    ratio = speedup.ratio
    return {
        "variant": speedup.variant,
        "baseline": speedup.baseline,
        "less_training": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "loss": speedup.loss,
        "baseline_cost": speedup.cost,
        "problem": None if speedup.problem is None else speedup.problem.value,
        "sentence": speedup.sentence,
    }


def copies(task: TaskVerdict) -> Table | None:
    rows = []
    for name, each in task.sets.items():
        share = MISSING if each.copies is None or not each.items else f"{each.copies / each.items:.1%}"
        rows.append(row(name, each.subset, *map(few_digits, (each.items, each.exact, each.near, each.clean)), share))
    columns = ("test set", "verdict on", "items", "exact duplicates", "near duplicates", "clean", "contaminated")
    return some("test items that also occur in the training set", columns, rows, text_columns=2)


def reuse(task: TaskVerdict) -> Table | None:
    rows = []
    for variant, by_set in task.test_reuse.items():
        for name, use in by_set.items():
            known = use.picked_on_test is not None and use.honest is not None
            claimed = f"{use.picked_on_test:.1f} instead of {use.honest:.1f}" if known else MISSING
            rows.append(row(named(task, variant), name, "yes" if use.watched else "no", few_digits(use.reads), claimed))
    columns = ("variant", "test set", "scored while training", "times, all seeds", "best step picked on test")
    note = ""
    if any(cells[4].text != MISSING for cells in rows):
        note = "Choosing the step on the test set overstates the score: the first number is biased, the second is not"
        note += "." if task.metric.higher_is_better else "; perplexity while training is over non-overlapping windows."
    return some("use of the test sets", columns, rows, note, text_columns=3)


def cost(task: TaskVerdict) -> Table | None:
    rows = []
    for variant, each in task.cost.items():
        sizes = few_digits(each.parameters), few_digits(each.flops_per_step, whole_below=1e6)
        milliseconds = MISSING if each.seconds_per_step is None else few_digits(1000 * each.seconds_per_step)
        relative = MISSING if each.seconds_ratio is None else f"{each.seconds_ratio:.2f}×"
        rows.append(row(named(task, variant), *sizes, milliseconds, relative, plain_number(each.peak_memory_mb, 0)))
    columns = ("variant", "parameters", "FLOPs per step", "ms per step", "time, relative", "peak memory, MB")
    busy = {variant: each.load for variant, each in task.cost.items() if each.load is not None}
    note = ""
    if busy:
        note = f"The machine was busy while {', '.join(busy)} trained (load {max(busy.values()):.1f} per core):"
        note += " times are not comparable."
    return some("cost", columns, rows, note)


def audits(task: TaskVerdict) -> Table | None:
    rows = [
        row(named(task, variant), LEVELS[audit.level], ", ".join(audit.failed) or MISSING)
        for variant, audit in task.audits.items()
    ]
    return some("leak audits", ("variant", "audit", "failed checks"), rows, text_columns=3)


def search(task: TaskVerdict) -> Table | None:
    rows = []
    for variant, choice in task.search.variants.items() if task.search else ():
        best = ", ".join(f"{key} = {value}" for key, value in choice.best.items())
        rows.append(row(named(task, variant), best, few_digits(choice.tries), plain_number(choice.validation, 1)))
    columns = ("variant", "chosen on validation", "tries", f"validation ({metric_text(task.metric)})")
    return some("search", columns, rows, "A try never scores a test set.", text_columns=2)


def learning_rates(task: TaskVerdict) -> Table | None:
    """The curve that each learning rate was chosen from."""
    choices = {name: each for name, each in (task.search.variants if task.search else {}).items() if each.rates}
    rates = sorted({rate for each in choices.values() for rate in each.rates})
    rows = []
    for variant, choice in choices.items():
        for title, scores in (("a quarter", choice.scores), ("all", choice.whole)):
            by_rate = dict(zip(choice.rates, scores, strict=True))
            rows.append(row(named(task, variant), title, *(plain_number(by_rate.get(rate), 1) for rate in rates)))
    columns = ("variant", "of the training", *(f"{rate:g}" for rate in rates))
    note = "The two best rates after a quarter of the training are trained in full."
    return some(f"validation by learning rate ({metric_text(task.metric)})", columns, rows, note, text_columns=2)


def failures(task: TaskVerdict) -> Table | None:
    rows = (row(named(task, each.variant), str(each.seed), each.error) for each in task.failures)
    return some("trials that failed", ("variant", "seed", "error"), rows, text_columns=3)


MAIN: Makers = (comparisons, test_sets, scores, speedups, versus_baselines, cost, failures)
FURTHER: Makers = (copies, data_audit, reuse, audits, exploratory, search, learning_rates)
