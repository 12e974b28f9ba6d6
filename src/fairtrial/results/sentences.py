"""A verdict in plain, exact sentences, made last and from values alone: of one comparison, of several that agree, of
everything else worth knowing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from fairtrial.results.values import (
    FEWEST_SEEDS,
    AuditLevel,
    BestOf,
    Comparison,
    Failure,
    Metric,
    Question,
    ReasonCode,
    TaskVerdict,
    TestReuse,
    TestSet,
    TrainingEndKind,
    Unlearned,
    UnlearnedKind,
    VerdictKind,
    is_accuracy,
)

if TYPE_CHECKING:
    from fairtrial.stored_study import PastLook

NEEDED = f"A verdict needs {FEWEST_SEEDS}; a single seed raises a false alarm in up to 41% of cases."
FEW_ITEMS = 30  # below this, an interval is rough
ALIKE = 3.0  # from so many neighbours that count as one, it is told
SINGLE_LOOK = 0.05
PERCENTAGES = ("accuracy", "macro-F1")
NAMED = ("accuracy", "macro-F1", "log loss", "perplexity")  # told with the difference; others are their own unit
VOCABULARIES_DIFFER = (
    "Vocabularies differ, so bits per byte are compared, which count every byte (unknown words by their spelling), and"
    " not perplexities, which are about different tokens."
)
UNLEARNED = {
    UnlearnedKind.ONE_CLASS: "answer one class only",
    UnlearnedKind.LARGEST_CLASS: "are no better than the largest class",
    UnlearnedKind.WORD_FREQUENCIES: "are no better than word frequencies",
}
# a variant against what needs no network, by verdict and by the sign of the gain: of one variant, of several
VERBS = {
    (VerdictKind.WORSE, -1): ("scores below", "score below"),
    (VerdictKind.UNDECIDED, -1): ("scores below, though not significantly,", "score below, though not significantly,"),
    (VerdictKind.UNDECIDED, 0): ("scores the same as", "score the same as"),
    (VerdictKind.UNDECIDED, 1): ("scores above, though not significantly,", "score above, though not significantly,"),
    (VerdictKind.BETTER, 1): ("beats", "beat"),
}


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def score_words(metric: str, value: float) -> str:
    """`85.2%`, `374.6`, `1.234`"""
    value = round(value, 9)  # two sums of the same numbers must not round to different sides of a half
    if is_accuracy(metric) or metric in PERCENTAGES:
        return f"{value:.1f}%"
    return f"{value:.1f}" if metric == "perplexity" else f"{value:.3f}"


def change(metric: str, value: float, signed: bool = True) -> str:
    """A difference in the metric's unit; of perplexity in per cent."""
    if metric == "perplexity":
        share = 100 * math.expm1(min(700.0, value))
        return f"{_number(share, signed, 1)}%"
    if is_accuracy(metric) or metric in PERCENTAGES:
        number = _number(value, signed, 1)
        return f"{number} point{'' if number == '1' else 's'}"
    unit = "nats per item" if metric == "log loss" else metric
    return f"{_number(value, signed, 3)} {unit}"


def change_range(metric: str, low: float, high: float) -> str:
    """`2.4 to 5.3 points`"""
    first, last = (change(metric, value, signed=False) for value in (low, high))
    return first if first == last else f"{first.split(' ')[0].rstrip('%')} to {last}"


def ends_words(comparison: Comparison) -> str:
    """`-0.4 to +1.7`: without a unit but for per cent. Empty without an interval."""
    low, high, metric = comparison.difference.low, comparison.difference.high, comparison.metric.name
    if low is None or high is None:
        return ""
    return " to ".join(change(metric, end).split(" ")[0] for end in (low, high))


def _number(value: float, signed: bool, digits: int) -> str:
    """One digit more for what would read as zero, and no sign on a true zero."""
    if digits == 3 and 1e-6 < abs(value) < 0.1:  # two digits that count
        digits = 1 - math.floor(math.log10(abs(value)))
    elif value and abs(value) < 0.5 * 10**-digits:
        digits += 1
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    text = text[:-2] if not signed and text.endswith(".0") else text
    return text.lstrip("+-") if not float(text) else text


def two_digits(count: int) -> str:
    """Of a large number: `12,000`"""
    return f"{round(count, min(0, 2 - len(str(count)))):,}"


def p_words(p: float) -> str:
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def metric_lead(metric: Metric) -> str:
    return f"{metric.name} " if metric.is_accuracy or metric.name in NAMED else ""


