"""What a language model says of a text and after it. Surprisal: the negative log-likelihood of each token, given the
tokens before it; perplexity at longer contexts; and text, token by token,
from the last tokens, as many as the model was trained on.

Tokens are counted as in a trial's test score. A model of running text has no context for the first token of a text, so
that token is not counted; a model of separate sentences starts from a start mark, and its stop mark counts as a token.
A text longer than the model's length is read in sliding windows, with as much context per token as in a test score."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from fairtrial.data.tokenizer import START, STOP, Tokenizer
from fairtrial.data.words import gap, spelled
from fairtrial.description import (
    Description,
    IntervalChart,
    IntervalRow,
    Result,
    ShadedText,
    Table,
    row,
)
from fairtrial.errors import BadInput
from fairtrial.formatting import bracket, number_text
from fairtrial.inspection.text import EncodedText, encode_texts, unknown_notice
from fairtrial.model.network import LanguageModel
from fairtrial.progress import status
from fairtrial.report.plots import draw
from fairtrial.rng import generator_for
from fairtrial.training.scoring import TokenSet, score_lm, scoring, token_nll
from fairtrial.training.tasks import LanguageTask
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_SHOWN = 20  # texts that are shown in full; of more, one line each
INTERVALS = "95% intervals over documents, of this one seed."


@dataclass(frozen=True)
class Token:
    word: str  # the vocabulary entry
    written: str  # its piece of the text
    nll: float | None  # in nats; None: it has no context, so it is not counted
    unknown: bool


@dataclass(frozen=True)
class TextSurprisal:
    text: str
    tokens: tuple[Token, ...]

    @property
    def nll(self) -> float:
        return sum(token.nll for token in self.tokens if token.nll is not None)

    @property
    def counted(self) -> int:
        return sum(token.nll is not None for token in self.tokens)

    @property
    def perplexity(self) -> float | None:
        """exp(nats / counted tokens); None if no token is counted."""
        return perplexity_of(self.nll, self.counted)

    @property
    def shown(self) -> str:
        return "no token is counted" if self.perplexity is None else f"perplexity {self.perplexity:,.1f}"

    @property
    def shaded(self) -> ShadedText:
        """The more surprising a token, the deeper its shade."""
        return ShadedText(tuple((token.written or f" {token.word}", token.nll) for token in self.tokens))


@dataclass(frozen=True, repr=False)
class Surprisal(Result):
    """How surprising each token of each text is to a language model.

    >>> found = language_model.surprisal(["a warm film", "a dull film"])
    >>> found.to_frame().groupby("text").nll.sum().round(6).tolist() == [round(each.nll, 6) for each in found.texts]
    True
    """

    texts: list[TextSurprisal]
    notices: tuple[str, ...]
    counting: str  # how the beginning and the end of a text are counted

    @property
    def counted(self) -> int:
        """Tokens of all texts."""
        return sum(each.counted for each in self.texts)

    @property
    def perplexity(self) -> float | None:
        """Of all texts, as in a test score: exp(all nats / all tokens)."""
        return perplexity_of(sum(each.nll for each in self.texts), self.counted)

    def describe(self) -> Description:
        """A row for each text; of a single one a row for each token."""
        single = len(self.texts) == 1
        tables = [self._tokens_table(self.texts[0]) if single else self._texts_table()]
        sentences = [f"Perplexity is exp(nats per token); {self.counting}.", *self.notices]
        if single:
            (text,) = self.texts
            sentences.insert(0, f"{text.shown}, {text.counted} tokens counted, {text.nll:.2f} nats: {text.text}")
        return Description(sentences, tables, charts=[text.shaded for text in self.texts[:MAX_SHOWN]])

    def _texts_table(self) -> Table:
        rows = [
            row(text.text[:80], number_text(text.perplexity, ",.1f"), text.counted, f"{text.nll:.2f}")
            for text in self.texts
        ]
        note = (
            f"{len(self.texts)} sentences, {self.counted:,} tokens counted:"
            f" perplexity {number_text(self.perplexity, ',.1f')} (exp of all nats / all tokens)."
        )
        return Table("", ("text", "perplexity", "tokens", "nats"), tuple(rows), note)

    def _tokens_table(self, text: TextSurprisal) -> Table:
        rows = [
            row(
                each.word + (f" (unknown: {each.written.strip()})" if each.unknown else ""),
                number_text(each.nll, ".3f"),
                "no context" if each.nll is None else probability_text(math.exp(-each.nll)),
            )
            for each in text.tokens
        ]
        return Table("", ("token", "nats", "probability"), tuple(rows))

    def rows(self) -> list[dict[str, object]]:
        """One for each token."""
        every = ((at, token) for at, text in enumerate(self.texts) for token in text.tokens)
        return [{"text": at, **asdict(token)} for at, token in every]

    def plot(self, text: int = 0) -> Figure:
        """The surprisal of each token of one of the texts."""
        return draw([self.texts[text].shaded])


def perplexity_of(nats: float, tokens: int) -> float | None:
    return math.exp(min(700.0, nats / tokens)) if tokens else None


def probability_text(share: float) -> str:
    return f"{share:.3%}" if share >= 0.00001 else "< 0.001%"


def surprisal(run: Run, texts: Sequence[str]) -> Surprisal:
    """Surprisal of each token of each text, by a trained language model."""
    tokenizer, length = run.tokenizer, run.recipe.shape.length
    encoded = encode_texts(tokenizer, texts)
    marks = [[mark] if mark is not None else [] for mark in (tokenizer.start, tokenizer.stop)]
    rows = [np.array([*marks[0], *text.ids, *marks[1]], dtype=np.int64) for text in encoded]
    read = TokenSet(rows, (), len(rows), np.zeros(0), None)
    network, full_context = cast(LanguageModel, run.network), run.recipe.scoring.full_context
    nats = np.zeros(0)
    if read.targets:
        nats = token_nll(network, read, length=length, full_context=full_context)
    own = np.split(nats, np.cumsum(read.sizes)[:-1])
    found = [
        TextSurprisal(text.text, tuple(tokens_of(text, row, each, tokenizer)))
        for text, row, each in zip(encoded, rows, own, strict=True)
    ]
    notices = [unknown_notice(tokenizer, encoded)]
    if max(len(text.ids) for text in encoded) > length:
        notices.append(f"the context length is {length} tokens: a longer text is read in sliding windows")
    counting = "the first token has no context and is not counted"
    if tokenizer.start is not None:
        counting = f"the first token is predicted from {START}, and the end of the text ({STOP}) is counted as a token"
    return Surprisal(found, tuple(filter(None, notices)), counting)


def tokens_of(text: EncodedText, row: np.ndarray, nats: np.ndarray, tokenizer: Tokenizer) -> Iterator[Token]:
    """Every token but a start mark, which is given; the first has no nats where nothing is before it."""
    first = int(tokenizer.start is not None)
    known = [*[None] * (1 - first), *nats.tolist()]
    words, pieces = tokenizer.words(row)[first:], text.pieces()
    for word, id_, written, nll in zip_longest(words, row[first:].tolist(), pieces, known):
        yield Token(word, written or "", nll, written is not None and id_ == tokenizer.unknown)


@dataclass(frozen=True)
class LengthScore:
    """One test set at one context length: its perplexity, or why there is none."""

    test: str
    times: int
    length: int
    perplexity: float | None
    interval: tuple[float, float] | None
    why_not: str = ""


@dataclass(frozen=True, repr=False)
class Lengths(Result):
    """A language model's perplexity at multiples of its training length.

    >>> [score.length for score in language_model.lengths([1, 2]).scores]
    [12, 24]
    """

    scores: tuple[LengthScore, ...]

    def describe(self) -> Description:
        rows = tuple(
            row(
                each.test,
                f"{each.times}x",
                each.length,
                f"not possible: {each.why_not}"
                if each.perplexity is None
                else f"{each.perplexity:,.1f}{bracket(each.interval)}",
            )
            for each in self.scores
        )
        table = Table("", ("test set", "times", "length", "perplexity"), rows, INTERVALS)
        points = tuple(
            IntervalRow(f"{each.test}, {each.length} tokens", each.perplexity, *(each.interval or (None, None)))
            for each in self.scores
        )
        chart = IntervalChart("perplexity beyond the training length", "perplexity", points)
        return Description((), [table], charts=[chart])

    def rows(self) -> list[dict[str, object]]:
        return [asdict(each) for each in self.scores]


def score_lengths(run: Run, times: Sequence[int] = (1, 2, 4, 8)) -> Iterator[LengthScore]:
    """Each test set scored with contexts of up to `times` x the training length."""
    if min(times) < 1:
        raise BadInput(f"a multiple of the training length must be at least 1, got {min(times)}")
    task = cast(LanguageTask, run.task)
    for test in run.record.trial.test_sets:
        for factor in times:
            length = factor * task.length
            # a token sees at least 3/4 of the length: at 8x a stride of one token would take 8 x 8 the time
            full_context = task.context(task.sets[test]) if factor == 1 else 0.75
            network, tokens = task.network, task.sets[test]
            try:
                with status(f"scoring {test} with a context of {length} tokens"):
                    scored = score_lm(network, tokens, length=length, full_context=full_context)
                found = scored.metrics
                score = LengthScore(test, factor, length, found.perplexity, found.interval)
            except BadInput as error:
                score = LengthScore(test, factor, length, None, None, error.what)
            yield score


def token_probabilities(logits: np.ndarray, temperature: float = 1.0, never: Iterable[int] = ()) -> np.ndarray:
    """Logits [entry] -> the probability of each token to be drawn [entry], float64."""
    scores = logits.astype(np.float64, copy=True)
    scores[np.fromiter(never, dtype=np.int64)] = -math.inf
    if not np.isfinite(scores.max()):
        raise BadInput("the model's logits are not finite", "it may have diverged in training")
    if temperature == 0:
        return np.eye(1, len(scores), int(scores.argmax()))[0]
    with np.errstate(over="ignore"):  # a tiny temperature is as good as zero
        scores = (scores - scores.max()) / temperature
    found = np.exp(scores)
    return found / found.sum()


def sample_token(probabilities: np.ndarray, rng: np.random.Generator) -> int:
    """One token, from one random number: equal rng states and probabilities give the same token."""
    ends = np.cumsum(probabilities)
    token = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return min(token, int(np.flatnonzero(probabilities)[-1]))  # rounding at the very end must not pick an excluded one


def generate_tokens(
    network: LanguageModel,
    ids: Sequence[int],
    *,
    tokens: int,
    temperature: float,
    seed: int,
    sample: int = 0,
    stops: Collection[int] = (),
    never: Collection[int] = (),
) -> Iterator[int]:
    """Up to `tokens` more tokens; a stop token is the last one. Seed and sample number name the random stream."""
    sequence, rng = list(ids), generator_for(seed, "generate", sample)
    with scoring(network):
        for _ in range(tokens):
            logits = network(torch.tensor([sequence[-network.length :]]))[0, -1].numpy()
            probabilities = token_probabilities(logits, temperature, never)
            sequence.append(sample_token(probabilities, rng))
            yield sequence[-1]
            if sequence[-1] in stops:
                return


def spell(tokenizer: Tokenizer, before: Sequence[int], new: Sequence[int], prompt: str = "") -> str:
    """The text that new tokens add to those before them, which were written as the prompt."""
    kind = tokenizer.facts.get("kind", "word")
    if kind in ("word", "whitespace"):
        marks = (tokenizer.start, tokenizer.stop, tokenizer.pad)
        last, *words = tokenizer.words([*before[-1:], *new]) if before else ["", *tokenizer.words(new)]
        last = "" if before and before[-1] in marks else last
        text, spaced = "", False
        for word in words:
            space = "" if not last else " " if kind == "whitespace" else gap(last, word)
            text, last = text + space + (word if kind == "whitespace" else spelled(word)), word
    else:
        begun = tokenizer.decode(before)
        text, spaced = tokenizer.decode([*before, *new])[len(begun) :], begun[-1:].isspace()
    # white space at the prompt's end that is in no token: the first word must not add its own
    return text.removeprefix(" ") if prompt[-1:].isspace() and not spaced else text


@dataclass(frozen=True)
class Generated:
    prompt: str
    text: str  # the prompt and its continuation
    tokens: list[str]  # the new ones
    stopped: bool  # by a stop token
    seed: int
    sample: int


@dataclass(frozen=True, repr=False)
class Generation(Result):
    """Continuations of a prompt. Printed, it is their text.

    >>> found = language_model.generate("a warm", samples=2, tokens=3)
    >>> [sample.sample for sample in found.samples], found.text.startswith("a warm")
    ([0, 1], True)
    """

    samples: tuple[Generated, ...]
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The first."""
        return self.samples[0].text

    def __str__(self) -> str:
        return "\n\n".join(sample.text for sample in self.samples)

    __repr__ = __str__

    def describe(self) -> Description:
        return Description([*(sample.text for sample in self.samples), *(f"Notice: {text}." for text in self.notices)])

    def rows(self) -> list[dict[str, object]]:
        return [asdict(sample) for sample in self.samples]


