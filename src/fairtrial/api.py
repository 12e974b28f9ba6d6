"""The public functions: each a few lines over the rooms. Commands call them, so that both give the same folders."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fairtrial.data.given import keep_given
from fairtrial.errors import BadInput, Interrupted
from fairtrial.progress import stopping
from fairtrial.recipe import Recipe, choose_recipe, duration_of, finetune_recipe, full_name, plain_value, toml
from fairtrial.record import Record, default_folder, ensure_free

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairtrial.results import Audit, Baselines, Comparison, Power, Study, Verdict
    from fairtrial.run import Run

Source = str | Path
Given = Any  # a path, a list of texts or of (label, text), a data frame, a Dataset, or a dict of them by split
OnEvent = Callable[[Any], None]
OnStudyEvent = Callable[[str, dict[str, Any]], None]
OnStatus = Callable[[str], None]
Stop = Callable[[], bool]


def train(
    what: str | Path | Recipe,
    data: Given = None,
    *,
    recipe: str | None = None,
    seed: int = 0,
    out: Source | None = None,
    watch_test: bool = False,
    threads: int = 1,
    plugins: Sequence[Source] = (),
    log: Sequence[str] = (),
    save_seconds: float = 10.0,
    quiet: bool = False,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> Run:
    """Train a transformer on your text, and load it. The record is a folder, `out`.

    `what`: a task ('classify', 'lm' or 'mlm'), a recipe file or a recipe; `recipe`: with a task, a built-in recipe
    ('default' or 'course'). `data`: a path, a list of texts, a list of (label, text), a pandas or polars frame, a
    Hugging Face Dataset, or a dict of them by split, `{"train": ..., "test": ..., "news": ...}`. Further keywords
    change fields of the recipe: `steps=500`, `layers=2`, `parts=["rope", Fade]`, `text_column="review"`.

    >>> run = ft.train("classify", data=reviews, steps=5, layers=1, width=16, hidden=16, parts=["rope"], quiet=True)
    >>> run.recipe.parts[0].name, run.record.result["steps"]
    ('rope', 5)
    """
    home = Path(out).parent if out is not None else Path("runs")
    source = None if data is None else keep_given(data, home / "data")
    chosen = recipe_of(what, source, recipe, changes)
    if watch_test:
        chosen = replace(chosen, scoring=replace(chosen.scoring, watch_test=True))
    folder = Path(out) if out is not None else marked(default_folder(chosen, seed), written_parts(chosen))
    ensure_free(folder)  # before torch is imported: a taken folder is refused at once
    from fairtrial.loggers import open_loggers
    from fairtrial.plugins import load_files
    from fairtrial.trial import load as load_run
    from fairtrial.trial import run_trial

    files = load_files(map(Path, plugins))
    with open_loggers(log, folder, chosen) as on_log, stopping_unless(stop) as asked:
        record = run_trial(
            chosen, seed, folder, threads=threads, on_event=both(on_event, on_log), stop=asked,
            save_seconds=save_seconds, plugins=files,
        )  # fmt: skip
    return load_run(record)


def resume(
    record: Source | Run,
    *,
    anyway: bool = False,
    plugins: Sequence[Source] = (),
    log: Sequence[str] = (),
    save_seconds: float = 10.0,
    quiet: bool = False,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
) -> Run:
    """Go on with a trial that was stopped or killed; the result is bit for bit that of one that was never stopped. A
    finished one is loaded. `anyway`: accept other torch, threads, code, or files that changed.

    >>> ft.resume(classifier.folder).seed
    0
    """
    opened = Record.open(folder_of(record))
    if not opened.complete:
        with opened.hold():  # before torch is imported: a record that is being written is refused at once
            opened.settle_changes(accept=anyway)
    from fairtrial.loggers import open_loggers
    from fairtrial.plugins import fingerprint, load_files, refuse_changed
    from fairtrial.trial import load as load_run
    from fairtrial.trial import resume_trial

    if not anyway:  # before any plugin runs
        refuse_changed(opened, [(Path(path).name, fingerprint(Path(path))) for path in plugins])
    load_files(map(Path, plugins))
    with open_loggers(log, opened.folder, opened.recipe) as on_log, stopping_unless(stop) as asked:
        listeners = both(on_event, on_log)
        done = resume_trial(opened.folder, on_event=listeners, stop=asked, save_seconds=save_seconds, anyway=anyway)
    return load_run(done)


def load(record: Source, task: str | None = None, *, plugins: Sequence[Source] = ()) -> Run:
    """A finished trial with its trained network. `task`: refuse any other.

    >>> ft.load(classifier.folder).labels
    ('bad', 'good')
    """
    opened = Record.open(Path(record))
    from fairtrial.plugins import load_files
    from fairtrial.trial import load as load_run

    load_files(map(Path, plugins))
    return load_run(opened, task)


def finetune(
    data: Source,
    encoder: Source = "minilm",
    *,
    pool: str | None = None,
    recipe: Source | None = None,
    threads: int | None = None,
    save_seconds: float = 60.0,
    **more: Any,
) -> Run:
    """Fine-tune a pretrained encoder on labelled text: a checkpoint's folder, a record of `train("mlm")`, or 'minilm'.
    Nothing is downloaded. Further keywords are those of `train`, and fields of the recipe (`epochs=3`, `batch=32`)."""
    chosen = finetune_recipe(str(data), str(encoder), pool=pool, path=None if recipe is None else Path(recipe))
    cores = threads if threads is not None else min(2, os.cpu_count() or 1)
    return train(chosen, threads=cores, save_seconds=save_seconds, **more)


def study(
    variants: Any = None,
    data: Given = None,
    *,
    task: str | None = None,
    baseline: str | None = None,
    seeds: int | None = None,
    recipe: str | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    match: str | None = None,
    budget: str | None = None,
    until_clear: bool = False,
    jobs: int | None = None,
    engine: str = "cores",
    address: str | None = None,
    out: Source | None = None,
    plugins: Sequence[Source] = (),
    retry_failed: bool = False,
    dry_run: bool = False,
    quiet: bool = False,
    on_event: OnStudyEvent | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> Study:
    """Is it really better? Compare variants over several seeds and get a verdict. Finished trials are reused: the same
    call continues a stopped study.

    `variants`: a list, the first is the baseline; each is the name of a part ('rope', 'window:size=8', 'alibi+rope'), a
    part of your own (its class, or `Fade(rate=2)`), several parts, a recipe or a recipe file; or a dict that names
    them. Or a study file, or the folder of a study to continue. Further keywords change fields of all recipes.

    >>> finished.verdict.name
    'none vs learned'
    """
    from fairtrial.engines.job import open_engine
    from fairtrial.results import Study
    from fairtrial.study.design import design_study, read_study_table, with_written
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import default_study_folder, read_time
    from fairtrial.study.plan import recipes_of as recipes_of_study
    from fairtrial.study.run import Options, run_study

    what = str(variants) if isinstance(variants, str | Path) else None
    table, folder = read_study_table(what), Path(what) if what is not None and os.path.isdir(what) else None
    if folder is not None and seeds is None and budget is None:
        # its interim looks are corrected for
        until_clear = until_clear or bool(StudyFolder(folder).read_plan().get("until_clear"))
    settings = [f"{full_name(name)}={toml(plain_value(value))}" for name, value in changes.items()]
    chosen = design_study(
        table, data=None if data is None else keep_given(data, (Path(out).parent if out else Path("studies")) / "data"),
        task=task,
        variants=[] if what is not None else variants or [], baseline=baseline, seeds=seeds, recipe=recipe,
        duration=duration_of(steps, epochs), settings=settings, plugins=[Path(path) for path in plugins],
        match=match,
    )  # fmt: skip
    if until_clear and (seeds is not None or budget):
        raise BadInput("--until-clear uses 5, 10 and 20 seeds; it takes no --seeds and no --budget")
    options = Options(until_clear=until_clear, retry_failed=retry_failed, dry_run=dry_run)
    if budget:
        options = replace(options, budget_seconds=read_time(budget), most_seeds=seeds)
    sources = written_parts(*(recipe for named in recipes_of_study(chosen, {}).values() for recipe in named.values()))
    target = Path(out) if out is not None else folder or marked(default_study_folder(chosen), sources)
    chosen = with_written(chosen, StudyFolder(target).keep_parts(sources))
    plan: dict[str, Any] = {}

    def listen(kind: str, facts: dict[str, Any]) -> None:
        if kind == "plan":
            plan.update(facts)
        if on_event is not None:
            on_event(kind, facts)

    with stopping_unless(stop) as asked:
        try:
            run_study(chosen, target, open_engine(engine, jobs, address), options, listen, asked)
        except Interrupted as error:
            also = " --until-clear" if until_clear else ""
            raise Interrupted(error.what, f"continue with: fairtrial study {target}{also}") from error
    return Study(target, plan)


def verdict(study: Source | Study) -> Verdict:
    """The verdict of a finished study, from its folder.

    >>> print(ft.verdict(finished.folder).text[-1])
    Picking the best of 2 variants on test gains about ... points by luck alone.
    """
    from fairtrial.results import Study

    return (study if isinstance(study, Study) else Study(Path(study))).verdict


def audit(what: Any, *, plugins: Sequence[Source] = ()) -> Audit:
    """Does it cheat? Check that a variant sees no future, no padding and no other items of its batch, and that what it
    claims is true: a part (its name or class), a recipe or its file, a run or its folder, which keeps its passport.

    >>> ft.audit("none").passed
    True
    """
    from fairtrial.audit.run import audit_target
    from fairtrial.plugins import load_files
    from fairtrial.results import Audit
    from fairtrial.run import Run

    load_files(map(Path, plugins))
    if isinstance(what, Run):
        what = what.folder
    target = what if isinstance(what, Recipe) else str(plain_value(what))
    return Audit(target.name if isinstance(target, Recipe) else target, tuple(audit_target(target)))


def audit_data(
    data: Given = "sotu", *, task: str | None = None, recipe: str | None = None, on_status: OnStatus | None = None,
    **changes: Any,
) -> Audit:  # fmt: skip
    """Does a test set measure what it should? Copies between train and test, label leaks, vocabulary, drift.

    >>> [finding.name for finding in ft.audit_data(reviews).failed]
    ['words that reveal the class', 'unknown token never trained']
    """
    from fairtrial.data.audit import audit_data
    from fairtrial.finding import Finding
    from fairtrial.results import Audit

    with reading(data) as source:
        found = [audit_data(each, 0, on_status or silent) for each in recipes_of(source, task, recipe, changes)]
    findings = tuple(Finding.from_dict(row) for facts in found for row in facts["findings"])
    return Audit(name_of(data), findings, {facts["task"]: facts for facts in found})


def baseline(
    data: Given = "sotu", *, task: str | None = None, recipe: str | None = None, seed: int = 0,
    on_status: OnStatus | None = None, **changes: Any,
) -> Baselines:  # fmt: skip
    """Score simple models, from the majority class to Kneser-Ney, on exactly the items of a trial with this recipe and
    seed.

    >>> sorted(ft.baseline(reviews).tasks["classify"]["baselines"])[0]
    'length only'
    """
    from fairtrial.baselines.run import baseline_scores
    from fairtrial.results import Baselines

    with reading(data) as source:
        chosen = recipes_of(source, task, recipe, changes)
        return Baselines({each.task: baseline_scores(each, seed, on_status or silent) for each in chosen})


def compare(
    ours: ArrayLike,
    theirs: ArrayLike,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    least_difference: float | None = None,
    names: tuple[str, str] = ("ours", "theirs"),
) -> Comparison:
    """Judge two variants that were trained anywhere: arrays [seed item] of what became of each test item, by the test
    that judges a study. Rows are training seeds, columns the same items for both.

    True and false (or 0 and 1) are right and wrong answers, judged as accuracy in points. For a language model, give
    nats per token with `weights` (tokens of each document) and `metric="perplexity"`. Any other score of items has the
    name that you give, and more is better unless you say so. `groups` [item]: items that belong together (a speech, a
    document), which count as one. `least_difference`: what is of interest (1 point of accuracy, 1% of perplexity).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> theirs = rng.random((5, 400)) < 0.7
    >>> ours = theirs | (rng.random((5, 400)) < 0.2)
    >>> found = ft.compare(ours, theirs)
    >>> found.verdict, round(found.difference, 1), found.low > 0
    ('better', 6.2, True)
    """
    from fairtrial.results import Comparison
    from fairtrial.statistics.verdict import judge_arrays

    return Comparison.of(judge_arrays(ours, theirs, groups, weights, metric, higher_is_better, least_difference, names))


def power(
    seeds: int = 5, items: int = 750, *, task: str = "classify", comparisons: int = 1, pilot: Comparison | None = None
) -> Power:
    """The smallest difference that a study of so many seeds and test items finds in 4 of 5 cases, before anything is
    trained. `pilot`: a comparison whose variances are taken, not those of small transformers.

    >>> print(ft.power(seeds=5, items=750).sentence)
    5 seeds and 750 items detect 2.4 to 5.3 points of accuracy in 4 of 5 cases.
    """
    from fairtrial.results import Power
    from fairtrial.statistics.sentences import expected_smallest

    shares = None if pilot is None else pilot.facts["shares"]
    return Power.of(expected_smallest(task, seeds, items, family=comparisons, shares=shares), seeds, items, comparisons)


def recipe_of(what: str | Path | Recipe, source: str | None, name: str | None, changes: Mapping[str, Any]) -> Recipe:
    if isinstance(what, Recipe):
        chosen = what if source is None else what.with_(data=source)
    else:
        chosen = choose_recipe(str(what), name, source)
    return chosen.with_(**changes) if changes else chosen


def recipes_of(data: str, task: str | None, name: str | None, changes: Mapping[str, Any]) -> list[Recipe]:
    from fairtrial.prepare import recipes_for

    return [recipe.with_(**changes) for recipe in recipes_for(data, task, name, [])]


@contextmanager
def reading(data: Given) -> Iterator[str]:
    """A path to data that are needed for a moment only."""
    with TemporaryDirectory(prefix="fairtrial-data-") as folder:
        yield keep_given(data, Path(folder))


def name_of(data: Given) -> str:
    return str(data) if isinstance(data, str | Path) else "the data"


def written_parts(*recipes: Recipe) -> dict[str, str]:
    """Sources of the parts that were written in a notebook or a script, by file; torch is imported for them only."""
    if "fairtrial.model.part" not in sys.modules:
        return {}  # nobody has written any
    from fairtrial.plugins import keep_written

    return keep_written(choice.name for recipe in recipes for choice in recipe.parts)


def marked(folder: Path, sources: Mapping[str, str]) -> Path:
    """Another version of a part that is written in a notebook gets a folder of its own."""
    if not sources:
        return folder
    mark = hashlib.sha256("".join(sources.values()).encode()).hexdigest()[:6]
    return folder.with_name(f"{folder.name}-{mark}")


def folder_of(record: Source | Run) -> Path:
    return Path(record) if isinstance(record, str | Path) else record.folder


def both(first: OnEvent | None, second: OnEvent) -> OnEvent:
    def tell(event: Any) -> None:
        if first is not None:
            first(event)
        second(event)

    return tell


def stopping_unless(stop: Stop | None) -> Any:
    """The caller's way to stop, or Ctrl-C."""
    return stopping() if stop is None else nullcontext(stop)


def silent(what: str) -> None:
    """Shows nothing."""
