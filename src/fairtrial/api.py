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

from fairtrial.disk import write_bytes, write_text
from fairtrial.errors import BadInput, Interrupted
from fairtrial.progress import (
    OnEvent,
    Stop,
    TimeLimit,
    doing,
    open_bar,
    sharing,
    stopping_unless,
    study_listener,
    telling,
    waiting,
    watching,
)
from fairtrial.recipe import (
    PartChoice,
    Recipe,
    choose_recipe,
    duration_of,
    find_recipes,
    finetune_recipe,
    full_name,
    one_of,
    plain_value,
    read_model,
    split_model,
    toml,
    with_data,
    with_settings,
)
from fairtrial.record import Listed, Record, default_folder, ensure_free, records_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairtrial.analysis.catalogue import Catalogue
    from fairtrial.analysis.parameters import Parameters
    from fairtrial.explore import Explorer
    from fairtrial.model.part import Part
    from fairtrial.results.audit import Audit, Verification
    from fairtrial.results.outcomes import Outcomes
    from fairtrial.results.power import Power
    from fairtrial.results.records import Baselines, Cache, Records
    from fairtrial.results.study import Study
    from fairtrial.results.values import Comparison, Verdict
    from fairtrial.run import Run

Source = str | Path
Given = Any  # a path, a list of texts or of (label, text), a data frame, a Dataset, or a dict of them by split
OnStudyEvent = Callable[[str, dict[str, Any]], None]


