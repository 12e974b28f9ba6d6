"""Rows from anywhere -> arrays [seed item] -> the verdict of a study, by the same statistics and in the same words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.results.item_rows import Row
from fairtrial.results.readers import Results
from fairtrial.results.sentences import counted, listed
from fairtrial.results.values import (
    FEWEST_SEEDS,
    Metric,
    Question,
    ResultFiles,
    Sentence,
    Verdict,
    is_accuracy,
)
from fairtrial.statistics.crossed import Array, Counts
from fairtrial.statistics.outcomes import LEAST, METRICS, SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_study

MOST_METRICS = 4  # more are not judged unless they are chosen: every further one costs all others power
NAMED = 5  # missing items that are named
ACCURACIES = ("", "acc", "accuracy", "correct")
LOWER = (
    "loss",
    "nll",
    "log_loss",
    "wer",
    "cer",
    "ter",
    "brier",
    "brier_score",
    "error",
    "errors",
    "mse",
    "rmse",
    "mae",
    "toxicity",
)
CHECKPOINTS = (
    "No training seeds were given, so this is the smaller question: do these very checkpoints differ on new items? It"
    f" says nothing of what another training would give; for that, train at least {FEWEST_SEEDS} seeds of each."
)
SEEDS = (
    "Seeds are taken to be training seeds, each a training of its own; seeds of evaluation (sampling, examples in the"
    " prompt) would make the intervals too narrow."
)
AVERAGED = "The seeds are those of the evaluation, not of training: each item counts by its mean over them."
ELSEWHERE = "These results were made elsewhere: neither the networks nor the data behind them were audited."
TOKENS = "Perplexity answers one question only if all variants predict the same tokens; that they do is taken as given."
ONE_SCORE = "give one score for each item, variant and seed"

Key = tuple[str, str, str, str]  # metric, test, variant, seed


def judge_results(
    results: Results,
    *,
    baseline: str | None = None,
    least_difference: float | None = None,
    lower_is_better: Sequence[str] = (),
    evaluation_seeds: bool = False,
    name: str | None = None,
    command: str = "",
) -> Verdict:
    """The verdict on results from elsewhere. `evaluation_seeds`: the seeds are not those of training; `command`: what
    gives the same again."""
    rows = results.rows
    if evaluation_seeds:
        rows = [row._replace(seed=None, repeat=f"{row.repeat} {row.seed}") for row in rows]
    check_mixed(rows)
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) < 2:
        hint = "give those of a second one; where a file is one variant, say so: 'runs/{variant}/seed-{seed}.csv'"
        raise BadInput(f"there is one variant only, {variants[0]!r}: nothing to compare it with", hint)
    chosen = variants[0] if baseline is None else baseline
    if chosen not in variants:
        known = ", ".join(variants)
        raise BadInput(f"no variant is called {chosen!r}{did_you_mean(chosen, variants)}", f"there are: {known}")
    metrics = list(dict.fromkeys(row.metric for row in rows))
    if len(metrics) > MOST_METRICS:
        hint = f"choose with --metric what you asked (metric= in Python); there are: {', '.join(metrics)}"
        raise BadInput(f"{len(metrics)} metrics: judging all of them makes each harder to show", hint)
    if least_difference is not None and len(metrics) > 1:
        raise BadInput(
            "a least difference is of one metric", f"choose it with --metric (metric= in Python): {', '.join(metrics)}"
        )
    for each in lower_is_better:
        if each not in metrics:
            raise BadInput(
                f"no metric is called {each!r}{did_you_mean(each, metrics)}", f"there are: {listed(metrics)}"
            )
    one = single(rows)
    seeds = dict.fromkeys((row.seed for row in rows), 0) if one else numbered_seeds(rows)
    tasks: dict[str, TaskOutcomes] = {}
    question = Question.CHECKPOINTS if one else Question.NEW_RUNS
    for metric in metrics:
        own = [row for row in rows if row.metric == metric]
        found = task_of(own, metric, chosen, seeds, metric in lower_is_better)
        least = LEAST.get("accuracy" if is_accuracy(found.metric) else found.metric, 0.0)
        least = least if least_difference is None else least_difference
        if found.metric in tasks:
            hint = f"choose one with --metric (metric= in Python); there are: {', '.join(metrics)}"
            raise BadInput(f"two metrics are {found.metric!r} by another name", hint)
        tasks[found.metric] = replace(found, question=question, least_difference=least)
    same = [] if one else same_everywhere(tasks)
    if len(same) == len(variants):  # one network of each, evaluated several times
        tasks = {title: first_seed(task) for title, task in tasks.items()}
        one = True
    verdict = judge_study(name or results.name, tasks)
    notes = [*results.notes, *([AVERAGED] if evaluation_seeds else [])]
    if baseline is None:
        other = f"--baseline {variants[1]}, in Python baseline={variants[1]!r}"
        notes.insert(0, f"The baseline is {chosen}, the first variant; another: {other}.")
    if same:
        notes.append(same_words(same, len(variants)))
    notes += [SEEDS] if not one else []
    notes += [TOKENS] if "perplexity" in tasks else []
    question = Question.CHECKPOINTS if one else Question.NEW_RUNS
    return replace(
        verdict,
        sentences=(
            *([Sentence(CHECKPOINTS)] if one else []),
            *verdict.sentences,
            *(Sentence(note) for note in [*notes, ELSEWHERE]),
        ),
        results=ResultFiles(results.files, question, len(rows), command),
    )


def repeat_command(what: object, options: Mapping[str, object]) -> str:
    """What makes the page again, from files; empty where there are none. `options`: those of `ft.verdict`."""
    given, labels = [what] if isinstance(what, str | Path) else what, options["labels"]
    if not isinstance(given, Sequence) or not all(isinstance(each, str | Path) for each in given):
        return ""
    if not (labels is None or isinstance(labels, str | Path)):
        return ""
    words = ["fairtrial", "verdict", *map(str, given), "--out", "report.html"]
    for name, value in options.items():
        flag = "--column" if name == "columns" else f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            words += [word for ours, theirs in value.items() for word in (flag, f"{ours}={theirs}")]
        elif isinstance(value, bool):
            words += [flag] * value
        elif isinstance(value, Sequence) and not isinstance(value, str):
            words += [word for each in value for word in (flag, str(each))]
        elif value is not None:
            words += [flag, str(value)]
    return shlex.join(words)


def check_mixed(rows: Sequence[Row]) -> None:
    without = next((row for row in rows if row.seed is None), None)
    if without is not None and (seeded := next((row for row in rows if row.seed is not None), None)):
        what = f"{without.where} has no seed, {seeded.where} has seed {seeded.seed}"
        raise BadInput(what, "give all rows their training seed, or none")


def single(rows: Iterable[Row]) -> bool:
    """Whether there is one training of each variant."""
    seeds: dict[str, set[str | None]] = {}
    for row in rows:
        seeds.setdefault(row.variant, set()).add(row.seed)
    return all(len(each) == 1 for each in seeds.values())


def numbered_seeds(rows: Iterable[Row]) -> dict[str | None, int]:
    """Seeds are numbers; names are numbered as they come. A single seed of each variant need not be the same one."""
    names = list(dict.fromkeys(row.seed for row in rows))
    if all(name is not None and name.isdigit() and len(name) < 18 for name in names):
        return {name: int(name or 0) for name in names}
    return {name: number for number, name in enumerate(names)}


def metric_of(rows: Sequence[Row], name: str, lower: bool) -> Metric:
    """Right and wrong answers are accuracy, whatever they are called."""
    told = {row.higher_is_better for row in rows} - {None}
    if len(told) > 1:
        raise BadInput(f"higher_is_better is both true and false for {name or 'the value'}", "say it alike in all rows")
    known = METRICS.get(name)
    higher = known.higher_is_better if known else not (lower or name.split(",")[0].lower() in LOWER)
    higher = bool(told.pop()) if told else higher and not lower
    shares = all(row.value is None or row.value in (0.0, 1.0) for row in rows)
    if higher and (name in ACCURACIES[1:] or shares):
        if any(row.value is not None and not 0 <= row.value <= 1 for row in rows):
            what = next(row for row in rows if row.value is not None and not 0 <= row.value <= 1)
            raise BadInput(f"{what.where}: accuracy of one item is between 0 and 1, got {what.value:g}")
        return METRICS["accuracy"] if name in ACCURACIES else Metric(f"accuracy ({name})", "points", True)
    if known:
        return replace(known, higher_is_better=higher)
    return Metric(name or "score", name or "score", higher)


def task_of(
    rows: Sequence[Row], name: str, baseline: str, seeds: Mapping[str | None, int], lower: bool
) -> TaskOutcomes:
    """All results in one metric."""
    metric, cells = metric_of(rows, name, lower), cells_of(rows)
    classes = class_numbers(rows)
    outcomes: dict[str, dict[str, SetOutcomes]] = {}
    clusters: dict[str, Counts] = {}
    for test in dict.fromkeys(row.test for row in rows):
        title = test or "test"
        own = {key[2:]: found for key, found in cells.items() if key[1] == test}
        items = same_items(own, title)
        first = next(iter(own.values()))
        check_other_content(own, items, title)
        groups = [first[item][0].group for item in items]
        if any(group is not None for group in groups):
            if None in groups:
                raise BadInput(f"{first[items[groups.index(None)]][0].where}: group is empty", "give every item one")
            clusters[title] = group_numbers([str(group) for group in groups])
        for variant in dict.fromkeys(whose for whose, _ in own):
            by_seed = {seeds[seed or None]: found for (whose, seed), found in own.items() if whose == variant}
            stacked = arrays_of(by_seed, items, metric, classes)
            order = tuple(sorted(by_seed))
            right = "guess" in stacked
            outcomes.setdefault(variant, {})[title] = SetOutcomes(order, stacked, metric=None if right else metric)
    if baseline not in outcomes:
        raise BadInput(
            f"{baseline!r} has no {metric.name}", "compare what both have: choose with --metric (metric= in Python)"
        )
    labels = tuple(classes) if "guess" in next(iter(outcomes[baseline].values())).arrays else ()
    return TaskOutcomes(
        task=metric.name, baseline=baseline, least_difference=0.0, variants=outcomes, clusters=clusters, labels=labels
    )


def cells_of(rows: Iterable[Row]) -> dict[Key, dict[str, list[Row]]]:
    """Metric, test set, variant and seed -> item -> its rows, one for each repeat of the evaluation."""
    found: dict[Key, dict[str, list[Row]]] = {}
    for row in rows:
        cell = found.setdefault((row.metric, row.test, row.variant, row.seed or ""), {}).setdefault(row.item, [])
        twin = next((other for other in cell if other.repeat == row.repeat), None)
        if twin is not None:
            what = f"item {row.item!r} of {row.variant}{of_seed(row.seed)} has two scores: {twin.where} and {row.where}"
            hint = f"{ONE_SCORE}; where files differ in variant or seed, say so: 'runs/{{variant}}/seed-{{seed}}/NAME'"
            raise BadInput(what, hint)
        cell.append(row)
    return found


def of_seed(seed: str | None) -> str:
    return f", seed {seed}," if seed else ""


def same_items(own: Mapping[tuple[str, str], Mapping[str, list[Row]]], test: str) -> list[str]:
    """All items, in the order of the first. Every variant and seed must have every one."""
    items = list(dict.fromkeys(item for found in own.values() for item in found))
    for (variant, seed), found in own.items():
        if lost := [item for item in items if item not in found]:
            names = ", ".join(lost[:NAMED]) + (f" and {len(lost) - NAMED:,} more" if len(lost) > NAMED else "")
            what = f"{variant}{of_seed(seed)} lacks {counted(len(lost), 'item')} of {test} that others have: {names}"
            raise BadInput(what, "compare on equal items: score them, or leave them out everywhere")
    return items


def check_other_content(
    own: Mapping[tuple[str, str], Mapping[str, list[Row]]], items: Sequence[str], test: str
) -> None:
    """An item of one name must be the same item everywhere: its label, its group, what a hash says of it."""
    first = next(iter(own.values()))
    for found in own.values():
        for item in items:
            one, other = first[item][0], found[item][0]
            for what in ("label", "group", "content"):
                if getattr(one, what) != getattr(other, what):
                    told = f"{what} {getattr(one, what)!r} in {one.where}, {getattr(other, what)!r} in {other.where}"
                    raise BadInput(f"item {item!r} of {test} is not the same item everywhere: {told}")


def class_numbers(rows: Iterable[Row]) -> dict[str, int]:
    """Labels and predictions, sorted: by number where all are numbers."""
    names = {name for row in rows for name in (row.label, row.prediction) if name is not None}
    numeric = all(name.isdigit() for name in names)
    return {name: at for at, name in enumerate(sorted(names, key=int if numeric else str))}


def group_numbers(groups: Sequence[str]) -> Counts:
    if all(group.isdigit() and len(group) < 18 for group in groups):
        return np.array([int(group) for group in groups])
    return np.unique(np.array(groups), return_inverse=True)[1]


def arrays_of(
    by_seed: Mapping[int, Mapping[str, list[Row]]], items: Sequence[str], metric: Metric, classes: Mapping[str, int]
) -> dict[str, Array]:
    """[seed item], seeds in order."""
    cells = [[by_seed[seed][item] for item in items] for seed in sorted(by_seed)]
    every = [row for line in cells for cell in line for row in cell]
    both = all(row.label is not None and row.prediction is not None for row in every)
    accuracy, plain = is_accuracy(metric.name), all(row.weight == 1.0 for row in every)
    if accuracy and both and plain and all(len(cell) == 1 for line in cells for cell in line):
        for row in every:
            if row.value is not None and row.value != float(row.label == row.prediction):
                told = f"label {row.label!r}, prediction {row.prediction!r}, value {row.value:g}"
                raise BadInput(f"{row.where}: the value is not what label and prediction say ({told})")
        sides = ("guess", "prediction"), ("label", "label")
        return {
            name: np.array([[classes[getattr(cell[0], key)] for cell in line] for line in cells]) for name, key in sides
        }
    scale = 100.0 if accuracy else 1.0
    values = np.array([[scale * np.mean([value_of(row) for row in cell]) for cell in line] for line in cells])
    weights = np.array([[np.mean([row.weight for row in cell]) for cell in line] for line in cells])
    if (weights < 0).any() or not weights.any(1).all():
        raise BadInput("weights must not be negative, and not all zero", "a weight is the tokens or bytes of an item")
    found = {"value": values, "weight": weights}
    if accuracy and plain and all(row.label is not None for row in every):  # classes are strata of a score's interval
        found["label"] = np.array([[classes[str(cell[0].label)] for cell in line] for line in cells])
    return found


def value_of(row: Row) -> float:
    return float(row.label == row.prediction) if row.value is None else row.value


def same_everywhere(tasks: Mapping[str, TaskOutcomes]) -> list[str]:
    """Variants whose seeds all have the same outcome on every item, as one network that was evaluated again has."""
    first = next(iter(tasks.values())).variants
    found = []
    for variant in first:
        sets = [outcomes for task in tasks.values() for outcomes in task.variants.get(variant, {}).values()]
        arrays = [array for each in sets for array in each.arrays.values()]
        if len(sets[0].seeds) > 1 and all((array == array[:1]).all() for array in arrays):
            found.append(variant)
    return found


def first_seed(task: TaskOutcomes) -> TaskOutcomes:
    variants = {
        name: {test: outcomes.rows(outcomes.seeds[:1]) for test, outcomes in by_set.items()}
        for name, by_set in task.variants.items()
    }
    return replace(task, variants=variants, question=Question.CHECKPOINTS)


def same_words(same: Sequence[str], variants: int) -> str:
    line = f"All seeds of {listed(list(same))} have the same outcome on every item, as one checkpoint has that is"
    line += " evaluated again: such seeds are no training seeds"
    return line + (", and they count as one." if len(same) == variants else ".")
