"""Trials, plans and records as a reader sees them, for commands and pages alike: what is about to be trained, what came
out, curves, and baselines on the same items."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import (
    MISSING,
    Cell,
    Curve,
    Description,
    IntervalChart,
    IntervalRow,
    LineChart,
    Result,
    Row,
    Table,
    row,
)
from fairtrial.errors import BadInput
from fairtrial.events import Logged, Scored, Started, Stepped
from fairtrial.formatting import (
    KINDS,
    bracket,
    confusion_table,
    copies_text,
    format_part,
    format_parts,
    format_time,
    is_number,
    number_text,
    percent,
    strides_note,
)
from fairtrial.recipe import Recipe
from fairtrial.record import Listed, Record
from fairtrial.report.plots import draw
from fairtrial.report.render import PROSE_WIDTH, render, terminal_width, text_lines
from fairtrial.results.sentences import counted
from fairtrial.results.values import VariantSearch
from fairtrial.statistics.outcomes import Z_ONE_SIDED
from fairtrial.stored import (
    AttentionUse,
    BaselineScores,
    ClockEntry,
    Metrics,
    PlanSummary,
    TaskBaselines,
    TrialResult,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVE_ROWS, MOST_DRAWN = 21, 8
LISTING = ("record", "task", "recipe", "parts", "seed", "test sets")
SCORES = {  # task: title and y axis of a chart; all but accuracy have a log scale
    "classify": ("Accuracy during training", "share right"),
    "lm": ("Perplexity during training", "non-overlapping windows of {} tokens, log scale"),
    "mlm": ("Perplexity during training", "of masked tokens, log scale"),
}

CURVE_UNITS = {
    "accuracy": "accuracy",
    "window_perplexity": "perplexity, non-overlapping windows",
    "masked_perplexity": "perplexity of masked tokens",
}


@dataclass(frozen=True, repr=False)
class Baselines(Result):
    """Simple models on exactly the items of a trial: what a transformer must beat.

    >>> found = ft.baseline(reviews, task="classify").to_frame()
    >>> found[(found.subset == "all") & (found.set == "test") & (found.baseline == "majority")].accuracy.tolist()
    [0.5]
    """

    tasks: Mapping[str, TaskBaselines]

    def describe(self) -> Description:
        sections = [describe_baselines(scores) for scores in self.tasks.values()]
        return Description(sections=sections)

    def rows(self) -> list[dict[str, object]]:
        return [
            {"task": task, "baseline": name, "set": test, "subset": subset, **score.known()}
            for task, scores in self.tasks.items()
            for name, sets in scores.baselines.items()
            for test, subsets in sets.items()
            for subset, score in subsets.items()
        ]


def describe_baselines(scores: TaskBaselines) -> Description:
    """A table for each test set."""
    metric = "accuracy" if scores.task == "classify" else "perplexity"
    tables, points = [], []
    for name, copies in scores.sets.items():
        copied = copies["exact"] + copies["near"]
        there = {"all": True, "clean": copied and copies["clean"], "contaminated": copied}
        shown = [subset for subset, items in there.items() if items]
        rows = []
        for baseline, sets in scores.baselines.items():
            score, low_high = sets[name]["all"], sets[name]["all"].interval or (None, None)
            bytes_ = (
                () if metric == "accuracy" else (number_text(score.bits_per_byte, ".3f"), f"{score.unknown_share:.1%}")
            )
            rows.append(row(baseline, *(baseline_cell(sets[name].get(subset)) for subset in shown), *bytes_))
            points.append(IntervalRow(f"{baseline}, {name}", score.figure(metric), *low_high))
        more = ("bits per byte", "unknown") if metric == "perplexity" else ()
        tables.append(Table(f"{name}: {copies_text(copies)}", (metric, *shown, *more), tuple(rows)))
    note = "Intervals: 95% over test items. A transformer that does not beat these does no better than counting words."
    if scores.task == "lm":
        every = [
            score for sets in scores.baselines.values() for by_subset in sets.values() for score in by_subset.values()
        ]
        note += f" {bytes_note(every)}"
    sentences = [
        f"{scores.source}, recipe {scores.recipe or 'of your own'}, seed {scores.seed};"
        f" fitted on {scores.documents['train']:,} documents",
        *(f"note: {note}" for note in scores.notes),
        note,
    ]
    chart = IntervalChart("what a transformer must beat", metric, tuple(points))
    return Description(sentences, tables, scores.task, [chart])


def baseline_cell(score: Metrics | None) -> str:
    if score is not None and score.accuracy is not None:
        return accuracy_text(score)
    return "" if score is None or score.perplexity is None else f"{score.perplexity:.1f}" + bracket(score.interval)


@dataclass(frozen=True, repr=False)
class Records(Result):
    """The records in a folder: what each was trained on, how far it came, what it scored.

    >>> ft.show(finished.folder).to_frame()["test accuracy"].between(0, 1).tolist()
    [True, True, True, True, True, True, True, True, True, True]
    """

    listed: tuple[Listed, ...]
    class_names: tuple[str, ...] | None = None  # shown instead of the labels

    def describe(self, *, every: bool = False) -> Description:
        """All that is known of a single record; of several, one row each. `every`: every step of the curves."""
        if len(self.listed) == 1 and not self.listed[0].problem:
            return describe_record(self.listed[0].record, self.class_names, every=every)
        states = Counter(each.state for each in self.listed)
        told = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        return Description((f"{states.total():,} records: {told}",), [listing_table(self.listed)])

    def describe_all(self, title: str) -> Description:
        """For a page: the list, and all that is known of each record."""
        sound = [each.record for each in self.listed if not each.problem]
        sections = [replace(describe_record(record, self.class_names), title=record.folder.name) for record in sound]
        caution = (
            "Each number comes from one seed, with an interval over test items. Another seed gives another number,"
            " so one trial cannot show which of two ideas is better."
        )
        return Description((caution,), [listing_table(self.listed)] if len(sound) > 1 else [], title, (), sections)

    def render(self, to: str) -> str:
        """As markdown, latex or csv, with every step of the curves."""
        return render(self.describe(every=True), to)

    def plot(self) -> Figure:
        """Scores and loss during training, of each record."""
        sound = [each.record for each in self.listed if not each.problem]
        if not 1 <= len(sound) <= MOST_DRAWN:
            raise BadInput(f"a figure shows 1 to {MOST_DRAWN} records, not {len(sound)}", "name the records to draw")
        names = [f"{record.folder.name}: " * (len(sound) > 1) for record in sound]
        charts = [(name, chart) for name, record in zip(names, sound, strict=True) for chart in record_charts(record)]
        return draw([replace(chart, title=name + chart.title) for name, chart in charts])

    def rows(self) -> list[dict[str, object]]:
        return [listing_values(each) for each in self.listed]


@dataclass(frozen=True, repr=False)
class Curves(Result):
    """Loss and score of every split while one trial was trained; iterated, they are `Curve`s.

    >>> classifier.curves.to_frame().columns.tolist()
    ['step', 'split', 'loss', 'score']
    """

    record: Record

    def __iter__(self) -> Iterator[Curve]:
        events = list(self.record.events())
        return iter([loss_curve(events), *curves_of(events)])

    def describe(self) -> Description:
        events = list(self.record.events())
        of_batches = [(step, "training batches", loss, None) for step, loss in loss_curve(events).points]
        scored = [(each.step, each.split, each.metrics) for each in events if isinstance(each, Scored)]
        numbers = [*of_batches, *((at, split, each.loss, each.figure(each.headline)) for at, split, each in scored)]
        rows = []
        for step, split, *pair in sorted(numbers, key=lambda each: each[0]):
            cells = (Cell("" if each is None else f"{each:.4f}", number=each) for each in pair)
            rows.append(row(Cell(str(step), number=step), split, *cells))
        unit = next((CURVE_UNITS[each.headline] for *_, each in scored), "")
        table = Table("", ("step", "split", "loss", "score"), tuple(rows), text_columns=2)
        return Description([f"score: {unit}; loss: nats"], [table], charts=record_charts(self.record))

    def rows(self) -> list[dict[str, object]]:
        return [each | {"score": each["score"] if is_number(each["score"]) else None} for each in super().rows()]


def listing_values(each: Listed) -> dict[str, object]:
    values: dict[str, object] = {"folder": str(each.record.folder), "state": each.state, "problem": each.problem}
    if each.problem:
        return values
    recipe, trial = each.record.recipe, each.record.trial
    values |= {"task": recipe.task, "recipe": recipe.name, "parts": format_parts(recipe), "seed": trial.seed}
    for name, score in (each.record.result.tests if each.record.complete else {}).items():
        shown = ("perplexity", "bits_per_byte") if score.perplexity is not None else (score.headline,)
        values |= {f"{name} {metric}": score.figure(metric) for metric in shown}
    return values


def listing_table(listed: Sequence[Listed]) -> Table:
    """A row for each record."""
    return Table("", LISTING, tuple(map(listing_row, listed)), text_columns=6)


def listing_row(each: Listed) -> Row:
    if each.problem:
        return row(str(each.record.folder), "", "", "", "", f"damaged: {each.problem}")
    recipe, scores = each.record.recipe, each.record.result.tests if each.record.complete else {}
    told = ", ".join(describe_score(test, score) for test, score in scores.items()) or each.state
    name, seed = recipe.name or "unnamed", str(each.record.trial.seed)
    return row(str(each.record.folder), recipe.task, name, format_parts(recipe), seed, told)


def describe_record(record: Record, names: Sequence[str] | None = None, *, every: bool = False) -> Description:
    """All that is known of one trial. `names`: of the classes, instead of their labels; `every`: all steps of its
    curves, and those of the loss."""
    trial, sentences, tables = record.trial, list[str](), list[Table]()
    if record.complete:
        of_trial = describe_trial(record.result, record.recipe, record.baseline)
        sentences, tables = list(of_trial.sentences), list(of_trial.tables)
        for name, score in record.result.tests.items():
            if score.confusion is not None:
                tables.append(confusion_table(f"confusion on {name}", score.confusion, record.class_names(names)))
    else:
        sentences.append(f"not finished; continue with: fairtrial train --resume {record.folder}")
    sentences += [f"note: {note}" for note in trial.notes]
    events = list(record.events())
    curves = [*curves_of(events), *(scored_losses(events) if every else ())]
    tables += [table for table in (curve_table(curves, every=every), about_table(record)) if table.rows]
    return Description(sentences, tables, charts=record_charts(record))


def about_table(record: Record) -> Table:
    """What was trained, and where."""
    recipe, trial, shape = record.recipe, record.trial, record.recipe.shape
    training, environment = recipe.training, trial.environment
    attention = f" (of attention weights {shape.attention_dropout:g})" if shape.attention_dropout else ""
    device = [each for each in (environment.device, environment.precision) if each not in ("cpu", "float32")]
    known = {
        "network": f"{KINDS[recipe.task]}, recipe {recipe.name or 'unnamed'!r}, seed {trial.seed}",
        "data": f"{recipe.data.source} ({', '.join(f'{n:,} {name}' for name, n in trial.counts.documents.items())})",
        "tokens": f"{recipe.tokens.kind}, vocabulary {trial.counts.vocabulary:,}",
        "shape": f"{counted(shape.layers, 'layer')}, {counted(shape.heads, 'head')}, width {shape.width}, feed-forward"
        f" {shape.hidden}, length {shape.length}, dropout {shape.dropout:g}{attention}",
        "parts": format_parts(recipe),
        "training": f"{training.duration}, batch {training.batch}, {training.optimizer},"
        f" learning rate {training.learning_rate:g}",
        "size": f"{record.result.parameters:,} parameters" if record.complete else "",
        "attention": attention_words(record.result.attention) if record.complete and record.result.attention else "",
        "took": f"{format_time(trained_seconds(record.clock()))} in all",
        "cite": trial.cite or "",
        "fingerprints": f"recipe {trial.recipe}, code {trial.code}, data "
        + " ".join(f"{name}:{digest[:8]}" for name, digest in sorted(trial.data.items())[:6]),
        "environment": f"Python {environment.python}, torch {environment.torch}, {environment.threads} thread(s),"
        f" {environment.system} {environment.machine}" + "".join(f", {each}" for each in device),
    }
    rows = tuple(row(name, text) for name, text in known.items() if text)
    return Table("", ("record", str(record.folder)), rows, text_columns=2)


def attention_words(use: AttentionUse) -> str:
    """`used: without it +0.21 nats, with uniform weights +0.14, words in another order +0.35; heads moved 4 to 60%`"""
    changes = (("without it", use.removed), ("with uniform weights", use.uniform), ("words shuffled", use.shuffled))
    told = ", ".join(f"{name} {change.mean:+.3f} nats" for name, change in changes)
    moved = (
        "" if not use.heads_changed else f"; heads moved {min(use.heads_changed):.0%} to {max(use.heads_changed):.0%}"
    )
    return f"{'used' if use.used else 'not used'}: {told}{moved}"


def record_charts(record: Record) -> list[LineChart]:
    """Scores and loss during training."""
    recipe, events = record.recipe, list(record.events())
    title, y_label = SCORES[recipe.task]
    percent, y_label = recipe.task == "classify", y_label.format(recipe.shape.length)
    chosen = record.complete and record.result.kept == "best" and record.result.validation
    kept = record.result.kept_step if chosen else None
    losses = (*scored_losses(events), replace(loss_curve(events), name="training batches"))
    return [
        LineChart(title, y_label, tuple(curves_of(events)), percent=percent, log=not percent, kept_step=kept),
        LineChart("Loss during training", "nats per token" if recipe.task != "classify" else "nats", losses),
    ]


def curves_of(events: Iterable[Logged]) -> list[Curve]:
    """One curve for each split that was scored during training, in order of first occurrence."""
    logged = list(events)
    unit = next((CURVE_UNITS[event.metrics.headline] for event in logged if isinstance(event, Scored)), "")
    return _curves(logged, lambda score: score.figure(score.headline), unit)


def _curves(events: Iterable[Logged], figure: Callable[[Metrics], float], unit: str) -> list[Curve]:
    points: dict[str, dict[int, float]] = {}
    for event in events:
        if isinstance(event, Scored):
            points.setdefault(event.split, {})[event.step] = figure(event.metrics)
    return [Curve(name, unit, tuple(sorted(own.items()))) for name, own in points.items()]


def loss_curve(events: Iterable[Logged], most: int = 200) -> Curve:
    """The training loss, averaged over neighbouring steps to at most `most` points."""
    steps = [(event.step, event.loss) for event in events if isinstance(event, Stepped)]
    size = max(1, -(-len(steps) // most))
    points: list[tuple[int, float]] = []
    for begin in range(0, len(steps), size):
        part = steps[begin : begin + size]
        if points and len(part) < size / 2:  # too few to average: one noisy batch would look like a jump
            break
        points.append((part[-1][0], sum(loss for _, loss in part) / len(part)))
    return Curve("loss", "nats", tuple(points))


def trained_seconds(clock: Iterable[ClockEntry]) -> float:
    """Seconds at work, without the time between a stop and its resumption."""
    total, last = 0.0, None
    for entry in clock:
        if last is not None and entry.what not in ("start", "resume"):
            total += max(0.0, entry.time - last)  # a clock may be set back
        last = entry.time
    return total


def scored_losses(events: Iterable[Logged]) -> list[Curve]:
    """The loss of each split that was scored during training."""
    return _curves(events, lambda score: score.loss, "nats")


def mean_curve(name: str, seeds: Sequence[Curve], *, log: bool = False) -> Curve:
    """The seeds' curves as one, with their range. Perplexities are averaged as logarithms."""
    values: dict[int, list[float]] = {}
    for curve in seeds:
        for step, value in curve.points:
            if is_number(value) and (value > 0 or not log):
                values.setdefault(step, []).append(value)
    points, band = [], []
    for step, at_step in sorted(values.items()):
        if 2 * len(at_step) < len(seeds):  # most seeds stopped earlier: the rest would shift the mean
            continue
        mean = math.exp(sum(map(math.log, at_step)) / len(at_step)) if log else sum(at_step) / len(at_step)
        points.append((step, mean))
        band.append((min(at_step), max(at_step)))
    return Curve(name, seeds[0].unit if seeds else "", tuple(points), tuple(band) if len(seeds) > 1 else ())


