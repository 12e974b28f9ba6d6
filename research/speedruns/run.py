"""Which records of a public training contest are secured? Judged from its logs alone; nothing is trained.

`trainings.csv`, beside this script, is derived from the contest's logs: one line per training. Where
`FAIRTRIAL_DATA` has `speedrun/val_losses.csv`, it is made anew; otherwise the page is written from it."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import fairtrial as ft
from pages import COLOURS, GREY, WORDS, find_data, holm, save_figure, table, write_sections

HERE = Path(__file__).parent
TARGET = 3.28
TRACKS = {"track_1_short": "Track 1 (least time)", "track_3_optimization": "Track 3 (least steps)"}
REFERENCE = re.compile(r"baseline|prior|master|comparison|extra", re.IGNORECASE)  # brought beside the own proposal
ENOUGH = 5  # runs on both sides, for better or worse


@dataclass(frozen=True)
class Training:
    track: str
    submission: str
    run: str
    planned: int  # steps
    stopped: int  # the last step that was scored
    loss: float  # there
    steps: float  # to the target, interpolated on the curve; nan: never
    minutes: float  # likewise


class Scored(NamedTuple):
    step: int
    loss: float
    milliseconds: float


class Arm(NamedTuple):
    """Trainings of one submission that were planned alike."""

    track: str
    submission: str
    stopped: int
    trainings: tuple[Training, ...]

    @property
    def name(self) -> str:
        return self.submission.removeprefix("results/")

    @property
    def day(self) -> date:
        digits = re.sub(r"\D", "", re.match(r"[\d-]{8,10}", self.name)[0])  # type: ignore[index]
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))

    def numbers(self, field: str) -> np.ndarray:
        return np.array([getattr(each, field) for each in self.trainings], float)

    @property
    def p_of_rule(self) -> float | None:
        """Of "the mean is not below the target": the contest's own rule."""
        losses = self.numbers("loss")
        if len(losses) < 2:
            return None
        return float(stats.ttest_1samp(losses, TARGET, alternative="less").pvalue)


class Step(NamedTuple):
    """One record beside the record before it."""

    record: Arm
    before: Arm
    comparisons: dict[str, ft.Comparison]  # by what is compared: minutes, steps, loss


def main() -> None:
    trainings, logs, copies, early = read_trainings()
    arms = arms_of(trainings)
    chains = {track: records_of(arms, track) for track in TRACKS}
    deciding = {"track_1_short": "minutes", "track_3_optimization": "steps"}
    judged = {track: judge(chain, deciding[track]) for track, chain in chains.items()}
    draw(chains, judged, deciding)
    sections = {
        "The answer": answer(arms, chains, judged, deciding),
        "The contest's own rule": own_rule(arms),
        "Each record against the one before": "\n\n".join(
            f"**{TRACKS[track]}**\n\n{record_table(judged[track])}" for track in TRACKS
        ),
        "How much of the gain is secured": secured_table(chains, judged, deciding),
        "Single runs": single_runs(arms),
        "How many runs would do": runs_needed(arms, chains, deciding),
        "Does the spread differ between submissions?": spread_section(arms),
        "Three rows by hand": by_hand(arms, judged),
        "Data": (
            f"{logs:,} log files hold {len(trainings) + copies + early:,} trainings: some logs hold several, one after"
            f" another. {copies} are left out because an earlier submission holds the same run, or the same curve under"
            f" another name. {early} stopped before their planned last step while the rest of their submission went on;"
            " they are left out, too. A stop that at least three trainings of a submission share is taken as"
            f" planned. {len(trainings):,} remain, in `trainings.csv`. Made by fairtrial {ft.__version__}."
        ),
    }
    write_sections(HERE / "README.md", sections)


def read_trainings() -> tuple[list[Training], int, int, int]:
    """Trainings, and how many log files, copies and early stops there were; from the rounded file."""
    stored, place = HERE / "trainings.csv", find_data("speedrun")
    if place is not None:
        derive(Path(place, "val_losses.csv"), stored)
    lines = stored.read_text(encoding="utf-8").splitlines()
    logs, copies, early = (int(number) for number in re.findall(r"\d+", lines[0]))
    kinds = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(Training)}
    rows = csv.DictReader(lines[1:])
    return [Training(**{name: kinds[name](row[name]) for name in kinds}) for row in rows], logs, copies, early


