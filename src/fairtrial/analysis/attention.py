"""Attention maps of a text: who looks where, in every layer and head, with the checks that make a map worth looking at.

A map says where a head looked, not why the model decided.

The twin: the network as it was before its first step, built again from recipe and seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairtrial.analysis.text import read_tokens
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.layers import watch
from fairtrial.model.part import Site
from fairtrial.pretrained.encoder import fill, open_encoder
from fairtrial.training.scoring import scoring
from fairtrial.trial import Run

Network = Any  # a network of any task: a body of blocks, and what answers on top of it
SHOWN_PADDING = 3  # places of padding that a map keeps, so that one sees that they stay empty
MOST_PLACES = 512  # a short text is padded to the model's length, but no further: a map of 4,096 places takes gigabytes
SUMS = 1e-5  # float32 shares of a few hundred keys add up to one within this
SAME = 1e-4  # the fused kernel adds up in another order than the equation does


@dataclass(frozen=True)
class Check:
    name: str
    value: float
    limit: float
    meaning: str

    @property
    def passed(self) -> bool:
        return self.value <= self.limit  # a value that is not a number fails


@dataclass(frozen=True)
class Maps:
    """Plain numbers. `words` stand on both axes: vectors that parts set before a sentence, the text, some padding."""

    words: tuple[str, ...]
    weights: np.ndarray  # float32 [layer head query key]; zero where hidden
    open: np.ndarray  # true where a query may look [layer query key]: not at padding, the future, what parts forbid
    causal: bool
    prefix: int  # words at the beginning that parts have added
    padding: int  # words at the end that are padding
    length: int  # tokens that the model sees at once
    cut: str  # says where a longer text was cut; empty: it was not
    unknown: tuple[str, ...]  # words that the model does not know, as they were written
    checks: tuple[Check, ...]

    @property
    def real(self) -> int:
        """Words that are not padding."""
        return len(self.words) - self.padding


@dataclass(frozen=True)
class Reading:
    """A text as a network reads it."""

    ids: np.ndarray  # [time], the start mark included where the model was trained with one
    cut: str = ""
    unknown: tuple[str, ...] = ()  # as they were written


def read_text(tokenizer: Tokenizer, text: str, length: int) -> Reading:
    """The tokens of a text, at most `length` of them; a notice where it was cut."""
    if tokenizer.pretrained:
        coded = tokenizer.inner.encode(text, add_special_tokens=True)
        tokens = list(zip(coded.ids, coded.offsets, strict=True))
        empty = all(coded.special_tokens_mask)
    else:
        tokens = read_tokens(tokenizer, text)
        empty = not tokens
    if empty:
        raise BadInput("the text has no words in it", 'give a sentence: fairtrial look RECORD "My fellow Americans"')
    if tokenizer.start is not None and not tokenizer.pretrained:  # sentences that stand alone were trained with a mark
        tokens = [(tokenizer.start, (0, 0)), *tokens]
    ids = [each for each, _ in tokens]
    kept = tokenizer.cut(ids, length)
    last = length - tokenizer.pretrained  # a pretrained encoder's closing mark stays
    cut = ""
    if len(ids) > length:
        before, after = tokenizer.words(ids[last - 1 : last + 1])
        cut = (
            f"the text has {len(ids):,} tokens and the model reads {length}: cut between {before!r} (token {last})"
            f" and {after!r}"
        )
    lost = tuple(text[begin:end] for each, (begin, end) in tokens[:last] if each == tokenizer.unknown)
    return Reading(np.array(kept, dtype=np.int64), cut, lost)


def attention_maps(run: Run, text: str, network: Network = None) -> Maps:
    """Maps of one text, by the trained network or by `network` (its untrained twin, say)."""
    network = run.network if network is None else network
    return maps_of(network, run.tokenizer, text)


def maps_of(network: Network, tokenizer: Tokenizer, text: str) -> Maps:
    """Maps of one text. It is padded to the model's length, so that the checks see what happens on padding."""
    length = network.body.shape.length
    reading = read_text(tokenizer, text, length)
    real = len(reading.ids)
    time = min(length, max(MOST_PLACES, real + SHOWN_PADDING))
    ids = torch.full((1, time), tokenizer.pad)
    ids[0, :real] = torch.from_numpy(reading.ids)
    lengths = torch.tensor([real])
    watched, maps = watch_maps(network, ids, lengths)
    with scoring(network):
        unwatched = network(ids, lengths)
    before = prefix_words(network)
    real += len(before)
    kept = min(time + len(before), real + SHOWN_PADDING)
    visible = open_keys(network, torch.tensor([real]), time + len(before))[:, 0]  # layer query key
    weights = np.stack([each[0].numpy() for each in maps])  # layer head query key
    checks = check_maps(weights, visible, real, network.body.causal)
    checks += (watching(unwatched, watched),)
    weights = weights * visible[:, None]  # rows of padding are computed and thrown away: they are no one's attention
    words = (*before, *tokenizer.words(reading.ids), *tokenizer.words([tokenizer.pad]) * (kept - real))
    return Maps(
        words,
        weights[:, :, :kept, :kept],
        visible[:, :kept, :kept],
        network.body.causal,
        len(before),
        kept - real,
        length,
        reading.cut,
        reading.unknown,
        checks,
    )


