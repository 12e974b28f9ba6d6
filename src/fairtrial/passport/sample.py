"""Texts to audit with: a few sentences of presidents' speeches (public domain) and rows of random tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtrial.streams import seed_for

MOST = 64  # tokens of a row; longer rows would show nothing more and cost much more

SENTENCES = """
We hold our distant past in view so that we may better choose the road that lies before us .
The state of the union is strong because the people of this country are strong .
I ask the Congress to pass this budget , and to pass it before the end of the year .
Our schools must teach every child to read , and our workers must have the skills of a new time .
Tonight our nation is at war , our economy is in recession , and the world faces great dangers .
Yet the union has never been stronger , and we will go on together , with hope and with patience .
We cannot walk alone , and as we walk we must always march ahead and never turn back .
Ask not what the country can do for you , but what all of us can do for the freedom of man .
""".strip().splitlines()

WORDS = sorted({word for line in SENTENCES for word in line.split()})
RESERVED = 4  # padding, unknown, start, stop
VOCABULARY = RESERVED + len(WORDS)


def word_ids() -> list[int]:
    """The sentences, one after another, as places in the list of their words."""
    place = {word: RESERVED + number for number, word in enumerate(WORDS)}
    return [place[word] for line in SENTENCES for word in line.split()]


def row_lengths(most: int) -> list[int]:
    """Eight lengths from the longest to a single token."""
    return [max(1, each) for each in (most, most, most - 1, most * 3 // 4, most // 2, most // 2 + 1, most // 4, 1)]


def sample_rows(stream: list[int], vocabulary: int, length: int, seed: int) -> tuple[Tensor, ...]:
    """Eight rows of real text and eight of random tokens [time], full ones and short ones."""
    most = min(length, MOST)
    lengths = [min(each, most) for each in row_lengths(most)]
    stream = stream * (1 + (most * 8) // len(stream))
    real = [torch.tensor(stream[place * most : place * most + size]) for place, size in enumerate(lengths)]
    dice = torch.Generator().manual_seed(seed_for(seed, "passport", "rows"))
    chance = [torch.randint(vocabulary, (size,), generator=dice) for size in lengths]
    return (*real, *chance)
