"""Parts that cheat, each in its own way, with the checks that must catch it."""

from __future__ import annotations

from typing import NamedTuple

from cheats_claiming import (
    ContentRotary,
    ContentTable,
    Counter,
    Deaf,
    EvalDropout,
    EvalNoise,
    Forgetful,
    FromTheStart,
    GlobalRng,
    HiddenTable,
    LastBatch,
    LostMask,
    Loud,
    NotANumber,
    Sharp,
    SoftWindow,
    WideWindow,
)
from cheats_seeing import (
    BatchMean,
    BatchNorm,
    DetachedFuture,
    FutureMean,
    FutureNorm,
    MovedQueries,
    NextOutput,
    PaddingMean,
    PaddingOutput,
    RightSum,
    ScoreSpread,
    ShutGate,
    Squeezed,
    TokenMean,
)

from fairtrial.model.part import Part


class Cheat(NamedTuple):
    kind: type[Part]
    task: str
    caught_by: frozenset[str]


def cheat(kind: type[Part], task: str, caught_by: str) -> Cheat:
    return Cheat(kind, task, frozenset(caught_by.split()))


ZOO = [
    cheat(FutureNorm, "lm", "M3 M4 M7 C1"),
    cheat(FutureMean, "lm", "M3 M4 C1"),
    cheat(RightSum, "lm", "M3 M4 M7 C1"),
    cheat(NextOutput, "lm", "M3 M4 C1"),
    cheat(ScoreSpread, "lm", "M3 M4"),
    cheat(DetachedFuture, "lm", "M3 C1"),
    cheat(ShutGate, "lm", "M3 M4 C1"),
    cheat(MovedQueries, "lm", "M3 M4"),
    cheat(BatchNorm, "lm", "M3 M4 M7"),
    cheat(BatchNorm, "classify", "M7"),
    cheat(BatchMean, "lm", "M7"),
    cheat(BatchMean, "classify", "M7"),
    cheat(TokenMean, "classify", "M7"),
    cheat(Squeezed, "classify", "M7"),
    cheat(PaddingMean, "classify", "M7"),
    cheat(PaddingOutput, "classify", "M7"),
    cheat(PaddingOutput, "lm", "M3 M7 C1"),
    cheat(WideWindow, "lm", "M9r"),
    cheat(WideWindow, "classify", "M9r"),
    cheat(SoftWindow, "lm", "M9r"),
    cheat(SoftWindow, "classify", "M9r"),
    cheat(LostMask, "lm", "M1"),
    cheat(EvalDropout, "lm", "S1"),
    cheat(EvalDropout, "classify", "S1"),
    cheat(EvalNoise, "classify", "S1"),
    cheat(LastBatch, "classify", "S1"),
    cheat(Counter, "lm", "S1"),
    cheat(GlobalRng, "classify", "R1 R2"),
    cheat(GlobalRng, "lm", "R1 R2"),
    cheat(Forgetful, "lm", "R2 R3"),
    cheat(ContentTable, "classify", "M8"),
    cheat(ContentTable, "lm", "M8"),
    cheat(ContentRotary, "classify", "M8 M9"),
    cheat(ContentRotary, "lm", "M8 M9"),
    cheat(FromTheStart, "lm", "M9"),
    cheat(HiddenTable, "classify", "M9"),
    cheat(Deaf, "lm", "M14g"),
    cheat(Sharp, "lm", "M10"),
    cheat(Loud, "classify", "M14"),
    cheat(NotANumber, "lm", "M1"),
]
