"""Rows from anywhere -> arrays [seed item], or one number per run -> the verdict of a study, by the same statistics and
in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.results.item_rows import Column, Rows
from fairtrial.results.readers import Results
from fairtrial.results.sentences import counted, listed
from fairtrial.results.values import FEWEST_SEEDS, Metric, Question, ResultFiles, Sentence, Verdict
from fairtrial.statistics.crossed import Array, Counts, Mask
from fairtrial.statistics.multiplicity import ALPHA
from fairtrial.statistics.outcomes import LEAST, METRICS, SetOutcomes, TaskOutcomes, metric_named, run_values
from fairtrial.statistics.verdict import judge_study

NAMED = 5  # missing items, or copies, that are named
SAME = 10  # different numbers that two runs have in common by no chance
ACCURACIES = ("acc", "accuracy", "correct", "is_correct")
LIMITS = {
    Question.CHECKPOINTS: "No training seeds were given, so the verdict is about these checkpoints on new items."
    f" A verdict about new training runs needs at least {FEWEST_SEEDS} seeds per variant.",
    Question.NEW_RUNS_SAME_ITEMS: "One score per run cannot show whether a difference also holds on other test items.",
}
UNPAIRED = "No column holds seeds, so runs are compared as independent groups."
ONE_SCORE = "give one score for each item, variant and seed (of repeated evaluations their mean)"
CHOOSE = "with --metric, metric= in Python"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of results."""

    baseline: str | None = None
    metrics: Sequence[str] = ()
    margin: float | None = None
    higher_is_better: bool | None = None  # of the metric that is judged; None: its name tells
    threshold: float | None = None  # judge each variant against this score
    alpha: float = ALPHA


def judge_results(results: Results, asked: Asked, *, name: str | None = None) -> Verdict:
    """The verdict on results from elsewhere."""
    rows, notes = wanted_metrics(results.rows, asked.metrics), list(results.notes)
    runs = "item" not in rows.texts
    if asked.threshold is not None and not runs:
        raise BadInput("a threshold is for one score per run", "leave out --threshold, or give a table without items")
    if runs:
        rows, more = final_scores(rows)
        notes += more
    rows.check_filled()
    if None in rows["seed"].values[1:] or (rows["seed"].values[0] is None and rows["seed"].values[1:]):
        bare = rows["seed"].codes == rows["seed"].values.index(None)
        one, other = int(bare.argmax()), int(bare.argmin())
        what = f"{rows.where(one)} has no seed, {rows.where(other)} has seed {rows['seed'].at(other)}"
        raise BadInput(what, "give all rows their training seed, or none")
    variants = [str(variant) for variant in rows["variant"].values]
    if len(variants) < 2 and asked.threshold is None:
        hint = "add a second variant; if each file is one variant, give a pattern: 'runs/{variant}/seed-{seed}.csv'"
        raise BadInput(f"there is one variant only, {variants[0]!r}: nothing to compare it with", hint)
    chosen = variants[0] if asked.baseline is None else asked.baseline
    if chosen not in variants:
        known = ", ".join(variants)
        raise BadInput(f"no variant is called {chosen!r}{did_you_mean(chosen, variants)}", f"there are: {known}")
    metrics = [str(metric or "") for metric in rows["metric"].values]
    one = not runs and single(rows)
    question = Question.NEW_RUNS_SAME_ITEMS if runs else Question.CHECKPOINTS if one else Question.NEW_RUNS
    seeds = dict.fromkeys(rows["seed"].values, 0) if one else numbered_seeds(rows["seed"].values)
    tasks: dict[str, TaskOutcomes] = {}
    for number, metric in enumerate(metrics):
        own = rows.kept(rows["metric"].codes == number) if len(metrics) > 1 else rows
        kind = metric_of(own, metric, asked, not tasks)
        outcomes, clusters, labels = run_task(own, kind, seeds) if runs else item_task(own, kind, seeds)
        if chosen not in outcomes:
            raise BadInput(f"{chosen!r} has no {kind.name}", f"compare what both have: choose {CHOOSE}")
        if kind.name in tasks:
            hint = f"choose one {CHOOSE}; there are: {', '.join(metrics)}"
            raise BadInput(f"two metrics are {kind.name!r} by another name", hint)
        least = LEAST.get("accuracy" if kind.is_accuracy else kind.name, 0.0)
        tasks[kind.name] = TaskOutcomes(
            task=kind.name,
            baseline=chosen,
            least_difference=asked.margin if asked.margin is not None and not tasks else least,
            variants=outcomes,
            clusters=clusters,
            labels=labels,
            question=question,
            primary=not tasks,
            level=asked.alpha,
            threshold=None if tasks or asked.threshold is None else threshold_of(own, kind, asked.threshold),
        )
    same = [] if one or runs else same_everywhere(tasks)
    if same and len(same) == len(variants):  # one network of each, evaluated several times
        tasks = {title: first_seed(task) for title, task in tasks.items()}
        one, question = True, Question.CHECKPOINTS
    verdict = judge_study(name or results.name, tasks)
    if asked.baseline is None and asked.threshold is None:
        another = f"--baseline {variants[1]} (in Python baseline={variants[1]!r})"
        notes.insert(0, f"The baseline is {chosen}, the first variant. To choose another: {another}.")
    if len(tasks) > 1:
        notes.append(f"Judged by {next(iter(tasks))}; other metrics are exploratory. Choose another {CHOOSE}.")
    notes += [same_words(same)] if same and not one else []
    answers, limits = ([each for each in verdict.sentences if each.limit is kind] for kind in (False, True))
    limit = same_words(same) if one and same else LIMITS.get(question)
    first = [Sentence(limit, limit=True)] if limit else []
    further = [Sentence(note, limit=True) for note in notes]
    files = ResultFiles(results.files, question, len(rows))
    return replace(verdict, sentences=(*answers, *first, *further, *limits), results=files)


