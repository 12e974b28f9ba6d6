"""A verdict in plain, exact sentences, made last and from values alone: of one comparison, of several that agree, of
everything else worth knowing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from fairtrial.results.values import (
    FEWEST_SEEDS,
    AuditLevel,
    BestOf,
    Comparison,
    Failure,
    MoreSeeds,
    OwnCode,
    Question,
    ReasonCode,
    Sentence,
    Speedup,
    SpeedupProblem,
    TaskVerdict,
    TrainingEndKind,
    UnlearnedKind,
    VerdictKind,
    is_accuracy,
)

FEW_ITEMS = 30  # below this, an interval is rough
ALIKE = 3.0  # from so many neighbours that count as one, it is told
PERCENTAGES = ("accuracy", "macro-F1")
NAMED = ("accuracy", "macro-F1", "log loss", "perplexity")  # told with the difference; others are their own unit
VOCABULARIES_DIFFER = (
    "Vocabularies differ, so variants are compared by bits per byte, not by perplexity. Bits per byte count every byte,"
    " also of unknown words."
)
UNLEARNED = {  # of some seeds; of all
    UnlearnedKind.ONE_CLASS: ("always gave the same answer", "every seed always gave the same answer"),
    UnlearnedKind.LARGEST_CLASS: ("did not beat the largest class", "no seed beat the largest class"),
    UnlearnedKind.WORD_FREQUENCIES: ("did not beat a unigram model", "no seed beat a unigram model"),
}
# a variant against what needs no network, by verdict and by the sign of the gain: of one variant, of several
VERBS = {
    (VerdictKind.WORSE, -1): ("scores below", "score below"),
    (VerdictKind.UNDECIDED, -1): ("scores below", "score below"),
    (VerdictKind.UNDECIDED, 0): ("scores the same as", "score the same as"),
    (VerdictKind.UNDECIDED, 1): ("scores above", "score above"),
    (VerdictKind.BETTER, 1): ("beats", "beat"),
}


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def score_words(metric: str, value: float) -> str:
    """`85.2%`, `374.6`, `1.234`"""
    given, value = value, round(value, 9)  # two sums of the same numbers must not round to different sides of a half
    if is_accuracy(metric) or metric in PERCENTAGES:
        return f"{value:.1f}%"
    if given and not 1e-3 <= abs(given) < 1e7:
        return f"{given:.3g}"
    return f"{value:.1f}" if metric == "perplexity" else f"{value:.3f}"


def change(metric: str, value: float, signed: bool = True) -> str:
    """A difference in the metric's unit; of perplexity in per cent."""
    if metric == "perplexity":
        share = 100 * math.expm1(min(700.0, value))
        return f"{_number(share, signed, 1 if abs(share) < 9.95 else 0)}%"
    if is_accuracy(metric) or metric in PERCENTAGES:
        number = _number(value, signed, 1)
        return f"{number} point{'' if number == '1' else 's'}"
    unit = "nats per item" if metric == "log loss" else metric
    return f"{_number(value, signed, 3)} {unit}"


def change_range(metric: str, low: float, high: float) -> str:
    """`2.4 to 5.3 points`"""
    first, last = (change(metric, value, signed=False) for value in (low, high))
    return first if first == last else f"{first.split(' ')[0].rstrip('%')} to {last}"


def _number(value: float, signed: bool, digits: int) -> str:
    """One digit more for what would read as zero, and no sign on a true zero."""
    if value and not 1e-6 < abs(value) < 1e7:
        return f"{value:+.2g}" if signed else f"{value:.2g}"
    if digits == 3 and abs(value) < 0.1 and value:  # two digits that count
        digits = 1 - math.floor(math.log10(abs(value)))
    elif value and abs(value) < 0.5 * 10**-digits:
        digits += 1
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    text = text[:-2] if not signed and text.endswith(".0") else text
    return text.lstrip("+-") if not float(text) else text


