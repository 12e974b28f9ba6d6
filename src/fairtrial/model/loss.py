"""Loss over a vocabulary: the output layer, the loss and all their gradients, chunk by chunk in one small buffer.

At the course's size the output layer is most of a decoder's step. Written the usual way it fills and re-reads four
arrays of tokens x vocabulary; here one buffer of CHUNK rows stays in the processor's cache, and its logits turn into
probabilities and then into gradients in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 64  # rows of the buffer; 32 to 256 measured alike, 512 is slower


class VocabularyLoss(torch.autograd.Function):
    """(objective, nats): the smoothed objective times `scale`, and the plain summed negative log-likelihood."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        entries = weight.shape[0]
        buffer = hidden.new_empty(min(CHUNK, len(hidden)), entries)
        to_hidden, to_weight, to_bias = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        ones = hidden.new_ones(len(buffer))
        nats = hidden.new_zeros((), dtype=torch.float64)
        shortfall = hidden.new_zeros((), dtype=torch.float64)
        for begin in range(0, len(hidden), CHUNK):
            rows, answers = hidden[begin : begin + CHUNK], targets[begin : begin + CHUNK, None]
            logits = torch.addmm(bias, rows, weight.t(), out=buffer[: len(rows)])
            total = softmax_in_place(logits, answers, nats)
            if smoothing:
                # the mean logit needs no pass over the buffer: it is the hidden state times the mean weight
                mean = rows @ weight.mean(0) + bias.mean()
                shortfall += (total - mean).sum(dtype=torch.float64)
                logits.sub_(smoothing / entries)
            logits.scatter_add_(1, answers, logits.new_full(answers.shape, smoothing - 1.0))
            torch.mm(logits, weight, out=to_hidden[begin : begin + CHUNK])
            to_weight.addmm_(logits.t(), rows)
            to_bias.addmv_(logits.t(), ones[: len(rows)])
        ctx.save_for_backward(to_hidden.mul_(scale), to_weight.mul_(scale), to_bias.mul_(scale))
        objective = ((1 - smoothing) * nats + smoothing * shortfall) * scale
        ctx.mark_non_differentiable(nats)
        return objective.to(hidden.dtype), nats

    @staticmethod
    @once_differentiable  # second derivatives are refused: the gradients below are plain numbers
    def backward(ctx: Any, *received: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if received[0] != 1:  # the usual case, loss.backward(), needs no further pass
            gradients = tuple(gradient * received[0] for gradient in gradients)
        return *gradients, None, None, None


def softmax_in_place(logits: Tensor, answers: Tensor, nats: Tensor) -> Tensor:
    """Turn logits into probabilities, add the answers' negative log-likelihood to `nats`, give the log of each sum."""
    chosen = logits.gather(1, answers)[:, 0]
    top = logits.amax(1, keepdim=True)
    sums = logits.sub_(top).exp_().sum(1, keepdim=True)
    logits.div_(sums)
    total = (top + sums.log())[:, 0]
    nats += (total - chosen).sum(dtype=torch.float64)
    return total


@torch.no_grad()
def vocabulary_nats(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """The negative log-likelihood of each target, for scoring. [token] -> [token], float64"""
    nats = torch.empty(len(hidden), dtype=torch.float64)
    for begin in range(0, len(hidden), CHUNK):
        logits = torch.addmm(bias, hidden[begin : begin + CHUNK], weight.t())
        chosen = logits.gather(1, targets[begin : begin + CHUNK, None])[:, 0]
        nats[begin : begin + CHUNK] = logits.logsumexp(1) - chosen
    return nats
