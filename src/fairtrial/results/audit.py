"""What an audit found, in a network or in data, and what became of the claims of records that were checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from fairtrial.description import Cell, Description, Result, Table, row
from fairtrial.finding import PASS, RED, Finding, Passport, shown_value, summary, worst
from fairtrial.formatting import copies_text
from fairtrial.results.sentences import counted
from fairtrial.stored import DataAudit
from fairtrial.typed import unstructure

REPAIRABLE = ("D1", "D1n", "D1c")
SEVERITY = {"red": "not_comparable", "amber": "remark"}  # colours of a page


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """What an audit found, in a network or in data.

    >>> found = ft.audit_data(reviews)
    >>> found.level, found.findings[0].name
    ('amber', 'duplicates of train')
    """

    what: str
    findings: tuple[Finding, ...]
    data: Mapping[str, DataAudit] = field(default_factory=dict, repr=False)  # of data: by task

    @property
    def level(self) -> str:
        """pass, amber or red"""
        return worst(self.findings)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return self.level == "pass"

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that did."""
        return tuple(finding for finding in self.findings if finding.severity != "pass")

    def describe(self) -> Description:
        """What the checks found, in an encoder and in a decoder, or in data."""
        if self.data:
            sections = [describe_data(each) for each in self.data.values()]
            return Description(sections=sections)
        titles = {"classify": "in an encoder", "lm": "in a decoder", "scorer": "", "": ""}
        tables = (findings_table(title, [f for f in self.findings if f.task == task]) for task, title in titles.items())
        return Description((f"{self.what}: {summary(self.findings)}",), [table for table in tables if table.rows])

    def rows(self) -> list[dict[str, object]]:
        return [finding.to_plain() for finding in self.findings]

    def to_json(self) -> object:
        """Of data by task; else what a passport.json holds."""
        return unstructure(self.data or Passport.of(self.what, self.findings))


def describe_data(audit: DataAudit) -> Description:
    documents = ", ".join(f"{count:,} {name}" for name, count in audit.documents.items() if count)
    sentences = [
        summary(audit.findings),
        f"{audit.source} (recipe {audit.recipe or 'of your own'}: {documents})",
        *(f"{name}: {copies_text(vars(copied))}" for name, copied in audit.sets.items()),
        *(f"note: {note}" for note in audit.notes),
    ]
    if any(finding.verdict == RED and finding.id in REPAIRABLE for finding in audit.findings):
        sentences.append(f"repair it with: fairtrial data clean --data {audit.source} --out FOLDER")
    return Description(sentences, [findings_table("", audit.findings)], audit.task)


def findings_table(title: str, findings: Sequence[Finding]) -> Table:
    where = "where" if findings and findings[0].where else "level"
    rows = tuple(
        row(
            each.id,
            each.name,
            each.where or each.level,
            each.shown or shown_value(each),
            each.limit,
            Cell(each.verdict, kind=SEVERITY.get(each.severity, "")),
            " ".join([each.meaning, *(f"- {example}" for example in each.examples)]) * (each.verdict != PASS),
        )
        for each in findings
    )
    return Table(title, ("id", "check", where, "measured", "limit", "verdict", "meaning"), rows, text_columns=7)


class ClaimState(StrEnum):
    PROVEN = "proven"  # it follows, to the last bit
    CONSISTENT = "consistent"  # with all else that is stored
    FALSE = "false"
    OPEN = "not proven"  # it could not be decided
    SKIPPED = "not repeated"  # it was not asked for


@dataclass(frozen=True)
class Claim:
    """Something that a record says, and whether that holds."""

    name: str  # files, data, training, weights, scores; of a study files, copies, verdict, trials
    state: ClaimState
    detail: str


