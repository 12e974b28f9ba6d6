"""Experts: a mixture of feed-forward layers, of which a router chooses a few for each token (Shazeer et al. 2017,
https://arxiv.org/abs/1701.06538). With `top` = 1 the router's probability weighs the expert, as in the Switch
Transformer (https://arxiv.org/abs/2101.03961); with more, the probabilities of the chosen sum to one, as in Mixtral
(https://arxiv.org/abs/2401.04088). The first expert is the block's own layer. Experts are kept equally busy without a
second loss: those with little load get a bonus when they are chosen, `balance` at each batch (Wang et al. 2024,
https://arxiv.org/abs/2408.15664). The load of each expert over about the last hundred training batches is reported."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import FeedForward, Part, parts
from fairtrial.recipe import Shape

MEMORY = 0.99  # of the load that is reported


@parts.add("experts")
class Experts(Part):
    def __init__(self, shape: Shape, *, experts: int = 4, top: int = 2, balance: float = 0.001) -> None:
        """`experts`: how many there are; `top`: how many see a token; `balance`: step of the bonus, 0: none."""
        super().__init__(shape)
        if not 1 <= top <= experts or experts < 2 or not balance >= 0:
            what = f"experts: top must be from 1 to experts, got {top} of {experts}, and balance at least 0"
            raise BadInput(what, "experts = 4, top = 2, balance = 0.001")
        self.experts, self.top, self.balance = experts, top, balance
        self.routers = nn.ModuleList(nn.Linear(shape.width, experts, bias=False) for _ in range(shape.layers))
        self.others = nn.ModuleList(
            nn.ModuleList(FeedForward(shape) for _ in range(experts - 1)) for _ in range(shape.layers)
        )
        self.register_buffer("bonus", torch.zeros(shape.layers, experts))
        self.register_buffer("load", torch.full((shape.layers, experts), 1 / experts))

    def feed_forward(self, x: Tensor, own: FeedForward, layer: int) -> Tensor:
        shares = self.routers[layer](x).softmax(-1)  # token expert
        chosen = (shares + self.get_buffer("bonus")[layer]).topk(self.top, dim=-1).indices  # token top
        taken = torch.zeros_like(shares).scatter(-1, chosen, 1.0)
        weights = shares * taken
        if self.top > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        given = torch.zeros_like(x)
        for number, expert in enumerate((own, *self.others[layer])):  # type: ignore[misc]
            tokens = taken[:, number].nonzero()[:, 0]
            weighed = expert(x.index_select(0, tokens)) * weights[:, number].index_select(0, tokens)[:, None]
            given = given.index_add(0, tokens, weighed)
        if self.training:
            self.note(taken.detach().mean(0) / self.top, layer)
        return given

    def note(self, load: Tensor, layer: int) -> None:
        """After a batch, whose share each expert had [expert]"""
        self.get_buffer("bonus")[layer] += self.balance * (1 / self.experts - load).sign()
        self.get_buffer("load")[layer].lerp_(load, 1 - MEMORY)

    def notes(self) -> list[str]:
        rows = (", ".join(f"{share:.0%}" for share in layer) for layer in self.get_buffer("load").tolist())
        return [f"load of the experts in layer {number}: {row}" for number, row in enumerate(rows, 1)]