def difference_words(comparison: Comparison) -> str:
    """`accuracy +0.7 points (higher is better; 95% interval -0.4 to +1.7, p = 0.20; 12 seeds, 750 items)`"""
    estimate, metric = comparison.difference.estimate, comparison.metric
    if estimate is None:
        return ""
    inside, amount = [], f"{metric_lead(metric)}{change(metric.name, estimate)}"
    if metric.unit == metric.name != "bits per byte":  # a name that fairtrial does not know
        amount = f"{metric.name} {amount.removesuffix(f' {metric.name}')}"
    inside.append("higher is better" if metric.higher_is_better else "lower is better")
    if ends := ends_words(comparison):
        inside.append(f"95% interval {ends}")
        if comparison.p_adjusted is not None:
            family = comparison.family
            among = f" after correction for {family} comparisons" if family > 1 else ""
            inside[-1] += f", {p_words(comparison.p_adjusted)}{among}"
    if comparison.runs is not None:
        ours, theirs = comparison.runs
        both = counted(ours, "run") if not theirs else f"{ours} and {counted(theirs, 'run')}"
        return f"{amount} ({'; '.join([*inside, f'{ours} runs each' if ours == theirs else both])})"
    items = counted(comparison.items, "item" if comparison.subset == "all" else f"{comparison.subset} item")
    groups = "" if comparison.groups is None else f" in {counted(comparison.groups, 'group')}"
    effective = comparison.effective_items
    if comparison.groups is not None and effective is not None:
        equal = effective * comparison.alike
        groups += f" of unequal size, which count as {equal:.0f}" if equal <= 0.8 * comparison.groups else ""
    inside.append(f"{_repeats(comparison)}, {items}{groups}")
    return f"{amount} ({'; '.join(inside)})"


def _repeats(comparison: Comparison) -> str:
    if comparison.question == Question.CHECKPOINTS:
        return "one checkpoint of each"
    return counted(comparison.seeds, "seed")


def comparison_sentence(comparison: Comparison) -> str:
    """The verdict on one comparison, and the remarks that belong to it."""
    one, other, numbers = comparison.variant, comparison.baseline, difference_words(comparison)
    where = f"On {comparison.test_set}, " if comparison.test_set else ""
    if comparison.neither_learned:
        return _neither_learned([comparison])
    if comparison.verdict == VerdictKind.NOT_COMPARABLE:
        reasons = "; ".join(reason.text for reason in comparison.reasons)
        lines = [f"{where}{one} and {other} are not comparable: {reasons}."]
        lines += [f"For reference: {numbers}."] if numbers else []
    elif comparison.verdict == VerdictKind.UNDECIDED and comparison.reasons and not comparison.too_few_seeds:
        reasons = "; ".join(reason.text for reason in comparison.reasons)
        lines = [f"{where}{_outcome(comparison)}: {reasons}. So far: {numbers}."]
    elif comparison.too_few_seeds:
        kind = "runs" if comparison.runs else "seeds"
        lines = [f"{where}there are too few {kind} to compare {one} with {other}. {_needed(comparison)}"]
        lines.append(f"So far: {numbers}.")
    else:
        lines = [f"{where}{_outcome(comparison)}: {numbers}."]
        if comparison.verdict == VerdictKind.UNDECIDED:
            low, high = comparison.difference.low or 0.0, comparison.difference.high or 0.0
            if comparison.p is not None and comparison.p < SINGLE_LOOK and low * high > 0:
                many = comparison.family > 1
                among = f"after correction for {comparison.family} comparisons the difference is not significant"
                reason = among if many else f"p must be below {comparison.alpha:g}"
                lines.append(f"The interval excludes zero, but {reason}.")
            lines.append(_what_it_takes(comparison))
    text = " ".join(filter(None, [*lines, *remarks(comparison)]))
    return text[0].upper() + text[1:]


def _outcome(comparison: Comparison) -> str:
    one, other = comparison.variant, comparison.baseline
    if comparison.question == Question.CHECKPOINTS:
        one, other = f"this checkpoint of {one}", f"that of {other}"
    if comparison.verdict in (VerdictKind.BETTER, VerdictKind.WORSE):
        return f"{one} is {comparison.verdict} than {other}"
    if comparison.verdict == VerdictKind.EQUIVALENT:
        margin = change(comparison.metric.name, comparison.margin, signed=False)
        return f"{one} and {other} are equivalent (no difference larger than {margin})"
    return f"{one} versus {other} is undecided"