def p_words(p: float) -> str:
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def amount(comparison: Comparison) -> str:
    """`accuracy 0.9 to 3.0 points higher`, `perplexity between 1.2% lower and 0.4% higher`"""
    metric, interval = comparison.metric, comparison.difference
    if interval.estimate is None:
        return ""
    name, low, high = metric.name, interval.low, interval.high
    if low is None or high is None:
        size = change(name, interval.estimate)
    elif low * high > 0:
        sizes = sorted((abs(100 * math.expm1(end)) if metric.in_percent else abs(end), end) for end in (low, high))
        first, last = (change(name, end).lstrip("+-") for _, end in sizes)
        begin = "" if first == last else f"{first.split(' ')[0].rstrip('%')} to "
        size = f"{begin}{last} {'higher' if low > 0 else 'lower'}"
    else:
        below, above = (change(name, end).lstrip("+-") for end in (low, high))
        size = f"between {below} lower and {above.split(' ')[0]} higher"
    named = metric.is_accuracy or name in NAMED
    if own_unit(comparison):  # a name that fairtrial does not know is not its unit
        named, size = True, size.replace(f" {name}", "")
    return f"{name} {size}" if named else size


def own_unit(comparison: Comparison) -> bool:
    return comparison.metric.unit == comparison.metric.name != "bits per byte"


def direction(comparison: Comparison) -> str:
    return "higher is better" if comparison.metric.higher_is_better else "lower is better"


def difference_words(comparison: Comparison) -> str:
    """`accuracy 0.9 to 3.0 points higher (95% interval, p = 0.004; 12 seeds, 750 items)`; with the direction where
    zero is inside the interval or the metric is the user's own."""
    interval = comparison.difference
    if interval.estimate is None:
        return ""
    told, low, high = [], interval.low, interval.high
    if own_unit(comparison) or low is None or high is None or low * high <= 0:
        told.append(direction(comparison))
    if low is not None:
        among = f" after correction for {comparison.family} comparisons" if comparison.family > 1 else ""
        p = "" if comparison.p_adjusted is None else f", {p_words(comparison.p_adjusted)}{among}"
        told.append(f"95% interval{p}")
    return f"{amount(comparison)} ({'; '.join([*told, _counts(comparison)])})"


def basis_sentence(comparisons: Sequence[Comparison]) -> str:
    """What holds for all of these, said once; empty where they differ in it.

    `Perplexity (lower is better), mean of 3 test sets; 95% intervals; p corrected for 4 comparisons; 5 seeds.`"""
    told = [each for each in comparisons if each.difference.estimate is not None]
    alike = {(each.metric, each.test_set, each.family, _counts(each)) for each in told}
    if len(told) < 2 or len(alike) > 1 or any(each.difference.low is None for each in told):
        return ""
    first = told[0]
    parts = [f"{first.metric.name} ({direction(first)})" + (f" on {first.test_set}" if first.test_set else "")]
    parts.append("95% intervals")
    if first.family > 1 and any(each.p_adjusted is not None for each in told):
        parts.append(f"p corrected for {first.family} comparisons")
    text = "; ".join([*parts, _counts(first)])
    return f"{text[:1].upper()}{text[1:]}."


def _counts(comparison: Comparison) -> str:
    """`12 seeds, 750 items in 40 groups`"""
    if comparison.runs is not None:
        ours, theirs = comparison.runs
        both = counted(ours, "run") if not theirs else f"{ours} and {counted(theirs, 'run')}"
        return f"{counted(ours, 'run')} each" if ours == theirs else both
    items = counted(comparison.items, "item" if comparison.subset == "all" else f"{comparison.subset} item")
    if comparison.groups is not None:
        items += f" in {counted(comparison.groups, 'group')}"
        equal = (comparison.effective_items or math.inf) * comparison.alike
        items += f" of unequal size, which count as {equal:.0f}" if equal <= 0.8 * comparison.groups else ""
    checkpoints = comparison.question == Question.CHECKPOINTS
    return f"{'one checkpoint of each' if checkpoints else counted(comparison.seeds, 'seed')}, {items}"


def comparison_sentence(comparison: Comparison) -> str:
    """The verdict on one comparison, and the limits that belong to it."""
    return " ".join([answer(comparison), *limit_sentences([comparison])])


