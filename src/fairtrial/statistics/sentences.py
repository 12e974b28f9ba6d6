"""Verdicts in plain, exact sentences.

What a reader hears first: one sentence for one story, however many test sets tell it.

What so many seeds and items can see, before anything is run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.statistics.comparison import FEWEST_SEEDS, Comparison, Verdict
from fairtrial.statistics.crossed import Shares
from fairtrial.statistics.outcomes import METRICS
from fairtrial.statistics.power import MoreSeeds, reach_of

NEEDED = f"A verdict needs {FEWEST_SEEDS}; a single seed raises a false alarm in up to 41% of cases."
FEW_ITEMS = 30  # below, an interval is a rough one


def about(count: object) -> str:
    """A rough number, said as one; `more than 100` is rough already."""
    return str(count) if str(count).startswith("more than") else f"about {count}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def score_words(metric: str, value: float) -> str:
    """A score as people say it: 85.2%, 374.6, 1.234 bits per byte."""
    value = round(value, 9)  # two sums of the same numbers must not part at a half
    if metric in ("accuracy", "macro-F1"):
        return f"{value:.1f}%"
    return f"{value:.1f}" if metric == "perplexity" else f"{value:.3f}"


def change(metric: str, value: float, signed: bool = True) -> str:
    """A difference in the metric's unit; of perplexity in per cent."""
    if metric == "perplexity":
        share = 100 * math.expm1(min(700.0, value))
        return f"{_number(share, signed, 1)}%"
    if metric in ("accuracy", "macro-F1"):
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


def figures(comparison: Comparison, p_adjusted: float | None = None, family: int = 1) -> str:
    """`accuracy +0.7 points (95% interval -0.4 to +1.7, p = 0.20; 12 seeds, 750 items)`"""
    metric = comparison.metric.name
    if comparison.difference is None:
        return ""
    inside = []
    if comparison.found is not None:
        low, high = comparison.found.interval()
        inside.append(f"95% interval {bare(metric, low)} to {bare(metric, high)}")
        if p_adjusted is not None:
            among = f" after correction for {family} comparisons" if family > 1 else ""
            inside[0] += f", {p_words(p_adjusted)}{among}"
    inside.append(f"{counted(comparison.seeds, 'seed')}, {items_words(comparison)}")
    name = "" if metric == "bits per byte" else f"{metric} "
    return f"{name}{change(metric, comparison.difference)} ({'; '.join(inside)})"


def items_words(comparison: Comparison) -> str:
    basis = "" if comparison.basis == "all" else f"{comparison.basis} "
    items = counted(comparison.items, f"{basis}item")
    return items if comparison.groups is None else f"{items} in {counted(comparison.groups, 'group')}"


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
    one, other, place = comparison.variant, comparison.against, f"on {comparison.set}"
    shown = figures(comparison, p_adjusted, family)
    if verdict.kind == "not_comparable":
        told = f"{one} cannot be compared with {other} {place}: {'; '.join(verdict.why)}."
        return " ".join([told, *([f"For what it is worth: {shown}."] if shown else []), *remarks])
    if verdict.kind == "too_few_seeds":
        told = f"{one} and {other} {place}: too few seeds to judge. {NEEDED} So far: {shown}."
        return " ".join([told, *remarks])
    if verdict.kind in ("better", "worse"):
        return " ".join([f"{one} is {verdict.kind} than {other} {place}: {shown}.", *remarks])
    if verdict.kind == "same":
        told = f"{one} and {other} {place}: no difference larger than {_least(comparison, least)}: {shown}."
        return " ".join([told, *remarks])
    told = f"{one} and {other} {place}: no detectable difference: {shown}."
    return " ".join([told, *_almost(comparison, alpha, family), *_what_it_takes(comparison, verdict, least), *remarks])


def _almost(comparison: Comparison, alpha: float, family: int) -> list[str]:
    """Why an interval without zero is not enough."""
    assert comparison.found is not None
    if comparison.found.p >= 0.05:
        return []
    if family > 1:
        return [f"The interval leaves out zero, but with {family} comparisons at once chance does that too easily."]
    return [f"The interval leaves out zero, but at this look p must be below {alpha:g}."]


