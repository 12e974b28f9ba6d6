"""Small subjects for the tests of the passport."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairtrial.audit.run import CHECKS
from fairtrial.audit.subject import Plan, Subject, subject_of
from fairtrial.finding import FAIL, Finding
from fairtrial.model.part import parts
from fairtrial.recipe import PartChoice, Shape

SMALL = Shape(layers=2, heads=2, width=16, length=12, hidden=24, classifier_hidden=10)
BUILT_IN = [name for name in parts.list() if parts.find(name).__module__.startswith("fairtrial.parts")]
HONEST = [name for name in BUILT_IN if name != "reweight"]
UNTRAINED = [check.id for check in CHECKS if not check.id.startswith("R")]  # all that train nothing


def small_plan(task: str, name: str, shape: Shape = SMALL, **options: Any) -> Plan:
    return Plan(task, shape, (PartChoice(name=name, options=options),))


def small_subject(task: str, name: str, **options: Any) -> Subject:
    return replace(subject_of(small_plan(task, name, **options)), calls=20)


def failed(findings: list[Finding]) -> dict[str, str]:
    """What each failed check says."""
    return {finding.id: finding.meaning for finding in findings if finding.verdict == FAIL}
