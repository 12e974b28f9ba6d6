"""Brute force for puzzles in the plane, on whole-number keys: exact, and by another way than the linear programs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import atan2, gcd

import numpy as np

from fairtrial.puzzles.solve import Answer

Key = tuple[int, int]


def holds(answer: Answer) -> bool:
    """The certificate, checked by a few products and without a solver."""
    keys, wanted = answer.keys, answer.target > 0
    spread = float(np.linalg.norm(keys - keys.mean(0), axis=1).max()) or 1.0
    if answer.balance is None:
        scores = keys @ answer.direction
        ahead = wanted.all() or scores[wanted].min() - scores[~wanted].max() > 0
        return bool(np.ptp(scores[wanted]) <= 1e-6 * spread and ahead)
    balance = answer.balance
    closed = abs(balance.sum()) < 1e-6 and np.abs(balance @ (keys - keys.mean(0))).max() < 1e-6 * spread
    return bool(closed and (balance[~wanted] >= 0).all() and balance[~wanted].sum() > 1e-10)


def directions(keys: Iterable[Key]) -> list[Key]:
    """Every direction that tells keys apart in its own way: across each pair, and one between each two neighbours."""
    points = sorted(set(keys))
    steps = [(a[1] - b[1], b[0] - a[0]) for a in points for b in points if a != b]
    across = {(x // gcd(x, y), y // gcd(x, y)) for x, y in steps}
    turned = sorted(across, key=lambda way: atan2(way[1], way[0]))
    # opposite neighbours (all keys on a line) add up to nothing; their quarter turn lies between them
    between = [
        (a[0] + b[0], a[1] + b[1]) if (a[0] + b[0], a[1] + b[1]) != (0, 0) else (-a[1], a[0])
        for a, b in zip(turned, turned[1:] + turned[:1], strict=True)
    ]
    return [(0, 0), *turned, *between, *((-x, -y) for x, y in between)]


def faces(keys: list[Key]) -> set[frozenset[int]]:
    """All sets of keys that some direction puts ahead of all others."""
    found = set()
    for x, y in directions(keys):
        scores = [x * key[0] + y * key[1] for key in keys]
        found.add(frozenset(place for place, score in enumerate(scores) if score == max(scores)))
    return found


def faces_in_space(keys: list[tuple[int, int, int]]) -> set[frozenset[int]] | None:
    """The same in space: every face is a meeting of sides, and a side is a plane through three keys with all others
    on one side of it. None where all keys lie in one plane."""
    sides = set()
    for a, b, c in combinations(sorted(set(keys)), 3):
        u, v = [y - x for x, y in zip(a, b, strict=True)], [y - x for x, y in zip(a, c, strict=True)]
        across = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
        heights = [sum(n * (x - y) for n, x, y in zip(across, key, a, strict=True)) for key in keys]
        if any(across) and (max(heights) <= 0 or min(heights) >= 0):
            if not any(heights):
                return None
            sides.add(frozenset(place for place, height in enumerate(heights) if height == 0))
    if not sides:
        return None
    found = {frozenset(range(len(keys))), *sides}
    while more := {one & other for one in found for other in sides if one & other} - found:
        found |= more
    return found