def derive(source: Path, stored: Path) -> None:
    logs = defaultdict(list)
    for row in csv.DictReader(source.read_text(encoding="utf-8").splitlines()):
        if row["track"] in TRACKS:
            logs[row["track"], row["submission"], row["run"]].append(row)
    trainings, copies, seen = [], 0, set()
    for (track, submission, run), lines in sorted(logs.items(), key=lambda each: in_order(*each[0])):
        for number, curve in enumerate(split_log(lines)):
            points = tuple((point.step, point.loss) for point in curve)
            end = (submission, curve[-1].step, round(curve[-1].loss, 4))
            if (points in seen and len(points) > 1) or (end in seen and len(points) == 1):
                copies += 1
                continue
            seen |= {points} if len(points) == 1 else {points, end}
            name = f"{run}#{number}" if number else run
            trainings.append(training_of(track, submission, name, int(lines[0]["steps"]), curve))
    stops = Counter((each.track, each.submission, each.stopped) for each in trainings)
    kept = [
        each
        for each in trainings
        if each.stopped == each.planned or stops[each.track, each.submission, each.stopped] >= 3
    ]
    with stored.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# {len(logs)} log files, {copies} copies, {len(trainings) - len(kept)} early stops\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Training)])
        writer.writerows(
            [f"{cell:.6g}" if isinstance(cell, float) else cell for cell in astuple(each)] for each in kept
        )


def in_order(track: str, submission: str, run: str) -> tuple[object, ...]:
    """By date; within a submission deeper folders first, and whole curves before a file that has the last loss only."""
    top = "/".join(submission.split("/")[: 2 if track == "track_3_optimization" else 1])
    return track, top, -submission.count("/"), submission, run == "final_val_loss", run


def split_log(lines: list[dict[str, str]]) -> Iterable[list[Scored]]:
    """A log that starts again at an earlier step holds one more training."""
    curve: list[Scored] = []
    for line in lines:
        point = Scored(int(line["step"]), float(line["val_loss"]), float(line["train_ms"] or "nan"))
        if curve and point.step <= curve[-1].step:
            yield curve
            curve = []
        curve.append(point)
    yield curve


def training_of(track: str, submission: str, run: str, planned: int, curve: Sequence[Scored]) -> Training:
    """With the steps and the time to the target: between two scored steps on a line; a curve that ends just above goes
    on along its last piece, at most as far again as that piece is long."""
    last = curve[-1]
    steps = minutes = math.nan
    for left, right in itertools.pairwise(curve):
        share = (left.loss - TARGET) / (left.loss - right.loss) if left.loss > right.loss else math.nan
        if right.loss <= TARGET < left.loss or (right is last and right.loss > TARGET and share <= 2):
            steps = left.step + share * (right.step - left.step)
            minutes = (left.milliseconds + share * (right.milliseconds - left.milliseconds)) / 60_000
            break
    return Training(track, submission, run, planned, last.step, last.loss, steps, minutes)


def arms_of(trainings: Iterable[Training]) -> list[Arm]:
    groups = defaultdict(list)
    for each in trainings:
        submission = re.sub(r"/(seed_\d+|logs|runs|code_logs|stdout)$", "", each.submission)
        own = "/comparison" if each.run.startswith("comparison") else ""
        groups[each.track, submission + own, each.stopped].append(each)
    return [Arm(*key, tuple(group)) for key, group in groups.items() if re.match(r"(results/)?\d", key[1])]


def records_of(arms: Iterable[Arm], track: str) -> list[Arm]:
    """By date, every submission whose proposal reaches the target with less time or steps (on average) than all before.
    Of several proposals in one submission, the one that needs least and stays below the target on average."""
    field = "minutes" if track == "track_1_short" else "steps"
    proposals: dict[str, Arm] = {}
    for arm in arms:
        reached = arm.numbers(field)
        if arm.track != track or REFERENCE.search(arm.name) or arm.numbers("loss").mean() >= TARGET:
            continue
        if not np.isfinite(reached).all():
            continue
        top = arm.name.split("/")[0]
        if top not in proposals or reached.mean() < proposals[top].numbers(field).mean():
            proposals[top] = arm
    chain: list[Arm] = []
    for arm in sorted(proposals.values(), key=lambda each: (each.day, each.name)):
        if not chain or arm.numbers(field).mean() < chain[-1].numbers(field).mean():
            chain.append(arm)
    return chain


