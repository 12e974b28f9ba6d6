"""Statistics and verdicts. Pure functions of arrays; no torch."""

from fairtrial.statistics.comparison import (
    Contrast,
    Decision,
    Scored,
    compare,
    decide_family,
    margin_for,
)
from fairtrial.statistics.multiplicity import ALPHA, LOOKS, holm
from fairtrial.statistics.outcomes import (
    SetOutcomes,
    TaskOutcomes,
    describe_set,
    headline,
    score,
    scores_by_subset,
    subsets,
)
from fairtrial.statistics.power import reach_of
from fairtrial.statistics.verdict import as_comparison, judge_study

__all__ = [
    "ALPHA",
    "LOOKS",
    "Contrast",
    "Decision",
    "Scored",
    "SetOutcomes",
    "TaskOutcomes",
    "as_comparison",
    "compare",
    "decide_family",
    "describe_set",
    "headline",
    "holm",
    "judge_study",
    "margin_for",
    "reach_of",
    "score",
    "scores_by_subset",
    "subsets",
]
