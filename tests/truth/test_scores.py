"""Do the intervals of scores hold the truth? Speeches of the embedded corpus were cut into stretches. Each speech is
answered by naive Bayes fitted on all other speeches (with several seeds: on four fifths of their sentences). Test sets
are drawn from these stretches; how many each class has is fixed."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.baselines.classifiers import fit_bayes
from fairtrial.prepare import prepare
from fairtrial.recipe import built_in_recipe
from fairtrial.statistics.outcomes import SetOutcomes, score

STRETCHES = {"Obama": 15, "W. Bush": 11, "H. W. Bush": 8}  # of the default test set
SEEDS = 5


@pytest.fixture(scope="module")
def answers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels [item], right or wrong [seed item], stretches [item]."""
    prepared = prepare(built_in_recipe("default", "classify"), 0)
    splits = prepared.splits
    documents = [*splits.train, *splits.validation, *(document for test in splits.tests.values() for document in test)]
    labels = np.array([splits.labels.index(document.label) for document in documents])
    speeches = np.array([document.group.split("#")[0] for document in documents])
    right = np.zeros((SEEDS, len(documents)), bool)
    for seed in range(SEEDS):
        chosen = np.random.default_rng(seed).random(len(documents)) < (1.0 if seed == 0 else 0.8)
        for speech in np.unique(speeches):
            train, test = np.flatnonzero((speeches != speech) & chosen), np.flatnonzero(speeches == speech)
            guess = fit_bayes([documents[item].text for item in train], labels[train], len(splits.labels))
            right[seed, test] = guess([documents[item].text for item in test]).argmax(1) == labels[test]
    return labels, right, np.unique([document.group for document in documents], return_inverse=True)[1]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, SEEDS])
def test_intervals_of_accuracy_hold_the_truth(answers: tuple[np.ndarray, ...], seeds: int) -> None:
    labels, right, stretches = answers
    held = widths = 0.0
    runs, chance = 1000, np.random.default_rng(1)
    kinds = {name: np.unique(stretches[labels == number]) for number, name in enumerate(sorted(STRETCHES))}
    truth = np.array([right[:seeds][:, labels == number].mean() for number in range(len(kinds))])
    for _ in range(runs):
        drawn = [group for name, groups in kinds.items() for group in chance.choice(groups, STRETCHES[name])]
        items = np.concatenate([np.flatnonzero(stretches == group) for group in drawn])
        group = np.repeat(np.arange(len(drawn)), [int((stretches == one).sum()) for one in drawn])
        label = np.tile(labels[items], (seeds, 1))
        guess = np.where(right[:seeds][:, items], label, label + 1)
        shown = score(
            "accuracy",
            SetOutcomes(tuple(range(seeds)), {"label": label, "guess": guess}),
            np.ones(len(items), bool),
            group,
        )
        low, high = shown.mean.low, shown.mean.high
        assert low is not None
        assert high is not None
        held += low <= 100 * truth[labels[items]].mean() <= high
        widths += high - low
    print(f"{seeds} seeds: held {held / runs:.3f}, mean width {widths / runs:.1f} points")
    assert 0.93 <= held / runs <= 0.97