def answer(comparison: Comparison, brief: bool = False, everywhere: str = "") -> str:
    """Who did better, by how much, how sure; or why that is not known. A leak audit that failed is told with it.

    Args:
        brief: leave out what `basis_sentence` says of all
        everywhere: the test sets on each of which this holds by itself
    """
    line = _outcome(comparison, brief, everywhere)
    for name, failed in comparison.accepted_failures.items():
        line += (
            f" Caution: {name} FAILED its leak audit ({', '.join(failed) or 'see there'}); the failure was accepted."
        )
    return line


def _outcome(comparison: Comparison, brief: bool, everywhere: str) -> str:
    one, other, numbers = comparison.variant, comparison.baseline, difference_words(comparison)
    if comparison.question == Question.CHECKPOINTS:
        one, other = f"this checkpoint of {one}", f"that of {other}"
    where = f" on {comparison.test_set}" if comparison.test_set and not brief else ""
    if brief and numbers:
        p = comparison.p_adjusted
        numbers, where = amount(comparison) + ("" if p is None else f" ({p_words(p)})"), everywhere
    reasons = reasons_text(comparison)
    match comparison.verdict:
        case VerdictKind.BETTER | VerdictKind.WORSE:
            return f"{one} is {comparison.verdict} than {other}{where}: {numbers}."
        case VerdictKind.EQUIVALENT:
            margin = change(comparison.metric.name, comparison.margin, signed=False)
            return f"{one} and {other} are equivalent{where}, no difference larger than {margin}: {numbers}."
        case VerdictKind.NOT_COMPARABLE:
            so_far = f" For reference: {numbers}." if numbers and not comparison.neither_learned else ""
            return f"{one} and {other} are not comparable{where}: {reasons}.{so_far}"
    return f"{one} versus {other} is undecided{where}: {f'{reasons}. So far: ' if reasons else ''}{numbers}."


def reasons_text(comparison: Comparison) -> str:
    if comparison.too_few_seeds and comparison.verdict == VerdictKind.UNDECIDED:
        needed = 2 if comparison.runs and not comparison.runs[1] else FEWEST_SEEDS
        return f"too few {'runs' if comparison.runs else 'seeds'}, a verdict needs {needed}"
    return "; ".join(reason.text for reason in comparison.reasons)


SEVERAL = 3  # comparisons of one verdict that are told together, where there are many
MANY = 5  # answers that are each told with their numbers
SPEEDUP_PROBLEMS = {
    SpeedupProblem.DIVERGED: "{run} diverged, so no loss is reached by every run",
    SpeedupProblem.TOO_SHORT: "{run} has a curve of one point",
    SpeedupProblem.OUT_OF_REACH: "{run} never falls to the loss at which another run begins",
}


def speedup_sentence(speedup: Speedup) -> str:
    """`rope reaches learned's loss with 1.31 times less training (95% interval 1.22 to 1.40; loss 4.52, 5 seeds).`"""
    ours, theirs, ratio = speedup.variant, speedup.baseline, speedup.ratio
    if speedup.problem is not None or ratio.estimate is None or speedup.loss is None:
        problem = SPEEDUP_PROBLEMS[speedup.problem or SpeedupProblem.TOO_SHORT].format(run=speedup.run)
        return f"Training of {ours} and {theirs} cannot be compared at equal loss: {problem}."
    less = ratio.estimate >= 1
    ends = [ratio.low, ratio.high] if less else [ratio.high, ratio.low]
    shown = [f"{end if less else 1 / end:.2f}" for end in (ratio.estimate, *ends) if end]
    interval = f"95% interval {shown[1]} to {shown[2]}" if len(shown) == 3 else "no interval"
    runs = counted(speedup.runs[0], "seed")
    if speedup.runs[0] != speedup.runs[1]:
        runs = f"{speedup.runs[0]} and {speedup.runs[1]} seeds"
    kind = "less" if less else "more"
    whose = f"{theirs}'s loss" if less else "the same loss as " + theirs
    return (
        f"{ours} reaches {whose} with {shown[0]} times {kind} training ({interval}; loss {speedup.loss:.3g}, {runs})."
    )


