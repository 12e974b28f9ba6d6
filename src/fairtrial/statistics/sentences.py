"""Verdicts in plain, exact sentences: of one comparison, of several that agree, of everything else worth knowing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.statistics.comparison import FEWEST_SEEDS, Comparison, Verdict
from fairtrial.statistics.crossed import Shares
from fairtrial.statistics.multiplicity import ALPHA
from fairtrial.statistics.outcomes import LANGUAGE, METRICS, UNAUDITED, TaskOutcomes, is_accuracy
from fairtrial.statistics.power import MoreSeeds, reach_of

NEEDED = f"A verdict needs {FEWEST_SEEDS}; a single seed raises a false alarm in up to 41% of cases."
FEW_ITEMS = 30  # below this, an interval is rough
VOCABULARIES_DIFFER = (
    "Vocabularies differ, so bits per byte are compared, which count every byte (unknown words by their spelling), and"
    " not perplexities, which are about different tokens."
)

Rows = list[dict[str, Any]]
VERBS = {
    "loses": ("loses to", "lose to"),
    "below": ("scores worse, though not clearly, than", "score worse, though not clearly, than"),
    "equal": ("scores the same as", "score the same as"),
    "above": ("scores better, though not clearly, than", "score better, though not clearly, than"),
    "beats": ("beats", "beat"),
}


def about(more: MoreSeeds) -> str:
    """`about 10`; `more than 100` is rough already."""
    return str(more) if str(more).startswith("more than") else f"about {more}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def score_words(metric: str, value: float) -> str:
    """`85.2%`, `374.6`, `1.234`"""
    value = round(value, 9)  # two sums of the same numbers must not round to different sides of a half
    if is_accuracy(metric) or metric == "macro-F1":
        return f"{value:.1f}%"
    return f"{value:.1f}" if metric == "perplexity" else f"{value:.3f}"


def change(metric: str, value: float, signed: bool = True) -> str:
    """A difference in the metric's unit; of perplexity in per cent."""
    if metric == "perplexity":
        share = 100 * math.expm1(min(700.0, value))
        return f"{_number(share, signed, 1)}%"
    if is_accuracy(metric) or metric == "macro-F1":
        number = _number(value, signed, 1)
        return f"{number} point{'' if number == '1' else 's'}"
    unit = "nats per item" if metric == "log loss" else metric
    return f"{_number(value, signed, 3)} {unit}"


def bare(metric: str, value: float) -> str:
    """A bound of an interval, without its unit but for per cent."""
    return change(metric, value).split(" ")[0]


def p_words(p: float) -> str:
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def describe_difference(comparison: Comparison, p_adjusted: float | None = None, family: int = 1) -> str:
    """`accuracy +0.7 points (95% interval -0.4 to +1.7, p = 0.20; 12 seeds, 750 items)`"""
    metric = comparison.metric.name
    if comparison.difference is None:
        return ""
    inside = []
    if comparison.test is not None:
        low, high = comparison.test.interval()
        inside.append(f"95% interval {bare(metric, low)} to {bare(metric, high)}")
        if p_adjusted is not None:
            among = f" after correction for {family} comparisons" if family > 1 else ""
            inside[0] += f", {p_words(p_adjusted)}{among}"
    items = counted(comparison.items, "item" if comparison.subset == "all" else f"{comparison.subset} item")
    groups = "" if comparison.groups is None else f" in {counted(comparison.groups, 'group')}"
    if groups and comparison.test and comparison.test.effective <= 0.8 * comparison.test.items:
        groups += f" of unequal size, which count as {comparison.test.effective:.0f}"
    repeats = "one checkpoint of each" if comparison.checkpoints else counted(comparison.seeds, "seed")
    inside.append(f"{repeats}, {items}{groups}")
    named = is_accuracy(metric) or (metric in METRICS and metric != "bits per byte")
    name = f"{metric} " if named else ""
    return f"{name}{change(metric, comparison.difference)} ({'; '.join(inside)})"


