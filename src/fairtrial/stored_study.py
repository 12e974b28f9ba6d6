"""The files of a study beside its trials and its verdict, as values: each is read and checked here, under the names and
in the shapes of version 0.2 as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.finding import Finding
from fairtrial.results.values import Rule
from fairtrial.stored import read_document
from fairtrial.typed import Count, Positive

Settings = Mapping[str, object]  # recipe fields by their dotted names


@dataclass(frozen=True)
class ParameterRow:
    """One component of a network with its number of parameters."""

    component: str
    formula: str  # with numbers: '4 × (64 × 64 + 64)'
    count: Count
    bias_free: Count  # weight matrices only


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What a variant costs on this machine, measured by a few steps."""

    set_up_seconds: float
    step_seconds: float
    score_seconds: float  # for selection and for curves
    final_seconds: float = 0.0
    steps: Positive
    steps_per_epoch: Positive
    parameters: Count
    unit_parameters: Count = 0  # what one more unit of the feed-forward layers adds
    flops_per_step: Count
    memory_mb: float = 0.0
    rows: tuple[ParameterRow, ...] = ()
    mark: str = ""  # the recipe and the data that it was measured on

    @property
    def seconds(self) -> float:
        """Of one trial."""
        fixed = self.set_up_seconds + self.final_seconds
        return fixed + self.steps * self.step_seconds + self.score_seconds


@dataclass(frozen=True, kw_only=True)
class PlanSummary:
    """What is about to happen, for whoever waits."""

    name: str
    engine: str
    width: Positive
    seed_count: Positive
    trial_count: Count
    left: Count
    expected_seconds: float
    trial_seconds: Mapping[str, Mapping[str, float]]
    final_seconds: float = 0.0
    memory_mb: float = 0.0
    comparisons: Mapping[str, Count]
    vocabularies_differ: tuple[str, ...] = ()  # tasks
    smallest_detectable: Mapping[str, str]  # of each task; empty where it is not known
    training: tuple[str, ...] = ()
    search_tries: Count = 0
    until_clear: bool = False
    open_ended: bool = False
    endpoint: Mapping[str, str] = field(default_factory=dict)  # task -> the test set that decides
    decision: str = ""
    folder: str


@dataclass(frozen=True, kw_only=True)
class PastLook:
    """A verdict that was given in a study's folder: on what, and by which rule."""

    baseline: str
    seeds: Mapping[str, Mapping[str, Count]]  # task -> variant -> how many
    margins: Mapping[str, float] = field(default_factory=dict)  # by metric
    endpoint: Mapping[str, str] = field(default_factory=dict)
    rule: Rule = Rule.FIXED
    outcomes: str = ""  # digest; empty: not known, of version 0.2

    @property
    def question(self) -> tuple[object, ...]:
        """What was compared, however many seeds there were."""
        variants = {task: sorted(own) for task, own in self.seeds.items()}
        return self.baseline, variants, dict(self.margins), dict(self.endpoint)

    @property
    def compared(self) -> set[tuple[str, str, str]]:
        return {
            (task, name, self.baseline) for task, own in self.seeds.items() for name in own if name != self.baseline
        }

    def same(self, other: PastLook) -> bool:
        """Whether the other one judged the same outcomes by the same question."""
        if not (self.outcomes and other.outcomes):
            return self.seeds == other.seeds
        return self.outcomes == other.outcomes and self.question == other.question


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """plan.json: what a study that is continued need not find out again, and the plan for readers."""

    tasks: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[Count, ...] = ()
    trials: tuple[str, ...] = ()  # folders
    calibration: Mapping[str, Mapping[str, Calibration]] = field(default_factory=dict)  # task -> variant
    looks: tuple[PastLook, ...] = ()  # verdicts that were given
    summary: PlanSummary | None = None


@dataclass(frozen=True)
class VariantSearch:
    """What a search found for one variant, on validation."""

    tries: Count
    best: Settings
    validation: float
    scores: tuple[float | None, ...]  # of every try; None: it failed


@dataclass(frozen=True)
class TaskSearch:
    tries: Count
    trials: Count
    seconds: float
    variants: Mapping[str, VariantSearch]


@dataclass(frozen=True)
class StoredSearch:
    """search.json"""

    seeds: tuple[Count, ...]
    tries: tuple[Settings, ...]
    tasks: Mapping[str, TaskSearch]


@dataclass(frozen=True, kw_only=True)
class CopiedItems:
    """Test items of one set that also occur in the training set."""

    items: Count
    identical: Count
    exact: Count
    near: Count
    clean: Count
    share: float
    status: tuple[int, ...]  # of each item: clean, exact or near
    contained: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DataAudit:
    """What the audit of one task's data found; contamination.json holds one for each task."""

    task: str
    source: str
    recipe: str
    seed: Count
    level: str
    documents: Mapping[str, Count]
    sets: Mapping[str, CopiedItems]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class StoredBaselines:
    """What is said beside the arrays of the baselines of one seed."""

    mark: str
    seed: Count
    baselines: tuple[str, ...]
    sha256: str


@dataclass(frozen=True, kw_only=True)
class FailedTrial:
    """A line of failures.jsonl (of a trial) or failed-tries.jsonl (of a search, by its folder)."""

    error: str
    task: str = ""
    variant: str = ""
    seed: Count = 0
    folder: str = ""


DataAudits = dict[str, DataAudit]  # by task
ParameterRows = dict[str, dict[str, tuple[ParameterRow, ...]]]  # task -> variant


def read_parameters(folder: Path, hint: str = "") -> ParameterRows:
    """parameters.json, which was called ledger.json; empty where there is neither."""
    paths = (folder / "parameters.json", folder / "ledger.json")
    path = next((path for path in paths if path.exists()), None)
    return {} if path is None else read_document(path, ParameterRows, hint)
