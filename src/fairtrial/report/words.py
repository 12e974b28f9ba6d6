"""A trial's plan, start and result as a reader sees them, for commands and pages alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairtrial.description import MISSING, Cell, Table, row
from fairtrial.formatting import KINDS, bracket, format_part, format_time, strides_note
from fairtrial.recipe import Recipe
from fairtrial.report.render import PROSE_WIDTH, as_text, terminal_width
from fairtrial.results.sentences import counted
from fairtrial.statistics.outcomes import Z_ONE_SIDED, headline

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
OTHER_VOCABULARIES = "Compare models with other vocabularies by bits per byte: they count every byte."


def start_lines(recipe: Recipe, facts: dict[str, Any], step: int) -> list[str]:
    """What is about to be trained."""
    documents = ", ".join(f"{count:,} {name}" for name, count in facts["documents"].items())
    shape, parts = facts["shape"], [format_part(**part) for part in facts["parts"]]
    chosen = "the last weights are kept"
    if facts["choose_on"]:
        chosen = f"weights chosen on {facts['choose_on']}, {candidates(facts['select_every'], facts['steps'])}"
    lines = [
        f"data: {recipe.data.source} ({documents}); vocabulary {facts['vocabulary']:,}",
        f"network: {KINDS[recipe.task]}, {facts['parameters']:,} parameters"
        f" ({counted(shape['layers'], 'layer')}, {counted(shape['heads'], 'head')},"
        f" width {shape['width']}, length {shape['length']};"
        f" parts: {' + '.join(parts) or 'none'})",
        f"training: {facts['steps']:,} steps, {facts['steps_per_epoch']:,} per epoch; seed {facts['seed']}; {chosen}",
    ]
    if (needed := facts.get("memory_mb", 0)) >= MANY_MB:
        free = f", of {left / 1000:,.1f} GB that are free" if (left := facts.get("free_mb")) else ""
        lines.append(f"memory: about {needed / 1000:,.1f} GB for training{free}")
    lines += [f"note: {note}" for note in facts["notes"]]
    return [*lines, f"resuming from step {step}"] if step else lines


def plan_lines(plan: dict[str, Any]) -> list[str]:
    """The plan in a few lines."""
    names = {name for named_ in plan["trial_seconds"].values() for name in named_}
    tasks = list(plan["smallest_detectable"])
    done = plan["trial_count"] - plan["left"]
    finished = f", {done} of them already done" if done else ""
    lines = [
        f"study: {plan['name']}",
        f"plan: {plan['trial_count']} trials ({len(names)} variants x {plan['seed_count']} seeds x {len(tasks)}"
        f" {'task' if len(tasks) == 1 else 'tasks'}{finished}), {plan['width']} at a time;"
        f" about {format_time(plan['expected_seconds'])} in all"
        + (f", {format_time(final)} of it for final scores" if (final := plan.get("final_seconds", 0)) >= 2 else "")
        + (f"; a trial's training takes about {plan['memory_mb']:,.0f} MB" if plan.get("memory_mb", 0) >= 1 else ""),
    ]
    if plan["decision"]:
        lines.append(plan["decision"])
    if plan["search_tries"]:
        lines.append(f"search first: {plan['search_tries']} tries for each variant, on validation only")
    lines += plan["training"]
    for task, sets in plan["smallest_detectable"].items():
        sizes = "; ".join(f"{name}: {smallest}" for name, smallest in sets.items() if smallest)
        if sizes:
            count = plan["comparisons"][task]
            level = f" after correction for {count} comparisons" if count > 1 else ""
            at = " at the first look" if plan["until_clear"] else ""
            lines.append(f"smallest difference that {plan['seed_count']} seeds detect{at}{level}, {task}: {sizes}")
    if plan["seed_count"] < 5:
        lines.append("notice: fewer than 5 seeds get no verdict")
    lines.append(f"folder: {plan['folder']}")
    return lines


def describe_score(split: str, score: dict[str, Any]) -> str:
    return f"{split} {_headline_text(score)}"


def candidates(every: int, steps: int) -> str:
    """When weights are asked whether they are the best; curves may have further points."""
    if every >= steps:
        return "at the last step only"
    often = "every step" if every == 1 else f"every {every:,} steps"
    return f"{often} and at the end" if steps % every else often


def describe_result(result: dict[str, Any], recipe: Recipe, baseline: Mapping[str, Any] = {}) -> list[str]:
    """The result of one trial: a small table, and how often test sets were scored. `baseline`: its baseline.json"""
    table = score_table(result, baseline)
    lines = [f"result ({kept_weights(result, recipe)}; seed {result['seed']}):"]
    lines += as_text(table, width=min(PROSE_WIDTH, terminal_width())) if table.rows else []
    lines += [f"  {line}" for line in learning_notes(result)]
    if not result["test_watched"]:
        return [*lines, "  each test set was scored once" if result["tests"] else "  no test set was scored"]
    reads = sorted(set(result["test_reads"].values()))
    lines.append(f"  test watched: each test set was scored {' or '.join(map(str, reads))} times")
    for name, best in result["picked_on_test"].items():
        kept, (metric, sign) = result["tests"][name], headline(best)
        if sign * best[metric] > sign * kept[metric]:
            numbers = f"{_headline_text(best)} instead of {_headline_text(kept)}"
            lines.append(f"  with its best step ({best['step']:,}) picked on {name}, it would score {numbers}")
    return lines


def copies_text(copies: dict[str, Any]) -> str:
    """`552 of 750 test items (73.6%) also occur in the training set (551 exact, 1 near duplicates); 198 are clean`: the
    training set is all that weights are trained on or chosen by, the validation set included."""
    copied = copies["exact"] + copies["near"]
    if not copied:
        return f"none of {copies['items']:,} test items occurs in the training set"
    return (
        f"{copied:,} of {copies['items']:,} test items ({copies['share']:.1%}) also occur in the training set"
        f" ({copies['exact']:,} exact, {copies['near']:,} near duplicates); {copies['clean']:,} are clean"
    )


def learning_notes(result: dict[str, Any]) -> list[str]:
    """What to know before the scores are believed: whether anything was learned, and whether to the end; and what parts
    tell of themselves."""
    lines, unlearned = [*result.get("part_notes", ())], list[str]()
    for name, score in result["tests"].items():
        if "confusion" not in score:
            continue
        guessed = sum(any(row[column] for row in score["confusion"]) for column in range(len(score["confusion"])))
        largest = max(map(sum, score["confusion"])) / score["items"]
        if largest == 1:
            continue
        if guessed == 1:
            unlearned.append(f"did not learn: it answers one class only on {name}")
        elif score["accuracy"] < largest + Z_ONE_SIDED * math.sqrt(largest * (1 - largest) / score["items"]):
            unlearned.append(f"did not learn: it is no better than always answering the largest class on {name}")
    lines += unlearned
    if result.get("training_end") == "still improving":
        lines.append("underfitted: still improving at the last step; train longer before you believe this")
    elif result.get("training_end") == "overfitted":
        best_step = result.get("best_step", result["kept_step"])  # earlier records have the kept one only
        lines.append(f"overfitted: best at step {best_step:,} of {result['steps']:,}, worse since")
    elif unlearned:
        epochs = result["steps"] / result.get("steps_per_epoch", math.inf)  # earlier records do not say it
        this = f"; this was {epochs:.1f} epochs" if epochs else ""
        lines.append(f"train longer, or try another learning rate{this}")
    return lines


def kept_weights(result: dict[str, Any], recipe: Recipe) -> str:
    rule, per_epoch = result.get("chosen_by"), result.get("steps_per_epoch")  # earlier records do not say them
    best = f"chosen by {rule}" if rule else "the best on validation"
    if rule and per_epoch:
        best += f" {candidates(max(1, recipe.training.select_every.steps(per_epoch)), result['steps'])}"
    how = best if result["kept"] == "best" and result["validation"] else "the last"
    return f"weights of step {result['kept_step']:,} of {result['steps']:,}, {how}"


def score_table(result: dict[str, Any], baseline: Mapping[str, Any] = {}) -> Table:
    """Validation and test sets, one row each; with a baseline its score on the same items, and those that are clean."""
    scores = {**({"validation": result["validation"]} if result["validation"] else {}), **result["tests"]}
    first: dict[str, Any] = next(iter(scores.values()), {})
    metric = next((metric for metric in COLUMNS if metric in first), "perplexity")
    head, *columns = COLUMNS[metric]
    theirs, ours = baseline.get("baseline", {}), baseline.get("trial", {})
    name = baseline.get("name", "") if theirs else ""
    rows = []
    for scored, score in scores.items():
        rows.append(_score_row(scored, score, theirs.get(scored, {}).get("all")))
        if "contaminated" in theirs.get(scored, {}) and (clean := ours.get(scored, {}).get("clean")):
            rows.append(_score_row(f"{scored}, clean items", clean, theirs[scored]["clean"]))
    over = "items" if metric == "accuracy" else "documents"
    note = f"95% intervals over test {over}, of this one seed; other seeds differ, so compare several."
    if len(rows) > len(scores):
        note += " Clean items do not occur in the training set."
    if metric == "perplexity":
        strided = {scored: score["full_context"] for scored, score in scores.items() if "full_context" in score}
        windows = ", ".join(f"{scored} {_digits(score.get('window_perplexity'))}" for scored, score in scores.items())
        note += (
            f" {OTHER_VOCABULARIES} In non-overlapping windows, as curves have it: {windows}.{strides_note(strided)}"
        )
    if "majority class" in columns:
        note += " Majority class: the share of the largest class of those very items."
    if "skipped" in baseline:
        note += f" {baseline['name']} was left out: {baseline['skipped']}."
    return Table("", ("scored on", head, name, *columns), tuple(rows), note).without_empty_columns()


def _score_row(name: str, score: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> tuple[Cell, ...]:
    """In the order of COLUMNS; a subset of a test set has fewer figures."""
    first, *others = _score_cells(score)
    return row(name, first, _first_figure(baseline) if baseline else MISSING, *others)


def _first_figure(score: Mapping[str, Any]) -> str:
    return f"{score['accuracy']:.1%}" if "accuracy" in score else _digits(score["perplexity"])


def _digits(value: float | None, form: str = ".1f") -> str:
    return MISSING if value is None else f"{value:{form}}"


def _score_cells(score: Mapping[str, Any]) -> tuple[str | int, ...]:
    if "accuracy" in score:
        table = score.get("confusion")  # majority: of always guessing the most frequent class
        majority = max(map(sum, table)) / score["items"] if table else None
        return accuracy_text(score), _digits(score.get("macro_f1"), ".1%"), _digits(majority, ".1%"), score["items"]
    if "masked_perplexity" in score:
        return f"{score['masked_perplexity']:.1f}{bracket(score['interval'])}", score["tokens"]
    return (
        f"{score['perplexity']:.1f}{bracket(score['interval'])}", f"{score['bits_per_byte']:.3f}",
        _digits(score.get("perplexity_without_unknown")), f"{score['unknown_share']:.1%}", score["tokens"],
    )  # fmt: skip


def accuracy_text(score: Mapping[str, Any]) -> str:
    return f"{score['accuracy']:.1%}{bracket(score['interval'], '.1%')}"


def _headline_text(score: dict[str, Any]) -> str:
    name, _ = headline(score)
    return f"{score[name]:.1%}" if name == "accuracy" else f"{score[name]:.1f}"