def generate(run: Run, prompt: str, *, tokens: int, temperature: float, samples: int, seed: int) -> Generation:
    """Continue a prompt with a trained language model."""
    if not 0 <= temperature < math.inf:
        raise BadInput(f"temperature must be zero or positive, got {temperature}", "0 is greedy, 1 the model's own")
    network, tokenizer = cast(LanguageModel, run.network), run.tokenizer
    ids, encoded = encode_prompt(tokenizer, prompt)
    stops = set() if tokenizer.stop is None else {tokenizer.stop}
    never = never_shown(tokenizer)
    found = []
    for sample in range(samples):
        drawn = generate_tokens(
            network, ids, tokens=tokens, temperature=temperature, seed=seed, sample=sample, stops=stops, never=never
        )
        new = list(drawn)
        text = prompt + spell(tokenizer, ids, [token for token in new if token not in stops], prompt)
        found.append(Generated(prompt, text, tokenizer.words(new), new[-1] in stops, seed, sample))
    window = ""
    if len(ids) + tokens - 1 > network.length:
        window = f"the model sees a sliding window of the last {network.length} tokens, its training length"
    return Generation(tuple(found), tuple(filter(None, (unknown_notice(tokenizer, encoded), window))))


def encode_prompt(tokenizer: Tokenizer, prompt: str) -> tuple[tuple[int, ...], list[EncodedText]]:
    """With a start mark, where the model was trained with one."""
    start = () if tokenizer.start is None else (tokenizer.start,)
    if not prompt.strip() and not start:
        raise BadInput("the prompt is empty", 'give a prompt: "My fellow Americans"')
    encoded = encode_texts(tokenizer, [prompt] if prompt.strip() else [])
    return (*start, *(id_ for text in encoded for id_ in text.ids)), encoded


def never_shown(tokenizer: Tokenizer) -> set[int]:
    """Marks that no text can show."""
    marks = (tokenizer.pad, tokenizer.start, tokenizer.unknown, tokenizer.mask)
    return {id_ for id_ in marks if id_ is not None}


def next_tokens(run: Run, prompt: str, most: int | None = None) -> list[tuple[str, float]]:
    """What may come next, the most probable first, with its probability; from the last tokens that the model was
    trained to see at once."""
    network, never = cast(LanguageModel, run.network), never_shown(run.tokenizer)
    ids, _ = encode_prompt(run.tokenizer, prompt)
    with scoring(network):
        logits = network(torch.tensor([ids[-run.recipe.shape.length :]]))[0, -1].numpy()
    chances = token_probabilities(logits, never=never)
    order = [int(token) for token in np.argsort(-chances, kind="stable")[: None if most is None else most + len(never)]]
    order = [token for token in order if token not in never][:most]
    return list(zip(run.tokenizer.words(order), chances[order].tolist(), strict=True))
