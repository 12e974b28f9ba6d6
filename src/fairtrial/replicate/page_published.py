"""The page's tables of published numbers: every one of them with ours beside it, or with the reason why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from fairtrial.duration import Duration
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.facts import Aside, Figure, asides, counts, settings
from fairtrial.replicate.own_measure import Retried
from fairtrial.replicate.page_tables import table
from fairtrial.replicate.run import Replication
from fairtrial.report.rounding import few_digits, with_interval

NOT_RUN = "not run"
WORDS = {
    "shape.length": "tokens seen at once",
    "shape.hidden": "width of the feed-forward layer",
    "shape.classifier_hidden": "width of the classifier's hidden layer",
    "tokens.min_count": "fewest times that a word must be seen",
    "training.duration": "length of training",
}


def in_full(value: Any) -> str:
    """A published number with all its digits."""
    if isinstance(value, list):
        return ", ".join(map(in_full, value))
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        return f"{value:g}"
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)


def figures_table(rows: Sequence[Retried], found: Replication) -> list[str]:
    lines = []
    for row in rows:
        figure = row.figure
        ours = with_interval(row.mean, *(row.interval or (None, None)))
        name = f"{figure.variant} ({figure.told})" if figure.told else figure.variant
        lines.append(
            [name, figure.set, how(figure), in_full(figure.value), ours, seeds(row), row.place, honest(row, found)]
        )
    return table(["variant", "set", "measure", "published", "ours", "our seeds", "place", "honest"], lines)


def how(figure: Figure) -> str:
    if figure.at is not None:
        return f"{figure.measure}, {moment(figure.at)}"
    return figure.measure + (", best on test" if figure.picked_on_test and figure.set != "train" else "")


def moment(at: Duration) -> str:
    return f"after {at}" if at.count else "before training"


def seeds(row: Retried) -> str:
    return f"{few_digits(min(row.by_seed), 4)} to {few_digits(max(row.by_seed), 4)}"


def honest(row: Retried, found: Replication) -> str:
    evidence = found.evidences[row.figure.study]
    if evidence.outcomes.stamp(row.figure.variant):
        return "none: its passport is red"
    if row.honest is None or row.honest["mean"] is None:
        return ""
    return f"{with_interval(row.honest['mean'], row.honest['low'], row.honest['high'])} ({row.honest_how})"


def curve_tables(rows: Sequence[Retried]) -> list[str]:
    """A table for each variant's curves: a row for each moment, two columns for each set."""
    lines = []
    for variant, chosen in grouped(rows).items():
        sets = list(dict.fromkeys(row.figure.set for row in chosen))
        moments = sorted({row.figure.at for row in chosen if row.figure.at}, key=lambda at: at.count)
        known = {(row.figure.set, row.figure.at): row for row in chosen}
        unit = moments[0].unit.rstrip("s")
        columns = [unit, *(f"{name}: {what}" for name in sets for what in ("published", "ours"))]
        cells = [[f"{at.count:g}", *(cell for name in sets for cell in point(known.get((name, at))))] for at in moments]
        lines += [f"{variant[1]}, {variant[2]}, {unit} by {unit}:", "", *table(columns, cells), ""]
    return lines


def grouped(rows: Sequence[Retried]) -> dict[tuple[str, str, str], list[Retried]]:
    """By study, variant and measure."""
    found: dict[tuple[str, str, str], list[Retried]] = {}
    for row in rows:
        found.setdefault((row.figure.study, row.figure.variant, row.figure.measure), []).append(row)
    return found


def point(row: Retried | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return in_full(row.figure.value), f"{with_interval(row.mean, *(row.interval or (None, None)))} {row.place}"


def parameters_table(found: Replication) -> list[str]:
    from fairtrial.replicate.same_setting import our_count

    rows = []
    for count in counts():
        if count.report not in found.reports:
            continue
        evidence, told = finished(found, count.study), [count.report, count.study, count.counted]
        if evidence is None:
            rows.append([*told, in_full(count.value), NOT_RUN, "", ""])
            continue
        ours = our_count(count, evidence)
        apart = "equal" if ours == count.value else f"{ours - count.value:+,}"
        rows.append([*told, in_full(count.value), f"{ours:,}", apart, count.why if ours != count.value else ""])
    return table(["report", "model", "counted", "published", "ours, counted so", "difference", "why"], rows)


def settings_table(found: Replication) -> list[str]:
    from fairtrial.replicate.same_setting import our_setting

    rows = []
    for block in settings():
        if block.report not in found.reports and not (block.report == "the course" and set(found.reports) - {"r4"}):
            continue
        evidence = finished(found, block.study)
        for name, value in block.values.items():
            shown = NOT_RUN if evidence is None else in_full(our_setting(name, evidence))
            why = "" if shown in (NOT_RUN, in_full(value)) else block.why.get(name, "")
            words = WORDS.get(name, name.split(".")[-1].replace("_", " "))
            rows.append([block.report, block.study, words, in_full(value), shown, why])
    return table(["report", "model", "setting", "published", "ours", "why"], rows)


def finished(found: Replication, study: str) -> Evidence | None:
    """The evidence of a study whose baseline has records."""
    evidence = found.evidences.get(study)
    return evidence if evidence is not None and evidence.has(evidence.outcomes.baseline) else None


def missed_table(found: Replication) -> list[str]:
    """What is published and not retried, and why: for good, or with the data and trials at hand."""
    rows = [
        [each.report, each.what, named_values(each.values), each.why, beside(each, found.evidences)]
        for each in asides()
        if each.report in found.reports
    ]
    missed: dict[tuple[str, ...], dict[str, list[Figure]]] = {}
    for each in found.missed:
        figure = each.figure
        what = f"{figure.set}, {figure.measure}"
        what += "" if figure.at is None else ", as it was trained" if figure.in_curve else f", {moment(figure.at)}"
        group = missed.setdefault((figure.report, figure.study, what, each.why), {})
        group.setdefault(figure.variant, []).append(figure)
    for (report, study, what, why), variants in missed.items():
        values = {name: ", ".join(in_full(each.value) for each in figures) for name, figures in variants.items()}
        rows.append([report, f"{study}: {what}", "; ".join(f"{name} {each}" for name, each in values.items()), why, ""])
    return table(["report", "figure", "published", "why not", "beside it"], rows) if rows else []


def named_values(values: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} {in_full(value)}" for name, value in values.items())


def beside(aside: Aside, evidences: Mapping[str, Evidence]) -> str:
    """Ours of another model, told as such."""
    if aside.beside is None:
        return ""
    study, variant = aside.beside
    evidence = evidences.get(study)
    if evidence is None or not evidence.has(variant):
        return "another model, MiniLM: see docs/finetune.md"
    results = evidence.results(variant)
    parts = {"train": [each["train"] for each in results], "validation": [each["validation"] for each in results]}
    parts |= {name: [each["tests"][name] for each in results] for name in evidence.outcomes.sets}
    told = ", ".join(f"{name} {100 * mean(each['accuracy'] for each in rows):.1f}" for name, rows in parts.items())
    record = next(iter(evidence.records[variant].values()))
    rate = record.recipe.training.learning_rate
    return (
        f"another model, MiniLM, {variant} at {rate:g}, {record.trial['documents']['train']:,} sentences,"
        f" {record.result['steps']} steps, mean of {len(results)} seeds: {told}; more of MiniLM: docs/finetune.md"
    )
