"""Loss over a vocabulary: the output layer, the loss and all their gradients. At the course's size that is most of a
decoder's step. The usual way fills and re-reads four arrays of tokens x vocabulary; here CHUNK rows of logits turn into
probabilities and then into gradients while they are in the processor's cache, and the same memory serves every step."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairtrial.model.layers import Dropout

CHUNK = 128  # rows of a buffer; 64 to 256 measured alike, 512 is slower
TINY = 1e-30  # a probability below this is computed from its logit, as it may have underflowed


class Scratch:
    """Memory for probabilities, kept from step to step: fresh memory costs as much as the arithmetic on it."""

    def __init__(self) -> None:
        self.kept: Tensor | None = None

    def take(self, entries: int, like: Tensor) -> Tensor:
        kept = self.kept
        if kept is None or (kept.shape, kept.dtype, kept.device) != ((CHUNK, entries), like.dtype, like.device):
            kept = self.kept = like.new_empty(CHUNK, entries)
        return kept


@cache
def onednn() -> bool:
    """Whether torch brings oneDNN's product, which has no public name for plain tensors. On wide outputs (512 x 64 ->
    5,755, one thread) it takes about half the time of torch.mm and the bias. A failure of the product itself, as where
    memory is short, is raised: the other product gives other bits, which one trial must not mix."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    x, weight, bias = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3), torch.arange(4.0)
    return torch.equal(torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], ""), x @ weight.t() + bias)


def project(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight.T + bias: [row in], [out in], [out] -> [row out]"""
    if x.is_cpu and x.dtype == torch.float32 and onednn():
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    product = torch.mm(x, weight.t())
    return product if bias is None else product.add_(bias)  # not addmm: it writes the bias first, an extra pass


class VocabularyLoss(torch.autograd.Function):
    """(objective, nats): the smoothed objective times `scale`, and the plain summed negative log-likelihood."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        scale: float,
        scratch: Scratch,
    ) -> tuple[Tensor, Tensor]:
        entries = weight.shape[0]
        buffer = scratch.take(entries, hidden)
        to_hidden, to_weight = torch.empty_like(hidden), weight.new_zeros(weight.shape[::-1])  # width entry: faster
        to_bias = None if bias is None else torch.zeros_like(bias)
        ones = hidden.new_ones(CHUNK)
        if smoothing:
            mean_weight, mean_bias = weight.mean(0), 0 if bias is None else bias.mean()
        wide = widest(hidden)
        nats, shortfall = (hidden.new_zeros((), dtype=wide) for _ in range(2))
        for begin in range(0, len(hidden), CHUNK):
            rows, answers = hidden[begin : begin + CHUNK], targets[begin : begin + CHUNK, None]
            logits = project(rows, weight, bias)
            shares = torch.softmax(logits, 1, out=buffer[: len(rows)])
            chunk_nats = answer_nats(logits, shares, answers)
            nats += chunk_nats.sum(dtype=wide)
            if smoothing:
                # the mean logit needs no pass over the buffer: it is the hidden state times the mean weight
                mean = rows @ mean_weight + mean_bias
                total = chunk_nats + logits.gather(1, answers)[:, 0]  # log of the sum of exponentials
                shortfall += (total - mean).sum(dtype=wide)
                shares.sub_(smoothing / entries)
            hits = shares.new_full(answers.shape, smoothing - 1.0)
            shares.scatter_add_(1, answers, hits)  # now the gradient
            to_hidden[begin : begin + CHUNK] = project(shares, weight.t(), None)
            to_weight.add_(project(rows.t(), shares.t(), None))
            if to_bias is not None:
                to_bias.addmv_(shares.t(), ones[: len(rows)])
        found = (
            to_hidden.mul_(scale),
            to_weight.mul_(scale).t().contiguous(),
            None if to_bias is None else to_bias.mul_(scale),
        )
        ctx.save_for_backward(*found)
        objective = ((1 - smoothing) * nats + smoothing * shortfall) * scale
        ctx.mark_non_differentiable(nats)
        return objective.to(hidden.dtype), nats

    @staticmethod
    @once_differentiable  # second derivatives are refused rather than wrong
    def backward(ctx: Any, *received: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if received[0] != 1:  # the usual case, loss.backward(), needs no further pass
            gradients = tuple(None if gradient is None else gradient * received[0] for gradient in gradients)
        return *gradients, *[None] * 4


class SampledWords(Dropout):
    """Words that stand for the whole vocabulary in one step of training, drawn from the frequencies of the text. Scores
    never use it. What is drawn is a pure function of seed and step, as what is dropped."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.count, self.frequencies = 0, torch.empty(0)

    def choose(self, count: int, frequencies: Tensor) -> None:
        self.share, self.count, self.frequencies = 1.0, count, frequencies.double() / frequencies.sum()

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
        """The nats of each target, estimated: what a drawn word adds to the sum of exponentials is divided by the
        probability that it is drawn at all (Bengio and Senecal 2008). [token width], [entry width] -> [token]"""
        drawn = torch.multinomial(self.frequencies, self.count, replacement=True, generator=self.generator).unique()
        chance = -torch.expm1(self.count * torch.log1p(-self.frequencies[drawn]))
        drawn, chance = drawn.to(hidden.device), chance.to(hidden.device, hidden.dtype)
        logits = torch.addmm(-chance.log(), hidden, weight[drawn].t())  # token word
        own = (hidden * weight[targets]).sum(1)
        if bias is not None:
            logits, own = logits + bias[drawn], own + bias[targets]
        others = logits.masked_fill(drawn == targets[:, None], -torch.inf)
        return torch.cat((own[:, None], others), 1).logsumexp(1) - own


def widest(x: Tensor) -> torch.dtype:
    """What sums are made in; Apple's GPUs have no float64."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def answer_nats(logits: Tensor, shares: Tensor, answers: Tensor) -> Tensor:
    """-log of the answers' probabilities [token], exact also where a probability has underflowed."""
    chosen = shares.gather(1, answers)[:, 0]
    if chosen.min() > TINY:
        return -chosen.log()
    return logits.logsumexp(1) - logits.gather(1, answers)[:, 0]


@torch.no_grad()
def vocabulary_nats(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The negative log-likelihood of each target, for scoring. [token] -> [token], float64"""
    nats = hidden.new_empty(len(hidden), dtype=widest(hidden))
    for begin in range(0, len(hidden), CHUNK):
        logits = project(hidden[begin : begin + CHUNK], weight, bias)
        chosen = logits.gather(1, targets[begin : begin + CHUNK, None])[:, 0]
        nats[begin : begin + CHUNK] = logits.logsumexp(1) - chosen
    return nats