def level_words(comparison: Comparison) -> str:
    """The level that decides, where it is not 5% for one comparison."""
    at = f" (p below {comparison.alpha:g})" if comparison.alpha < SINGLE_LOOK else ""
    return at + (f" after correction for {comparison.family} comparisons" if comparison.family > 1 else "")


def _what_it_takes(comparison: Comparison) -> str:
    """What would detect the margin."""
    if comparison.detectable is None:
        return ""
    name, checkpoints = comparison.metric.name, comparison.question == Question.CHECKPOINTS
    sizes = change_range(name, *comparison.detectable)
    line = f"A {'test' if checkpoints else 'study'} like this detects {sizes} in 4 of 5 cases{level_words(comparison)}."
    detecting = f"Detecting {change(name, comparison.margin, signed=False)} takes"
    if (more := comparison.more_seeds) is not None:
        roughly = "" if more.low is None else "about "  # "more than 100" is rough already
        line += f" {detecting} {roughly}{more} more seeds."
    if comparison.more_items is not None:
        kind = "test items" if comparison.groups is None else "groups of test items"
        ever = "" if checkpoints else ", however many seeds"
        line += f" {detecting} at least {two_digits(comparison.more_items)} {kind}{ever}."
    return line


def remarks(comparison: Comparison) -> list[str]:
    """What belongs to a verdict: a difference too small to matter, accepted faults, unpaired seeds, few items."""
    lines = []
    low, high, margin = comparison.difference.low, comparison.difference.high, comparison.margin
    clear = comparison.verdict in (VerdictKind.BETTER, VerdictKind.WORSE)
    if clear and low is not None and high is not None and -margin < low and high < margin:
        lines.append(f"Significant, but smaller than {change(comparison.metric.name, margin, signed=False)}.")
    for name, failed in comparison.accepted_failures.items():
        checks = ", ".join(failed) or "see there"
        lines.append(f"Caution: {name} FAILED its leak audit ({checks}); the failure was accepted.")
    if comparison.effective_items is not None:
        units, kind = comparison.items, "test items"
        if comparison.groups is not None:
            units, kind = comparison.groups, "groups of test items"
        told = any(reason.code == ReasonCode.TOO_FEW_ITEMS for reason in comparison.reasons)
        if comparison.alike >= ALIKE:
            count = "" if told else f": {units:,} count as {comparison.effective_items:,.0f}"
            lines.append(f"Neighbouring {kind} are alike{count}.")
        if not comparison.paired and not comparison.too_few_seeds:
            common = f"only {counted(len(comparison.by_seed), 'seed')}" if comparison.by_seed else "no seeds"
            lines.append(f"The two share {common}; they are compared as independent groups.")
        few = comparison.effective_items < FEW_ITEMS and not told
        if few and comparison.question != Question.NEW_RUNS_SAME_ITEMS:
            lines.append(f"With so few {kind} ({comparison.effective_items:.0f}), the interval is rough.")
    return lines


def task_sentences(verdict: TaskVerdict) -> tuple[list[str], list[str]]:
    """Of one task: those that must come first, and those that can wait."""
    losses, wins = baseline_sentences(verdict)
    first = [
        *learning_sentences(verdict),
        *([VOCABULARIES_DIFFER] if verdict.vocabularies_differ else []),
        *losses,
        *verdict_sentences(verdict.comparisons),
    ]
    rest = [
        *audit_sentences(verdict),
        *contamination_sentences(verdict),
        *wins,
        *reuse_sentences(verdict.test_reuse, verdict.metric.name),
        *failure_sentences(verdict.failures),
        *([best_of_sentence(verdict.best_of, verdict.metric.name)] if verdict.best_of else []),
    ]
    return first, rest


def verdict_sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """One for each variant; one for all that have too few seeds, were judged before, or did not learn."""
    few = [each for each in comparisons if each.too_few_seeds]
    before = [each for each in comparisons if each.judged_before]
    blank = [each for each in comparisons if each.neither_learned]
    lines = [_too_few(few)] if len(few) > 1 else [comparison_sentence(each) for each in few]
    lines += [_judged_before(before)] if before else []
    lines += [_neither_learned(blank)] if blank else []
    return [*lines, *(comparison_sentence(each) for each in comparisons if each not in (*few, *before, *blank))]


def _needed(comparison: Comparison) -> str:
    return "A threshold needs 2." if comparison.runs and not comparison.runs[1] else NEEDED


def _too_few(comparisons: Sequence[Comparison]) -> str:
    kind = "run" if comparisons[0].runs else "seed"
    most = counted(max(each.seeds for each in comparisons), kind)
    head = f"There are too few {kind}s to judge: {most}. {_needed(comparisons[0])}"
    return f"{head} {_so_far(comparisons)}"


