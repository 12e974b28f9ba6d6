"""A folder of submissions, each judged by itself against one baseline by the statistics of a study. Nothing in a
submission is run, and one that cannot be read never stops the others."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.special import pdtr

from fairtrial.data.tables import bare, entries, is_folder, suffix_of
from fairtrial.description import MISSING, Cell, Description, Result, Table, row
from fairtrial.disk import disk_errors, write_text
from fairtrial.errors import BadInput, message_of
from fairtrial.events import Stepped
from fairtrial.formatting import probability
from fairtrial.record import Record, list_records
from fairtrial.results.audit import Checked, state_cell
from fairtrial.results.item_rows import Cells, joined
from fairtrial.results.judge import Asked, final_scores, judge_results
from fairtrial.results.readers import TABLES, Reading, Results, check_columns, inside_of, read_files
from fairtrial.results.sentences import counted, listed
from fairtrial.results.values import Comparison, Verdict, VerdictKind
from fairtrial.results.verdict_tables import comparison_chart, difference_text, score_text, verdict_cell
from fairtrial.statistics.crossed import Array

BASELINE = "baseline"
FEWEST = 20  # numbers that two runs must share before they can be called copies
NEAR = 0.25  # of the usual distance between two runs: nearer ones are nearly identical
NEAR_WEIGHTS = 0.01  # relative distance
CHANCE = 0.01  # of any false alarm in a whole class
SAMPLED = 4096  # weights of a network that are compared
SEED_AT_END = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class Trace:
    """What is compared to find copies: the outcomes, the curve or the weights of one run, or scores of all runs."""

    owner: str
    kind: str
    about: str  # runs of other items, steps or shapes are not compared
    values: Array
    trained: bool = False  # of a record: those of one seed begin with the same weights and see the same batches


@dataclass(frozen=True)
class Submission:
    cells: Cells | None = None  # of tables
    records: Mapping[int, Record] = field(default_factory=dict)  # by seed
    traces: tuple[Trace, ...] = ()


@dataclass(frozen=True)
class Grade:
    """One submission: its verdict against the baseline, or why there is none."""

    name: str
    verdict: Verdict | None = None
    problem: str = ""
    verified: tuple[Checked, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.verdict.comparisons if self.verdict else ()

    @property
    def state(self) -> str:
        """Of its records that were trained again: the worst."""
        order = ("false", "not proven", "consistent", "proven")
        return next((each for each in order if each in [checked.state for checked in self.verified]), "")

    def points(self, scheme: Mapping[VerdictKind, float]) -> float:
        """The mean over its test sets; none for what could not be read and for records that are false."""
        if not self.comparisons or self.state == "false":
            return 0.0
        return sum(scheme[each.verdict] for each in self.comparisons) / len(self.comparisons)

    def describe(self) -> Description:
        """Its feedback, without a word about others."""
        sentences = [f"The submission could not be judged: {self.problem}"] if self.problem else []
        for each in self.verified:
            sentences.append(f"{each.folder.name} was trained again: {each.state}. {each.reason}")
        told = self.verdict.describe() if self.verdict else Description()
        return replace(told, title=self.name, sentences=(*sentences, *told.sentences))


@dataclass(frozen=True, repr=False)
class Grades(Result):
    """What `grade` gives: one grade for each submission.

    >>> import pathlib
    >>> rows = {"base": "71 72 70 73 71", "ada": "81 83 82 80 82"}
    >>> pathlib.Path("essays").mkdir()
    >>> for name, scores in rows.items():
    ...     table = "".join(f"{seed},{score}\\n" for seed, score in enumerate(scores.split()))
    ...     _ = pathlib.Path(f"essays/{name}.csv").write_text("seed,accuracy\\n" + table)
    >>> ft.grade("essays", "base.csv", quiet=True).to_frame()[["submission", "verdict", "points"]].values.tolist()
    [['ada', 'better', 1.0]]
    """

    baseline: str
    grades: tuple[Grade, ...]
    scheme: Mapping[VerdictKind, float]
    notes: tuple[str, ...] = ()

    def describe(self) -> Description:
        """How many submissions got which verdict, and a row for each of them."""
        found = Counter(each.verdict for grade in self.grades for each in grade.comparisons)
        broken = sum(bool(grade.problem) for grade in self.grades)
        told = [f"{found[kind]} {kind.value.replace('_', ' ')}" for kind in VerdictKind if found[kind]]
        told += [f"{broken} could not be judged"] * bool(broken)
        sentences = [f"{counted(len(self.grades), 'submission')} compared with {self.baseline}: {', '.join(told)}."]
        sentences.append("Each submission is judged by itself: verdicts are not corrected for the size of the class.")
        rows = [cells for grade in self.grades for cells in self._rows(grade)]
        columns = ("submission", "test set", "verdict", "score", "difference", "p", "seeds", "items", "points")
        tables = [Table("", (*columns, "trained again"), tuple(rows), text_columns=3).without_empty_columns()]
        seen = [row(each.name, "; ".join([each.problem] * bool(each.problem) + [*each.copies])) for each in self.grades]
        kept = tuple(cells for cells in seen if cells[1].text)
        tables += [Table("To look at yourself", ("submission", "what was found"), kept, text_columns=2)] * bool(kept)
        compared = [each for grade in self.grades for each in grade.comparisons]
        charts = [
            comparison_chart([each for each in compared if each.metric == metric], f"difference from {self.baseline}")
            for metric in dict.fromkeys(each.metric for each in compared)
        ]
        return Description((*sentences, *self.notes), tables, "Grades", charts)

    def _rows(self, grade: Grade) -> Iterator[tuple[Cell, ...]]:
        points = Cell(f"{grade.points(self.scheme):g}", number=grade.points(self.scheme))
        again = state_cell(grade.state or MISSING)
        if not grade.comparisons:
            yield row(grade.name, MISSING, Cell("not judged", kind="not_comparable"), *[MISSING] * 5, points, again)
        for each in grade.comparisons:
            task = next(task for task in grade.verdict.tasks.values() if each in task.comparisons)  # type: ignore[union-attr]
            own = task.scores.get(each.variant, {}).get(each.test_set, {}).get(each.subset)
            score = MISSING if own is None else score_text(own.mean, own.items > 0)
            told = score, difference_text(each), probability(each.p_adjusted), each.seeds, each.items or MISSING
            yield row(grade.name, each.test_set, verdict_cell(each), *told, points, again)

    def rows(self) -> list[dict[str, object]]:
        return [
            {"submission": grade.name, **values, "points": grade.points(self.scheme), "verified": grade.state}
            | {"copies": "; ".join(grade.copies), "problem": grade.problem}
            for grade in self.grades
            for values in (grade.verdict.rows() if grade.verdict else [{}])
        ]

    def write(self, out: Path) -> Path:
        """grades.csv, .md and .html; of each submission feedback/NAME.md and gradescope/NAME/results.json."""
        from fairtrial.report.page import result_page, write_page
        from fairtrial.report.render import render

        if out.is_dir() and any(out.iterdir()) and not (out / "grades.csv").is_file():
            raise BadInput(f"{out} exists already and holds no grades", "choose another folder with --out")
        with disk_errors(out):
            for folder in ("feedback", "gradescope"):
                (out / folder).mkdir(parents=True, exist_ok=True)
        described = self.describe()
        write_text(out / "grades.csv", as_csv(self.rows()))
        write_text(out / "grades.md", render(described, "markdown") + "\n")
        write_page(out / "grades.html", lambda: result_page(described))
        for grade in self.grades:
            feedback = render(grade.describe(), "markdown") + "\n"
            write_text(out / "feedback" / f"{grade.name}.md", feedback)
            with disk_errors(out):
                (out / "gradescope" / grade.name).mkdir(exist_ok=True)
            told = json.dumps(self._gradescope(grade, feedback), indent=1)
            write_text(out / "gradescope" / grade.name / "results.json", told + "\n")
        return out

    def _gradescope(self, grade: Grade, feedback: str) -> dict[str, object]:
        """As Gradescope's autograder reads it, and as Otter writes it."""
        most, count = max(self.scheme.values()), max(1, len(grade.comparisons))
        given = 0.0 if grade.state == "false" else 1.0 / count
        tests = [
            {"name": f"{each.test_set}: {each.verdict.value.replace('_', ' ')}", "output": each.sentence}
            | {"score": given * self.scheme[each.verdict], "max_score": most / count}
            for each in grade.comparisons
        ] or [{"name": "could not be judged", "output": grade.problem, "score": 0.0, "max_score": most}]
        return {"score": grade.points(self.scheme), "output": feedback, "output_format": "md", "tests": tests}


