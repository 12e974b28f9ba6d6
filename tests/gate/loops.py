"""Loops of proposals, simulated: an agent that proposes, a gate or a greedy rule that keeps.
`python tests/gate/loops.py 100` prints the table of research/gate.md."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairtrial.gate.decision import Answer, GateRule, correlation_allowed, judge_pairs

PROPOSALS = 300
Decide = Callable[[list[float]], Answer]  # of a proposal's gains so far
Begin = Callable[[list[list[float]], int], Decide]  # of the gains of all proposals before, and how many were kept


@dataclass(frozen=True)
class Loop:
    """Proposals on one validation set. A pair's difference has a standard deviation of 1."""

    real: float = 0.1  # share of proposals that are better
    gain: float = 1.0
    harm: float = 0.0  # by which a third of the others are worse
    drift: float = 0.0  # of both sides, over the loop: a machine that warms up
    tails: bool = False  # luck is a t with 4 degrees of freedom
    alike: float = 0.0  # correlation of a pair's luck with that of the pair before
    adaptive: bool = False  # proposes variations of what looked good before, whether or not it was real


class Kept(NamedTuple):
    false: int
    real: int
    offered: int  # real gains that were proposed
    pairs: float  # for one proposal, on average
    most: int
    gain: float  # true gain of all that was kept


def run_loop(loop: Loop, begin: Begin, seed: int, proposals: int = PROPOSALS) -> Kept:
    chance = np.random.default_rng(seed)
    kept: list[float] = []
    before: list[list[float]] = []
    luck, liked, offered, lengths = 0.0, 0.0, 0, []
    for number in range(1, proposals + 1):
        share = loop.real * (1.5 if loop.adaptive and liked > 0.5 else 0.75 if loop.adaptive else 1.0)
        other = -loop.harm if chance.random() < 1 / 3 else 0.0
        truth = loop.gain if chance.random() < share else other
        offered += truth > 0
        gains: list[float] = []
        answer, decide = Answer.MORE, begin(before, len(kept))
        while answer == Answer.MORE:
            draw = chance.standard_t(4) / math.sqrt(2) if loop.tails else chance.normal()
            luck = loop.alike * luck + math.sqrt(1 - loop.alike**2) * draw
            common = loop.drift * number + chance.normal()  # of both sides alike
            ours, theirs = truth + common + luck, common
            gains.append(ours - theirs)
            answer = decide(gains)
        liked = float(np.mean(gains))
        lengths.append(len(gains))
        before.append(gains)
        if answer == Answer.KEEP:
            kept.append(truth)
    false = sum(truth <= 0 for truth in kept)
    return Kept(false, len(kept) - false, offered, float(np.mean(lengths)), max(lengths), sum(kept))


def gate_of(rule: GateRule) -> Begin:
    """As a ledger does it: level and correlation are fixed when a proposal begins."""

    def begin(before: list[list[float]], kept: int) -> Decide:
        level, correlation = rule.level(len(before) + 1, kept), correlation_allowed(before)
        return lambda gains: judge_pairs(gains, rule, level, correlation).answer

    return begin


def greedy(before: list[list[float]], kept: int) -> Decide:
    """What public loops do: one run, and the lower number stays."""
    return lambda gains: Answer.KEEP if gains[0] > 0 else Answer.DISCARD


def five_seeds(before: list[list[float]], kept: int) -> Decide:
    """A t-test on five pairs, uncorrected."""

    def decide(gains: list[float]) -> Answer:
        if len(gains) < 5:
            return Answer.MORE
        t = np.mean(gains) / (np.std(gains, ddof=1) / math.sqrt(5))
        return Answer.KEEP if t > 2.132 else Answer.DISCARD

    return decide


LOOPS = {
    "one in ten is real": Loop(),
    "nothing is real": Loop(real=0.0),
    "nothing is real, heavy tails": Loop(real=0.0, tails=True),
    "one in ten, drift": Loop(drift=0.02),
    "one in ten, an agent that follows luck": Loop(adaptive=True),
    "one in ten, half the gain": Loop(gain=0.5),
    "one in ten, a third is harmful": Loop(harm=0.5),
    "nothing is real, a pair's luck like the last one's (0.3)": Loop(real=0.0, alike=0.3),
    "one in ten, a pair's luck like the last one's (0.3)": Loop(alike=0.3),
    "nothing is real, a pair's luck like the last one's (0.5)": Loop(real=0.0, alike=0.5),
}
RULES = {"gate, fdr": GateRule(), "gate, fwer": GateRule(control="fwer")}


class Rates(NamedTuple):
    false_share: float  # of kept proposals, mean over loops
    any_false: float
    found: float  # of the real gains
    pairs: float
    most: int
    gain: float


def rates(loop: Loop, begin: Begin, loops: int, proposals: int = PROPOSALS) -> Rates:
    done = [run_loop(loop, begin, seed, proposals) for seed in range(loops)]
    return Rates(
        float(np.mean([each.false / max(1, each.false + each.real) for each in done])),
        float(np.mean([each.false > 0 for each in done])),
        sum(each.real for each in done) / max(1, sum(each.offered for each in done)),
        float(np.mean([each.pairs for each in done])),
        max(each.most for each in done),
        float(np.mean([each.gain for each in done])),
    )


def main() -> None:
    loops = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rules = {name: gate_of(rule) for name, rule in RULES.items()} | {"greedy": greedy, "5 seeds, t-test": five_seeds}
    print("| loop | rule | false share of kept | any false keep | gains kept | pairs per proposal | most | true gain |")
    print("|---|---|---|---|---|---|---|---|")
    for name, loop in LOOPS.items():
        for rule, begin in rules.items():
            r = rates(loop, begin, loops)
            shown = f"{r.false_share:.3f} | {r.any_false:.2f} | {r.found:.2f} | {r.pairs:.1f} | {r.most} | {r.gain:.1f}"
            print(f"| {name} | {rule} | {shown} |")


if __name__ == "__main__":
    main()