def _judged_before(comparisons: Sequence[Comparison]) -> str:
    """What was judged before, and what to do."""
    head = (
        f"Undecided, exploratory: {comparisons[0].reasons[0].text}, and further verdicts raise false alarms above 5%."
    )
    advice = "--open-ended allows any number of verdicts; else repeat the study with new seeds."
    return f"{head} {_so_far(comparisons)} What to do: {advice}"


def _neither_learned(comparisons: Sequence[Comparison]) -> str:
    names = listed([*(each.variant for each in comparisons), comparisons[0].baseline])
    who = "None of these models has" if len(comparisons) > 1 else "Neither model has"
    return f"Not comparable: {names}. {who} learned the task on {comparisons[0].test_set}."


def _so_far(comparisons: Sequence[Comparison]) -> str:
    told = [
        f"{each.variant} {change(each.metric.name, each.difference.estimate)}"
        + ("" if each.q is None else f" (q = {each.q:.2g})")
        for each in comparisons
        if each.difference.estimate is not None
    ]
    return f"So far, against {comparisons[0].baseline}: {'; '.join(told)}."


def earlier_words(past: PastLook, now: PastLook) -> str:
    """What an earlier verdict was on, as far as it differs."""
    variants, before = ({name for own in look.seeds.values() for name in own} for look in (now, past))
    most = [max((count for own in look.seeds.values() for count in own.values()), default=0) for look in (past, now)]
    differences = [
        (most[0] != most[1], f"with {counted(most[0], 'seed')}"),
        (before != variants, f"with the variants {listed(sorted(before))}" if before else ""),
        (past.baseline not in ("", now.baseline), f"against {past.baseline}"),
        (past.outcomes != "" and past.margins != now.margins, "with another margin"),
        (past.outcomes != "" and past.endpoint != now.endpoint, "with another endpoint"),
    ]
    told = [text for differs, text in differences if differs]
    return f"this study was judged before, {listed(told or ['on other outcomes or by another rule'])}"


def learning_sentences(verdict: TaskVerdict) -> list[str]:
    """Which seeds learned nothing, and which had not finished learning."""
    lines = []
    unlearned: defaultdict[str, list[Unlearned]] = defaultdict(list)
    for each in verdict.unlearned:
        unlearned[each.variant].append(each)
    for variant, cases in unlearned.items():
        ways = [
            f"{len(each.seeds)} of {counted(each.of, 'seed')} {UNLEARNED[each.kind]} on {each.test_set}"
            for each in cases
        ]
        lines.append(f"Did not learn: of {variant}, {'; '.join(ways)}.")
    improving = []
    for variant, by_seed in verdict.training.items():
        ends = list(by_seed.values())
        worse = [each for each in ends if each.end == TrainingEndKind.OVERFITTED]
        still = sum(each.end == TrainingEndKind.STILL_IMPROVING for each in ends)
        if 2 * still > len(ends):
            improving.append((variant, f"{still} of {counted(len(ends), 'seed')}"))
        elif 2 * len(worse) > len(ends):
            best, steps = (round(median(getattr(each, key) for each in worse)) for key in ("best_step", "steps"))
            line = f"Overfitted: {len(worse)} of {counted(len(ends), 'seed')} of {variant} were best at step {best:,}"
            lines.append(f"{line} of {steps:,} (median), worse since.")
    if improving:
        who = listed([f"{variant} ({seeds})" for variant, seeds in improving])
        if len(improving) == len(verdict.training) > 1:
            who = f"all {len(improving)} variants"
        text = (
            f"Underfitted: {who} were still improving when training stopped; results may change with longer training."
        )
        lines.insert(len(unlearned), text)
    return lines


def audit_sentences(verdict: TaskVerdict) -> list[str]:
    lines = []
    for name, audit in verdict.audits.items():
        so = "accepted with an explicit option" if audit.accepted else "it cannot be called better"
        failed = ", ".join(audit.failed) or "see there"
        if audit.level == AuditLevel.RED:
            lines.append(f"Failed leak audit: {name} ({failed}); {so}.")
        elif audit.level == AuditLevel.UNAUDITED:
            lines.append(f"Not audited: {name}, as the audit's process broke down (run the study again); {so}.")
        elif audit.level == AuditLevel.AMBER:
            lines.append(f"Leak audit with warnings: {name} ({failed}).")
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


