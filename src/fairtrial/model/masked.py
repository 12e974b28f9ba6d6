"""A masked language model: an encoder that guesses the words that were hidden from it (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805). What it learns is its body: a start for a classifier."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from fairtrial.model.block import make_norm
from fairtrial.model.loss import Scratch, VocabularyLoss, vocabulary_nats
from fairtrial.model.network import Body, untouched_dice
from fairtrial.model.start import start
from fairtrial.recipe import PartChoice, Shape


class MaskedModel(nn.Module):
    """Body, a layer with a norm, the vocabulary: the head of BERT and RoBERTa, and their gelu in it."""

    def __init__(self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        with untouched_dice():
            self.body = Body(shape, choices, vocabulary, causal=False, seed=seed)
            self.hidden = nn.Linear(shape.width, shape.width)
            self.out = nn.Linear(shape.width, vocabulary)
        self.norm = make_norm(shape)
        self.scratch = Scratch()
        start(self, shape.start, seed)
        if shape.tied:
            self.out.weight = self.body.tokens.weight

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> logits of the token at each place [batch time entry], zeros at padding"""
        x, layout = self.body(ids, lengths)
        return layout.spread(self.out(self.read(x)))

    def read(self, x: Tensor) -> Tensor:
        """[token width] -> [token width]"""
        return self.norm(gelu(self.hidden(x)))

    def hidden_places(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors and answers of the places to guess: those whose answer is not below 0. [guess width], [guess]"""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(pad(answers, (layout.time - answers.shape[1], 0), value=-1))  # a prefix is no answer
        chosen = (answers >= 0).nonzero()[:, 0]
        return self.read(x.index_select(0, chosen)), answers.index_select(0, chosen)

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """(objective x scale, summed nats) over the places to guess"""
        x, wanted = self.hidden_places(ids, lengths, answers)
        return VocabularyLoss.apply(x, self.out.weight, self.out.bias, wanted, smoothing, scale, self.scratch)

    @torch.no_grad()
    def nats(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> Tensor:
        """Nats of each place to guess, in reading order [guess]"""
        x, wanted = self.hidden_places(ids, lengths, answers)
        return vocabulary_nats(x, self.out.weight, self.out.bias, wanted)
