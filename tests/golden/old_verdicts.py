"""A verdict under the names that version 0.2.0 stored it by, so that its numbers can be compared with those stored."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fairtrial.legacy import UNLEARNED
from fairtrial.results.study import from_json
from fairtrial.results.values import Comparison, Scores, TaskVerdict, Verdict, VerdictKind

# What a verdict no longer holds: the audit of the data (it is in contamination.json), scores of single tries (in
# search.json), seeds that would detect what was observed (power after the fact), remarks and reasons (sentences). And
# what an audit of data no longer reports: how the two tasks of one course's folder share rows (D6f, D6s).
GONE = re.compile(
    r"(verdict\.json|json/0)/(tasks/[^/]+/(contamination/|search/variants/[^/]+/scores|.*/(remarks|why)$)"
    r"|.*more_seeds_for_observed)"
    r"|(json/\d|contamination\.json/[^/]+)/findings/D6[fs] "
    r"|plan\.json/(items|ground)/"  # the verdict and the data audit tell them
    r"|ledger\.json|plan\.json/calibration/[^/]+/[^/]+/(ledger|rows)/"  # `inspect params` tells them
    r"|maps\.json|text-\d"  # `look` draws maps, one figure for each text
    r"|(plan|plan\.json)/(comparisons/|vocabularies_differ)|verdict\.json/tasks/[^/]+/(comparisons|exploratory|against_baselines|best_of)"
    r"|verdict\.json/.*/(low|high)$|.*/(df|second_opinion.*)$"  # families are judged in another way since 0.3
    r"|.*findings/T1 [^/]*/value$|passports\|.*/value$|trials/.*/passport\.json$"  # on one's own text since 0.3
    r"|.*findings/(M5|M6|M7s|M12d?) |json/\d+/findings/(M3|M7|F1|L1|C1|C1p) [^/]*/value$"  # of random batches
    r"|json/\d+/(flops/rows/|sees$|tests/[^/]+/telling/)"  # FLOPs by component, reach of a context, influential words
    r"|(verdict\.json|json/0)/tasks/[^/]+/match/"  # a variant with its own shape.hidden says the same
    r"|look/drawn/\d+/checks/"  # those are of the leak audit
    r"|json/\d+/(gradient_times_input|repetition_penalty)|json/\d+/tests/[^/]+/calibration/(bins|worst_error)"
    r"|json/\d+/tests/[^/]+/mistakes/\d+/log_odds"
)
WAYS = {kind: text for text, kind in UNLEARNED.items()}
KINDS = {VerdictKind.EQUIVALENT: "same", VerdictKind.UNDECIDED: "undetected"}
STANDINGS = {VerdictKind.BETTER: "beats", VerdictKind.WORSE: "loses", VerdictKind.NOT_COMPARABLE: "not_comparable"}


def old_form(plain: Mapping[str, Any]) -> dict[str, Any]:
    """`plain`: the content of a verdict.json of any version."""
    verdict: Verdict = from_json({name: value for name, value in plain.items() if name != "checksum"})
    return {
        "until_clear": verdict.until_clear,
        "look": verdict.look and asdict(verdict.look),
        "tasks": {name: old_task(task) for name, task in verdict.tasks.items()},
    }


def old_task(task: TaskVerdict) -> dict[str, Any]:
    not_learned: dict[str, Any] = {}
    for each in task.unlearned:
        not_learned.setdefault(each.variant, {}).setdefault(each.test_set, {})[WAYS[each.kind]] = list(each.seeds)
    return {
        "least_difference": task.margin,
        "labels": list(task.labels),
        "seeds": list(task.seeds),
        "sets": {name: asdict(each) for name, each in task.sets.items()},
        "scores": old_scores(task.scores),
        "baselines": old_scores(task.baseline_scores),
        "comparisons": [old_comparison(each) for each in task.comparisons],
        "exploratory": [old_comparison(each) for each in task.exploratory],
        "against_baselines": [old_comparison(each) | old_standing(each) for each in task.baseline_comparisons],
        "learning": {
            "not_learned": not_learned,
            "training": {
                name: {str(seed): asdict(end) for seed, end in by_seed.items()}
                for name, by_seed in task.training.items()
            },
        },
        "peeks": {
            name: {test: asdict(use) for test, use in by_set.items()} for name, by_set in task.test_reuse.items()
        },
        "cost": {name: asdict(each) for name, each in task.cost.items()},
        "passports": {name: asdict(each) | {"failed": list(each.failed)} for name, each in task.audits.items()},
        "failures": [asdict(each) for each in task.failures],
        "search": task.search and asdict(task.search),
        "best_of": task.best_of and asdict(task.best_of),
        "higher_is_better": task.metric.higher_is_better,
    }


def old_scores(scores: Scores) -> dict[str, Any]:
    return {
        name: {
            test: {
                subset: {
                    **ends(score.mean, "mean"),
                    "by_seed": list(score.by_seed),
                    "seeds": list(score.seeds),
                    "items": score.items,
                    "bits_per_byte": score.bits_per_byte,
                    "unknown_share": score.unknown_share,
                    "perplexity_without_unknown": score.perplexity_without_unknown,
                }
                for subset, score in by_subset.items()
            }
            for test, by_subset in by_set.items()
        }
        for name, by_set in scores.items()
    }


def ends(interval: Any, estimate: str) -> dict[str, Any]:
    return {} if interval is None else {estimate: interval.estimate, "low": interval.low, "high": interval.high}


def old_comparison(each: Comparison) -> dict[str, Any]:
    kind = "too_few_seeds" if each.too_few_seeds else KINDS.get(each.verdict, each.verdict.value)
    row = {
        **{name: getattr(each, name) for name in ("seeds", "items", "groups", "paired", "p", "q", "family")},
        **{name: getattr(each, name) for name in ("p_adjusted", "level", "more_items", "effect_size")},
        **ends(each.difference, "difference"),
        "higher_is_better": each.metric.higher_is_better,
        "effective": each.effective_items,
        "p_same": each.p_equivalent,
        "least_difference": each.margin,
        "smallest_detectable": each.detectable and each.detectable[0],
        "more_seeds": each.more_seeds and str(each.more_seeds),
        "more_seeds_range": each.more_seeds and [each.more_seeds.low, each.more_seeds.high],
        "by_seed": list(each.by_seed),
        "on_these_items": ends(each.on_these_items, "estimate"),
        "share_of_seeds_better": ends(each.share_of_seeds_better, "share"),
        "relative_error_change": each.relative_error_change,
        "variance_shares": dict(each.variance_shares),
        "shares": each.components and asdict(each.components),
        "verdict": each.question.value.replace("these_checkpoints", "checkpoint_").replace("new_runs", "") + kind,
    }
    if each.metric.in_percent:
        logs = {"ratio": each.difference.estimate, "ratio_low": each.difference.low, "ratio_high": each.difference.high}
        row |= {name: None if value is None else math.exp(value) for name, value in logs.items()}
    return row


def old_standing(each: Comparison) -> dict[str, Any]:
    gain = each.gain or 0.0
    near = "above" if gain > 0 else "below" if gain < 0 else "equal"
    ours, theirs = each.scores or (None, None)
    return {"ours": ours, "theirs": theirs, "verdict": STANDINGS.get(each.verdict, near)}