@dataclass(frozen=True)
class Grading:
    """How submissions are read and judged."""

    baseline: Path
    reading: Reading
    asked: Asked
    data: str | None = None
    scheme: Mapping[VerdictKind, float] = field(default_factory=dict)

    def grade(self, folder: Path, count: int, on_status: Callable[[str], None]) -> Grades:
        base = self.read(self.baseline, BASELINE)
        of_records = records_judge(base.records, self.data, self.asked.margin) if base.records else None
        grades, traces = list[Grade](), list(base.traces)
        records: dict[str, list[Record]] = {}
        places, ignored = submissions(folder, self.baseline)
        for name, path in places.items():
            on_status(f"grading {name}")
            try:
                own = self.read(path, name, [*base.records.values()])
                traces += own.traces
                records[name] = [*own.records.values()]
                verdict = of_records(name, own.records) if of_records else self.judge_tables(base, name, own)
                grades.append(Grade(name, verdict))
            except Exception as error:  # whatever a student hands in, the others are graded
                problem = error.what if isinstance(error, BadInput) else f"cannot be read ({message_of(error)})"
                grades.append(Grade(name, problem=" ".join(problem.split())))
        found, proven = copies(traces), self.verified(records, count, on_status)
        grades = [
            replace(each, verified=tuple(proven.get(each.name, ())), copies=tuple(found.get(each.name, ())))
            for each in grades
        ]
        notes = [f"Not read, as they hold no results: {', '.join(ignored)}."] if ignored else []
        return Grades(self.baseline.name, tuple(grades), self.scheme, (*notes, *found.get(BASELINE, ())))

    def verified(
        self, records: Mapping[str, Sequence[Record]], count: int, on_status: Callable[[str], None]
    ) -> dict[str, list[Checked]]:
        """`count` records, drawn so that nobody can know which: of each submission one, before any has a second."""
        if not count:
            return {}
        from fairtrial.verification import Options, verify_folder

        chance, found = random.SystemRandom(), defaultdict[str, list[Checked]](list)
        drawn = [
            (at, name, one) for name, own in records.items() for at, one in enumerate(chance.sample(own, len(own)))
        ]
        chance.shuffle(drawn)
        for _, name, record in sorted(drawn, key=lambda each: each[0])[:count]:
            found[name].append(verify_folder(record.folder, Options(data=self.data), on_status))
        return found

    def read(self, path: Path, name: str, base: Sequence[Record] = ()) -> Submission:
        """Records, if there are any in it; else tables."""
        if not path.exists():
            raise BadInput(f"{path} does not exist", "name a file of results, or a folder of records")
        if path.is_dir() and (there := list(list_records(path))):
            records = chosen_records([(each.record, each.problem) for each in there], base)
            return Submission(
                None, records, tuple(each for own in records.values() for each in record_traces(name, own))
            )
        if base:
            raise BadInput(f"{path.name} holds no records, as the baseline does", path=path)
        files = inside_of(path) if path.is_dir() else [path]
        if not files:
            raise BadInput(f"no results were found (looked for records and {', '.join(TABLES)})", path=path)
        seeds = [SEED_AT_END.search(bare(each).stem) for each in files]
        told = [{"variant": name, "seed": seed[1]} if seed and len(files) > 1 else {"variant": name} for seed in seeds]
        try:
            results = read_files([*zip(files, told, strict=True)], self.reading)
        except BadInput:
            if len(files) == 1:
                raise  # several may tell their seeds in a column, not in their names
            results = read_files([(each, {"variant": name}) for each in files], self.reading)
        return Submission(results.cells, {}, tuple(table_traces(name, results)))

    def judge_tables(self, base: Submission, name: str, own: Submission) -> Verdict:
        theirs = base.cells or {}
        if own.records:
            raise BadInput(f"{name} holds records, but the baseline is a table of results")
        if ("item" in theirs) != ("item" in (own.cells or {})):
            what = "single test items" if "item" in theirs else "one score per run"
            raise BadInput(f"the baseline has {what}, the submission has not")
        asked = replace(self.asked, baseline=BASELINE)
        return judge_results(Results(joined([theirs, own.cells or {}])), asked, name=name)


