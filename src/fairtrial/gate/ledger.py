"""The ledger of a gate: an append-only file, one JSON object per line, each with a checksum of itself and of all lines
before it. `LEDGER.head` holds the number of lines and the last checksum, so that a removed end is seen, too."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fairtrial.disk import append_line, load_json, locked, parse_json, write_text
from fairtrial.errors import BadInput, Busy
from fairtrial.gate.decision import Answer, Evidence, GateRule, Why, correlation_allowed, judge_pairs
from fairtrial.results.values import Interval
from fairtrial.typed import WrongValue, structure, unstructure

PATIENCE_SECONDS = 20.0  # a writer holds the ledger for milliseconds


@dataclass(frozen=True)
class Opened:
    """The first line: what is judged, and by which rule."""

    metric: str
    higher_is_better: bool
    incumbent: str
    rule: GateRule
    recipe: str = ""  # of fairtrial's own trainings: the incumbent's, as TOML


@dataclass(frozen=True)
class Proposed:
    candidate: str
    number: int  # the first is 1
    level: float  # its share of the error budget
    incumbent: str  # that it is compared with
    correlation: float = 0.0  # of neighbouring pairs, which the pairs before it allow
    description: str = ""
    source_sha256: str = ""
    recipe: str = ""
    audited: str = ""


@dataclass(frozen=True)
class Scored:
    """One training run, scored on the ledger's validation set."""

    name: str
    seed: int
    score: float
    seconds: float | None = None
    confirms: bool = False  # of a fresh pair of the first incumbent and today's


@dataclass(frozen=True)
class Decided:
    candidate: str
    answer: Answer
    why: Why
    pairs: int = 0
    gain: Interval = Interval()
    shrunken: float = 0.0
    evidence: float = 1.0
    text: str = ""  # of a failed audit


@dataclass(frozen=True)
class TestsOpened:
    """The end: no proposal comes after it. Scores by name and seed."""

    scores: Mapping[str, Mapping[int, float]]
    gain: Interval | None = None  # for new test items, too, where their single outcomes are known


Entry = Opened | Proposed | Scored | Decided | TestsOpened
KINDS: dict[str, type] = {
    "opened": Opened, "proposed": Proposed, "scored": Scored, "decided": Decided, "tests_opened": TestsOpened,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass
class Proposal:
    """A candidate and its pairs."""

    proposed: Proposed
    when: str
    ours: dict[int, Scored] = field(default_factory=dict)  # by seed
    theirs: dict[int, Scored] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)  # of pairs, in the order in which they were complete
    decided: Decided | None = None

    def gains(self, opened: Opened) -> list[float]:
        sign = 1 if opened.higher_is_better else -1
        return [sign * (self.ours[seed].score - self.theirs[seed].score) for seed in self.seeds]

    def evidence(self, opened: Opened) -> Evidence:
        return judge_pairs(self.gains(opened), opened.rule, self.proposed.level, self.proposed.correlation)

    @property
    def seconds(self) -> float:
        return sum(scored.seconds or 0.0 for side in (self.ours, self.theirs) for scored in side.values())


