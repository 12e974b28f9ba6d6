"""The outcome of every test item of every trial, in one small file: a study can be judged again without its records."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairtrial.disk import write_bytes
from fairtrial.errors import BadInput
from fairtrial.results.values import Verdict
from fairtrial.statistics.crossed import Array
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_study
from fairtrial.typed import WrongValue, structure, unstructure

POOLED = "all test sets"
HEADER = "header"
ARRAY = "array"  # where an array belongs: {"array": its number}
HINT = "gather it again: study.outcomes.save(...)"


@dataclass(frozen=True)
class Outcomes:
    """All that a verdict depends on.

    >>> found = finished.outcomes
    >>> found.tasks["classify"].variants["learned"]["test"]["guess"].shape
    (5, 48)
    >>> found.verdict().comparisons == finished.verdict.comparisons
    True
    """

    name: str
    tasks: Mapping[str, TaskOutcomes]

    def verdict(self) -> Verdict:
        """Judge them as a study does: the comparisons of all tasks are corrected together."""
        return judge_study(self.name, self.tasks)

    @classmethod
    def join(cls, name: str, several: Mapping[str, Outcomes]) -> Outcomes:
        """Several studies as one, to be judged as one family. A task is named as its study; with its own name after it
        where a study has several."""
        tasks = {}
        for key, each in several.items():
            for task, outcomes in each.tasks.items():
                tasks[key if len(each.tasks) == 1 else f"{key} {task}"] = outcomes
        return cls(name, tasks)

    def pair(self, variant: str, baseline: str, task: str | None = None, *, pooled: bool = False) -> Outcomes:
        """Only these two, the second as the baseline. `pooled`: all test sets as one.

        >>> finished.outcomes.pair("none", "learned").verdict().baseline
        'learned'
        """
        chosen = task or next(iter(self.tasks))
        whole = self.tasks[chosen]
        for name in (variant, baseline):
            if name not in whole.variants:
                raise BadInput(f"no outcomes of {name!r}", f"variants with outcomes: {', '.join(whole.variants)}")
        two = replace(whole, baseline=baseline, variants={name: whole.variants[name] for name in (baseline, variant)})
        return Outcomes(f"{variant} vs {baseline}", {chosen: _pooled(two) if pooled else two})

    def save(self, path: str | Path, *, exact: bool = True) -> Path:
        """Write one compressed file. Without `exact`, numbers are rounded to 32 bits, which takes half the space.

        >>> found = ft.Outcomes.load(finished.outcomes.save("outcomes.npz"))
        >>> found.verdict().comparisons == finished.verdict.comparisons
        True
        """
        arrays: dict[str, object] = {}
        numbers: dict[str, int] = {}

        def place(value: object) -> object:
            if not isinstance(value, np.ndarray):
                raise TypeError(f"{type(value).__name__} has no JSON form")
            rows = len(value)
            if value.ndim == 2 and rows > 1 and (value == value[:1]).all():
                value = value[:1]  # the same for all seeds, as labels are
            if value.dtype.kind == "i":
                value = value.astype(np.min_scalar_type(-1 - int(np.abs(value).max(initial=0))))
            elif value.dtype == np.float64 and not exact:
                value = value.astype(np.float32)
            mark = hashlib.sha256(f"{value.dtype}{value.shape}".encode() + value.tobytes()).hexdigest()
            number = numbers.setdefault(mark, len(numbers))
            arrays[str(number)] = value
            return {ARRAY: number, "rows": rows}

        header = json.dumps(unstructure(self, place)).encode()
        packed = io.BytesIO()
        np.savez_compressed(packed, **{HEADER: np.frombuffer(header, np.uint8)}, **arrays)  # type: ignore[arg-type]
        write_bytes(Path(path), packed.getvalue())
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Outcomes:
        """Read what `save` wrote."""
        try:
            with np.load(path) as packed:  # which refuses pickles
                arrays = {name: packed[name] for name in packed.files}
            plain = json.loads(arrays.pop(HEADER).tobytes())
            return structure(cls, _filled(plain, arrays))
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror or error}", path=Path(path)) from error
        except (WrongValue, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise BadInput(f"not a file of outcomes, or damaged: {error}", HINT, path=Path(path)) from error


def _filled(plain: object, arrays: Mapping[str, Array]) -> object:
    """With arrays where they belong."""
    if isinstance(plain, list):
        return [_filled(each, arrays) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() != {ARRAY, "rows"}:
        return {name: _filled(each, arrays) for name, each in plain.items()}
    array = arrays[str(plain[ARRAY])]
    wide = array.astype(np.int64 if array.dtype.kind == "i" else np.float64) if array.dtype.kind in "if" else array
    return np.repeat(wide, plain["rows"], 0) if len(wide) == 1 else wide


def _pooled(task: TaskOutcomes) -> TaskOutcomes:
    """All test sets as one."""

    def join(by_set: Mapping[str, SetOutcomes]) -> dict[str, SetOutcomes]:
        sets = [by_set[name] for name in task.sets]
        arrays = {name: np.concatenate([each[name] for each in sets], axis=1) for name in sets[0].arrays}
        return {POOLED: replace(sets[0], arrays=arrays)}

    items = {name: task.variants[task.baseline][name].items for name in task.sets}
    status, clusters, start = [], [], 0
    for name, count in items.items():
        own = task.clusters.get(name, np.arange(count))
        clusters.append(own + start)
        start += int(own.max(initial=-1)) + 1
        status.append(task.status.get(name, np.zeros(count, np.int8)))
    return replace(
        task,
        variants={name: join(by_set) for name, by_set in task.variants.items()},
        baselines={name: join(by_set) for name, by_set in task.baselines.items() if set(by_set) >= set(task.sets)},
        status={POOLED: np.concatenate(status)} if task.status else {},
        clusters={POOLED: np.concatenate(clusters)} if task.clusters else {},
        contexts={POOLED: min(task.contexts.values())} if task.contexts else {},
        test_reuse={},
    )
