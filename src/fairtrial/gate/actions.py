"""What can be done with a ledger: begin it, add scores, train pairs, confirm, open the test sets."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.errors import BadInput, Interrupted

if TYPE_CHECKING:
    from fairtrial.engines import Engine, Job
    from fairtrial.finding import Finding
    from fairtrial.gate.ledger import Ledger
    from fairtrial.gate.state import Gate, SelfTest
    from fairtrial.recipe import Recipe
    from fairtrial.results.values import Interval
    from fairtrial.stored import TrialResult

OWN_METRICS = {
    "classify": ("points of validation accuracy", True),
    "lm": ("validation loss", False),
    "mlm": ("validation loss", False),
}


def gate(ledger: str | Path) -> Gate:
    """The current decision of a ledger: keep, discard, or run one more pair.

    Args:
        ledger (LEDGER): The file.

    >>> gate = ft.gate_new("tries.jsonl", "val_loss")
    >>> print(ft.gate("tries.jsonl").sentence)
    No proposal yet: the incumbent is incumbent.
    """
    from fairtrial.gate.ledger import Ledger
    from fairtrial.gate.state import state_of

    return state_of(Ledger.read(Path(ledger)))


def gate_new(
    ledger: str | Path,
    metric: str | None = None,
    *,
    incumbent: str = "incumbent",
    higher_is_better: bool | None = None,
    alpha: float = 0.1,
    control: str = "fdr",
    margin: float = 0.0,
    most_pairs: int = 40,
    task: str | None = None,
    data: str | Path | None = None,
    recipe: str | None = None,
) -> Gate:
    """Begin a ledger, for scores of any trainer or, with a task, for fairtrial's own trainings.

    Own trainings are scored on one validation set, drawn once for all seeds and proposals. Test sets stay sealed until
    `gate final`.

    Args:
        ledger (LEDGER): The file, which must not exist.
        metric (NAME): What is scored, such as val_loss. Own trainings: loss or accuracy on validation.
        incumbent (NAME): What candidates are compared with; of own trainings a variant, such as learned.
        higher_is_better: More of the metric is better. Default: the name tells.
        alpha (NUMBER): Share of kept candidates that may be no gain; with --control fwer, the chance of any.
        control (fdr|fwer): What alpha bounds.
        margin (NUMBER): The least gain worth keeping, in the metric's unit.
        most_pairs: Pairs of runs that one proposal may take.
        task: Train with fairtrial: classify, lm or mlm.
        data (PATH): Text for own trainings. Default: the embedded speeches.
        recipe: A built-in recipe or a recipe file, for own trainings.

    >>> gate = ft.gate_new("losses.jsonl", "val_loss", incumbent="base", margin=0.002)
    >>> gate.metric, gate.higher_is_better
    ('val_loss', False)
    """
    from fairtrial.gate.decision import Control, GateRule
    from fairtrial.gate.ledger import Ledger, Opened
    from fairtrial.statistics.outcomes import metric_named

    if control not in ("fdr", "fwer"):
        raise BadInput(f"unknown control: {control!r}", "fdr or fwer")
    kind: Control = "fdr" if control == "fdr" else "fwer"
    rule, path, text = GateRule(alpha, kind, margin, most_pairs), Path(ledger), ""
    if task is None:
        if data is not None or recipe is not None:
            raise BadInput("data and recipe are for fairtrial's own trainings", "add --task lm or --task classify")
        if metric is None:
            raise BadInput("a ledger needs a metric", "name it, such as --metric val_loss")
        higher = higher_is_better
        if higher is None:
            higher = metric_named(metric, None).higher_is_better
    else:
        metric, higher = OWN_METRICS.get(task, ("", True))
        if not metric:
            raise BadInput(f"unknown task: {task!r}", "classify, lm or mlm")
        if path.exists():
            raise BadInput(f"{path} exists already", "go on with it, or name another file")
        text = own_recipe(path, task, str(data or "sotu"), recipe, incumbent)
    Ledger.create(path, Opened(metric, higher, incumbent, rule, text))
    return gate(path)


def gate_add(
    ledger: str | Path,
    candidate: str,
    *,
    seed: int | None = None,
    score: float | None = None,
    incumbent_score: float | None = None,
    scores: Mapping[int, float] | None = None,
    incumbent_scores: Mapping[int, float] | None = None,
    results: str | Path | None = None,
    description: str = "",
    source: str | Path | None = None,
    seconds: float | None = None,
    audit: str | None = None,
) -> Gate:
    """Add scores of any trainer, in any order, and decide. Name the incumbent to add its scores alone.

    Args:
        ledger (LEDGER): The file.
        candidate (NAME): Whose scores these are.
        seed: Seed of the run.
        score: Its score on the validation set.
        incumbent_score: The incumbent's score with the same seed.
        scores (SEED=SCORE): Several runs. In Python {0: 3.28, 1: 3.29}.
        incumbent_scores (SEED=SCORE): Several runs of the incumbent.
        results (FILE): A table with the columns variant, seed and a score, or one row per test item.
        description: What the candidate changes.
        source (FILE): Its source or diff, whose sha256 is kept.
        seconds: How long the run took.
        audit (FILE.py:FUNCTION): What builds its network, or a scorer: a new candidate is audited for leaks before its
            first score, and discarded if it fails. The file's code is run.

    >>> _ = ft.gate_new("adds.jsonl", "val_loss", incumbent="base")
    >>> gate = ft.gate_add("adds.jsonl", "muon", seed=0, score=3.21, incumbent_score=3.28)
    >>> gate.answer.value, gate.next_seed
    ('more', 1)
    """
    from fairtrial.gate.decision import Why
    from fairtrial.gate.ledger import Ledger, Scored
    from fairtrial.gate.state import state_of

    path = Path(ledger)
    if (seed is None) != (score is None and incumbent_score is None):
        raise BadInput("a seed and its score belong together", "give --seed and --score")
    digest = "" if source is None else hashlib.sha256(readable(Path(source))).hexdigest()
    is_new = audit is not None and candidate not in Ledger.read(path).proposals
    failed = failures_of(audit) if audit and is_new else ""
    with Ledger.writing(path) as book:
        ours, theirs = dict(scores or {}), dict(incumbent_scores or {})
        if seed is not None:
            ours |= {} if score is None else {seed: score}
            theirs |= {} if incumbent_score is None else {seed: incumbent_score}
        if results is not None:
            table = scores_of(str(results))
            unknown = sorted(table.keys() - {candidate, book.incumbent})
            if unknown:
                raise BadInput(
                    f"{results}: {unknown[0]!r} is neither {candidate!r} nor the incumbent {book.incumbent!r}"
                )
            ours, theirs = table.get(candidate, {}) | ours, table.get(book.incumbent, {}) | theirs
        if candidate == book.incumbent:
            ours, theirs = {}, theirs | ours
        else:
            told = "passed" if is_new else ""
            book.propose(candidate, description=description, source_sha256=digest, audited=told)
            if failed:
                book.decide(candidate, Why.AUDIT, failed)
                return state_of(book)
        for name, side in ((book.incumbent, theirs), (candidate, ours)):
            for number, value in sorted(side.items()):
                if book.waiting(candidate) is not None or name == book.incumbent:
                    book.score(Scored(name, int(number), float(value), seconds))
                    book.settle()
    return state_of(book)


def gate_run(
    ledger: str | Path,
    candidate: str,
    *,
    description: str = "",
    budget: str | None = None,
    jobs: int | None = None,
    accept_failed_audit: bool = False,
    plugins: Sequence[str | Path] = (),
) -> Gate:
    """Train a candidate and the incumbent with fairtrial, pair by pair, until it is decided or the budget ends.

    The leak audit comes first: a candidate that fails is discarded before anything is trained.

    Args:
        ledger (LEDGER): The file, begun with a task.
        candidate (VARIANT): Parts (rope, rope+swiglu, window:size=8), a recipe file, or a network (my_model.py:build).
        description: What it changes.
        budget (TIME): Stop after this time, such as 20m; the next call continues.
        jobs: Trainings at a time. Default: one per core.
        accept_failed_audit: Judge it although the leak audit fails.
        plugins: A Python file that adds your own parts.

    >>> _ = ft.gate_new("scores.jsonl", "val_loss")
    >>> ft.gate_run("scores.jsonl", "rope")
    Traceback (most recent call last):
    ...
    fairtrial.errors.BadInput: scores.jsonl holds scores of another trainer
      use: fairtrial gate add
    """
    from fairtrial.engines import open_engine
    from fairtrial.formatting import read_time
    from fairtrial.gate.decision import Why
    from fairtrial.gate.ledger import Ledger, Scored

    path, files = Path(ledger), tuple(str(file) for file in plugins)
    until = math.inf if budget is None else time.monotonic() + read_time(budget)
    engine = open_engine("cores", jobs)
    book = Ledger.read(path)
    if not book.opened.recipe:
        raise BadInput(f"{path} holds scores of another trainer", "use: fairtrial gate add")
    name, text = candidate_recipe(book, candidate)
    if name not in book.proposals:
        failed = audit_failures(engine, name, text, files)
        told = "passed" if not failed else f"failed, accepted: {failed}" if accept_failed_audit else ""
        with Ledger.writing(path) as book:
            details = {"description": description, "recipe": text, "audited": told}
            book.propose(name, source_sha256=hashlib.sha256(text.encode()).hexdigest(), **details)
            if failed and not accept_failed_audit:
                book.decide(name, Why.AUDIT, failed)
    while (proposal := book.waiting(name)) is not None and time.monotonic() < until:
        seed, sides = book.seed_for(proposal), {name: text, book.incumbent: recipe_text(book, book.incumbent)}
        done = {name: proposal.ours, book.incumbent: {**proposal.theirs, **book.free}}
        missing = {side: recipe for side, recipe in sides.items() if seed not in done[side]}
        trained = train_all(engine, path, [(side, recipe, seed) for side, recipe in missing.items()], files)
        with Ledger.writing(path) as book:
            for (side, number), (score, seconds) in trained.items():
                book.score(Scored(side, number, score, seconds))
            book.settle()
    return gate(path)


def gate_next(ledger: str | Path) -> list[str]:
    """The trainings that the current proposal waits for, one command each, to be run anywhere on a shared folder.

    Args:
        ledger (LEDGER): The file, begun with a task. `gate run` with the same candidate goes on when they are done.

    >>> _ = ft.gate_new("waits.jsonl", "val_loss")
    >>> ft.gate_next("waits.jsonl")
    []
    """
    from fairtrial.disk import write_text
    from fairtrial.gate.ledger import Ledger

    path, book = Path(ledger), Ledger.read(Path(ledger))
    waiting = [each for each in book.proposals.values() if each.decided is None]
    if not waiting or not book.opened.recipe:
        return []
    seed, name = book.seed_for(waiting[-1]), waiting[-1].proposed.candidate
    commands = []
    for side, text in ((name, waiting[-1].proposed.recipe), (book.incumbent, recipe_text(book, book.incumbent))):
        folder = trial_folder(path, side, seed)
        file = folder.with_name("recipe.toml")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
        if not (folder / "result.json").is_file():
            commands.append(shlex.join(["fairtrial", "train", str(file), "--seed", str(seed), "--out", str(folder)]))
    return commands


def gate_confirm(
    ledger: str | Path,
    *,
    pairs: int = 5,
    scores: Mapping[int, float] | None = None,
    first_scores: Mapping[int, float] | None = None,
    jobs: int | None = None,
) -> Gate:
    """Measure today's incumbent against the first one by fresh pairs, which judged nothing before.

    Args:
        ledger (LEDGER): The file.
        pairs: How many pairs to train.
        scores (SEED=SCORE): Of another trainer: scores of today's incumbent.
        first_scores (SEED=SCORE): Of another trainer: scores of the first incumbent, with the same seeds.
        jobs: Trainings at a time. Default: one per core.

    >>> _ = ft.gate_new("kept.jsonl", "val_loss", incumbent="base")
    >>> ours, theirs = {s: 3.1 + s / 1000 for s in range(6)}, {s: 3.3 - s / 999 for s in range(6)}
    >>> ft.gate_add("kept.jsonl", "muon", scores=ours, incumbent_scores=theirs).answer.value
    'keep'
    >>> gate = ft.gate_confirm("kept.jsonl", scores={10: 3.1, 11: 3.12}, first_scores={10: 3.3, 11: 3.29})
    >>> round(gate.confirmed.estimate, 3)
    0.185
    """
    from fairtrial.gate.ledger import Ledger, Scored

    path = Path(ledger)
    given = fresh_scores(Ledger.read(path), path, pairs, scores, first_scores, jobs)
    with Ledger.writing(path) as book:
        if used := [seed for own in given.values() for seed in own if seed in book.spent or seed in book.free]:
            raise BadInput(f"seed {used[0]} was used before", f"take seeds from {book.next_seed} on")
        for name, own in given.items():
            for seed, score in own.items():
                book.score(Scored(name, seed, score, confirms=True))
    return gate(path)


def gate_final(
    ledger: str | Path,
    *,
    pairs: int = 5,
    scores: Mapping[int, float] | None = None,
    first_scores: Mapping[int, float] | None = None,
    results: str | Path | None = None,
    jobs: int | None = None,
) -> Gate:
    """Open the test sets, once: today's incumbent against the first one. The ledger then takes no further proposals.

    Own trainings, and results with a row for each test item, are judged for new test items, too.

    Args:
        ledger (LEDGER): The file.
        pairs: How many pairs to train and score on the test sets.
        scores (SEED=SCORE): Of another trainer: test scores of today's incumbent.
        first_scores (SEED=SCORE): Of another trainer: test scores of the first incumbent.
        results (FILE): Of another trainer: a table with the columns variant and seed, and a score or one row per item.
        jobs: Trainings at a time. Default: one per core.

    >>> _ = ft.gate_new("last.jsonl", "val_loss", incumbent="base")
    >>> ft.gate_final("last.jsonl", scores={0: 3.1}, first_scores={0: 3.3})
    Traceback (most recent call last):
    ...
    fairtrial.errors.BadInput: nothing was kept: base is still the incumbent
    """
    from fairtrial.gate.ledger import Ledger

    path, book = Path(ledger), Ledger.read(Path(ledger))
    if book.tests is not None:
        raise BadInput("the test sets of this ledger were opened already", "a second look would choose by them")
    if results is not None:
        table = scores_of(str(results))
        scores, first_scores = table.get(book.incumbent), table.get(book.opened.incumbent)
    given = fresh_scores(book, path, pairs, scores, first_scores, jobs, tests=True)
    gain = gain_on_new_items(book, None if results is None else str(results), given)
    with Ledger.writing(path) as book:
        if book.tests is None:
            book.open_tests(given, gain)
    return gate(path)


def gain_on_new_items(book: Ledger, results: str | None, given: Mapping[str, Mapping[int, float]]) -> Interval | None:
    """Of today's incumbent over the first, as a study judges it; None where single items are not known."""
    from fairtrial.grading import records_judge
    from fairtrial.record import Record
    from fairtrial.results.judge import Asked, judge_results
    from fairtrial.results.readers import read_results
    from fairtrial.results.values import Interval
    from fairtrial.study.design import METRIC

    first, now = book.opened.incumbent, book.incumbent
    if book.opened.recipe:
        if tomllib.loads(book.opened.recipe)["task"] not in METRIC:
            return None
        records = {
            name: {seed: Record.open(trial_folder(book.path, name, seed, tests=True)) for seed in given[name]}
            for name in (first, now)
        }
        verdict = records_judge(records[first])(now, records[now])
    else:
        table = None if results is None else read_results([results])
        if table is None or "item" not in table.rows.texts:
            return None
        verdict = judge_results(table, Asked(baseline=first, higher_is_better=book.opened.higher_is_better))
    judged = next(each for each in verdict.comparisons if each.variant == now)
    unit = 100.0 if judged.metric.is_accuracy and not book.opened.recipe else 1.0  # shares are scored, points judged
    sign = (1 if book.opened.higher_is_better else -1) / unit
    size = judged.difference
    low, estimate, high = (None if each is None else sign * each for each in (size.low, size.estimate, size.high))
    return Interval(estimate, low, high, size.level) if sign > 0 else Interval(estimate, high, low, size.level)