class Ledger:
    """All lines of a file, and what follows from them."""

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path, self.opened, self.incumbent = path, opened, opened.incumbent
        self.proposals: dict[str, Proposal] = {}
        self.spent: dict[int, str] = {}  # seeds, and which candidate they judged
        self.free: dict[int, Scored] = {}  # the incumbent's scores that have judged nobody, by seed
        self.confirmed: dict[str, dict[int, float]] = {}
        self.tests: TestsOpened | None = None
        self.lines, self.chain = 0, ""

    @classmethod
    def create(cls, path: Path, opened: Opened) -> Ledger:
        if path.exists():
            raise BadInput(f"{path} exists already", "go on with it, or name another file")
        if not path.parent.is_dir():
            raise BadInput(f"{path.parent} is not a folder")
        ledger = cls(path, opened)
        with holding(path):
            ledger._append(opened)
        return ledger

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Every line is checked: one that was edited, removed, added or moved is refused with its number."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise BadInput(f"{path} does not exist", "make it with: fairtrial gate new LEDGER --metric NAME") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} cannot be read: {error}") from None
        chain, ledger = "", None
        for number, line in enumerate(lines, start=1):
            when, entry, chain = read_line(path, number, line, chain)
            if ledger is None:
                if not isinstance(entry, Opened):
                    raise BadInput("a ledger begins with another line", path=path, line=1)
                ledger = cls(path, entry)
            ledger._apply(entry, when)
            ledger.lines, ledger.chain = number, chain
        if ledger is None:
            raise BadInput("an empty file is no ledger", path=path)
        head = load_json(head_of(path), "it belongs to the ledger: restore both from a copy")
        if head.get("sha256") != chain and head.get("lines") != ledger.lines - 1:  # killed between both writes
            hint = "restore it from a copy"
            raise BadInput(f"{path} has {ledger.lines} lines, and {head.get('lines')} were written", hint)
        return ledger

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Ledger]:
        """As it is now, while no other process writes."""
        if not path.is_file():
            cls.read(path)  # says what is wrong
        with holding(path):
            yield cls.read(path)

    def _append(self, entry: Entry) -> None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        line, self.chain = written_line(self.lines + 1, when, NAMES[type(entry)], unstructure(entry), self.chain)
        append_line(self.path, line)
        self.lines += 1
        self._apply(entry, when)
        write_text(head_of(self.path), json.dumps({"lines": self.lines, "sha256": self.chain}) + "\n")

    def _apply(self, entry: Entry, when: str) -> None:
        if isinstance(entry, Proposed):
            self.proposals[entry.candidate] = Proposal(entry, when)
        elif isinstance(entry, Scored):
            self._apply_score(entry)
        elif isinstance(entry, Decided):
            self.proposals[entry.candidate].decided = entry
            if entry.answer == Answer.KEEP:  # its scores were lucky: it is judged by new ones
                self.incumbent, self.free = entry.candidate, {}
        elif isinstance(entry, TestsOpened):
            self.tests = entry

    def _apply_score(self, scored: Scored) -> None:
        if scored.confirms:
            self.confirmed.setdefault(scored.name, {})[scored.seed] = scored.score
        elif (own := self.waiting(scored.name)) is not None:
            own.ours[scored.seed], self.spent[scored.seed] = scored, scored.name
            if scored.seed in self.free:
                own.theirs[scored.seed] = self.free.pop(scored.seed)
                own.seeds.append(scored.seed)
        elif (candidate := self.spent.get(scored.seed)) is None:
            self.free[scored.seed] = scored
        else:
            self.proposals[candidate].theirs[scored.seed] = scored
            self.proposals[candidate].seeds.append(scored.seed)

    def waiting(self, name: str) -> Proposal | None:
        """The proposal of this name, if it is not decided."""
        proposal = self.proposals.get(name)
        return proposal if proposal is not None and proposal.decided is None else None

    @property
    def kept(self) -> list[Proposal]:
        return [each for each in self.proposals.values() if each.decided and each.decided.answer == Answer.KEEP]

    @property
    def correlation(self) -> float:
        """Of a new proposal's neighbouring pairs, as far as the pairs of all others tell."""
        return correlation_allowed([each.gains(self.opened) for each in self.proposals.values()])

    def propose(self, candidate: str, **details: str) -> Proposal:
        """The proposal of this name, which is new if there is none."""
        if candidate in self.proposals:
            return self.proposals[candidate]
        if candidate == self.opened.incumbent:
            raise BadInput(f"{candidate} is the first incumbent, not a candidate")
        if self.tests is not None:
            raise BadInput("the test sets of this ledger were opened: it takes no further proposals", "begin another")
        number = 1 + len(self.proposals)
        level = self.opened.rule.level(number, len(self.kept))
        self._append(Proposed(candidate, number, level, self.incumbent, self.correlation, **details))
        return self.proposals[candidate]

    def score(self, scored: Scored) -> None:
        """A score is never replaced, and a seed judges one candidate only."""
        if not math.isfinite(scored.score):
            raise BadInput(f"a score must be a finite number, got {scored.score}")
        if scored.confirms:
            self._append(scored)
            return
        own = self.waiting(scored.name)
        judged = self.spent.get(scored.seed)
        if own is None and scored.name != self.incumbent:
            state = "was discarded" if scored.name in self.proposals else "is neither the incumbent nor a candidate"
            raise BadInput(f"{scored.name} {state}", f"the incumbent is {self.incumbent}")
        if own is not None:
            before, other = own.ours.get(scored.seed), judged if judged != scored.name else None
        else:
            pair = None if judged is None else self.waiting(judged)
            before = self.free.get(scored.seed) if pair is None else pair.theirs.get(scored.seed)
            other = judged if pair is None else None
        if other is not None:
            what = f"seed {scored.seed} was already used to judge {other}: its luck would count twice"
            raise BadInput(what, f"run both sides with seed {self.next_seed}")
        if before is None:
            self._append(scored)
        elif before.score != scored.score:
            what = f"{scored.name}, seed {scored.seed}, already has the score {before.score}, not {scored.score}"
            raise BadInput(what, "a score is never replaced; another run takes another seed")

    @property
    def next_seed(self) -> int:
        """One that no run of this ledger had."""
        confirming = (seed for scores in self.confirmed.values() for seed in scores)
        return 1 + max([-1, *self.spent, *self.free, *confirming])

    def seed_for(self, proposal: Proposal) -> int:
        """Of the next run: a pair that lacks one side comes first."""
        half = [seed for seed in proposal.ours if seed not in proposal.theirs] + sorted(self.free)
        return half[0] if half else self.next_seed

    def decide(self, candidate: str, why: Why, text: str = "") -> None:
        """Discard it for another reason than its scores."""
        self._append(Decided(candidate, Answer.DISCARD, why, text=text))

    def open_tests(self, scores: Mapping[str, Mapping[int, float]], gain: Interval | None) -> None:
        self._append(TestsOpened(scores, gain))

    def settle(self) -> None:
        """Write down what is decided. A kept candidate is the new incumbent; others that wait were compared with the
        old one, so they end."""
        for candidate, proposal in self.proposals.items():
            if proposal.decided is not None:
                continue
            if proposal.proposed.incumbent != self.incumbent:
                self._append(Decided(candidate, Answer.DISCARD, Why.SUPERSEDED, len(proposal.seeds)))
                continue
            now = proposal.evidence(self.opened)
            if now.answer != Answer.MORE:
                shown = (now.answer, now.why, now.pairs, now.gain, now.shrunken, now.evidence)
                self._append(Decided(candidate, *shown))


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Against a second writer, who waits."""
    until = time.monotonic() + PATIENCE_SECONDS
    lock = path.with_name(f".{path.name}.lock")
    while True:
        try:
            with locked(lock, "writing this ledger", "try again"):
                yield
            return
        except Busy:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)


def head_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.head")


def written_line(number: int, when: str, kind: str, content: object, chain: str) -> tuple[str, str]:
    body: dict[str, object] = {"line": number, "time": when, "kind": kind, "content": content}
    digest = hashlib.sha256((chain + json.dumps(body, sort_keys=True)).encode()).hexdigest()
    return json.dumps({**body, "sha256": digest}, ensure_ascii=False), digest


def read_line(path: Path, number: int, line: str, chain: str) -> tuple[str, Entry, str]:
    try:
        plain = parse_json(line)
        content, kind, when = plain["content"], KINDS[plain["kind"]], str(plain["time"])
        _, digest = written_line(plain["line"], when, plain["kind"], content, chain)
        if plain["line"] != number or digest != plain["sha256"] or len(plain) != 5:
            raise BadInput("this line, or one before it, was changed, added, moved or removed", path=path, line=number)
        return when, structure(kind, content), digest
    except (ValueError, TypeError, KeyError, WrongValue) as error:
        hint = "restore the ledger from a copy"
        raise BadInput(f"this line is damaged: {error}", hint, path=path, line=number) from None