def limit_sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """What limits these verdicts, each said once: power, corrections, small differences, few or alike items."""
    lines = []
    judged = [each for each in comparisons if each.verdict == VerdictKind.UNDECIDED and not each.reasons]
    if any((each.p or 1.0) < each.alpha and (each.p_adjusted or 0.0) >= each.alpha for each in judged):
        lines.append("An interval excludes zero, but the difference is not significant after correction.")
    lines += [power_sentence(judged)] if any(each.detectable for each in judged) else []
    tested = [each for each in comparisons if each.effective_items is not None]
    if unpaired := [each for each in tested if not each.paired and not each.too_few_seeds]:
        common = max(len(each.by_seed) for each in unpaired)
        shared = f"only {counted(common, 'seed')}" if common else "no seeds"
        lines.append(f"The two share {shared}; they are compared as independent groups.")
    for each in tested[:1] if all(own.question != Question.NEW_RUNS_SAME_ITEMS for own in tested) else ():
        kind = "test items" if each.groups is None else "groups of test items"
        units, few = each.groups or each.items, any(own.code == ReasonCode.TOO_FEW_ITEMS for own in each.reasons)
        if each.alike >= ALIKE:
            lines.append(f"Neighbouring {kind} may be alike, so {units:,} count as {each.effective_items:,.0f}.")
        if (each.effective_items or 0) < FEW_ITEMS and not few:
            lines.append(f"With so few {kind} ({each.effective_items:.0f}), the interval is rough.")
    return lines


def power_sentence(undecided: Sequence[Comparison]) -> str:
    """What these comparisons could detect, and what would detect the margin."""
    known = [each for each in undecided if each.detectable is not None]
    name, checkpoints = known[0].metric.name, known[0].question == Question.CHECKPOINTS
    ends = [end for each in known for end in each.detectable or ()]
    sizes = change_range(name, min(ends), max(ends))
    line = f"This {'test' if checkpoints else 'study'} could detect differences of {sizes}."
    detecting = f"Detecting {change(name, known[0].margin, signed=False)} takes"
    if seeds := [each.more_seeds for each in known if each.more_seeds is not None]:
        lows, highs = [each.low for each in seeds], [each.high for each in seeds]
        low = None if None in lows else min(own for own in lows if own is not None)
        high = None if None in highs else max(own for own in highs if own is not None)
        return f"{line} {detecting} {'about ' if low is not None else ''}{MoreSeeds(low, high)} more seeds."
    if items := [each.more_items for each in known if each.more_items is not None]:
        kind = "test items" if known[0].groups is None else "groups of test items"
        count = f"{round(max(items), min(0, 2 - len(str(max(items))))):,}"
        return f"{line} {detecting} at least {count} {kind}{'' if checkpoints else ', however many seeds'}."
    return line


def study_sentences(tasks: Mapping[str, TaskVerdict]) -> tuple[Sentence, ...]:
    """Of all tasks: the answers, then what limits them, the most important first."""
    told = {title: task_sentences(verdict) for title, verdict in tasks.items()}
    sentences = []
    for title, (answers, basis, _) in told.items():
        sentences += [Sentence(text, title) for text in answers]
        sentences += [Sentence(basis, title, basis=True)] if basis else []
    for kind in zip(*(limits for _, _, limits in told.values()), strict=True):
        sentences += limits_of(dict(zip(told, kind, strict=True)))
    return tuple(sentences)


def limits_of(texts: Mapping[str, Sequence[str]]) -> list[Sentence]:
    """Limits of each task; what holds for all tasks is said once."""
    everywhere = [text for text in next(iter(texts.values()), ()) if all(text in own for own in texts.values())]
    once = [Sentence(text, limit=True) for text in everywhere] if len(texts) > 1 else []
    return once + [
        Sentence(text, title, limit=True)
        for title, own in texts.items()
        for text in own
        if not once or text not in everywhere
    ]


