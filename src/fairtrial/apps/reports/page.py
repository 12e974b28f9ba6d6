"""The page: one Markdown file with its figures, made from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from fairtrial.apps.reports.charts import claims_chart, curves_chart, layers_chart, published_chart
from fairtrial.apps.reports.claims import Answer, is_red
from fairtrial.apps.reports.evidence import Decided, Evidence, our_count, our_setting
from fairtrial.apps.reports.measures import NO_TEST_SET, TRAIN_SENTENCES, Retried
from fairtrial.apps.reports.published import (
    Aside,
    Figure,
    asides,
    claims,
    counts,
    explain_accuracy,
    published,
    settings,
)
from fairtrial.apps.reports.run import Replication
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.recipe import Duration
from fairtrial.report import few_digits, spoken_time, with_interval
from fairtrial.statistics import counted, listed, score, scores_by_subset


def flowing(text: str) -> str:
    return " ".join(text.split())


OPENING = flowing("""
Five reports of one course (a class on language models, whose students trained small transformers on presidential
speeches and sentences of the 1B-word benchmark) compare architectures, one run against one run. Here every published
figure and every claim gets a fair trial: several seeds, the same initial weights and batches for both sides, an audit
of every variant, and test items that do not occur in the training text. One run cannot show what these reports set
out to show, and their authors had only a course's time; this is the experiment that they would have run with more.
""")

QUICK = flowing("""
**This is the quick version**, on the embedded corpus and with a few training steps. It shows how the page is made; it
says nothing about the reports.
""")

FIGURES = flowing("""
*Published* is the report's number. *Ours* is the mean over seeds with its 95% interval, measured as the report
measured: accuracy on all test items, at the epoch that is best on the test set where the report did that; perplexity
over non-overlapping windows; for r4 the mean of per-sentence perplexities or losses. *Position* says where the
published figure lies: `inside` the range of our seeds, `near` it (where one more run would fall, 95%), `below` or
`above`. *Honest* is the same recipe measured as one should: a tenth of the training text is held back, the weights
are those that do best on it (classifiers after any epoch, language models after any 50 steps), the test sets are
scored once, on clean items, every token once at full context. So these are other trainings, on nine tenths of the
text: the studies called `-chosen` below.
""")

COUNTING = flowing("""
Models that only count words (in bold) on the same training text and test items: accuracy in per cent, exact
perplexity, on all items unless the column says otherwise. *In training set* counts exact and near copies. A
transformer that loses to word counts has not shown that its architecture matters here. Variants with a red passport
are left out. What can be reached on these data, and by what, is in docs/best.md.
""")

SENTENCES = flowing("""
r4 trains on 61,530 sentences that are not available. Ours are trained on its dev file; so its *dev* is compared with
our score of its test file, and its *train* with our score of {} sentences of that training text, sampled once from a
named random stream, in batches as in training. A variant whose passport is red is scored in such batches on both.
*Normal*, *weird* and *long* are single sentences of the report, each scored on its own; they are not part of
fairtrial and are read from DIR/r4-samples.tsv if that file exists. The levels cannot be compared; the order of the
variants can.
""")

CURVES = flowing("""
Two reports print numbers during training. Each cell of *ours* is the mean over seeds, its 95% interval, and the
position of the published number, as above. The reports scored the test sets during training; ours do so for these
curves and for figures that are called best on test. r1 prints its first perplexities at iteration 1; ours, like r2's,
are those before the first step. The charts begin after it.
""")

NOT_RETRIED = "Published numbers that no figure of ours can be compared with, and why."

PARAMETERS = flowing("""
*Matrices* are the token embedding and the weights of attention and feed-forward layers, without biases, positions,
norms, classifier and output layer: this is how r0 counts. The output layer is the largest matrix of a decoder.
""")

SETTINGS = "What the reports say about their models and training, and what our recipes and records have."

PRINTED = flowing("""
With 750 test sentences only some accuracies are possible. What the reports print, checked digit by digit (r2 also
prints a training perplexity of 454.79 at iteration 600 of a run of 500: it is the figure of its H. Bush test set):
""")

FLAWS = flowing("""
Two reports describe one thing and compute another (r0, r2); their code is repeated here, next to what was meant. Of
r4 only the text is available: *by batch* is our reconstruction, the form that shows both symptoms it describes, a
better score in batches and a breakdown on single sentences (the report's breakdown is larger still). The passport
tells them apart. A red passport means that the variant's number says nothing about its idea.
""")

STREAM = flowing("""
r0's blocks add to the normalized stream (`normed-stream` in examples/reports/r0_flaws.py). No information leaks, so
the failure is amber: its score counts, but as that of a post-norm network (`shape.norm_place = "post"`, which gives
the same numbers and passes under its own name), not of the pre-norm blocks that the report describes.
""")

ALONE = flowing("""
The same sentences scored in batches as in training, and one by one, by the same trained models (means of per-sentence
perplexities; over seeds the mean of logarithms). For a sound model both are equal:
""")

FINGERPRINTS = flowing("""
Each row stands for the records of one variant: its resolved recipe, the sha256 over the trained weights of its seeds
in order, and the code that trained them. The same recipe, seed, code, torch and machine give the same weights, bit by
bit.
""")

LEFT_OUT = (
    "r4's fine-tuning is retried with MiniLM (`--fine-tuning`), only its comparisons: roberta-base is not available",
    "r4's attention puzzles have exact answers, not trials: `fairtrial puzzle`",
    "losses of single batches and seconds per epoch, which r1 and r2 print: one batch, and another machine",
    "pictures of attention: a map of one sentence is not a measurement; what can be measured about them is above",
)

NOT_RUN = "not run"
ALL_ITEMS = 750  # test sentences of the speeches
FEWEST_ITEMS = 30  # of a column
SUBSETS = {"all": "all {}", "clean": "{} clean", "contaminated": "{} in training set"}
WORDS = {
    "shape.length": "context length",
    "shape.hidden": "width of the feed-forward layer",
    "shape.classifier_hidden": "width of the classifier's hidden layer",
    "tokens.min_count": "minimum word count",
    "training.duration": "length of training",
}


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
        ("perplexity", "change of perplexity, % (to the left: lower)"),
    ):
        answers = [each for each in found.answers if each.decided and each.decided.comparison.metric.name == metric]
        if answers:
            title = f"Claims about {metric}, retried: difference and 95% interval"
            pictures[f"claims-{metric}.svg"] = claims_chart(answers, title, unit)
    if found.layers:
        pictures["layers.svg"] = layers_chart(found.layers)
    return pictures


def lines(found: Replication, pictures: dict[str, str]) -> list[str]:
    return [
        "# The five reports, retried",
        "",
        *opening(found),
        "",
        "## Claims",
        "",
        *answers_table(found.answers),
        "",
        *shown(pictures, "claims-"),
        *details(found),
        *counting_tables(found),
        "## Figures",
        "",
        FIGURES,
        "",
        *[line for report in found.reports for line in report_figures(found, report)],
        *shown(pictures, "published-"),
        *curves(found, pictures),
        *section("Figures that were not retried", NOT_RETRIED, missed_table(found)),
        *section("Numbers that are possible", PRINTED, printed_table(found)),
        *section("Parameters", PARAMETERS, parameters_table(found)),
        *section("Settings", SETTINGS, settings_table(found)),
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
        *fingerprints_table(found),
    ]


def opening(found: Replication) -> list[str]:
    seeds = sorted({len(each.plan.study.seeds) for each in found.evidences.values()})
    trials = sum(len(records) for each in found.everything for records in each.records.values())
    made = (
        f"Made by `{found.command}` from {trials} trials ({' or '.join(map(str, seeds))} seeds of each variant), which"
        f" took {spoken_time(found.seconds)} with {counted(found.width, 'trial')} at a time. Every number comes from"
        " their records; the published ones are copied from the reports."
    )
    return [OPENING, "", made, *(["", QUICK] if found.quick else [])]


def details(found: Replication) -> list[str]:
    lines = []
    for report in found.reports:
        lines += [f"### {report}: {published()['reports'][report]['about']}", ""]
        for answer in (each for each in found.answers if each.claim.report == report):
            lines += [f"**{answer.claim.says}** *{answer.headline.capitalize()}.* {answer.because}"]
            lines += [f"The report's own comparison: {'; '.join(answer.unsound)}."] if answer.unsound else []
            lines += [f"It rests on {listed(answer.weak)}.", ""] if answer.weak else [""]
    return lines


def report_figures(found: Replication, report: str) -> list[str]:
    rows = [row for row in found.retried if row.figure.report == report and not row.figure.in_curve]
    if not rows:
        return []
    by_sentence = any(row.figure.measure.startswith("sentence") for row in rows)
    words = [SENTENCES.format(f"{TRAIN_SENTENCES:,}"), ""] if by_sentence and not found.quick else []
    return [f"### {report}", "", *figures_table(rows, found), "", *words]


def curves(found: Replication, pictures: dict[str, str]) -> list[str]:
    lines = []
    for report in found.reports:
        rows = [row for row in found.retried if row.figure.report == report and row.figure.in_curve]
        lines += [f"### {report}, during training", "", *curve_tables(rows)] if rows else []
    return ["## Curves", "", CURVES, "", *shown(pictures, "curves-"), *lines] if lines else []


def section(title: str, text: str, rows: list[str]) -> list[str]:
    return [f"## {title}", "", text, "", *rows, ""] if rows else []


def flaws(found: Replication) -> list[str]:
    lines = section("Where the code differs from the text", FLAWS, flaws_table(found))
    return [*lines, ALONE, "", *alone_table(found.alone), ""] if lines and found.alone else lines


def shown(pictures: dict[str, str], start: str) -> list[str]:
    chosen = [(name, path) for name, path in pictures.items() if name.startswith(start)]
    return [line for name, path in chosen for line in (f"![{name.removesuffix('.svg')}]({path})", "")]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), line(["---"] * len(columns)), *map(line, rows)]


def answers_table(answers: Sequence[Answer]) -> list[str]:
    rows = []
    for each in answers:
        doubts = [*(f"unsound: {reason}" for reason in each.unsound), *each.weak]
        outcome, difference = f"**{each.outcome}**", size(each.decided)
        if each.at_one_rate is not None:
            outcome = f"at one rate **{each.at_one_rate.outcome}**; each at its own {outcome}"
            difference = f"at one rate {size(each.at_one_rate.decided)}; each at its own {difference or 'not run'}"
        rows.append([each.claim.report, each.claim.says, outcome, difference, "; ".join(doubts)])
    return table(["report", "claim", "retried", "difference", "the report's own comparison"], rows)


def size(decided: Decided | None) -> str:
    shown = decided.shown() if decided else None
    if shown is None or decided is None:
        return ""
    first, low, high = (f"{value:+.1f}" for value in shown)
    return f"{first}{decided.unit} [{low}, {high}]"


def printed_table(found: Replication) -> list[str]:
    """Whether the accuracies that the reports print are possible at all."""
    evidence = found.evidences.get("speeches-classify")
    if evidence is None or evidence.pooled(evidence.outcomes.baseline).items != ALL_ITEMS:
        return []
    rows = [
        [row["report"], f"{printed} %", explain_accuracy(printed, ALL_ITEMS)]
        for row in published()["printed"]
        for printed in row["accuracies"]
        if row["report"] in found.reports
    ]
    return table(["report", "printed", "right answers"], rows) if rows else []


def flaws_table(found: Replication) -> list[str]:
    """What was coded and what was meant, with the passport of both."""
    pairs: dict[tuple[str, str, str], str] = {}
    rebuilt = {claim.as_coded for claim in claims() if claim.reconstructed}
    for claim in claims():
        if claim.as_coded and claim.report in found.reports:
            pairs[claim.study, claim.as_coded, claim.variant] = claim.report
    if "r4" in found.reports:
        pairs["lm1b-lm", "re-weight by row", "re-weight causal"] = "r4"
    if "r0" in found.reports:
        pairs["speeches-classify", "learned, normed stream", "learned"] = "r0"
    rows = []
    for (study, coded, meant), report in pairs.items():
        evidence = found.evidences.get(study)
        if evidence is None or not evidence.has(coded, meant):
            continue
        what_coded = "reconstructed" if coded in rebuilt else "another form" if report == "r4" else "as coded"
        for name, what in ((coded, what_coded), (meant, "as meant")):
            rows.append([report, study, what, name, passport_words(evidence, name), headline(evidence, name)])
    if not rows:
        return []
    columns = ["report", "study", "", "variant", "passport", "score, all test sets"]
    return table(columns, rows) + (["", STREAM] if "r0" in found.reports else [])


def passport_words(evidence: Evidence, variant: str) -> str:
    passport = evidence.outcomes.passports.get(variant, {})
    failed = passport.get("failed", [])
    return f"**{passport.get('level', 'none')}**" + (f": {'; '.join(failed)}" if failed else "")


def headline(evidence: Evidence, variant: str) -> str:
    outcomes = evidence.pooled(variant)
    shown = score(evidence.outcomes.metric, outcomes, evidence.keep(), evidence.clusters())
    unit = "% of clean items" if evidence.subset == "clean" else "%"
    figure = with_interval(shown["mean"], shown["low"], shown["high"])
    return f"{figure} {unit}" if evidence.outcomes.metric == "accuracy" else f"perplexity {figure}"


def alone_table(alone: dict[str, list[tuple[float, float]]]) -> list[str]:
    rows = []
    for name, seeds in alone.items():
        one, other = (float(np.exp(np.log(column).mean())) for column in zip(*seeds, strict=True))
        rows.append([name, str(len(seeds)), f"{one:,.1f}", f"{other:,.1f}", f"{other / one:,.3g}"])
    return table(["variant", "seeds", "together", "alone", "alone / together"], rows)


def fingerprints_table(found: Replication) -> list[str]:
    rows = []
    for evidence in found.everything:
        for variant, records in evidence.records.items():
            if records:
                prints = evidence.fingerprints(variant)
                cells = [f"`{prints['recipe']}`", f"`{prints['weights']}`", prints["code"]]
                rows.append([evidence.folder, variant, str(len(records)), *cells])
    data = {
        name: digest
        for each in found.evidences.values()
        for name, digest in each.plan.eval_sets[each.task].files.items()
    }
    files = [[f"`{name}`", f"`{digest[:16]}`"] for name, digest in sorted(data.items())]
    shown = files if len(files) <= 20 else []  # the embedded corpus has a file for each speech
    return [
        *table(["study", "variant", "seeds", "recipe", "weights", "code"], rows),
        *(["", *table(["data file", "sha256"], shown)] if shown else []),
    ]


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
        name = f"{figure.variant} ({figure.note})" if figure.note else figure.variant
        lines.append(
            [name, figure.set, how(figure), in_full(figure.value), ours, seeds(row), row.position, honest(row, found)]
        )
    return table(["variant", "set", "measure", "published", "ours", "our seeds", "position", "honest"], lines)


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
    return in_full(row.figure.value), f"{with_interval(row.mean, *(row.interval or (None, None)))} {row.position}"


def parameters_table(found: Replication) -> list[str]:
    rows = []
    for count in counts():
        if count.report not in found.reports:
            continue
        evidence, first = finished(found, count.study), [count.report, count.study, count.counted]
        if evidence is None:
            rows.append([*first, in_full(count.value), NOT_RUN, "", ""])
            continue
        ours = our_count(count, evidence)
        apart = "equal" if ours == count.value else f"{ours - count.value:+,}"
        rows.append([*first, in_full(count.value), f"{ours:,}", apart, count.why if ours != count.value else ""])
    return table(["report", "model", "counted", "published", "ours, counted that way", "difference", "why"], rows)


def settings_table(found: Replication) -> list[str]:
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
    """What is published and not retried, and why."""
    rows = [
        [each.report, each.what, named_values(each.values), each.why, other_model(each, found.evidences)]
        for each in asides()
        if each.report in found.reports
    ]
    missed: dict[tuple[str, ...], dict[str, list[Figure]]] = {}
    for each in found.missed:
        figure = each.figure
        what = f"{figure.set}, {figure.measure}"
        what += "" if figure.at is None else ", during training" if figure.in_curve else f", {moment(figure.at)}"
        group = missed.setdefault((figure.report, figure.study, what, each.why), {})
        group.setdefault(figure.variant, []).append(figure)
    for (report, study, what, why), variants in missed.items():
        values = {name: ", ".join(in_full(each.value) for each in figures) for name, figures in variants.items()}
        rows.append([report, f"{study}: {what}", "; ".join(f"{name} {each}" for name, each in values.items()), why, ""])
    return table(["report", "figure", "published", "why not", "for comparison"], rows) if rows else []


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
    results = evidence.results(variant)
    parts = {"train": [each["train"] for each in results], "validation": [each["validation"] for each in results]}
    parts |= {name: [each["tests"][name] for each in results] for name in evidence.outcomes.sets}
    accuracies = ", ".join(f"{name} {100 * mean(row['accuracy'] for row in rows):.1f}" for name, rows in parts.items())
    record = next(iter(evidence.records[variant].values()))
    rate = record.recipe.training.learning_rate
    return (
        f"another model, MiniLM, {variant} at {rate:g}, {record.trial['documents']['train']:,} sentences,"
        f" {record.result['steps']} steps, mean of {len(results)} seeds: {accuracies}; see docs/finetune.md"
    )


def counting_tables(found: Replication) -> list[str]:
    """A table for each study that has baselines, the best first."""
    lines = []
    for evidence in found.evidences.values():
        if evidence.outcomes.baselines:
            lines += [f"{evidence.folder}, {evidence.outcomes.metric}:", "", *counting_table(evidence), ""]
    return ["## Compared with word counts", "", COUNTING, "", *lines] if lines else []


def counting_table(evidence: Evidence) -> list[str]:
    """Models in rows, the best first, those that count in bold."""
    outcomes = evidence.outcomes
    honest = {name: sets for name, sets in outcomes.variants.items() if not any(map(is_red, evidence.findings(name)))}
    scores = {
        name: columns(
            {
                test: scores_by_subset(
                    outcomes.metric, sets[test], outcomes.status.get(test), outcomes.clusters.get(test)
                )
                for test in sets
            }
        )
        for name, sets in (honest | outcomes.baselines).items()
    }
    names = list(scores[outcomes.baseline])
    first = next((name for name in names if name.endswith("clean")), names[0])
    order = sorted(scores, key=lambda name: scores[name][first]["mean"], reverse=outcomes.metric == "accuracy")
    return table(
        ["model", *names],
        [
            [
                f"**{name}**" if name in outcomes.baselines else name,
                *(interval_cell(scores[name][column]) for column in names),
            ]
            for name in order
        ],
    )


def columns(ways: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of a single test set its subsets; of several, all items of each."""
    if len(ways) == 1:
        parts = next(iter(ways.values()))
        many = {subset: score for subset, score in parts.items() if score["items"] >= FEWEST_ITEMS}
        return {SUBSETS[subset].format(f"{score['items']:,}"): score for subset, score in (many or parts).items()}
    return {test: parts["all"] for test, parts in ways.items()}


def interval_cell(score: dict[str, Any]) -> str:
    return with_interval(score["mean"], score["low"], score["high"])
