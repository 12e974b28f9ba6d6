"""What a reader hears first: one sentence for one story, however many test sets tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fairtrial.judge.measure import METRICS
from fairtrial.judge.power import MoreSeeds
from fairtrial.judge.words import NEEDED, about, bare, change, counted, few_items, listed, p_words, score_words

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
