"""Window: local attention. A window of 8 shows a token itself and the 7 before it; in an encoder, 4 on
each side (Beltagy et al. 2020, https://arxiv.org/abs/2004.05150)."""

from __future__ import annotations

from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("window")
class Window(Part):
    sees_order = True

    def __init__(self, shape: Shape, *, size: int = 8, global_tokens: int = 0) -> None:
        """`size`: tokens in the window; `global_tokens`: so many first tokens see all and are seen by all."""
        super().__init__(shape)
        if size < 1 or global_tokens < 0:
            least = "size must be at least 1 and global_tokens at least 0"
            raise BadInput(f"window: {least}, got {size} and {global_tokens}")
        self.size, self.global_tokens = size, global_tokens
        self.relative = global_tokens == 0
        self.sees_order = size > 1 or global_tokens > 0  # a token that sees itself alone knows of no order

    def allow(self, context: AttentionContext) -> Tensor:
        near = context.offset.abs() <= self.size // 2 if not context.causal else context.offset < self.size
        if self.global_tokens:
            near = near | (context.keys[None, :] < self.global_tokens) | (context.queries[:, None] < self.global_tokens)
        return near

    def window(self, causal: bool) -> tuple[int, int] | None:
        if self.global_tokens:
            return None
        return (self.size - 1, 0) if causal else (self.size // 2, self.size // 2)