def task_sentences(verdict: TaskVerdict) -> tuple[list[str], str, list[list[str]]]:
    """Of one task: the answers, one for each variant; what all of them rest on; and what limits them, by kind, the most
    important first."""
    losses, wins = baseline_sentences(verdict)
    limits = [
        unlearned_sentences(verdict),
        losses,
        attention_sentences(verdict),
        audit_sentences(verdict),
        opposite_sentences(verdict),
        [VOCABULARIES_DIFFER] if verdict.vocabularies_differ else [],
        training_sentences(verdict),
        contamination_sentences(verdict),
        limit_sentences(verdict.comparisons),
        wins,
        failure_sentences(verdict.failures),
        [best_of_sentence(best, verdict.metric.name)] if (best := verdict.best_of) and best.variants > 2 else [],
        [f"Exploratory: {each.sentence}" for each in verdict.speedups if each.ratio.estimate is not None],
    ]
    basis = basis_sentence(verdict.comparisons)
    clear = [each for each in verdict.comparisons if each.verdict in (VerdictKind.BETTER, VerdictKind.WORSE)]
    if basis and clear and all(_everywhere(verdict, each) for each in clear):
        basis += " Clear differences hold on each test set."
    return verdict_sentences(verdict, basis), basis, limits


def verdict_sentences(verdict: TaskVerdict, basis: str = "") -> list[str]:
    """One for each variant; one for all that were judged before, or did not learn. Where there are many variants, those
    with the same verdict share one. `basis`: what is said of all."""
    comparisons = verdict.comparisons
    before = [each for each in comparisons if each.judged_before]
    blank = [each for each in comparisons if each.neither_learned]
    lines = [_judged_before(before)] if before else []
    if len(blank) > 1:
        names = listed([*(each.variant for each in blank), blank[0].baseline])
        lines.append(f"{names} are not comparable on {blank[0].test_set}: none of these models has learned the task.")
        before = [*before, *blank]
    alike: dict[tuple[object, ...], list[Comparison]] = {}
    for each in comparisons:
        if each not in before:
            alone = each.variant if len(comparisons) <= MANY or each.accepted_failures else None
            alike.setdefault((each.verdict, each.reasons, each.test_set, alone), []).append(each)
    for group in sorted(
        alike.values(), key=lambda group: list(VerdictKind).index(group[0].verdict)
    ):  # clear ones first
        if len(group) >= SEVERAL:
            lines.append(_outcomes(group, bool(basis)))
        else:
            said = "each test set" in basis
            lines += [answer(each, bool(basis), "" if said else _everywhere(verdict, each)) for each in group]
    return lines


def _alone(verdict: TaskVerdict, comparison: Comparison) -> list[Comparison]:
    """The same claim on each of several test sets."""
    return [
        each
        for each in verdict.exploratory
        if (each.variant, each.metric) == (comparison.variant, comparison.metric)
        and each.test_set in verdict.sets
        and each.subset == verdict.sets[each.test_set].subset
        and each.test_set != comparison.test_set
    ]


def _everywhere(verdict: TaskVerdict, comparison: Comparison) -> str:
    """` on all 3 test sets`, if each of them shows it by itself."""
    alone = _alone(verdict, comparison)
    same = all(
        each.p is not None and each.p < comparison.level and (each.gain or 0.0) * (comparison.gain or 0.0) > 0
        for each in alone
    )
    clear = comparison.verdict in (VerdictKind.BETTER, VerdictKind.WORSE)
    return f" on all {len(alone)} test sets" if clear and same and len(alone) > 1 else ""


def opposite_sentences(verdict: TaskVerdict) -> list[str]:
    """Test sets that show the opposite of a verdict."""
    lines = []
    for comparison in verdict.comparisons:
        if comparison.verdict not in (VerdictKind.BETTER, VerdictKind.WORSE):
            continue
        against = [each for each in _alone(verdict, comparison) if each.q is not None and each.q < 0.05]
        against = [each for each in against if (each.gain or 0.0) * (comparison.gain or 0.0) < 0]
        if against:
            sets, kind = (
                listed([each.test_set for each in against]),
                "worse" if comparison.verdict == "better" else "better",
            )
            lines.append(f"Test sets disagree: {comparison.variant} is {kind} on {sets} (exploratory).")
    return lines