def curve_table(curves: Sequence[Curve], *, every: bool = False) -> Table:
    """One row for each scored step, one column for each split. `every`: all steps, and what each column tells."""
    steps = sorted({step for curve in curves for step, _ in curve.points})
    if len(steps) > MOST_CURVE_ROWS and not every:  # with both ends
        steps = [steps[round(at * (len(steps) - 1) / (MOST_CURVE_ROWS - 1))] for at in range(MOST_CURVE_ROWS)]
    values, unit = [dict(curve.points) for curve in curves], curves[0].unit if curves else ""
    forms = [{"accuracy": "{:.1%}", "nats": "{:.3f}"}.get(curve.unit, "{:.1f}") for curve in curves]
    rows = []
    for step in steps:
        known = [(form, value.get(step)) for form, value in zip(forms, values, strict=True)]
        cells = (Cell("" if number is None else form.format(number), number=number) for form, number in known)
        rows.append(row(Cell(str(step), number=step), *cells))
    kinds = ["loss" if curve.unit == "nats" else curve.unit.partition(",")[0] for curve in curves]
    names = [f"{curve.name} {kind}" if every else curve.name for curve, kind in zip(curves, kinds, strict=True)]
    return Table("curves" if every else f"curves ({unit}):", ("step", *names), tuple(rows))


