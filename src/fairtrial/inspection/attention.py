"""Attention maps of a text: which positions each head attends to, with the checks that make a map trustworthy. A map
says where a head looked, not why the model decided."""

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
from fairtrial.model.part import OTHER_WEIGHTS, AttentionContext
from fairtrial.pretrained.checkpoint import fill, open_encoder
from fairtrial.results.sentences import counted
from fairtrial.training.scoring import scoring
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Network = Any  # a network of any task: a body of blocks, and what answers on top of it
LEAST_PADDING = 3  # positions after a text, where the model has them, so that the checks see what happens there
MAX_POSITIONS = 512  # a short text is padded to the model's length, but no further: 4,096 positions take gigabytes
SUM_TOLERANCE = 1e-5  # float32 weights of a few hundred keys sum to one within this
OUTPUT_TOLERANCE = 1e-4  # the fused kernel sums in another order than the equation does


@dataclass(frozen=True)
class Check:
    name: str
    value: float
    limit: float
    meaning: str

    @property
    def passed(self) -> bool:
        return self.value <= self.limit  # a value that is not a number fails


@dataclass(frozen=True, repr=False)
class AttentionMaps(Result):
    """Which positions each head attends to in a text: plain numbers. `words` label both axes: vectors that parts put
    before a sentence, the text.

    >>> maps = language_model.attention("a warm and funny film")
    >>> bool(abs(maps.weights.sum(-1) - 1).max() < 1e-5), all(check.passed for check in maps.checks)
    (True, True)
    """

    words: tuple[str, ...]
    weights: np.ndarray  # float32 [layer head query key]; zero where hidden
    open: np.ndarray  # true where a query may attend [layer query key]: not the future, not what parts mask
    causal: bool
    prefix: int  # words at the beginning that parts added
    length: int  # tokens that the model sees at once
    cut: str  # where a longer text was truncated; empty: it was not
    unknown: tuple[str, ...]  # out-of-vocabulary words, as written
    checks: tuple[Check, ...]

    @property
    def notices(self) -> list[str]:
        """What a reader of these maps must know."""
        unknown = ", ".join(repr(word) for word in dict.fromkeys(self.unknown))
        return [text for text in (self.cut, unknown and f"unknown to the model, which reads <unk>: {unknown}") if text]

    def describe(self) -> Description:
        """For each head: how spread its attention is, and the word that gets most of it."""
        layers, heads = self.weights.shape[:2]
        about = f"Attention maps of {counted(layers, 'layer')} with {counted(heads, 'head')}"
        about += f", {counted(len(self.words), 'token')}: {' '.join(self.words)}"
        failed = [f"Check failed: {check.name} ({check.meaning})." for check in self.checks if not check.passed]
        rows, charts = [], []
        for layer, head in np.ndindex(layers, heads):
            weights = self.weights[layer, head].astype(float)
            logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
            received, entropy = weights.mean(0), float(-(weights * logs).sum(1).mean())
            most = int(received.argmax())
            rows.append(row(str(layer), str(head), self.words[most], f"{received[most]:.0%}", f"{entropy:.2f}"))
            shown = np.where(self.open[layer], weights, np.nan).tolist()
            values = [[None if weight != weight else weight for weight in line] for line in shown]
            charts.append(AttentionMap(f"layer {layer}, head {head}", self.words, values))
        columns = ("layer", "head", "most attended", "its share", "entropy, nats")
        table = Table("", columns, tuple(rows), text_columns=3)
        return Description([about, *failed, *self.notices], [table], charts=charts)

    def rows(self) -> list[dict[str, object]]:
        """One for each layer, head, query and key that may be attended to."""
        names = ("layer", "head", "query", "key", "from", "to", "weight")
        return [
            dict(zip(names, (*at, self.words[at[2]], self.words[at[3]], float(self.weights[at])), strict=True))
            for at in np.ndindex(self.weights.shape)
            if self.open[at[0], at[2], at[3]]
        ]

    def plot(self, layer: int | None = None, head: int | None = None) -> Figure:
        """The maps as a grid, or one layer's, or one head's: queries go down, keys across."""
        from fairtrial.inspection.look import draw_maps

        every = np.ndindex(self.weights.shape[:2])
        chosen = [place for place in every if layer in (None, place[0]) and head in (None, place[1])]
        if not chosen:
            raise BadInput(f"there is no layer {layer}, head {head}", "layers and heads count from 0")
        return draw_maps([(self, "")], chosen, {}, " ".join(self.words))


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
    """Maps of one text. It is padded to the model's length, so that the checks see what happens on padding; the maps
    show the text alone. A user's own network, which may take no padding, reads the text alone."""
    if isinstance(network, ExternalModel):
        encoded = model_input(tokenizer, text, network.length)
        real = len(encoded.ids)
        weights = maps_in(network, torch.from_numpy(encoded.ids)[None], torch.tensor([real]))[:, 0]
        visible = open_keys(network, torch.tensor([real]), real, len(weights))[:, 0]
        words, checks = tuple(tokenizer.words(encoded.ids)), check_maps(weights, visible, real, network.causal)
        length, rest = network.length, (encoded.cut, encoded.unknown, checks)
        return AttentionMaps(words, weights, visible, network.causal, 0, length, *rest)
    length = network.body.shape.length
    encoded = model_input(tokenizer, text, length)
    real = len(encoded.ids)
    time = min(length, max(MAX_POSITIONS, real + LEAST_PADDING))
    ids = torch.full((1, time), tokenizer.pad)
    ids[0, :real] = torch.from_numpy(encoded.ids)
    lengths = torch.tensor([real])
    captured, maps = capture_maps(network, ids, lengths)
    with scoring(network):
        plain = network(ids, lengths)
    before = prefix_words(network)
    real += len(before)
    layers = len(network.body.blocks)
    visible = open_keys(network, torch.tensor([real]), time + len(before), layers)[:, 0]  # layer query key
    weights = maps[:, 0]  # layer head query key
    sums = not any(part.overrides(hook) for part in network.body.listed_parts() for hook in OTHER_WEIGHTS)
    checks = (*check_maps(weights, visible, real, network.body.causal, sums), check_outputs(plain, captured))
    weights, visible = (weights * visible[:, None])[:, :, :real, :real], visible[:, :real, :real]
    words = (*before, *tokenizer.words(encoded.ids))
    return AttentionMaps(
        words, weights, visible, network.body.causal, len(before), length, encoded.cut, encoded.unknown, checks
    )