def fresh_scores(
    book: Ledger,
    path: Path,
    pairs: int,
    scores: Mapping[int, float] | None,
    first_scores: Mapping[int, float] | None,
    jobs: int | None,
    *,
    tests: bool = False,
) -> dict[str, dict[int, float]]:
    """Of the first incumbent and of today's, by seed: trained now, or as they were given."""
    from fairtrial.engines import open_engine

    first, now = book.opened.incumbent, book.incumbent
    if first == now:
        raise BadInput(f"nothing was kept: {now} is still the incumbent")
    if book.opened.recipe:
        seeds = range(book.next_seed, book.next_seed + pairs)
        asked = [(name, recipe_text(book, name, tests=tests), seed) for seed in seeds for name in (first, now)]
        trained = train_all(open_engine("cores", jobs), path, asked, (), tests=tests)
        return {
            name: {seed: score for (own, seed), (score, _) in trained.items() if own == name} for name in (first, now)
        }
    if not scores or not first_scores or scores.keys() != first_scores.keys():
        hint = f"{now}: scores, {first}: first_scores"
        raise BadInput("give scores of both incumbents with the same seeds", hint)
    return {first: dict(first_scores), now: dict(scores)}


def gate_self_test(ledger: str | Path, *, runs: int = 6, jobs: int | None = None) -> SelfTest:
    """Run the incumbent against itself on new seeds: how noisy a pair is, and the least gain worth chasing.

    Args:
        ledger (LEDGER): The file.
        runs: How many runs of the incumbent to train; of another trainer, all that the ledger holds are taken.
        jobs: Trainings at a time. Default: one per core.

    >>> _ = ft.gate_new("noise.jsonl", "val_loss", incumbent="base")
    >>> _ = ft.gate_add("noise.jsonl", "base", scores={0: 3.28, 1: 3.29, 2: 3.27})
    >>> round(ft.gate_self_test("noise.jsonl").noise, 4)
    0.0141
    """
    from statistics import stdev

    from fairtrial.engines import open_engine
    from fairtrial.gate.decision import pairs_needed
    from fairtrial.gate.ledger import Ledger, Scored
    from fairtrial.gate.state import SelfTest

    path, book = Path(ledger), Ledger.read(Path(ledger))
    own = [
        s.score for p in book.proposals.values() for s in p.theirs.values() if p.proposed.incumbent == book.incumbent
    ]
    own += [scored.score for scored in book.free.values()]
    if book.opened.recipe and len(own) < runs:
        seeds = range(book.next_seed, book.next_seed + runs - len(own))
        asked = [(book.incumbent, recipe_text(book, book.incumbent), seed) for seed in seeds]
        trained = train_all(open_engine("cores", jobs), path, asked, ())
        with Ledger.writing(path) as book:
            for (name, seed), (score, seconds) in trained.items():
                book.score(Scored(name, seed, score, seconds))
                own.append(score)
    if len(own) < 3:
        raise BadInput(
            f"{len(own)} runs of the incumbent do not show how noisy they are", "add at least three: gate add"
        )
    noise = stdev(own) * math.sqrt(2)
    rule, level = book.opened.rule, book.opened.rule.level(1 + len(book.proposals), len(book.kept))
    table = {size: pairs_needed(size, rule, level, book.correlation) for size in (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)}
    least = next((size for size, pairs in table.items() if pairs <= rule.most_pairs), None)
    if least is None:
        return SelfTest(book.opened.metric, len(own), noise, None, None)
    return SelfTest(book.opened.metric, len(own), noise, least * noise, table[least])