def _outcomes(group: Sequence[Comparison], brief: bool) -> str:
    """Several with the same verdict, in one sentence; the table has their numbers."""
    first, names = group[0], [each.variant for each in group]
    shown = listed(names if len(names) <= 2 * SEVERAL else [*names[:SEVERAL], f"{len(names) - SEVERAL} others"])
    where = (f" on {first.test_set}" if first.test_set else "") + f" ({first.metric.name}, {direction(first)})"
    where = "" if brief else where
    if first.verdict == VerdictKind.EQUIVALENT:
        margin = change(first.metric.name, first.margin, signed=False)
        return f"{shown} are equivalent to {first.baseline}{where}: no difference larger than {margin}."
    kinds = {VerdictKind.NOT_COMPARABLE: "not comparable with", VerdictKind.UNDECIDED: "undecided versus"}
    kind, reasons = kinds.get(first.verdict, f"{first.verdict} than"), reasons_text(first)
    return f"{shown} are {kind} {first.baseline}{where}{f': {reasons}' if reasons else ''}."


def _judged_before(comparisons: Sequence[Comparison]) -> str:
    """What was judged before, and what to do."""
    head = f"Undecided, exploratory: {comparisons[0].reasons[0].text}."
    told = [
        f"{each.variant} {change(each.metric.name, each.difference.estimate)}"
        + ("" if each.q is None else f" (q = {each.q:.2g})")
        for each in comparisons
        if each.difference.estimate is not None
    ]
    advice = "--open-ended allows any number of verdicts; else repeat the study with new seeds."
    return f"{head} So far, against {comparisons[0].baseline}: {'; '.join(told)}. What to do: {advice}"


def on_sets(verdict: TaskVerdict, sets: Sequence[str], every: str = "all") -> str:
    """`on obama and wbush`, `on all 3 test sets`"""
    whole = len(sets) == len(verdict.sets) > 1
    kind = f"{every} {len(sets)} test sets" if every == "all" else f"{every} test set"
    return f"on {kind if whole else listed(sets)}"


def unlearned_sentences(verdict: TaskVerdict) -> list[str]:
    """Which seeds learned nothing: one sentence for all variants of which the same holds."""
    places: defaultdict[tuple[str, UnlearnedKind, str], list[str]] = defaultdict(list)
    for each in verdict.unlearned:
        some, all_of_them = UNLEARNED[each.kind]
        text = f"{len(each.seeds)} of {each.of} seeds {some}" if len(each.seeds) < each.of else all_of_them
        places[each.variant, each.kind, text].append(each.test_set)
    variants: defaultdict[str, list[str]] = defaultdict(list)
    for (variant, _, text), sets in places.items():
        where = on_sets(verdict, sets, "any" if text.startswith("no seed") else "all")
        variants[f"{text} {where}"].append(variant)
    return [f"{listed(names)}: {text}." for text, names in variants.items()]


def attention_sentences(verdict: TaskVerdict) -> list[str]:
    """Where one side of a comparison about attention or positions makes no use of attention."""
    idle = verdict.attention_unused
    if not idle or len(idle) == len(verdict.scores):
        return []
    return [f"{listed(idle)} did not use attention: with uniform weights or shuffled words, scores are as good."]


def training_sentences(verdict: TaskVerdict) -> list[str]:
    """Variants most of whose seeds had not finished learning, or were worse since."""
    kinds = (TrainingEndKind.STILL_IMPROVING, TrainingEndKind.OVERFITTED)
    by_kind: dict[TrainingEndKind, list[str]] = {kind: [] for kind in kinds}
    for variant, by_seed in verdict.training.items():
        for kind in kinds:
            if 2 * sum(each.end == kind for each in by_seed.values()) > len(by_seed):
                by_kind[kind].append(variant)
    texts = (
        "still improving when training stopped; results may change with longer training",
        "best long before training stopped, and worse since",
    )
    lines = []
    for (kind, variants), text in zip(by_kind.items(), texts, strict=True):
        every = len(variants) == len(verdict.training) > 1
        who = listed(variants) if variants else ""
        if every:
            who = "Both variants" if len(variants) == 2 else f"All {len(variants)} variants"
        title = "Underfitted" if kind == TrainingEndKind.STILL_IMPROVING else "Overfitted"
        lines += [f"{title}: {who} {'was' if len(variants) == 1 else 'were'} {text}."] if variants else []
    return lines


OWN_CODE = {
    OwnCode.OPTIMIZER: "its own optimizer",
    OwnCode.LOSS: "its own loss",
    OwnCode.TABLES: "tables filled before training",
}