def sentence(
    comparison: Comparison,
    verdict: Verdict,
    *,
    least: float,
    alpha: float,
    p_adjusted: float | None = None,
    family: int = 1,
    remarks: Sequence[str] = (),
) -> str:
    """The verdict on one comparison; `remarks` are sentences that belong to it."""
    one, other = comparison.variant, comparison.against
    where = f"On {comparison.set}, " if comparison.set else ""
    numbers = describe_difference(comparison, p_adjusted, family)
    if verdict.kind == "not_comparable":
        lines = [f"{where}{one} cannot be compared with {other}: {'; '.join(verdict.why)}."]
        lines += [f"For reference: {numbers}."] if numbers else []
    elif verdict.kind == "too_few_seeds":
        lines = [f"{where}there are too few seeds to compare {one} with {other}. {NEEDED} So far: {numbers}."]
    else:
        smallest_of_interest = change(comparison.metric.name, least, signed=False)
        lines = [f"{where}{_outcome(verdict.kind, one, other, smallest_of_interest)}: {numbers}."]
        if base(verdict.kind) == "undetected":
            if comparison.test and comparison.test.p < 0.05:
                among = f"among {family} comparisons chance does that too easily"
                why = among if family > 1 else f"at this interim look p must be below {alpha:g}"
                lines.append(f"The interval excludes zero, but {why}.")
            lines.append(_what_it_takes(comparison, verdict, smallest_of_interest, level_words(alpha, family)))
    said = " ".join([*lines, *remarks])
    return said[0].upper() + said[1:]


def base(kind: str) -> str:
    """`checkpoint_better` -> `better`"""
    return kind.removeprefix("checkpoint_")


def _outcome(kind: str, one: str, other: str, least: str) -> str:
    if base(kind) != kind:
        one, other, kind = f"this checkpoint of {one}", f"that of {other}", base(kind)
    if kind in ("better", "worse"):
        return f"{one} is {kind} than {other}"
    what = f"no difference larger than {least}" if kind == "same" else "no detectable difference"
    return f"{what} between {one} and {other}"


def level_words(alpha: float, family: int) -> str:
    """The level that decides, where it is not 5% for one comparison."""
    at = f" at this look (p below {alpha:g})" if alpha < ALPHA else ""
    return at + (f" after correction for {family} comparisons" if family > 1 else "")


def _what_it_takes(comparison: Comparison, verdict: Verdict, least: str, level: str) -> str:
    """What would detect the least difference of interest, and one as small as the observed."""
    assert verdict.smallest is not None
    smallest = change(comparison.metric.name, verdict.smallest, signed=False)
    line = f"A {'test' if comparison.checkpoints else 'study'} like this detects {smallest} in 4 of 5 cases{level}"
    if comparison.checkpoints and verdict.more_items is not None:
        line += f"; to detect {least} takes at least {two_digits(verdict.more_items)} test items"
    elif verdict.more is not None:
        line += f"; {about(verdict.more)} more seeds would detect {least}"
    elif verdict.more_items is not None:
        what = "test items" if comparison.groups is None else "groups of test items"
        line += (
            f"; no number of seeds would detect {least}, that takes at least {two_digits(verdict.more_items)} {what}"
        )
    if verdict.more_for_observed is not None:
        line += f"; {about(verdict.more_for_observed)} more seeds would detect a difference as small as this one"
    return f"{line}."


def two_digits(count: int) -> str:
    """Of a large number: `12,000`"""
    return f"{round(count, min(0, 2 - len(str(count)))):,}"


def _number(value: float, signed: bool, digits: int) -> str:
    """One digit more for what would read as zero, and no sign on a true zero."""
    if value and abs(value) < 0.5 * 10**-digits:
        digits += 1
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    text = text[:-2] if not signed and text.endswith(".0") else text
    return text.lstrip("+-") if not float(text) else text