# fairtrial's own trainings


def own_recipe(ledger: Path, task: str, data: str, recipe: str | None, incumbent: str) -> str:
    """The incumbent's recipe, on data whose validation set is drawn once."""
    from dataclasses import replace

    from fairtrial.data.tables import save_dataset
    from fairtrial.prepare import prepare
    from fairtrial.recipe import choose_recipe, write_recipe

    base = variant_recipe(choose_recipe(task, recipe, data), incumbent)
    splits = prepare(base, 0).splits
    sets = {"train": splits.train, "validation": splits.validation, **splits.tests}
    if not splits.validation:
        raise BadInput("the gate needs a validation set", "set data.validation to a share such as 0.1")
    rows = {
        name: [{"text": d.text, "label": d.label, "group": d.group} for d in documents]
        for name, documents in sets.items()
    }
    file = save_dataset(rows, ledger.parent / f"{ledger.stem}-data")
    label = "label" if task == "classify" else ""
    fixed = replace(
        base.data, source=file, format="jsonl", group_column="none", text_column="text", split_column="split",
        label_column=label,
    )  # fmt: skip
    return write_recipe(replace(base, data=fixed, scoring=replace(base.scoring, tests=False)))


def variant_recipe(base: Recipe, variant: str) -> Recipe:
    """Of a study's variant: parts, a network or a recipe file; on the data of `base`."""
    from dataclasses import replace

    from fairtrial.recipe import load_recipe
    from fairtrial.study.tables import read_variant

    _, table = read_variant(variant)
    if "recipe" in table:
        return replace(load_recipe(Path(variant)), data=base.data, scoring=base.scoring)
    return base.with_(**table)