def capture_maps(network: Network, ids: Tensor, lengths: Tensor) -> tuple[Tensor, np.ndarray]:
    """(the network's output while it is captured, maps [layer batch head query key])"""
    with scoring(network), capture(network) as seen:
        output = network(ids, lengths)
    maps = [seen[f"body.blocks.{layer}.attention.maps"] for layer in range(len(network.body.blocks))]
    return output, np.stack([of_layer.numpy() for of_layer in maps])


def maps_in(network: Network, ids: Tensor, lengths: Tensor) -> np.ndarray:
    """Maps of texts [layer batch head query key]; of a user's own network, texts of one length."""
    if not isinstance(network, ExternalModel):
        return capture_maps(network, ids, lengths)[1]
    with scoring(network):
        given = network.attention_maps(ids)
    shapes = [list(maps.shape) for maps in given]
    batch, time = ids.shape
    if len({heads for _, heads, *_ in shapes}) > 1 or any(shape[::2] != [batch, time] for shape in shapes):
        what = f"{network.name} gives attention maps of the shapes {', '.join(map(str, shapes[:4]))}"
        raise BadInput(what, f"each layer's must be [{batch}, heads, {time}, {time}], with equally many heads")
    return np.stack([maps.float().numpy() for maps in given])


def heads_of(network: Network, text: ModelInput) -> tuple[int, int]:
    """Layers, and heads in each; a user's own network is asked for the maps of a text."""
    if isinstance(network, ExternalModel):
        found = maps_in(network, torch.from_numpy(text.ids)[None], torch.tensor([len(text.ids)]))
        return found.shape[0], found.shape[2]
    return network.body.shape.layers, network.body.shape.heads


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


def check_maps(
    weights: np.ndarray, visible: np.ndarray, real: int, causal: bool, sums: bool = True
) -> tuple[Check, ...]:
    """The attention weights of a real query sum to one (`sums`: no part has replaced softmax), and none of them is on a
    hidden key."""
    rows = weights[:, :, :real]  # layer head query key
    sees = np.broadcast_to(visible[:, None, :real].any(-1), rows.shape[:-1])  # a row with no visible key is zeros
    gaps = np.abs(rows.sum(-1, dtype=np.float64) - 1)[sees]
    time = rows.shape[-1]
    keys = np.arange(time)
    ahead = (keys > np.arange(real)[:, None]) & (keys < real)  # query key
    forbidden = ~visible[:, None, :real] & (keys < real) & ~(ahead & causal)
    meaning = "largest distance of a row's sum from 1"
    checks = [Check("rows sum to one", most(gaps), SUM_TOLERANCE, meaning)] if sums else []
    if time > real:
        meaning = f"most weight on any of {time - real} padded positions"
        checks.append(Check("nothing on padding", most(rows[..., real:]), 0.0, meaning))
    if causal:
        checks.append(Check("nothing on the future", most(rows * ahead), 0.0, "most weight on any later word"))
    if forbidden.any():
        checks.append(Check("nothing on what parts mask", most(rows * forbidden), 0.0, "most weight on a masked word"))
    return tuple(checks)


def check_outputs(plain: Tensor, captured: Tensor) -> Check:
    """Watching changes no number; where the plain network runs the fused kernel, equal up to rounding."""
    gap = float((plain - captured).abs().max())
    how = "bitwise equal" if gap == 0 else "the fused kernel rounds differently"
    scale = 1 + float(plain.abs().max())
    meaning = f"captured versus plain outputs: {how}"
    return Check("watching changes no number", gap, OUTPUT_TOLERANCE * scale, meaning)


def most(weights: np.ndarray) -> float:
    return float(np.abs(weights).max(initial=0.0))


def initial_model(run: Run) -> tuple[Network, str]:
    """The network that training started from, and what it was: "untrained", or "pretrained" (an encoder)."""
    network, encoder = run.initial_network(), open_encoder(run.recipe)
    if encoder is None:
        return network, "untrained"
    fill(network, encoder)
    return network, "pretrained"
