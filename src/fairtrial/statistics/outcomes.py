"""What the judge is given: the outcome of every test item for every seed, as plain arrays, and metrics over them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from fairtrial.errors import BadInput
from fairtrial.results.values import (
    AuditSummary,
    Cost,
    DataFinding,
    Failure,
    Interval,
    Metric,
    Question,
    Score,
    TaskSearch,
    TestReuse,
    TestSet,
    TrainingEnd,
    UnlearnedKind,
    is_accuracy,
)
from fairtrial.statistics.crossed import (
    Array,
    Counts,
    Mask,
    Strata,
    Z,
    crossed_t,
    items_t,
    kish,
    linearised,
    macro_f1_values,
    runs_t,
    summed,
    wilson,
)
from fairtrial.statistics.multiplicity import ALPHA, Look
from fairtrial.statistics.speedup import Curve

CLEAN, EXACT, NEAR = 0, 1, 2  # a test item: not in the training set, an exact copy, a near copy
Z_ONE_SIDED = 1.645  # 5% of networks that guess get above it
LEAST = {"accuracy": 1.0, "perplexity": 0.01}  # least difference of interest: points; nats per token
TOLERATED = 0.01  # share of contaminated items up to which verdicts are on all items


LARGEST = 1e100  # squares of values must be numbers, too


def is_extreme(values: Array) -> Mask:
    """Numbers that are too large or too small to compute with."""
    return (np.abs(values) > LARGEST) | ((values != 0) & (np.abs(values) < 1 / LARGEST))


@dataclass(frozen=True)
class Vocabulary:
    """What a language model's perplexity is about: the events that its tokenizer makes of a text."""

    normalisation: str  # what is lost before anything is predicted: "" or "lower case"
    settings: str  # how the vocabulary was made: the same for all seeds
    fingerprints: tuple[str, ...]  # of each seed's vocabulary


@dataclass(frozen=True)
class SetOutcomes:
    """One test set: arrays [seed item], named as in a record (`guess`, `label`, `log_p`; `nll`, `tokens`, `bytes`,
    `unknown`, `spelling`), or any score of items (`value`, `weight`), which `metric` describes."""

    seeds: tuple[int, ...]
    arrays: dict[str, Array]
    vocabulary: Vocabulary | None = None  # of a language model; None: not known
    metric: Metric | None = None  # of `value`

    @property
    def items(self) -> int:
        return int(next(iter(self.arrays.values())).shape[1])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def rows(self, seeds: tuple[int, ...]) -> SetOutcomes:
        """Only these seeds, in this order."""
        indices = [self.seeds.index(seed) for seed in seeds]
        vocabulary = self.vocabulary
        if vocabulary is not None:
            vocabulary = replace(vocabulary, fingerprints=tuple(vocabulary.fingerprints[index] for index in indices))
        arrays = {name: array[indices] for name, array in self.arrays.items()}
        return replace(self, seeds=seeds, arrays=arrays, vocabulary=vocabulary)


def stack_outcomes(by_seed: Mapping[int, Mapping[str, Array]], where: str = "outcomes") -> SetOutcomes:
    """One test set, from the arrays of each seed: `{seed: {"guess": ..., "label": ..., "log_p": ...}}`."""
    seeds = tuple(sorted(by_seed))
    if not seeds:
        raise BadInput(f"{where}: no seed has outcomes", "run the trials first")
    arrays = {}
    for name in by_seed[seeds[0]]:
        rows = [np.asarray(by_seed[seed][name]) for seed in seeds]
        if len({row.shape for row in rows}) > 1:
            counts = ", ".join(f"seed {seed}: {len(row)}" for seed, row in zip(seeds, rows, strict=True))
            what = f"{where}: the seeds were not scored on the same items ({counts})"
            raise BadInput(what, "use the same data for all")
        arrays[name] = np.stack(rows)
    if "label" in arrays and (arrays["label"] != arrays["label"][0]).any():
        raise BadInput(f"{where}: the seeds were not scored on the same items", "use the same data for all")
    return SetOutcomes(seeds, arrays)


