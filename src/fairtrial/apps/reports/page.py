"""The page: one Markdown file with its figures. Its prose and the frames of its tables are in page.md; here are the
rows, made from the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from fairtrial.apps.markdown import write_markdown
from fairtrial.apps.reports.charts import claims_chart, curves_chart, layers_chart, published_chart
from fairtrial.apps.reports.claims import NOT_RUN, Answer
from fairtrial.apps.reports.evidence import Decided, Evidence, our_counts, our_setting
from fairtrial.apps.reports.measures import NO_TEST_SET, TRAIN_SENTENCES, Retried
from fairtrial.apps.reports.published import HERE, Aside, asides, claims, counts, explain_accuracy, published, settings
from fairtrial.apps.reports.run import Replication
from fairtrial.recipe import Duration
from fairtrial.report import few_digits, spoken_time, with_interval
from fairtrial.statistics import SetOutcomes, counted, listed, score, scores_by_subset

ALL_ITEMS = 750  # test sentences of the speeches
FEWEST_ITEMS = 30  # of a column
MOST_FILES = 20  # that are listed: the embedded corpus has a file for each speech
SUBSETS = {"all": "all {}", "clean": "{} clean", "contaminated": "{} in training set"}
# differences between code and text that no claim rests on: report, study, as coded, as meant
MORE_FLAWS = (
    ("r4", "lm1b-lm", "re-weight by row", "re-weight causal"),
    ("r0", "speeches-classify", "learned, normed stream", "learned"),
)
UNITS = {
    "accuracy": "difference, points (to the right: better)",
    "perplexity": "change of perplexity, % (to the left: lower)",
}
WORDS = {
    "shape.length": "context length", "shape.hidden": "width of the feed-forward layer",
    "shape.classifier_hidden": "width of the classifier's hidden layer", "tokens.min_count": "minimum word count",
    "training.duration": "length of training",
}  # fmt: skip


def write_page(found: Replication, path: Path, *, command: str, quick: bool, seconds: float, width: int) -> Path:
    """The page and, in a folder of its name beside it, its figures. `command` made it, in so many seconds with so many
    trials at a time."""
    made = {"command": command, "quick": quick, "took": spoken_time(seconds), "at_a_time": counted(width, "trial")}
    return write_markdown(path, HERE / "page.md", draw(found), values_of(found) | made)


def values_of(found: Replication) -> dict[str, Any]:
    """What the template shows."""
    rows = {report: [row for row in found.retried if row.figure.report == report] for report in found.reports}
    single = {report: [row for row in group if not row.figure.in_curve] for report, group in rows.items()}
    in_curves = {report: [row for row in group if row.figure.in_curve] for report, group in rows.items()}
    files = {pair for each in found.evidences.values() for pair in each.plan.eval_sets[each.task].files.items()}
    return {
        "found": found,
        "about": published()["reports"],
        "trials": sum(len(records) for each in found.everything for records in each.records.values()),
        "seeds": sorted({len(each.plan.study.seeds) for each in found.evidences.values()}),
        "listed": listed,
        "claims": claim_rows(found.answers),
        "counting": counting_tables(found),
        "figures": {report: [figure_cells(row, found) for row in group] for report, group in single.items() if group},
        "by_sentence": {row.figure.report for row in found.retried if row.figure.measure.startswith("sentence")},
        "train_sentences": f"{TRAIN_SENTENCES:,}",
        "curves": {report: curve_tables(group) for report, group in in_curves.items() if group},
        "missed": missed_rows(found),
        "printed": printed_rows(found),
        "parameters": parameter_rows(found),
        "settings": setting_rows(found),
        "flaws": flaw_rows(found),
        "geometric_mean": lambda values: float(np.exp(np.log(values).mean())),
        "files": sorted(files) if len(files) <= MOST_FILES else [],
    }


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
    for metric, unit in UNITS.items():
        answers = [each for each in found.answers if each.decided and each.decided.comparison.metric.name == metric]
        if answers:
            title = f"Claims about {metric}, retried: difference and 95% interval"
            pictures[f"claims-{metric}.svg"] = claims_chart(answers, title, unit)
    if found.layers:
        pictures["layers.svg"] = layers_chart(found.layers)
    return pictures


def claim_rows(answers: Sequence[Answer]) -> Iterator[list[str]]:
    for each in answers:
        doubts = [*(f"unsound: {reason}" for reason in each.unsound), *each.weak]
        outcome, difference = f"**{each.outcome}**", size(each.decided)
        if each.at_one_rate is not None:
            outcome = f"at one rate **{each.at_one_rate.outcome}**; each at its own {outcome}"
            difference = f"at one rate {size(each.at_one_rate.decided)}; each at its own {difference or NOT_RUN}"
        yield [each.claim.report, each.claim.says, outcome, difference, "; ".join(doubts)]


def size(decided: Decided | None) -> str:
    if decided is None or (shown := decided.shown()) is None:
        return ""
    first, low, high = (f"{value:+.1f}" for value in shown)
    return f"{first}{decided.unit} [{low}, {high}]"


def printed_rows(found: Replication) -> list[list[str]]:
    """Whether the accuracies that the reports print are possible at all."""
    evidence = found.evidences.get("speeches-classify")
    if evidence is None or evidence.pooled(evidence.outcomes.baseline).items != ALL_ITEMS:
        return []
    rows = [row for row in published()["printed"] if row["report"] in found.reports]
    return [
        [row["report"], f"{printed} %", explain_accuracy(printed, ALL_ITEMS)]
        for row in rows
        for printed in row["accuracies"]
    ]


def flaw_rows(found: Replication) -> list[list[str]]:
    """What was coded and what was meant, with the passport of both."""
    rebuilt = {claim.as_coded for claim in claims() if claim.reconstructed}
    pairs = {(claim.report, claim.study, claim.as_coded, claim.variant): None for claim in claims() if claim.as_coded}
    rows = []
    for report, study, coded, meant in (*pairs, *MORE_FLAWS):
        evidence = found.evidences.get(study)
        if report not in found.reports or evidence is None or not evidence.has(coded, meant):
            continue
        what_coded = "reconstructed" if coded in rebuilt else "another form" if report == "r4" else "as coded"
        for name, what in ((coded, what_coded), (meant, "as meant")):
            rows.append([report, study, what, name, passport_words(evidence, name), headline(evidence, name)])
    return rows


def passport_words(evidence: Evidence, variant: str) -> str:
    passport = evidence.outcomes.passports.get(variant, {})
    return ": ".join(filter(None, (f"**{passport.get('level', 'none')}**", "; ".join(passport.get("failed", [])))))


def headline(evidence: Evidence, variant: str) -> str:
    shown = score(evidence.outcomes.metric, evidence.pooled(variant), evidence.keep(), evidence.clusters())
    unit = "% of clean items" if evidence.subset == "clean" else "%"
    figure = interval_cell(shown)
    return f"{figure} {unit}" if evidence.outcomes.metric == "accuracy" else f"perplexity {figure}"


def in_full(value: Any) -> str:
    """A published number with all its digits."""
    if isinstance(value, list):
        return ", ".join(map(in_full, value))
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        return f"{value:g}"
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)


def figure_cells(row: Retried, found: Replication) -> list[str]:
    figure = row.figure
    name = f"{figure.variant} ({figure.note})" if figure.note else figure.variant
    picked = ", best on test" if figure.picked_on_test and figure.set != "train" else ""
    how = figure.measure + (picked if figure.at is None else f", {moment(figure.at)}")
    seeds = f"{few_digits(min(row.by_seed), 4)} to {few_digits(max(row.by_seed), 4)}"
    return [name, figure.set, how, in_full(figure.value), ours(row), seeds, row.position, honest(row, found)]


def moment(at: Duration) -> str:
    return f"after {at}" if at.count else "before training"


def ours(row: Retried) -> str:
    return with_interval(row.mean, *(row.interval() or (None, None)))


def honest(row: Retried, found: Replication) -> str:
    if found.evidences[row.figure.study].outcomes.stamp(row.figure.variant):
        return "none: its passport is red"
    if row.honest is None or row.honest["mean"] is None:
        return ""
    return f"{interval_cell(row.honest)} ({row.honest_how})"


def curve_tables(rows: Sequence[Retried]) -> dict[str, list[list[str]]]:
    """A table for each variant's curves: a row for each moment, two columns for each set."""
    groups: dict[tuple[str, str, str], dict[tuple[str, Duration | None], Retried]] = {}
    for row in rows:
        figure = row.figure
        groups.setdefault((figure.study, figure.variant, figure.measure), {})[figure.set, figure.at] = row
    tables = {}
    for (_, variant, measure), known in groups.items():
        sets = list(dict.fromkeys(name for name, _ in known))
        moments = sorted({at for _, at in known if at}, key=lambda at: at.count)
        unit = moments[0].unit.rstrip("s")
        columns = [unit, *(f"{name}: {what}" for name in sets for what in ("published", "ours"))]
        cells = [[f"{at.count:g}", *(cell for name in sets for cell in point(known.get((name, at))))] for at in moments]
        tables[f"{variant}, {measure}, {unit} by {unit}"] = [columns, *cells]
    return tables


