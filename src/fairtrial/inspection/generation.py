"""Text from a language model, token by token: temperature, top-k, top-p, in this order.

The model sees its last tokens, as many as it was trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
import torch

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import gap, spelled
from fairtrial.description import Description, Result
from fairtrial.environment import use_threads
from fairtrial.errors import BadInput
from fairtrial.inspection.text import EncodedText, encode_texts, unknown_notice
from fairtrial.model.network import LanguageModel
from fairtrial.rng import generator_for
from fairtrial.training.scoring import scoring
from fairtrial.trial import Run


@dataclass(frozen=True, kw_only=True)
class Sampling:
    temperature: float = 1.0  # 0: always the most probable token
    top_k: int | None = None  # only so many most probable tokens
    top_p: float = 1.0  # only the fewest tokens with this total probability (Holtzman et al. 2019, arXiv 1904.09751)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            hint = "0 is greedy, 1 the model's own"
            raise BadInput(f"temperature must be zero or positive, got {self.temperature}", hint)
        if self.top_k is not None and self.top_k < 1:
            raise BadInput(f"top-k must be at least 1, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top-p must be above 0 and at most 1, got {self.top_p}")


def token_probabilities(logits: np.ndarray, sampling: Sampling, never: Iterable[int] = ()) -> np.ndarray:
    """Logits [entry] -> the probability of each token to be drawn [entry], float64."""
    scores = logits.astype(np.float64, copy=True)
    scores[np.fromiter(never, dtype=np.int64)] = -math.inf
    if not np.isfinite(scores.max()):
        raise BadInput("the model's logits are not finite", "it may have diverged in training")
    if sampling.temperature == 0:
        return np.eye(1, len(scores), int(scores.argmax()))[0]
    with np.errstate(over="ignore"):  # a tiny temperature is as good as zero
        scores = (scores - scores.max()) / sampling.temperature
    if sampling.top_k is not None:  # of equal ones the first
        scores[np.argsort(-scores, kind="stable")[sampling.top_k :]] = -math.inf
    found = np.exp(scores)
    found /= found.sum()
    if sampling.top_p < 1:
        order = np.argsort(-found, kind="stable")
        before = np.cumsum(found[order]) - found[order]  # total of the more probable ones
        found[order[before >= sampling.top_p]] = 0.0
        found /= found.sum()
    return found


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
    sampling: Sampling,
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
            probabilities = token_probabilities(logits, sampling, never)
            sequence.append(sample_token(probabilities, rng))
            yield sequence[-1]
            if sequence[-1] in stops:
                return


class TextStream:
    """Tokens to text as they come: the pieces joined spell the whole text."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int], prompt: str = "") -> None:
        self.tokenizer, self.ids = tokenizer, list(before)
        kind = tokenizer.facts.get("kind", "word")
        self.words, self.spaced = kind in ("word", "whitespace"), kind == "whitespace"
        self.decoded = "" if self.words else tokenizer.decode(self.ids)
        # white space at the prompt's end that is in no token: the first word must not add its own
        self.space_written = prompt[-1:].isspace() and not self.decoded[-1:].isspace()

    def add(self, token: int) -> str:
        """The text that this token adds; empty where it is the first bytes of a character."""
        text = self._spell(token)
        if text and self.space_written:
            self.space_written, text = False, text.removeprefix(" ")
        return text

    def _spell(self, token: int) -> str:
        marks = (self.tokenizer.start, self.tokenizer.stop, self.tokenizer.pad)
        previous = [id_ for id_ in self.ids[-1:] if id_ not in marks]
        self.ids.append(token)
        if self.words:
            before, word = self.tokenizer.words(previous), self.tokenizer.words([token])[0]
            if self.spaced:
                return f" {word}" if before else word
            return (gap(before[0], word) if before else "") + spelled(word)
        text = self.tokenizer.decode(self.ids)
        if text.endswith("\ufffd"):  # an incomplete character
            return ""
        added, self.decoded = text[len(self.decoded) :], text
        return added

    def finish(self) -> str:
        """What was held back as an incomplete character, when no more tokens come."""
        return "" if self.words else self.tokenizer.decode(self.ids)[len(self.decoded) :]


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


class Generator:
    """Continues a prompt with a trained language model."""

    def __init__(self, run: Run, prompt: str, *, tokens: int, sampling: Sampling) -> None:
        self.network, self.tokenizer = cast(LanguageModel, run.network), run.tokenizer
        self.prompt, self.tokens, self.sampling = prompt, tokens, sampling
        self.ids, encoded = encode_prompt(self.tokenizer, prompt)
        self.stops = set() if self.tokenizer.stop is None else {self.tokenizer.stop}
        self.never = never_shown(self.tokenizer)
        length, longer = self.network.length, len(self.ids) + tokens - 1 > self.network.length
        window = f"the model sees a sliding window of the last {length} tokens, as many as it was trained on"
        self.notices = tuple(filter(None, (unknown_notice(self.tokenizer, encoded), window if longer else "")))

    def generate(self, samples: int = 1, seed: int = 0) -> Generation:
        return Generation(tuple(self.sample(seed, number) for number in range(samples)), self.notices)

    def sample(self, seed: int = 0, sample: int = 0, on_text: Callable[[str], None] = lambda text: None) -> Generated:
        """One continuation. `on_text` gets each new piece of text, beginning with the prompt."""
        with use_threads(1):
            return self._sample(seed, sample, on_text)

    def _sample(self, seed: int, sample: int, on_text: Callable[[str], None]) -> Generated:
        stream, pieces, new = TextStream(self.tokenizer, self.ids, self.prompt), [self.prompt], []
        on_text(self.prompt)
        drawn = generate_tokens(
            self.network,
            self.ids,
            tokens=self.tokens,
            sampling=self.sampling,
            seed=seed,
            sample=sample,
            stops=self.stops,
            never=self.never,
        )
        for token in drawn:
            new.append(token)
            if token != self.tokenizer.stop:
                pieces.append(stream.add(token))
                on_text(pieces[-1])
        pieces.append(stream.finish())
        on_text(pieces[-1])
        words = self.tokenizer.words(new)
        return Generated(self.prompt, "".join(pieces), words, new[-1] in self.stops, seed, sample)


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
    chances = token_probabilities(logits, Sampling(), never)
    order = [int(token) for token in np.argsort(-chances, kind="stable")[: None if most is None else most + len(never)]]
    order = [token for token in order if token not in never][:most]
    return list(zip(run.tokenizer.words(order), chances[order].tolist(), strict=True))