def wanted_metrics(rows: Rows, wanted: Sequence[str]) -> Rows:
    """Only these, the first of them first."""
    there = [str(metric or "") for metric in rows["metric"].values]
    for name in wanted:
        if name not in there:
            known = ", ".join(filter(None, there)) or "none that has a name"
            raise BadInput(f"no row has the metric {name!r}{did_you_mean(name, there)}", f"there are: {known}")
    if not wanted:
        return rows
    order = {there.index(name): at for at, name in enumerate(wanted)}
    numbers = np.array([order.get(code, -1) for code in range(len(there))])[rows["metric"].codes]
    rows = replace(rows, texts=rows.texts | {"metric": Column(np.maximum(0, numbers), list(wanted))})
    return rows.kept(numbers >= 0)


def single(rows: Rows) -> bool:
    """Whether there is one training of each variant."""
    return len(rows["variant"].joined(rows["seed"]).values) == len(rows["variant"].values)


def numbered_seeds(names: Sequence[str | None]) -> dict[str | None, int]:
    """Seeds are numbers; names are numbered as they come."""
    if all(name is not None and name.isdigit() and len(name) < 18 for name in names):
        return {name: int(name or 0) for name in names}
    return {name: number for number, name in enumerate(names)}


def metric_of(rows: Rows, name: str, asked: Asked, first: bool) -> Metric:
    """Right and wrong answers of items are accuracy, whatever they are called."""
    told = rows.numbers["higher_is_better"]
    said = {bool(each) for each in np.unique(told[~np.isnan(told)])}
    if len(said) > 1:
        raise BadInput(
            f"higher_is_better is both true and false for {name or 'the value'}", "use one value in all rows"
        )
    title, values = name or rows["column"].values[0] or "", rows.numbers["value"]
    higher = said.pop() if said else asked.higher_is_better if first else None
    if "item" in rows.texts:
        outside = (values < 0) | (values > 1)
        shares = not (outside | (values > 0) & (values < 1)).any()
        if higher is not False and (title in ACCURACIES or shares):
            if outside.any():
                row = int(outside.argmax())
                raise BadInput(f"{rows.where(row)}: accuracy of one item is between 0 and 1, got {values[row]:g}")
            plain = not name or name in ACCURACIES
            return METRICS["accuracy"] if plain else Metric(f"accuracy ({name})", "points", True)
    return metric_named(title, higher, ask=first, points="item" not in rows.texts)


# one score per item

Task = tuple[dict[str, dict[str, SetOutcomes]], dict[str, Counts], tuple[str, ...]]  # outcomes, clusters, labels


