"""A trial's plan, start and result as a reader sees them, for commands and pages alike."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairtrial.description import MISSING, Cell, Description, Table, row
from fairtrial.events import Started
from fairtrial.formatting import KINDS, bracket, format_part, format_time, strides_note
from fairtrial.recipe import Recipe
from fairtrial.report.render import PROSE_WIDTH, terminal_width, text_lines
from fairtrial.results.sentences import counted
from fairtrial.statistics.outcomes import Z_ONE_SIDED
from fairtrial.stored import HEADLINES, BaselineScores, Metrics, PlanSummary, TrialResult
from fairtrial.typed import structure

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
LARGE_FAMILY, SEEDS_OF_LARGE_FAMILIES = 100, 10  # measured: docs/statistics.md
OTHER_VOCABULARIES = "Compare models with other vocabularies by bits per byte: they count every byte."


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
    finished = f", {done} of them already done" if done else ""
    lines = [
        f"study: {plan.name}",
        f"plan: {plan.trial_count} trials ({len(names)} variants x {plan.seed_count} seeds x {len(tasks)}"
        f" {'task' if len(tasks) == 1 else 'tasks'}{finished}), {plan.width} at a time;"
        f" about {format_time(plan.expected_seconds)} in all"
        + (f", {format_time(final)} of it for final scores" if (final := plan.final_seconds) >= 2 else "")
        + (f"; a trial's training takes about {plan.memory_mb:,.0f} MB" if plan.memory_mb >= 1 else ""),
    ]
    if plan.decision:
        lines.append(plan.decision)
    if plan.search_tries:
        lines.append(f"search first: {plan.search_tries} tries for each variant, on validation only")
    lines += plan.training
    for task, smallest in plan.smallest_detectable.items():
        if smallest:
            count = plan.comparisons[task]
            level = f" after correction for {count} comparisons" if count > 1 else ""
            at = " at the first look" if plan.until_clear else ""
            lines.append(f"smallest difference that {plan.seed_count} seeds detect{at}{level}, {task}: {smallest}")
    lines += [
        f"endpoint, {task}: {name} decides; other test sets are exploratory" for task, name in plan.endpoint.items()
    ]
    if plan.open_ended:
        lines.append("open-ended: judged after any number of seeds; add seeds with --seeds and run it again")
    elif plan.seed_count < 5:
        lines.append("notice: fewer than 5 seeds get no verdict")
    elif plan.seed_count < SEEDS_OF_LARGE_FAMILIES and max(plan.comparisons.values(), default=0) > LARGE_FAMILY:
        lines.append(
            f"notice: take {SEEDS_OF_LARGE_FAMILIES} seeds for more than {LARGE_FAMILY} comparisons: with fewer, a"
            " study whose variants differ greatly in noise makes false claims more often than in 5% of cases"
        )
    lines.append(f"folder: {plan.folder}")
    return lines


def describe_score(split: str, score: Metrics) -> str:
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
    for name, best in result.picked_on_test.items():
        metric = result.tests[name].headline
        if HEADLINES[metric] * best.score > HEADLINES[metric] * result.tests[name].figure(metric):
            numbers = f"{_figure_text(metric, best.score)} instead of {_headline_text(result.tests[name])}"
            sentences.append(f"with its best step ({best.step:,}) picked on {name}, it would score {numbers}")
    return Description(sentences, [table] if table.rows else [])


def describe_result(result: TrialResult, recipe: Recipe, baseline: BaselineScores | None = None) -> list[str]:
    """The same as lines, while a study runs."""
    return text_lines(describe_trial(result, recipe, baseline), min(PROSE_WIDTH, terminal_width()))


def copies_text(copies: Mapping[str, object]) -> str:
    """`552 of 750 test items (73.6%) also occur in the training set (551 exact, 1 near duplicates); 198 are clean`: the
    training set is all that weights are trained on or chosen by, the validation set included."""
    items, exact, near, clean = (structure(int, copies[name]) for name in ("items", "exact", "near", "clean"))
    if not exact + near:
        return f"none of {items:,} test items occurs in the training set"
    share = structure(float, copies["share"])
    return (
        f"{exact + near:,} of {items:,} test items ({share:.1%}) also occur in the training set"
        f" ({exact:,} exact, {near:,} near duplicates); {clean:,} are clean"
    )


def learning_notes(result: TrialResult) -> list[str]:
    """What to know before the scores are believed: whether anything was learned, and whether to the end; and what parts
    tell of themselves."""
    lines, failed = [*result.part_notes], False
    for name, score in result.tests.items():
        if score.confusion is None or score.accuracy is None or not score.items:
            continue
        guessed = sum(any(column) for column in zip(*score.confusion, strict=True))
        largest = max(map(sum, score.confusion)) / score.items
        if largest == 1:
            continue
        if guessed == 1:
            failed = True
            lines.append(f"did not learn: it answers one class only on {name}")
        elif score.accuracy < largest + Z_ONE_SIDED * math.sqrt(largest * (1 - largest) / score.items):
            failed = True
            lines.append(f"did not learn: it is no better than always answering the largest class on {name}")
    if result.training_end == "still improving":
        lines.append("underfitted: still improving at the last step; train longer before you believe this")
    elif result.training_end == "overfitted":
        lines.append(f"overfitted: best at step {result.best_step:,} of {result.steps:,}, worse since")
    elif failed:
        epochs = result.steps / result.steps_per_epoch
        lines.append(f"train longer, or try another learning rate; this was {epochs:.1f} epochs")
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
        windows = ", ".join(f"{scored} {_digits(score.window_perplexity)}" for scored, score in scores.items())
        note += (
            f" {OTHER_VOCABULARIES} In non-overlapping windows, as curves have it: {windows}.{strides_note(strided)}"
        )
    if "majority class" in columns:
        note += " Majority class: the share of the largest class of those very items."
    if baseline and baseline.skipped:
        note += f" {baseline.name} was left out: {baseline.skipped}."
    return Table("", ("scored on", head, name, *columns), tuple(rows), note).without_empty_columns()


def _score_row(name: str, score: Metrics, baseline: Metrics | None) -> tuple[Cell, ...]:
    """In the order of COLUMNS; a subset of a test set has fewer figures."""
    first, *others = _score_cells(score)
    return row(name, first, _first_figure(baseline) if baseline else MISSING, *others)


def _first_figure(score: Metrics) -> str:
    return f"{score.accuracy:.1%}" if score.accuracy is not None else _digits(score.perplexity)


def _digits(value: float | None, form: str = ".1f") -> str:
    return MISSING if value is None else f"{value:{form}}"


def _score_cells(score: Metrics) -> tuple[str | int, ...]:
    if score.accuracy is not None:
        # majority: of always guessing the most frequent class
        majority = max(map(sum, score.confusion)) / (score.items or 1) if score.confusion else None
        return accuracy_text(score), _digits(score.macro_f1, ".1%"), _digits(majority, ".1%"), score.items or 0
    if score.masked_perplexity is not None:
        return f"{score.masked_perplexity:.1f}{bracket(score.interval)}", score.tokens or 0
    return (
        f"{_digits(score.perplexity)}{bracket(score.interval)}",
        _digits(score.bits_per_byte, ".3f"),
        _digits(score.perplexity_without_unknown),
        _digits(score.unknown_share, ".1%"),
        score.tokens or 0,
    )


def accuracy_text(score: Metrics) -> str:
    return f"{score.accuracy:.1%}{bracket(score.interval, '.1%')}"


def _headline_text(score: Metrics) -> str:
    return _figure_text(score.headline, score.figure(score.headline))


def _figure_text(name: str, value: float) -> str:
    return f"{value:.1%}" if name == "accuracy" else f"{value:.1f}"
