"""The leak audit of a scorer: any function that says how probable a text is. A score counts only if no token's score
depends on later tokens, if probabilities sum to one, if nothing is learned from a token before it is scored, if scoring
again gives nothing for free, and if every byte is paid for.

`score(tokens)` or `score(text)` gives natural log-probabilities: one for each token, or their sum. Also
`loglikelihood(requests)` as in lm-evaluation-harness: (context, continuation) -> (log-probability, greedy)."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.finding import FAIL, NOT_ASKED, PASS, Finding, Measured, at_most

TOLERANCE = 1e-4  # nats, in float32
MOST_CALLS = 20_000  # for an exact sum over the vocabulary
LONGEST = 24
LONG = (60, 300)  # tokens, or times the letters of a text: some read in chunks, or read no more than so many
FEWEST = 4  # cuts of each text, whatever the time
LUCK = 6.0  # standard errors
SECONDS = 2.0  # of processor time, for cuts and long texts
ODD = [*"qZ7 \n\r\té中ß🙂\u200b\ufeff\xad\x07-'", "e\u0301"]
ALIKE = (  # texts that a tokenizer may take for the same
    ("é", "e"),
    ("É", "é"),
    ("ﬁ", "fi"),
    ("Ａ", "A"),
    ("\xa0", " "),
    ("’", "'"),
    ("“", '"'),
    ("½", "1⁄2"),
    ("  ", " "),
    ("\r\n", "\n"),
    ("\t", " "),
    ("T", "t"),
)
TEXTS = (
    "The state of the union is strong because the people are strong.",
    "We hold our distant past in view, so that we may choose the road ahead.",
    "I ask the Congress to pass this budget before the end of the year!",
)
HOW = "give FILE.py:FUNCTION; the function takes tokens (a list of numbers) or a text, and returns log-probabilities"


@dataclass
class Scorer:
    """A scorer that can be begun anew, as what it has learned is part of what is asked."""

    path: Path
    name: str
    vocabulary: int | None = None
    takes_text: bool = False
    totals: bool = False  # it gives one number for a whole text

    def requests(self, requests: list[tuple[str, str]]) -> Any:
        """The answers of a fresh `loglikelihood`."""
        return getattr(load_scorer(self.path), self.name)(requests)

    def fresh(self) -> Callable[[Any], np.ndarray]:
        """Without anything that it has seen: [token], or [1] where it gives one number."""
        function = getattr(load_scorer(self.path), self.name, None)
        if not callable(function):
            raise BadInput(f"it has no function {self.name!r}", HOW, path=self.path)
        if self.name == "loglikelihood":
            return lambda text: np.array([float(function([("", text)])[0][0])])  # alone; Q6 asks many at once

        def call(given: Any) -> np.ndarray:
            answer = np.atleast_1d(np.asarray(function(given), float))
            if answer.ndim != 1 or np.isnan(answer).any():
                raise BadInput(f"{self.name} returned an array of the shape {answer.shape}, or no number", HOW)
            return answer

        return call

    def samples(self, rng: np.random.Generator) -> list[Any]:
        if self.takes_text:
            return list(TEXTS)
        assert self.vocabulary is not None
        return [rng.integers(0, self.vocabulary, LONGEST).tolist() for _ in range(3)]

    def long_samples(self, rng: np.random.Generator) -> list[Any]:
        """Longer than the samples, and with what comes again."""
        if self.takes_text:
            return [" ".join((TEXTS * size)[:size]) for size in LONG]
        assert self.vocabulary is not None
        few = rng.integers(0, self.vocabulary, 40)
        return [rng.integers(0, self.vocabulary, LONG[0]).tolist(), rng.choice(few, LONG[1]).tolist()]

    def other_ending(self, given: Any, cut: int, rng: np.random.Generator) -> Any:
        if self.takes_text:
            letters = "".join(rng.choice(list("etaoin shrdlu."), len(given) - cut))
            return given[:cut] + letters
        return given[:cut] + rng.integers(0, self.vocabulary or 2, len(given) - cut).tolist()


def load_scorer(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fairtrial_scorer_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput("is not a Python file", HOW, path=path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_scorer(target: str, vocabulary: int | None) -> Scorer:
    """`FILE.py:FUNCTION`: what it takes and gives is found by calling it."""
    file, _, name = target.rpartition(":")
    if not file:
        raise BadInput(f"{target!r} names no function", HOW)
    scorer = Scorer(Path(file), name, vocabulary, takes_text=vocabulary is None or name == "loglikelihood")
    if vocabulary is None and name != "loglikelihood":
        declared = getattr(load_scorer(scorer.path), "VOCABULARY", None)
        if declared is not None:
            scorer = Scorer(Path(file), name, int(declared), takes_text=False)
    sample = scorer.samples(np.random.default_rng(0))[0]
    try:
        answer = scorer.fresh()(sample)
    except BadInput:
        raise
    except Exception as error:
        hint = f"{HOW}; tokens take --vocabulary N, or VOCABULARY = N in the file"
        raise BadInput(f"{name}({type(sample).__name__}) raises {type(error).__name__}: {error}", hint) from error
    scorer.totals = len(answer) == 1 and len(sample) > 1
    return scorer


def audit_scorer(target: str, vocabulary: int | None = None, seed: int = 0) -> list[Finding]:
    """Each question gets a scorer that has seen nothing."""
    scorer, rng = open_scorer(target, vocabulary), np.random.default_rng(seed)
    checks = (
        ("Q1", "sees the future", sees_future),
        ("Q2", "probabilities do not sum to one", not_normalized),
        ("Q3", "learns before it scores", learns_first),
        ("Q4", "scores better a second time", second_pass),
        ("Q5", "bytes that cost nothing", free_bytes),
        ("Q6", "depends on other requests", other_requests),
    )
    findings = []
    for id, name, measure in checks:
        measured = measure(scorer, rng)
        if isinstance(measured, str):
            findings.append(Finding(id, name, 0.0, "-", NOT_ASKED, measured, task="scorer", level="red"))
        else:
            verdict = PASS if measured.passed else FAIL
            how = (measured.value, measured.limit, verdict, measured.meaning)
            findings.append(Finding(id, name, *how, task="scorer", level="red"))
    return findings


def sees_future(scorer: Scorer, rng: np.random.Generator) -> Measured:
    """Later tokens are changed, or are not there at all: at every cut of short texts, and at cuts of longer ones, as
    far as the time goes."""
    started, worst, asked = time.process_time(), 0.0, 0
    texts = [(given, cuts_of(given, rng)) for given in scorer.samples(rng)]
    longer = [(given, cuts_of(given, rng)) for given in scorer.long_samples(rng) if reads(scorer, given)]
    turns = [*texts, *longer]
    for turn in range(max(len(cuts) for _, cuts in turns)):
        for given, cuts in turns:
            if turn < len(cuts):
                worst, asked = max(worst, seen_at(scorer, given, cuts[turn], rng)), asked + 1
        if turn >= FEWEST and time.process_time() - started > SECONDS:
            break
    bad = f"A token's score changes with later tokens, by up to {worst:.2g} nats ({asked} cuts)."
    return at_most(worst, TOLERANCE, f"No score depends on later tokens ({asked} cuts).", bad)


def reads(scorer: Scorer, given: Any) -> bool:
    """Whether it takes so long a text: one that refuses it hides nothing."""
    try:
        scorer.fresh()(given)
    except BadInput:
        raise
    except Exception:
        return False
    return True


def cuts_of(given: Any, rng: np.random.Generator) -> list[int]:
    """All places of a text, the ends and the middle first."""
    first = [1, 2, len(given) // 2, len(given) - 1]
    return list(dict.fromkeys([*first, *(rng.permutation(len(given) - 1) + 1).tolist()]))


def seen_at(scorer: Scorer, given: Any, cut: int, rng: np.random.Generator) -> float:
    """How much scores before a cut change with what follows it."""
    if scorer.totals:
        return grown(scorer, given, cut)
    worst, before = 0.0, scorer.fresh()(given)
    lag = len(given) - len(before)  # the first token may have no score
    for other in (scorer.other_ending(given, cut, rng), given[:cut]):
        after, same = scorer.fresh()(other), max(0, cut - lag)
        if scorer.takes_text:  # tokens need not end where the cut is
            same = max(0, min(len(before), len(after)) * cut // max(len(given), len(other)) - 2)
        worst = max(worst, float(np.abs(before[:same] - after[:same]).max(initial=0.0)))
    return worst


def grown(scorer: Scorer, given: Any, cut: int) -> float:
    """How much more probable a longer text is than its beginning, which it never is."""
    score = scorer.fresh()
    begun = float(score(given[:cut]).sum())
    return max(0.0, float(scorer.fresh()(given).sum()) - begun)


def not_normalized(scorer: Scorer, rng: np.random.Generator) -> Measured:
    """The probabilities of all tokens that may follow, summed exactly, or of as many as calls allow."""
    if scorer.takes_text:
        return continuations(scorer)
    assert scorer.vocabulary is not None
    count = scorer.vocabulary
    tokens = np.arange(count) if 3 * count <= MOST_CALLS else rng.choice(count, MOST_CALLS // 3, replace=False)
    totals, known = [], []
    prefixes = [given[: int(rng.integers(1, 6))] for given in scorer.samples(rng)[1:]]
    longest = scorer.long_samples(rng)[-1]
    prefixes += [longest[: int(rng.integers(*LONG))]] if reads(scorer, longest) else []  # some score these otherwise
    for prefix in prefixes:
        score = scorer.fresh()
        base = float(score(prefix).sum()) if scorer.totals else 0.0
        logs = []
        for token in tokens.tolist():
            answer = score([*prefix, token])
            logs.append(float(answer.sum()) - base if scorer.totals else float(answer[-1]))
        totals.append(float(np.exp(logs).sum()))
        known.append(least_total(np.exp(logs), count))
    worst = max(totals, key=lambda total: abs(total - 1))
    if len(tokens) == count:
        bad = f"The probabilities of all {count:,} tokens sum to {worst:.4g}, not to 1."
        return at_most(abs(worst - 1), 1e-3, f"The probabilities of all {count:,} tokens sum to 1.", bad)
    bad = f"{len(tokens):,} of {count:,} tokens were drawn at random: the probabilities of all sum to {max(known):.4g}"
    good = f"{len(tokens):,} of {count:,} tokens, drawn at random, sum to {max(totals):.3g}, which 1 allows."
    return at_most(max(known), 1.0 + 1e-3, good, f"{bad} or more, not to 1.")


def least_total(sample: np.ndarray, count: int) -> float:
    """What the probabilities of all tokens sum to at least, from a random sample of them. Each counts up to a bound, so
    that the sum is at most 1 where probabilities are; the mean is then known to within LUCK standard errors, which are
    at most those of bounded numbers with that mean."""
    found = [float(sample.sum())]
    for bound in (10 / count, 100 / count):
        mean = float(np.minimum(sample, bound).mean())
        found.append(count * (mean - LUCK * math.sqrt(bound * max(mean, 1 / count) / len(sample))))
    return max(found)


def continuations(scorer: Scorer) -> Measured:
    """Texts that go on with each single byte exclude one another, so together they are at most as probable as what they
    begin with."""
    totals = []
    longest = " ".join(TEXTS * 2)
    for start in (TEXTS[0][:12], TEXTS[1][:12], *([longest] if reads(scorer, longest) else [])):
        base = float(scorer.fresh()(start).sum())
        letters = [chr(code) for code in (9, 10, *range(32, 127))]
        logs = [float(scorer.fresh()(start + letter).sum()) - base for letter in letters]
        totals.append(float(np.exp(np.minimum(700.0, logs)).sum()))
    worst = max(totals)
    bad = f"Continuations by one more character sum to {worst:.4g} times their beginning's."
    good = "Continuations by one more character are together no more probable than their beginning."
    return at_most(worst, 1 + 1e-3, good, bad)


def learns_first(scorer: Scorer, rng: np.random.Generator) -> Measured | str:
    """A repeated passage: its first occurrence must cost what it costs where it does not come again."""
    worst = 0.0
    for given in scorer.samples(rng):
        half = given[: len(given) // 2]
        once, other = half + scorer.other_ending(given, len(half), rng)[len(half) :], half + half
        if scorer.totals:
            continue
        first, second = scorer.fresh()(once), scorer.fresh()(other)
        same = min(len(first), len(second)) // 2 - (3 if scorer.takes_text else 1)
        worst = max(worst, float((second[:same] - first[:same]).max(initial=0.0)))
    if scorer.totals:
        return "It returns one number per text, so learning within a text cannot be tested."
    bad = f"A passage scores {worst:.2g} nats better when it occurs again: it is learned before it is scored."
    return at_most(worst, TOLERANCE, "Repeating a passage does not improve its score.", bad)


def second_pass(scorer: Scorer, rng: np.random.Generator) -> Measured:
    """The same text again, in the same scorer and in one begun anew, which may have kept elsewhere what it has seen."""
    worst = 0.0
    for given in scorer.samples(rng):
        score = scorer.fresh()
        first = float(score(given).sum())
        worst = max(worst, float(score(given).sum()) - first, float(scorer.fresh()(given).sum()) - first)
    bad = f"Scored a second time, a text gains {worst:.2g} nats: it has learned from what it scored."
    return at_most(worst, TOLERANCE * LONGEST, "Scoring a text again does not improve its score.", bad)


def free_bytes(scorer: Scorer, rng: np.random.Generator) -> Measured | str:
    """Characters of every kind put into a text: each must cost something, wherever it stands, also at the end of a long
    text and of a long word. And texts that differ must not score the same, where the scorer can tell others apart."""
    if not scorer.takes_text:
        return "It takes tokens, and their bytes are unknown."
    total: Callable[[str], float] = lambda text: float(scorer.fresh()(text).sum())  # noqa: E731
    free = []
    for text in TEXTS:
        base = total(text)
        for letter in ODD:
            places = [0, len(text) // 2, len(text)]
            gains = [total(text[:at] + letter * 3 + text[at:]) - base for at in places]
            if any(abs(gain) < 1e-9 for gain in gains):
                free.append(repr(letter))
    text = TEXTS[0]
    longer = [" ".join(TEXTS * (size // len(TEXTS))) for size in LONG]
    for long, kind in ((text + "x" * 400, "in a long word"), *((each, "after {:,} characters") for each in longer)):
        if reads(scorer, long + "qzj") and abs(total(long + "qzj") - total(long)) < 1e-9:
            free.append(f"what stands {kind}".format(len(long)))
    counts_bytes = abs(total(text + "中") - total(text + "q")) > 1e-9
    tells_letters = abs(total(text + " q") - total(text + " z")) > 1e-9
    for one, other in ALIKE:
        same_size = len(one.encode()) == len(other.encode())
        if (tells_letters if same_size else counts_bytes) and abs(
            total(text + one + text) - total(text + other + text)
        ) < 1e-9:
            free.append(f"{one!r} in place of {other!r}")
    named = ", ".join(dict.fromkeys(free))
    bad = f"Some characters change no score, so they are dropped or changed before scoring: {named}."
    return at_most(float(len(free)), 0.0, f"Each of {len(ODD)} kinds of characters affects the score.", bad)


def other_requests(scorer: Scorer, rng: np.random.Generator) -> Measured | str:
    """`loglikelihood` is asked about many texts at once, as harnesses do: their number and order change nothing."""
    if scorer.name != "loglikelihood":
        return "It takes one text at a time."
    requests = [("", text) for text in TEXTS] + [(TEXTS[0], text) for text in TEXTS[1:]]
    alone = [float(scorer.requests([request])[0][0]) for request in requests]
    worst = 0.0
    for order in (list(range(len(requests))), rng.permutation(len(requests)).tolist()):
        scores = [float(answer[0]) for answer in scorer.requests([requests[n] for n in order])]
        worst = max(worst, *(abs(score - alone[n]) for score, n in zip(scores, order, strict=True)))
    bad = f"A request scores up to {worst:.2g} nats differently when it is sent with other requests."
    return at_most(worst, TOLERANCE * LONGEST, "A request scores the same whatever it is sent with.", bad)
