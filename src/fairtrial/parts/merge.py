"""Merge: how the heads' outputs join, as a part each. At most one of them may be in a recipe.

`concat` concatenates them, as usual; `shuffle` in an order drawn once for each layer; `shift` rolls them by one head. A
linear layer follows, so both are equivalent to `concat` up to the random init. `reweight` weighs each head by the norm
of its output over all positions, which leaks the future, the padding and (over the batch) other rows: it is the control
that audits must catch. `reweight-causal` weighs by the norm at each position, which leaks nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, concatenate, parts
from fairtrial.recipe import Shape
from fairtrial.rng import generator_for


@parts.add("concat")
class Concat(Part):
    """Heads side by side, as usual."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads)


@parts.add("shuffle")
class Shuffle(Part):
    """Heads side by side in an order that is drawn once for each layer."""

    def __init__(self, shape: Shape, *, seed: int | None = None, every_step: bool = False) -> None:
        """`seed`: draws the orders, by default the trial's own; `every_step`: a new order for every pass in training
        (evaluation keeps the fixed one)."""
        super().__init__(shape)
        # `build_parts` seeds torch's generator by the trial's seed and this part's name
        self.seed = int(torch.randint(2**62, ())) if seed is None else seed
        self.every_step = every_step
        self.register_buffer("orders", torch.stack([self.draw(layer) for layer in range(shape.layers)]))
        if every_step:  # a buffer, so that checkpoints hold it and a resumed run draws what comes next
            self.register_buffer("passes", torch.zeros((), dtype=torch.long))

    def draw(self, *use: str | int) -> Tensor:
        return torch.from_numpy(generator_for(self.seed, "part", "shuffle", *use).permutation(self.shape.heads))

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        order = self.get_buffer("orders")[context.layer]
        if self.every_step and self.training:
            passes = self.get_buffer("passes")
            passes += context.layer == 0
            order = self.draw("step", int(passes), context.layer).to(heads.device)
        return concatenate(heads[:, order])


@parts.add("shift")
class Shift(Part):
    """Heads side by side, rolled by one head."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads.roll(-1, dims=1))  # head 2, 3, ..., 1


@parts.add("reweight")
class Reweight(Part):
    """Each head weighed by the norm of its whole output, which leaks the future: a control for audits."""

    def __init__(self, shape: Shape, *, over: str = "batch") -> None:
        """`over`: 'batch' (one norm for all rows) or 'row' (a norm for each row)."""
        super().__init__(shape)
        if over not in ("batch", "row"):
            raise BadInput(f"reweight: over must be 'batch' or 'row', got {over!r}")
        self.over = over

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        axes = (0, 2, 3) if self.over == "batch" else (2, 3)
        norms = torch.linalg.vector_norm(heads, dim=axes, keepdim=True)  # 1 or batch, head, 1, 1
        return concatenate(heads * norms / norms.sum(1, keepdim=True).clamp(min=1e-12) * self.shape.heads)


@parts.add("reweight-causal")
class CausalReweight(Part):
    """Each head weighed, position by position, by the norm of its output there."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        norms = heads.norm(dim=-1, keepdim=True)  # batch head time 1
        return concatenate(heads * norms / norms.sum(1, keepdim=True).clamp(min=1e-12) * self.shape.heads)
