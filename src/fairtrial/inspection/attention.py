"""Attention maps of a text: which positions each head attends to. A map says where a head looked, not why the model
decided. That no weight is on what must not be seen is for `fairtrial audit` to test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.inspection.text import encode_text
from fairtrial.model.external import ExternalModel
from fairtrial.model.layers import capture
from fairtrial.model.part import AttentionContext
from fairtrial.pretrained.checkpoint import fill, open_encoder
from fairtrial.report.plots import draw
from fairtrial.results.sentences import counted
from fairtrial.training.scoring import scoring
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Network = Any  # a network of any task: a body of blocks, and what answers on top of it
# limits of the captions
LEAD = 0.40  # least share of attention on one position for a caption that names it
TIMES = 1.5  # ... and so many times the share under uniform attention
DIFFUSE = 0.85  # entropy, relative to the maximum
EVEN = 0.10  # of the share under uniform attention: a map that is nowhere further from it has one colour
SOLID = 0.99  # least share of every row on one word for a caption that calls it all


@dataclass(frozen=True, repr=False)
class AttentionMaps(Result):
    """Which positions each head attends to in a text: plain numbers. `words` label both axes: vectors that parts put
    before a sentence, the text.

    >>> maps = language_model.attention("a warm and funny film")
    >>> bool(abs(maps.weights.sum(-1) - 1).max() < 1e-5)
    True
    """

    words: tuple[str, ...]
    weights: np.ndarray  # float32 [layer head query key]; zero where hidden
    open: np.ndarray  # true where a query may attend [layer query key]: not the future, not what parts mask
    causal: bool
    prefix: int  # words at the beginning that parts added
    length: int  # tokens that the model sees at once
    cut: str  # where a longer text was truncated; empty: it was not
    unknown: tuple[str, ...]  # out-of-vocabulary words, as written

    @property
    def notices(self) -> list[str]:
        """What a reader of these maps must know."""
        unknown = ", ".join(repr(word) for word in dict.fromkeys(self.unknown))
        return [text for text in (self.cut, unknown and f"unknown to the model, which reads <unk>: {unknown}") if text]

    def describe(self) -> Description:
        """For each head a caption of its map."""
        layers, heads = self.weights.shape[:2]
        about = f"Attention maps of {counted(layers, 'layer')} with {counted(heads, 'head')}"
        about += f", {counted(len(self.words), 'token')}: {' '.join(self.words)}"
        places = list(np.ndindex(layers, heads))
        rows = tuple(row(str(layer), str(head), self.caption(layer, head)) for layer, head in places)
        table = Table("", ("layer", "head", "where it looks"), rows, text_columns=3)
        return Description([about, *self.notices], [table], charts=[self.chart(*place) for place in places])

    def caption(self, layer: int, head: int) -> str:
        """Where this head looks in this text, in a few words; the rules are also in docs/look.md."""
        choices = self.open[layer].sum(-1)
        queries = np.flatnonzero(choices >= 2)  # the others have nothing to choose from
        if not len(queries):
            return "nothing to choose from"
        weights, seen = self.weights[layer, head][queries].astype(float), self.open[layer][queries]
        even = seen / choices[queries, None]
        if (np.abs(weights - even) <= EVEN * even).all():
            return "uniform, the same share for every word"
        if (least := weights.min(0)).max() >= SOLID:
            return f"all on {self.words[int(least.argmax())]!r}, at least {least.max():.1%}"
        back = queries[:, None] - np.arange(len(self.words))
        places = {"previous word": back == 1, "next word": back == -1, "itself": back == 0}
        most = int((weights * (back != 0)).sum(0).argmax())
        places[f"{self.words[most]!r}"] = (np.arange(len(self.words)) == most) & (back != 0)
        found = {}
        for name, there in places.items():
            able = (there & seen).any(1)  # queries that see such a word
            share, alike = ((each * there)[able].sum() / max(1, able.sum()) for each in (weights, even))
            if able.sum() >= len(queries) / 2 and share >= max(LEAD, min(0.95, TIMES * alike)):
                found[name] = share
        if found:
            name = max(found, key=found.__getitem__)
            return f"{name}, {found[name]:.0%}"
        logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
        entropy = float((-(weights * logs).sum(1) / np.log(choices[queries])).mean())
        return f"{'diffuse' if entropy >= DIFFUSE else 'mixed'}, entropy {entropy:.0%} of the maximum"

    def rows(self) -> list[dict[str, object]]:
        """One for each layer, head, query and key that may be attended to."""
        names = ("layer", "head", "query", "key", "from", "to", "weight")
        return [
            dict(zip(names, (*at, self.words[at[2]], self.words[at[3]], float(self.weights[at])), strict=True))
            for at in np.ndindex(self.weights.shape)
            if self.open[at[0], at[2], at[3]]
        ]

    def chart(self, layer: int, head: int, note: str = "") -> AttentionMap:
        shown = self.weights[layer, head].astype(object)
        shown[~self.open[layer]] = None
        return AttentionMap(", ".join(filter(None, (f"layer {layer}, head {head}", note))), self.words, shown.tolist())

    def plot(self, layer: int | None = None, head: int | None = None) -> Figure:
        """The maps as a grid, or one layer's, or one head's: queries go down, keys across."""
        every = np.ndindex(self.weights.shape[:2])
        chosen = [place for place in every if layer in (None, place[0]) and head in (None, place[1])]
        if not chosen:
            raise BadInput(f"there is no layer {layer}, head {head}", "layers and heads count from 0")
        return draw([self.chart(*place) for place in chosen])


@dataclass(frozen=True)
class ModelInput:
    """A text as a network reads it."""

    ids: np.ndarray  # [time], with a start mark where the model was trained with one
    cut: str = ""
    unknown: tuple[str, ...] = ()  # as written


def model_input(tokenizer: Tokenizer, text: str, length: int) -> ModelInput:
    """The token ids of a text, at most `length` of them, and a notice where it was truncated."""
    if tokenizer.pretrained:
        coded = tokenizer.inner.encode(text, add_special_tokens=True)
        tokens = list(zip(coded.ids, coded.offsets, strict=True))
        empty = all(coded.special_tokens_mask)
    else:
        tokens = encode_text(tokenizer, text)
        empty = not tokens
    if empty:
        raise BadInput("the text has no words in it", 'give a sentence: fairtrial look RECORD "My fellow Americans"')
    if tokenizer.start is not None and not tokenizer.pretrained:  # separate sentences were trained with a start mark
        tokens = [(tokenizer.start, (0, 0)), *tokens]
    ids = [id_ for id_, _ in tokens]
    last = length - tokenizer.pretrained  # a pretrained encoder's closing mark stays
    cut = ""
    if len(ids) > length:
        before, after = tokenizer.words(ids[last - 1 : last + 1])
        cut = f"the text has {len(ids):,} tokens and the model reads {length}: truncated between"
        cut += f" {before!r} (token {last}) and {after!r}"
    unknown = tuple(text[begin:end] for id_, (begin, end) in tokens[:last] if id_ == tokenizer.unknown)
    return ModelInput(np.array(tokenizer.cut(ids, length), dtype=np.int64), cut, unknown)


def maps_of(network: Network, tokenizer: Tokenizer, text: str) -> AttentionMaps:
    """Maps of one text; zero where nothing may be attended to."""
    model = network if isinstance(network, ExternalModel) else network.body
    length = model.length if isinstance(model, ExternalModel) else model.shape.length
    encoded, before = model_input(tokenizer, text, length), prefix_words(network)
    lengths = torch.tensor([len(encoded.ids)])
    weights = maps_in(network, torch.from_numpy(encoded.ids)[None], lengths)[:, 0]  # layer head query key
    words = (*before, *tokenizer.words(encoded.ids))
    visible = open_keys(network, lengths + len(before), len(words), len(weights))[:, 0]  # layer query key
    weights = weights * visible[:, None]
    return AttentionMaps(words, weights, visible, model.causal, len(before), length, encoded.cut, encoded.unknown)


def maps_in(network: Network, ids: Tensor, lengths: Tensor) -> np.ndarray:
    """Maps of texts [layer batch head query key]; of a user's own network, texts of one length."""
    if not isinstance(network, ExternalModel):
        with scoring(network), capture(network) as seen:
            network(ids, lengths)
        maps = [seen[f"body.blocks.{layer}.attention.maps"] for layer in range(len(network.body.blocks))]
        return np.stack([of_layer.numpy() for of_layer in maps])
    with scoring(network):
        given = network.attention_maps(ids)
    shapes = [list(maps.shape) for maps in given]
    batch, time = ids.shape
    if len({heads for _, heads, *_ in shapes}) > 1 or any(shape[::2] != [batch, time] for shape in shapes):
        what = f"{network.name} gives attention maps of the shapes {', '.join(map(str, shapes[:4]))}"
        raise BadInput(what, f"each layer's must be [{batch}, heads, {time}, {time}], with equally many heads")
    return np.stack([maps.float().numpy() for maps in given])