def _what_it_takes(comparison: Comparison, verdict: Verdict, least: float) -> list[str]:
    """What would show the least difference of interest, and one as small as the observed."""
    assert verdict.smallest is not None
    metric, wanted = comparison.metric.name, _least(comparison, least)
    told = f"A study like this finds {change(metric, verdict.smallest, signed=False)} in 4 of 5 cases"
    if verdict.more is not None:
        told += f"; {about(verdict.more)} more seeds would show {wanted}"
    elif verdict.more_items is not None:
        what = "test items" if comparison.groups is None else "groups of test items"
        takes = f"that takes at least {_two_digits(verdict.more_items):,} {what}"
        told += f"; no number of seeds will show {wanted}, {takes}"
    if verdict.more_for_observed is not None:
        told += f"; {about(verdict.more_for_observed)} more seeds would tell a difference as small as this one"
    return [f"{told}."]


def _least(comparison: Comparison, least: float) -> str:
    return change(comparison.metric.name, least, signed=False)


def _number(value: float, signed: bool, digits: int) -> str:
    """One digit more for what would read as zero, and no sign on a true zero."""
    if value and abs(value) < 0.5 * 10**-digits:
        digits += 1
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    text = text[:-2] if not signed and text.endswith(".0") else text
    return text.lstrip("+-") if not float(text) else text


def _two_digits(value: int) -> int:
    places = max(0, len(str(value)) - 2)
    return int(round(value, -places))


def few_items(counts: Sequence[int], *, grouped: bool) -> str:
    what = "groups of test items" if grouped else "test items"
    interval = "a rough interval" if len(counts) == 1 else "rough intervals"
    return f"So few {what} ({listed([str(count) for count in counts])}) make {interval}."


