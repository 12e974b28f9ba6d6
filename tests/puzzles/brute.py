"""Brute force for puzzles in the plane, on whole-number keys: exact, and by another way than the linear programs."""

from __future__ import annotations

from collections.abc import Iterable
from math import atan2, gcd

Key = tuple[int, int]


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
