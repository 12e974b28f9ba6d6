"""What the public functions give: plain values that show themselves. They hold no open files and no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.errors import BadInput, FairtrialError
from fairtrial.finding import PASS, Finding, shown_value, summary, worst
from fairtrial.record import Listed
from fairtrial.report import verdict_tables
from fairtrial.report.page import fragment
from fairtrial.report.shown import Shown
from fairtrial.report.study_files import StudyFiles, without_nulls
from fairtrial.report.table import Cell, Table, row
from fairtrial.report.text import listing_lines, listing_table, record_lines
from fairtrial.report.words import few_digits, headline, plan_lines, probability, spoken_parts, with_interval
from fairtrial.statistics.crossed import Shares
from fairtrial.statistics.outcomes import METRICS
from fairtrial.statistics.sentences import Expected, counted, expected_smallest
from fairtrial.statistics.verdict import is_clear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairtrial.run import Run

SEVERITY = {"red": "not_comparable", "amber": "remark"}  # colours of a page


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What a study found: sentences, comparisons with their intervals, scores.

    >>> finished.verdict.comparisons[0]["verdict"]
    'undetected'
    """

    facts: Mapping[str, Any] = field(repr=False)  # the content of verdict.json

    @property
    def name(self) -> str:
        """Of the study.

        >>> finished.verdict.name
        'none vs learned'
        """
        return str(self.facts["name"])

    @property
    def text(self) -> tuple[str, ...]:
        """Its sentences, the most important first.

        >>> finished.verdict.text[-1].startswith("Picking the best of 2 variants")
        True
        """
        return tuple(self.facts["sentences"])

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        """One row for each variant, task and test set, with its difference, interval, p and verdict.

        >>> row = finished.verdict.comparisons[0]
        >>> row["variant"], row["low"] <= row["difference"] <= row["high"]
        ('learned', True)
        """
        tasks: Mapping[str, Any] = self.facts["tasks"]
        return [{"task": name, **each} for name, task in tasks.items() for each in task["comparisons"]]

    @property
    def clear(self) -> bool:
        """Whether every comparison that can be judged is decided.

        >>> finished.verdict.clear
        False
        """
        return is_clear(self.facts)

    @cached_property
    def shown(self) -> dict[str, Any]:
        return without_nulls(dict(self.facts))

    def sentences(self) -> Sequence[str]:
        return self.text

    def tables(self) -> Sequence[Table]:
        return verdict_tables.verdict_tables(self.shown, verdict_tables.MAIN)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {key: value for key, value in each.items() if not isinstance(value, dict | list)}
            for each in self.comparisons
        ]

    def _repr_html_(self) -> str:
        from fairtrial.report.study_page import verdict_fragment

        return verdict_fragment(self.shown)

    def write_page(self, page: str | Path) -> Path:
        """Write it as a page to open in a browser.

        >>> finished.verdict.write_page("verdict.html").name
        'verdict.html'
        """
        from fairtrial.disk import write_text
        from fairtrial.report.study_page import study_page

        write_text(Path(page), study_page(StudyFiles(Path(page).parent, self.shown)))
        return Path(page)

    def plot(self) -> Figure:
        """Every difference with its 95% interval.

        >>> finished.verdict.plot().savefig("verdict.svg")
        """
        from fairtrial.report.plots import draw_intervals

        rows, least = [], []
        units: dict[str, None] = {}
        for name, task in self.shown["tasks"].items():
            for each in task["comparisons"]:
                label = f"{each['variant']}, {each['set']}" + (f" ({name})" if len(self.shown["tasks"]) > 1 else "")
                rows.append((label, *verdict_tables.shown_difference(task, each)))
            least.append(verdict_tables.shown_least(task, task.get("least_difference")))
            units[verdict_tables.difference_unit(task)] = None
        title = f"difference from {self.shown.get('baseline', '')}, 95% intervals"
        return draw_intervals(rows, title, " or ".join(units), zero=True, least=least[0] if len(least) == 1 else None)

    def to_text(self, *, every: bool = False) -> str:
        """Sentences and tables. `every`: all tables, also contamination, test reuse, passports and search.

        >>> len(finished.verdict.to_text(every=True)) > len(finished.verdict.to_text())
        True
        """
        return "\n".join(verdict_tables.verdict_lines(self.shown, every=every))

    def to_markdown(self, *, every: bool = False) -> str:
        """The same as Markdown.

        >>> print(finished.verdict.to_markdown().splitlines()[0])
        # none vs learned
        """
        return "\n".join(verdict_tables.verdict_lines(self.shown, "markdown", every=every))

    def to_latex(self, *, wide: bool = False, every: bool = False) -> str:
        """A table that fits a column of a paper; `wide`: all that a verdict is read with.

        >>> "toprule" in finished.verdict.to_latex()
        True
        """
        narrow = not (wide or every)
        return "\n".join(verdict_tables.verdict_lines(self.shown, "latex", every=every, narrow=narrow))