def point(row: Retried | None) -> tuple[str, str]:
    return ("", "") if row is None else (in_full(row.figure.value), f"{ours(row)} {row.position}")


def parameter_rows(found: Replication) -> Iterator[list[str]]:
    for count in (each for each in counts() if each.report in found.reports):
        shown, apart, why = NOT_RUN, "", ""
        if evidence := finished(found, count.study):
            difference = our_counts(evidence)[count.counted] - count.value
            shown = f"{count.value + difference:,}"
            apart, why = (f"{difference:+,}", count.why) if difference else ("equal", "")
        yield [count.report, count.study, count.counted, in_full(count.value), shown, apart, why]


def setting_rows(found: Replication) -> Iterator[list[str]]:
    for block in settings():
        if block.report not in found.reports and not (block.report == "the course" and set(found.reports) - {"r4"}):
            continue
        evidence = finished(found, block.study)
        for name, value in block.values.items():
            shown = NOT_RUN if evidence is None else in_full(our_setting(name, evidence))
            why = "" if shown in (NOT_RUN, in_full(value)) else block.why.get(name, "")
            words = WORDS.get(name, name.split(".")[-1].replace("_", " "))
            yield [block.report, block.study, words, in_full(value), shown, why]


def finished(found: Replication, study: str) -> Evidence | None:
    """The evidence of a study whose baseline has records."""
    evidence = found.evidences.get(study)
    return evidence if evidence is not None and evidence.has(evidence.outcomes.baseline) else None


