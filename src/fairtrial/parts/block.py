"""Block: the text is cut into blocks, and a token sees its own block only (Qiu et al. 2019,
https://arxiv.org/abs/1911.02972)."""

from __future__ import annotations

from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("block")
class Blocks(Part):
    sees_order = True

    def __init__(self, shape: Shape, *, size: int = 8) -> None:
        super().__init__(shape)
        if size < 1:
            raise BadInput(f"block: size must be at least 1, got {size}")
        self.size = size
        self.sees_order = size > 1  # a token that sees itself alone knows of no order

    def allow(self, context: AttentionContext) -> Tensor:
        return context.queries[:, None] // self.size == context.keys[None, :] // self.size