def candidate_recipe(book: Ledger, candidate: str) -> tuple[str, str]:
    """Its name, and its recipe on the ledger's data."""
    from fairtrial.recipe import recipe_from, write_recipe
    from fairtrial.study.tables import read_variant

    if candidate in book.proposals:
        return candidate, book.proposals[candidate].proposed.recipe
    base = recipe_from(tomllib.loads(book.opened.recipe))
    chosen = variant_recipe(base, candidate)
    if chosen.task != base.task:
        raise BadInput(f"{candidate} is for {chosen.task}, this ledger for {base.task}")
    return read_variant(candidate)[0], write_recipe(chosen)


def recipe_text(book: Ledger, name: str, *, tests: bool = False) -> str:
    text = book.opened.recipe if name == book.opened.incumbent else book.proposals[name].proposed.recipe
    if not tests:
        return text
    from dataclasses import replace

    from fairtrial.recipe import recipe_from, write_recipe

    recipe = recipe_from(tomllib.loads(text))
    return write_recipe(replace(recipe, scoring=replace(recipe.scoring, tests=True)))


def trial_folder(ledger: Path, name: str, seed: int, *, tests: bool = False) -> Path:
    safe = re.sub(r"[^\w+=.-]", "-", name)
    return ledger.parent / f"{ledger.stem}-runs" / safe / (f"final-{seed}" if tests else f"seed-{seed}")