MANY_MB = 500  # of memory, from which on it is told
COLUMNS = {  # of the scores on a test set; a baseline stands beside the first
    "accuracy": ("accuracy", "macro-F1", "majority class", "items"),
    "masked_perplexity": ("perplexity of masked tokens", "masked tokens"),
    "perplexity": (
        "perplexity",
        "bits per byte",
        "without unknown words",
        "unknown",
        "tokens",
    ),
}
LARGE_FAMILY, SEEDS_OF_LARGE_FAMILIES = 100, 10  # measured: research/statistics.md
OTHER_VOCABULARIES = "Compare models with other vocabularies by bits per byte: they count every byte."
NO_BYTES = "Token ids without spelling have no bits per byte, so other vocabularies cannot be compared."


def bytes_note(scores: Iterable[Metrics]) -> str:
    return OTHER_VOCABULARIES if any(score.bits_per_byte is not None for score in scores) else NO_BYTES


def start_lines(recipe: Recipe, started: Started) -> list[str]:
    """What is about to be trained."""
    documents = ", ".join(f"{count:,} {name}" for name, count in started.documents.items())
    shape, parts = started.shape, [format_part(part.name, part.options) for part in started.parts]
    chosen = "the last weights are kept"
    if started.choose_on:
        chosen = f"weights chosen on {started.choose_on}, {candidates(started.select_every, started.steps)}"
    lines = [
        f"data: {recipe.data.source} ({documents}); vocabulary {started.vocabulary:,}",
        f"network: {KINDS[recipe.task]}, {started.parameters:,} parameters"
        f" ({counted(shape.layers, 'layer')}, {counted(shape.heads, 'head')},"
        f" width {shape.width}, length {shape.length};"
        f" parts: {' + '.join(parts) or 'none'})",
        f"training: {started.steps:,} steps, {started.steps_per_epoch:,} per epoch; seed {started.seed}; {chosen}",
    ]
    if (needed := started.memory_mb) >= MANY_MB:
        free = f", of {left / 1000:,.1f} GB that are free" if (left := started.free_mb) else ""
        lines.append(f"memory: about {needed / 1000:,.1f} GB for training{free}")
    lines += [f"note: {note}" for note in started.notes]
    return [*lines, f"resuming from step {started.step}"] if started.step else lines


