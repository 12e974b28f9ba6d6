"""Statistics and verdicts. Pure functions of arrays; no torch."""

from fairtrial.statistics.comparison import (
    Comparison,
    Verdict,
    compare,
    decide_family,
    least_for,
    score,
    scores_by_subset,
    subsets,
    trends,
)
from fairtrial.statistics.multiplicity import ALPHA, LOOKS, holm
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes, describe_set, headline
from fairtrial.statistics.power import reach_of
from fairtrial.statistics.sentences import counted, describe_difference, listed, score_words
from fairtrial.statistics.verdict import judge_study

__all__ = [
    "ALPHA", "LOOKS", "Comparison", "SetOutcomes", "TaskOutcomes", "Verdict", "compare", "counted", "decide_family",
    "describe_difference", "describe_set", "headline", "holm", "judge_study", "least_for", "listed", "reach_of",
    "score", "score_words", "scores_by_subset", "subsets", "trends",
]  # fmt: skip
