"""The course's six questions, on many seeds: each is answered, and our own attention agrees."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.puzzles.questions import course, course_keys
from fairtrial.puzzles.replacement import Replacement
from sampling import cases


@cases("scale", [True, False])
@cases("seed", range(8))
def test_all_six_are_solved_and_checked(seed: int, scale: bool) -> None:
    questions = course(seed, scale=scale).questions
    assert [question.number for question in questions] == [1, 2, 3, 4, 5, 6]
    assert all(question.check() >= 0.999 - 1e-9 for question in questions)
    fifth, sixth = questions[4].answer, questions[5].answer
    assert isinstance(fifth, Replacement)
    assert isinstance(sixth, Replacement)
    assert (fifth.query == sixth.query).all()
    assert np.linalg.norm(sixth.key) == pytest.approx(1.0)
    keys = course_keys(seed)
    assert keys.shape == (4, 3)
    assert np.linalg.norm(keys, axis=1) == pytest.approx([1.0] * 4)


def test_least_squares_misses_the_fourth() -> None:
    misses = [course(seed).questions[3].answer.least_squares.error for seed in range(8)]
    assert np.mean(misses) > 0.05
