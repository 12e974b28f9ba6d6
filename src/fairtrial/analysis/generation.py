"""How the next token is drawn from a model's logits: repetition penalty, temperature, top-k, top-p, in this order.

Text from a language model, token by token. The cache makes a token cost one token's work; the answer is what
recomputing the whole prefix would give.

A context longer than the model was trained on is used where the parts can go there; where they cannot (learned
positions end), the model sees a window of its last tokens that slides on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import gap, spelled
from fairtrial.errors import BadInput
from fairtrial.model.attention import KVCache
from fairtrial.model.network import LanguageModel
from fairtrial.rng import generator_for
from fairtrial.training.scoring import scoring


@dataclass(frozen=True, kw_only=True)
class Sampling:
    temperature: float = 1.0  # 0: always the most probable token
    top_k: int | None = None  # only so many most probable tokens
    top_p: float = 1.0  # only the fewest tokens whose shares reach this (Holtzman et al. 2019, arXiv 1904.09751)
    repetition_penalty: float = 1.0  # above 1: tokens that were said are less likely (Keskar et al. 2019, 1909.05858)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise BadInput(f"a temperature of {self.temperature} will not do", "0 is greedy, 1 the model's own shares")
        if self.top_k is not None and self.top_k < 1:
            raise BadInput(f"top-k of {self.top_k} leaves no token", "take at least 1")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top-p of {self.top_p} will not do", "take a share above 0 and up to 1")
        if not 0 < self.repetition_penalty < math.inf:
            raise BadInput(f"a repetition penalty of {self.repetition_penalty} will not do", "1 is none, 1.2 is usual")


def shares(logits: np.ndarray, sampling: Sampling, said: Iterable[int], never: Iterable[int] = ()) -> np.ndarray:
    """Logits [entry] -> the probability of each token to be drawn [entry], float64."""
    scores = logits.astype(np.float64, copy=True)
    places = np.unique(np.fromiter(said, dtype=np.int64))
    old = scores[places]
    scores[places] = np.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
    scores[np.fromiter(never, dtype=np.int64)] = -math.inf
    if not np.isfinite(scores.max()):
        raise BadInput("the model's answer is not a number", "it may have diverged in training")
    if sampling.temperature == 0:
        return np.eye(1, len(scores), int(scores.argmax()))[0]
    with np.errstate(over="ignore"):  # a tiny temperature is as good as none
        scores = (scores - scores.max()) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < len(scores):
        least = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores[scores < least] = -math.inf
    found = np.exp(scores)
    found /= found.sum()
    if sampling.top_p < 1:
        order = np.argsort(-found, kind="stable")
        before = np.cumsum(found[order]) - found[order]  # what the more probable ones have already
        found[order[before >= sampling.top_p]] = 0.0
        found /= found.sum()
    return found


def draw(chances: np.ndarray, rng: np.random.Generator) -> int:
    """One token, by one throw: the same rng and the same shares give the same token."""
    ends = np.cumsum(chances)
    place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(chances)[-1]))  # a throw at the very end must not leave the last share


TRIED = 8  # tokens with which the cache is tried, at least
SAME = 1e-3  # float32 logits of the cached and of the whole pass agree far better


@dataclass(frozen=True)
class Way:
    """How a model reads its context."""

    context: int | None  # tokens that it sees at most; None: all
    cached: bool
    notices: tuple[str, ...] = ()


def find_way(network: LanguageModel, ids: Sequence[int], tokens: int, context: int | None = None) -> Way:
    """How to read a prompt and `tokens` more: with a cache if it gives what the whole pass gives, in a window of
    `context` tokens if asked for, or of the model's length where its parts end there."""
    length = network.body.shape.length
    notices = []
    needed = len(ids) + tokens - 1  # the last token is not read
    if context is None and needed > length:
        why = why_not_beyond(network, length + 1)
        if why is not None:
            context = length
            notices.append(f"{why}: the model sees the last {length} tokens, a window that slides on")
        else:
            notices.append(f"up to {needed} tokens are read at once, and the model was trained on {length}")
    elif context is not None and context > length:
        why = why_not_beyond(network, context)
        if why is not None:
            raise BadInput(f"{why}: a window of {context} tokens will not do", f"take at most {length}")
    seen = len(ids) if context is None else context
    if context is not None and len(ids) > context:
        notices.append(f"of the prompt's {len(ids)} tokens only the last {context} are seen")
    if not cache_agrees(network, ids[-seen:]):
        notices.append("a part answers otherwise when tokens come one by one: every prefix is computed anew")
        return Way(context, False, tuple(notices))
    return Way(context, True, tuple(notices))