def few_items(counts: Sequence[int], *, grouped: bool) -> str:
    """`counts`: effective numbers."""
    what = "groups of test items" if grouped else "test items"
    rough = "the interval is rough" if len(counts) == 1 else "the intervals are rough"
    return f"With so few {what} ({listed([str(count) for count in counts])}), {rough}."


def remarks(
    comparison: Comparison, verdict: Verdict, least: float, passports: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What belongs to a verdict: a difference too small to matter, accepted faults, unpaired seeds, few items."""
    lines = []
    if base(verdict.kind) in ("better", "worse") and comparison.test is not None:
        low, high = comparison.test.interval()
        if -least < low and high < least:
            lines.append(f"Real, but smaller than {change(comparison.metric.name, least, signed=False)}.")
    for name in (comparison.variant, comparison.against):
        passport = passports.get(name, {})
        if passport.get("level") == "red" and passport.get("accepted"):
            lines.append(f"Caution: {name} FAILED its passport ({_failed(passport)}); the failure was accepted.")
    if comparison.test is not None:
        if not comparison.paired:
            lines.append("The two share no seeds, so nothing is paired.")
        if comparison.test.effective < FEW_ITEMS:
            lines.append(few_items([round(comparison.test.effective)], grouped=comparison.groups is not None))
    return lines


def _failed(passport: Mapping[str, Any]) -> str:
    return ", ".join(passport.get("failed", [])) or "see its passport"


def learning_lines(unlearned: Mapping[str, Mapping[str, Mapping[str, list[int]]]], task: TaskOutcomes) -> list[str]:
    """Which seeds learned nothing, and which had not finished learning."""
    lines = []
    for variant, by_set in unlearned.items():
        ways = [
            f"{len(bad)} of {counted(len(task.variants[variant][name].seeds), 'seed')} {how} on {name}"
            for name, hows in by_set.items()
            for how, bad in hows.items()
        ]
        lines.append(f"Did not learn: of {variant}, {'; '.join(ways)}.")
    for variant, by_seed in task.training.items():
        ends = list(by_seed.values())
        improving, worse = ([each for each in ends if each.end == end] for end in ("still improving", "overfitted"))
        if 2 * len(improving) > len(ends):
            line = f"Underfitted: {len(improving)} of {counted(len(ends), 'seed')} of {variant} were still improving at"
            lines.append(f"{line} the last step; train longer before you believe this.")
        elif 2 * len(worse) > len(ends):
            best, steps = (round(median(getattr(each, key) for each in worse)) for key in ("best_step", "steps"))
            line = f"Overfitted: {len(worse)} of {counted(len(ends), 'seed')} of {variant} were best at step {best:,}"
            lines.append(f"{line} of {steps:,} (median), worse since.")
    return lines


def passport_lines(passports: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for name, passport in passports.items():
        so = "accepted with an explicit option" if passport.get("accepted") else "it cannot be called better"
        if passport.get("level") == "red":
            lines.append(f"Failed passport: {name} ({_failed(passport)}); {so}.")
        elif passport.get("level") == UNAUDITED:
            lines.append(f"Not audited: {name}, as the audit's process broke down (run the study again); {so}.")
        elif passport.get("level") == "amber":
            lines.append(f"Failed amber checks of the passport: {name} ({_failed(passport)}).")
    return lines


def contamination_lines(task: TaskOutcomes, sets: dict[str, dict[str, Any]], scores: dict[str, Any]) -> list[str]:
    """Test sets on which verdicts leave out copies, and what the copies are worth to the baseline variant."""
    lines = []
    for name, facts in sets.items():
        if facts["basis"] != "clean":
            continue
        near = f" ({facts['near']} of them as near duplicates)" if facts["near"] else ""
        copies = f"{facts['exact'] + facts['near']:,} of {facts['items']:,} items also occur in the training set{near}"
        line = f"On {name}, {copies}; verdicts are on the {facts['clean']:,} clean ones."
        shown = scores[task.baseline][name]
        if "clean" in shown and "contaminated" in shown:
            copies, clean = (score_words(task.metric, shown[subset]["mean"]) for subset in ("contaminated", "clean"))
            line += f" The {task.metric} of {task.baseline} is {copies} on the copies and {clean} on clean items."
        lines.append(line)
    return lines


def reuse_lines(test_reuse: Mapping[str, Mapping[str, Any]], metric: str) -> list[str]:
    """What picking the best step on the test set would have claimed. Perplexity during training is a quick one: not the
    table's."""
    lines, way = [], ""
    if metric in LANGUAGE:
        metric, way = "perplexity", " (non-overlapping windows)"
    for name, by_set in test_reuse.items():
        for test_set, use in by_set.items():
            picked, honest = use.get("picked_on_test"), use.get("honest")
            if use.get("watched") and picked is not None and honest is not None and picked != honest:
                numbers = f"{score_words(metric, picked)} instead of {score_words(metric, honest)}"
                lines.append(f"With its best step picked on {test_set}, {name} would score {numbers}{way}.")
    return lines


def failure_lines(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    if not failures:
        return []
    which = listed([f"{failure['variant']} (seed {failure['seed']})" for failure in failures])
    return [f"{counted(len(failures), 'trial')} failed and {'is' if len(failures) == 1 else 'are'} left out: {which}."]


def verdict_lines(rows: Rows) -> list[str]:
    """The sentences of comparisons. A variant with the same verdict on several test sets gets one sentence, and so do
    all that have too few seeds."""
    groups: defaultdict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["verdict"] != "too_few_seeds":
            detail = row["set"] if row["verdict"] == "not_comparable" else row["metric"]
            groups[row["variant"], row["verdict"], detail].append(row)
    lines = [_together(group) if len(group) > 1 else group[0]["sentence"] for group in groups.values()]
    few = [row for row in rows if row["verdict"] == "too_few_seeds"]
    return [*([few[0]["sentence"]] if len(few) == 1 else [_too_few(few)] if few else []), *lines]


def _too_few(rows: Rows) -> str:
    so_far = [f"{row['variant']} {change(row['metric'], row['difference'])} on {row['set']}" for row in rows]
    head = f"There are too few seeds to judge: {counted(max(row['seeds'] for row in rows), 'seed')}. {NEEDED}"
    return f"{head} So far, against {rows[0]['against']}: {'; '.join(so_far)}."


def _together(rows: Rows) -> str:
    first, metric = rows[0], rows[0]["metric"]
    least = change(metric, first["least_difference"], signed=False)
    outcome = _outcome(first["verdict"], first["variant"], first["against"], least)
    intervals = [f"{bare(metric, row['low'])} to {bare(metric, row['high'])}" for row in rows]
    changes = [change(metric, row["difference"]) for row in rows]
    numbers = listed([f"{each} ({interval})" for each, interval in zip(changes, intervals, strict=True)])
    seeds = f"{listed(sorted({str(row['seeds']) for row in rows}))} seeds"
    if base(first["verdict"]) != first["verdict"]:
        seeds = "one checkpoint of each"
    family = counted(first["family"], "comparison")
    counts = [f"{row['items']:,}" + ("" if row["basis"] == "all" else f" {row['basis']}") for row in rows]
    items = f"{counts[0]} items each" if len(set(counts)) == 1 else f"{listed(counts)} items"
    tail = f"95% intervals, {_p_of_all(rows)} after correction for {family}; {seeds}, {items}"
    also = _few_together(rows, list(dict.fromkeys(remark for row in rows for remark in row["remarks"])))
    needs = [_needs_of_all(rows, least)] if base(first["verdict"]) == "undetected" else []
    where = listed([row["set"] for row in rows])
    name = "" if metric == "bits per byte" else f"{metric} "
    return " ".join([f"On {where}, {outcome}: {name}{numbers} ({tail}).", *needs, *also])


def _few_together(rows: Rows, remarks: list[str]) -> list[str]:
    """The remarks on sets with few items as one remark on all of them."""
    grouped = rows[0]["groups"] is not None
    counts = [round(row["effective"]) for row in rows if row["effective"] is not None]
    single = {few_items([count], grouped=grouped): count for count in counts}
    few = [single[remark] for remark in remarks if remark in single]
    if len(few) < 2:
        return remarks
    return [*(remark for remark in remarks if remark not in single), few_items(few, grouped=grouped)]


def _p_of_all(rows: Rows) -> str:
    """The p-value closest to the other verdict."""
    p = [row["p_adjusted"] for row in rows]
    if base(rows[0]["verdict"]) in ("better", "worse"):
        return "every " + p_words(max(p)).replace("=", "at most")
    return p_words(min(p)).replace("=", "at least")


def _needs_of_all(rows: Rows, least: str) -> str:
    metric = rows[0]["metric"]
    smallest = [row["smallest_detectable"] for row in rows]
    sizes = dict.fromkeys(change(metric, value, signed=False) for value in (min(smallest), max(smallest)))
    level = level_words(rows[0]["level"] * rows[0]["family"], rows[0]["family"])
    checkpoints = base(rows[0]["verdict"]) != rows[0]["verdict"]
    line = f"A {'test' if checkpoints else 'study'} like this detects {' to '.join(sizes)} in 4 of 5 cases{level}"
    ranges = [row["more_seeds_range"] for row in rows if row["more_seeds_range"]]
    if ranges:
        lows, highs = [low for low, _ in ranges if low], [high for _, high in ranges]
        more = MoreSeeds(min(lows, default=None), None if None in highs else max(highs))
        line += f"; {about(more)} more seeds would detect {least}"
    hopeless = [row["set"] for row in rows if row["more_items"] and not checkpoints]
    if hopeless:
        line += f"; on {listed(hopeless)} no number of seeds would detect {least}, only more test items"
    return f"{line}."


def baseline_lines(rows: Rows, subsets: dict[str, str]) -> tuple[list[str], list[str]]:
    """How variants compare with the strongest baseline of each test set: sentences that must come first (losses), and
    those that can wait. `subsets`: test set -> the subset that verdicts are on."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, subset in subsets.items():
        here = [row for row in rows if row["set"] == name and row["basis"] == subset]
        for kind, head, numbers in _against_strongest(here, name if subset == "all" else f"{name} ({subset} items)"):
            groups[kind, head].append(numbers)
    lines = {
        kind: [f"{head}: {'; '.join(numbers)}." for (its, head), numbers in groups.items() if its == kind]
        for kind in VERBS
    }
    return lines["loses"] + lines["below"] + lines["equal"], lines["above"] + lines["beats"]


def _against_strongest(rows: Rows, where: str) -> Iterator[tuple[str, str, str]]:
    """Kind of verdict, who does what to which baseline, with which numbers."""
    sound = [row for row in rows if row["verdict"] != "not_comparable"]
    if not sound:
        return
    sign = 1 if METRICS[sound[0]["metric"]].higher_is_better else -1
    alike = [row for row in sound if row["metric"] == sound[0]["metric"]]  # perplexities and bits rank apart
    strongest = max(alike, key=lambda row: sign * row["theirs"])["baseline"]
    for kind, (singular, plural) in VERBS.items():
        alike = [row for row in sound if row["baseline"] == strongest and row["verdict"] == kind]
        if not alike:
            continue
        if len(alike) == len({row["variant"] for row in rows}) > 1:
            who = f"Every variant {singular}"
        else:
            many = len(alike) > 1
            names = listed([row["variant"] for row in alike])
            who = f"Variants {names} {plural}" if many else f"Variant {names} {singular}"
        numbers = []
        for metric in dict.fromkeys(row["metric"] for row in alike):
            best = max((row for row in alike if row["metric"] == metric), key=lambda row: sign * row["ours"])
            ours, theirs = (score_words(metric, best[key]) for key in ("ours", "theirs"))
            name = f" at best ({best['variant']})" if len(alike) > 1 else ""
            numbers.append(f"{ours}{name} against {theirs}{' bits per byte' * (metric == 'bits per byte')}")
        yield kind, f"{who} {strongest}, which needs no network", f"on {where} {' and '.join(numbers)}"


# Variances of differences between variants of small transformers, (standard deviation)^2 of seeds, items and residual.
# Accuracy in points: rotary against learned positions, and a task whose seeds differ four times as much. Perplexity in
# nats per token, sentences as items: variants that resemble one another, and variants that do not.
LOW_VARIANCE = {"accuracy": Shares(0.7**2, 7.0**2, 34.0**2), "perplexity": Shares(0.008**2, 0.06**2, 0.09**2)}
HIGH_VARIANCE = {"accuracy": Shares(2.9**2, 7.0**2, 34.0**2), "perplexity": Shares(0.02**2, 0.15**2, 0.17**2)}


# how much larger the variance over seeds is where first weights are not shared: measured, 8 to 25 times as many seeds
UNPAIRED = {"perplexity": (8.0, 25.0)}


@dataclass(frozen=True)
class Expected:
    """The smallest detectable difference, if seeds differ little and if they differ much."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        low, high = (change(self.metric, value, signed=False) for value in (self.low, self.high))
        if low == high:
            return low
        return f"{low.split(' ')[0].rstrip('%')} to {high}"


def expected_smallest(
    task: str,
    seeds: int,
    items: float,
    alpha: float = ALPHA,
    family: int = 1,
    shares: Sequence[Shares] | None = None,
    *,
    paired: bool = True,
) -> Expected | None:
    """`task` is 'classify' (accuracy, points) or 'lm' (perplexity, nats per token); None for a single seed or item.
    `alpha` of the first look, `family`: comparisons that will be judged together; `shares`: variances, if known.
    `paired`: whether the two sides share their first weights at each seed."""
    if seeds < 2 or items < 2:
        return None
    metric, level = {"classify": "accuracy", "lm": "perplexity"}.get(task, task), alpha / max(1, family)
    assumed = shares or [table[metric] for table in (LOW_VARIANCE, HIGH_VARIANCE)]
    if not paired and not shares and metric in UNPAIRED:
        assumed = [replace(each, seed=each.seed * more) for each, more in zip(assumed, UNPAIRED[metric], strict=True)]
    found = [reach_of(each, seeds, items, level) for each in assumed]
    return Expected(metric, min(found), max(found))


def shares_of_spread(task: str, spread: Sequence[float]) -> list[Shares]:
    """Standard deviations of a difference: over seeds, over items and of what is left; or over seeds only, the others
    as in small transformers."""
    if len(spread) not in (1, 3) or not all(math.isfinite(each) and each >= 0 for each in spread):
        what = f"a spread is one standard deviation (over seeds) or three (seeds, items, rest), got {list(spread)}"
        raise BadInput(what, "in points of accuracy, or nats per token: 0.7 or 0.7,7,34")
    if len(spread) == 3:
        return [Shares(*(each**2 for each in spread))]
    metric = "perplexity" if task == "lm" else "accuracy"
    return list(dict.fromkeys(replace(table[metric], seed=spread[0] ** 2) for table in (LOW_VARIANCE, HIGH_VARIANCE)))


def shares_of_pilot(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[Shares]]:
    """The metric of a pilot's first comparison, and the variances of all that share it."""
    known = [row for row in rows if row.get("shares") and row["seeds"] > 1]
    if not known:
        raise BadInput("the pilot has no variance over seeds", "it takes at least 2 training seeds of 2 variants")
    metric = known[0]["metric"]
    return metric, [Shares(**row["shares"]) for row in known if row["metric"] == metric]
