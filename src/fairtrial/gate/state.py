"""What a ledger says now: the decision, the budget, every proposal; described once for terminal, notebook and page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.description import MISSING, Curve, Description, LineChart, Result, Table, row
from fairtrial.formatting import few_digits, format_time, plain_number, with_interval
from fairtrial.gate.decision import Answer, Why, gain_test
from fairtrial.gate.ledger import Ledger, Proposal
from fairtrial.results.sentences import counted
from fairtrial.results.values import Interval
from fairtrial.typed import unstructure

MOST_DRAWN = 8
REASONS = {
    Why.EVIDENCE: "the evidence of a gain is enough",
    Why.TOO_SMALL: "a gain of the margin is ruled out",
    Why.HOPELESS: "the pairs that are left cannot decide it",
    Why.NO_PAIRS: "all pairs are used",
    Why.AUDIT: "the leak audit failed",
    Why.SUPERSEDED: "another candidate was kept first",
    Why.UNDECIDED: "not decided yet",
}


@dataclass(frozen=True)
class ProposalState:
    """One candidate of a ledger: its pairs and what became of it.

    >>> _ = ft.gate_new("one.jsonl", "val_loss", incumbent="base")
    >>> ft.gate_add("one.jsonl", "muon", seed=0, score=3.2).proposals[0].why.value
    'undecided'
    """

    candidate: str
    number: int
    incumbent: str
    answer: Answer
    why: Why
    pairs: int
    gain: Interval  # more is better, whatever the metric's direction
    shrunken: float  # the gain, less what was luck on average
    evidence: float
    needed: float
    seeds: tuple[int, ...]
    seconds: float = 0.0
    when: str = ""
    description: str = ""
    source_sha256: str = ""
    audited: str = ""
    curve: tuple[float, ...] = ()  # the evidence after each pair; of the newest proposals


@dataclass(frozen=True, repr=False)
class Gate(Result):
    """A ledger's decision about the newest proposal, and all before it.

    >>> gate = ft.gate_new("ideas.jsonl", "val_loss", incumbent="base")
    >>> gate = ft.gate_add("ideas.jsonl", "muon", scores={0: 3.21, 1: 3.20}, incumbent_scores={0: 3.28, 1: 3.27})
    >>> gate.answer.value, gate.next_seed
    ('more', 2)
    """

    ledger: str
    metric: str
    higher_is_better: bool
    incumbent: str
    alpha: float
    control: str
    spent: float  # share of the error budget
    next_seed: int
    next_command: str
    proposals: tuple[ProposalState, ...] = ()
    confirmed: Interval | None = None  # gain of today's incumbent over the first, by fresh pairs
    tests: Interval | None = None  # the same on the test sets, once they were opened
    new_items: bool = False  # whether the interval of `tests` also holds for new test items

    @property
    def current(self) -> ProposalState | None:
        """The proposal that is waiting, or else the last one."""
        waiting = [each for each in self.proposals if each.answer == Answer.MORE]
        return waiting[-1] if waiting else self.proposals[-1] if self.proposals else None

    @property
    def answer(self) -> Answer | None:
        """keep, discard or more; None without proposals."""
        return None if self.current is None else self.current.answer

    @property
    def cumulative(self) -> float:
        """Gain of all kept proposals, each shrunken."""
        return sum(each.shrunken for each in self.proposals if each.answer == Answer.KEEP)

    @property
    def sentence(self) -> str:
        now = self.current
        if now is None:
            return f"No proposal yet: the incumbent is {self.incumbent}."
        size = size_text(now.gain)
        gain = f"gain in {self.metric} {size} over {now.incumbent} ({counted(now.pairs, 'pair')})"
        if now.answer == Answer.KEEP:
            return f"Keep {now.candidate}: {gain}. It is the new incumbent."
        if now.answer == Answer.DISCARD:
            seen = f" {gain[0].upper()}{gain[1:]}." if now.pairs else ""
            return f"Discard {now.candidate}: {REASONS[now.why]}.{seen}"
        so_far = f" So far: {gain}." if now.pairs else ""
        return f"Run one more pair of {now.candidate} and {self.incumbent}, with seed {self.next_seed}.{so_far}"

    def to_json(self) -> dict[str, object]:
        plain = unstructure(self)
        assert isinstance(plain, dict)
        return {"answer": self.answer, "sentence": self.sentence, "current": unstructure(self.current), **plain}

    def describe(self) -> Description:
        lines = [self.sentence]
        if (now := self.current) is not None and now.pairs:
            shown = f"Evidence {few_digits(now.evidence)}, needed {few_digits(now.needed)}."
            level = f" The interval is at the level of the decision ({now.gain.level:.4g}) and holds after every pair."
            lines.append(shown + level * (now.gain.low is not None))
        kept = sum(each.answer == Answer.KEEP for each in self.proposals)
        kind = "of kept candidates expected to be no gain" if self.control == "fdr" else "chance of any false keep"
        lines.append(
            f"{counted(len(self.proposals), 'proposal')}, {kept} kept; {self.spent:.0%} of the error budget spent"
            f" (at most {self.alpha:.0%} {kind})."
        )
        if kept:
            told = f"Cumulative gain: {plain_number(self.cumulative, 4, sign=True)} {self.metric}, each keep shrunken."
            lines.append(
                told + ("" if self.confirmed else f" Measure it by fresh pairs: fairtrial gate confirm {self.ledger}")
            )
        tests = "new test items" if self.new_items else "these test sets (single items are not known)"
        for name, interval in (("fresh pairs", self.confirmed), (tests, self.tests)):
            if interval is not None:
                size = size_text(interval)
                lines.append(f"Gain of {self.incumbent} over the first incumbent on {name}: {size} {self.metric}.")
        if self.tests is not None and self.tests.estimate is not None:
            cost = few_digits(self.cumulative - self.tests.estimate)
            lines.append(f"Selection cost {cost}: the gain on validation less the gain on the test sets.")
        if self.next_command:
            lines.append(f"Next: {self.next_command}")
        return Description(lines, [self._table()] if self.proposals else [], f"gate {self.ledger}", self._charts())

    def _table(self) -> Table:
        rows = []
        for each in self.proposals:
            size = size_text(each.gain) if each.pairs else MISSING
            cells = (
                str(each.number),
                each.candidate,
                each.description[:60],
                each.answer.value,
                each.why.value.replace("_", " "),
                size,
            )
            spent = format_time(each.seconds) if each.seconds else MISSING
            rows.append(row(*cells, each.pairs, few_digits(each.evidence), few_digits(each.needed), spent))
        direction = "higher" if self.higher_is_better else "lower"
        return Table(
            "proposals",
            ("", "candidate", "description", "decision", "why", "gain", "pairs", "evidence", "needed", "time"),
            tuple(rows),
            note=f"Gain in {self.metric} ({direction} is better), more is better; intervals at each decision's level.",
            text_columns=5,
        ).without_empty_columns()

    def _charts(self) -> Sequence[LineChart]:
        evidence = tuple(
            Curve(each.candidate, "evidence", tuple(enumerate(each.curve, start=1)))
            for each in self.proposals
            if len(each.curve) > 1
        )
        total, gains, spent = 0.0, [(0, 0.0)], [(0, 0.0)]
        for number, each in enumerate(self.proposals, start=1):
            total += each.shrunken if each.answer == Answer.KEEP else 0.0
            gains.append((number, total))
            spent.append((number, spent[-1][1] + self.spent_on(each)))
        return (
            LineChart("evidence", "evidence of a gain", evidence, log=True, x_label="pairs"),
            LineChart(
                "cumulative gain", self.metric, (Curve("kept, shrunken", "", tuple(gains)),), x_label="proposals"
            ),
            LineChart("error budget", "share spent", (Curve("spent", "", tuple(spent)),), x_label="proposals"),
        )

    def spent_on(self, proposal: ProposalState) -> float:
        """Share of the error budget that this proposal's level is."""
        before = sum(each.answer == Answer.KEEP and each.number < proposal.number for each in self.proposals)
        return 1 / proposal.needed / self.alpha / (before + 1 if self.control == "fdr" else 1)


