"""Six questions of the course behind the five reports (a class on language models), on keys like its own: four random
keys of length 1 in three dimensions, scores not scaled.

Keys of one length lie on a sphere, so each is a corner of their hull; and a key along the query goes further along it
than any other key of that length. That is why the sixth question, with its key of length 1, has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtrial.puzzles.keys import Array, random_keys
from fairtrial.puzzles.replace_key import Replacement, replace_key
from fairtrial.puzzles.sentences import Found, lines_of, plain_of
from fairtrial.puzzles.solve import Answer, average, average_target, identity, precision_of, select, select_target

DESIRED = np.array([3.0, 3.0, -2.0, -3.0])  # the scores that a report of the course aimed at in its fourth question

LESSONS = (
    "A corner of the hull is greatest in some direction; a long query in it makes the softmax ignore the rest.",
    "Each row is a separate puzzle. Four keys that span space can be given any weights: a query sets three "
    "differences of scores, and all scores may shift by a constant. Least squares ignores the shift.",
    "Equal scores are equal weights, and a query of zero makes all scores equal.",
    "The query is orthogonal to the edge between both keys, so they score equally, and points away from the rest.",
    "The new key needs the score of the first two; its component orthogonal to the query is free.",
    "Of all keys of length 1, the one along the query scores highest.",
)


@dataclass(frozen=True)
class Question:
    number: int
    title: str
    answers: Found
    lesson: str

    def plain(self) -> dict[str, object]:
        answers = [plain_of(answer) for answer in self.rows]
        return {"question": self.number, "title": self.title, "answers": answers, "checked_precision": self.check()}

    @property
    def rows(self) -> Sequence[Answer | Replacement]:
        return self.answers if isinstance(self.answers, list) else [self.answers]

    def check(self) -> float:
        """The least precision of the answers, run through fairtrial's own attention."""
        from fairtrial.puzzles.heads import attention_weights

        first, queries = self.rows[0], np.array([answer.query for answer in self.rows])
        keys = first.new_keys if isinstance(first, Replacement) else first.keys
        weights = attention_weights(keys[None], queries[None], first.scaled)[0]
        return min(precision_of(row, answer.target) for row, answer in zip(weights, self.rows, strict=True))


def course_keys(seed: int) -> Array:
    keys = random_keys(4, 3, seed)
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def course_questions(seed: int = 0, scale: bool = False, precision: float = 0.999) -> list[Question]:
    keys = course_keys(seed)
    ways: dict[str, Any] = {"scale": scale, "precision": precision}
    two = average(keys, [0, 1], scores=DESIRED, **ways)
    query = long_enough(keys, two, scale, precision)
    longer = float(np.linalg.norm(query)) / two.norm
    kept = "It keeps the query of question 4"
    if longer > 1 + 1e-9:
        kept += f", {longer:.3g} times as long as that question alone needs, so that question 6 has an answer too"
    asks = ("replace-key 2 --to average 0 1 2", "replace-key 2 --to select 2 --norm 1")
    fifth = replace_key(keys, 2, average_target(4, [0, 1, 2]), query, ask=asks[0], **ways)
    sixth = replace_key(keys, 2, select_target(4, 2), query, ask=asks[1], norm=1.0, **ways)
    return [
        Question(1, "a query that selects the first value", select(keys, 0, **ways), LESSONS[0]),
        Question(2, "a query matrix that selects every value", identity(keys, **ways), LESSONS[1]),
        Question(3, "a query that averages all values", average(keys, range(4), **ways), LESSONS[2]),
        Question(4, "a query that averages the first two values", two, LESSONS[3]),
        Question(5, "a third key so that this query averages the first three", fifth, f"{kept}. {LESSONS[4]}"),
        Question(
            6, "a third key of length 1 so that this query selects the third value", sixth, f"{kept}. {LESSONS[5]}"
        ),
    ]


def long_enough(keys: Array, answer: Answer, scale: bool, precision: float) -> Array:
    """The query, made longer until a third key of length 1 can be selected with it. Longer is never less precise: the
    query scores its two keys alike."""
    direction = answer.certificate.direction
    assert direction is not None
    query, third = answer.query, select_target(4, 2)
    while not replace_key(keys, 2, third, query, scale=scale, precision=precision, norm=1.0).possible:
        if float(np.linalg.norm(query)) > 1e6 * answer.norm:
            return answer.query  # the first two keys almost meet the direction itself: no length will do
        query = query * 1.1
    return query


def write_course(questions: list[Question], folder: Path, kind: str) -> list[Path]:
    """A figure for each question, and a page that shows them with their words."""
    from fairtrial.puzzles.plots import picture_of, write_files

    page, contents = ["# Six puzzles of attention", ""], {}
    for question in questions:
        figure = f"question-{question.number}.{kind}"
        contents[figure] = picture_of(question.answers, kind)
        page += [f"## {question.number}. {question.title}", "", question.lesson, ""]
        page += ["```", *lines_of(question.answers), "```", "", f"![question {question.number}]({figure})", ""]
    return write_files(folder, {**contents, "course.md": "\n".join(page).encode()})