def judge(chain: Sequence[Arm], deciding: str) -> list[Step]:
    """Every record beside the one before; the deciding comparison is corrected over the track (Holm)."""
    steps = []
    for before, record in itertools.pairwise(chain):
        asked = {"minutes": ["minutes", "steps"], "steps": ["steps"]}[deciding]
        asked = [*asked, "loss"] if before.stopped == record.stopped else asked
        steps.append(Step(record, before, {name: compare(record, before, name) for name in asked}))
    return steps


def compare(record: Arm, before: Arm, field: str) -> ft.Comparison:
    """Of times and steps the logarithm, so that a difference is a share."""
    sides = [arm.numbers(field) if field == "loss" else np.log(arm.numbers(field)) for arm in (record, before)]
    return ft.compare_runs(*sides, metric=f"log {field}", higher_is_better=False, names=(record.name, before.name))


def verdicts(steps: Sequence[Step], deciding: str) -> list[ft.VerdictKind]:
    """After correction over all records of the track."""
    rows = [step.comparisons[deciding] for step in steps]
    enough = [min(row.runs or (0, 0)) >= ENOUGH for row in rows]
    adjusted = holm([row.p if row.p is not None and ok else 1.0 for row, ok in zip(rows, enough, strict=True)])
    return [
        (ft.VerdictKind.BETTER if (row.gain or 0) > 0 else ft.VerdictKind.WORSE)
        if ok and p < 0.05
        else ft.VerdictKind.UNDECIDED
        for row, ok, p in zip(rows, enough, adjusted, strict=True)
    ]