def same_events(one: SetOutcomes, other: SetOutcomes) -> bool:
    """Whether two language models predict the same tokens, so that their perplexities answer one question."""
    common = tuple(seed for seed in one.seeds if seed in other.seeds)
    if common:
        one, other = one.rows(common), other.rows(common)
    ours, theirs = one.vocabulary, other.vocabulary
    if ours and theirs:  # without shared seeds, vocabularies of the same settings differ by chance only
        return ours.fingerprints == theirs.fingerprints if common else ours.settings == theirs.settings
    pairs = ((one[name], other[name]) for name in ("tokens", "unknown"))
    return all(np.array_equal(a, b) if common else (a == b[:1]).all() and (b == a[:1]).all() for a, b in pairs)


Outcomes = dict[str, dict[str, SetOutcomes]]  # name -> test set -> outcomes


@dataclass(frozen=True, kw_only=True)
class TaskOutcomes:
    """Everything that a verdict on one task depends on. Only the first four are required."""

    task: str
    baseline: str  # the variant that the others are compared with
    least_difference: float  # points of accuracy, or nats per token (0.01 is 1% of perplexity)
    variants: Outcomes
    baselines: Outcomes = field(default_factory=dict)  # what a transformer must beat; a single seed is enough
    labels: tuple[str, ...] = ()
    status: dict[str, Array] = field(default_factory=dict)  # test set -> CLEAN, EXACT or NEAR of each item
    clusters: Mapping[str, Counts] = field(default_factory=dict)  # test set -> the speech or block of each item
    audits: Mapping[str, AuditSummary] = field(default_factory=dict)  # by variant
    question: Question = Question.NEW_RUNS  # of checkpoints, one network of each: only about new items
    endpoint: str | None = None  # the test set that decides; None: the mean of all
    primary: bool = True  # whether it is judged; else it is exploratory
    level: float = ALPHA  # the share of false alarms of a single look
    threshold: tuple[str, float] | None = None  # its name and the score that the mean of a variant's runs must beat
    look: Look | None = None  # one of several interim looks; None: the number of seeds was fixed in advance
    open_ended: bool = False  # it may be judged after any seed
    training: Mapping[str, Mapping[int, TrainingEnd]] = field(default_factory=dict)  # variant -> seed -> how it ended
    idle: tuple[str, ...] = ()  # variants most of whose networks make no use of attention
    about_attention: tuple[str, ...] = ()  # those that differ from the baseline in attention or positions
    contexts: dict[str, float] = field(default_factory=dict)  # test set -> least share of a length that a token sees
    curves: Mapping[str, Mapping[int, Curve]] = field(default_factory=dict)  # of validation loss, by variant and seed
    # part of the verdict as they are
    cost: Mapping[str, Cost] = field(default_factory=dict)
    test_reuse: Mapping[str, Mapping[str, TestReuse]] = field(default_factory=dict)  # variant -> test set
    failures: tuple[Failure, ...] = ()
    data_findings: tuple[DataFinding, ...] | None = None  # checks of the data that did not pass; None: not audited
    search: TaskSearch | None = None

    @property
    def vocabularies_differ(self) -> bool:
        """Whether bits per byte were chosen for that, and not given as they are."""
        return self.metric == "bits per byte" and next(iter(self.variants[self.baseline].values())).metric is None

    @cached_property
    def metric(self) -> str:
        """The one that is judged. Perplexities of different vocabularies do not compare; bits per byte do."""
        own = self.variants[self.baseline]
        first = next(iter(own.values()))
        if first.metric is not None:
            return first.metric.name
        if "guess" in first.arrays:
            return "accuracy"
        pairs = [(by_set[name], own[name]) for by_set in self.variants.values() for name in own if name in by_set]
        same = all(one.items != other.items or same_events(one, other) for one, other in pairs)
        return "perplexity" if same else "bits per byte"

    @property
    def kind(self) -> Metric:
        return next(iter(self.variants[self.baseline].values())).metric or METRICS[self.metric]

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(self.variants[self.baseline])

    @property
    def alpha(self) -> float:
        """The share of false alarms that this look may have."""
        return self.level if self.look is None else self.look.alpha

    @property
    def digest(self) -> str:
        """Of the outcomes that a verdict is on: another one means other data."""
        digest = hashlib.sha256()
        for variant, by_set in sorted(self.variants.items()):
            for test_set, own in sorted(by_set.items()):
                digest.update(f"{variant}\0{test_set}\0{own.seeds}".encode())
                for name, array in sorted(own.arrays.items()):
                    digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.variants if name != self.baseline)