def missed_rows(found: Replication) -> list[list[str]]:
    """What is published and not retried, and why."""
    chosen = [each for each in asides() if each.report in found.reports]
    rows = [
        [each.report, each.what, named_values(each.values), each.why, other_model(each, found.evidences)]
        for each in chosen
    ]
    missed: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for figure, why in found.missed:
        when = "" if figure.at is None else ", during training" if figure.in_curve else f", {moment(figure.at)}"
        what = f"{figure.study}: {figure.set}, {figure.measure}{when}"
        missed.setdefault((figure.report, what, why), {}).setdefault(figure.variant, []).append(figure.value)
    return [*rows, *([report, what, named_values(each), why, ""] for (report, what, why), each in missed.items())]


def named_values(values: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} {in_full(value)}" for name, value in values.items())


def other_model(aside: Aside, evidences: Mapping[str, Evidence]) -> str:
    """Ours of another model, named as such."""
    if aside.beside is None:
        return ""
    study, variant = aside.beside
    evidence = evidences.get(study)
    if evidence is None or not evidence.has(variant):
        return "another model, MiniLM: see docs/finetune.md"
    results, record = evidence.results(variant), evidence.first(variant)
    scores = [{name: each[name] for name in ("train", "validation")} | each["tests"] for each in results]
    names = ("train", "validation", *evidence.outcomes.sets)
    accuracies = ", ".join(f"{name} {100 * mean(row[name]['accuracy'] for row in scores):.1f}" for name in names)
    rate, sentences = record.recipe.training.learning_rate, record.trial["documents"]["train"]
    model = f"another model, MiniLM, {variant} at {rate:g}, {sentences:,} sentences, {record.result['steps']} steps"
    return f"{model}, mean of {len(results)} seeds: {accuracies}; see docs/finetune.md"


def counting_tables(found: Replication) -> dict[str, list[list[str]]]:
    """A table for each study that has baselines."""
    studies = [each for each in found.evidences.values() if each.outcomes.baselines]
    return {f"{each.folder}, {each.outcomes.metric}": counting_table(each) for each in studies}


def counting_table(evidence: Evidence) -> list[list[str]]:
    """Models in rows, the best first, those that count in bold."""
    outcomes = evidence.outcomes

    def by_subset(test: str, of_set: SetOutcomes) -> dict[str, Any]:
        return scores_by_subset(outcomes.metric, of_set, outcomes.status.get(test), outcomes.clusters.get(test))

    honest = {name: sets for name, sets in outcomes.variants.items() if not evidence.red_checks(name)}
    scores = {
        name: columns({test: by_subset(test, of_set) for test, of_set in sets.items()})
        for name, sets in (honest | outcomes.baselines).items()
    }
    names = list(scores[outcomes.baseline])
    first = next((name for name in names if name.endswith("clean")), names[0])
    order = sorted(scores, key=lambda name: scores[name][first]["mean"], reverse=outcomes.metric == "accuracy")
    shown = [f"**{name}**" if name in outcomes.baselines else name for name in order]
    cells = [[interval_cell(scores[name][column]) for column in names] for name in order]
    return [["model", *names], *([name, *row] for name, row in zip(shown, cells, strict=True))]


def columns(ways: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of a single test set its subsets; of several, all items of each."""
    if len(ways) > 1:
        return {test: parts["all"] for test, parts in ways.items()}
    (parts,) = ways.values()
    many = {subset: score for subset, score in parts.items() if score["items"] >= FEWEST_ITEMS}
    return {SUBSETS[subset].format(f"{score['items']:,}"): score for subset, score in (many or parts).items()}


def interval_cell(score: dict[str, Any]) -> str:
    return with_interval(score["mean"], score["low"], score["high"])