def records_judge(
    base: Mapping[int, Record], data: str | None = None, margin: float | None = None
) -> Callable[[str, Mapping[int, Record]], Verdict]:
    """Judges records of one variant, by seed, against those of a baseline: by what the test items are, which the data
    say."""
    from fairtrial.prepare import prepare
    from fairtrial.statistics.outcomes import LEAST, TaskOutcomes
    from fairtrial.statistics.verdict import judge_study
    from fairtrial.study import artifacts
    from fairtrial.study.design import METRIC
    from fairtrial.study.plan import check_same_cuts, check_same_items, check_same_texts

    first = next(iter(base.values()))
    place = data or first.recipe.data.source
    recipe = replace(first.recipe, data=replace(first.recipe.data, source=place))
    prepared = prepare(recipe, first.trial.seed)
    if prepared.corpus.files != first.trial.data:
        raise BadInput("the data here are not those of the baseline's records", "name them: --data PATH")
    tests = prepared.splits.tests
    groups = {name: prepared.groups(documents) for name, documents in tests.items()}
    items = {name: len(documents) for name, documents in tests.items()}
    least = LEAST[METRIC[recipe.task]] if margin is None else margin

    def outcomes(name: str, records: Mapping[int, Record]) -> dict[str, artifacts.SetOutcomes]:
        found = {seed: artifacts.proven_outcomes(record, items) for seed, record in records.items()}
        return artifacts.stacked(found, name, records)

    theirs = outcomes(BASELINE, base)

    def judge(name: str, own: Mapping[int, Record]) -> Verdict:
        one = next(iter(own.values()))
        if any(each.trial.data != first.trial.data for each in own.values()):
            raise BadInput("it was trained or tested on other data than the baseline")
        both = {BASELINE: recipe, name: replace(one.recipe, data=replace(one.recipe.data, source=place))}
        check_same_items(both)
        check_same_texts(both, first.trial.seed)
        check_same_cuts(both, recipe, prepared)
        artifacts.check_same_scoring([*base.values(), *own.values()])
        task = TaskOutcomes(
            task=recipe.task,
            baseline=BASELINE,
            least_difference=least,
            variants={BASELINE: theirs, name: outcomes(name, own)},
            labels=prepared.splits.labels,
            clusters={test: group for test, group in groups.items() if group is not None},
            training={name: artifacts.training_ends(own), BASELINE: artifacts.training_ends(base)},
        )
        return judge_study(name, {recipe.task: task})

    return judge