def audit_sentences(verdict: TaskVerdict) -> list[str]:
    lines = []
    for name, audit in verdict.audits.items():
        if audit.own_code:
            own, both = listed([OWN_CODE[code] for code in audit.own_code]), listed(["network", *audit.own_code])
            lines.append(f"Own training code: {name} uses {own}. What is compared is {both}, not the network alone.")
        if audit.level == AuditLevel.UNAUDITED:
            lines.append(f"Not audited: {name}, as the audit's process broke down; run the study again.")
        elif audit.level == AuditLevel.AMBER:
            lines.append(f"Leak audit with warnings: {name} ({', '.join(audit.failed) or 'see there'}).")
    return lines


def contamination_sentences(verdict: TaskVerdict) -> list[str]:
    """Test sets on which verdicts leave out copies, and what the copies are worth to the baseline variant."""
    lines = []
    for name, test_set in verdict.sets.items():
        if test_set.subset != "clean":
            continue
        near = f" ({test_set.near} of them as near duplicates)" if test_set.near else ""
        copies = f"{test_set.copies:,} of {test_set.items:,} items also occur in the training set{near}"
        line = f"On {name}, {copies}; verdicts are on the {test_set.clean:,} clean ones."
        scores = verdict.scores[verdict.baseline][name]
        means = [scores[subset].mean.estimate for subset in ("contaminated", "clean") if subset in scores]
        if len(means) == 2 and None not in means:
            copied, clean = (score_words(verdict.metric.name, mean) for mean in means if mean is not None)
            whose = f"The {verdict.metric.name} of {verdict.baseline}"
            line += f" {whose} is {copied} on the copies and {clean} on clean items."
        lines.append(line)
    return lines


def failure_sentences(failures: Sequence[Failure]) -> list[str]:
    if not failures:
        return []
    which = listed([f"{failure.variant} (seed {failure.seed})" for failure in failures])
    return [f"{counted(len(failures), 'trial')} failed and {'is' if len(failures) == 1 else 'are'} left out: {which}."]


def best_of_sentence(best_of: BestOf, metric: str) -> str:
    lead = change(metric, best_of.expected_bias, signed=False)
    how = f"{'by the' if best_of.test_set.startswith(('average', 'mean')) else 'on'} {best_of.test_set}"
    return f"Selecting the best of {best_of.variants} variants {how} overstates it by about {lead}."


def baseline_sentences(verdict: TaskVerdict) -> tuple[list[str], list[str]]:
    """How variants compare with the strongest baseline of each test set: sentences that must come first (losses), and
    those that can wait."""
    places: defaultdict[tuple[VerdictKind, int, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for name, test_set in verdict.sets.items():
        here = [e for e in verdict.baseline_comparisons if (e.test_set, e.subset) == (name, test_set.subset)]
        sound = [each for each in here if each.verdict != VerdictKind.NOT_COMPARABLE and each.scores]
        if not sound:
            continue
        sign = 1 if sound[0].metric.higher_is_better else -1
        alike = [each for each in sound if each.metric == sound[0].metric]  # perplexities and bits rank apart
        strongest = max(alike, key=lambda each: sign * each.scores[1] if each.scores else -math.inf).baseline
        by_kind: defaultdict[tuple[VerdictKind, int], list[str]] = defaultdict(list)
        for each in sound:
            if each.baseline == strongest:
                gain = each.gain or 0.0
                by_kind[each.verdict, (gain > 0) - (gain < 0)].append(each.variant)
        for (kind, side), variants in by_kind.items():
            places[kind, side, strongest, tuple(variants)].append(name)
    losses, wins = list[str](), list[str]()
    order = list(VERBS)
    for (kind, side, strongest, names), sets in sorted(places.items(), key=lambda each: order.index(each[0][:2])):
        verb = VERBS[kind, side][len(names) > 1]
        who = "All variants" if len(names) == len(verdict.scores) > 1 else listed(names)
        unsure = " (difference not significant)" * (kind == VerdictKind.UNDECIDED and side != 0)
        line = f"{who} {verb} {strongest} (no network) {on_sets(verdict, sets)}{unsure}."
        (wins if side > 0 else losses).append(line)
    return losses, wins