@dataclass(frozen=True, repr=False)
class Study(Shown):
    """A finished study: its folder, its verdict, its trials.

    >>> finished.run("learned", seed=3).seed
    3
    """

    folder: Path
    plan: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what was about to be run, if it just was
    notices: tuple[str, ...] = ()  # what a user should know of how it went

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
        self.files.check_unchanged()
        return Verdict(self.files.read_verdict())

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

        >>> finished.run("learned", seed=1).metrics["test"]["items"]
        48
        """
        from fairtrial.api import load

        chosen = task or next(iter(self.verdict.facts["tasks"]))
        return load(self.folder / "trials" / chosen / variant / f"seed-{seed}", plugins=plugins)

    def write_page(self) -> Path:
        """Write `report.html` again.

        >>> finished.write_page().name
        'report.html'
        """
        from fairtrial.report.study_page import write_study_page

        return write_study_page(self.folder)

    def sentences(self) -> Sequence[str]:
        return self.verdict.sentences()

    def tables(self) -> Sequence[Table]:
        return self.verdict.tables()

    def rows(self) -> list[dict[str, Any]]:
        return self.verdict.rows()

    def __repr__(self) -> str:
        without = self._without_verdict()
        return "\n".join(without) if without else repr(self.verdict)

    def _repr_html_(self) -> str:
        without = self._without_verdict()
        return fragment(without) if without else self.verdict._repr_html_()

    def _without_verdict(self) -> list[str]:
        """What is shown where there is no verdict: the plan, or the reason. Showing a result never fails."""
        if self.planned:
            return plan_lines(dict(self.plan))
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
        return bool(self.plan) and not (self.folder / "verdict.json").is_file()


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """What an audit found, in a network or in data.

    >>> found = ft.audit_data(reviews)
    >>> found.level, found.findings[0].name
    ('amber', 'duplicates of train')
    """

    what: str
    findings: tuple[Finding, ...]
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of data: all facts, by task

    @property
    def level(self) -> str:
        """pass, amber or red

        >>> ft.audit_data(reviews).level
        'amber'
        """
        return worst(self.findings)

    @property
    def passed(self) -> bool:
        """Whether no check failed.

        >>> ft.audit_data(reviews).passed
        False
        """
        return self.level == "pass"

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that did.

        >>> [finding.id for finding in ft.audit_data(reviews).failed]
        ['D5']
        """
        return tuple(finding for finding in self.findings if finding.severity != "pass")

    def sentences(self) -> Sequence[str]:
        return (f"{self.what}: {summary(self.findings)}",)

    def tables(self) -> Sequence[Table]:
        heads = {"classify": "in an encoder", "lm": "in a decoder", "": ""}
        found = []
        for task, title in heads.items():
            chosen = [finding for finding in self.findings if finding.task == task]
            rows = tuple(
                row(each.id, each.name, each.where or each.level, each.shown or shown_value(each), each.limit,
                    Cell(each.verdict, kind=SEVERITY.get(each.severity, "")), each.meaning * (each.verdict != PASS))
                for each in chosen
            )  # fmt: skip
            columns = (
                "id",
                "check",
                "where" if chosen and chosen[0].where else "level",
                "measured",
                "limit",
                "verdict",
            )
            if rows:
                found.append(Table(title, (*columns, "meaning"), rows, text_columns=7))
        return found

    def rows(self) -> list[dict[str, Any]]:
        return [finding.to_dict() for finding in self.findings]

    def plot(self) -> Figure:
        """One square for each check: passed, amber or red.

        >>> ft.audit_data(reviews).plot().savefig("audit.svg")
        """
        from fairtrial.report.plots import draw_checks

        kinds = {"classify": "encoder", "lm": "decoder"}
        cells = [
            (f"{each.id} {each.name}", each.where or kinds.get(each.task, ""), each.severity) for each in self.findings
        ]
        return draw_checks(cells, f"{self.what}: {summary(self.findings)}")


