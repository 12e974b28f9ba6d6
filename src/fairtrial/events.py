"""What happens in a trial or a study, as typed values. Of a trial the loop yields some, `trial.py` adds others, and a
listener gets all; those that the record's log keeps are `Logged`: the same for the same recipe and seed. Of a study,
`JobEvent`s are about one of its jobs and come from the process that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fairtrial.recipe import PartChoice, Shape
from fairtrial.stored import BaselineScores, Metrics, PlanSummary, TrialResult
from fairtrial.typed import Count, WrongValue, structure, unstructure

if TYPE_CHECKING:
    from fairtrial.results.values import Verdict


@dataclass(frozen=True)
class Event:
    """Something that happened after this many steps."""

    kind: ClassVar[str] = ""
    step: Count


@dataclass(frozen=True)
class Stepped(Event):
    """One optimizer step was taken."""

    kind: ClassVar[str] = "step"
    loss: float
    learning_rate: float


@dataclass(frozen=True)
class Scored(Event):
    """A split was scored."""

    kind: ClassVar[str] = "score"
    split: str
    metrics: Metrics


@dataclass(frozen=True)
class Improved(Event):
    """The best score of this split so far."""

    kind: ClassVar[str] = "best"
    split: str


@dataclass(frozen=True)
class StoppedEarly(Event):
    kind: ClassVar[str] = "stop"
    why: str


Logged = Stepped | Scored | Improved | StoppedEarly


@dataclass(frozen=True)
class Ready(Event):
    """All that belongs to the step is done: the moment to save or stop."""

    kind: ClassVar[str] = "ready"


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """Training begins, or goes on."""

    kind: ClassVar[str] = "start"
    folder: str
    task: str
    seed: int
    parameters: int
    shape: Shape
    parts: tuple[PartChoice, ...]
    steps: int
    steps_per_epoch: int
    select_every: int
    choose_on: str | None
    notes: tuple[str, ...]
    documents: dict[str, int]
    vocabulary: int
    tokens: dict[str, int] = field(default_factory=dict)
    cut_to_length: dict[str, int] = field(default_factory=dict)
    memory_mb: int
    free_mb: int | None = None


@dataclass(frozen=True)
class Estimated(Event):
    """How long the scores at the end will take."""

    kind: ClassVar[str] = "estimate"
    final_seconds: float
    sets: tuple[str, ...]


@dataclass(frozen=True)
class FinalScoring(Event):
    """A split is being scored at the end; `share` of it is done."""

    kind: ClassVar[str] = "testing"
    split: str
    share: float


@dataclass(frozen=True)
class Notice(Event):
    """Something that a user should know."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True)
class ScoringBaseline(Event):
    kind: ClassVar[str] = "baseline"
    name: str


@dataclass(frozen=True)
class Ended(Event):
    """The record is complete."""

    kind: ClassVar[str] = "end"
    result: TrialResult
    baseline: BaselineScores | None = None


def event_json(event: Event) -> dict[str, object]:
    """Plain values: the fields of the event, those of its metrics or its result among them."""
    plain = unstructure(event)
    assert isinstance(plain, dict)
    flat: dict[str, object] = {"event": event.kind}
    for name, value in plain.items():
        if name in ("metrics", "result"):
            flat.update(value)
        else:
            flat[name] = value
    return flat


def read_event(row: dict[str, object]) -> Logged:
    """A line of the record's log."""
    plain = dict(row)
    kind = plain.pop("event", None)
    if kind == Stepped.kind:
        return structure(Stepped, plain)
    if kind == Improved.kind:
        return structure(Improved, plain)
    if kind == StoppedEarly.kind:
        return structure(StoppedEarly, plain)
    if kind == Scored.kind:
        own: dict[str, object] = {name: plain.pop(name) for name in ("step", "split") if name in plain}
        return structure(Scored, own | {"metrics": plain})
    raise WrongValue("event", f"is not known: {kind!r}")


@dataclass(frozen=True)
class StudyEvent:
    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class StudyPlanned(StudyEvent):
    """What is about to happen."""

    kind: ClassVar[str] = "plan"
    summary: PlanSummary


@dataclass(frozen=True)
class StudyNotice(StudyEvent):
    """Something that a user should know."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True)
class JobsListed(StudyEvent):
    """Commands of the trials that are missing, to be run anywhere."""

    kind: ClassVar[str] = "commands"
    commands: tuple[str, ...]


@dataclass(frozen=True)
class TimingStarted(StudyEvent):
    """A few steps of these variants are timed."""

    kind: ClassVar[str] = "timing"
    jobs: int


@dataclass(frozen=True)
class SearchStarted(StudyEvent):
    kind: ClassVar[str] = "search"
    tries: int  # of each variant
    trials: int
    left: int


@dataclass(frozen=True)
class TrialsStarted(StudyEvent):
    kind: ClassVar[str] = "jobs"
    trials: int
    left: int
    others: int  # audits and baselines


@dataclass(frozen=True)
class StudyJudged(StudyEvent):
    kind: ClassVar[str] = "verdict"
    verdict: Verdict
    page: str
    folder: str


@dataclass(frozen=True)
class JobEvent(StudyEvent):
    """About one job: who it is for (task, variant, seed) and what kind of work it is."""

    key: tuple[str, ...]
    work: str


@dataclass(frozen=True)
class JobStarted(JobEvent):
    kind: ClassVar[str] = "begin"


@dataclass(frozen=True)
class JobStepped(JobEvent):
    kind: ClassVar[str] = "step"
    step: int
    steps: int


@dataclass(frozen=True)
class JobScoring(JobEvent):
    """A trial is scoring a split at its end; `share` of it is done."""

    kind: ClassVar[str] = "testing"
    split: str
    share: float


@dataclass(frozen=True)
class JobNotice(JobEvent):
    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True)
class JobDone(JobEvent):
    kind: ClassVar[str] = "done"
    seconds: float
    scores: dict[str, float] | None = None  # of a trial: accuracy or perplexity by test set


@dataclass(frozen=True)
class JobFailed(JobEvent):
    kind: ClassVar[str] = "failed"
    error: str


def study_event_json(event: StudyEvent) -> dict[str, object]:
    """Plain values, one object on a line."""
    if isinstance(event, StudyPlanned):
        plain = unstructure(event.summary)
    elif isinstance(event, StudyJudged):
        told, places = event.verdict, {"page": event.page, "folder": event.folder}
        plain = {"verdict": told.to_json(), "text": list(told.text), **places}
    else:
        plain = unstructure(event)
    assert isinstance(plain, dict)
    return {"event": event.kind, **plain}
