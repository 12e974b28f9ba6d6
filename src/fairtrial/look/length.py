"""A language model beyond the length that it was trained on: 1x, 2x, 4x, 8x."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtrial.errors import BadInput
from fairtrial.train.bench import LanguageBench
from fairtrial.train.score_lm import score_lm


@dataclass(frozen=True)
class Stretch:
    """One test set at one length: its perplexity, or why there is none."""

    test: str
    times: int
    length: int
    perplexity: float | None
    interval: tuple[float, float] | None
    why_not: str = ""


def stretch(bench: LanguageBench, tests: Sequence[str], times: Sequence[int] = (1, 2, 4, 8)) -> Iterator[Stretch]:
    """Each test set scored exactly, every token with up to `times` x the trained length before it."""
    for test in tests:
        for factor in times:
            length = factor * bench.length
            try:
                # a token sees at least 3/4 of the length: at 8x a stride of one token would take 8 x 8 the time
                share = bench.full_context if factor == 1 else 0.75
                score = score_lm(bench.network, bench.sets[test], length=length, full_context=share, pad=0)
            except BadInput as error:
                yield Stretch(test, factor, length, None, None, error.what)
                continue
            yield Stretch(test, factor, length, score.figures["perplexity"], score.figures["interval"])
