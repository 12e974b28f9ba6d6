"""Replace one key, leave the query alone, and change where attention goes.

The new key moves one score and no other. So the rest keep their proportions to one another, and the replaced key's
weight can be anything between 0 and 1: an equation for one score. A query of zero scores every key equally, whatever
the keys are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtrial.description import Description
from fairtrial.puzzles.keys import Array, Goals, as_keys, as_query, log_sum, softmax
from fairtrial.puzzles.solve import Reached, label, need_place


@dataclass(frozen=True, kw_only=True, repr=False)
class Replacement(Reached):
    """A new key for one place, what attention does then, and why it cannot do better."""

    place: int
    key: Array  # the new one
    length: float | None  # that the key had to have
    best: Array  # weights with a key of any length
    needed: float | None  # length of the shortest key that reaches `best` (or the precision, where only the limit does)

    @property
    def possible(self) -> bool:
        return self.precision >= self.wanted_precision - 1e-9

    def describe(self) -> Description:
        from fairtrial.puzzles.sentences import describe_replacement

        return describe_replacement(self)

    def to_json(self) -> dict[str, object]:
        return self.values(
            possible=self.possible,
            in_the_way=self.in_the_way,
            place=self.place,
            key=self.key,
            key_length=float(np.linalg.norm(self.key)),
            length_asked=self.length,
            smallest_length=self.needed,
            best_weights=self.best,
        )

    @property
    def new_keys(self) -> Array:
        return replaced(self.keys, self.place, self.key)

    @property
    def in_the_way(self) -> list[int]:
        return [] if self.possible else self.wrong_proportions or self.further

    @property
    def wrong_proportions(self) -> list[int]:
        """Keys whose weight no new key can put right: wanted ones that get too little, and whoever gets it."""
        wanted, slack = self.target > 0, 1 - self.wanted_precision
        short = wanted & (self.best < (self.wanted_precision - 1e-9) * self.target)
        greedy = self.best - self.target > slack / len(self.target)
        greedy[self.place] = False
        return [int(place) for place in np.flatnonzero(short | greedy)] if short.any() else []

    @property
    def reach(self) -> Array:
        """How far each key goes along the query."""
        return self.keys @ self.query / (float(np.linalg.norm(self.query)) or 1.0)

    @property
    def further(self) -> list[int]:
        """Other keys that go further along the query than the fixed length can."""
        limit = np.inf if self.length is None else self.length
        return [int(place) for place in np.flatnonzero(self.reach >= limit) if place != self.place]


def replace_key(
    keys: ArrayLike, place: int, target: Array, query: ArrayLike, goals: Goals | None = None, **options: Any
) -> Replacement:
    """A new key for one place. `norm` is the length that it must have; without it, the shortest key is taken.
    Options: the fields of `Goals` (scale, norm, precision, names)."""
    table, goals = as_keys(keys), goals or Goals(**options)
    need_place(place, len(table))
    norm = goals.norm
    fixed = as_query(query, table.shape[1])
    factor = 1 / math.sqrt(table.shape[1]) if goals.scale else 1.0
    scores = factor * table @ fixed
    score = desired_score(scores, place, target, goals.precision)
    steep = factor * float(np.linalg.norm(fixed))  # score of a key of length 1 along the query
    shortest = along(fixed, score / factor)
    # a weight of 1 or 0 is a limit, so a key of fixed length goes as far as it can
    far = target[place] in (0.0, 1.0)
    key = shortest if norm is None else of_length(fixed, shortest, norm, score >= 0, far)
    return Replacement(
        ask=f"replace {label(place, goals)}" + ("" if norm is None else f" by a key of length {norm:g}"),
        keys=table,
        names=goals.named(len(table)),
        scaled=goals.scale,
        target=target,
        wanted_precision=goals.precision,
        place=place,
        query=fixed,
        key=key,
        length=norm,
        weights=softmax(replaced(scores, place, factor * float(key @ fixed))),
        best=softmax(replaced(scores, place, score if steep else 0.0)),
        needed=abs(score) / steep if steep else None,
    )


def desired_score(scores: Array, place: int, target: Array, precision: float) -> float:
    """The score that gives the place its wanted weight; one that is near enough where that is a limit, 1 or 0."""
    others = np.delete(scores, place)
    if not len(others):
        return 0.0
    share = float(target[place])
    if share == 1:
        share = 1 - (1 - precision) * 0.999  # slightly more than required, so that rounding cannot miss it
    elif share == 0:
        left = np.delete(target, place)
        least = float((softmax(others)[left > 0] / left[left > 0]).min())
        share = max(1 - precision / max(least, 1e-300), (1 - precision) / 10) * 0.999
    return log_sum(others) + math.log(share / (1 - share))


def replaced(rows: Array, place: int, row: Array | float) -> Array:
    changed = rows.copy()
    changed[place] = row
    return changed


def along(query: Array, product: float) -> Array:
    """The shortest key with this product with the query; zero where the query is zero."""
    square = float(query @ query)
    return query * (product / square) if square else np.zeros(len(query))


def of_length(query: Array, key: Array, length: float, upward: bool, far: bool) -> Array:
    """A key of this length whose product with the query is that of `key`, or as near to it as the length allows.
    `far`: the further along the query, the better."""
    have, size = float(np.linalg.norm(key)), float(np.linalg.norm(query))
    if not size:
        return length * np.eye(len(query))[0]
    if far or have >= length or len(query) == 1:
        return (1 if upward else -1) * length * query / size
    # the rest of the length goes across the query, where it changes no score
    across = np.eye(len(query))[np.abs(query).argmin()]
    across = across - query * float(across @ query) / size**2
    return key + across / float(np.linalg.norm(across)) * math.sqrt(length**2 - have**2)
