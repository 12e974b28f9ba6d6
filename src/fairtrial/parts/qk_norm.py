"""QK-norm: queries and keys are normed, head by head, before any positions (Henry et al. 2020,
https://arxiv.org/abs/2010.04245). By RMSNorm with a learned scale, as in Qwen3 and OLMo 2."""

from __future__ import annotations

from torch import Tensor, nn

from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("qk-norm")
class QKNorm(Part):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.queries, self.keys = (
            nn.ModuleList(nn.RMSNorm(shape.head_dim, eps=shape.norm_epsilon) for _ in range(shape.layers))
            for _ in range(2)
        )

    def project(self, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        return self.queries[context.layer](q), self.keys[context.layer](k), v