def subset_sentence(test_set: TestSet) -> str:
    """Why verdicts are on the items that they are on."""
    if test_set.copies is None:
        return "The training set was not searched for copies of test items."
    if not test_set.copies:
        return "No test item occurs in the training set."
    clean = test_set.subset == "clean"
    choice = "verdicts are on the clean ones" if clean else "few enough for verdicts on all items"
    return f"{test_set.copies / test_set.items:.1%} of the test items also occur in the training set: {choice}."


def reuse_sentences(test_reuse: Mapping[str, Mapping[str, TestReuse]], metric: str) -> list[str]:
    """What picking the best step on the test set would have claimed. Perplexity during training is a quick one: not the
    table's."""
    lines, way = [], ""
    if metric in ("perplexity", "bits per byte"):
        metric, way = "perplexity", " (non-overlapping windows)"
    for name, by_set in test_reuse.items():
        for test_set, use in by_set.items():
            picked, honest = use.picked_on_test, use.honest
            if use.watched and picked is not None and honest is not None and picked != honest:
                numbers = f"{score_words(metric, picked)} instead of {score_words(metric, honest)}"
                lines.append(f"With its best step picked on {test_set}, {name} would score {numbers}{way}.")
    return lines


def failure_sentences(failures: Sequence[Failure]) -> list[str]:
    if not failures:
        return []
    which = listed([f"{failure.variant} (seed {failure.seed})" for failure in failures])
    return [f"{counted(len(failures), 'trial')} failed and {'is' if len(failures) == 1 else 'are'} left out: {which}."]


def best_of_sentence(best_of: BestOf, metric: str) -> str:
    lead = change(metric, best_of.expected_bias, signed=False)
    return f"Selecting the best of {best_of.variants} variants on {best_of.test_set} overstates it by about {lead}."


def baseline_sentences(verdict: TaskVerdict) -> tuple[list[str], list[str]]:
    """How variants compare with the strongest baseline of each test set: sentences that must come first (losses), and
    those that can wait."""
    groups: defaultdict[tuple[tuple[VerdictKind, int], str], list[str]] = defaultdict(list)
    for name, test_set in verdict.sets.items():
        subset = test_set.subset
        here = [e for e in verdict.baseline_comparisons if (e.test_set, e.subset) == (name, subset)]
        for kind, head, numbers in _against_strongest(here, name if subset == "all" else f"{name} ({subset} items)"):
            groups[kind, head].append(numbers)
    lines = {
        kind: [f"{head}: {'; '.join(numbers)}." for (its, head), numbers in groups.items() if its == kind]
        for kind in VERBS
    }
    wins = (VerdictKind.UNDECIDED, 1), (VerdictKind.BETTER, 1)
    losses = [line for kind in VERBS if kind not in wins for line in lines[kind]]
    return losses, [line for kind in wins for line in lines[kind]]


def _standing(comparison: Comparison) -> tuple[VerdictKind, int]:
    gain = comparison.gain or 0.0
    return comparison.verdict, (gain > 0) - (gain < 0)


def _against_strongest(
    comparisons: Sequence[Comparison], where: str
) -> Iterator[tuple[tuple[VerdictKind, int], str, str]]:
    """How it stands, who does what to which baseline, with which numbers."""
    sound = [each for each in comparisons if each.verdict != VerdictKind.NOT_COMPARABLE and each.scores]
    if not sound:
        return
    sign = 1 if sound[0].metric.higher_is_better else -1

    def of(comparison: Comparison, side: int) -> float:
        return sign * comparison.scores[side] if comparison.scores else -math.inf

    alike = [each for each in sound if each.metric == sound[0].metric]  # perplexities and bits rank apart
    strongest = max(alike, key=lambda each: of(each, 1)).baseline
    for kind, (singular, plural) in VERBS.items():
        alike = [each for each in sound if each.baseline == strongest and _standing(each) == kind]
        if not alike:
            continue
        many = len(alike) > 1
        names = listed([each.variant for each in alike])
        who = f"Variants {names} {plural}" if many else f"Variant {names} {singular}"
        if many and len(alike) == len({each.variant for each in comparisons}):
            who = f"Every variant {singular}"
        numbers = []
        for metric in dict.fromkeys(each.metric.name for each in alike):
            best = max((each for each in alike if each.metric.name == metric), key=lambda each: of(each, 0))
            ours, theirs = (score_words(metric, value) for value in best.scores or ())
            name = f" at best ({best.variant})" if many else ""
            numbers.append(f"{ours}{name} against {theirs}{' bits per byte' * (metric == 'bits per byte')}")
        yield kind, f"{who} {strongest}, which needs no network", f"on {where} {' and '.join(numbers)}"
