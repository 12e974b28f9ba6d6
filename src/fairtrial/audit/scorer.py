"""The leak audit of a scorer: any function that says how probable a text is. A score counts only if no token's score
depends on later tokens, if probabilities sum to one, if nothing is learned from a token before it is scored, if scoring
again gives nothing for free, and if every byte is paid for.

`score(tokens)` or `score(text)` gives natural log-probabilities: one for each token, or their sum. Also
`loglikelihood(requests)` as in lm-evaluation-harness: (context, continuation) -> (log-probability, greedy)."""

from __future__ import annotations

import importlib.util
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
ODD = ["q", "Z", "7", " ", "\n", "\t", "é", "ß", "中", "🙂", "\u200b", "\x07", "-", "'"]
TEXTS = (
    "The state of the union is strong because the people are strong.",
    "We hold our distant past in view, so that we may choose the road ahead.",
    "I ask the Congress to pass this budget before the end of the year!",
)
HOW = "give FILE.py:FUNCTION; the function takes tokens (a list of numbers) or a text, and gives log-probabilities"


@dataclass
class Scorer:
    """A scorer that can be begun anew, as what it has learned is part of what is asked."""

    path: Path
    name: str
    vocabulary: int | None = None
    takes_text: bool = False
    totals: bool = False  # it gives one number for a whole text

    def fresh(self) -> Callable[[Any], np.ndarray]:
        """Without anything that it has seen: [token], or [1] where it gives one number."""
        function = getattr(load_scorer(self.path), self.name, None)
        if not callable(function):
            raise BadInput(f"it has no function {self.name!r}", HOW, path=self.path)
        if self.name == "loglikelihood":
            return lambda text: np.array([float(function([("", text)])[0][0])])

        def call(given: Any) -> np.ndarray:
            answer = np.atleast_1d(np.asarray(function(given), float))
            if answer.ndim != 1 or np.isnan(answer).any():
                raise BadInput(f"{self.name} gives an answer of the shape {answer.shape}, or no number", HOW)
            return answer

        return call

    def samples(self, rng: np.random.Generator) -> list[Any]:
        if self.takes_text:
            return list(TEXTS)
        assert self.vocabulary is not None
        return [rng.integers(0, self.vocabulary, LONGEST).tolist() for _ in range(3)]

    def other_ending(self, given: Any, cut: int, rng: np.random.Generator) -> Any:
        if self.takes_text:
            letters = "".join(rng.choice(list("etaoin shrdlu."), len(given) - cut))
            return given[:cut] + letters
        return given[:cut] + rng.integers(0, self.vocabulary or 2, len(given) - cut).tolist()


def load_scorer(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fairtrial_scorer_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput("is no Python file", HOW, path=path)
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
    """Later tokens are changed, or are not there at all."""
    worst = 0.0
    for given in scorer.samples(rng):
        cuts = sorted({1, 2, len(given) // 2, len(given) - 1})
        if scorer.totals:
            worst = max(worst, *(grown(scorer, given, cut) for cut in cuts))
            continue
        before = scorer.fresh()(given)
        lag = len(given) - len(before)  # the first token may have no score
        for cut in cuts:
            for other in (scorer.other_ending(given, cut, rng), given[:cut]):
                after, same = scorer.fresh()(other), max(0, cut - lag)
                if scorer.takes_text:  # tokens need not end where the cut is
                    same = max(0, min(len(before), len(after)) * cut // max(len(given), len(other)) - 2)
                change = np.abs(before[:same] - after[:same])
                worst = max(worst, float(change.max(initial=0.0)))
    bad = f"A token's score changes with later tokens, by up to {worst:.2g} nats."
    return at_most(worst, TOLERANCE, "No score depends on later tokens.", bad)


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
    totals = []
    for given in scorer.samples(rng):
        prefix = given[: int(rng.integers(1, 6))]
        score = scorer.fresh()
        base = float(score(prefix).sum()) if scorer.totals else 0.0
        logs = []
        for token in tokens.tolist():
            answer = score([*prefix, token])
            logs.append(float(answer.sum()) - base if scorer.totals else float(answer[-1]))
        totals.append(float(np.exp(logs).sum()))
    worst = max(totals, key=lambda total: abs(total - 1))
    if len(tokens) == count:
        bad = f"The probabilities of all {count:,} tokens sum to {worst:.4g}, not to 1."
        return at_most(abs(worst - 1), 1e-3, f"The probabilities of all {count:,} tokens sum to 1.", bad)
    share = len(tokens) / count
    bad = f"{len(tokens):,} of {count:,} tokens, drawn at random, already sum to {max(totals):.4g}."
    good = f"{len(tokens):,} of {count:,} tokens, drawn at random, sum to {max(totals):.3g}, which 1 allows."
    return at_most(max(totals), max(1.0, 4 * share) + 1e-3, good, bad)


def continuations(scorer: Scorer) -> Measured:
    """Texts that go on with each single byte exclude one another, so together they are at most as probable as what they
    begin with."""
    totals = []
    for text in TEXTS[:2]:
        start = text[:12]
        base = float(scorer.fresh()(start).sum())
        letters = [chr(code) for code in (9, 10, *range(32, 127))]
        logs = [float(scorer.fresh()(start + letter).sum()) - base for letter in letters]
        totals.append(float(np.exp(np.minimum(700.0, logs)).sum()))
    worst = max(totals)
    bad = (
        f"The probabilities of the texts that go on with one more character sum to {worst:.4g} times their beginning's."
    )
    good = "Texts that go on with one more character are together no more probable than their beginning."
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
        return "It gives one number for a text: what it learns within it is not seen."
    bad = f"A passage scores {worst:.2g} nats better where it comes again later: it is learned before it is scored."
    return at_most(worst, TOLERANCE, "A passage gains nothing from coming again later.", bad)


def second_pass(scorer: Scorer, rng: np.random.Generator) -> Measured:
    """The same text again, in the same scorer."""
    worst = 0.0
    for given in scorer.samples(rng):
        score = scorer.fresh()
        first = float(score(given).sum())
        worst = max(worst, float(score(given).sum()) - first)
    bad = f"Scored a second time, a text gains {worst:.2g} nats: it has learned from what it scored."
    return at_most(worst, TOLERANCE * LONGEST, "Scoring a text again gives nothing for free.", bad)


def free_bytes(scorer: Scorer, rng: np.random.Generator) -> Measured | str:
    """Characters of every kind put into a text: each must cost something, wherever it stands."""
    if not scorer.takes_text:
        return "It takes tokens: which bytes they stand for is not known."
    free = []
    for text in TEXTS:
        base = float(scorer.fresh()(text).sum())
        for letter in ODD:
            places = [0, len(text) // 2, len(text)]
            gains = [float(scorer.fresh()(text[:at] + letter * 3 + text[at:]).sum()) - base for at in places]
            if any(abs(gain) < 1e-9 for gain in gains):
                free.append(letter)
    named = ", ".join(repr(letter) for letter in dict.fromkeys(free))
    bad = f"Some characters change no score, so they are dropped before scoring: {named}."
    return at_most(float(len(free)), 0.0, f"Each of {len(ODD)} kinds of characters is paid for.", bad)