def plan_lines(plan: PlanSummary) -> list[str]:
    """The plan in a few lines."""
    names = {name for named_ in plan.trial_seconds.values() for name in named_}
    tasks = list(plan.smallest_detectable)
    done = plan.trial_count - plan.left
    finished = f", {done} already done" if done else ""
    what = f"{len(names)} variants x {plan.seed_count} seeds x {counted(len(tasks), 'task')}"
    if len({len(named) for named in plan.trial_seconds.values()}) > 1:
        what = ", ".join(f"{task}: {len(named)} variants" for task, named in plan.trial_seconds.items())
        what += f"; {plan.seed_count} seeds"
    lines = [
        f"study: {plan.name}",
        f"plan: {plan.trial_count} trials ({what}{finished}), {plan.width} at a time;"
        f" about {format_time(plan.expected_seconds)} in all"
        + (f", {format_time(final)} of it for final scores" if (final := plan.final_seconds) >= 2 else "")
        + (f"; each trial takes about {plan.memory_mb:,.0f} MB of memory" if plan.memory_mb >= 1 else ""),
    ]
    if plan.decision:
        lines.append(plan.decision)
    if plan.search_tries:
        lines.append(f"search first: {plan.search_tries} tries for each variant, on validation only")
    lines += plan.training
    for task, smallest in plan.smallest_detectable.items():
        if smallest:
            count = plan.comparisons[task]
            level = f", corrected for {count} comparisons" if count > 1 else ""
            at = " at the first look" if plan.until_clear else ""
            lines.append(f"{plan.seed_count} seeds can detect{at}{level}, {task}: {smallest}")
    lines += [
        f"endpoint, {task}: {name} decides; other test sets are exploratory" for task, name in plan.endpoint.items()
    ]
    if plan.open_ended:
        lines.append("open-ended: judged after any number of seeds; add seeds with --seeds and run it again")
    elif plan.seed_count < 5:
        lines.append("notice: a verdict needs at least 5 seeds")
    elif plan.seed_count < SEEDS_OF_LARGE_FAMILIES and max(plan.comparisons.values(), default=0) > LARGE_FAMILY:
        lines.append(
            f"notice: use {SEEDS_OF_LARGE_FAMILIES} seeds for more than {LARGE_FAMILY} comparisons; with fewer, more"
            " than 5% of studies make a false claim if noise differs greatly between variants"
        )
    lines.append(f"folder: {plan.folder}")
    return lines


