"""Is a record what its recipe gives? Checksums, the training again from recipe and seed, the scores again from the
stored weights; of a study its verdict again from its outcomes, and a sample of its trials. A record is read, never
written, and nothing in it is run."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput, Diverged
from fairtrial.events import Ready, event_json
from fairtrial.record import Record
from fairtrial.results.audit import Checked, Claim
from fairtrial.results.sentences import verdict_sentences
from fairtrial.results.values import TaskVerdict, Verdict
from fairtrial.results.verdict_file import is_of_0_2
from fairtrial.typed import unstructure

if TYPE_CHECKING:
    from fairtrial.prepare import Prepared
    from fairtrial.training.loop import Loop
    from fairtrial.training.scoring import Score
    from fairtrial.training.tasks import Task

PROVEN, CONSISTENT, FALSE, OPEN = "proven", "consistent", "false", "not proven"
SETTLED = (
    20  # steps that are equal to the last bit: this processor computes the same bits, and no later step may differ
)
CLOSE = 1e-3  # relative: what another processor or library may differ by in so few steps
OnStatus = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    steps: int | None = None  # of the training; None: all of them, 0: none
    data: str | None = None  # where the data are here
    trials: int | None = 2  # of a study; None: all of them


def verify_folder(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    """A record or a study."""
    if (folder / "study.toml").is_file() and not (folder / "trial.json").is_file():
        return verify_study(folder, options, on_status)
    return verify_record(folder, options, on_status)


def verify_record(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    try:
        record = Record.open(folder)
        if not record.complete:
            return Checked(folder, (Claim("files", OPEN, "the trial is not finished, so it claims no result"),))
        files = check_files(record)
    except BadInput as error:
        state = FALSE if (folder / "trial.json").is_file() else OPEN
        return Checked(folder, (Claim("files", state, error.what),))
    on_status(f"{folder}: reading the data")
    try:
        from fairtrial.environment import use_threads
        from fairtrial.plugins import require_plugins

        require_plugins(record)  # a part that is not built in runs only where it is named
        with use_threads(record.trial.environment.threads):
            prepared, data = check_data(record, options, environment_differs(record))
            if prepared is None:
                return Checked(folder, (files, data))
            return Checked(folder, (files, data, *train_again(record, prepared, options, on_status)))
    except BadInput as error:
        return Checked(folder, (files, Claim("training", OPEN, with_hint(error))))


def with_hint(error: BadInput) -> str:
    return error.what.replace("\n", " ")


def check_files(record: Record) -> Claim:
    """Every file is the one that the result names. Whoever edits a file can make its checksum again, too."""
    trial, recipe, result = record.trial, record.recipe, record.result
    for name in ("events.jsonl", "outcomes.safetensors", "model.safetensors", "tokenizer.json"):
        record.checked(name)
    _ = record.events(), record.outcomes(), record.baseline
    if result.seed != trial.seed:
        return Claim("files", FALSE, f"trial.json says seed {trial.seed}, result.json {result.seed}")
    if trial.changed:
        return Claim("files", CONSISTENT, f"resumed although {' and '.join(trial.changed)} had changed")
    return Claim("files", CONSISTENT, f"all checksums fit; seed {trial.seed}, recipe {trial.recipe}, {recipe.task}")


def check_data(record: Record, options: Options, other: str) -> tuple[Prepared | None, Claim]:
    """The same files, and the same tokenizer, labels and documents made of them."""
    from fairtrial.prepare import prepare
    from fairtrial.recipe import fingerprint

    recipe, trial = record.recipe, record.trial
    if options.data is not None:
        recipe = replace(recipe, data=replace(recipe.data, source=options.data))
    device = trial.environment.device  # on another one the bits are others
    prepared = replace(prepare(recipe, trial.seed), device=device)
    found, asked = prepared.corpus.files, trial.data
    if found != asked:
        names = sorted(name for name in {**found, **asked} if found.get(name) != asked.get(name))
        return None, Claim("data", OPEN, f"the data here are others than those of the record ({', '.join(names[:3])})")
    if fingerprint(prepared.recipe) != trial.recipe:
        return None, false_unless(other, "data", "these data give another recipe (its length or kind of tokens)")
    if prepared.tokenizer.to_json() != (record.folder / "tokenizer.json").read_text(encoding="utf-8"):
        return None, false_unless(other, "data", "another tokenizer follows from these data and this seed")
    own = replace(
        trial, labels=prepared.splits.labels, test_sets=tuple(prepared.splits.tests), counts=prepared.task.counts
    )
    if wrong := first_difference(unstructure(own), unstructure(trial), shared=bool(other)):
        return None, false_unless(other, "data", f"trial.json: {wrong}")
    return prepared, Claim("data", PROVEN, "the same files by sha256; tokenizer and labels follow from them")


def train_again(record: Record, prepared: Prepared, options: Options, on_status: OnStatus) -> Iterator[Claim]:
    """Claims on training, weights and scores."""
    from safetensors.torch import load as load_tensors

    from fairtrial.training.device import deterministic
    from fairtrial.training.loop import Loop, put_weights, weights_of
    from fairtrial.trial import final_scores

    other = environment_differs(record)
    loop = Loop(prepared.task, prepared.recipe.training, prepared.recipe.scoring, record.trial.seed)
    with deterministic(loop.device):
        training = compare_training(record, loop, options.steps, other, on_status)
    yield training
    stored = load_tensors(record.weights())
    whole = training.state == PROVEN and (loop.progress.step == loop.steps or bool(loop.progress.stopped))
    best_step = loop.restore_best() if whole else None
    own = weights_of(prepared.task.network)
    if {name: tensor.shape for name, tensor in own.items()} != {name: each.shape for name, each in stored.items()}:
        yield Claim("weights", FALSE, "the stored weights do not fit the network of the recipe")
        return
    if whole:
        wrong = [name for name, tensor in own.items() if not same_bits(tensor, stored[name])]
        said = f"{len(wrong)} of {len(own)} tensors are not what the training gives ({wrong[0]})" if wrong else ""
        yield Claim("weights", FALSE if wrong else PROVEN, said or "every bit of them follows from the training")
    else:
        why = "the training was not repeated to its end" if training.state == PROVEN else "see training"
        yield Claim("weights", OPEN, why)
    put_weights(prepared.task.network, stored)
    on_status(f"{record.folder}: scoring")
    scores = final_scores(prepared.task, record)
    outcomes = {f"{name}/{what}": array for name, score in scores.items() for what, array in score.outcomes.items()}
    yield compare_scores(record, prepared.task, outcomes, scores, other, loop if whole else None, best_step)


def environment_differs(record: Record) -> str:
    """What else than recipe, seed and data may have changed the bits; empty where nothing is known to."""
    from fairtrial.environment import changed_since, code_fingerprint, describe

    then = record.trial.environment
    now = describe(then.threads)
    changed = [f"{name} {getattr(then, name)}, here {getattr(now, name)}" for name in changed_since(then)]
    changed += ["its device did not promise the same bits"] if record.result.not_deterministic else []
    changed += ["another version of fairtrial's code"] if record.trial.code != code_fingerprint() else []
    return "; ".join(changed)


def compare_training(record: Record, loop: Loop, steps: int | None, other: str, on_status: OnStatus) -> Claim:
    """Event by event: loss and learning rate of every step, scores of every evaluation."""
    told, exact, last = iter(record.events()), True, 0
    if steps == 0:
        return Claim("training", OPEN, "not repeated (--steps 0)")
    end = loop.steps if steps is None else min(steps, loop.steps)
    try:
        for event in loop.run():
            if isinstance(event, Ready):
                if event.step >= end or (not exact and event.step >= SETTLED):
                    break
                if event.step % 20 == 0:
                    on_status(f"{record.folder}: step {event.step} of {end}")
                continue
            logged = next(told, None)
            if logged is None:
                return false_unless(other, "training", f"the record's log ends before step {event.step}")
            own, stored = event_json(event), event_json(logged)
            wrong = first_difference(own, stored, shared=bool(other))
            if wrong and exact and last >= SETTLED:
                return Claim("training", FALSE, f"step {event.step} gives something else: {wrong}")
            if wrong and first_difference(own, stored, CLOSE, shared=bool(other)):
                return false_unless(other, "training", f"step {event.step} gives something else: {wrong}")
            exact, last = exact and not wrong, event.step
    except Diverged as error:
        return false_unless(other, "training", error.what)
    if not exact:
        why = other or "another processor or library"
        return Claim("training", CONSISTENT, f"its first {last} steps to three digits, not to the last bit ({why})")
    if end == loop.steps or loop.progress.stopped:
        if next(told, None) is not None:
            return Claim("training", FALSE, f"the record's log goes on after the last step, {last}")
        return Claim("training", PROVEN, f"all {last:,} steps from recipe and seed, to the last bit")
    return Claim(
        "training", PROVEN, f"the first {last:,} of {loop.steps:,} steps from recipe and seed, to the last bit"
    )


def false_unless(other: str, name: str, what: str) -> Claim:
    """A difference proves nothing where the environment is another one."""
    return Claim(name, OPEN, f"{what}; but the environment differs ({other})") if other else Claim(name, FALSE, what)


def compare_scores(
    record: Record,
    task: Task,
    outcomes: Mapping[str, Any],
    scores: Mapping[str, Score],
    other: str,
    loop: Loop | None,
    best_step: int | None,
) -> Claim:
    """Outcomes of every item and all metrics, by the stored weights; of a whole training everything in result.json."""
    from fairtrial.provenance import trial_result

    told, stored, shared = record.result, record.outcomes(), bool(other)
    if loop is not None and best_step is not None:
        own = trial_result(record, task, loop, best_step, scores, told.not_deterministic)
    else:
        tests = {name: score.metrics for name, score in scores.items() if name != "validation"}
        own = replace(told, validation=scores["validation"].metrics if "validation" in scores else None, tests=tests)
    here, there = (unstructure(replace(each, sha256={})) for each in (own, told))
    wrong = first_difference(here, there, shared=shared)
    unequal = sorted(name for name in {*outcomes, *stored} if not same_array(outcomes.get(name), stored.get(name)))
    other = other if unequal else ""  # where all outcomes are equal, the environment changes nothing
    if wrong and first_difference(here, there, CLOSE, shared=shared):
        return false_unless(other, "scores", f"result.json: {wrong}")
    if unequal and any(not same_array(outcomes.get(name), stored.get(name), close=True) for name in unequal):
        return false_unless(other, "scores", f"outcomes.safetensors: {unequal[0]} is not what the stored weights give")
    if wrong or unequal:
        return Claim("scores", CONSISTENT, f"to three digits, not to the last bit ({other or 'another processor'})")
    return Claim("scores", PROVEN, f"{', '.join(scores)}: the stored weights give every outcome and metric again")


# comparing


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def first_difference(own: Any, told: Any, close: float = 0.0, path: str = "", *, shared: bool = False) -> str:
    """Where two plain values differ first, in words; empty where they do not. `close`: relative, for numbers; `shared`:
    only what both have, as another version may store more or less."""
    if isinstance(own, dict) and isinstance(told, dict):
        names = [name for name in {**own, **told} if not shared or (name in own and told.get(name) is not None)]
        found = (
            first_difference(own.get(name), told.get(name), close, f"{path}.{name}", shared=shared) for name in names
        )
        return next(filter(None, found), "")
    if isinstance(own, list) and isinstance(told, list) and len(own) == len(told):
        pairs = enumerate(zip(own, told, strict=True))
        found = (first_difference(*pair, close, f"{path}[{at}]", shared=shared) for at, pair in pairs)
        return next(filter(None, found), "")
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (own, told))
    if own == told or (numbers and (math.isclose(own, told, rel_tol=close) or (own != own and told != told))):
        return ""
    return f"{path.lstrip('.')} is {short(told)} there, {short(own)} here"


def short(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def same_bits(one: Any, other: Any) -> bool:
    import torch

    return one.dtype == other.dtype and torch.equal(one.cpu(), other)


def same_array(one: Any, other: Any, *, close: bool = False) -> bool:
    import numpy as np

    if one is None or other is None or one.shape != other.shape:
        return False
    if not close or one.dtype.kind not in "f":
        # answers near a tie may turn over on another processor
        return np.array_equal(one, other) or bool(close and len(one) and (one != other).mean() < 0.01)
    return bool(np.allclose(one, other, rtol=CLOSE, atol=1e-5))


# studies


def verify_study(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    """Every trial's checksums, the verdict again from their outcomes, some trials again."""
    from fairtrial.report.study_files import StudyFiles

    try:
        study = StudyFiles.open(folder)
        told = study.verdict
        records = [record for named in study.records.values() for found in named.values() for record in found]
        for record in records:
            if record.complete:
                check_files(record)
        files = Claim("files", CONSISTENT, f"all checksums of {len(records)} trials fit")
    except BadInput as error:
        return Checked(folder, (Claim("files", FALSE, error.what),))
    on_status(f"{folder}: judging again")
    claims = [files, judge_again(folder, told, options)]
    finished = [record for record in records if record.complete]
    count = len(finished) if options.trials is None else min(options.trials, len(finished))
    inside = []
    for record in random.SystemRandom().sample(finished, count):  # nobody can know which
        inside.append(verify_record(record.folder, options, on_status))
    states = [each.state for each in inside]
    if states:
        names = ", ".join(each.folder.relative_to(folder / "trials").as_posix() for each in inside)
        state = next(state for state in (FALSE, OPEN, CONSISTENT, PROVEN) if state in states)
        wrong = next((claim.detail for each in inside for claim in each.claims if claim.state == state != PROVEN), "")
        if state == PROVEN and count < len(finished):
            state, wrong = CONSISTENT, "those are proven, the others have fitting checksums"
        detail = f"{count} of {len(finished)} again ({names})" + (f": {wrong}" if wrong else "")
        claims.append(Claim("trials", state, detail))
    return Checked(folder, tuple(claims), tuple(inside))


