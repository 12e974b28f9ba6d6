"""Attention maps as small drawings: one path for each of a few shades, so that a map weighs a few kB and follows the
page's colours. What may not be seen (the future) is left empty."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fairtrial.report.rounding import is_number

SHADES = 10
MOST_CELLS = 250_000  # of one page; a network of many heads shows each layer's mean instead
Map = Sequence[Sequence[float | None]]  # query, key; None: hidden


def mean_over_heads(heads: Sequence[Map]) -> list[list[float | None]]:
    """One map for a layer."""

    def mean(values: tuple[float | None, ...]) -> float | None:
        seen = [value for value in values if value is not None]
        return sum(seen) / len(seen) if seen else None

    return [[mean(values) for values in zip(*rows, strict=False)] for rows in zip(*heads, strict=False)]


def without_future(heads: Sequence[Sequence[Map]]) -> list[list[list[list[float | None]]]]:
    """Keys after the query are hidden where no head of any layer sees any of them, as in a decoder."""
    seen = any(value for layer in heads for head in layer for at, row in enumerate(head) for value in row[at + 1 :])
    if seen:
        return [[[list(row) for row in head] for head in layer] for layer in heads]
    return [
        [
            [[value if key <= at else None for key, value in enumerate(row)] for at, row in enumerate(head)]
            for head in layer
        ]
        for layer in heads
    ]


def shade(value: float | None) -> int:
    """0 (nothing) to SHADES (all), by the root: most weights are small, and a reader should see them."""
    if value is None or not is_number(value) or value <= 0:
        return 0
    return min(SHADES, round(SHADES * min(1.0, value) ** 0.5))


def map_shapes(values: Map) -> str:
    """The drawing alone, one unit for each cell: a ground below all that may be seen, then shade by shade."""
    ground = bars([[0 if value is None else 1 for value in row] for row in values])
    shades = bars([[shade(value) for value in row] for row in values])
    drawn = f'<path class="a0" d="{ground[1]}"/>' if 1 in ground else ""
    return drawn + "".join(f'<path class="a{level}" d="{path}"/>' for level, path in sorted(shades.items()))


def bars(levels: list[list[int]]) -> dict[int, str]:
    """A path for each level above 0; neighbours of one level are one bar."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(levels):
        start = 0
        for x in range(1, len(row) + 1):
            if x == len(row) or row[x] != row[start]:
                if row[start]:
                    paths.setdefault(row[start], []).append(f"M{start} {y}h{x - start}v1h-{x - start}z")
                start = x
    return {level: "".join(found) for level, found in paths.items()}


def spoken_map(name: str, values: Map, words: Sequence[str]) -> str:
    """What a map shows, in one sentence: its strongest link and how much stays on the word itself."""
    links = [
        (value, query, key)
        for query, row in enumerate(values)
        for key, value in enumerate(row)
        if value is not None and is_number(value) and (len(values) == 1 or sum(map(is_number, row)) > 1)
    ]  # the first word of a language model sees itself alone: 100%, whatever the head
    if not links:
        return name
    value, query, key = max(links)
    on_self = [row[at] for at, row in enumerate(values) if at < len(row) and is_number(row[at])]
    mean = sum(each for each in on_self if each is not None) / max(1, len(on_self))
    strongest = f"strongest link {word_at(words, query)} to {word_at(words, key)}, {value:.0%}"
    return f"{name}: {strongest}; on the word itself {mean:.0%} on average"


def word_at(words: Sequence[str], place: int) -> str:
    return words[place] if place < len(words) else f"word {place + 1}"


def small_map(identity: str, name: str, values: Map, words: Sequence[str]) -> str:
    """A map the size of a stamp; `large_map` draws the same shapes again by its identity."""
    told = escape(spoken_map(name, values, words))
    across = max((len(row) for row in values), default=0)
    return (
        f'<svg class="map" role="img" aria-label="{told}" viewBox="0 0 {across} {len(values)}"><title>{told}</title>'
        f'<g id="{escape(identity)}">{map_shapes(values)}</g></svg>'
    )


def large_map(identity: str, name: str, size: int, words: Sequence[str], cell: int = 18) -> str:
    """The same map with its words: queries go down, keys across."""
    shown = [word_at(words, place) for place in range(size)]
    margin = 8 * min(14, max((len(word) for word in shown), default=1)) + 8
    edge = margin + cell * size
    letters = []
    for place, word in enumerate(shown):
        text = escape(word if len(word) <= 14 else word[:13] + "…")
        middle = margin + cell * (place + 0.5)
        letters.append(f'<text x="{margin - 6}" y="{middle + 4:.0f}" text-anchor="end">{text}</text>')
        letters.append(f'<text transform="translate({middle + 4:.0f} {margin - 6}) rotate(-90)">{text}</text>')
    return (
        f'<svg class="words" role="img" aria-label="{escape(name)} with words" viewBox="0 0 {edge} {edge}"'
        f' style="max-width:{edge}px"><g transform="translate({margin} {margin}) scale({cell})">'
        f'<use href="#{escape(identity)}"/></g>{"".join(letters)}</svg>'
    )