@dataclass(frozen=True)
class Checked:
    """A record or a study whose claims were checked."""

    folder: Path
    claims: tuple[Claim, ...]
    inside: tuple[Checked, ...] = ()  # trials of a study
    weights: str = ""  # sha256

    @property
    def state(self) -> ClaimState:
        """proven: to the last bit, all of it. consistent: nothing is false or in doubt, and its scores or its verdict
        follow from what is stored."""
        states = {claim.name: claim.state for claim in self.claims}
        if ClaimState.FALSE in states.values():
            return ClaimState.FALSE
        needed = ("verdict", "trials") if "verdict" in states else ("data", "training", "weights", "scores")
        if all(states.get(name) == ClaimState.PROVEN for name in needed):
            return ClaimState.PROVEN
        known = ClaimState.OPEN not in states.values() and ("scores" in states or "verdict" in states)
        return ClaimState.CONSISTENT if known else ClaimState.OPEN

    @property
    def reason(self) -> str:
        """The claim that decides the state, or what was proven."""
        decisive = [claim for claim in self.claims if claim.state == self.state]
        if self.state in (ClaimState.FALSE, ClaimState.OPEN):
            return f"{decisive[0].name}: {decisive[0].detail}" if decisive else "it could not be checked"
        told = ("training", "scores", "verdict", "trials")
        weak = {("data", ClaimState.CONSISTENT)}  # otherwise it goes without saying
        return "; ".join(each.detail for each in self.claims if each.name in told or (each.name, each.state) in weak)

    def to_json(self) -> dict[str, object]:
        claims = [{"claim": each.name, "state": each.state, "detail": each.detail} for each in self.claims]
        inside = {"trials": [each.to_json() for each in self.inside]} if self.inside else {}
        return {"record": str(self.folder), "state": self.state, "claims": claims, **inside}


UNPROVEN = ("files", "consistent")  # as checksums always are
CLAIM_COLOURS = {"false": "worse", "proven": "better", "not proven": "undecided", "consistent": "equivalent"}


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """What became of the claims of records: proven, consistent, false or not proven."""

    records: tuple[Checked, ...]

    @property
    def false(self) -> bool:
        """Whether any record claims what is not so."""
        return any(each.state == "false" for each in self.records)

    def describe(self) -> Description:
        if len(self.records) == 1:
            (one,) = self.records
            tables = [claim_table(one), *(claim_table(trial, str(trial.folder)) for trial in one.inside)]
            return Description((f"{one.folder}: {one.state}. {one.reason[:1].upper()}{one.reason[1:]}.",), tables)
        states = [each.state for each in self.records]
        counts = [f"{states.count(state)} {state}" for state in ClaimState if state in states]
        copies = [f"{' and '.join(names)} are the same record: their weights are identical." for names in self.copies]
        return Description((f"{counted(len(states), 'record')}: {', '.join(counts)}.", *copies), [self._table()])

    @property
    def copies(self) -> list[tuple[str, ...]]:
        """Records under different names with the same weights."""
        alike: dict[str, list[str]] = {}
        for one in self.records:
            if one.weights:
                alike.setdefault(one.weights, []).append(str(one.folder))
        return [tuple(names) for names in alike.values() if len(set(names)) > 1]

    def _table(self) -> Table:
        names = dict.fromkeys(claim.name for one in self.records for claim in one.claims)
        rows = []
        for one in self.records:
            claims = {claim.name: claim for claim in one.claims}
            cells = [state_cell(claims[name].state) if name in claims else Cell("–") for name in names]
            doubtful = [each for each in one.claims if each.state != "proven" and (each.name, each.state) != UNPROVEN]
            doubtful.sort(key=lambda each: each.state != "false")
            why = f"{doubtful[0].name}: {doubtful[0].detail}" if doubtful else ""
            rows.append(row(str(one.folder), state_cell(one.state), *cells, why))
        return Table("", ("record", "verdict", *names, "why"), tuple(rows), text_columns=len(names) + 3)

    def rows(self) -> list[dict[str, object]]:
        return [
            {"record": str(one.folder), "verdict": one.state, **{claim.name: claim.state for claim in one.claims}}
            for one in self.records
        ]


def claim_table(one: Checked, title: str = "") -> Table:
    rows = tuple(row(each.name, state_cell(each.state), each.detail) for each in one.claims)
    return Table(title, ("claim", "state", "what was found"), rows, text_columns=3)


def state_cell(state: str) -> Cell:
    return Cell(state, kind=CLAIM_COLOURS.get(state, ""))