def judge_again(folder: Path, told: Verdict, options: Options) -> Claim:
    """The verdict from the outcomes of the trials, with the audits and baselines that the folder holds."""
    from fairtrial.plugins import loaded_digests
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import make_plan
    from fairtrial.study.run import judge
    from fairtrial.study.search import earlier_choice
    from fairtrial.study.tables import load_study, study_from

    try:
        table = load_study(folder / "study.toml")
        if options.data is not None:
            table["data"] = options.data
        study, home = study_from(table), StudyFolder(folder)
        for path in (Path(name) for variant in study.variants for name in variant.plugins):
            if not path.is_file() or sha256_of(path) not in loaded_digests():  # it runs only where it is named
                return Claim("verdict", OPEN, f"it needs parts from {path}: name that file with --with")
        if study.match:
            return Claim("verdict", OPEN, "a study at matched budgets is not judged again")
        plan = make_plan(study, home)
        plan = plan.with_recipes(earlier_choice(plan))
    except BadInput as error:
        return Claim("verdict", OPEN, with_hint(error))
    try:
        own, _ = judge(plan, told.rule)
    except BadInput as error:  # outcomes that do not give the metrics of their record, for example
        return Claim("verdict", FALSE, with_hint(error))
    for task, judged in own.tasks.items():
        if task not in told.tasks:
            return Claim("verdict", FALSE, f"verdict.json says nothing of {task}")
        again, kept = (numbers_of(each) for each in (judged, told.tasks[task]))
        if wrong := first_difference(again, kept, 1e-9, shared=is_of_0_2(folder / "verdict.json")):
            return Claim("verdict", FALSE, f"verdict.json, {task}: {wrong}")
    for judged in own.tasks.values():
        if lost := [
            line for line in verdict_sentences(judged.comparisons) if line not in {s.text for s in told.sentences}
        ]:
            return Claim("verdict", FALSE, f"verdict.json does not say: {lost[0]}")
    detail = f"{len(own.comparisons)} comparisons follow from the trials' outcomes, the folder's audits and baselines"
    return Claim("verdict", PROVEN, detail)


def numbers_of(verdict: TaskVerdict) -> dict[str, Any]:
    """What is judged again, without words."""
    values = {name: plain(unstructure(getattr(verdict, name))) for name in JUDGED}
    for name in ("comparisons", "baseline_comparisons"):
        values[name] = [{key: own for key, own in each.items() if key != "reasons"} for each in values[name]]
    return values


JUDGED = ("metric", "margin", "seeds", "sets", "scores", "comparisons", "baseline_comparisons")