@dataclass(frozen=True, repr=False)
class SelfTest(Result):
    """The incumbent against itself: what luck alone does.

    >>> _ = ft.gate_new("self.jsonl", "val_loss", incumbent="base")
    >>> _ = ft.gate_add("self.jsonl", "base", scores={0: 3.28, 1: 3.29, 2: 3.27})
    >>> ft.gate_self_test("self.jsonl").runs
    3
    """

    metric: str
    runs: int
    noise: float  # standard deviation of the difference of a pair
    least_gain: float | None  # the least that a proposal's pairs can show in one case of two; None: none below 3 noises
    pairs: int | None

    def describe(self) -> Description:
        noise, gain = few_digits(self.noise), few_digits(self.least_gain)
        lines = [f"Two runs of the incumbent differ by {noise} {self.metric} (standard deviation; {self.runs} runs)."]
        if self.pairs is None:
            lines.append("No gain below three times that can be shown with the pairs that a proposal may take.")
        else:
            lines.append(
                f"The smallest gain worth chasing is about {gain} {self.metric}; it takes about {self.pairs} pairs."
            )
        return Description(lines, title="self-test")

    def rows(self) -> list[dict[str, object]]:
        return [{"runs": self.runs, "noise": self.noise, "least_gain": self.least_gain, "pairs": self.pairs}]