def not_learned(outcomes: SetOutcomes, unigram: SetOutcomes | None = None) -> dict[UnlearnedKind, tuple[int, ...]]:
    """Seeds that know nothing of their task, by what they do. A classifier must beat the largest class, a language
    model word frequencies (`unigram`, if known)."""
    if "guess" in outcomes.arrays:
        guess, label = outcomes["guess"], outcomes["label"]
        largest = float(np.bincount(label[0]).max()) / outcomes.items
        limit = largest + Z_ONE_SIDED * math.sqrt(largest * (1 - largest) / outcomes.items)
        one_class = (guess == guess[:, :1]).all(1) & (largest < 1)
        at_chance = ((guess == label).mean(1) < limit) & (largest < 1) & ~one_class
        flags = {UnlearnedKind.ONE_CLASS: one_class, UnlearnedKind.LARGEST_CLASS: at_chance}
    elif unigram and all(np.array_equal(outcomes[name][0], unigram[name][0]) for name in ("tokens", "unknown")):
        flags = {UnlearnedKind.WORD_FREQUENCIES: outcomes["nll"].sum(1) >= unigram["nll"].mean(0).sum()}
    else:
        return {}
    return {kind: tuple(np.array(outcomes.seeds)[bad].tolist()) for kind, bad in flags.items() if bad.any()}


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "points", True),
        Metric("macro-F1", "points", True),
        Metric("log loss", "nats per item", False),
        Metric("perplexity", "nats per token", False),
        Metric("bits per byte", "bits per byte", False),
    )
}


LANGUAGE = ("perplexity", "bits per byte")
TIMES = frozenset("time runtime seconds ms latency duration memory".split())
LESS = TIMES | frozenset(
    "loss nll perplexity ppl error errors err wer cer ter bpb bpc bits mse rmse mae mape brier distance toxicity"
    " regret ece divergence kl fid mistakes cost".split()
)
MORE = frozenset(
    "acc accuracy f bleu rouge chrf score auc auroc auprc correct exact em match reward return precision recall mcc"
    " map ndcg mrr pass solved success win wins likelihood logprob kappa iou spearman pearson psnr ssim".split()
)


def direction_of(name: str) -> bool | None:
    """Whether more is better, by the words of a metric's name; None: it does not say.

    >>> [direction_of(name) for name in ("val_loss", "bits_per_byte", "macro-F1", "brier_score", "testAcc", "final")]
    [False, False, True, False, True, None]
    """
    words = name_words(name)
    if words & LESS or {"negative", "likelihood"} <= words or any(word.endswith(("loss", "ppl")) for word in words):
        return False
    more = words & MORE or any(word.endswith(("acc", "score")) or word.startswith("rouge") for word in words)
    return True if more else None


