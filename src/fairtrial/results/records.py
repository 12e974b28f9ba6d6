"""Records in a folder, baselines on their items, the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import format_parts
from fairtrial.record import Listed
from fairtrial.report.text import listing_lines, listing_table, record_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairtrial.stored import TaskBaselines


@dataclass(frozen=True, repr=False)
class Baselines(Result):
    """Simple models on exactly the items of a trial: what a transformer must beat.

    >>> found = ft.baseline(reviews, task="classify").to_frame()
    >>> found[(found.subset == "all") & (found.set == "test") & (found.baseline == "majority")].accuracy.tolist()
    [0.5]
    """

    tasks: Mapping[str, TaskBaselines]

    def describe(self) -> Description:
        from fairtrial.report.text import baseline_tables

        return Description((), [table for scores in self.tasks.values() for table in baseline_tables(scores)])

    def rows(self) -> list[dict[str, object]]:
        return [
            {"task": task, "baseline": name, "set": test, "subset": subset, **score.known()}
            for task, scores in self.tasks.items()
            for name, sets in scores.baselines.items()
            for test, subsets in sets.items()
            for subset, score in subsets.items()
        ]

    def plot(self) -> Figure:
        """Each baseline's score on each test set, with its 95% interval."""
        from fairtrial.report.plots import draw_intervals

        metrics, rows = dict[str, None](), list[tuple[str, float | None, float | None, float | None]]()
        for task, scores in self.tasks.items():
            metric = "accuracy" if task == "classify" else "perplexity"
            metrics[metric] = None
            for name, sets in scores.baselines.items():
                for test, subsets in sets.items():
                    if test != "validation":
                        low, high = subsets["all"].interval or (None, None)
                        rows.append((f"{name}, {test}", getattr(subsets["all"], metric), low, high))
        return draw_intervals(rows, "what a transformer must beat", " or ".join(metrics))


@dataclass(frozen=True, repr=False)
class Records(Result):
    """The records in a folder: what each was trained on, how far it came, what it scored.

    >>> ft.show(finished.folder).to_frame()["test accuracy"].between(0, 1).tolist()
    [True, True, True, True, True, True, True, True, True, True]
    """

    listed: tuple[Listed, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, names: Sequence[str] | None = None) -> list[str]:
        """All that is known of a single record; of several, one line each. `names`: of the classes."""
        single = self.listed[0].record if len(self.listed) == 1 and not self.listed[0].problem else None
        return listing_lines(self.listed) if single is None else record_lines(single, names)

    def describe(self) -> Description:
        return Description((), [listing_table(self.listed)])

    def rows(self) -> list[dict[str, object]]:
        rows = []
        for each in self.listed:
            values: dict[str, object] = {
                "folder": str(each.record.folder),
                "state": each.state,
                "problem": each.problem,
            }
            if not each.problem:
                recipe, trial = each.record.recipe, each.record.trial
                values |= {
                    "task": recipe.task,
                    "recipe": recipe.name,
                    "parts": format_parts(recipe),
                    "seed": trial.seed,
                }
                tests = each.record.result.tests if each.record.complete else {}
                for name, score in tests.items():
                    exact = score.perplexity is not None
                    shown = ("perplexity", "bits_per_byte") if exact else (score.headline,)
                    values |= {f"{name} {metric}": score.figure(metric) for metric in shown}
            rows.append(values)
        return rows

    def plot(self) -> Figure:
        """Loss and score of every split during training, of a single record."""
        from fairtrial.report.plots import draw_curves

        if len(self.listed) != 1:
            raise BadInput(f"curves are drawn of one record, and there are {len(self.listed)}", "show one of them")
        return draw_curves(self.listed[0].record)


@dataclass(frozen=True)
class CachedFile:
    file: str
    content: str  # which data set it was computed from
    bytes: int


@dataclass(frozen=True, repr=False)
class Cache(Result):
    """What was computed from large data sets and kept.

    >>> ft.cache().most_bytes
    4000000000
    """

    folder: Path | None  # None: it is switched off
    files: tuple[CachedFile, ...]
    most_bytes: int
    freed: int | None = None  # by clearing it

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.files)

    def describe(self) -> Description:
        rows = tuple(row(each.content, f"{each.bytes / 1e6:,.1f}") for each in self.files)
        return Description((self._sentence(),), [Table("", ("content", "MB"), rows)] if rows else [])

    def _sentence(self) -> str:
        if self.folder is None:
            return "the cache is switched off (FAIRTRIAL_CACHE=off)"
        if self.freed is not None:
            return f"{self.folder}: {self.freed / 1e6:,.1f} MB removed"
        what = f"{self.bytes / 1e6:,.1f} MB in {len(self.files)} files" if self.files else "empty"
        return f"{self.folder}: {what}, at most {self.most_bytes / 1e9:g} GB"

    def rows(self) -> list[dict[str, object]]:
        return [dict(vars(each)) for each in self.files]
