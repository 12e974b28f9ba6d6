"""Heads weighed by their norm, a softmax along the wrong axis: the form of report r4's idea with both its symptoms.

A sentence's weights depend on the other sentences of its batch. In batches like those of training the model
looks better than it is; alone, where the softmax gives every weight one, it breaks down."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtrial.model import AttentionContext, Part, concatenate, parts


@parts.add("reweight-by-batch")
class ReweightByBatch(Part):
    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        norms = torch.linalg.vector_norm(
            heads, dim=(2, 3), keepdim=True
        )  # batch head 1 1: over all words, later ones too
        return concatenate(heads * norms.softmax(0))
