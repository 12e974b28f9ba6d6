"""What an audit found, in a network or in data: one finding, its JSON form, its table, the worst of many. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from fairtrial.typed import structure_fields

# A check of a network passes or fails, and its level says how much that weighs. A check of data measures how bad it is:
# its verdict is the level. REPORT: there is nothing to pass, only to know.
PASS, FAIL, REPORT, AMBER, RED = "PASS", "FAIL", "REPORT", "AMBER", "RED"
NOT_ASKED = "not tested"  # the network does not offer what the check needs: neither passed nor failed
UNTESTABLE = "could not be tested"  # the network offers it, and the check cannot use it: not a plain PASS
OUT_OF_TIME = "not tested: out of time"  # neither passed nor failed, and an audit that has one has not passed
EARLIER = {"not asked": NOT_ASKED, "not asked: out of time": OUT_OF_TIME}  # words of stored files
OF_NETWORK, OF_DATA = ("task", "level"), ("where", "shown", "examples")  # fields that only one of the two has


@dataclass(frozen=True)
class Finding:
    id: str
    name: str
    value: float
    limit: str
    verdict: str
    meaning: str  # one sentence
    task: str = ""  # of a network: classify (encoder) or lm (decoder)
    level: str = ""  # of a network: red blocks the verdict on a variant, amber is shown beside it
    where: str = ""  # of data: the test set or split that was checked
    shown: str = ""  # of data: the value as people read it
    examples: tuple[str, ...] = ()

    @property
    def severity(self) -> str:
        """pass, amber or red"""
        if self.verdict == FAIL:
            return self.level
        if self.verdict in (OUT_OF_TIME, UNTESTABLE):
            return "amber"
        return self.verdict.lower() if self.verdict in (AMBER, RED) else "pass"

    def to_plain(self) -> dict[str, object]:
        """For JSON, which has no infinity: a value that is not finite is null."""
        unused = OF_NETWORK if self.where else OF_DATA
        fields = {key: value for key, value in asdict(self).items() if key not in unused}
        fields["value"] = self.value if math.isfinite(self.value) else None
        return fields | ({"examples": list(self.examples)} if self.where else {})

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> Finding:
        plain = {**plain, "verdict": EARLIER.get(str(plain.get("verdict")), plain.get("verdict"))}
        if plain.get("value", 0) is not None:
            return structure_fields(cls, plain)
        return replace(structure_fields(cls, {**plain, "value": 0.0}), value=math.inf)


class Untestable(str):
    """Why a check cannot use what a network offers."""


@dataclass(frozen=True)
class Measured:
    """What a check of a network measured, before it has a name. `passed` None: there is nothing to pass."""

    value: float
    limit: str
    passed: bool | None
    meaning: str
    level: str = ""  # where a fault of this kind weighs less than the check's level says


def at_most(value: float, limit: float, good: str, bad: str) -> Measured:
    """Passes up to the limit; NaN fails."""
    passed = value <= limit
    return Measured(value, f"{limit:.0e}" if limit else "0", passed, good if passed else bad)


def more_than(value: float, limit: float, good: str, bad: str) -> Measured:
    passed = value > limit
    return Measured(value, f"> {limit:.0e}", passed, good if passed else bad)


def worst(findings: Sequence[Finding]) -> str:
    """pass, amber or red"""
    severities = {finding.severity for finding in findings}
    return next((level for level in ("red", "amber") if level in severities), "pass")


@dataclass(frozen=True)
class Passport:
    """What the leak audit of one network found; the content of a passport.json."""

    what: str
    code: str
    passed: bool
    findings: tuple[Finding, ...]
    mark: str | None = None  # in a study: the recipe that was audited

    @classmethod
    def of(cls, what: str, findings: Sequence[Finding]) -> Passport:
        from fairtrial.environment import code_fingerprint  # which reads stored values, these among them

        return cls(what, code_fingerprint(), worst(findings) == "pass", tuple(findings))


def shown_value(finding: Finding) -> str:
    return "-" if finding.verdict in (NOT_ASKED, UNTESTABLE, OUT_OF_TIME) else f"{finding.value:.2g}"


def summary(findings: Sequence[Finding]) -> str:
    """`FAIL: M3 no future: changed words, M14 first loss (amber)`; of data the most severe findings only."""
    late = [each.id for each in findings if each.verdict == OUT_OF_TIME]
    if late:
        rest = [each for each in findings if each.verdict != OUT_OF_TIME]
        begun = summary(rest) if rest else "nothing was tested"
        return f"NOT FINISHED: out of time before {listed(late)}. So far {begun}"
    failed = sorted((each for each in findings if each.severity != "pass"), key=lambda each: each.severity != "red")
    if not failed:
        missing = [each.id for each in findings if each.verdict == NOT_ASKED]
        return f"PASS: {len(findings) - len(missing)} checks" + (f"; not tested: {listed(missing)}" if missing else "")
    verdict = failed[0].verdict
    names = (
        f"{each.id} {each.name}{' (amber)' if (each.verdict, each.level) == (FAIL, 'amber') else ''}"
        for each in failed
        if each.verdict == verdict
    )
    begun = "NOT FULLY TESTED" if verdict == UNTESTABLE else verdict
    return f"{begun}: {', '.join(dict.fromkeys(names))}"


def listed(ids: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(ids))