def remarks(
    comparison: Comparison, verdict: Verdict, least: float, passports: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What must be known with a verdict: accepted faults, seeds that are no pairs, few items, a difference too small to
    matter."""
    told = []
    if verdict.kind in ("better", "worse") and comparison.found is not None:
        low, high = comparison.found.interval()
        if -least < low and high < least:
            told.append(f"Real, but smaller than {_least(comparison, least)}.")
    for name in (comparison.variant, comparison.against):
        passport = passports.get(name, {})
        if passport.get("level") == "red" and passport.get("accepted"):
            failed = ", ".join(passport.get("failed", [])) or "see there"
            told.append(f"{name} FAILED its passport ({failed}) and is judged only because that was accepted.")
    if comparison.found is not None and not comparison.paired:
        told.append("The two have seeds of their own, so nothing is paired.")
    if comparison.found is not None and comparison.found.items < FEW_ITEMS:
        told.append(few_items([comparison.found.items], grouped=comparison.groups is not None))
    return told


def passport_lines(passports: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for name, passport in passports.items():
        failed = ", ".join(passport.get("failed", [])) or "see there"
        if passport.get("level") == "red":
            so = "accepted by an explicit option" if passport.get("accepted") else "it cannot be called better"
            lines.append(f"{name} failed its passport ({failed}): {so}.")
        elif passport.get("level") == "amber":
            lines.append(f"{name} failed amber checks of its passport ({failed}): to know beside its number.")
    return lines


def peek_lines(peeks: Mapping[str, Mapping[str, Any]], metric: str) -> list[str]:
    """What picking the best moment on test would have claimed. Looks at perplexity are quick ones: not the table's."""
    lines = []
    way = " (windows side by side)" if metric == "perplexity" else ""
    for name, by_set in peeks.items():
        for place, peek in by_set.items():
            picked, honest = peek.get("picked_on_test"), peek.get("honest")
            if peek.get("watched") and picked is not None and honest is not None and picked != honest:
                told = [score_words(metric, value) for value in (picked, honest)]
                lines.append(f"{name}, picked on test, would read {told[0]} on {place} instead of {told[1]}{way}.")
    return lines


def failure_lines(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    if not failures:
        return []
    which = listed([f"{each['variant']} (seed {each['seed']})" for each in failures])
    return [f"{counted(len(failures), 'trial')} failed and {'is' if len(failures) == 1 else 'are'} left out: {which}."]


def best_of_line(metric: str, variants: int, bias: float, place: str) -> str:
    lead = change(metric, bias, signed=False)
    return f"picking the best of {variants} variants on {place} is worth about {lead} by luck alone."


Rows = list[dict[str, Any]]
ONE = {
    "loses": "loses to",
    "below": "scores worse, though not clearly, than",
    "equal": "scores the same as",
    "above": "scores better, though not clearly, than",
    "beats": "beats",
}
MANY = {
    "loses": "lose to",
    "below": "score worse, though not clearly, than",
    "equal": "score the same as",
    "above": "score better, though not clearly, than",
    "beats": "beat",
}


def verdict_lines(rows: Rows) -> list[str]:
    """The sentences of comparisons; a variant that fares alike on several test sets gets one."""
    stories: defaultdict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["verdict"] != "too_few_seeds":
            story = row["set"] if row["verdict"] == "not_comparable" else row["metric"]
            stories[row["variant"], row["verdict"], story].append(row)
    told = [_gathered(story) if len(story) > 1 else story[0]["sentence"] for story in stories.values()]
    few = [row for row in rows if row["verdict"] == "too_few_seeds"]
    return [*([few[0]["sentence"]] if len(few) == 1 else [_too_few(few)] if few else []), *told]


def _too_few(rows: Rows) -> str:
    """All that cannot be judged yet, without repeating why."""
    so_far = [f"{row['variant']} {change(row['metric'], row['difference'])} on {row['set']}" for row in rows]
    seeds = counted(max(row["seeds"] for row in rows), "seed")
    return f"too few seeds to judge: {seeds}. {NEEDED} So far, against {rows[0]['against']}: {'; '.join(so_far)}."


def _gathered(story: Rows) -> str:
    first, metric = story[0], story[0]["metric"]
    one, other, places = first["variant"], first["against"], listed([row["set"] for row in story])
    least = change(metric, first["least_difference"], signed=False)
    head = {
        "same": f"{one} and {other} on {places}: no difference larger than {least}",
        "undetected": f"{one} and {other} on {places}: no detectable difference",
    }.get(first["verdict"], f"{one} is {first['verdict']} than {other} on {places}")
    each = [f"{change(metric, row['difference'])} ({_interval(row)})" for row in story]
    seeds = listed(sorted({str(row["seeds"]) for row in story}))
    family = counted(first["family"], "comparison")
    tail = f"95% intervals, {_p_of_all(story)} after correction for {family}; {seeds} seeds"
    also = _few_together(story, list(dict.fromkeys(remark for row in story for remark in row["remarks"])))
    needs = [_needs_of_all(story, least)] if first["verdict"] == "undetected" else []
    return " ".join([f"{head}: {metric} {listed(each)} ({tail}).", *needs, *also])


def _few_together(story: Rows, remarks: list[str]) -> list[str]:
    """What is said of each set that has few items, said once of all."""
    grouped = story[0]["groups"] is not None
    counts = [row["groups"] if row["groups"] is not None else row["items"] for row in story]
    single = {few_items([count], grouped=grouped): count for count in counts}
    few = [single[remark] for remark in remarks if remark in single]
    if len(few) < 2:
        return remarks
    return [*(remark for remark in remarks if remark not in single), few_items(few, grouped=grouped)]


def _p_of_all(story: Rows) -> str:
    """The p-value nearest to the other verdict."""
    p = [row["p_adjusted"] for row in story]
    if story[0]["verdict"] in ("better", "worse"):
        return "every " + p_words(max(p)).replace("=", "at most")
    return p_words(min(p)).replace("=", "at least")


def _needs_of_all(story: Rows, least: str) -> str:
    metric = story[0]["metric"]
    smallest = [row["smallest_detectable"] for row in story]
    told = dict.fromkeys(change(metric, value, signed=False) for value in (min(smallest), max(smallest)))
    line = f"A study like this finds {' to '.join(told)} in 4 of 5 cases"
    open_to_seeds = [row["more_seeds_range"] for row in story if row["more_seeds_range"]]
    if open_to_seeds:
        lows, highs = [low for low, _ in open_to_seeds if low], [high for _, high in open_to_seeds]
        more = MoreSeeds(min(lows, default=None), None if None in highs else max(highs))
        line += f"; {about(more)} more seeds would show {least}"
    closed = [row["set"] for row in story if row["more_items"]]
    if closed:
        line += f"; on {listed(closed)} no number of seeds will show {least}, only more test items"
    return f"{line}."


def _interval(row: dict[str, Any]) -> str:
    return f"{bare(row['metric'], row['low'])} to {bare(row['metric'], row['high'])}"


def baseline_lines(rows: Rows, basis: dict[str, str]) -> tuple[list[str], list[str]]:
    """What is told of the strongest baseline of each test set: sentences that must come first (losses), and those that
    can wait. `basis`: test set -> items that verdicts are on."""
    stories: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for place, chosen in basis.items():
        here = [row for row in rows if row["set"] == place and row["basis"] == chosen]
        for kind, head, told in _of_one_set(here, place if chosen == "all" else f"{place} ({chosen} items)"):
            stories[kind, head].append(told)
    lines = {
        kind: [f"{head}: {'; '.join(places)}." for (each, head), places in stories.items() if each == kind]
        for kind in ONE
    }
    return lines["loses"] + lines["below"] + lines["equal"], lines["above"] + lines["beats"]


def _of_one_set(rows: Rows, place: str) -> Iterator[tuple[str, str, str]]:
    """Kind, who does what to which baseline, with which figures."""
    sound = [row for row in rows if row["verdict"] != "not_comparable"]
    if not sound:
        return
    sign = 1 if METRICS[sound[0]["metric"]].higher_is_better else -1
    strongest = max(sound, key=lambda row: sign * row["theirs"])["baseline"]
    for kind in ONE:
        told = [row for row in sound if row["baseline"] == strongest and row["verdict"] == kind]
        if not told:
            continue
        every = len(told) == len({row["variant"] for row in rows}) > 1
        names = "every variant" if every else listed([row["variant"] for row in told])
        verb = (ONE if every or len(told) == 1 else MANY)[kind]
        best = max(told, key=lambda row: sign * row["ours"])
        ours, theirs = (score_words(best["metric"], best[key]) for key in ("ours", "theirs"))
        who = f" at best ({best['variant']})" if len(told) > 1 else ""
        yield kind, f"{names} {verb} {strongest}, which needs no network", f"on {place} {ours}{who} against {theirs}"


# Variances of differences between variants of small transformers, (standard deviation)^2 of seeds, items and the rest.
# Accuracy in points: rotary against learned positions, and a task whose seeds differ four times as much. Perplexity in
# nats per token, sentences as items: variants that resemble one another, and variants that do not.
CALM = {"accuracy": Shares(0.7**2, 7.0**2, 34.0**2), "perplexity": Shares(0.008**2, 0.06**2, 0.09**2)}
LIVELY = {"accuracy": Shares(2.9**2, 7.0**2, 34.0**2), "perplexity": Shares(0.02**2, 0.15**2, 0.17**2)}


@dataclass(frozen=True)
class Expected:
    """The smallest difference that shows, if seeds differ little and if they differ much."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        low, high = (change(self.metric, value, signed=False) for value in (self.low, self.high))
        return f"{low.split(' ')[0].rstrip('%')} to {high}"


def expected_smallest(task: str, seeds: int, items: int) -> Expected | None:
    """`task` is 'classify' (accuracy, points) or 'lm' (perplexity, nats per token); one seed or item shows nothing."""
    if seeds < 2 or items < 2:
        return None
    metric = "perplexity" if task == "lm" else "accuracy"
    return Expected(metric, reach_of(CALM[metric], seeds, items), reach_of(LIVELY[metric], seeds, items))