def describe_score(split: str, score: Metrics) -> str:
    """Of language models with bits per byte, which also compare models of different vocabularies."""
    if score.perplexity is not None and score.bits_per_byte is not None:
        return f"{split} perplexity {score.perplexity:.1f} ({score.bits_per_byte:.3f} bits per byte)"
    return f"{split} {_headline_text(score)}"


def candidates(every: int, steps: int) -> str:
    """When weights are asked whether they are the best; curves may have further points."""
    if every >= steps:
        return "at the last step only"
    often = "every step" if every == 1 else f"every {every:,} steps"
    return f"{often} and at the end" if steps % every else often


def describe_trial(result: TrialResult, recipe: Recipe, baseline: BaselineScores | None = None) -> Description:
    """The result of one trial: a small table, and how often test sets were scored. `baseline`: its baseline.json"""
    table = score_table(result, baseline)
    sentences = [f"result ({kept_weights(result, recipe)}; seed {result.seed}):", *learning_notes(result)]
    if not result.test_watched:
        sentences.append("each test set was scored once" if result.tests else "no test set was scored")
        return Description(sentences, [table] if table.rows else [])
    reads = sorted(set(result.test_reads.values()))
    sentences.append(f"test watched: each test set was scored {' or '.join(map(str, reads))} times")
    return Description(sentences, [table] if table.rows else [])