def item_task(rows: Rows, metric: Metric, seeds: Mapping[str | None, int]) -> Task:
    """All results in one metric."""
    outcomes: dict[str, dict[str, SetOutcomes]] = {}
    clusters: dict[str, Counts] = {}
    tests = rows["test"].values
    classes = class_numbers(rows)
    right = False
    for code, test in enumerate(tests):
        own, title = rows.kept(rows["test"].codes == code) if len(tests) > 1 else rows, test or "test"
        grid = Grid.of(own, title)
        if own["group"].values != [None]:
            if (bare := own.lacks("group")).any():
                raise BadInput(f"{own.where(int(bare.argmax()))}: group is empty", "give every item one")
            clusters[title] = own["group"].codes[grid.row[0]]
        arrays = grid.arrays(metric, classes)
        right = "guess" in arrays
        for variant in dict.fromkeys(variant for variant, _ in grid.runs):
            at = {seeds[seed]: row for row, (whose, seed) in enumerate(grid.runs) if whose == variant}
            order = sorted(at)
            picked = {name: array[[at[seed] for seed in order]] for name, array in arrays.items()}
            found = SetOutcomes(tuple(order), picked, metric=None if right else metric)
            outcomes.setdefault(variant, {})[title] = found
    check_same_seeds(outcomes)
    return outcomes, clusters, tuple(classes) if right else ()


def check_same_seeds(outcomes: Mapping[str, Mapping[str, SetOutcomes]]) -> None:
    for variant, sets in outcomes.items():
        (first, own), *others = sets.items()
        if other := next((name for name, each in others if each.seeds != own.seeds), None):
            raise BadInput(f"{variant} has other seeds on {first} than on {other}", "score every run on every test set")


@dataclass(frozen=True)
class Grid:
    """All items of all runs: each row has its cell [run item]."""

    rows: Rows
    test: str
    runs: list[tuple[str, str | None]]  # variant and seed
    row: Counts  # [run item]

    @classmethod
    def of(cls, rows: Rows, test: str) -> Grid:
        both, items = rows["variant"].joined(rows["seed"]), rows["item"].values
        shape = len(both.values), len(items)
        at = np.zeros(shape[0], np.intp)
        at[both.codes[::-1]] = np.arange(len(rows))[::-1]  # the last that is written stays: a row of each run
        runs = [(str(rows["variant"].at(row)), rows["seed"].at(row)) for row in at.tolist()]
        if shape[0] * shape[1] > len(rows):
            check_complete(rows, both, runs, test)
        cell = both.codes * shape[1] + rows["item"].codes
        counts = np.bincount(cell, minlength=shape[0] * shape[1])
        if not counts.all():
            check_complete(rows, both, runs, test)
        if counts.max() > 1:
            raise two_item_scores(rows, cell)
        row = np.empty(len(counts), np.intp)
        row[cell] = np.arange(len(rows))
        grid = cls(rows, test, runs, row.reshape(shape))
        grid.check_same_items()
        return grid

    def check_same_items(self) -> None:
        """An item of one name must be the same item everywhere: its label and its group."""
        for name in ("label", "group"):
            column = self.rows[name]
            own = column.codes[self.row]
            if len(column.values) == 1 or not (other := own != own[0]).any():
                continue
            run, item = np.unravel_index(int(other.argmax()), own.shape)
            one, two = int(self.row[0, item]), int(self.row[run, item])
            told = f"{name} {column.at(one)!r} in {self.rows.where(one)}, {column.at(two)!r} in {self.rows.where(two)}"
            raise BadInput(f"item {self.rows['item'].at(one)!r} of {self.test} is not the same item everywhere: {told}")

    def arrays(self, metric: Metric, classes: Mapping[str, int]) -> dict[str, Array]:
        """[run item]"""
        rows, value, weight = self.rows, self.rows.numbers["value"], self.rows.numbers["weight"]
        numbers = {
            name: np.array([classes.get(str(cell), -1) for cell in rows[name].values])[rows[name].codes]
            for name in ("label", "prediction")
        }
        labelled, plain = not rows.lacks("label").any(), bool((weight == 1).all())
        both = labelled and not rows.lacks("prediction").any()
        right = (numbers["label"] == numbers["prediction"]).astype(float)
        if metric.is_accuracy and both and plain:
            if (other := ~np.isnan(value) & (value != right)).any():
                row = int(other.argmax())
                told = (
                    f"label {rows['label'].at(row)!r}, prediction {rows['prediction'].at(row)!r}, value {value[row]:g}"
                )
                raise BadInput(f"{rows.where(row)}: value, label and prediction disagree ({told})")
            return {
                name: number[self.row]
                for name, number in (("guess", numbers["prediction"]), ("label", numbers["label"]))
            }
        value = np.where(np.isnan(value), right, value) * (100.0 if metric.is_accuracy else 1.0)
        values, weights = value[self.row], weight[self.row]
        if (weights < 0).any() or not weights.any(1).all():
            raise BadInput(
                "weights must not be negative, and not all zero", "a weight is the tokens or bytes of an item"
            )
        found = {"value": values, "weight": weights}
        if metric.is_accuracy and plain and labelled:  # classes are strata of a score's interval
            found["label"] = numbers["label"][self.row]
        return found


