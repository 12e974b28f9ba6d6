"""Six questions of the course behind the five reports (a class on language models), on keys like its own: four random
keys of length 1 in three dimensions, scores not scaled.

Keys of one length lie on a sphere, so each is a corner of their hull; and a key along the query goes further along it
than any other key of that length. That is why the sixth question, with its key of length 1, has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairtrial.description import Description, Result
from fairtrial.puzzles.keys import Array, Goals, random_keys
from fairtrial.puzzles.replacement import Replacement, replace_key
from fairtrial.puzzles.solve import (
    Answer,
    Answers,
    Reached,
    average,
    average_target,
    identity,
    precision_of,
    select,
    select_target,
)

DESIRED = np.array([3.0, 3.0, -2.0, -3.0])  # the scores that a report of the course aimed at in its fourth question


@dataclass(frozen=True)
class Question:
    number: int
    title: str
    answer: Answer | Replacement | Answers
    lesson: str

    @property
    def rows(self) -> Sequence[Reached]:
        return self.answer.answers if isinstance(self.answer, Answers) else [self.answer]

    def check(self) -> float:
        """The least precision of the answers, run through fairtrial's own attention."""
        from fairtrial.puzzles.heads import attention_weights

        first, queries = self.rows[0], np.array([answer.query for answer in self.rows])
        keys = first.new_keys if isinstance(first, Replacement) else first.keys
        weights = attention_weights(keys[None], queries[None], first.scaled)[0]
        return min(precision_of(row, answer.target) for row, answer in zip(weights, self.rows, strict=True))


@dataclass(frozen=True, repr=False)
class Course(Result):
    """Six questions, solved, explained and checked in real attention."""

    questions: tuple[Question, ...]

    def describe(self) -> Description:
        sections = []
        for each in self.questions:
            told, checked = each.answer.describe(), f"fairtrial's own attention reaches {each.check():.6f}."
            sentences = [each.lesson, *told.sentences, f"Checked: {checked}"]
            sections.append(replace(told, title=f"{each.number}. {each.title}", sentences=sentences))
        about = "Four random keys of length 1 in three dimensions; scores are not scaled."
        return Description([about], title="Six puzzles of attention", sections=sections)

    def to_json(self) -> list[dict[str, object]]:
        return [
            {
                "question": each.number,
                "title": each.title,
                "lesson": each.lesson,
                "answers": [answer.to_json() for answer in each.rows],
                "sentences": list(each.answer.describe().sentences),
                "checked_precision": each.check(),
            }
            for each in self.questions
        ]


def course_keys(seed: int) -> Array:
    keys = random_keys(4, 3, seed)
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def course(seed: int = 0, *, scale: bool = False, precision: float = 0.999) -> Course:
    """Six questions of the course behind the five reports."""
    keys, goals = course_keys(seed), Goals(scale=scale, precision=precision)
    one_long = replace(goals, norm=1.0)
    two = average(keys, [0, 1], goals, scores=DESIRED)
    query = long_enough(keys, two, one_long)
    kept = "It keeps the query of question 4, made long enough for question 6."
    fifth = replace_key(keys, 2, average_target(4, [0, 1, 2]), query, goals)
    sixth = replace_key(keys, 2, select_target(4, 2), query, one_long)
    questions: list[tuple[str, Answer | Replacement | Answers, str]] = [
        (
            "a query that selects the first value",
            select(keys, 0, goals),
            "A corner of the hull is greatest in some direction; a long query in it makes the softmax ignore the rest.",
        ),
        (
            "a query matrix that selects every value",
            identity(keys, goals),
            "Each row is a separate puzzle. Four keys that span space can be given any weights: a query sets three"
            " differences of scores, and all scores may shift by a constant. Least squares ignores the shift.",
        ),
        (
            "a query that averages all values",
            average(keys, range(4), goals),
            "Equal scores are equal weights, and a query of zero makes all scores equal.",
        ),
        (
            "a query that averages the first two values",
            two,
            "The query is orthogonal to the edge between both keys, so they score equally, and points away from the"
            " rest.",
        ),
        (
            "a third key so that this query averages the first three",
            fifth,
            f"{kept} The new key needs the score of the first two; its component orthogonal to the query is free.",
        ),
        (
            "a third key of length 1 so that this query selects the third value",
            sixth,
            f"{kept} Of all keys of length 1, the one along the query scores highest.",
        ),
    ]
    return Course(tuple(Question(number, *each) for number, each in enumerate(questions, 1)))


def long_enough(keys: Array, answer: Answer, goals: Goals) -> Array:
    """The query, made longer until a third key of length 1 can be selected with it. Longer is never less precise: the
    query scores its two keys alike."""
    query, third = answer.query, select_target(4, 2)
    while not replace_key(keys, 2, third, query, goals).possible:
        if float(np.linalg.norm(query)) > 1e6 * answer.norm:
            return answer.query  # the first two keys almost meet the direction itself: no length will do
        query = query * 1.1
    return query
