"""A finished study: its folder, its verdict, its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import Description, Result
from fairtrial.errors import FairtrialError
from fairtrial.report.study_files import StudyFiles
from fairtrial.report.words import plan_lines
from fairtrial.results.values import Verdict
from fairtrial.stored_study import PlanSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairtrial.results.outcomes import Outcomes
    from fairtrial.run import Run


@dataclass(frozen=True, repr=False)
class Study(Result):
    """A finished study: its folder, its verdict, its trials.

    >>> finished.run("learned", seed=3).seed
    3
    """

    folder: Path
    plan: PlanSummary | None = field(default=None, repr=False)  # what was about to be run, if it just was
    notices: tuple[str, ...] = ()  # what a user should know of how it went
    judged: Verdict | None = field(default=None, repr=False)  # the verdict, if it was just given

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))  # a user may give it as text

    @cached_property
    def files(self) -> StudyFiles:
        return StudyFiles.open(self.folder)

    @cached_property
    def verdict(self) -> Verdict:
        """What it found.

        >>> len(finished.verdict.comparisons)
        1
        """
        if self.judged is not None:
            return self.judged
        self.files.check_unchanged()
        return self.files.verdict

    @cached_property
    def outcomes(self) -> Outcomes:
        """The outcome of every test item of every finished trial, to be stored or judged in other ways.

        >>> finished.outcomes.tasks["classify"].sets
        ('test',)
        """
        from fairtrial.api import gather_outcomes

        return gather_outcomes(self)

    @property
    def page(self) -> Path:
        """The page to open in a browser.

        >>> finished.page.is_file()
        True
        """
        return self.folder / "report.html"

    def run(self, variant: str, seed: int = 0, task: str | None = None, *, plugins: Sequence[str | Path] = ()) -> Run:
        """One trial of the study with its trained network. `plugins`: the file of a part of your own, in a process that
        does not know it yet (the study keeps it in its folder `parts`).

        >>> finished.run("learned", seed=1).metrics["test"].items
        48
        """
        from fairtrial.api import load

        chosen = task or next(iter(self.verdict.tasks))
        return load(self.folder / "trials" / chosen / variant / f"seed-{seed}", plugins=plugins)

    def write_page(self, page: str | Path | None = None) -> Path:
        """Write `report.html` again, or another page.

        >>> finished.write_page().name
        'report.html'
        """
        from fairtrial.report.study_page import write_study_page

        return write_study_page(self.folder, None if page is None else Path(page))

    def describe(self) -> Description:
        """As its verdict; the plan, or the reason, where there is none. Showing a result never fails."""
        without = self._without_verdict()
        return Description(without) if without else self.verdict.describe()

    def rows(self) -> list[dict[str, object]]:
        return self.verdict.rows()

    def __repr__(self) -> str:
        return "\n".join(self._without_verdict()) or repr(self.verdict)

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self._without_verdict() else self.verdict._repr_html_()

    def _without_verdict(self) -> list[str]:
        if self.plan is not None and self.planned:
            return plan_lines(self.plan)
        try:
            self.verdict  # noqa: B018
        except FairtrialError as error:
            return [error.what, *([error.hint] if error.hint else [])]
        return []

    def plot(self) -> Figure:
        """Every difference with its 95% interval."""
        return self.verdict.plot()

    def to_markdown(self, *, every: bool = False) -> str:
        """As its verdict does."""
        return self.verdict.to_markdown(every=every)

    def to_latex(self, *, wide: bool = False, every: bool = False) -> str:
        """As its verdict does."""
        return self.verdict.to_latex(wide=wide, every=every)

    @property
    def planned(self) -> bool:
        """Whether nothing was run yet: what can be shown is the plan.

        >>> finished.planned
        False
        """
        return self.plan is not None and not (self.folder / "verdict.json").is_file()
