"""Less memory for more time: a layer is computed again for its gradient instead of being kept.

Only what enters each layer is stored. Where parts let a token see near tokens only, a layer is computed stripe by
stripe along the text, each with as many neighbours as it can see, so that no more than one stripe's insides are ever in
memory. Numbers are the same to rounding. Dropout draws stripe by stripe, so it drops other numbers than in one piece;
the second time, the same as the first.

torch.utils.checkpoint does the first half. By hand it takes a fifth less time on stripes, the gradient of a stripe is
added in place, and the named dice of our dropout are wound back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from fairtrial.model.attention import View
from fairtrial.model.block import Block
from fairtrial.model.dropout import Dropout
from fairtrial.model.kept import Kept
from fairtrial.model.layout import Layout
from fairtrial.model.near import shortest_reach
from fairtrial.model.part import Part

STRIPE = 512  # tokens; half of it takes a quarter more time, twice of it a third more memory
LEAST_SHARE = 8  # a stripe is this many times what its tokens reach, so that neighbours are an eighth of the work


@dataclass(frozen=True)
class Stripe:
    """The tokens from `begin` to `end`, computed from those from `first` to `last`."""

    begin: int
    end: int
    first: int
    last: int
    view: View  # of the tokens from `first` to `last`
    layout: Layout  # of the tokens from `begin` to `end`

    def centre(self, x: Tensor) -> Tensor:
        """Real tokens from `first` to `last` -> those from `begin` to `end` [token width]"""
        inner = self.view.layout
        if (self.first, self.last) == (self.begin, self.end):
            return x
        if inner.batch == 1:  # the text's end is on the right: what is real of the centre lies side by side
            return x[self.begin - self.first : self.end - self.first]
        mine = (inner.positions >= self.begin - self.first) & (inner.positions < self.end - self.first)
        return x.index_select(0, mine.nonzero()[:, 0])


@dataclass(frozen=True)
class Plan:
    """How one pass runs: the stripes, the same tokens in one piece, and what the parts remember."""

    stripes: list[Stripe]
    whole: Stripe
    memory: Memory

    @classmethod
    def of(cls, view: View, parts: Sequence[Part]) -> Plan:
        whole = Stripe(0, view.layout.time, 0, view.layout.time, view, view.layout)
        return cls(cut(view, parts) or [whole], whole, Memory(parts))


def cut(view: View, parts: Sequence[Part]) -> list[Stripe]:
    """The stripes of a pass; none where some part sees far, or may look around in a way of its own."""
    layout = view.layout
    own_ways = any(
        part.owns("merge") or part.owns("carry") or (part.owns("turn") and not part.relative) for part in parts
    )
    reach = None if own_ways else shortest_reach(parts, view.causal)
    size = layout.time if reach is None else max(STRIPE, LEAST_SHARE * sum(reach))
    if reach is None or layout.time < 2 * size:
        return []
    back, ahead = reach
    masks: dict[int, Kept[Tensor]] = {}  # parts that have a reach know distances alone: equal stripes share a mask
    stripes = []
    for begin in range(0, layout.time, size):
        end = min(begin + size, layout.time)
        first, last = max(0, begin - back), min(layout.time, end + ahead)
        inner = View.of(_part_of(layout, first, last), view.causal, 0, view.dtype)
        places = torch.arange(first, last)
        shared = masks.setdefault(last - first, Kept()) if layout.lengths is None else Kept()
        inner = replace(inner, queries=places, keys=places, mask=shared)
        stripes.append(Stripe(begin, end, first, last, inner, _part_of(layout, begin, end)))
    return stripes


def _part_of(layout: Layout, first: int, last: int) -> Layout:
    if layout.lengths is None:
        return Layout.full(layout.batch, last - first)
    return Layout.ragged((layout.lengths - first).clamp(0, last - first), last - first)


def run_striped(block: Block, x: Tensor, plan: Plan, parts: Sequence[Part]) -> Tensor:
    """What `block` makes of a batch [batch time width], with little kept for the gradient."""

    def run(near: Tensor, stripe: Stripe) -> Tensor:
        """From `first` to `last` [batch time width] -> from `begin` to `end` [batch time width]"""
        made = block(stripe.view.layout.pack(near), stripe.view, parts, None, stripe.centre)
        return stripe.layout.spread(made)

    changing = Changing.of((block, *parts), plan.memory)
    weights = (*block.parameters(), *(weight for part in parts for weight in part.parameters()))
    made: Tensor = Recomputed.apply(x, run, plan, changing, *weights)
    return made


class Recomputed(torch.autograd.Function):
    """[batch time width] -> the same, stripe by stripe. The weights are named so that they get their gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        run: Callable[[Tensor, Stripe], Tensor],
        plan: Plan,
        changing: Changing,
        *weights: Tensor,
    ) -> Tensor:
        made, stripes, moments = torch.empty_like(x), plan.stripes, list[Moment]()
        for stripe in stripes:
            moments.append(changing.now())
            made[:, stripe.begin : stripe.end] = run(x[:, stripe.first : stripe.last], stripe)
        begun = moments[0]
        if len(stripes) > 1 and changing.now()[1] is not begun[1]:  # a part that counts passes is to see one
            changing.set(begun)
            made, stripes, moments = run(x, plan.whole), [plan.whole], [begun]
        ctx.run, ctx.stripes, ctx.changing, ctx.moments = run, stripes, changing, moments
        ctx.save_for_backward(x, *weights)
        return made

    @staticmethod
    @once_differentiable  # second derivatives are refused rather than wrong
    def backward(ctx: Any, received: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        to_x, whole = torch.zeros_like(x), torch.contiguous_format
        trained = [place for place, weight in enumerate(weights) if weight.requires_grad]
        found: list[Tensor | None] = [None] * len(weights)
        for stripe, moment in zip(ctx.stripes, ctx.moments, strict=True):
            near = x[:, stripe.first : stripe.last].detach().requires_grad_()
            with ctx.changing.back_at(moment), torch.enable_grad():
                made = ctx.run(near, stripe)
                # one number, whose gradient is what was received: torch.autograd.grad loads sympy when it is given more
                product = made.flatten().dot(received[:, stripe.begin : stripe.end].flatten())
            inputs = [near, *(weights[place] for place in trained)]
            to_near, *to_weights = torch.autograd.grad(product, inputs, allow_unused=True)
            to_x[:, stripe.first : stripe.last] += to_near
            for place, gradient in zip(trained, to_weights, strict=True):
                if gradient is not None:  # it may be another weight's, too, or a view: what is added to is ours
                    so_far = found[place]
                    found[place] = gradient.clone(memory_format=whole) if so_far is None else so_far.add_(gradient)
        return (to_x, None, None, None, *found)


class Memory:
    """What parts remember in their buffers, copied only when it has changed."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.buffers = [buffer for part in parts for buffer in part.buffers()]
        self._last: tuple[list[int], list[Tensor]] = ([], [])

    def now(self) -> list[Tensor]:
        """Copies; the same list while nothing has changed."""
        versions = [buffer._version for buffer in self.buffers]
        if self._last[0] != versions:
            self._last = (versions, [buffer.clone() for buffer in self.buffers])
        return self._last[1]

    def set(self, copies: list[Tensor]) -> None:
        for buffer, old in zip(self.buffers, copies, strict=True):
            if not torch.equal(buffer, old):  # one that is as it was may be waiting for a gradient: leave it alone
                buffer.copy_(old)


Moment = tuple[list[Tensor], list[Tensor]]


@dataclass(frozen=True)
class Changing:
    """What a pass may change: dice, and the parts' own memory."""

    dice: list[torch.Generator]
    memory: Memory

    @classmethod
    def of(cls, modules: Sequence[nn.Module], memory: Memory) -> Changing:
        found = [each for module in modules for each in module.modules() if isinstance(each, Dropout)]
        world = torch.default_generator  # a stranger's part may draw from it
        return cls([world, *(each.generator for each in found if each.drops)], memory)

    def now(self) -> Moment:
        return [each.get_state() for each in self.dice], self.memory.now()

    def set(self, moment: Moment) -> None:
        for generator, state in zip(self.dice, moment[0], strict=True):
            generator.set_state(state)
        self.memory.set(moment[1])

    @contextmanager
    def back_at(self, moment: Moment) -> Iterator[None]:
        """As it was at a moment, and then again as it is now."""
        present = self.now()
        self.set(moment)
        try:
            yield
        finally:
            self.set(present)