def name_words(name: str) -> set[str]:
    """`valLoss`, `val_loss` and `val-loss@5` have the words val and loss."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name)
    return set(re.findall("[a-z]+", apart.lower()))


def metric_named(name: str, higher: bool | None = None, *, ask: bool = True, points: bool = False) -> Metric:
    """`higher`: whether more is better, where that was said; `ask`: refuse a name that does not tell; `points`: an
    accuracy is one of whole runs."""
    known = METRICS.get("accuracy" if points and name == "acc" else name)
    if higher is None:
        higher = known.higher_is_better if known else direction_of(name)
    if higher is None and ask:
        what = f"unknown direction: is a higher or a lower {name or 'value'} better?"
        raise BadInput(what, "say --lower-is-better or --higher-is-better, in Python higher_is_better=False or True")
    if known:
        return replace(known, higher_is_better=higher is not False)
    if points and higher and name_words(name) & {"acc", "accuracy"}:
        return Metric(f"accuracy ({name})", "points", True)
    return Metric(name or "score", name or "score", higher is not False)


def run_values(metric: Metric, scores: Array, digit: float, every: Array) -> tuple[Array, float]:
    """Scores of runs in the metric's unit (points; logarithms of perplexities), and what their last digit is there.
    `every`: all scores, which tell whether an accuracy is a share."""
    if metric.in_percent:
        if (every <= 0).any():
            raise BadInput("perplexity must be above 0")
        return np.log(scores), digit / float(every.min())
    factor = 100.0 if metric.in_points and float(every.max()) <= 1 else 1.0
    return factor * scores, factor * digit


def last_digit(cell: str | None) -> float:
    """`3.280` -> 0.001"""
    try:
        exponent = Decimal(cell or "0").as_tuple().exponent
    except ArithmeticError:
        return 1.0
    return 10.0**exponent if isinstance(exponent, int) else 1.0


def numbers_of(given: object, name: str) -> Array:
    """An array of numbers, whatever holds them."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:  # lists of different lengths
        raise BadInput(f"{name} holds rows of different lengths", "give the same items for every seed") from error
    if array.dtype.kind not in "biuf" or not array.size:
        raise BadInput(f"{name} must hold numbers: {str(given)[:60]}")
    return array


@dataclass(frozen=True)
class Sums:
    """What each unit (an item, or a cluster of items) adds to a metric, and its weight: both [seed unit]."""

    values: Array
    weights: Array
    strata: Strata | None = None
    unseen: float = 0.0  # variance of classes that were all right or all wrong, which looks like certainty

    @property
    def sizes(self) -> Array:
        """The weight of each unit [unit]"""
        return self.weights.mean(0)

    def linearised(self) -> Array:
        return linearised(self.values, self.weights)


def measure(metric: str, outcomes: SetOutcomes, keep: Mask, clusters: Counts | None = None) -> Sums:
    """Over the items of a test set that the mask `keep` [item] selects. Units without weight (documents without tokens)
    are left out."""
    kept = _kept(outcomes, keep)
    groups = None if clusters is None else clusters[keep]
    if metric == "macro-F1":
        classes = 1 + max(int(outcomes[name].max()) for name in ("label", "guess"))  # the same for every subset
        values = 100 * macro_f1_values(kept["label"], kept["guess"], classes, groups)
        return Sums(values, np.ones_like(values))
    values, weights = (summed(array, groups) for array in per_item(metric, kept))
    counted = weights.sum(0) > 0
    return Sums(values[:, counted], weights[:, counted])


def _kept(outcomes: SetOutcomes, keep: Mask) -> dict[str, Array]:
    return {name: array[:, keep] for name, array in outcomes.arrays.items()}


def bits_per_byte(arrays: Mapping[str, Array]) -> float | None:
    """Of one trial: every byte of the text counts, and what the tokens hide is spelled out. None: ids have none."""
    nats, sizes = per_item("bits per byte", dict(arrays))
    return float(nats.sum() / sizes.sum()) if sizes.any() else None


def confusion(labels: Counts, guesses: Counts, classes: int) -> Counts:
    """Counts [true class, guessed class]"""
    return np.bincount(labels * classes + guesses, minlength=classes * classes).reshape(classes, classes)


def macro_f1(table: Counts) -> float:
    """Mean over classes of F1; a class that neither occurs nor is guessed counts as 0, as in scikit-learn."""
    right = table.diagonal()
    total = table.sum(0) + table.sum(1)
    return float(np.mean(np.divide(2 * right, total, out=np.zeros(len(right)), where=total > 0)))