def submissions(folder: Path, baseline: Path) -> tuple[dict[str, Path], list[str]]:
    """Sub-folders and tables by their names, and other files, which are not read. The baseline may lie among them."""
    if not is_folder(folder):
        raise BadInput("expected a folder of submissions, found a file", path=folder)
    there = [each for each in entries(folder) if each.resolve() != baseline.resolve()]
    kept = [each for each in there if each.is_dir() or suffix_of(each) in TABLES]
    names = Counter(each.name if each.is_dir() else bare(each).stem for each in kept)
    found = {}
    for each in kept:
        short = each.name if each.is_dir() else bare(each).stem
        found[short if names[short] == 1 and short != BASELINE else each.name] = each
    if not found:
        raise BadInput(
            "there are no submissions", "each is a table of results, or a sub-folder of records", path=folder
        )
    return found, [each.name for each in there if each not in kept]


def chosen_records(found: Sequence[tuple[Record, str]], base: Sequence[Record]) -> dict[int, Record]:
    """The records of one variant, by seed; beside them those of the baseline may lie."""
    for record, problem in found:
        if problem or not record.complete:
            raise BadInput(f"{record.folder.name}: {problem or 'the training is not finished'}")
    by_recipe = defaultdict[str, list[Record]](list)
    for record, _ in found:
        by_recipe[record.trial.recipe].append(record)
    if len(by_recipe) > 1 and base:
        by_recipe.pop(base[0].trial.recipe, None)
    if len(by_recipe) > 1:
        raise BadInput(f"its records are of {len(by_recipe)} recipes", "hand in those of one variant")
    (records,) = by_recipe.values()
    seeds = Counter(record.trial.seed for record in records)
    if twice := [seed for seed, count in seeds.items() if count > 1]:
        raise BadInput(f"seed {twice[0]} was trained {seeds[twice[0]]} times", "hand in one record for each seed")
    if base and records[0].recipe.task != base[0].recipe.task:
        raise BadInput(f"it is a recipe for {records[0].recipe.task}, the baseline for {base[0].recipe.task}")
    return {record.trial.seed: record for record in records}


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """One row for each submission and test set. What a student wrote is never a formula of a spreadsheet."""
    file = StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(name for each in rows for name in each)), lineterminator="\n")
    writer.writeheader()
    for each in rows:
        texts = {name: value for name, value in each.items() if isinstance(value, str) and value[:1] in "=+-@\t"}
        writer.writerow({**each, **{name: f"'{value}" for name, value in texts.items() if value}})
    return file.getvalue()