@dataclass(frozen=True, repr=False)
class Baselines(Shown):
    """Simple models on exactly the items of a trial: what a transformer must beat.

    >>> found = ft.baseline(reviews, task="classify").to_frame()
    >>> found[(found.subset == "all") & (found.set == "test") & (found.baseline == "majority")].accuracy.tolist()
    [0.5]
    """

    tasks: Mapping[str, Mapping[str, Any]]  # by task

    def tables(self) -> Sequence[Table]:
        from fairtrial.report.text import baseline_tables

        return [table for facts in self.tasks.values() for table in baseline_tables(facts)]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"task": task, "baseline": name, "set": test, "subset": subset, **score}
            for task, facts in self.tasks.items()
            for name, sets in facts["baselines"].items()
            for test, subsets in sets.items()
            for subset, score in subsets.items()
        ]

    def plot(self) -> Figure:
        """Each baseline's score on each test set, with its 95% interval."""
        from fairtrial.report.plots import draw_intervals

        metrics = dict.fromkeys("accuracy" if "accuracy" in each else "perplexity" for each in self.rows())
        rows = [
            (
                f"{each['baseline']}, {each['set']}",
                each.get("accuracy", each.get("perplexity")),
                *(each["interval"] or (None, None)),
            )
            for each in self.rows()
            if each["subset"] == "all" and each["set"] != "validation"
        ]
        return draw_intervals(rows, "what a transformer must beat", " or ".join(metrics))


@dataclass(frozen=True, repr=False)
class Records(Shown):
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

    def tables(self) -> Sequence[Table]:
        return [listing_table(self.listed)]

    def rows(self) -> list[dict[str, Any]]:
        found = []
        for each in self.listed:
            facts: dict[str, Any] = {"folder": str(each.record.folder), "state": each.state, "problem": each.problem}
            if not each.problem:
                recipe, trial = each.record.recipe, each.record.trial
                facts |= {
                    "task": recipe.task,
                    "recipe": recipe.name,
                    "parts": spoken_parts(recipe),
                    "seed": trial["seed"],
                }
                tests = each.record.result["tests"] if each.record.complete else {}
                for name, score in tests.items():
                    shown = ("perplexity", "bits_per_byte") if "perplexity" in score else (headline(score)[0],)
                    facts |= {f"{name} {metric}": score[metric] for metric in shown}
            found.append(facts)
        return found

    def plot(self) -> Figure:
        """Loss and score of every split during training, of a single record."""
        from fairtrial.report.plots import draw_curves

        if len(self.listed) != 1:
            raise BadInput(f"curves are drawn of one record, and there are {len(self.listed)}", "show one of them")
        return draw_curves(self.listed[0].record)