def why_not_beyond(network: LanguageModel, tokens: int) -> str | None:
    """What a part says when it is shown more tokens than it was trained on; None: it goes there."""
    try:
        with scoring(network):
            network(torch.zeros(1, tokens, dtype=torch.long))
    except BadInput as error:
        return error.what
    except (IndexError, RuntimeError, ValueError):  # a stranger's part
        return f"its parts do not go to {tokens} tokens"
    return None


def cache_agrees(network: LanguageModel, ids: Sequence[int]) -> bool:
    """Token by token or all at once, the last token's logits are the same; not so if a part peeks at other tokens."""
    least = min(TRIED, network.body.shape.length)
    row = torch.tensor([(list(ids) * TRIED)[: max(least, len(ids))]])  # a single token would agree with itself
    with scoring(network):
        cache = KVCache(len(network.body.blocks))
        for piece in row.split([row.shape[1] - least // 2] + [1] * (least // 2), dim=1):
            last = network(piece, cache=cache)[0, -1]
        whole = network(row)[0, -1]
    return bool((last - whole).abs().max() <= SAME * (1 + whole.abs().max()))


def generate(
    network: LanguageModel,
    ids: Sequence[int],
    *,
    tokens: int,
    sampling: Sampling,
    seed: int,
    way: Way,
    sample: int = 0,
    stops: Iterable[int] = (),
    never: Iterable[int] = (),
) -> Iterator[int]:
    """Up to `tokens` more tokens; a stop token is the last one. The rng are named by seed and sample."""
    if not ids:
        raise BadInput("there is nothing to begin with", "give a prompt of at least one word")
    said, throws = list(ids), generator_for(seed, "generate", sample)
    stops, never = frozenset(stops), frozenset(never)
    reader = Reader(network, way)
    with scoring(network):
        for _ in range(tokens):
            chances = shares(reader.logits(said), sampling, said, never)
            said.append(draw(chances, throws))
            yield said[-1]
            if said[-1] in stops:
                return


class Reader:
    """The logits after the last token, with as little work as possible."""

    def __init__(self, network: LanguageModel, way: Way) -> None:
        self.network, self.way = network, way
        self.cache = KVCache(len(network.body.blocks))

    def logits(self, said: Sequence[int]) -> np.ndarray:
        limit = self.way.context
        if not self.way.cached or (limit is not None and len(said) > limit):
            # in a window that slides every token changes its position, so nothing kept would be right
            recent = said if limit is None else said[-limit:]
            return self.network(torch.tensor([recent]))[0, -1].numpy()
        fresh = said[self.cache.length :]
        return self.network(torch.tensor([fresh]), cache=self.cache)[0, -1].numpy()


class Speaker:
    """Tokens to text as they come: what is handed out together spells the whole text."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int]) -> None:
        self.tokenizer, self.ids = tokenizer, list(before)
        kind = tokenizer.facts.get("kind", "word")
        self.words, self.spaced = kind in ("word", "whitespace"), kind == "whitespace"
        self.told = "" if self.words else tokenizer.decode(self.ids)

    def say(self, token: int) -> str:
        """The text that this token adds; empty where it is the first bytes of a letter."""
        marks = (self.tokenizer.start, self.tokenizer.stop, self.tokenizer.pad)
        heard = [each for each in self.ids[-1:] if each not in marks]
        self.ids.append(token)
        if self.words:
            word = self.tokenizer.words([token])[0]
            if not heard:
                return word if self.spaced else spelled(word)
            if self.spaced:
                return f" {word}"
            return gap(self.tokenizer.words(heard)[0], word) + spelled(word)
        text = self.tokenizer.decode(self.ids)
        if text.endswith("\ufffd"):  # half a letter
            return ""
        added, self.told = text[len(self.told) :], text
        return added

    def rest(self) -> str:
        """What was held back as half a letter, when no more tokens come."""
        return "" if self.words else self.tokenizer.decode(self.ids)[len(self.told) :]