def check_complete(rows: Rows, both: Column, runs: Sequence[tuple[str, str | None]], test: str) -> None:
    """Every variant and seed must have every item."""
    for code, (variant, seed) in enumerate(runs):
        there = np.zeros(len(rows["item"].values), bool)
        there[rows["item"].codes[both.codes == code]] = True
        if lost := [str(item) for item, has in zip(rows["item"].values, there, strict=True) if not has]:
            names = ", ".join(lost[:NAMED]) + (f" and {len(lost) - NAMED:,} more" if len(lost) > NAMED else "")
            what = f"{variant}{of_seed(seed)} lacks {counted(len(lost), 'item')} of {test} that others have: {names}"
            raise BadInput(what, "compare on equal items: score them, or leave them out everywhere")


def two_item_scores(rows: Rows, cell: Counts) -> BadInput:
    order = np.argsort(cell, kind="stable")
    twin = int(np.flatnonzero(np.diff(cell[order]) == 0)[0])
    one, other = int(order[twin]), int(order[twin + 1])
    whose = f"{rows['variant'].at(one)}{of_seed(rows['seed'].at(one))}"
    what = f"item {rows['item'].at(one)!r} of {whose} has two scores: {rows.where(one)} and {rows.where(other)}"
    hint = f"{ONE_SCORE}; if file names contain variant or seed, give a pattern: 'runs/{{variant}}/seed-{{seed}}/NAME'"
    return BadInput(what, hint)


def of_seed(seed: str | None) -> str:
    return f", seed {seed}," if seed else ""


def class_numbers(rows: Rows) -> dict[str, int]:
    """Labels and predictions, sorted: by number where all are numbers."""
    names = {name for column in ("label", "prediction") for name in rows[column].values if name is not None}
    numeric = all(name.isdigit() for name in names)
    return {name: at for at, name in enumerate(sorted(names, key=int if numeric else str))}


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


def same_words(same: Sequence[str]) -> str:
    return (
        f"All seeds of {listed(list(same))} give the same answer to every item, as repeated evaluations of one"
        " checkpoint do. They are not training seeds and count as one."
    )


# one score per run


def final_scores(rows: Rows) -> tuple[Rows, list[str]]:
    """A row for each run and metric: its last step; copies count once. And what was assumed."""
    steps = not np.isnan(rows.numbers["step"]).all()
    if steps:  # not every metric is logged at every step
        rows = rows.kept(~np.isnan(rows.numbers["value"]) & ~np.isnan(rows.numbers["step"]))
    rows.check_filled()
    label = next((name for name in ("run", "seed") if rows[name].values != [None]), None)
    if label is None and not steps:
        run = Column(np.arange(len(rows)), [str(row) for row in range(len(rows))])
    else:
        run = rows["variant"].joined(rows[label or "variant"])
    own = rows["test"].joined(rows["metric"])
    curve, value, step = run.joined(own), rows.numbers["value"], np.nan_to_num(rows.numbers["step"])
    order = np.lexsort((np.arange(len(rows)), step, curve.codes))
    sorted_curve = curve.codes[order]
    again = (sorted_curve[1:] == sorted_curve[:-1]) & (np.diff(step[order]) == 0)
    unclear = np.flatnonzero(again & (value[order][1:] != value[order][:-1]))
    if len(unclear) and not (steps and label == "run"):  # a log that was resumed tells a step twice
        raise two_scores(rows, int(order[unclear[0]]), int(order[unclear[0] + 1]), label)
    last = np.zeros(len(rows), bool)
    last[order[np.append(sorted_curve[1:] != sorted_curve[:-1], True)]] = True
    copies, notes = copied(rows, run, order, last)
    if again.any() and not steps:
        notes.append(f"{counted(int(again.sum()), 'row')} repeated a run to the last digit and count once.")
    kept = rows.kept(last & ~copies)
    if steps:
        ends = step[last & ~copies]
        span = " to ".join(dict.fromkeys(f"{end:,.0f}" for end in (ends.min(), ends.max())))
        notes.append(f"Each run counts by its last step ({span}).")
    if kept["seed"].values == [None]:
        notes.append(UNPAIRED)
        numbers = run.kept(last & ~copies)
        return replace(
            kept, texts=kept.texts | {"seed": Column(numbers.codes, [f"run {n}" for n in range(len(numbers.values))])}
        ), notes
    check_seeds(kept)
    return kept, notes


