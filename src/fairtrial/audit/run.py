"""The audit of a network: all checks in order. A part that raises has failed, and its message is the finding."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from fairtrial.audit import basics, conditions, determinism, probe
from fairtrial.audit.determinism import RepeatedRuns
from fairtrial.audit.subject import Plan, Subject, Text, plan_of_recipe, plans_of_part, subject_of, subject_of_record
from fairtrial.environment import use_threads
from fairtrial.errors import BadInput, FairtrialError, HelperDied, OutOfTime, message_of
from fairtrial.finding import (
    FAIL,
    NOT_ASKED,
    OUT_OF_TIME,
    PASS,
    REPORT,
    UNTESTABLE,
    Finding,
    Measured,
    Passport,
    Untestable,
)
from fairtrial.model.layers import own_rng
from fairtrial.model.part import parts
from fairtrial.plugins import load_code, require_plugins
from fairtrial.prepare import prepare_like
from fairtrial.progress import TimeLimit
from fairtrial.recipe import PartChoice, Recipe, load_recipe, read_part
from fairtrial.record import Record
from fairtrial.stored import write_document


@dataclass(frozen=True)
class Check:
    id: str
    name: str
    level: str
    measure: Callable[[Subject], Measured | str | None]  # text: why it cannot be asked; None: it does not apply
    decoder_only: bool = False
    cost: float = 1.0  # of computing, beside the others: for the time left


CHECKS = (
    Check("M1", "attention weights do not sum to one", "red", basics.rows_sum),
    Check("M2", "attends to what is hidden", "red", basics.nothing_hidden),
    Check("M3", "sees the future", "red", probe.sees_future, decoder_only=True, cost=15),
    Check("M4", "sees the future: gradient", "red", basics.future_gradient, decoder_only=True),
    Check("M7", "depends on padding or its batch", "red", probe.depends_on_batch, cost=20),
    Check("M8", "word order is not seen as claimed", "red", basics.sees_order),
    Check("M9", "positions are not as claimed", "red", basics.keeps_distance),
    Check("M9r", "window is not as claimed", "red", basics.keeps_window),
    Check("M10", "attention has collapsed", "amber", basics.collapsed),
    Check("M11", "a block changes its input", "amber", basics.residual_identity),
    Check("M14", "first loss is not uniform", "amber", basics.first_loss),
    Check("M14g", "weights without a gradient", "amber", basics.gradients_arrive),
    Check("O1", "own optimizer", "amber", basics.brings("optimizer")),
    Check("O2", "own loss", "amber", basics.brings("loss")),
    Check("O3", "tables filled before training", "amber", basics.own_tables),
    Check("O4", "reads more than its input", "amber", basics.reads_more),
    Check("E1", "fast path differs", "red", determinism.eager_is_fast),
    Check("C1", "cache changes predictions", "red", determinism.cached_is_full, decoder_only=True),
    Check("C1p", "cache in pieces changes predictions", "amber", determinism.cached_in_pieces, decoder_only=True),
    Check("C2", "cache with padding changes predictions", "amber", conditions.cache_beside_padding, decoder_only=True),
    Check("K1", "mask of ones changes predictions", "red", conditions.mask_of_ones),
    Check("K1p", "position ids change predictions", "red", conditions.position_ids),
    Check("K2", "padding on the left changes predictions", "red", conditions.left_padding),
    Check("K3", "ignores a mask", "amber", conditions.mask_among_kwargs),
    Check("T1", "leaks in training mode", "red", conditions.in_training, cost=20),
    Check("F1", "leaks in float32", "red", conditions.in_float32),
    Check("F2", "leaks under autocast", "red", conditions.in_bf16),
    Check("G1", "leaks on the device", "red", conditions.on_device),
    Check("L1", "leaks in long texts", "red", conditions.over_long_texts),
    Check("L2", "leaks when built larger", "red", conditions.built_larger, cost=5),
    Check("S1", "evaluation is not repeatable", "red", conditions.after_many_calls, cost=50),
    Check("S2", "keeps state between calls", "amber", basics.keeps_state),
    Check("V3", "score or loss is not that of the answers", "red", probe.own_targets),
    Check("V4", "knows the answers before training", "red", probe.knows_before_training),
    Check("V6", "predicts random words", "red", probe.predicts_random_words, decoder_only=True),
    Check("V5", "scores differ when scored alone", "red", probe.scores_alone, cost=10),
    Check("R1", "training is not repeatable", "red", determinism.repeats_in_process, cost=15),
    Check("R2", "resuming changes the bits", "red", determinism.resumes, cost=4),
    Check("R3", "reloading changes the answers", "red", determinism.reloads, cost=2),
    Check("F3", "answers depend on torch's settings", "red", conditions.under_settings),
)


NO_LIMIT = "-"  # of a check that could not be measured; one that fails without a limit has raised
UNLIMITED = TimeLimit()
OnProgress = Callable[[str, float], None]  # what is being checked, which share of the audit is done


def ignore(check: str, share: float) -> None:
    """Nobody waits for it."""


def audit(
    subject: Subject,
    runs: RepeatedRuns | None = None,
    *,
    only: Sequence[str] = (),
    limit: TimeLimit = UNLIMITED,
    on_progress: OnProgress = ignore,
) -> list[Finding]:
    """Every check that applies, or only those of these ids. Without repeated runs R1 trains twice in this process.
    What the time limit leaves out is not asked."""
    chosen = [check for check in checks_of(subject.plan.task) if not only or check.id in only]
    findings: list[Finding] = []
    with use_threads(1), own_rng():
        total, done = sum(check.cost for check in chosen), 0.0
        for check in chosen:
            on_progress(f"{check.id} {check.name}", done / total)
            done += check.cost
            if (finding := run_check(check, subject, runs, limit)) is not None:
                findings.append(without_repeats(finding, findings))
    return findings


def checks_of(task: str) -> list[Check]:
    return [check for check in CHECKS if task == "lm" or not check.decoder_only]


def audit_plans(
    plans: Sequence[Plan],
    *,
    texts: Sequence[Text | None] = (),
    on_progress: OnProgress = ignore,
    **how: Any,
) -> list[list[Finding]]:
    """Build and audit each plan, on its own text where it is known. What a user got wrong is raised; what a part does
    wrong is a finding, also while it is built."""
    for choice in chain.from_iterable(plan.choices for plan in plans):
        parts.find(choice.name)  # an unknown name is refused before any work
    findings = []
    with RepeatedRuns(plans) as runs:
        for number, (plan, text) in enumerate(zip(plans, texts or [None] * len(plans), strict=True)):

            def partly(check: str, share: float, number: int = number) -> None:
                on_progress(check, (number + share) / len(plans))

            findings.append(audit_plan(plan, runs, text=text, on_progress=partly, **how))
    return findings


def audit_plan(
    plan: Plan,
    runs: RepeatedRuns | None = None,
    *,
    limit: TimeLimit = UNLIMITED,
    on_progress: OnProgress = ignore,
    **how: Any,
) -> list[Finding]:
    """`how`: fields of the subject. A module that is there as an object no other process can build: without `runs`, R1
    trains copies of it in this one."""
    try:
        with limit.within():
            subject = replace(subject_of(plan), **how)
    except FairtrialError:
        raise
    except OutOfTime:
        meaning = f"Out of time: the network was not built in {limit.seconds:.0f} s."
        return [out_of_time(check, plan.task, meaning) for check in checks_of(plan.task)]
    except (Exception, GeneratorExit) as error:
        return [raised("B1", "can be built", plan.task, error)]
    return audit(subject, runs, limit=limit, on_progress=on_progress)


def audit_target(target: str | PartChoice | Recipe, **how: Any) -> list[Finding]:
    """Audit a part, a recipe, a recipe file or the folder of a record, which keeps what is found."""
    if isinstance(target, Recipe):
        load_code(target)
        return audit_plans([plan_of_recipe(target)], **how)[0]
    if isinstance(target, PartChoice):
        return list(chain.from_iterable(audit_plans(plans_of_part(target), **how)))
    if os.path.isdir(target):
        record = Record.open(Path(target))
        require_plugins(record)
        return list(audit_record(record, **how).findings)
    if target.endswith(".toml") or os.path.isfile(target):
        return audit_target(load_recipe(Path(target)), **how)
    return audit_target(read_part(target), **how)


def audit_record(
    record: Record, *, bf16: bool = False, patience: float = 1.0, only: Sequence[str] = (), **how: Any
) -> Passport:
    """A trained network on its own text, which keeps what is found: the real vocabulary, rows as they are trained on,
    the batches of training and scoring, and the scores that it reports."""
    with record.hold():  # refused as busy where it is being written, before any work is done
        record.result  # noqa: B018  (refuses a record that is not finished)
        subject = replace(subject_of_record(record), bf16=bf16, patience=patience)
        try:
            prepared = prepare_like(record)
            subject = replace(subject, text=Text.of(prepared), trained=(record, prepared))
        except BadInput:  # its data are gone or have changed: what needs them is not tested
            subject = replace(subject, trained=(record, None))
        with nullcontext() if only else RepeatedRuns([subject.plan]) as runs:
            findings = audit(subject, runs, only=only, **how)
        passport = replace(Passport.of(record.folder.name, findings), mark=record.result.model_sha256)
        write_document(record.folder / "passport.json", passport)
        return passport


def run_check(check: Check, subject: Subject, runs: RepeatedRuns | None, limit: TimeLimit) -> Finding | None:
    task, meaning = subject.plan.task, f"Out of time: {limit.seconds:.0f} s ended before it started."
    try:
        with limit.within():
            meaning = f"Out of time: it did not end within {limit.seconds:.0f} s."
            found = runs.judge(subject.plan) if runs and check.id == "R1" else check.measure(subject)
    except OutOfTime:
        return out_of_time(check, task, meaning)
    except HelperDied:
        raise
    except (Exception, GeneratorExit) as error:  # whatever a part raises
        return raised(check.id, check.name, task, error)
    if found is None:
        return None
    if isinstance(found, str):
        verdict = UNTESTABLE if isinstance(found, Untestable) else NOT_ASKED
        return Finding(check.id, check.name, 0.0, NO_LIMIT, verdict, found, task=task, level=check.level)
    verdict = REPORT if found.passed is None else PASS if found.passed else FAIL
    level = "amber" if verdict == REPORT else found.level or check.level
    return Finding(check.id, check.name, found.value, found.limit, verdict, found.meaning, task=task, level=level)


def out_of_time(check: Check, task: str, meaning: str) -> Finding:
    return Finding(check.id, check.name, 0.0, NO_LIMIT, OUT_OF_TIME, meaning, task=task, level=check.level)


def without_repeats(finding: Finding, earlier: Sequence[Finding]) -> Finding:
    """An error that many checks meet, each with other shapes, is reported once."""

    def plain(text: str) -> str:
        return re.sub(r"\d+", "", text)

    if (finding.verdict, finding.limit) != (FAIL, NO_LIMIT):
        return finding
    alike = next((each for each in earlier if plain(each.meaning) == plain(finding.meaning)), None)
    return finding if alike is None else replace(finding, meaning=f"It fails for the same reason as {alike.id}.")


def raised(id: str, name: str, task: str, error: BaseException) -> Finding:
    message = message_of(error)[:400]
    known = isinstance(error, BadInput)  # it tells what was called
    meaning = f"It fails: {message}" if known else f"It raises {type(error).__name__}: {message}"
    return Finding(id, name, math.inf, NO_LIMIT, FAIL, meaning, task=task, level="red")
