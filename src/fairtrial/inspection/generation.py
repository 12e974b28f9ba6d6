"""Text from a language model, token by token: temperature, top-k, top-p, in this order.

The model sees its last tokens, as many as it was trained on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
import torch

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import gap, spelled
from fairtrial.description import Description, Result
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


def generate(run: Run, prompt: str, *, tokens: int, sampling: Sampling, samples: int, seed: int) -> Generation:
    """Continue a prompt with a trained language model."""
    network, tokenizer = cast(LanguageModel, run.network), run.tokenizer
    ids, encoded = encode_prompt(tokenizer, prompt)
    stops = set() if tokenizer.stop is None else {tokenizer.stop}
    never = never_shown(tokenizer)
    found = []
    for sample in range(samples):
        drawn = generate_tokens(
            network, ids, tokens=tokens, sampling=sampling, seed=seed, sample=sample, stops=stops, never=never
        )
        new = list(drawn)
        text = prompt + spell(tokenizer, ids, [token for token in new if token not in stops], prompt)
        found.append(Generated(prompt, text, tokenizer.words(new), new[-1] in stops, seed, sample))
    window = ""
    if len(ids) + tokens - 1 > network.length:
        window = f"the model sees a sliding window of the last {network.length} tokens, as many as it was trained on"
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
    chances = token_probabilities(logits, Sampling(), never)
    order = [int(token) for token in np.argsort(-chances, kind="stable")[: None if most is None else most + len(never)]]
    order = [token for token in order if token not in never][:most]
    return list(zip(run.tokenizer.words(order), chances[order].tolist(), strict=True))
