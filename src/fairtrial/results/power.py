"""What a comparison with so many seeds and items can detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairtrial.description import Description, IntervalChart, IntervalRow, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import few_digits
from fairtrial.results.sentences import change, counted
from fairtrial.results.values import VarianceComponents
from fairtrial.statistics.outcomes import METRICS
from fairtrial.statistics.power import Expected, Need, expected_smallest, needs, usual_components


@dataclass(frozen=True, repr=False)
class Power(Result):
    """What a comparison with so many seeds and items can see, before anything is trained.

    >>> found = ft.power(seeds=10, items=2000)
    >>> round(found.low, 1), round(found.high, 1)
    (1.1, 3.0)
    """

    metric: str
    seeds: int
    items: int
    comparisons: int
    low: float  # the smallest difference found in 4 of 5 cases, if seeds differ little
    high: float  # and if they differ much
    sentence: str
    needs: tuple[Need, ...] = ()  # seeds and items that detect a difference that was asked for
    components: Sequence[VarianceComponents] | None = field(default=None, repr=False)  # variances that were known

    @classmethod
    def of(
        cls,
        expected: Expected | None,
        seeds: int,
        items: int,
        comparisons: int,
        components: Sequence[VarianceComponents] | None = None,
        detect: float | None = None,
    ) -> Power:
        if expected is None:
            raise BadInput(
                f"{seeds} seeds and {items} items are too few", "use at least 2 of each; a verdict needs 5 seeds"
            )
        of = f" of {expected.metric}" if expected.metric in ("accuracy", "perplexity") else ""
        among = f" after correction for {comparisons} comparisons" if comparisons > 1 else ""
        line = f"{counted(seeds, 'seed')} and {counted(items, 'item')} detect {expected}{of} in 4 of 5 cases{among}."
        needed: tuple[Need, ...] = ()
        if detect is not None:
            needed = needs(detect, components or usual_components(expected.metric), comparisons)
            size = change(expected.metric, detect, signed=False)
            enough = [f"{each.seeds} seeds and {items_text(each.high)} test items" for each in needed if each.high]
            line = f"Detecting {size}{of} in 4 of 5 cases{among} takes {(enough or ['more than 40 seeds'])[0]}."
        return cls(expected.metric, seeds, items, comparisons, expected.low, expected.high, line, needed, components)

    def describe(self) -> Description:
        if self.needs:
            rows = tuple(row(each.seeds, items_text(each.low), items_text(each.high)) for each in self.needs)
            table = Table("", ("seeds", "test items, if seeds differ little", "if they differ much"), rows)
            if all(each.low == each.high for each in self.needs):
                table = Table("", ("seeds", "test items"), tuple(cells[:2] for cells in rows))
            return Description((self.sentence,), [table], charts=[self._chart()])
        columns = ("metric", "seeds", "items", "comparisons", "smallest difference, low", "high")
        numbers = (few_digits(self.low), few_digits(self.high))
        cells = row(self.metric, self.seeds, self.items, self.comparisons, *numbers)
        return Description((self.sentence,), [Table("", columns, (cells,))], charts=[self._chart()])

    def _chart(self) -> IntervalChart:
        """The smallest difference that other numbers of seeds would detect, with these items."""
        rows = []
        for seeds in (3, 5, 10, 20, 40):
            expected = expected_smallest(
                self.metric, seeds, self.items, family=self.comparisons, components=self.components
            )
            assert expected is not None
            exact = expected.low if expected.low == expected.high else None  # the spread is known
            rows.append(IntervalRow(f"{seeds} seeds", exact, expected.low, expected.high))
        unit = METRICS[self.metric].unit if self.metric in METRICS else self.metric
        return IntervalChart(f"smallest detectable difference, {self.items:,} items", unit, tuple(rows))

    def rows(self) -> list[dict[str, object]]:
        if self.needs:
            return [{"seeds": each.seeds, "items_low": each.low, "items_high": each.high} for each in self.needs]
        names = ("metric", "seeds", "items", "comparisons", "low", "high")
        return [{name: getattr(self, name) for name in names}]

    def to_json(self) -> dict[str, object]:
        return {**({"needs": self.rows()} if self.needs else self.rows()[0]), "sentence": self.sentence}


def items_text(items: int | None) -> str:
    """Two digits, rounded up."""
    if items is None:
        return "too few seeds"
    unit = 10 ** max(0, len(str(items)) - 2)
    return f"{math.ceil(items / unit) * unit:,}"