def measure_by_class(outcomes: SetOutcomes, keep: Mask, clusters: Counts | None = None) -> Sums:
    """Accuracy with its classes as strata: each item counts by its distance from the mean of its class, so that the mix
    of classes, which is part of the design, does not vary. A class that a single group holds joins the next one."""
    labels, (right, _) = outcomes["label"][0, keep], per_item("accuracy", _kept(outcomes, keep))
    unit = np.arange(len(labels)) if clusters is None else np.unique(clusters[keep], return_inverse=True)[1]
    stratum = _joined(np.unique(labels, return_inverse=True)[1], unit)
    held = np.zeros((int(unit.max()) + 1, int(stratum.max()) + 1))
    np.add.at(held, (unit, stratum), 1)
    means = np.stack([np.bincount(stratum, row) for row in right]) / held.sum(0)
    centred = right - means[:, stratum] + right.mean(1, keepdims=True)
    within = np.bincount(unit, (held / held.sum(0))[unit, stratum]) / held.sum(1)
    values = np.stack([np.bincount(unit, row) for row in centred]).astype(np.float64)
    certain = np.isin(means.mean(0), (0.0, 100.0))
    units = (held > 0).sum(0) + 2  # as if one more unit had been right and one wrong
    unseen = (100 * held.sum(0) / held.sum()) ** 2 * (1 / units) * (1 - 1 / units) / units
    strata = Strata(within, held.shape[1])
    return Sums(values, np.broadcast_to(held.sum(1), values.shape), strata, unseen=float(unseen[certain].sum()))


def _joined(stratum: Counts, unit: Counts) -> Counts:
    """Strata [item], joined from the smallest on until each has items of two units, or only one is left."""
    while (count := int(stratum.max()) + 1) > 1:
        units = [len(np.unique(unit[stratum == one])) for one in range(count)]
        order = sorted(range(count), key=lambda one: (units[one], int((stratum == one).sum())))
        if units[order[0]] > 1:
            break
        stratum = np.unique(np.where(stratum == order[0], order[1], stratum), return_inverse=True)[1]
    return stratum


def per_item(metric: str, kept: Mapping[str, Array]) -> tuple[Array, Array]:
    """What each item adds to a metric, and its weight: both [seed item]."""
    if "value" in kept:
        return np.where(kept["weight"] > 0, kept["value"], 0.0) * kept["weight"], kept["weight"]
    if metric == "accuracy":
        right = 100.0 * (kept["guess"] == kept["label"])
        return right, np.ones_like(right)
    if metric == "log loss":
        return -kept["log_p"], np.ones_like(kept["log_p"])
    if metric == "perplexity":
        return kept["nll"], kept["tokens"].astype(float)
    if metric == "bits per byte":  # what the tokens hide is spelled out
        return (kept["nll"] + kept.get("spelling", 0.0)) / math.log(2), kept["bytes"].astype(float)
    raise ValueError(f"unknown metric {metric!r}")


def describe_set(status: Array | None, items: int, context: float | None = None) -> TestSet:
    """Counts of copies in a test set, and the subset that verdicts are on."""
    if status is None:
        return TestSet(items, context=context)
    exact, near, clean = (int((status == kind).sum()) for kind in (EXACT, NEAR, CLEAN))
    subset = "clean" if (exact + near) / max(1, items) > TOLERATED else "all"
    return TestSet(items, subset, exact, near, clean, context)


# scores of one variant

FEWEST_SCORED = 5  # units, for the interval of a score


def subsets(status: Array | None, items: int) -> dict[str, Mask]:
    """Masks [item] of all, clean and contaminated items; only all items where there are no copies."""
    every: dict[str, Mask] = {"all": np.ones(items, bool)}
    if status is None or not (status != CLEAN).any():
        return every
    return {**every, "clean": status == CLEAN, "contaminated": status != CLEAN}


def scores_by_subset(
    metric: str, outcomes: SetOutcomes, status: Array | None, clusters: Counts | None = None
) -> dict[str, Score]:
    """`{"all": score, "clean": score, "contaminated": score}`, without subsets that have no items."""
    masks = subsets(status, outcomes.items)
    return {subset: score(metric, outcomes, keep, clusters) for subset, keep in masks.items() if keep.any()}


def score(metric: str, outcomes: SetOutcomes, keep: Mask, clusters: Counts | None = None) -> Score:
    """Mean, interval and the value of each seed: accuracy in per cent; perplexities are averaged as logarithms."""
    if "resolution" in outcomes.arrays:
        return _run_score(metric, outcomes)
    by_class = is_accuracy(metric) and "label" in outcomes.arrays and keep.any()
    sums = measure_by_class(outcomes, keep, clusters) if by_class else measure(metric, outcomes, keep, clusters)
    if not sums.values.size:  # documents without a single counted token
        return Score(Interval(), (), outcomes.seeds, 0)
    by_seed = sums.values.sum(1) / sums.weights.sum(1)
    mean, (low, high) = float(by_seed.mean()), _score_interval(metric, sums) or (None, None)
    values = by_seed.tolist()
    if metric == "perplexity":
        values, mean = [_exp(value) for value in values], _exp(mean)
        low, high = (None if end is None else _exp(end) for end in (low, high))
    found = Score(Interval(mean, low, high), tuple(values), outcomes.seeds, int(keep.sum()))
    return _with_every_byte(found, outcomes, keep) if "tokens" in outcomes.arrays else found