@dataclass(frozen=True, repr=False)
class Cache(Shown):
    """What was computed from large data sets and kept.

    >>> ft.cache().most_bytes
    4000000000
    """

    folder: Path | None  # None: it is switched off
    files: tuple[Mapping[str, Any], ...]  # file, what, bytes
    most_bytes: int
    freed: int | None = None  # by clearing it

    @property
    def bytes(self) -> int:
        return sum(int(each["bytes"]) for each in self.files)

    def sentences(self) -> Sequence[str]:
        if self.folder is None:
            return ["the cache is switched off (FAIRTRIAL_CACHE=off)"]
        if self.freed is not None:
            return [f"{self.folder}: {self.freed / 1e6:,.1f} MB removed"]
        what = f"{self.bytes / 1e6:,.1f} MB in {len(self.files)} files" if self.files else "empty"
        return [f"{self.folder}: {what}, at most {self.most_bytes / 1e9:g} GB"]

    def tables(self) -> Sequence[Table]:
        rows = tuple(row(str(each["what"]), f"{each['bytes'] / 1e6:,.1f}") for each in self.files)
        return [Table("", ("what", "MB"), rows)] if rows else []

    def rows(self) -> list[dict[str, Any]]:
        return [dict(each) for each in self.files]


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Two variants on the same items over several seeds: the difference, its interval, and the verdict.

    >>> import numpy as np, fairtrial as ft
    >>> rng = np.random.default_rng(0)
    >>> theirs = rng.random((5, 400)) < 0.7
    >>> ours = theirs | (rng.random((5, 400)) < 0.2)
    >>> ft.compare(ours, theirs).verdict
    'better'
    """

    verdict: str  # better, worse, same, undetected, too_few_seeds or not_comparable
    sentence: str
    difference: float | None  # ours - theirs
    low: float | None  # 95% interval, for a new seed and new items
    high: float | None
    p: float | None
    seeds: int
    items: int
    smallest_detectable: float | None  # that a comparison like this one finds in 4 of 5 cases
    variance_shares: Mapping[str, float]  # of the difference: from seeds, items and the rest
    facts: dict[str, Any] = field(repr=False)  # all else: by_seed, df, more_seeds, second_opinion ...

    @classmethod
    def of(cls, row: dict[str, Any]) -> Comparison:
        names = ("verdict", "sentence", "difference", "low", "high", "p", "seeds", "items", "smallest_detectable")
        return cls(**{name: row[name] for name in names}, variance_shares=row.get("variance_shares", {}), facts=row)

    @property
    def shown(self) -> tuple[float | None, float | None, float | None]:
        """Difference, low and high as the sentence tells them: points, or per cent of the other's perplexity.

        >>> found = ft.compare([[4.0, 5.0]] * 5, [[4.1, 5.1]] * 5, weights=[10, 10], metric="perplexity")
        >>> round(found.difference, 3), round(found.shown[0], 2)
        (-0.1, -9.52)
        """
        return verdict_tables.shown_difference(self.facts, self.facts)

    def sentences(self) -> Sequence[str]:
        return (self.sentence,)

    def tables(self) -> Sequence[Table]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.variance_shares.items()) or "–"
        columns = ("verdict", "difference", "p", "seeds", "items", "80% power", "variance")
        cell = verdict_tables.verdict_cell({"verdict": self.verdict})
        percent = "%" if self.facts["metric"] == "perplexity" else ""
        interval = with_interval(*self.shown, sign=True) + f" {percent}".rstrip()
        smallest = f"{few_digits(verdict_tables.shown_least(self.facts, self.smallest_detectable))}{percent}"
        numbers = (interval, probability(self.p), self.seeds, self.items, smallest)
        return [Table("", columns, (row(cell, *numbers, shares),))]

    def charts(self) -> Sequence[str]:
        from fairtrial.report.charts import Scale, axis_strip, difference_strip

        values, least = self.shown, verdict_tables.shown_least(self.facts, self.facts["least_difference"]) or None
        scale = Scale.around([0.0, *([-least, least] if least else []), *values])
        if scale is None:
            return []
        strip = difference_strip(self.sentence, values, least, scale, self.verdict)
        return [f"<div>{strip}{axis_strip(scale, sign=True)}</div>"]

    def plot(self) -> Figure:
        """The difference with its 95% interval, and that of each seed.

        >>> ft.compare([[1, 0, 1, 1]] * 5, [[0, 0, 1, 1]] * 5).plot().savefig("comparison.svg")
        """
        from fairtrial.report.plots import draw_intervals

        name = f"{self.facts['variant']} - {self.facts['against']}"
        by_seed = ({"difference": each} for each in self.facts.get("by_seed", ()))
        found = (verdict_tables.shown_difference(self.facts, each)[0] for each in by_seed)
        seeds = [value for value in found if value is not None]
        least = verdict_tables.shown_least(self.facts, self.facts["least_difference"]) or None
        title, unit = self.verdict.replace("_", " "), verdict_tables.difference_unit(self.facts)
        return draw_intervals([(name, *self.shown)], title, unit, zero=True, least=least, dots=[seeds])

    def rows(self) -> list[dict[str, Any]]:
        names = ("verdict", "difference", "low", "high", "p", "seeds", "items", "smallest_detectable")
        return [
            {name: getattr(self, name) for name in names}
            | {f"variance_{k}": v for k, v in self.variance_shares.items()}
        ]


@dataclass(frozen=True)
class Claim:
    """Something that a record says, and whether it was proven, is consistent with all else, false, or not proven."""

    name: str  # files, data, training, weights, scores; of a study files, verdict, trials
    state: str
    detail: str


@dataclass(frozen=True)
class Checked:
    """A record or a study whose claims were checked."""

    folder: Path
    claims: tuple[Claim, ...]
    inside: tuple[Checked, ...] = ()  # trials of a study

    @property
    def state(self) -> str:
        """proven: to the last bit, all of it. consistent: nothing is false, and its scores or its verdict follow from
        what is stored."""
        states = {claim.name: claim.state for claim in self.claims}
        if "false" in states.values():
            return "false"
        needed = ("verdict", "trials") if {"verdict", "trials"} & states.keys() else ("training", "weights", "scores")
        if all(states.get(name) == "proven" for name in needed):
            return "proven"
        follows = states.get("scores", states.get("verdict"))
        return "consistent" if follows in ("proven", "consistent") else "not proven"

    def facts(self) -> dict[str, Any]:
        claims = [{"claim": each.name, "state": each.state, "detail": each.detail} for each in self.claims]
        inside = {"trials": [each.facts() for each in self.inside]} if self.inside else {}
        return {"record": str(self.folder), "state": self.state, "claims": claims, **inside}


UNPROVEN = ("files", "consistent")  # as checksums always are
CLAIM_COLOURS = {"false": "worse", "proven": "better", "not proven": "undetected", "consistent": "same"}
MEANT = {
    "proven": "what its recipe, seed and data give, to the last bit",
    "consistent": "nothing in it is false, but not all of it was proven",
    "false": "it is not what it says",
    "not proven": "it could not be checked",
}


@dataclass(frozen=True, repr=False)
class Verification(Shown):
    """What became of the claims of records: proven, consistent, false or not proven."""

    records: tuple[Checked, ...]

    @property
    def false(self) -> bool:
        """Whether any record claims what is not so."""
        return any(each.state == "false" for each in self.records)

    def sentences(self) -> Sequence[str]:
        if len(self.records) == 1:
            (one,) = self.records
            return (f"{one.folder}: {one.state}, {MEANT[one.state]}.",)
        states = [each.state for each in self.records]
        counts = [f"{states.count(state)} {state}" for state in MEANT if state in states]
        return (f"{counted(len(states), 'record')}: {', '.join(counts)}.",)

    def tables(self) -> Sequence[Table]:
        if len(self.records) == 1:
            every = [self.records[0], *self.records[0].inside]
            return [claim_table(one, str(one.folder) if number else "") for number, one in enumerate(every)]
        names = dict.fromkeys(claim.name for one in self.records for claim in one.claims)
        rows = []
        for one in self.records:
            found = {claim.name: claim for claim in one.claims}
            states = [state_cell(found[name].state) if name in found else Cell("–") for name in names]
            doubtful = [each for each in one.claims if each.state != "proven" and (each.name, each.state) != UNPROVEN]
            doubtful.sort(key=lambda each: each.state != "false")
            why = f"{doubtful[0].name}: {doubtful[0].detail}" if doubtful else ""
            rows.append(row(str(one.folder), state_cell(one.state), *states, why))
        return [Table("", ("record", "verdict", *names, "why"), tuple(rows), text_columns=len(names) + 3)]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"record": str(one.folder), "verdict": one.state, **{claim.name: claim.state for claim in one.claims}}
            for one in self.records
        ]


def claim_table(one: Checked, title: str) -> Table:
    rows = tuple(row(each.name, state_cell(each.state), each.detail) for each in one.claims)
    return Table(title, ("claim", "state", "what was found"), rows, text_columns=3)


def state_cell(state: str) -> Cell:
    return Cell(state, kind=CLAIM_COLOURS.get(state, ""))


@dataclass(frozen=True, repr=False)
class Power(Shown):
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
    shares: Sequence[Shares] | None = field(default=None, repr=False)  # variances that were known

    @classmethod
    def of(
        cls, expected: Expected | None, seeds: int, items: int, comparisons: int, shares: Sequence[Shares] | None = None
    ) -> Power:
        if expected is None:
            raise BadInput(
                f"{seeds} seeds and {items} items show nothing", "take at least 2 of each; a verdict needs 5 seeds"
            )
        of = f" of {expected.metric}" if expected.metric in ("accuracy", "perplexity") else ""
        among = f" after correction for {comparisons} comparisons" if comparisons > 1 else ""
        line = f"{counted(seeds, 'seed')} and {counted(items, 'item')} detect {expected}{of} in 4 of 5 cases{among}."
        return cls(expected.metric, seeds, items, comparisons, expected.low, expected.high, line, shares)

    def sentences(self) -> Sequence[str]:
        return (self.sentence,)

    def tables(self) -> Sequence[Table]:
        columns = ("metric", "seeds", "items", "comparisons", "smallest difference, low", "high")
        numbers = (few_digits(self.low), few_digits(self.high))
        return [Table("", columns, (row(self.metric, self.seeds, self.items, self.comparisons, *numbers),))]

    def plot(self) -> Figure:
        """The smallest difference that other numbers of seeds would detect, with these items."""
        from fairtrial.report.plots import draw_intervals

        rows = []
        for seeds in (3, 5, 10, 20, 40):
            found = expected_smallest(self.metric, seeds, self.items, family=self.comparisons, shares=self.shares)
            assert found is not None
            rows.append((f"{seeds} seeds", None, found.low, found.high))
        unit = METRICS[self.metric].unit if self.metric in METRICS else self.metric
        return draw_intervals(rows, f"smallest detectable difference, {self.items:,} items", unit)

    def rows(self) -> list[dict[str, Any]]:
        names = ("metric", "seeds", "items", "comparisons", "low", "high")
        return [{name: getattr(self, name) for name in names}]
