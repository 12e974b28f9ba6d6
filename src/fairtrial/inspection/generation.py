"""Text from a language model, token by token: repetition penalty, temperature, top-k, top-p, in this order.

A cache of keys and values makes each token cost one token's work; the output is that of recomputing the whole prefix. A
context longer than the training length is used where the parts extrapolate; where they cannot (learned positions end),
the model sees a sliding window of its last tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
import torch

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import gap, spelled
from fairtrial.description import Description, Result, Table
from fairtrial.environment import use_threads
from fairtrial.errors import BadInput
from fairtrial.inspection.text import EncodedText, encode_texts, unknown_notice
from fairtrial.model.attention import KVCache
from fairtrial.model.network import LanguageModel
from fairtrial.rng import generator_for
from fairtrial.training.scoring import scoring
from fairtrial.trial import Run

TRIAL_TOKENS = 8  # with which the cache is checked, at least
LOGIT_TOLERANCE = 1e-3  # float32 logits of the cached and of the full pass agree far better


@dataclass(frozen=True, kw_only=True)
class Sampling:
    temperature: float = 1.0  # 0: always the most probable token
    top_k: int | None = None  # only so many most probable tokens
    top_p: float = 1.0  # only the fewest tokens with this total probability (Holtzman et al. 2019, arXiv 1904.09751)
    repetition_penalty: float = 1.0  # above 1: earlier tokens are less likely (Keskar et al. 2019, arXiv 1909.05858)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            hint = "0 is greedy, 1 the model's own"
            raise BadInput(f"temperature must be zero or positive, got {self.temperature}", hint)
        if self.top_k is not None and self.top_k < 1:
            raise BadInput(f"top-k must be at least 1, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top-p must be above 0 and at most 1, got {self.top_p}")
        if not 0 < self.repetition_penalty < math.inf:
            hint = "1 is none, 1.2 is usual"
            raise BadInput(f"repetition penalty must be positive, got {self.repetition_penalty}", hint)


def token_probabilities(
    logits: np.ndarray, sampling: Sampling, earlier: Iterable[int], never: Iterable[int] = ()
) -> np.ndarray:
    """Logits [entry] -> the probability of each token to be drawn [entry], float64."""
    scores = logits.astype(np.float64, copy=True)
    repeated = np.unique(np.fromiter(earlier, dtype=np.int64))
    old = scores[repeated]
    scores[repeated] = np.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
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


@dataclass(frozen=True)
class ContextPlan:
    """How a model reads its context."""

    context: int | None  # tokens that it sees at most; None: all
    cached: bool
    notices: tuple[str, ...] = ()


def plan_context(network: LanguageModel, ids: Sequence[int], tokens: int, context: int | None = None) -> ContextPlan:
    """For a prompt and `tokens` more: a cache if it agrees with the full pass, a window where positions end."""
    length = network.length
    notices = []
    needed = len(ids) + tokens - 1  # the last token is not read
    if context is None and needed > length:
        if why := why_not_beyond(network, length + 1):
            context = length
            notices.append(f"{why}: the model sees a sliding window of the last {length} tokens")
        else:
            notices.append(f"up to {needed} tokens are read at once, but the model was trained on {length}")
    elif context is not None and context > length and (why := why_not_beyond(network, context)):
        raise BadInput(f"{why}: the context must be at most {length} tokens, got {context}")
    if context is not None and len(ids) > context:
        notices.append(f"only the last {context} of the prompt's {len(ids)} tokens are seen")
    cached = network.new_cache() is not None and cache_agrees(network, ids[-(context or 0) :])
    if network.new_cache() is None:
        notices.append("the model offers no cache: every prefix is recomputed")
    elif not cached:
        notices.append("a part gives other outputs when tokens come one by one: every prefix is recomputed")
    return ContextPlan(context, cached, tuple(notices))


def why_not_beyond(network: LanguageModel, tokens: int) -> str:
    """The error of a part that is given more tokens than it was trained on; empty: it extrapolates."""
    try:
        with scoring(network):
            network(torch.zeros(1, tokens, dtype=torch.long))
    except BadInput as error:
        return error.what
    except (IndexError, RuntimeError, ValueError):  # a plugin's part
        return f"its parts do not support {tokens} tokens"
    return ""


def cache_agrees(network: LanguageModel, ids: Sequence[int]) -> bool:
    """Token by token or all at once, the last token's logits are the same; not if a part mixes tokens."""
    least = min(TRIAL_TOKENS, network.length)
    row = torch.tensor([(list(ids) * TRIAL_TOKENS)[: max(least, len(ids))]])  # a single token would always agree
    with scoring(network):
        cache = network.new_cache()
        for piece in row.split([row.shape[1] - least // 2] + [1] * (least // 2), dim=1):
            last = network(piece, cache=cache)[0, -1]
        full = network(row)[0, -1]
    return bool((last - full).abs().max() <= LOGIT_TOLERANCE * (1 + full.abs().max()))


def generate_tokens(
    network: LanguageModel,
    ids: Sequence[int],
    *,
    tokens: int,
    sampling: Sampling,
    seed: int,
    plan: ContextPlan,
    sample: int = 0,
    stops: Collection[int] = (),
    never: Collection[int] = (),
) -> Iterator[int]:
    """Up to `tokens` more tokens; a stop token is the last one. Seed and sample number name the random stream."""
    sequence, rng = list(ids), generator_for(seed, "generate", sample)
    cache = network.new_cache()
    with scoring(network):
        for _ in range(tokens):
            logits = last_logits(network, sequence, plan, cache)
            probabilities = token_probabilities(logits, sampling, sequence, never)
            sequence.append(sample_token(probabilities, rng))
            yield sequence[-1]
            if sequence[-1] in stops:
                return


def last_logits(network: LanguageModel, sequence: Sequence[int], plan: ContextPlan, cache: KVCache) -> np.ndarray:
    """The logits after the last token, with as little work as possible."""
    if plan.cached and len(sequence) <= (plan.context or len(sequence)):
        return network(torch.tensor([sequence[cache.length :]]), cache=cache)[0, -1].numpy()
    # in a sliding window every token changes its position, so a cache would be wrong
    return network(torch.tensor([sequence[-(plan.context or 0) :]]))[0, -1].numpy()


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
        return Description(self._sentences(), self._tables())

    def _sentences(self) -> Sequence[str]:
        return [*(sample.text for sample in self.samples), *(f"Notice: {text}." for text in self.notices)]

    def _tables(self) -> Sequence[Table]:
        return ()

    def rows(self) -> list[dict[str, object]]:
        return [asdict(sample) for sample in self.samples]


class Generator:
    """Continues a prompt with a trained language model. `stop`: a word that ends the text, beside the stop mark."""

    def __init__(
        self, run: Run, prompt: str, *, tokens: int, sampling: Sampling, stop: str | None, context: int | None
    ) -> None:
        self.network, self.tokenizer = cast(LanguageModel, run.network), run.tokenizer
        self.prompt, self.tokens, self.sampling = prompt, tokens, sampling
        self.ids, encoded = encode_prompt(self.tokenizer, prompt)
        self.stops = stop_tokens(self.tokenizer, stop)
        self.never = never_shown(self.tokenizer)
        self.plan = plan_context(self.network, self.ids, tokens, context)
        self.notices = tuple(filter(None, (unknown_notice(self.tokenizer, encoded), *self.plan.notices)))

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
            plan=self.plan,
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
    chances = token_probabilities(logits, Sampling(), (), never)
    order = [int(token) for token in np.argsort(-chances, kind="stable")[: None if most is None else most + len(never)]]
    order = [token for token in order if token not in never][:most]
    return list(zip(run.tokenizer.words(order), chances[order].tolist(), strict=True))


def stop_tokens(tokenizer: Tokenizer, word: str | None) -> set[int]:
    found = set() if tokenizer.stop is None else {tokenizer.stop}
    if word is not None:
        ids = tokenizer.encode([word])[0]
        if len(ids) != 1 or ids[0] == tokenizer.unknown:
            raise BadInput(f"--stop {word!r} is not one token of this model", "give a single word of its vocabulary")
        found.add(ids[0])
    return found
