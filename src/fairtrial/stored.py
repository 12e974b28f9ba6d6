"""Stored files as values, and the one way in and out of each, so that no caller meets a value it did not expect.

A document is a JSON object that ends with a checksum of all else in it. Its dataclass is its schema: what does not fit
is refused with the path of the first wrong value. Files of version 0.2 are brought to today's shape in `legacy.py`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from fairtrial.disk import load_json, parse_json, write_text
from fairtrial.errors import BadInput
from fairtrial.finding import Finding
from fairtrial.results.values import Rule, TaskSearch
from fairtrial.typed import Count, Positive, WrongValue, structure, unstructure

if TYPE_CHECKING:
    import numpy as np

FORMAT, OLDEST = 3, 2  # 2: version 0.2
CHECKSUM = "checksum"
HEADLINES = {"accuracy": 1, "window_perplexity": -1, "masked_perplexity": -1}  # 1: higher is better, -1: lower
Number = float | int | tuple[float, float] | tuple[tuple[int, ...], ...]
Ending = Literal["", "still improving", "overfitted", "settled"]
Settings = Mapping[str, object]  # recipe fields by their dotted names
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Scores of one split; None: this task, or this way to score, has no such figure."""

    items: Count | None = None
    documents: Count | None = None
    tokens: Count | None = None
    accuracy: float | None = None
    perplexity: float | None = None
    masked_perplexity: float | None = None
    masked_nll: float | None = None
    interval: tuple[float, float] | None = None
    macro_f1: float | None = None
    nll: float | None = None
    confusion: tuple[tuple[Count, ...], ...] | None = None
    bits_per_byte: float | None = None
    unknown_share: float | None = None
    unknown_nll: float | None = None
    perplexity_without_unknown: float | None = None
    window_perplexity: float | None = None
    window_nll: float | None = None
    full_context: float | None = None  # the share of the context that a token sees at least, where that is less

    @property
    def loss(self) -> float:
        """Nats of a classifier, a language model in disjoint windows, or a masked one."""
        losses = (self.nll, self.window_nll, self.masked_nll)
        return next(loss for loss in losses if loss is not None)

    def known(self) -> dict[str, Number]:
        """The figures that there are, by name: for tables and logs that show whatever there is."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in named if value is not None}

    @property
    def headline(self) -> str:
        """The name of the figure that a score is known by."""
        return next(name for name in HEADLINES if getattr(self, name) is not None)

    def figure(self, name: str) -> float:
        """One number by its name, for a table or a chart that shows what its caller chose."""
        return float(getattr(self, name))


BySubset = dict[str, dict[str, Metrics]]  # test set -> all | clean | contaminated


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What may change the bits of a trial beside its recipe, seed and data."""

    python: str
    fairtrial: str
    torch: str
    numpy: str
    tokenizers: str
    safetensors: str
    threads: Positive
    machine: str
    system: str
    cores: Count | None = None
    device: str = "cpu"
    precision: str = "float32"
    cpu: str = ""  # the instructions that torch uses; empty: not known, of an earlier version


@dataclass(frozen=True)
class EncoderInfo:
    """The pretrained weights that a trial began with."""

    sha256: str
    fresh: tuple[str, ...]  # names of parameters that the encoder does not bring


@dataclass(frozen=True, kw_only=True)
class DataCounts:
    """What became of the documents of each split."""

    documents: dict[str, Count]
    vocabulary: Count
    tokens: dict[str, Count] = field(default_factory=dict)
    cut_to_length: dict[str, Count] = field(default_factory=dict)  # documents that are longer than the network reads


