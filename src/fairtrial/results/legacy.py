"""A verdict.json of version 0.2.0 -> the values of this version. Its numbers and its sentences stay as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairtrial.results.values import (
    AuditLevel,
    AuditSummary,
    BestOf,
    Choice,
    Comparison,
    Cost,
    DataFinding,
    Failure,
    InterimLook,
    Interval,
    Matched,
    MatchSummary,
    Metric,
    MoreSeeds,
    Question,
    Reason,
    ReasonCode,
    ResultFiles,
    Score,
    SearchSummary,
    Sentence,
    TaskVerdict,
    TestReuse,
    TestSet,
    TrainingEnd,
    Unlearned,
    UnlearnedKind,
    Untuned,
    VarianceComponents,
    Verdict,
    VerdictKind,
)
from fairtrial.typed import T, WrongValue, structure

LANGUAGE = ("perplexity", "bits per byte")
KINDS = {
    "better": VerdictKind.BETTER,
    "worse": VerdictKind.WORSE,
    "same": VerdictKind.EQUIVALENT,
    "undetected": VerdictKind.UNDECIDED,
    "too_few_seeds": VerdictKind.UNDECIDED,
    "not_comparable": VerdictKind.NOT_COMPARABLE,
    "beats": VerdictKind.BETTER,
    "loses": VerdictKind.WORSE,
    "above": VerdictKind.UNDECIDED,
    "below": VerdictKind.UNDECIDED,
    "equal": VerdictKind.UNDECIDED,
}
CHECKPOINT = "checkpoint_"
UNLEARNED = {
    "answer one class only": UnlearnedKind.ONE_CLASS,
    "are no better than the largest class": UnlearnedKind.LARGEST_CLASS,
    "are no better than word frequencies": UnlearnedKind.WORD_FREQUENCIES,
}


class Entry:
    """An object of the old file: every value is asked for by name and type, and null means absent."""

    def __init__(self, value: object, at: str = "") -> None:
        if not isinstance(value, Mapping):
            raise WrongValue(at, "must be an object")
        self.values = {name: own for name, own in value.items() if own is not None}
        self.at = at

    def get(self, name: str, kind: type[T], default: T) -> T:
        return structure(kind, self.values[name], self.path(name)) if name in self.values else default

    def need(self, name: str, kind: type[T]) -> T:
        if name not in self.values:
            raise WrongValue(self.path(name), "is missing")
        return structure(kind, self.values[name], self.path(name))

    def number(self, name: str) -> float | None:
        value = self.get(name, float, math.nan)
        return value if math.isfinite(value) else None

    def count(self, name: str) -> int | None:
        return self.need(name, int) if name in self.values else None

    def texts(self, name: str) -> list[str]:
        return self.get(name, list[str], [])

    def numbers(self, name: str) -> tuple[float, ...]:
        return tuple(self.get(name, list[float], []))

    def inside(self, name: str) -> Entry:
        return Entry(self.values.get(name, {}), self.path(name))

    def named(self, name: str = "") -> dict[str, Entry]:
        own = self.inside(name) if name else self
        return {key: Entry(value, own.path(key)) for key, value in own.values.items()}

    def listed(self, name: str) -> list[Entry]:
        rows = self.get(name, list[object], [])
        return [Entry(each, f"{self.path(name)}[{n}]") for n, each in enumerate(rows)]

    def path(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name


def verdict_of_0_2(plain: Mapping[str, object]) -> Verdict:
    old = Entry(plain)
    old.need("sentences", list[str])
    baseline = old.get("baseline", str, "")
    tasks = {name: _task(entry, baseline) for name, entry in old.named("tasks").items()}
    look, results = old.inside("look"), old.inside("results")
    return Verdict(
        name=old.get("name", str, ""),
        baseline=baseline,
        tasks=tasks,
        sentences=tuple(_sentence(text, tasks) for text in old.texts("sentences")),
        until_clear=old.get("until_clear", bool, False),
        look=InterimLook(look.need("seeds", int), look.need("alpha", float), look.count("next"))
        if look.values
        else None,
        results=_results(results, tasks) if results.values else None,
    )


def _sentence(text: str, tasks: Mapping[str, TaskVerdict]) -> Sentence:
    """Where there were several tasks, a sentence began with its own."""
    for name in tasks:
        if text.startswith(f"[{name}] "):
            return Sentence(text.removeprefix(f"[{name}] "), name)
    return Sentence(text, next(iter(tasks)) if len(tasks) == 1 else None)


def _results(old: Entry, tasks: Mapping[str, TaskVerdict]) -> ResultFiles:
    rows = [row for task in tasks.values() for row in task.comparisons]
    checkpoints = any(row.question == Question.CHECKPOINTS for row in rows)
    question = Question.CHECKPOINTS if checkpoints else Question.NEW_RUNS
    return ResultFiles(
        old.get("files", dict[str, str], {}), question, old.count("rows") or 0, old.get("command", str, "")
    )


def _metric(old: Entry) -> Metric:
    name = old.get("metric", str, "accuracy")
    unit = old.get("unit", str, "nats per token" if name == "perplexity" else name if name in LANGUAGE else "points")
    return Metric(name, unit, old.get("higher_is_better", bool, name not in (*LANGUAGE, "log loss")))


def _task(old: Entry, baseline: str) -> TaskVerdict:
    metric, learning, best_of = _metric(old), old.inside("learning"), old.inside("best_of")
    margin = old.number("least_difference") or 0.0
    known = [_comparison(row, metric, margin) for row in old.listed("comparisons")]
    scores = _scores(old.inside("scores"))
    return TaskVerdict(
        baseline=baseline,
        metric=metric,
        margin=margin,
        seeds=tuple(map(int, old.numbers("seeds"))),
        sets={name: _test_set(entry) for name, entry in old.named("sets").items()},
        scores=scores,
        comparisons=tuple(known),
        exploratory=tuple(_comparison(row, metric, 0.0) for row in old.listed("exploratory")),
        baseline_scores=_scores(old.inside("baselines")),
        baseline_comparisons=tuple(_comparison(row, metric, 0.0) for row in old.listed("against_baselines")),
        labels=tuple(old.texts("labels")),
        vocabularies_differ=bool(old.get("metric_why", str, "")),
        unlearned=_unlearned(learning.inside("not_learned"), scores),
        training={
            variant: {int(seed): structure(TrainingEnd, each.values, each.at) for seed, each in by_seed.named().items()}
            for variant, by_seed in learning.named("training").items()
        },
        test_reuse={
            variant: {name: _reuse(use) for name, use in by_set.named().items()}
            for variant, by_set in old.named("peeks").items()
        },
        cost={variant: _cost(entry) for variant, entry in old.named("cost").items()},
        audits={variant: _audit(entry) for variant, entry in old.named("passports").items()},
        data_findings=tuple(_findings(old.inside("contamination"))) if old.inside("contamination").values else None,
        failures=tuple(
            Failure(each.get("variant", str, ""), each.count("seed") or 0, each.get("error", str, ""))
            for each in old.listed("failures")
        ),
        search=_search(old.inside("search")) if old.inside("search").values else None,
        match=_match(old.inside("match")) if old.inside("match").values else None,
        untuned=_untuned(old.inside("untuned"), metric, margin) if old.inside("untuned").values else None,
        best_of=BestOf(
            best_of.count("variants") or 0, best_of.get("set", str, ""), best_of.number("expected_bias") or 0.0
        )
        if best_of.values
        else None,
    )


def _interval(old: Entry, estimate: str) -> Interval:
    return Interval(old.number(estimate), old.number("low"), old.number("high"))


def _comparison(old: Entry, metric: Metric, margin: float) -> Comparison:
    own = Metric(*(vars(_metric(old)).values())) if "metric" in old.values else metric
    if own.name == metric.name:
        own = metric
    word = old.get("verdict", str, "undetected")
    kind = word.removeprefix(CHECKPOINT)
    if kind not in KINDS:
        raise WrongValue(old.path("verdict"), f"is not known: {word!r}")
    checkpoints = word.startswith(CHECKPOINT)
    reasons = tuple(Reason(ReasonCode.EARLIER_VERSION, text) for text in old.texts("why"))
    if kind == "too_few_seeds":
        reasons = (Reason(ReasonCode.TOO_FEW_SEEDS, "a verdict needs 5 seeds"),)
    family, levels = old.get("family", int, 1), (old.number("ours"), old.number("theirs"))
    level, components, seeds = old.number("level"), old.inside("shares"), old.inside("share_of_seeds_better")
    more = old.get("more_seeds_range", list[int | None], [])
    here, second = old.inside("on_these_items"), old.inside("second_opinion")
    difference = _interval(old, "difference")
    return Comparison(
        variant=old.get("variant", str, ""),
        baseline=old.get("against", str, old.get("baseline", str, "")),
        test_set=old.get("set", str, ""),
        subset=old.get("basis", str, "all"),
        metric=own,
        seeds=old.count("seeds") or 0,
        items=old.count("items") or 0,
        paired=old.get("paired", bool, True),
        groups=old.count("groups"),
        question=Question.CHECKPOINTS if checkpoints else Question.NEW_RUNS,
        verdict=KINDS[kind],
        reasons=reasons,
        difference=difference,
        p=old.number("p"),
        df=old.number("df"),
        p_adjusted=old.number("p_adjusted"),
        p_equivalent=old.number("p_same"),
        q=old.number("q"),
        family=family,
        alpha=0.05 if level is None else level * max(1, family),
        margin=old.get("least_difference", float, margin),
        effective_items=old.number("effective"),
        detectable=old.number("smallest_detectable"),
        more_seeds=MoreSeeds(*more) if more else None,
        more_items=old.count("more_items"),
        scores=None if levels[0] is None or levels[1] is None else (levels[0], levels[1]),
        by_seed=old.numbers("by_seed"),
        on_these_items=Interval(difference.estimate, here.number("low"), here.number("high")) if here.values else None,
        share_of_seeds_better=_interval(seeds, "share") if seeds.values else None,
        effect_size=old.number("effect_size"),
        relative_error_change=old.number("relative_error_change"),
        components=structure(VarianceComponents, components.values, components.at) if components.values else None,
        variance_shares=old.get("variance_shares", dict[str, float], {}),
        second_opinion=Interval(difference.estimate, second.number("low"), second.number("high"))
        if second.values
        else None,
    )


def _scores(old: Entry) -> dict[str, dict[str, dict[str, Score]]]:
    return {
        variant: {
            test: {
                subset: Score(
                    _interval(score, "mean"),
                    score.numbers("by_seed"),
                    tuple(map(int, score.numbers("seeds"))),
                    score.count("items") or 0,
                    score.number("bits_per_byte"),
                    score.number("unknown_share"),
                    score.number("perplexity_without_unknown"),
                )
                for subset, score in by_subset.named().items()
            }
            for test, by_subset in by_set.named().items()
        }
        for variant, by_set in old.named().items()
    }


def _test_set(old: Entry) -> TestSet:
    exact, near, clean = (old.count(name) for name in ("exact", "near", "clean"))
    return TestSet(old.count("items") or 0, old.get("basis", str, "all"), exact, near, clean, old.number("context"))


def _unlearned(old: Entry, scores: Mapping[str, Mapping[str, Mapping[str, Score]]]) -> tuple[Unlearned, ...]:
    found = []
    for variant, by_set in old.named().items():
        for test, hows in by_set.named().items():
            for how in hows.values:
                if how not in UNLEARNED:
                    raise WrongValue(hows.path(how), "is not known")
                seeds = tuple(hows.need(how, list[int]))
                known = scores.get(variant, {}).get(test, {}).get("all")
                found.append(Unlearned(variant, test, UNLEARNED[how], seeds, len(known.seeds) if known else len(seeds)))
    return tuple(found)


def _reuse(old: Entry) -> TestReuse:
    numbers = old.number("picked_on_test"), old.number("honest")
    return TestReuse(old.count("reads") or 0, old.get("watched", bool, False), *numbers)


def _cost(old: Entry) -> Cost:
    names = ("flops_per_step", "seconds_per_step", "peak_memory_mb", "seconds_ratio")
    return Cost(old.count("parameters"), *map(old.number, names))


def _audit(old: Entry) -> AuditSummary:
    level = old.get("level", AuditLevel, AuditLevel.UNAUDITED)
    return AuditSummary(level, tuple(old.texts("failed")), old.get("accepted", bool, False))


def _findings(old: Entry) -> list[DataFinding]:
    levels = {"RED": AuditLevel.RED, "AMBER": AuditLevel.AMBER}
    return [
        DataFinding(
            each.get("id", str, ""),
            each.get("name", str, ""),
            levels[each.need("verdict", str)],
            *(each.get(name, str, "") for name in ("where", "shown", "meaning")),
        )
        for each in old.listed("findings")
        if each.get("verdict", str, "") in levels
    ]


def _search(old: Entry) -> SearchSummary:
    choices = {
        variant: Choice(each.get("best", dict[str, object], {}), each.count("tries"), each.number("validation"))
        for variant, each in old.named("variants").items()
    }
    return SearchSummary(choices, old.count("tries"), old.count("trials"), old.number("seconds"))


def _match(old: Entry) -> MatchSummary:
    variants = {}
    for name, each in old.named("variants").items():
        twin, field = (each.get(key, str, "") or None for key in ("twin", "field"))
        before, original = each.number("before") or 0.0, each.number("from")
        variants[name] = Matched(before, each.number("after"), twin, field, each.values.get("value"), original)
    return MatchSummary(old.get("budget", str, ""), variants, old.number("spent"))


def _untuned(old: Entry, metric: Metric, margin: float) -> Untuned:
    rows = tuple(_comparison(row, metric, margin) for row in old.listed("comparisons"))
    return Untuned(rows, _scores(old.inside("scores")))