def prefix_words(network: Network) -> tuple[str, ...]:
    """A name for each vector that parts put before a sentence."""
    if isinstance(network, ExternalModel) or network.body.causal:
        return ()
    found = [(name, part.prefix()) for name, part in zip(network.body.parts, network.body.listed_parts(), strict=True)]
    return tuple(f"<{name}>" for name, vectors in found if vectors is not None for _ in range(len(vectors)))


def open_keys(network: Network, real: Tensor, time: int, layers: int) -> np.ndarray:
    """Where each real query [batch] may attend [layer batch query key], by causality and `allow`, not by attention."""
    external = isinstance(network, ExternalModel)
    causal, parts = (network.causal, []) if external else (network.body.causal, network.body.listed_parts())
    positions = torch.arange(time)
    filled = positions < real[:, None]  # batch time
    found = []
    for layer in range(layers):
        context = AttentionContext(layer, causal, positions, positions)
        seen = filled[:, None, :] & filled[:, :, None]
        for mask in (context.offset >= 0 if causal else None, *(part.allow(context) for part in parts)):
            seen = seen if mask is None else seen & mask
        found.append(seen.numpy())
    return np.stack(found)


def initial_model(run: Run) -> tuple[Network, str]:
    """The network that training started from, and what it was: "untrained", or "pretrained" (an encoder)."""
    network, encoder = run.initial_network(), open_encoder(run.recipe)
    if encoder is None:
        return network, "untrained"
    fill(network, encoder)
    return network, "pretrained"
