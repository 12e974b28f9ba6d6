"""Sink: a learned score for each head takes its share of the softmax and gives nothing (gpt-oss, 2025,
https://arxiv.org/abs/2508.10925; a sink token in Xiao et al. 2023, https://arxiv.org/abs/2309.17453). A head may so
attend to nothing. It starts at zero: exp(score) / (1 + sum of exp(scores))."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("sink")
class Sink(Part):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.scores = nn.Parameter(torch.zeros(shape.layers, shape.heads))

    def weigh(self, scores: Tensor, context: AttentionContext) -> Tensor:
        sink = self.scores[context.layer][:, None, None].expand(*scores.shape[:-1], 1)  # batch head query 1
        return torch.cat((scores, sink), -1).softmax(-1)[..., :-1]