@dataclass(frozen=True, kw_only=True)
class TrialInfo:
    """trial.json: all that decides a trial beside its recipe, and what became of its data."""

    seed: Count
    recipe: str  # fingerprint of the resolved recipe
    asked: str  # of the recipe as it was given
    data: dict[str, str]  # sha256 of every file
    code: str
    environment: Environment
    labels: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    test_sets: tuple[str, ...]
    tokenizer: dict[str, object]
    cite: str = ""
    notes: tuple[str, ...] = ()
    plugins: dict[str, str] = field(default_factory=dict)  # files and packages that brought parts, with their sha256
    counts: DataCounts
    encoder: EncoderInfo | None = None
    sha256: dict[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()  # what differed when the trial was resumed all the same


@dataclass(frozen=True, kw_only=True)
class PickedOnTest:
    """The best score of a test set during training: what a report would quote that picks its moment there."""

    step: Count
    accuracy: float | None = None
    window_perplexity: float | None = None
    masked_perplexity: float | None = None

    @property
    def score(self) -> float:
        return next(
            each for each in (self.accuracy, self.window_perplexity, self.masked_perplexity) if each is not None
        )


@dataclass(frozen=True)
class ChangedLoss:
    """Nats more for each answer when something is changed, and its standard error over texts."""

    mean: float
    error: float

    @property
    def none(self) -> bool:
        """Whether it is shown to cost nothing; what is uncertain is not."""
        return self.mean + 2 * self.error < LEAST_COST


LEAST_COST = 0.01  # nats for each answer: 1% of perplexity


@dataclass(frozen=True, kw_only=True)
class AttentionUse:
    """What a trained network's attention is good for, on validation."""

    parts: tuple[str, ...]  # those that change attention or positions
    heads_changed: tuple[float, ...]  # of each head, layer by layer: share of its attention that training has moved
    uniform: ChangedLoss  # every head attends evenly to all it may see
    removed: ChangedLoss  # attention is left out
    shuffled: ChangedLoss  # the words are in another order

    @property
    def used(self) -> bool:
        return not (self.uniform.none and self.shuffled.none)


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """result.json: written last, so that a record that has it is complete."""

    task: str
    seed: Count
    parameters: Count
    steps: Count
    steps_per_epoch: Positive
    kept_step: Count
    kept: str
    chosen_by: str | None = None
    training_end: Ending = ""
    best_step: Count | None = None
    part_notes: tuple[str, ...] = ()
    stopped: str = ""
    not_deterministic: tuple[str, ...] = ()
    test_watched: bool
    test_reads: dict[str, Count]
    train: Metrics
    validation: Metrics | None = None
    tests: dict[str, Metrics]
    picked_on_test: dict[str, PickedOnTest]
    attention: AttentionUse | None = None
    model_sha256: str
    sha256: dict[str, str] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, Metrics]:
        """Of validation, where there is one, and of each test set."""
        return {**({"validation": self.validation} if self.validation else {}), **self.tests}


@dataclass(frozen=True, kw_only=True)
class BaselineScores:
    """baseline.json: a simple model's scores and the trial's own on the same items."""

    name: str
    skipped: str = ""  # why there are none
    outcomes: str = ""  # sha256 of the outcomes that they belong to
    trial: BySubset = field(default_factory=dict)
    baseline: BySubset = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TaskBaselines:
    """The scores of all baselines of one recipe and seed."""

    task: str
    source: str
    recipe: str
    seed: int
    documents: dict[str, int]
    sets: dict[str, dict[str, float]]  # test set -> how many items the training set holds as well
    baselines: dict[str, BySubset]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClockEntry:
    """A line of clock.jsonl: when something happened."""

    step: Count
    time: float
    what: str = ""
    step_seconds: float | None = None
    load: float | None = None  # of the machine, for each core, where it was above 1
    peak_memory_mb: float | None = None
    trial: str | None = None  # sha256 of trial.json when training began


@dataclass(frozen=True, kw_only=True)
class SavedProgress:
    """What a checkpoint says of the training beside its tensors."""

    step: Count
    best_step: Count | None = None
    stale: Count = 0  # of version 0.2.0, as is
    stopped: str = ""  # this
    events_size: Count
    events_sha256: str
    best_merit: tuple[float, ...] | None = None