# copies


def record_traces(owner: str, record: Record) -> Iterator[Trace]:
    from safetensors.numpy import load

    arrays = record.outcomes()
    for name in sorted(arrays):
        if name.endswith(("/log_p", "/nll")):
            yield Trace(
                owner, "outcomes", f"{name} {arrays[name].shape}", arrays[name].astype(float).ravel(), trained=True
            )
    losses = np.array([event.loss for event in record.events() if isinstance(event, Stepped)])
    yield Trace(owner, "curves", str(len(losses)), losses, trained=True)
    tensors = load(record.weights())
    flat = np.concatenate([tensors[name].astype(float).ravel() for name in sorted(tensors)])
    about = str([(name, tensors[name].shape) for name in sorted(tensors)])
    yield Trace(owner, "weights", about, flat[:: max(1, len(flat) // SAMPLED)], trained=True)


def table_traces(owner: str, results: Results) -> Iterator[Trace]:
    rows = results.rows
    own = rows["test"].joined(rows["metric"]).joined(rows["column"])
    value = rows.numbers["value"]
    if "item" in rows.texts and (answers := rows.lacks("value") if "value" in rows.texts else np.isnan(value)).any():
        label, guess = (np.array(rows[name].values, object)[rows[name].codes] for name in ("label", "prediction"))
        value = np.where(answers, label == guess, value)
    steps = not np.isnan(rows.numbers["step"]).all()
    if "item" not in rows.texts and not steps:
        kept, _ = final_scores(rows)
        order = np.argsort(kept["seed"].codes, kind="stable")
        yield Trace(owner, "scores", f"{len(order)} {kept['seed'].values}", kept.numbers["value"][order])
        return
    runs = rows["seed"].joined(rows["run"]).codes
    names = np.array([str(each) for each in rows["item"].values])[rows["item"].codes] if "item" in rows.texts else None
    places = rows.numbers["step"] if names is None else names
    tests = np.array(own.values, object)[own.codes].astype(str)
    for run in np.unique(runs):
        at = np.flatnonzero(runs == run)
        at = at[np.lexsort((places[at], tests[at]))]
        about = f"{hash((*places[at].tolist(), *tests[at].tolist()))}"
        yield Trace(owner, "curves" if names is None else "outcomes", about, value[at])


def copies(traces: Sequence[Trace]) -> dict[str, list[str]]:
    """What each submission shares with others, with the baseline, or between seeds of its own."""
    groups = defaultdict[tuple[str, str], list[Trace]](list)
    for each in traces:
        groups[each.kind, each.about].append(each)
    shared = defaultdict[tuple[str, str], dict[str, str]](dict)
    for (kind, _), runs in groups.items():
        for one, other, word in alike(kind, runs):
            pair = (one.owner, other.owner) if one.owner <= other.owner else (other.owner, one.owner)
            shared[pair].setdefault(kind, word)
    told = defaultdict[str, list[str]](list)
    for (one_name, other_name), kinds in shared.items():
        by_word = {word: [kind for kind in kinds if kinds[kind] == word] for word in dict.fromkeys(kinds.values())}
        what = "; ".join(f"{listed(own)} {word}" for word, own in by_word.items())
        for whose, its in ((one_name, other_name), (other_name, one_name)):
            name = "another seed of its own" if whose == its else "the baseline" if its == BASELINE else its
            if f"{name}: {what}" not in told[whose]:
                told[whose].append(f"{name}: {what}")
    told.pop(BASELINE, None)
    return told


def alike(kind: str, runs: Sequence[Trace]) -> Iterator[tuple[Trace, Trace, str]]:
    """Pairs of runs that chance does not bring so close, and the word for it."""
    pairs = list(combinations(range(len(runs)), 2))
    values = np.array([each.values for each in runs])
    if kind == "scores":
        yield from same_scores(runs, values)
        return
    if values.shape[1] < FEWEST or not pairs:
        return
    gaps = {at: np.abs(values[at + 1 :] - values[at]).mean(1) for at in range(len(runs) - 1)}
    distance = np.array([gaps[one][other - one - 1] for one, other in pairs])
    own = np.array([runs[one].owner == runs[other].owner == BASELINE for one, other in pairs])
    usual = float(np.median(distance[own] if own.any() else distance))
    size, count = float(np.abs(values).mean()), values.shape[1]
    near = 0.0 if runs[0].trained else NEAR
    binary = kind == "outcomes" and bool(np.isin(values, (0.0, 1.0)).all())
    for (one, other), gap in zip(pairs, distance.tolist(), strict=True):
        if ((runs[one].owner == BASELINE) and (runs[other].owner == BASELINE)) or values[one].std() == 0:
            continue
        if binary and pdtr(gap * count, usual * count) * len(pairs) > CHANCE:
            continue  # of few items, or easy ones, two honest runs may agree
        if gap == 0:
            yield runs[one], runs[other], "identical"
        elif gap <= (NEAR_WEIGHTS * size if kind == "weights" else near * usual):
            yield runs[one], runs[other], "nearly identical"


def same_scores(runs: Sequence[Trace], values: Array) -> Iterator[tuple[Trace, Trace, str]]:
    """Scores of runs are rounded, so that some are equal by chance: how often is seen in all other pairs."""
    equal = {pair: values[pair[0]] == values[pair[1]] for pair in combinations(range(len(runs)), 2)}
    total, cells = sum(int(each.sum()) for each in equal.values()), sum(len(each) for each in equal.values())
    for (one, other), same in equal.items():
        usual = (total - int(same.sum()) + 1) / (cells - len(same) + 2)
        if same.all() and usual ** len(same) * len(equal) < CHANCE:
            yield runs[one], runs[other], "identical"


def scheme_of(points: Mapping[str, object]) -> dict[VerdictKind, float]:
    """Points by verdict: without any, 1 for what could be judged."""
    names = {kind.value.replace("_", "-"): kind for kind in VerdictKind}
    try:
        given = {names[str(name).replace("_", "-")]: float(str(value)) for name, value in points.items()}
    except (KeyError, ValueError):
        raise BadInput(f"points must be numbers by verdict: {dict(points)}", f"verdicts: {', '.join(names)}") from None
    if given and max(given.values()) <= 0:
        raise BadInput(f"points must be above 0 for some verdict: {dict(points)}")
    return {kind: given.get(kind, 0.0 if given else 1.0) for kind in VerdictKind}


def grade_folder(
    folder: Path,
    baseline: Path,
    asked: Asked,
    reading: tuple[Mapping[str, str], Sequence[str]],
    points: Mapping[str, object],
    data: str | None,
    count: int,
    on_status: Callable[[str], None],
) -> Grades:
    """All of a class."""
    columns, metrics = reading
    how = Reading(check_columns(columns), metrics)
    place = baseline if baseline.exists() or not (folder / baseline).exists() else folder / baseline
    return Grading(place, how, asked, data, scheme_of(points)).grade(folder, count, on_status)