def train_all(
    engine: Engine,
    ledger: Path,
    asked: Sequence[tuple[str, str, int]],
    plugins: tuple[str, ...],
    *,
    tests: bool = False,
) -> dict[tuple[str, int], tuple[float, float]]:
    """Score and seconds of each run, by name and seed. What another process trained there is taken as it is."""
    from fairtrial.engines import Ending, Job
    from fairtrial.stored import TrialResult

    jobs: list[Job] = []
    for name, text, seed in asked:
        folder = trial_folder(ledger, name, seed, tests=tests)
        folder.parent.mkdir(parents=True, exist_ok=True)
        jobs.append(Job((name, str(seed)), "trial", text, seed, str(folder), plugins))
    trained: dict[tuple[str, int], tuple[float, float]] = {}
    for result in engine.run(jobs, lambda event: None, lambda: False):
        if result.ending is Ending.STOPPED:
            raise Interrupted("stopped; all is saved")
        if not isinstance(result.value, TrialResult):
            raise BadInput(
                f"{'/'.join(result.job.key)} failed: {result.error}", "mend it, and propose it by another name"
            )
        trained[result.job.key[0], int(result.job.key[1])] = score_of(result.value, tests), result.seconds
    return trained


def score_of(result: TrialResult, tests: bool) -> float:
    """Points of accuracy, or nats per token: of validation, or the mean over test sets."""
    sets = result.tests.values() if tests else [] if result.validation is None else [result.validation]
    figures = [100 * each.accuracy if each.accuracy is not None else each.loss for each in sets]
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known)


