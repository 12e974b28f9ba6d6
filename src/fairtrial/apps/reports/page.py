"""The page's prose: what holds whatever the records say.

The page's tables, as Markdown.

The page's tables of published numbers: every one of them with ours beside it, or with the reason why not.

What models that only count words reach on the same items: the table that no report has.

The page: one Markdown file with its figures, made from the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from fairtrial.apps.reports.charts import claims_chart, curves_chart, layers_chart, published_chart
from fairtrial.apps.reports.claims import Answer, is_red
from fairtrial.apps.reports.evidence import Decided, Evidence
from fairtrial.apps.reports.measures import NO_TEST_SET, OF_TRAIN, Retried
from fairtrial.apps.reports.published import Aside, Figure, asides, claims, counts, published, settings, told
from fairtrial.apps.reports.run import Replication
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.recipe import Duration
from fairtrial.report import few_digits, spoken_time, with_interval
from fairtrial.statistics import SetOutcomes, TaskOutcomes, listed, score, scores_by_subset


def flowing(text: str) -> str:
    return " ".join(text.split())


OPENING = flowing("""
Five course reports train small transformers and compare architectures. Each comparison is one run against one run. Here
every published figure and every claim gets a fair trial: several seeds, the same first weights and batches for both
sides, an audit of every variant, and test items that do not stand in the training text. One run cannot show what these
reports wished to show, and their authors had a course's time for it; what follows is meant as the experiment that they
would have run with more.
""")

QUICK = flowing("""
**This is the quick version**, on the embedded corpus and with a few training steps. It shows how the page is made; it
says nothing of the reports.
""")

FIGURES = flowing("""
*Published* is the report's number. *Ours* is the mean over seeds with its 95% interval, measured as the report
measured: accuracy on all test items, at the epoch that is best on the test set where the report did that; perplexity
over windows side by side; for r4 the mean of per-sentence perplexities or losses. *Place* tells where the published
figure lies: `inside` the range of our seeds, `near` it (where one more run would fall, 95%), or `below` or `above`.
*Honest* is the same recipe measured as one should: a tenth of the training text is held back, the weights are those
that do best on it (classifiers after any epoch, language models after any 50 steps), the test sets are scored once, on
clean items, every token once at full context. So these are other trainings, on nine tenths of the text: the studies
called `-chosen` below.
""")

COUNTING = flowing("""
Models that only count words (in bold) on the same training text and test items: accuracy in per cent, exact perplexity
of all items where no other number of items is told. *Stand in train* counts exact and near copies.
A transformer that a count of words beats has not shown that its architecture matters here. Variants with a red passport
are left out. What can be reached on these data, and by what, stands in docs/best.md.
""")

SENTENCES = flowing("""
r4 trains on 61,530 sentences that are not at hand. Ours are trained on its dev file, so beside its *dev* stands our
score of its test file, and beside its *train* our score of {} sentences of that training text, drawn once by a named
stream, in batches as in training. A variant whose passport is red is scored in such batches on both. *Normal*, *weird*
and *long* are single sentences of the report, each scored by itself; they are not part of fairtrial and come from
DIR/r4-samples.tsv, where somebody has written them down. The levels cannot be compared; the order of the variants can.
""")

CURVES = flowing("""
Two reports print numbers as training went on. Each cell of *ours* is the mean over seeds, its 95% interval, and the
place of the published number, as above. The reports looked at the test sets while they trained; ours do so for these
curves and for figures that are called best on test. r1 prints its first perplexities at iteration 1; ours, as r2's, are
those before the first step. The figures begin after it.
""")

NOT_RETRIED = flowing("""
Published numbers beside which no figure of ours stands as the same measure, and why.
""")

PARAMETERS = flowing("""
*Matrices* are the token embedding and the weights of attention and feed-forward layers, without biases, positions,
norms, classifier and output layer: r0 counts so. The output layer is the largest matrix of a decoder.
""")

SETTINGS = flowing("""
What the reports say of their models and training, beside what the recipes and records of ours have.
""")

PRINTED = flowing("""
Out of 750 test sentences only some accuracies can come. What the reports print, checked digit by digit (r2 also prints
a training perplexity of 454.79 at iteration 600 of a run of 500: it is the figure of its H. Bush test set):
""")

FLAWS = flowing("""
Two reports describe one thing and compute another (r0, r2); their code is repeated here, beside what was meant. Of r4
only the words are at hand: *by batch* is our reconstruction, the form that shows both symptoms it tells of, a better
score in batches and a breakdown on single sentences (the report's breakdown is larger still). The passport tells them
apart. A red passport means that the variant's number says nothing of its idea.
""")

STREAM = flowing("""
r0's blocks add to the normed stream (`normed-stream` in examples/reports/r0_flaws.py). It sees nothing that it should
not, so the failure is amber: its score counts, but as that of a post-norm network (`shape.norm_place = "post"`, which
gives the same numbers and passes under its own name), not of the pre-norm blocks that the report describes.
""")

ALONE = flowing("""
The same sentences scored in batches as in training, and one by one, by the same trained models (means of per-sentence
perplexities; over seeds the mean of logarithms). An honest model does not notice:
""")

FINGERPRINTS = flowing("""
Each row stands for the records of one variant: its resolved recipe, the sha256 over the trained weights of its seeds in
order, and the code that trained them. The same recipe, seed, code, torch and machine give the same weights, bit by bit.
""")

LEFT_OUT = (
    "r4's fine-tuning is retried with MiniLM (`--fine-tuning`), and only its comparisons: roberta-base is not at hand",
    "r4's attention puzzles have exact answers, not trials: `fairtrial puzzle`",
    "losses of single batches and seconds of an epoch, which r1 and r2 print: one batch, and another machine",
    "pictures of attention: a map of one sentence is no figure; what can be measured of them is above",
)


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
    first, low, high = (f"{each:+.1f}" for each in shown)
    unit = "% perplexity" if decided.shown_unit == "% perplexity" else f" {decided.shown_unit}"
    return f"{first}{unit} [{low}, {high}]"


def printed_table(found: Replication, items: int) -> list[str]:
    """Whether the accuracies that the reports print can be at all."""
    rows = [
        [row["report"], f"{printed} %", told(printed, items)]
        for row in published()["printed"]
        for printed in row["accuracies"]
        if row["report"] in found.reports
    ]
    return table(["report", "printed", "right answers"], rows) if rows else []


def flaws_table(found: Replication) -> list[str]:
    """What was coded beside what was meant, with what the passport says of both."""
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
    status = evidence.status()
    keep = np.ones(outcomes.items, bool)
    if status is not None and evidence.basis()["basis"] == "clean":
        keep = status == 0
    shown = score(evidence.outcomes.metric, outcomes, keep, evidence.clusters())
    unit = "% of clean items" if evidence.basis()["basis"] == "clean" else "%"
    figure = with_interval(shown["mean"], shown["low"], shown["high"])
    return f"{figure} {unit}" if evidence.outcomes.metric == "accuracy" else f"perplexity {figure}"


def alone_table(alone: dict[str, list[tuple[float, float]]]) -> list[str]:
    rows = []
    for name, seeds in alone.items():
        one, other = (float(np.exp(np.log(column).mean())) for column in zip(*seeds, strict=True))
        rows.append([name, str(len(seeds)), f"{one:,.1f}", f"{other:,.1f}", f"{other / one:,.3g}"])
    return table(["variant", "seeds", "together", "alone", "alone / together"], rows)


def marks_table(found: Replication) -> list[str]:
    rows = []
    for evidence in found.everything:
        for variant, records in evidence.records.items():
            if records:
                marks = evidence.marks(variant)
                prints = [f"`{marks['recipe']}`", f"`{marks['weights']}`", marks["code"]]
                rows.append([evidence.folder, variant, str(len(records)), *prints])
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
    from fairtrial.apps.reports.evidence import our_count

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
    from fairtrial.apps.reports.evidence import our_setting

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


TITLES = {"all": "all {}", "clean": "{} clean", "contaminated": "{} that stand in train"}
FEWEST = 30  # items of a column


def beside_counting(found: Replication) -> list[str]:
    """A table for each study that has baselines, the best first."""
    told = []
    for evidence in found.evidences.values():
        if evidence.outcomes.baselines:
            told += [f"{evidence.folder}, {evidence.outcomes.metric}:", "", *counting_table(evidence), ""]
    return ["## Beside counting", "", COUNTING, "", *told] if told else []


def counting_table(evidence: Evidence) -> list[str]:
    """Models in rows, the best first, those that count in bold."""
    outcomes = evidence.outcomes
    honest = {name: sets for name, sets in outcomes.variants.items() if not any(map(is_red, evidence.findings(name)))}
    scores = {
        name: columns({place: measured(outcomes, place, sets[place]) for place in sets})
        for name, sets in (honest | outcomes.baselines).items()
    }
    names = list(scores[outcomes.baseline])
    first = next((name for name in names if name.endswith("clean")), names[0])
    order = sorted(scores, key=lambda name: scores[name][first]["mean"], reverse=outcomes.metric == "accuracy")
    return table(
        ["model", *names],
        [
            [f"**{name}**" if name in outcomes.baselines else name, *(figure(scores[name][each]) for each in names)]
            for name in order
        ],
    )


def measured(outcomes: TaskOutcomes, place: str, found: SetOutcomes) -> dict[str, Any]:
    return scores_by_subset(outcomes.metric, found, outcomes.status.get(place), outcomes.clusters.get(place))


def columns(ways: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of one test set its parts; of several each as a whole."""
    if len(ways) == 1:
        parts = next(iter(ways.values()))
        many = {basis: score for basis, score in parts.items() if score["items"] >= FEWEST}
        return {TITLES[basis].format(f"{score['items']:,}"): score for basis, score in (many or parts).items()}
    return {place: parts["all"] for place, parts in ways.items()}


def figure(score: dict[str, Any]) -> str:
    return with_interval(score["mean"], score["low"], score["high"])


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