def describe_result(result: TrialResult, recipe: Recipe, baseline: BaselineScores | None = None) -> list[str]:
    """The same as lines, while a study runs."""
    return text_lines(describe_trial(result, recipe, baseline), min(PROSE_WIDTH, terminal_width()))


def learning_notes(result: TrialResult) -> list[str]:
    """What to know before the scores are believed: whether anything was learned, and whether to the end; and what parts
    tell of themselves."""
    lines = [*result.part_notes]
    for name, score in result.tests.items():
        if score.confusion is None or score.accuracy is None or not score.items:
            continue
        guessed = sum(any(column) for column in zip(*score.confusion, strict=True))
        largest = max(map(sum, score.confusion)) / score.items
        if largest == 1:
            continue
        if guessed == 1:
            lines.append(f"did not learn: it answers one class only on {name}")
        elif score.accuracy < largest + Z_ONE_SIDED * math.sqrt(largest * (1 - largest) / score.items):
            lines.append(f"did not learn: it is no better than always answering the largest class on {name}")
    if result.training_end == "still improving":
        lines.append("underfitted: still improving at the last step; results may change with longer training")
    elif result.training_end == "overfitted":
        lines.append(f"overfitted: best at step {result.best_step:,} of {result.steps:,}, worse since")
    return lines


def kept_weights(result: TrialResult, recipe: Recipe) -> str:
    chosen = "the last"
    if result.kept == "best" and result.validation:
        every = max(1, recipe.training.select_every.steps(result.steps_per_epoch))
        chosen = f"chosen by {result.chosen_by} {candidates(every, result.steps)}"
    return f"weights of step {result.kept_step:,} of {result.steps:,}, {chosen}"