def size_text(gain: Interval) -> str:
    if gain.low is None or gain.estimate is None:
        return few_digits(gain.estimate)
    return with_interval(gain.estimate, gain.low, gain.high, sign=True)


def state_of(ledger: Ledger) -> Gate:
    """Of a ledger that was read."""
    drawn = [*ledger.proposals][-MOST_DRAWN:]
    proposals = tuple(proposal_state(ledger, each, name in drawn) for name, each in ledger.proposals.items())
    rule, waiting = ledger.opened.rule, [each for each in ledger.proposals.values() if each.decided is None]
    seed = ledger.seed_for(waiting[-1]) if waiting else ledger.next_seed
    opened = ledger.tests
    state = Gate(
        ledger=str(ledger.path),
        metric=ledger.opened.metric,
        higher_is_better=ledger.opened.higher_is_better,
        incumbent=ledger.incumbent,
        alpha=rule.alpha,
        control=rule.control,
        spent=0.0,
        next_seed=seed,
        next_command=next_command(ledger, waiting[-1] if waiting else None, seed),
        proposals=proposals,
        confirmed=gain_between(ledger, ledger.confirmed),
        tests=None if opened is None else opened.gain or gain_between(ledger, opened.scores),
        new_items=opened is not None and opened.gain is not None,
    )
    object.__setattr__(state, "spent", sum(map(state.spent_on, proposals)))
    return state


def next_command(ledger: Ledger, waiting: Proposal | None, seed: int) -> str:
    if waiting is None:
        return ""
    name = waiting.proposed.candidate
    if ledger.opened.recipe:
        return f"fairtrial gate run {ledger.path} --candidate {name!r}"
    scores = [] if seed in waiting.ours else ["--score SCORE"]
    scores += [] if seed in waiting.theirs or seed in ledger.free else ["--incumbent-score SCORE"]
    sides = f"--seed {seed} {' '.join(scores)}"
    return f"fairtrial gate add {ledger.path} --candidate {name!r} {sides}"


def proposal_state(ledger: Ledger, proposal: Proposal, drawn: bool) -> ProposalState:
    """What was decided is not computed again, unless its evidence is `drawn`."""
    decided, proposed = proposal.decided, proposal.proposed
    if decided is None or drawn or decided.gain.estimate is None:
        values = vars(proposal.evidence(ledger.opened))
    else:
        values = {name: getattr(decided, name) for name in ("pairs", "gain", "shrunken", "evidence")}
        values["needed"] = 1 / proposed.level
    if decided is not None:
        values = values | {"answer": decided.answer, "why": decided.why}
    return ProposalState(
        **values,
        candidate=proposed.candidate,
        number=proposed.number,
        incumbent=proposed.incumbent,
        seeds=tuple(proposal.seeds),
        seconds=proposal.seconds,
        when=proposal.when,
        description=proposed.description,
        source_sha256=proposed.source_sha256,
        audited=decided.text if decided and decided.text else proposed.audited,
    )


def gain_between(ledger: Ledger, scores: Mapping[str, Mapping[int, float]]) -> Interval | None:
    """Of today's incumbent over the first, by pairs that judged nothing: a plain t interval."""
    first, now = (scores.get(name, {}) for name in (ledger.opened.incumbent, ledger.incumbent))
    seeds = sorted(first.keys() & now.keys())
    if not seeds:
        return None
    sign = 1 if ledger.opened.higher_is_better else -1
    gains = [sign * (now[seed] - first[seed]) for seed in seeds]
    if len(gains) < 2:
        return Interval(gains[0], None, None)
    low, high = gain_test(gains).interval()
    return Interval(float(np.mean(gains)), *((low, high) if math.isfinite(low) else (None, None)))