# files of a study beside its trials and its verdict


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
    unit_parameters: Count = 0  # of version 0.2
    flops_per_step: Count
    memory_mb: float = 0.0
    mark: str = ""  # the recipe and the data that it was measured on

    @property
    def seconds(self) -> float:
        """Of one trial."""
        fixed = self.set_up_seconds + self.final_seconds
        return fixed + self.steps * self.step_seconds + self.score_seconds


@dataclass(frozen=True)
class TimedSteps:
    """A duration in time as steps, measured when the study was first planned."""

    steps: Positive
    mark: str  # the recipe and the data that it was measured on


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
    records: Mapping[str, str] = field(default_factory=dict)  # folder -> sha256 of the result of each finished trial
    calibration: Mapping[str, Mapping[str, Calibration]] = field(default_factory=dict)  # task -> variant
    steps: Mapping[str, Mapping[str, TimedSteps]] = field(default_factory=dict)  # task -> variant, trained for a time
    looks: tuple[PastLook, ...] = ()  # verdicts that were given
    summary: PlanSummary | None = None


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


def write_document(path: Path, value: object) -> None:
    """As JSON, with its checksum."""
    plain = unstructure(value)
    assert isinstance(plain, dict)
    plain["format"] = FORMAT
    write_text(path, json.dumps(plain | {CHECKSUM: digest(plain)}, indent=1, ensure_ascii=False) + "\n")


def digest(plain: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_document(path: Path, kind: type[T], hint: str = "", *, edited: bool = False) -> T:
    """The value that a document holds; a damaged one is refused. `edited`: its checksum may differ."""
    plain: dict[str, object] = load_json(path, hint)
    version, checksum = plain.get("format"), plain.pop(CHECKSUM, None)
    if type(version) is int and version > FORMAT:
        raise BadInput(f"{path} has format {version}, this fairtrial reads up to {FORMAT}", "update fairtrial")
    if type(version) is not int or version < OLDEST:
        raise BadInput(f"{path} is damaged, or was written before version 0.2: its format is {version!r}", hint)
    try:
        if checksum != digest(plain) and not edited:
            raise BadInput(f"{path} is damaged or was edited: its checksum differs", hint)
        del plain["format"]
        if version < FORMAT:
            from fairtrial.legacy import upgrade

            plain = upgrade(kind, plain)
        return structure(kind, plain)
    except WrongValue as error:
        raise BadInput(f"{path} is damaged at {error}", hint) from error
    except RecursionError as error:
        raise BadInput(f"{path} is damaged: {error}", hint) from error


def read_plain(path: Path, hint: str = "") -> dict[str, object]:
    """A document whose type is checked by its reader."""
    return read_document(path, dict[str, object], hint)


def to_line(value: object) -> str:
    return json.dumps(unstructure(value), ensure_ascii=False)


def read_lines(path: Path, read: Callable[[dict[str, object]], T]) -> list[T]:
    """The lines of a log as values; a torn last line is dropped."""
    return list(_read_lines(path, read))


def _read_lines(path: Path, read: Callable[[dict[str, object]], T]) -> Iterator[T]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is torn or empty
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line.decode("utf-8"))
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            yield read(row)
        except WrongValue as error:
            raise BadInput(f"damaged line, at {error}", path=path, line=number) from error
        except (ValueError, RecursionError) as error:
            raise BadInput(f"damaged line: {error}", path=path, line=number) from error


def read_clock(row: dict[str, object]) -> ClockEntry:
    return structure(ClockEntry, row)


def read_arrays(path: Path, hint: str = "") -> dict[str, np.ndarray]:
    """A safetensors file; the length of its header is checked before anything is set aside for it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
        if int.from_bytes(content[:8], "little") + 8 > len(content):
            raise BadInput("is damaged: its header is longer than the file", hint, path=path)
        return load(content)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", hint, path=path) from error
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"is damaged: {error}", hint, path=path) from error
