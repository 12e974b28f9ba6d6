"""What a network costs in arithmetic: floating-point operations of its matrix products, as torch's own counter counts
them (a multiplication and an addition are two).

Everything is counted at full length: each row holds `length` real tokens. Attention is counted as its equation says,
also where a mask hides half of it; a window that skips what it cannot reach is counted as it runs. Sums, norms,
activations and look-ups are not counted. A step is a forward and a backward pass over the batch; of
masked words, as if every word had to be guessed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from fairtrial.look.ledger import Network, fresh_network
from fairtrial.model.masked import MaskedModel
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import Recipe


@dataclass(frozen=True)
class FlopRow:
    component: str
    formula: str
    flops: int  # forward, for one full row


@dataclass(frozen=True)
class Flops:
    rows: tuple[FlopRow, ...]
    backward: int  # for one full row
    length: int
    rows_in_step: int  # rows of `length` tokens in one training step

    @property
    def forward(self) -> int:
        return sum(row.flops for row in self.rows)

    @property
    def per_token(self) -> float:
        """Forward, at full length."""
        return self.forward / self.length

    @property
    def per_step(self) -> int:
        """Forward and backward over all rows of a step."""
        return (self.forward + self.backward) * self.rows_in_step


def flops(recipe: Recipe, vocabulary: int, classes: int = 0) -> Flops:
    """What a recipe's network costs: nothing is trained."""
    training = recipe.training
    return flops_of(fresh_network(recipe, vocabulary, classes), rows_in_step=training.batch * training.accumulate)


def flops_of(network: Network, *, rows_in_step: int = 1) -> Flops:
    """Linear layers and attention by their formulas; what parts add, by torch's counter, which runs one row."""
    shape, length = network.body.shape, network.body.shape.length
    forward, backward = counted(network, length)
    prefixes = sum(len(found) for part in network.body.listed_parts() if (found := part.prefix()) is not None)
    seen = length if network.body.causal else length + prefixes  # only an encoder sets vectors before a sentence
    qkv = product(shape.layers, 2, seen, 3, shape.width, shape.width)
    out = product(shape.layers, 2, seen, shape.width, shape.width)
    feed = product(shape.layers, 2, 2, seen, shape.width, shape.hidden)
    rows = [
        FlopRow("attention: queries, keys, values", *qkv),
        FlopRow("attention: output", *out),
        FlopRow("feed-forward", *feed),
        head_row(network, length),
    ]
    scores = FlopRow("attention: scores and sums", *product(shape.layers, 2, 2, seen, seen, shape.width))
    rest = forward - sum(row.flops for row in rows) - scores.flops
    if rest < 0:  # attention skipped what its parts cannot reach
        scores = FlopRow("attention: scores and sums", "as it runs: only what a window reaches", scores.flops + rest)
    rows.insert(1, scores)
    if rest > 0:
        rows.append(FlopRow("parts", "counted as they run", rest))
    return Flops(tuple(rows), backward, length, rows_in_step)


def head_row(network: Network, length: int) -> FlopRow:
    if isinstance(network, LanguageModel):
        return FlopRow("output layer", *product(2, length, network.out.in_features, network.out.out_features))
    hidden, out = network.hidden, network.out
    if isinstance(network, MaskedModel):
        layers = f"({hidden.in_features} × {hidden.out_features} + {out.in_features} × {out.out_features:,})"
        every = 2 * length * (hidden.weight.numel() + out.weight.numel())
        return FlopRow("output layer", f"2 × {length:,} × {layers}", every)
    size = 2 * (hidden.in_features * hidden.out_features + out.in_features * out.out_features)
    told = f"2 × ({hidden.in_features} × {hidden.out_features} + {out.in_features} × {out.out_features})"
    return FlopRow("classifier", f"{told}, once a row", size)


def product(*numbers: int) -> tuple[str, int]:
    """Its formula and its value."""
    value = 1
    for number in numbers:
        value *= number
    return " × ".join(f"{number:,}" for number in numbers), value


def counted(network: Network, length: int) -> tuple[int, int]:
    """Forward and backward of one full row, by torch's counter. It cannot look into a fused kernel or into our loss, so
    the row runs attention in plain products and a plain loss."""
    was_training = network.training
    network.eval()
    ids = torch.zeros(1, length, dtype=torch.long)
    counter = partial(FlopCounterMode, display=False)
    try:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            with counter() as forward:
                logits = network(ids)
            loss = cross_entropy(logits.flatten(0, -2), torch.zeros(logits.shape[:-1], dtype=torch.long).flatten())
            learnt = [parameter for parameter in network.parameters() if parameter.requires_grad]
            with counter() as backward:  # not loss.backward(): the network's own gradients stay as they are
                torch.autograd.grad(loss, learnt, allow_unused=True)
    finally:
        network.train(was_training)
    return forward.get_total_flops(), backward.get_total_flops()