def train(
    what: str | Path | Recipe,
    data: Given = None,
    *,
    model: Any = None,
    recipe: str | None = None,
    seed: int = 0,
    out: Source | None = None,
    watch_test: bool = False,
    threads: int = 1,
    plugins: Sequence[Source] = (),
    log: Sequence[str] = (),
    save_seconds: float = 10.0,
    settings: Sequence[str] = (),
    reuse: bool = False,
    quiet: bool = False,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> Run:
    """Train a transformer on your text, and load it. The record is a folder, `out`.

    `what`: a task ('classify', 'lm' or 'mlm'), a recipe file or a recipe; `recipe`: with a task, a built-in recipe
    ('default' or 'course'). `model`: a network of your own instead of ours, 'my_model.py:build', 'hf:CLASS' or a
    function (vocabulary, length, classes, seed) -> torch module. `data`: a path, a list of texts, a list of (label,
    text), a pandas or polars frame, a Hugging Face Dataset, or a dict of them by split, `{"train": ..., "test": ...,
    "news": ...}`. Further keywords change fields of the recipe: `steps=500`, `layers=2`, `parts=["rope", Fade]`,
    `text_column="review"`; `settings` are such changes as on the command line, `["shape.heads=4"]`. Ctrl-C, or a
    notebook's stop button, raises `Interrupted` once all is saved. `reuse`: where this very recipe, seed and data were
    trained before, go on with that record or load it, so that a notebook's cell can be run again.

    >>> run = ft.train("classify", data=reviews, steps=5, layers=1, width=16, hidden=16, parts=["rope"], quiet=True)
    >>> run.recipe.parts[0].name, run.record.result["steps"]
    ('rope', 5)
    """
    home = Path(out).parent if out is not None else Path("runs")
    source = None if data is None else keep_given(data, home / "data")
    chosen = recipe_of(what, source, recipe, settings, changes)
    if watch_test:
        chosen = replace(chosen, scoring=replace(chosen.scoring, watch_test=True))
    if model is not None:
        choice, files = chosen_model(model)
        chosen, plugins = replace(chosen, model=choice), [*plugins, *files]
    folder = Path(out) if out is not None else marked(default_folder(chosen, seed), written_parts(chosen))
    if reuse and out is not None:
        raise BadInput(
            "reuse finds a record by its recipe, so it has no folder of its own", "leave out `out` or `reuse`"
        )
    if reuse and (folder / "trial.json").is_file():
        how: Any = {"plugins": plugins, "log": log, "save_seconds": save_seconds, "quiet": quiet, "on_event": on_event}
        found = resume(folder, stop=stop, **how)
        found.splits  # noqa: B018  (data that have changed since are refused)
        return found
    ensure_free(folder)  # before torch is imported: a taken folder is refused at once
    from fairtrial.loggers import open_loggers

    with watching(quiet, on_event, stop) as (listen, asked):
        with doing("loading torch"):
            from fairtrial.plugins import load_files
            from fairtrial.trial import load as load_run
            from fairtrial.trial import run_trial
        digests = load_files(map(Path, plugins))
        with open_loggers(log, folder, chosen) as on_log:
            record = run_trial(
                chosen, seed, folder, threads=threads, on_event=both(listen, on_log), stop=asked,
                save_seconds=save_seconds, plugins=digests, with_baseline=True,
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
            opened.reject_or_accept_edits(accept=anyway)
    from fairtrial.loggers import open_loggers
    from fairtrial.plugins import check_unchanged, fingerprint, load_files
    from fairtrial.trial import load as load_run
    from fairtrial.trial import resume_trial

    if not anyway:  # before any plugin runs
        check_unchanged(opened, [(Path(path).name, fingerprint(Path(path))) for path in plugins])
    load_files(map(Path, plugins))
    with (
        open_loggers(log, opened.folder, opened.recipe) as on_log,
        watching(quiet, on_event, stop) as (listen, asked),
    ):
        listeners = both(listen, on_log)
        done = resume_trial(
            opened.folder, on_event=listeners, stop=asked, save_seconds=save_seconds, anyway=anyway, with_baseline=True
        )
    return load_run(done, anyway=anyway)


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
    data: Given,
    encoder: Source = "minilm",
    *,
    pool: str | None = None,
    recipe: Source | None = None,
    threads: int | None = None,
    save_seconds: float = 60.0,
    **more: Any,
) -> Run:
    """Fine-tune a pretrained encoder on labelled text: a checkpoint's folder, a record of `train("mlm")`, or 'minilm'.
    Nothing is downloaded. Further keywords are those of `train`, and fields of the recipe (`epochs=3`, `batch=32`).

    >>> run = ft.finetune(reviews, encoder, steps=2, threads=1, out="tuned", quiet=True)
    >>> run.recipe.shape.width
    16
    """
    source = keep_given(data, (Path(more["out"]).parent if more.get("out") else Path("runs")) / "data")
    chosen = finetune_recipe(source, str(encoder), pool=pool, path=None if recipe is None else Path(recipe))
    cores = threads if threads is not None else min(2, os.cpu_count() or 1)
    return train(chosen, threads=cores, save_seconds=save_seconds, **more)


def study(
    variants: Any = None,
    data: Given = None,
    *,
    source: Source | None = None,
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
    cpus: float | None = None,
    gpus: float | None = None,
    out: Source | None = None,
    plugins: Sequence[Source] = (),
    settings: Sequence[str] = (),
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
    part of your own (its class, or `Fade(rate=2)`), several parts, a network of your own ('my_model.py:build',
    'hf:CLASS', or the function that builds it), a recipe or a recipe file; or a dict that names them. Or a study file,
    or the folder of a study to continue (`source`, where variants are given, too). Further keywords change fields of
    all recipes. With `dry_run` nothing is trained: what is shown is the plan. `engine`: 'cores', 'here' (this process)
    or 'ray': a cluster at `address`, of which each trial asks for `cpus` and `gpus`.

    >>> study = ft.study(["none", "learned"], reviews, task="classify", seeds=2, steps=2, width=16, engine="here",
    ...                  quiet=True)
    >>> study.verdict.name, study.run("learned", seed=1).metrics["test"]["items"]
    ('none vs learned', 48)
    >>> ft.study(finished.folder, quiet=True).verdict.comparisons[0].seeds  # nothing is trained twice
    5
    """
    from fairtrial.engines.job import open_engine
    from fairtrial.formatting import read_time
    from fairtrial.results.study import Study
    from fairtrial.study.design import design_study, read_study_table, with_written
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import check_few_seeds, default_study_folder
    from fairtrial.study.plan import recipes_of as recipes_of_study
    from fairtrial.study.run import Options, run_study

    if isinstance(variants, str | Path):
        variants, source = None, variants
    what = None if source is None else str(source)
    table, folder = read_study_table(what), Path(what) if what is not None and os.path.isdir(what) else None
    if folder is not None and seeds is None and budget is None:
        # its interim looks are corrected for
        until_clear = until_clear or bool(StudyFolder(folder).read_plan().get("until_clear"))
    settings = [*settings, *(f"{full_name(name)}={toml(plain_value(value))}" for name, value in changes.items())]
    chosen = design_study(
        table, data=None if data is None else keep_given(data, (Path(out).parent if out else Path("studies")) / "data"),
        task=task,
        variants=variants or [], baseline=baseline, seeds=seeds, recipe=recipe,
        duration=duration_of(steps, epochs), settings=settings, plugins=[Path(path) for path in plugins],
        match=match,
    )  # fmt: skip
    if until_clear and (seeds is not None or budget):
        raise BadInput("--until-clear uses 5, 10 and 20 seeds; it takes no --seeds and no --budget")
    options = Options(until_clear=until_clear, retry_failed=retry_failed, dry_run=dry_run)
    if budget:
        check_few_seeds(seeds)
        options = replace(options, budget_seconds=read_time(budget), most_seeds=seeds)
    sources = written_parts(*(recipe for named in recipes_of_study(chosen, {}).values() for recipe in named.values()))
    target = Path(out) if out is not None else folder or marked(default_study_folder(chosen), sources)
    chosen = with_written(chosen, StudyFolder(target).keep_parts(sources))
    plan: dict[str, Any] = {}
    notices: list[str] = []

    def listen(kind: str, facts: dict[str, Any]) -> None:
        if kind == "plan":
            plan.update(facts)
        elif kind == "notice":
            notices.append(facts["text"])
        tell(kind, facts)

    with open_bar(quiet or on_event is not None) as bar, stopping_unless(stop) as asked:
        tell = on_event or study_listener(bar)
        try:
            with waiting(bar, quiet or on_event is not None):
                run_study(
                    chosen,
                    target,
                    open_engine(engine, jobs, address=address, cpus=cpus, gpus=gpus),
                    options,
                    listen,
                    asked,
                )
        except Interrupted as error:
            if dry_run or not (target / "study.toml").is_file():
                raise
            also = " --until-clear" if until_clear else ""
            hint, python = f"continue with: fairtrial study {target}{also}", "the same call continues the study"
            raise Interrupted(error.what, hint, python) from error
    return Study(target, plan, tuple(dict.fromkeys(notices)))


def verdict(
    study: Any,
    *,
    columns: Mapping[str, str] | None = None,
    baseline: str | None = None,
    metric: str | Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    least_difference: float | None = None,
    labels: Any = None,
    evaluation_seeds: bool = False,
) -> Verdict:
    """The verdict of a finished study, from its folder; or of results that were made elsewhere, by the same rules.

    Results are a file or several (CSV, JSON lines, Parquet; logs of lm-evaluation-harness, inspect_ai or HELM), a
    pattern (`"runs/{variant}/seed-{seed}/samples.jsonl"`), a data frame, or a dict of arrays [seed item] or of
    PredictionOutputs by variant. A table has the columns item, variant and value, and optionally seed (of training),
    metric, test, group, weight, higher_is_better, label and prediction; `columns` says where they have other names.
    The first variant is the `baseline`, unless it is named; `labels`: the true labels, where only predictions are
    stored; `evaluation_seeds`: the seeds are not those of training.

    >>> print(ft.verdict(finished.folder).text[-1])
    Selecting the best of 2 variants on test overstates it by about ... points.
    >>> found = ft.verdict({"old": [[1, 0, 1, 0, 1, 0]] * 5, "new": [[1, 1, 1, 0, 1, 0], [1, 0, 1, 1, 1, 0]] * 2})
    >>> found.comparisons[0].verdict.value, found.comparisons[0].reasons[0].code.value
    ('undecided', 'too_few_seeds')
    """
    from fairtrial.results.study import Study

    if isinstance(study, Study):
        return study.verdict
    chosen = [metric] if isinstance(metric, str) else list(metric)
    own = {
        "columns": columns, "baseline": baseline, "metric": chosen, "lower_is_better": lower_is_better,
        "least_difference": least_difference, "labels": labels, "evaluation_seeds": evaluation_seeds,
    }  # fmt: skip
    if isinstance(study, str | Path) and is_study(Path(study)):
        if any(own.values()):
            raise BadInput(f"{study} is a study, which says itself what is compared", "leave out options of results")
        return Study(Path(study)).verdict
    from fairtrial.results.judge import judge_results, repeat_command
    from fairtrial.results.readers import read_results

    results = read_results(study, columns, labels, chosen)
    return judge_results(
        results,
        baseline=baseline,
        least_difference=least_difference,
        lower_is_better=lower_is_better,
        evaluation_seeds=evaluation_seeds,
        command=repeat_command(study, own),
    )


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
    trials: int | None = 2,
    plugins: Sequence[Source] = (),
    quiet: bool = False,
) -> Verification:
    """Is a record what its recipe gives? Its checksums; its training again from recipe, seed and data, all of it or the
    first `steps`, bit by bit; its scores again from the stored weights. Of a study the verdict again from its outcomes,
    and so many of its `trials` (None: all). `data`: where the data are on this machine. Nothing is written, and nothing
    in a record is run: parts that are not built in are given as `plugins`.

    >>> found = ft.verify(classifier.folder)
    >>> [claim.state for claim in found.records[0].claims]
    ['consistent', 'proven', 'proven', 'proven', 'proven']
    >>> found.records[0].state, found.false
    ('proven', False)
    """
    if not records:
        raise BadInput("nothing to verify was named", "name records or studies: fairtrial verify submissions/*")
    if steps is not None and steps < 0:
        raise BadInput(f"steps must not be negative, got {steps}")
    folders = [folder_of(record) for record in records]  # type: ignore[arg-type]
    for folder in folders:
        if not folder.exists():
            raise BadInput(f"{folder} is not there", "a record is a folder that `fairtrial train` wrote")
    from fairtrial.plugins import load_files
    from fairtrial.results.audit import Verification
    from fairtrial.verification import Options, verify_folder

    load_files(map(Path, plugins))
    options = Options(steps, None if data is None else str(data), trials)
    with telling(quiet) as tell:
        return Verification(tuple(verify_folder(folder, options, tell) for folder in folders))


def report(study: Any, *, out: Source | None = None, **results: Any) -> Path:
    """Write a page of a study (`report.html` in its folder) or of results that were made elsewhere, as `verdict` takes
    them: one file that needs no network.

    >>> ft.report(finished.folder).name
    'report.html'
    """
    from fairtrial.results.study import Study

    if isinstance(study, str | Path) and is_study(Path(study)):
        study = Study(Path(study))
    if isinstance(study, Study) and out is None:
        return study.write_page()
    found = verdict(study, **results)
    return found.write_page(out or f"{found.name}-report.html")


def demo(out: Source = "demo", **more: Any) -> Study:
    """A small study on the embedded speeches, in a few minutes: three kinds of position encoding, two tasks, five
    seeds. Further keywords are those of `study`, such as a smaller number of `seeds`.

    >>> print(ft.demo(dry_run=True, engine="here", quiet=True))  # the plan; without `dry_run` it is carried out
    study: learned positions, rotary or ALiBi? (a small demonstration)
    plan: 30 trials (3 variants x 5 seeds x 2 tasks), ...
    """
    from fairtrial.study.design import DEMO

    return study(source=DEMO, out=out, **more)


def show(
    record: Source | Run | Sequence[Source | Run] = "runs", *, html: Source | None = None,
    figure: Source | None = None, names: Sequence[str] | None = None,
) -> Records:  # fmt: skip
    """What was trained: all that is known of a record, also of an unfinished one; of several, or of a folder that holds
    many, one row each. `html`: also write a page; `figure`: curves of a single record; `names`: of the classes.

    >>> ft.show(classifier.folder).to_frame().loc[0, "state"]
    'finished'
    """
    from fairtrial.results.records import Records

    given = record if isinstance(record, Sequence) and not isinstance(record, str) else [record]
    folders = [folder_of(each) for each in given]
    single = len(folders) == 1 and os.path.exists(folders[0] / "trial.json")
    found = Records((Listed(Record.open(folders[0])),) if single else tuple(records_of(folders)))
    if single:
        found.listed[0].record.check_unchanged()
    sound, title = [each.record for each in found.listed if not each.problem], ", ".join(each.name for each in folders)
    if html is not None:
        from fairtrial.report.page import records_page

        write_text(Path(html), records_page(sound, f"fairtrial: {title}", names))
    if figure is not None:
        from fairtrial.report.plots import curves_figure

        if len(sound) != 1:
            raise BadInput(f"{title}: {len(sound)} records", "a figure is of one of them")
        write_bytes(Path(figure), curves_figure(sound[0], Path(figure).suffix.lstrip(".").lower() or "png"))
    return found


def cache(clear: bool = False) -> Cache:
    """What was computed from large data sets and kept, below ~/.cache/fairtrial or what FAIRTRIAL_CACHE names; `clear`:
    remove it all.

    >>> ft.cache(clear=True).files
    ()
    """
    from fairtrial.data import cache as kept
    from fairtrial.results.records import Cache

    freed = kept.clear() if clear else None
    files = ({"file": path.name, "what": kept.what_of(path), "bytes": facts.st_size} for path, facts in kept.files())
    return Cache(kept.folder(), tuple(files), kept.MOST_BYTES, freed)


def audit(
    what: Any = None,
    *,
    model: Any = None,
    kind: str = "",
    task: str | None = None,
    vocabulary: int | None = None,
    length: int | None = None,
    classes: int | None = None,
    plugins: Sequence[Source] = (),
    settings: Sequence[str] = (),
    bf16: bool = False,
    time_limit: str = "5m",
    quiet: bool = False,
    **declared: Any,
) -> Audit:
    """Does it cheat? Check that a variant sees no future, no padding and no other items of its batch, and that what it
    claims is true: a part (its name or class), a recipe or its file, a run or its folder, which keeps its passport.

    Or a network of your own: a torch module, with its `kind` ('causal' or 'classifier') and what it declares
    (`pads="left"`, `chunk=16`); or `model`, a builder ('my_model.py:build', 'hf:CLASS', a function) for a `task` ('lm',
    'classify'), built in the recipe's shape, which `settings` change. `bf16`: ask under autocast, too. What is
    not reached within `time_limit` is not asked, and the audit has not passed.

    >>> ft.audit("none").passed
    True
    """
    from fairtrial.audit.run import audit_module, audit_target
    from fairtrial.formatting import read_time
    from fairtrial.plugins import load_files
    from fairtrial.results.audit import Audit

    limit = TimeLimit(read_time(time_limit))
    load_files(map(Path, plugins))
    with sharing(quiet) as on_progress:
        how: Any = {"bf16": bf16, "limit": limit, "on_progress": on_progress}
        if is_module(what):
            from fairtrial.audit.subject import plan_of_module

            sizes = {"vocabulary": vocabulary, "length": length, "classes": classes}
            plan = plan_of_module(what, kind, sizes, declared)
            return Audit(type(what).__name__, tuple(audit_module(plan, **how)))
        if declared or vocabulary or length or classes:
            given = [*declared, *(name for name, value in (("vocabulary", vocabulary), ("length", length)) if value)]
            raise BadInput(f"{', '.join(given)}: only a torch module is told what it is", "its builder declares it")
        if model is not None or (callable(what) and not isinstance(what, type)):
            choice, files = chosen_model(model if model is not None else what)
            one_of("task", found := task or task_of_model(choice, kind), ("lm", "classify"))
            load_files(map(Path, files))
            recipe = recipe_of(found, None, None, settings, {"model": choice, "name": choice.name})
            return Audit(choice.name, tuple(audit_target(recipe, **how)))
        target = target_of(what)
        name = target if isinstance(target, str) else target.name
        return Audit(name, tuple(audit_target(target, **how)))


def target_of(what: Any) -> str | PartChoice | Recipe:
    """What is audited, as it is found on disk, in the registry or in a recipe."""
    if isinstance(what, type) and hasattr(what, "choice"):
        what = what.choice()
    if isinstance(what, str | PartChoice | Recipe):
        return what
    if isinstance(what, Path) or hasattr(what, "folder"):
        return str(folder_of(what))
    hint = "give a part, a recipe or its file, a run or its folder, a torch module, or `model`"
    raise BadInput("nothing to audit was named" if what is None else f"{what!r} cannot be audited", hint)


def audit_data(
    data: Given = "sotu", *, task: str | None = None, recipe: str | None = None, settings: Sequence[str] = (),
    quiet: bool = False, **changes: Any,
) -> Audit:  # fmt: skip
    """Does a test set measure what it should? Copies between train and test, label leaks, vocabulary, drift.

    >>> [finding.name for finding in ft.audit_data(reviews).failed]
    ['words that reveal the class']
    """
    from fairtrial.data.audit import audit_data
    from fairtrial.finding import Finding
    from fairtrial.results.audit import Audit

    with reading(data) as source, telling(quiet) as tell:
        found = [audit_data(each, 0, tell) for each in recipes_of(source, task, recipe, settings, changes)]
    findings = tuple(Finding.from_dict(row) for facts in found for row in facts["findings"])
    return Audit(name_of(data), findings, {facts["task"]: facts for facts in found})


def baseline(
    data: Given = "sotu", *, task: str | None = None, recipe: str | None = None, seed: int = 0,
    settings: Sequence[str] = (), quiet: bool = False, **changes: Any,
) -> Baselines:  # fmt: skip
    """Score simple models, from the majority class to Kneser-Ney, on exactly the items of a trial with this recipe and
    seed.

    >>> sorted(ft.baseline(reviews).tasks["classify"]["baselines"])[0]
    'length only'
    """
    from fairtrial.baselines.run import baseline_scores
    from fairtrial.results.records import Baselines

    with reading(data) as source, telling(quiet) as tell:
        chosen = recipes_of(source, task, recipe, settings, changes)
        return Baselines({each.task: baseline_scores(each, seed, tell) for each in chosen})


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
    >>> found.verdict.value, round(found.difference.estimate, 1), found.difference.low > 0
    ('better', 6.2, True)
    """
    from fairtrial.statistics.verdict import judge_arrays

    return judge_arrays(ours, theirs, groups, weights, metric, higher_is_better, least_difference, names)


def parameters(
    what: Source | Recipe | Run,
    *,
    task: str | None = None,
    data: Given = None,
    vocabulary: int | None = None,
    classes: int | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
    plugins: Sequence[Source] = (),
    **changes: Any,
) -> Parameters:
    """Parameters and FLOPs of a network, component by component: of a run or its folder, of a recipe, its file or its
    name ('lm', 'course' with a `task`), before anything is trained. The vocabulary is that of the recipe's data, or of
    `data`, unless its size is given. Further keywords change fields of the recipe.

    >>> ft.parameters("lm", vocabulary=5000, width=32).ledger.rows[0].formula
    '5,000 × 32'
    """
    from fairtrial.analysis.parameters import cost_of_recipe
    from fairtrial.plugins import load_files
    from fairtrial.run import Run

    load_files(map(Path, plugins))
    if isinstance(what, Run) or (not isinstance(what, Recipe) and os.path.isdir(what)):
        if data is not None or vocabulary is not None or settings or changes:
            raise BadInput("a record's network is fixed", "leave out data, vocabulary and fields, or name a recipe")
        record = Record.open(folder_of(what))
        return cost_of_recipe(record.recipe, record.trial["vocabulary"], len(record.trial["labels"]))
    with reading(data) if data is not None else nullcontext() as source:
        if isinstance(what, Recipe):
            found = [with_settings(with_data(what, source), settings)]
        else:
            found = find_recipes(str(what), task, source, settings)
        if len(found) > 1:
            raise BadInput(f"{what!r} is a recipe for {', '.join(each.task for each in found)}", "name one: task='lm'")
        return cost_of_recipe(found[0].with_(**changes), vocabulary, classes, seed)


def catalogue(
    name: str | type[Part] | None = None, *, plugins: Sequence[Source] = (), installed: bool = True,
    page: Source | None = None, quiet: bool = False,
) -> Catalogue:  # fmt: skip
    """All parts that there are, or one of them: what it does, its options, what it claims. `page`: write a Markdown
    page of all that are known to this process, each plotted and audited.

    >>> ft.catalogue("alibi").entries[0].claims
    ('sees order', 'by distance alone')
    """
    from fairtrial.analysis.catalogue import Catalogue, describe, write_page
    from fairtrial.analysis.catalogue import catalogue as describe_all
    from fairtrial.plugins import load_all_installed, load_files, load_installed

    load_files(map(Path, plugins))
    if page is not None and name is not None:
        raise BadInput("a page is about all parts", "leave out the part's name")
    if name is None:
        broken = load_all_installed() if installed and page is None else {}
        found = Catalogue(tuple(describe_all()), broken)
        if page is not None:
            with telling(quiet) as tell:
                write_page(Path(page), found.entries, tell)
        return found
    target = target_of(name)
    chosen = target if isinstance(target, str) else target.name
    load_installed([chosen])
    return Catalogue((describe(chosen),))


def clean(
    data: Source, out: Source, *, drop: str = "train", near: bool = True, across: bool = False,
    duplicates: bool = False, conflicts: bool = False, settings: Sequence[str] = (), quiet: bool = False,
    **changes: Any,
) -> dict[str, Any]:  # fmt: skip
    """Write a copy of a data set without test items that also occur in the training set, and tell what was dropped.
    `drop`: from 'train' or from 'test'; `near`: near duplicates, too; `across`: in the format 'course', between tasks;
    `duplicates`: repeated training texts; `conflicts`: training texts with two labels. Further keywords: `text_column`
    and its like.

    >>> ft.clean(reviews, "cleaned", duplicates=True)["files"]["reviews.tsv"]["kept"]
    240
    """
    from fairtrial.data.cleaning import CleanOptions, clean_data

    one_of("--drop", drop, ("train", "test"))
    options = CleanOptions(drop=drop, near=near, across=across, duplicates=duplicates, conflicts=conflicts)
    chosen = recipe_of(Recipe(), str(data), None, settings, changes)
    with telling(quiet) as tell:
        return clean_data(chosen.data, Path(out), options, tell)


def power(
    seeds: int = 5,
    items: int = 750,
    *,
    task: str = "classify",
    comparisons: int = 1,
    spread: float | Sequence[float] | None = None,
    pilot: Comparison | Verdict | Study | Source | None = None,
) -> Power:
    """The smallest difference that a study of so many seeds and test items finds in 4 of 5 cases, before anything is
    trained.

    How much differences vary is taken from small transformers, unless it is known: `spread`, the standard deviation of
    a difference between two variants over training seeds, in points of accuracy ('classify') or nats per token ('lm');
    or three of them, over seeds, over items, and of what is left. `pilot`: a comparison, a verdict, a study or a file
    of results whose variances are taken.

    >>> print(ft.power(seeds=5, items=750).sentence)
    5 seeds and 750 items detect 2.4 to 5.3 points of accuracy in 4 of 5 cases.
    >>> print(ft.power(seeds=10, items=750, spread=0.7).sentence)
    10 seeds and 750 items detect 1.5 points of accuracy in 4 of 5 cases.
    """
    from fairtrial.results.power import Power
    from fairtrial.results.values import Comparison, Verdict
    from fairtrial.statistics.power import components_of_pilot, components_of_spread, expected_smallest

    one_of("task", task, ("classify", "lm"))
    if spread is not None and pilot is not None:
        raise BadInput("a pilot has a spread of its own", "give one of the two")
    components = None
    if spread is not None:
        components = components_of_spread(task, [spread] if isinstance(spread, int | float) else spread)
    elif pilot is not None:
        judged = pilot if isinstance(pilot, Comparison | Verdict) else verdict(pilot)
        task, components = components_of_pilot([judged] if isinstance(judged, Comparison) else judged.comparisons)
    expected = expected_smallest(task, seeds, items, family=comparisons, components=components)
    return Power.of(expected, seeds, items, comparisons, components)


def explore(
    folder: Source = ".", *, host: str = "127.0.0.1", port: int | None = None, browser: bool = True,
    data: Sequence[str] = (), plugins: Sequence[Source] = (),
) -> Explorer:  # fmt: skip
    """Open the explorer on a folder of records and studies, in the browser: a server on this machine only, which stops
    with `stop()` or with Python. `data`: sources outside the folder that it may read.

    >>> with ft.explore(classifier.folder.parent, port=0, browser=False) as explorer:
    ...     explorer.url.startswith("http://127.0.0.1:")
    True
    """
    from fairtrial.explore import start

    return start(
        Path(folder), host=host, port=port, data=list(data), plugins=[Path(path) for path in plugins], browser=browser
    )


def is_module(what: Any) -> bool:
    """Whether this is a torch module; torch is imported only by someone who has one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(what, torch.nn.Module)


def chosen_model(model: Any) -> tuple[PartChoice, list[str]]:
    """A model as a recipe has it, and the files that the user has named by naming it: `path/my_model.py:build`,
    `hf:CLASS`, `hf:FOLDER`, a function, or a table with one of these as its name and options."""
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


def recipe_of(
    what: str | Path | Recipe, source: str | None, name: str | None, settings: Sequence[str], changes: Mapping[str, Any]
) -> Recipe:
    found = with_data(what, source) if isinstance(what, Recipe) else choose_recipe(str(what), name, source)
    return with_settings(found, settings).with_(**changes)


def recipes_of(
    data: str, task: str | None, name: str | None, settings: Sequence[str], changes: Mapping[str, Any]
) -> list[Recipe]:
    from fairtrial.prepare import recipes_for

    return [recipe.with_(**changes) for recipe in recipes_for(data, task, name, settings)]


@contextmanager
def reading(data: Given) -> Iterator[str]:
    """A path to data that are needed for a moment only."""
    with TemporaryDirectory(prefix="fairtrial-data-") as folder:
        yield keep_given(data, Path(folder))


def name_of(data: Given) -> str:
    return str(data) if isinstance(data, str | Path) else "the data"


def keep_given(data: Given, folder: Path) -> str:
    """The path of data; Python values are written to a file in `folder` first."""
    if isinstance(data, str | Path):
        return str(data)
    from fairtrial.data.given import write_given

    return write_given(data, folder)


def written_parts(*recipes: Recipe) -> dict[str, str]:
    """Sources of parts and models that were written in a notebook or a script, by file; torch is imported for them
    only."""
    if "fairtrial.model.part" not in sys.modules:
        return {}  # nobody has written any
    from fairtrial.plugins import code_names, keep_written

    return keep_written(name for recipe in recipes for name in code_names(recipe))


def marked(folder: Path, sources: Mapping[str, str]) -> Path:
    """Another version of a part that is written in a notebook gets a folder of its own."""
    if not sources:
        return folder
    mark = hashlib.sha256("".join(sources.values()).encode()).hexdigest()[:6]
    return folder.with_name(f"{folder.name}-{mark}")


def folder_of(record: Source | Run) -> Path:
    return Path(record) if isinstance(record, str | Path) else record.folder


def both(first: OnEvent, second: OnEvent) -> OnEvent:
    def tell(event: Any) -> None:
        first(event)
        second(event)

    return tell