def _run_score(metric: str, outcomes: SetOutcomes) -> Score:
    values = outcomes["value"][:, 0]
    test = runs_t(values, values[:0], ((), ()), float(outcomes["resolution"][0, 0])) if len(values) > 1 else None
    shown = _exp if metric == "perplexity" else float
    low, high = (None, None) if test is None else map(shown, test.interval())
    mean = Interval(shown(float(values.mean())), low, high)
    return Score(mean, tuple(map(shown, values.tolist())), outcomes.seeds, 0)


def _with_every_byte(found: Score, outcomes: SetOutcomes, keep: Mask) -> Score:
    """Beside a language model's score: every byte counted, and words that it knows only."""
    kept = {name: array[:, keep] for name, array in outcomes.arrays.items()}
    bits = measure("bits per byte", outcomes, keep)
    known, known_only = (kept["tokens"] - kept["unknown"]).sum(1), None
    if "unknown_nll" in kept and known.all():
        nats = (kept["nll"] - kept["unknown_nll"]).sum(1)
        known_only = math.exp(min(700.0, float((nats / known).mean())))
    return replace(
        found,
        bits_per_byte=float((bits.values.sum(1) / bits.weights.sum(1)).mean()) if bits.weights.any() else None,
        unknown_share=float(kept["unknown"].sum() / kept["tokens"].sum()),
        perplexity_without_unknown=known_only,
    )


def score_interval(arrays: Mapping[str, Array]) -> tuple[float, float] | None:
    """95% interval of one trial's accuracy (a share) or perplexity, over test items, from the outcomes of each [item]:
    the one that `score` gives. None where there are too few items."""
    metric = "accuracy" if "guess" in arrays else "perplexity"
    one_seed = SetOutcomes((0,), {name: array[None] for name, array in arrays.items()})
    groups = np.asarray(arrays["group"], np.intp) if "group" in arrays else None
    mean = score(metric, one_seed, np.ones(one_seed.items, bool), groups).mean
    if mean.low is None or mean.high is None:
        return None
    return (mean.low / 100, mean.high / 100) if metric == "accuracy" else (mean.low, mean.high)


def _score_interval(metric: str, sums: Sums) -> tuple[float, float] | None:
    """Over seeds and items; with a single seed over items only."""
    seeds, units = sums.values.shape
    if units < FEWEST_SCORED:  # it would reach from 0 to millions
        return None
    values = sums.linearised()
    mean = float(values.mean())
    layout = sums.sizes, sums.strata
    test = items_t(values[0], *layout) if seeds == 1 else crossed_t(values, *layout)
    assert test.item is not None
    item = replace(test.item, variance=test.item.variance + sums.unseen)
    test = replace(test, item=item)
    share = mean / 100
    if is_accuracy(metric) and (share < 1e-9 or share > 1 - 1e-9):  # t would claim certainty
        low, high = wilson(round(share), kish(sums.sizes))
        return 100 * low, 100 * high
    if is_accuracy(metric) and seeds == 1 and item.variance:  # as many independent items as vary as much
        spread, t = item.variance / 100**2, float(stdtrit(item.df, 0.975))
        low, high = wilson(share, share * (1 - share) / spread * (Z / t) ** 2)
        return 100 * low, 100 * high
    half = test.spread.half_width(0.05) if test.varies else 0.0
    low, high = mean - half, mean + half
    return (max(0.0, low), min(100.0, high)) if is_accuracy(metric) or metric == "macro-F1" else (low, high)


def _exp(value: float) -> float:
    return math.exp(max(-700.0, min(700.0, value)))
