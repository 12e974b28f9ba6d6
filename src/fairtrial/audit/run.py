"""All checks in order. A part that raises has failed, and its message is the finding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from fairtrial.audit import determinism, order, sanity, visibility
from fairtrial.audit.determinism import Twins
from fairtrial.audit.finding import FAIL, PASS, REPORT, Finding, Measured
from fairtrial.audit.subject import Plan, Subject, subject_of, subject_of_record
from fairtrial.errors import FairtrialError
from fairtrial.model.part import parts
from fairtrial.record import Record


@dataclass(frozen=True)
class Check:
    id: str
    name: str
    level: str
    measure: Callable[[Subject], Measured | None]  # None: it does not apply


CHECKS = (
    Check("M1", "attention rows sum to one", "red", visibility.rows_sum),
    Check("M2", "no attention on what is hidden", "red", visibility.nothing_hidden),
    Check("M3", "no future: changed words", "red", visibility.future_changed),
    Check("M4", "no future: gradient", "red", visibility.future_gradient),
    Check("M5", "prefix honesty", "red", visibility.bare_prefixes),
    Check("M6", "padding invariance", "red", visibility.padding),
    Check("M7", "batch-mate invariance", "red", visibility.batch_mates),
    Check("M7s", "batch-size invariance of the score", "red", visibility.batch_size),
    Check("M8", "order sensitivity", "red", order.sees_order),
    Check("M9", "relative shift invariance", "red", order.keeps_distance),
    Check("M9r", "reach", "red", order.keeps_reach),
    Check("M10", "attention has not collapsed", "amber", sanity.collapsed),
    Check("M11", "residual identity", "amber", sanity.residual_identity),
    Check("M12", "evaluation repeats itself", "red", sanity.repeats_itself),
    Check("M12d", "dropout", "amber", sanity.dropouts),
    Check("M14", "first loss", "amber", sanity.first_loss),
    Check("M14g", "gradient reaches every weight", "amber", sanity.gradients_arrive),
    Check("E1", "eager = fast path", "red", determinism.eager_is_fast),
    Check("C1", "cached = full decoding", "red", determinism.cached_is_full),
    Check("R1", "determinism", "red", determinism.same_in_process),
    Check("R2", "resume equality", "red", determinism.resumes),
    Check("R3", "reload equality", "red", determinism.reloads),
)


def audit(subject: Subject, twins: Twins | None = None, *, only: Sequence[str] = ()) -> list[Finding]:
    """Every check that applies; `only`: those of these ids. Without twins R1 trains twice in this process."""
    findings = []
    with alone():
        for check in CHECKS:
            if only and check.id not in only:
                continue
            measure = check.measure
            if check.id == "R1" and twins is not None:
                measure = lambda subject: twins.judge(subject.plan)  # noqa: E731
            finding = run_check(check, measure, subject)
            if finding is not None:
                findings.append(finding)
    return findings


def audit_plans(plans: Sequence[Plan]) -> list[Finding]:
    """Build, then audit. What a user got wrong is raised; what a part does wrong while it is built is a finding."""
    return [finding for findings in audit_each(plans) for finding in findings]


def audit_each(plans: Sequence[Plan]) -> list[list[Finding]]:
    """The findings of each plan. They share their twins."""
    found: list[list[Finding]] = []
    for choice in (choice for plan in plans for choice in plan.choices):
        parts.find(choice.name)  # a name that nobody knows is refused before any work
    with Twins(plans) as twins:
        for plan in plans:
            try:
                subject = subject_of(plan)
            except FairtrialError:
                raise
            except Exception as error:
                found.append([Finding("B1", "can be built", plan.task, "red", math.inf, "-", FAIL, said_by(error))])
            else:
                found.append(audit(subject, twins))
    return found


def audit_record(record: Record) -> list[Finding]:
    """The network of a record, with the weights that it was trained to."""
    subject = subject_of_record(record)
    with Twins([subject.plan]) as twins:
        return audit(subject, twins)


def run_check(check: Check, measure: Callable[[Subject], Measured | None], subject: Subject) -> Finding | None:
    task = subject.plan.task
    try:
        found = measure(subject)
    except Exception as error:  # whatever a stranger's part raises
        return Finding(check.id, check.name, task, "red", math.inf, "-", FAIL, said_by(error))
    if found is None:
        return None
    verdict = REPORT if found.passed is None else PASS if found.passed else FAIL
    level = "amber" if verdict == REPORT else check.level
    return Finding(check.id, check.name, task, level, found.value, found.limit, verdict, found.meaning)


def said_by(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["no message"]
    return f"It raises {type(error).__name__}: {lines[0][:200]}"


@contextmanager
def alone() -> Iterator[None]:
    """One thread, as trials have by default, and rng that are put back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