def two_scores(rows: Rows, one: int, other: int, label: str | None) -> BadInput:
    whose = f"{rows['variant'].at(one)}, {label} {rows[label].at(one)}" if label else str(rows["variant"].at(one))
    scores = (
        f"{rows.numbers['value'][one]:g} ({rows.where(one)}) and {rows.numbers['value'][other]:g} ({rows.where(other)})"
    )
    hint = "name the column that tells runs apart: --column run=NAME; or the test items: --column item=NAME"
    return BadInput(f"{whose} has two different scores: {scores}", hint)


def check_seeds(rows: Rows) -> None:
    """A seed trains once."""
    key = rows["variant"].joined(rows["seed"]).joined(rows["metric"]).joined(rows["test"]).codes
    order = np.argsort(key, kind="stable")
    twins = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(twins):
        error = two_scores(rows, int(order[twins[0]]), int(order[twins[0] + 1]), "seed")
        hint = "if these are separate runs, name the column that holds their seeds: --column seed=NAME"
        raise BadInput(error.what, hint)


def copied(rows: Rows, run: Column, order: Counts, last: Mask) -> tuple[Mask, list[str]]:
    """Rows of runs that are copies of another run of their variant: many equal numbers, or one with so many digits
    that chance does not repeat it. Equal rounded scores are no copies."""
    order = order[np.argsort(run.codes[order], kind="stable")]
    copies, within, across = np.zeros(len(rows), bool), list[str](), dict[str, None]()
    variant, value, step = rows["variant"].codes, rows.numbers["value"], rows.numbers["step"]
    finals = [value[last & (variant == code)] for code in range(len(rows["variant"].values))]
    spread = [float(np.diff(np.quantile(each, (0.25, 0.75)))[0]) for each in finals]
    usual = float(np.median(spread))
    seen: dict[tuple[int | None, bytes], int] = {}
    for own in np.split(order, np.flatnonzero(np.diff(run.codes[order])) + 1):
        ends, whose = own[last[own]], int(variant[own[0]])
        count, digit = len(finals[whose]), float(rows.digits[ends[0]])
        fine = 25 * count * (count - 1) * digit < max(usual, spread[whose])  # chance repeats it in less than 1%
        long = len(np.unique(value[own])) >= SAME and digit < max(usual, spread[whose])
        keys: list[tuple[int | None, bytes]] = [(None, value[own].tobytes())] * long
        if fine or digit < 1e-9 * abs(value[ends[0]]):
            keys.append((whose, np.stack([step[ends], value[ends]]).tobytes()))
        twins = [seen.setdefault(key, int(ends[0])) for key in reversed(keys)]
        twin = next((each for each in twins if each != ends[0]), None)  # rather of the same variant
        if twin is not None and variant[twin] == whose:
            copies[own] = True
            within.append(f"{rows['variant'].at(twin)} ({rows.where(twin)} and {rows.where(int(ends[0]))})")
        elif twin is not None:
            across[f"{rows['variant'].at(twin)} and {rows['variant'].at(int(ends[0]))}"] = None
    notes = []
    if within:
        notes.append(f"Runs that repeat another one exactly count once: {named(within)}.")
    if across:
        notes.append(f"Variants that have a run in common, to the last digit: {named(list(across))}.")
    return copies, notes


def named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def threshold_of(rows: Rows, metric: Metric, threshold: float) -> tuple[str, float]:
    (scaled,), _ = run_values(metric, np.array([threshold]), 0.0, rows.numbers["value"])
    return f"the threshold {threshold:g}", float(scaled)


def run_task(rows: Rows, metric: Metric, seeds: Mapping[str | None, int]) -> Task:
    outcomes: dict[str, dict[str, SetOutcomes]] = {}
    values, digit = run_values(metric, rows.numbers["value"], float(rows.digits.min()), rows.numbers["value"])
    for test_code, test in enumerate(rows["test"].values):
        for code, variant in enumerate(rows["variant"].values):
            own = np.flatnonzero((rows["variant"].codes == code) & (rows["test"].codes == test_code))
            at = {seeds[rows["seed"].at(int(row))]: row for row in own}
            if at:
                scores = values[[at[seed] for seed in sorted(at)]][:, None]
                arrays = {"value": scores, "weight": np.ones_like(scores), "resolution": np.full_like(scores, digit)}
                found = SetOutcomes(tuple(sorted(at)), arrays, metric=metric)
                outcomes.setdefault(str(variant), {})[test or "this test set"] = found
    check_same_seeds(outcomes)
    return outcomes, {}, ()