def score_table(result: TrialResult, baseline: BaselineScores | None = None) -> Table:
    """Validation and test sets, one row each; with a baseline its score on the same items, and those that are clean."""
    scores = result.scores
    first = next(iter(scores.values()), Metrics())
    metric = next((metric for metric in COLUMNS if getattr(first, metric) is not None), "perplexity")
    head, *columns = COLUMNS[metric]
    theirs, ours = (baseline.baseline, baseline.trial) if baseline else ({}, {})
    name = baseline.name if baseline and theirs else ""
    rows, some_clean = [], False
    for scored, score in scores.items():
        rows.append(_score_row(scored, score, theirs.get(scored, {}).get("all")))
        if "contaminated" in theirs.get(scored, {}) and (clean := ours.get(scored, {}).get("clean")):
            some_clean = True
            rows.append(_score_row(f"{scored}, clean items", clean, theirs[scored]["clean"]))
    over = "items" if metric == "accuracy" else "documents"
    note = f"95% intervals over test {over}, of this one seed; other seeds differ, so compare several."
    if some_clean:
        note += " Clean items do not occur in the training set."
    if metric == "perplexity":
        strided = {scored: score.full_context for scored, score in scores.items() if score.full_context is not None}
        note += f" {bytes_note(scores.values())}{strides_note(strided)}"
    if baseline and baseline.skipped:
        note += f" {baseline.name} was left out: {baseline.skipped}."
    return Table("", ("scored on", head, name, *columns), tuple(rows), note).without_empty_columns()


def _score_row(name: str, score: Metrics, baseline: Metrics | None) -> tuple[Cell, ...]:
    """In the order of COLUMNS; a subset of a test set has fewer figures."""
    first, *others = _score_cells(score)
    theirs = baseline or Metrics()
    figure = number_text(theirs.perplexity) if theirs.accuracy is None else percent(theirs.accuracy)
    return row(name, first, figure, *others)


def _score_cells(score: Metrics) -> tuple[str | int, ...]:
    if score.accuracy is not None:
        # majority: of always guessing the most frequent class
        majority = max(map(sum, score.confusion)) / (score.items or 1) if score.confusion else None
        return accuracy_text(score), percent(score.macro_f1), percent(majority), score.items or 0
    if score.masked_perplexity is not None:
        return f"{score.masked_perplexity:.1f}{bracket(score.interval)}", score.tokens or 0
    return (
        f"{number_text(score.perplexity)}{bracket(score.interval)}",
        number_text(score.bits_per_byte, ".3f"),
        number_text(score.perplexity_without_unknown),
        percent(score.unknown_share),
        score.tokens or 0,
    )


def accuracy_text(score: Metrics) -> str:
    return f"{score.accuracy:.1%}{bracket(score.interval, '.1%')}"


def _headline_text(score: Metrics) -> str:
    value = score.figure(score.headline)
    return f"{value:.1%}" if score.headline == "accuracy" else f"{value:.1f}"


@dataclass(frozen=True, repr=False)
class Tuned(Result):
    """A learning rate that was chosen on validation, and what was tried.

    >>> here = ft.StudyOptions(engine="here")
    >>> tuned = ft.tune("classify", reviews, steps=8, layers=1, width=16, hidden=16, options=here, quiet=True)
    >>> "Best learning rate" in tuned.describe().sentences[0]
    True
    """

    task: str
    best: float
    search: VariantSearch
    recipe: Path  # with the best rate

    @property
    def rates(self) -> tuple[float, ...]:
        """All that were tried."""
        return self.search.rates

    def describe(self) -> Description:
        metric = "accuracy (%)" if self.task == "classify" else "perplexity"
        name = f"validation {metric}"
        lines = [
            f"Best learning rate: {self.best:g} ({name} {self.search.validation:.4g}, {len(self.rates)} rates tried).",
            f"Recipe with this rate: {self.recipe}",
        ]
        columns = {"after a quarter of the training": self.search.scores, "after all of it": self.search.whole}
        rows = tuple(
            row(f"{rate:g}", *(MISSING if score is None else f"{score:.4g}" for score in scores))
            for rate, *scores in zip(self.rates, *columns.values(), strict=True)
        )
        return Description(lines, [Table(name, ("learning rate", *columns), rows)])