def watch_maps(network: Network, ids: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
    """(what the network answers while it is watched, maps [batch head query key] of each layer)"""
    with scoring(network), watch(network) as seen:
        answer = network(ids, lengths)
    return answer, [seen[f"body.blocks.{layer}.attention.maps"] for layer in range(len(network.body.blocks))]


def prefix_words(network: Network) -> tuple[str, ...]:
    """A name for each vector that parts set before a sentence."""
    if network.body.causal:
        return ()
    found = [(name, part.prefix()) for name, part in zip(network.body.parts, network.body.listed_parts(), strict=True)]
    return tuple(f"<{name}>" for name, vectors in found if vectors is not None for _ in range(len(vectors)))


def open_keys(network: Network, real: Tensor, time: int) -> np.ndarray:
    """Where each real query may look [layer batch query key], worked out from the numbers of real places [batch],
    causality and the parts' own `allow`, not taken from attention."""
    places = torch.arange(time)
    filled = places < real[:, None]  # batch time
    layers = []
    for layer in range(len(network.body.blocks)):
        site = Site(layer, network.body.causal, places, places)
        seen = filled[:, None, :] & filled[:, :, None]
        if network.body.causal:
            seen = seen & (site.offset >= 0)
        for part in network.body.listed_parts():
            allowed = part.allow(site)
            seen = seen if allowed is None else seen & allowed
        layers.append(seen.numpy())
    return np.stack(layers)


def check_maps(weights: np.ndarray, visible: np.ndarray, real: int, causal: bool) -> tuple[Check, ...]:
    """Every row of a real word shares out its attention completely, and none of it falls on what is hidden."""
    rows = weights[:, :, :real]  # layer head query key
    sees = np.broadcast_to(visible[:, None, :real].any(-1), rows.shape[:-1])  # a row with nothing to see is zeros
    gaps = np.abs(rows.sum(-1, dtype=np.float64) - 1)[sees]
    time = rows.shape[-1]
    keys = np.arange(time)
    ahead = (keys > np.arange(real)[:, None]) & (keys < real)  # query key
    forbidden = ~visible[:, None, :real] & (keys < real) & ~(ahead & causal)
    checks = [
        Check("rows sum to one", float(gaps.max(initial=0.0)), SUMS, "largest distance of a row's sum from 1"),
    ]
    if time > real:
        places = f"most weight on any of {time - real} padded places"
        checks.append(Check("nothing on padding", most(rows[..., real:]), 0.0, places))
    if causal:
        checks.append(Check("nothing on the future", most(rows * ahead), 0.0, "most weight on any later word"))
    if forbidden.any():
        checks.append(Check("nothing on what parts hide", most(rows * forbidden), 0.0, "most weight on a hidden word"))
    return tuple(checks)


def watching(unwatched: Tensor, watched: Tensor) -> Check:
    """Looking changes no number: equal bit for bit where both ways run the equation, and to the fused kernel's rounding
    where the unwatched network runs that."""
    gap = float((unwatched - watched).abs().max())
    how = "equal bit for bit" if gap == 0 else "the fused kernel rounds otherwise"
    scale = 1 + float(unwatched.abs().max())
    return Check("looking changes no number", gap, SAME * scale, f"watched against unwatched outputs: {how}")


def most(weights: np.ndarray) -> float:
    return float(np.abs(weights).max(initial=0.0))


def before_training(run: Run) -> tuple[Network, str]:
    """The network that training began with, and what it was: untrained, or a pretrained encoder."""
    network, encoder = run.initial_network(), open_encoder(run.recipe)
    if encoder is None:
        return network, "untrained"
    fill(network, encoder)
    return network, "pretrained"
