"""Statistics and verdicts. Pure functions of arrays; no torch."""

from fairtrial.statistics.comparison import (
    Comparison,
    Verdict,
    compare,
    decide,
    least_for,
    may_be_judged,
    p_same,
    score,
    scores_by_subset,
)
from fairtrial.statistics.multiplicity import ALPHA, holm
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes, describe_set
from fairtrial.statistics.sentences import counted, describe_difference, listed, score_words

__all__ = [
    "ALPHA",
    "Comparison",
    "SetOutcomes",
    "TaskOutcomes",
    "Verdict",
    "compare",
    "counted",
    "decide",
    "describe_difference",
    "describe_set",
    "holm",
    "least_for",
    "listed",
    "may_be_judged",
    "p_same",
    "score",
    "score_words",
    "scores_by_subset",
]
