"""The page: one Markdown file with its figures, made from the records."""

from __future__ import annotations

from pathlib import Path

from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.judge.words import listed
from fairtrial.replicate.charts import claims_chart, curves_chart, layers_chart, published_chart
from fairtrial.replicate.counting import beside_counting
from fairtrial.replicate.facts import published
from fairtrial.replicate.own_measure import NO_TEST_SET, OF_TRAIN
from fairtrial.replicate.page_published import (
    curve_tables,
    figures_table,
    missed_table,
    parameters_table,
    settings_table,
)
from fairtrial.replicate.page_tables import alone_table, answers_table, flaws_table, marks_table, printed_table
from fairtrial.replicate.page_words import (
    ALONE,
    CURVES,
    FIGURES,
    FINGERPRINTS,
    FLAWS,
    LEFT_OUT,
    NOT_RETRIED,
    OPENING,
    PARAMETERS,
    PRINTED,
    QUICK,
    SENTENCES,
    SETTINGS,
)
from fairtrial.replicate.run import Replication
from fairtrial.report.words import spoken_time

COURSE_ITEMS = 750
UNITS = {"accuracy": "accuracy, %", "perplexity": "change of perplexity, % (to the left: lower)"}


def write_page(found: Replication, path: Path) -> Path:
    """The page and, in a folder of its name beside it, its figures."""
    with disk_errors(path.parent):
        path.with_suffix("").mkdir(parents=True, exist_ok=True)
    pictures = draw(found)
    for name, content in pictures.items():
        write_bytes(path.with_suffix("") / name, content)
    folder = path.with_suffix("").name
    write_text(path, "\n".join(lines(found, {name: f"{folder}/{name}" for name in pictures})) + "\n")
    return path


def draw(found: Replication) -> dict[str, bytes]:
    pictures = {}
    for key, evidence in found.evidences.items():
        rows = [row for row in found.retried if row.figure.study == key]
        # an untrained model would hide all that comes after
        curves = [row for row in rows if row.figure.in_curve and row.figure.at and row.figure.at.count]
        if curves:
            pictures[f"curves-{key}.svg"] = curves_chart(curves)
        rows = [row for row in rows if row.figure.at is None and row.figure.set not in NO_TEST_SET]
        rows = [row for row in rows if row.figure.measure != "sentence loss"]
        if rows:
            unit = "accuracy on all test items, %" if evidence.outcomes.metric == "accuracy" else rows[0].figure.measure
            title = f"{key}: published figures among ours, measured as the reports measured"
            pictures[f"published-{key}.svg"] = published_chart(rows, title, unit)
    for metric, unit in (
        ("accuracy", "difference, points (to the right: better)"),
        ("perplexity", UNITS["perplexity"]),
    ):
        told = [each for each in found.answers if each.decided and each.decided.comparison.metric.name == metric]
        if told:
            title = f"Claims about {metric}, retried: difference and 95% interval"
            pictures[f"claims-{metric}.svg"] = claims_chart(told, title, unit)
    if found.layers:
        pictures["layers.svg"] = layers_chart(found.layers)
    return pictures


def lines(found: Replication, pictures: dict[str, str]) -> list[str]:
    seeds = sorted({len(each.plan.study.seeds) for each in found.evidences.values()})
    trials = sum(len(records) for each in found.everything for records in each.records.values())
    return [
        "# The five reports, retried",
        "",
        *opening(found, trials, seeds),
        "",
        "## Claims",
        "",
        *answers_table(found.answers),
        "",
        *shown(pictures, "claims-"),
        *details(found),
        *beside_counting(found),
        "## Figures",
        "",
        FIGURES,
        "",
        *[line for report in found.reports for line in report_figures(found, report)],
        *shown(pictures, "published-"),
        *curves(found, pictures),
        *missed(found),
        *printed(found),
        "## Parameters",
        "",
        PARAMETERS,
        "",
        *parameters_table(found),
        "",
        "## Settings",
        "",
        SETTINGS,
        "",
        *settings_table(found),
        "",
        *flaws(found),
        *(["## Attention, layer by layer", "", *shown(pictures, "layers")] if found.layers else []),
        "## What was left out",
        "",
        *[f"- {line}" for line in (*found.left_out, *LEFT_OUT)],
        "",
        "## Fingerprints",
        "",
        FINGERPRINTS,
        "",
        *marks_table(found),
    ]


def opening(found: Replication, trials: int, seeds: list[int]) -> list[str]:
    counted = " or ".join(map(str, seeds))
    told = [
        OPENING,
        "",
        f"Made by `{found.command}` from {trials} trials ({counted} seeds of each variant), which took"
        f" {spoken_time(found.seconds)} with {counted_trials(found.width)} at a time. Every number is out of"
        " their records; the published ones are typed in from the reports.",
    ]
    if found.quick:
        told += [
            "",
            QUICK,
        ]
    return told


def counted_trials(width: int) -> str:
    return "one trial" if width == 1 else f"{width} trials"


def details(found: Replication) -> list[str]:
    told = []
    for report in found.reports:
        told += [f"### {report}: {published()['reports'][report]['about']}", ""]
        for each in found.answers:
            if each.claim.report != report:
                continue
            told += [f"**{each.claim.says}** *{each.headline.capitalize()}.* {each.because}"]
            if each.unsound:
                told += [f"The report's own comparison: {'; '.join(each.unsound)}."]
            told += [f"It rests on {listed(each.weak)}.", ""] if each.weak else [""]
    return told


def report_figures(found: Replication, report: str) -> list[str]:
    rows = [row for row in found.retried if row.figure.report == report and not row.figure.in_curve]
    if not rows:
        return []
    by_sentence = any(row.figure.measure.startswith("sentence") for row in rows)
    words = [SENTENCES.format(f"{OF_TRAIN:,}"), ""] if by_sentence and not found.quick else []
    return [f"### {report}", "", *figures_table(rows, found), "", *words]


def curves(found: Replication, pictures: dict[str, str]) -> list[str]:
    told = []
    for report in found.reports:
        rows = [row for row in found.retried if row.figure.report == report and row.figure.in_curve]
        told += [f"### {report}, as it was trained", "", *curve_tables(rows)] if rows else []
    return ["## Curves", "", CURVES, "", *shown(pictures, "curves-"), *told] if told else []


def missed(found: Replication) -> list[str]:
    rows = missed_table(found)
    return ["## Figures that were not retried", "", NOT_RETRIED, "", *rows, ""] if rows else []


def printed(found: Replication) -> list[str]:
    evidence = found.evidences.get("speeches-classify")
    items = 0 if evidence is None else evidence.pooled(evidence.outcomes.baseline).items
    rows = printed_table(found, items) if items == COURSE_ITEMS else []
    return ["## Numbers that can be", "", PRINTED, "", *rows, ""] if rows else []


def flaws(found: Replication) -> list[str]:
    table = flaws_table(found)
    if not table:
        return []
    told = [
        "## Where the code differs from the words",
        "",
        FLAWS,
        "",
        *table,
        "",
    ]
    if found.alone:
        told += [
            ALONE,
            "",
            *alone_table(found.alone),
            "",
        ]
    return told


def shown(pictures: dict[str, str], start: str) -> list[str]:
    chosen = [(name, place) for name, place in pictures.items() if name.startswith(start)]
    return [line for name, place in chosen for line in (f"![{name.removesuffix('.svg')}]({place})", "")]