def audit_failures(engine: Engine, name: str, text: str, plugins: tuple[str, ...]) -> str:
    """What the leak audit finds; empty where it passes."""
    from fairtrial.engines import AuditSubject, Job

    task = str(tomllib.loads(text)["task"])
    job = Job((task, name), "passport", plugins=plugins, subjects=(AuditSubject(task, name, text),))
    (result,) = engine.run([job], lambda event: None, lambda: False)
    if not isinstance(result.value, tuple):
        raise BadInput(f"the leak audit of {name} broke down: {result.error}")
    return red_findings(result.value[0].passport.findings)


def failures_of(target: str) -> str:
    """The same of a file's function: of the network that it builds, or of what it scores."""
    import fairtrial as ft
    from fairtrial.plugins import builds, run_file

    file, _, name = target.partition(":")
    function = getattr(run_file("fairtrial_candidate", Path(file), readable(Path(file))), name, None)
    if function is None:
        raise BadInput(f"{file} has no function {name!r}", "give FILE.py:FUNCTION")
    audited = ft.audit(model=target, quiet=True) if builds(function) else ft.audit(scorer=target, quiet=True)
    return red_findings(audited.findings)


def red_findings(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{finding.name}: {finding.meaning}" for finding in findings if finding.severity == "red")


# results of other trainers


def scores_of(results: str) -> dict[str, dict[int, float]]:
    """One score per run, by variant and seed; of single items their mean."""
    from fairtrial.results.judge import final_scores
    from fairtrial.results.readers import read_results

    rows = read_results([results]).rows
    if "item" not in rows.texts:
        rows, _ = final_scores(rows)
    rows.check_filled()
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    columns = rows["variant"], rows["seed"], rows.numbers["value"], rows.numbers["weight"]
    for row in range(len(rows)):
        key = str(columns[0].at(row)), str(columns[1].at(row))
        total, weight = sums.get(key, (0.0, 0.0))
        sums[key] = total + columns[2][row] * columns[3][row], weight + columns[3][row]
    scores: dict[str, dict[int, float]] = {}
    for (variant, seed), (total, weight) in sums.items():
        if not re.fullmatch(r"-?\d{1,9}", seed):
            raise BadInput(f"{results}: the seed of {variant} must be a whole number, got {seed!r}")
        scores.setdefault(variant, {})[int(seed)] = total / weight
    return scores


def readable(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
