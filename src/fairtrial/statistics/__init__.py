"""Statistics and verdicts. Pure functions of arrays; no torch."""

from fairtrial.statistics.comparison import (
    Comparison,
    Verdict,
    compare,
    decide_family,
    least_for,
    score,
    scores_by_subset,
)
from fairtrial.statistics.multiplicity import ALPHA
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes, describe_set, headline
from fairtrial.statistics.sentences import counted, describe_difference, listed, score_words

__all__ = [
    "ALPHA", "Comparison", "SetOutcomes", "TaskOutcomes", "Verdict", "compare", "counted", "decide_family",
    "describe_difference", "describe_set", "headline", "least_for", "listed", "score", "score_words",
    "scores_by_subset",
]  # fmt: skip