def share(comparison: ft.Comparison) -> str:
    """-3.1% [-3.4, -2.8]"""
    value = comparison.difference
    if value.estimate is None or not math.isfinite(value.estimate):
        return "–"
    ends = [100 * math.expm1(each) for each in (value.low, value.high) if each is not None and math.isfinite(each)]
    return f"{100 * math.expm1(value.estimate):+.1f}%" + (f" [{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else "")


def record_table(steps: Sequence[Step]) -> str:
    deciding = next(iter(steps[0].comparisons))
    rows = []
    for step, kind in zip(steps, verdicts(steps, deciding), strict=True):
        loss = step.comparisons.get("loss")
        rows.append(
            [
                step.record.name,
                " / ".join(str(len(arm.trainings)) for arm in (step.record, step.before)),
                share(step.comparisons["minutes"]) if deciding == "minutes" else "–",
                share(step.comparisons["steps"]),
                "–" if loss is None else f"{loss.difference.estimate:+.4f}",
                WORDS[kind],
            ]
        )
    return table(["record", "runs / before", "time to 3.28", "steps to 3.28", "loss at equal steps", deciding], rows)


def secured(chain: Sequence[Arm], field: str) -> list[Arm]:
    """From the first record with enough runs on: each next one that is better than the last secured one, tested at 5%
    over as many tests as there are records (Bonferroni)."""
    kept: list[Arm] = []
    for arm in chain:
        if len(arm.trainings) < ENOUGH:
            continue
        if not kept:
            kept.append(arm)
            continue
        row = compare(arm, kept[-1], field)
        if row.p is not None and row.p * len(chain) < 0.05 and (row.gain or 0) > 0:
            kept.append(arm)
    return kept


def log_gain(first: Arm, last: Arm, field: str) -> float:
    return float(np.log(first.numbers(field).mean()) - np.log(last.numbers(field).mean()))


def secured_table(chains: dict[str, list[Arm]], judged: dict[str, list[Step]], deciding: dict[str, str]) -> str:
    rows = []
    for track, chain in chains.items():
        field, steps = deciding[track], judged[track]
        kinds = verdicts(steps, field)
        better = [step for step, kind in zip(steps, kinds, strict=True) if kind is ft.VerdictKind.BETTER]
        few = [step for step in steps if min(len(step.record.trainings), len(step.before.trainings)) < ENOUGH]
        total = log_gain(chain[0], chain[-1], field)
        kept = secured(chain, field)
        rows.append(
            [
                TRACKS[track],
                f"{chain[0].numbers(field).mean():.4g} to {chain[-1].numbers(field).mean():.4g} {field}",
                f"{len(better)} of {len(steps)}",
                f"{sum(log_gain(step.before, step.record, field) for step in better) / total:.0%}",
                f"{sum(log_gain(step.before, step.record, field) for step in few) / total:.0%}",
                f"{len(kept)}: {kept[0].name} to {kept[-1].name}",
                f"{log_gain(kept[0], kept[-1], field) / total:.0%}",
            ]
        )
    return table(
        [
            "track",
            "gain in the logs",
            "records better than the one before",
            "their share of the gain",
            f"share of steps with fewer than {ENOUGH} runs on a side",
            "secured chain",
            "its share of the gain",
        ],
        rows,
    ) + (
        "\n\nShares are of the logarithm of time or steps. The secured chain begins at the first record with"
        f" {ENOUGH} runs; each next link is better than the last one, at 5% over the whole track. Several small steps"
        " together can be secured where no single one is."
    )


def aiming(arms: Iterable[Arm], track: str) -> list[Arm]:
    """Groups that aim at the target: their mean is within 0.01 of it."""
    return [arm for arm in arms if arm.track == track and abs(arm.numbers("loss").mean() - TARGET) < 0.01]


def proposals(arms: Iterable[Arm], track: str) -> list[Arm]:
    return [arm for arm in aiming(arms, track) if not REFERENCE.search(arm.name)]


def own_rule(arms: Sequence[Arm]) -> str:
    rows = []
    for track, title in TRACKS.items():
        mine = proposals(arms, track)
        several = [arm for arm in mine if arm.p_of_rule is not None]
        p = [arm.p_of_rule or 0.0 for arm in several]
        below = [arm for arm in several if arm.numbers("loss").mean() < TARGET]
        met = sum(each < 0.01 for each in p)
        rows.append(
            [
                title,
                len(mine),
                len(mine) - len(several),
                met,
                sum(each < 0.01 for each in holm(p)),
                len(below) - met,
                len(several) - len(below),
            ]
        )
    columns = [
        "track",
        "groups of runs",
        "a single run",
        "p < 0.01",
        "p < 0.01 after correction (Holm)",
        "below 3.28, not shown",
        "mean above 3.28",
    ]
    failed = [
        [arm.name, len(arm.trainings), f"{arm.numbers('loss').mean():.4f}", f"{arm.p_of_rule:.3f}"]
        for track in TRACKS
        for arm in proposals(arms, track)
        if arm.p_of_rule is not None and arm.p_of_rule >= 0.01 and arm.numbers("loss").mean() < TARGET
    ]
    return (
        "The mean validation loss must be below 3.28 at p < 0.01 (one-sided t-test over runs). Baselines that"
        " submissions bring are left out, and so are groups whose mean is more than 0.01 from 3.28: they aimed at"
        f" something else.\n\n{table(columns, rows)}\n\nBelow 3.28 on average, and not shown at p < 0.01:\n\n"
        + table(["submission", "runs", "mean loss", "p"], failed)
    )


def typical_spread(arms: Iterable[Arm], field: str = "loss") -> float:
    """Median over groups of the standard deviation of runs; of times and steps, of the logarithm. A median,
    which a few wide groups do not decide."""
    spreads = []
    for arm in arms:
        values = arm.numbers(field) if field == "loss" else np.log(arm.numbers(field))
        if len(values) >= ENOUGH and np.isfinite(values).all():
            spreads.append(values.std(ddof=1))
    return float(np.median(spreads))


def pooled_spread(arms: Iterable[Arm], field: str = "loss") -> float:
    """The same from all runs at once: a few wide groups decide it."""
    known = [arm for arm in arms if len(arm.trainings) >= ENOUGH]
    values = [arm.numbers(field) if field == "loss" else np.log(arm.numbers(field)) for arm in known]
    squares = [((each - each.mean()) ** 2).sum() for each in values if np.isfinite(each).all()]
    return math.sqrt(sum(squares) / sum(len(each) - 1 for each in values if np.isfinite(each).all()))


def chance_with_prior(arm: Arm, groups: Sequence[Arm], spread: float) -> float:
    """Of a true mean at or above the target, if single runs came from the same submissions as groups of runs (empirical
    Bayes). These groups are mostly ones that were shown to be below it, so this is a lower limit."""
    means = np.array([each.numbers("loss").mean() for each in groups])
    noise = float(np.mean([spread**2 / len(each.trainings) for each in groups]))
    between = max(float(means.var(ddof=1)) - noise, 1e-12)
    weight = between / (between + spread**2)
    centre = means.mean() + weight * (arm.trainings[0].loss - means.mean())
    return float(stats.norm.sf(TARGET, centre, math.sqrt(weight) * spread))


def single_runs(arms: Sequence[Arm]) -> str:
    rows, expected = [], []
    for track, title in TRACKS.items():
        spread = typical_spread(proposals(arms, track))
        alone = [arm for arm in proposals(arms, track) if len(arm.trainings) == 1]
        chances = [float(stats.norm.sf(TARGET, arm.trainings[0].loss, spread)) for arm in alone]
        rows += list(zip(chances, alone, strict=True))
        below = [chance for chance, arm in zip(chances, alone, strict=True) if arm.trainings[0].loss < TARGET]
        groups = [arm for arm in proposals(arms, track) if len(arm.trainings) >= ENOUGH]
        single = [arm for arm in alone if arm.trainings[0].loss < TARGET]
        least = sum(chance_with_prior(arm, groups, spread) for arm in single)
        expected.append(f"{title}: {least:.1f} to {sum(below):.1f} of {len(below)}")
    rows.sort(key=lambda row: -row[0])
    text = (
        "One run below 3.28 may be luck. With the spread of runs as it is where there are at least"
        f" {ENOUGH} (its median over groups), so many of the single runs below 3.28 are expected to have a true mean at"
        f" or above it: {'; '.join(expected)}. The answer depends on the prior. The upper number has no opinion"
        " beforehand. The lower one takes single runs to be like groups of runs, nearly all of which were submitted"
        " because they are below 3.28. The likeliest by the upper one, with runs above 3.28:\n\n"
    )
    return text + table(
        ["submission", "loss", "chance that its mean is at or above 3.28"],
        [[arm.name, f"{arm.trainings[0].loss:.4f}", f"{chance:.0%}"] for chance, arm in rows[:15]],
    )


def fewest(effect: float, alpha: float, sides: int) -> int:
    """Runs (of each group) that show a difference of `effect` standard deviations in 4 of 5 cases."""
    for count in range(2, 10_000):
        freedom = sides * (count - 1)
        noncentral = effect * math.sqrt(count / sides)
        limit = stats.t.ppf(1 - alpha / sides, freedom)
        if stats.nct.sf(limit, freedom, noncentral) >= 0.8:
            return count
    return 10_000


def runs_needed(arms: Sequence[Arm], chains: dict[str, list[Arm]], deciding: dict[str, str]) -> str:
    rows, pooled = [], []
    for track, chain in chains.items():
        groups = [arm for arm in proposals(arms, track) if len(arm.trainings) >= ENOUGH]
        spread = typical_spread(groups)
        margin = float(np.median([TARGET - arm.numbers("loss").mean() for arm in groups]))
        field = deciding[track]
        within = typical_spread(chain, field)
        late = chain[len(chain) // 2 :]
        gain = float(np.median([log_gain(a, b, field) for a, b in itertools.pairwise(late)]))
        pooled.append(
            f"{TRACKS[track]}: {fewest(margin / pooled_spread(groups), 0.01, 1)} runs to show the distance,"
            f" {fewest(gain / pooled_spread(chain, field), 0.05, 2)} on each side to show the gain"
        )
        rows.append(
            [
                TRACKS[track],
                f"{spread:.4f}",
                f"{margin:.4f}",
                fewest(margin / spread, 0.01, 1),
                f"{within:.2%}",
                f"{gain:.2%}",
                fewest(gain / within, 0.05, 2),
            ]
        )
    return (
        table(
            [
                "track",
                "spread of the loss over runs",
                "median distance below 3.28",
                "runs to show it (p < 0.01)",
                "spread of the deciding number",
                "median gain of a later record",
                "runs on each side to show it",
            ],
            rows,
        )
        + "\n\nIn 4 of 5 cases. Gains are of the later half of the records; no correction for several records. The"
        " spread is the median over groups. Pooled over all runs, which a few wide groups decide, it asks for more: "
        + "; ".join(pooled)
        + "."
    )


def spread_section(arms: Sequence[Arm]) -> str:
    rows = []
    for track, title in TRACKS.items():
        groups = [arm for arm in aiming(arms, track) if len(arm.trainings) >= ENOUGH]
        losses = [arm.numbers("loss") for arm in groups]
        spreads = np.array([values.std(ddof=1) for values in losses])
        p = stats.levene(*losses, center="median").pvalue
        top = groups[int(spreads.argmax())]
        rng = np.random.default_rng(0)
        drawn = [
            np.quantile(each, 0.9) / np.quantile(each, 0.1)
            for each in ([rng.normal(size=len(values)).std(ddof=1) for values in losses] for _ in range(2000))
        ]
        seen = np.quantile(spreads, 0.9) / np.quantile(spreads, 0.1)
        rows.append(
            [
                title,
                len(groups),
                f"{np.median(spreads):.4f}",
                f"{seen:.1f}",
                f"{np.median(drawn):.1f} [{np.quantile(drawn, 0.025):.1f}, {np.quantile(drawn, 0.975):.1f}]",
                f"{p:.2g}",
                f"{top.name} ({spreads.max():.4f})",
            ]
        )
    return table(
        [
            "track",
            "groups",
            "median standard deviation",
            "90% / 10% quantile",
            "the same if all were equal",
            "p (Brown-Forsythe)",
            "widest",
        ],
        rows,
    )


def by_hand(arms: Sequence[Arm], judged: dict[str, list[Step]]) -> str:
    """Raw numbers of three rows, with the arithmetic."""
    parts = []
    rule = next(arm for arm in arms if arm.name == "2025-09-03_FA3")
    losses = rule.numbers("loss")
    t = (losses.mean() - TARGET) / (losses.std(ddof=1) / math.sqrt(len(losses)))
    parts.append(
        f"1. Own rule, {rule.name}. Losses {', '.join(f'{x:.4f}' for x in losses)}: mean {losses.mean():.5f}, standard"
        f" deviation {losses.std(ddof=1):.5f}, t = ({losses.mean():.5f} - 3.28) / ({losses.std(ddof=1):.5f} /"
        f" √{len(losses)}) = {t:.2f} with {len(losses) - 1} degrees of freedom, one-sided p ="
        f" {stats.t.cdf(t, len(losses) - 1):.2g}."
    )
    for number, (track, field) in enumerate((("track_1_short", "minutes"), ("track_3_optimization", "steps")), 2):
        rows = [s for s in judged[track] if min(len(s.record.trainings), len(s.before.trainings)) >= ENOUGH]
        step = min(rows, key=lambda s: len(s.record.trainings) + len(s.before.trainings))
        sides = [step.record.numbers(field), step.before.numbers(field)]
        logs = [np.log(side) for side in sides]
        difference = logs[0].mean() - logs[1].mean()
        error = math.sqrt(sum(side.var(ddof=1) / len(side) for side in logs))
        p = stats.ttest_ind(*logs, equal_var=False).pvalue
        listed = ["; ".join(f"{x:.5g}" for x in side) for side in sides]
        parts.append(
            f"{number}. {step.record.name} against {step.before.name}, {field} to 3.28. New: {listed[0]}. Before:"
            f" {listed[1]}. Means of logarithms {logs[0].mean():.5f} and {logs[1].mean():.5f}: difference"
            f" {difference:+.5f} ({math.expm1(difference):+.2%}), standard error {error:.5f}, Welch's p = {p:.2g};"
            f" fairtrial: {step.comparisons[field].p:.2g}."
        )
    return "\n".join(parts)


def answer(
    arms: Sequence[Arm], chains: dict[str, list[Arm]], judged: dict[str, list[Step]], deciding: dict[str, str]
) -> str:
    lines = []
    for track, title in TRACKS.items():
        steps, field = judged[track], deciding[track]
        kinds = verdicts(steps, field)
        few = sum(min(len(s.record.trainings), len(s.before.trainings)) < ENOUGH for s in steps)
        better = kinds.count(ft.VerdictKind.BETTER)
        kept, chain = secured(chains[track], field), chains[track]
        part = log_gain(kept[0], kept[-1], field) / log_gain(chain[0], chain[-1], field)
        lines.append(
            f"- **{title}**: {better} of {len(steps)} records are better than the one before; {few} have fewer than"
            f" {ENOUGH} runs on a side and cannot be judged; judged and undecided: {len(steps) - better - few}."
            f" A chain of {len(kept)} records, each better than the last, secures {part:.0%} of"
            " the whole gain."
        )
    figure = (
        "![each record with its interval, coloured by verdict](progress.svg)\n\n"
        "The figure: where each track stands, and the gain of each record over the one before with its 95% interval."
        " Numbers at the upper edge are gains beyond it, in percent."
    )
    return "\n".join([*lines, "", figure])


def draw(chains: dict[str, list[Arm]], judged: dict[str, list[Step]], deciding: dict[str, str]) -> None:
    """By record: where the track stands, and the gain over the one before with its interval."""
    figure = Figure(figsize=(9, 11), facecolor="white", layout="constrained")
    panels = figure.subplots(4, 1, height_ratios=[2, 3, 2, 3])
    for number, (track, chain) in enumerate(chains.items()):
        field, steps = deciding[track], judged[track]
        level, gains = panels[2 * number], panels[2 * number + 1]
        level.plot([arm.numbers(field).mean() for arm in chain], color=GREY, marker=".", linewidth=0.8)
        level.set(yscale="log", ylabel=f"{field} to {TARGET}")
        level.set_title(TRACKS[track], fontsize=10, loc="left")
        ticks = (1, 1.5, 2, 3, 5, 8, 12, 20, 30, 2800, 3300, 4000, 4800)
        low, high = level.get_ylim()
        level.set_yticks([tick for tick in ticks if low < tick < high], minor=False)
        level.minorticks_off()
        level.yaxis.set_major_formatter("{x:g}")
        labels = set()
        for place, (step, kind) in enumerate(zip(steps, verdicts(steps, field), strict=True), 1):
            value = step.comparisons[field].difference
            few = min(len(step.record.trainings), len(step.before.trainings)) < ENOUGH
            better = kind is ft.VerdictKind.BETTER
            label = f"fewer than {ENOUGH} runs on a side" if few else "better" if better else "undecided"
            ends = [-100 * math.expm1(each) for each in (value.high, value.low) if each is not None and not few]
            middle = -100 * math.expm1(value.estimate or 0.0)
            colour = COLOURS[kind] if better else GREY
            if ends:
                gains.plot([place, place], ends, color=colour, linewidth=1.6)
            gains.plot(
                [place],
                [middle],
                marker="x" if few else "o",
                color=colour,
                markerfacecolor=colour if better else "white",
                linestyle="none",
                markersize=5,
                label=None if label in labels else label,
            )
            labels.add(label)
        gains.axhline(0, color="black", linewidth=0.8)
        gains.set(xlim=level.get_xlim(), ylim=(-1.5, 9), ylabel=f"gain in {field} (%)", xlabel="record number, by date")
        beyond = [(i, step.comparisons[field].difference.estimate) for i, step in enumerate(steps, 1)]
        for place, estimate in beyond:
            if estimate is not None and -100 * math.expm1(estimate) > 9:
                gains.annotate(f"{-100 * math.expm1(estimate):.0f}", (place, 8.7), fontsize=7, ha="center", va="top")
        gains.legend(frameon=False, fontsize=8, loc="upper right")
    save_figure(figure, HERE / "progress.svg")


if __name__ == "__main__":
    main()
