"""Networks: an encoder with a classifier, and a decoder language model, around one shared body."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fairtrial.errors import BadInput
from fairtrial.model.attention import Cache, View
from fairtrial.model.block import ACTIVATIONS, Block, PostBlock, make_norm
from fairtrial.model.dropout import Dropout
from fairtrial.model.layout import Layout
from fairtrial.model.loss import Scratch, VocabularyLoss, vocabulary_nats
from fairtrial.model.part import Part, build_parts
from fairtrial.model.start import start
from fairtrial.model.stripes import Plan, run_striped
from fairtrial.recipe import PartChoice, Shape


class Body(nn.Module):
    """Tokens in, one vector for each real token out."""

    def __init__(
        self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, causal: bool, seed: int
    ) -> None:
        super().__init__()
        self.shape, self.causal = shape, causal
        self.save_memory = False  # in training, compute each layer again for its gradient instead of keeping it
        self.tokens = nn.Embedding(vocabulary, shape.width)
        self.parts = build_parts(choices, shape, seed)
        self.dropout = Dropout(shape.dropout)
        kind = Block if shape.norm_place == "pre" else PostBlock
        self.blocks = nn.ModuleList(kind(shape, layer) for layer in range(shape.layers))
        self.norm = make_norm(shape)  # of what leaves pre-norm blocks, of what enters post-norm ones

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: Cache | None = None) -> tuple[Tensor, Layout]:
        """Token ids [batch time], real tokens in each row [batch] -> vectors of the real tokens [token width]"""
        batch, time = ids.shape
        past = cache.length if cache is not None else 0
        layout = Layout.full(batch, time, past) if lengths is None else Layout.ragged(lengths, time)
        if cache is not None and lengths is not None:
            raise BadInput("cached decoding takes rows of equal length")
        parts = self.listed_parts()
        x = self.tokens(layout.pack(ids))
        for part in parts:
            x = part.embed(x, layout.positions)
        before = self.shape.norm_place == "post"
        x = self.dropout(self.norm(x) if before else x)
        if not self.causal:
            x, layout = with_prefixes(x, layout, parts)
        view = View.of(layout, self.causal, past, x.dtype)
        if self.save_memory and cache is None and torch.is_grad_enabled() and not self.watched():
            plan, whole = Plan.of(view, parts), layout.spread(x)
            for block in self.blocks:
                whole = run_striped(cast(Block, block), whole, plan, parts)
            x = layout.pack(whole)
        else:
            for block in self.blocks:
                x = block(x, view, parts, cache)
        if cache is not None:
            cache.length += time
        return x if before else self.norm(x), layout

    def watched(self) -> bool:
        """Whether somebody wants to see attention as it happens."""
        return any(cast(Block, block).attention.maps.watcher is not None for block in self.blocks)

    def listed_parts(self) -> list[Part]:
        return cast(list[Part], list(self.parts.values()))


def with_prefixes(x: Tensor, layout: Layout, parts: Sequence[Part]) -> tuple[Tensor, Layout]:
    """Sentences with the parts' prefix vectors before them; positions in attention count from the first prefix."""
    found = [prefix for prefix in (part.prefix() for part in parts) if prefix is not None]
    if not found:
        return x, layout
    before = torch.cat(found).to(x.dtype)  # vector width
    whole = torch.cat((before.expand(layout.batch, -1, -1), layout.spread(x)), dim=1)
    if layout.lengths is None:
        layout = Layout.full(layout.batch, layout.time + len(before))
    else:
        layout = Layout.ragged(layout.lengths + len(before), layout.time + len(before))
    return layout.pack(whole), layout


class Classifier(nn.Module):
    """An encoder, the mean over real tokens, and a classifier with one hidden layer."""

    def __init__(
        self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, classes: int, *, seed: int = 0
    ) -> None:
        super().__init__()
        with untouched_dice():
            self.body = Body(shape, choices, vocabulary, causal=False, seed=seed)
            self.hidden = nn.Linear(shape.width, shape.classifier_hidden)
            self.out = nn.Linear(shape.classifier_hidden, classes)
        chosen = shape.classifier_activation
        self.activation = ACTIVATIONS[shape.activation if chosen == "same" else chosen]
        start(self, shape.start, seed)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> logits [batch class]"""
        x, layout = self.body(ids, lengths)
        owner = next((part for part in self.body.listed_parts() if part.owns("pool")), None)
        pooled = layout.mean(x) if owner is None else owner.pool(layout.spread(x), layout.real())
        return self.out(self.activation(self.hidden(pooled)))

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """(objective x scale, summed nats)"""
        logits = self(ids, lengths)
        nats = cross_entropy(logits, answers, reduction="sum")
        if not smoothing:
            return nats * scale, nats.detach().double()
        smoothed = cross_entropy(logits, answers, reduction="sum", label_smoothing=smoothing)
        return smoothed * scale, nats.detach().double()


class LanguageModel(nn.Module):
    """A decoder: each token sees itself and those before it, and predicts the next."""

    def __init__(self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        with untouched_dice():
            self.body = Body(shape, choices, vocabulary, causal=True, seed=seed)
            self.out = nn.Linear(shape.width, vocabulary, bias=shape.output_bias)
        self.scratch = Scratch()
        start(self, shape.start, seed)
        if shape.tied:
            self.out.weight = self.body.tokens.weight

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """[batch time] -> logits of the next token [batch time entry], zeros at padding"""
        x, layout = self.body(ids, lengths, cache)
        return layout.spread(self.out(x))

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Next tokens [batch time] -> (objective x scale, summed nats) over real tokens"""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(answers)
        return VocabularyLoss.apply(x, self.out.weight, self.out.bias, answers, smoothing, scale, self.scratch)

    @torch.no_grad()
    def nats(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, counted: Tensor | None = None) -> Tensor:
        """Nats of each real target, in reading order [token]; only where `counted` [batch time], if given."""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(answers)
        if counted is not None:
            chosen = layout.pack(counted).nonzero()[:, 0]
            x, answers = x.index_select(0, chosen), answers.index_select(0, chosen)
        return vocabulary_nats(x, self.out.weight, self.out.bias, answers)


def untouched_dice() -> AbstractContextManager[None]:
    """torch's layers draw their first weights from the world's generator; ours are drawn again, by name (`start`)."""
    return torch.random.fork_rng(devices=[])


def count_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
