"""One block: attention and a feed-forward layer, each beside a residual, with its norm before it or behind the sum.

Less memory for more time: a layer is computed again for its gradient instead of being kept.

Only what enters each layer is stored. Where parts let a token see near tokens only, a layer is computed stripe by
stripe along the text, each with as many neighbours as it can see, so that no more than one stripe's insides are ever in
memory. Numbers are the same to rounding. Dropout draws stripe by stripe, so it drops other numbers than in one piece;
the second time, the same as the first.

torch.utils.checkpoint does the first half. By hand it takes a fifth less time on stripes, the gradient of a stripe is
added in place, and the named rng of our dropout are wound back.

Networks: an encoder with a classifier, and a decoder language model, around one shared body.

A masked language model: an encoder that guesses the words that were hidden from it (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805). What it learns is its body: a start for a classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.functional import cross_entropy, gelu, pad

from fairtrial.errors import BadInput
from fairtrial.model.attention import Attention, Cache, View
from fairtrial.model.layers import Dropout, start
from fairtrial.model.layout import Layout
from fairtrial.model.local_attention import shortest_reach
from fairtrial.model.loss import Scratch, VocabularyLoss, vocabulary_nats
from fairtrial.model.part import Kept, Part, build_parts
from fairtrial.recipe import PartChoice, Shape

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
}


def make_norm(shape: Shape) -> nn.Module:
    kind = nn.LayerNorm if shape.norm == "layer" else nn.RMSNorm
    return kind(shape.width, eps=shape.norm_epsilon)


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.hidden)
        self.down = nn.Linear(shape.hidden, shape.width)
        self.activation = ACTIVATIONS[shape.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


Choose = Callable[[Tensor], Tensor]


def everyone(x: Tensor) -> Tensor:
    return x


def carried(x: Tensor, read: Tensor, parts: Sequence[Part], centre: Choose = everyone) -> Tensor:
    """What a layer's output is added to, of the `centre`'s tokens [token width]"""
    stream = centre(x)
    for part in parts:
        if part.owns("residual"):
            stream = part.residual(stream, centre(read))
    return stream


class Block(nn.Module):
    """Pre-norm: each layer reads a normed copy, and the residual stream stays as it is (GPT-2)."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = make_norm(shape), Attention(shape, layer)
        self.forward_norm, self.feed_forward = make_norm(shape), FeedForward(shape)
        self.attention_dropout, self.forward_dropout = Dropout(shape.dropout), Dropout(shape.dropout)

    def forward(
        self, x: Tensor, view: View, parts: Sequence[Part], cache: Cache | None = None, centre: Choose = everyone
    ) -> Tensor:
        """[token width] -> [token width]; only those of the `centre` go on, the others are there to be seen"""
        read = self.attention_norm(x)
        seen = centre(self.attention(read, view, parts, cache))
        x = carried(x, read, parts, centre) + self.attention_dropout(seen)
        read = self.forward_norm(x)
        return carried(x, read, parts) + self.forward_dropout(self.feed_forward(read))


class PostBlock(Block):
    """Post-norm: what a layer adds is normed together with the stream (Vaswani et al. 2017, BERT)."""

    def forward(
        self, x: Tensor, view: View, parts: Sequence[Part], cache: Cache | None = None, centre: Choose = everyone
    ) -> Tensor:
        """[token width] -> [token width]; only those of the `centre` go on, the others are there to be seen"""
        seen = centre(self.attention(x, view, parts, cache))
        x = self.attention_norm(carried(x, x, parts, centre) + self.attention_dropout(seen))
        return self.forward_norm(carried(x, x, parts) + self.forward_dropout(self.feed_forward(x)))


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
        part.owns("merge") or part.owns("residual") or (part.owns("rotate") and not part.relative) for part in parts
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
        return stripe.layout.unpack(made)

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
    """What a pass may change: rng, and the parts' own memory."""

    rng: list[torch.Generator]
    memory: Memory

    @classmethod
    def of(cls, modules: Sequence[nn.Module], memory: Memory) -> Changing:
        found = [each for module in modules for each in module.modules() if isinstance(each, Dropout)]
        world = torch.default_generator  # a stranger's part may draw from it
        return cls([world, *(each.generator for each in found if each.drops)], memory)

    def now(self) -> Moment:
        return [each.get_state() for each in self.rng], self.memory.now()

    def set(self, moment: Moment) -> None:
        for generator, state in zip(self.rng, moment[0], strict=True):
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


class Body(nn.Module):
    """Tokens in, one vector for each real token out."""

    def __init__(
        self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, causal: bool, seed: int
    ) -> None:
        super().__init__()
        self.shape, self.causal = shape, causal
        self.save_memory = False  # in training, compute each layer again for its gradient instead of keeping it
        self.tokens = nn.Embedding(vocabulary, shape.width)
        self.parts = build_parts(choices, shape, seed)
        self.dropout = Dropout(shape.dropout)
        kind = Block if shape.norm_place == "pre" else PostBlock
        self.blocks = nn.ModuleList(kind(shape, layer) for layer in range(shape.layers))
        self.norm = make_norm(shape)  # of what leaves pre-norm blocks, of what enters post-norm ones

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: Cache | None = None) -> tuple[Tensor, Layout]:
        """Token ids [batch time], real tokens in each row [batch] -> vectors of the real tokens [token width]"""
        batch, time = ids.shape
        past = cache.length if cache is not None else 0
        layout = Layout.full(batch, time, past) if lengths is None else Layout.ragged(lengths, time)
        if cache is not None and lengths is not None:
            raise BadInput("cached decoding takes rows of equal length")
        parts = self.listed_parts()
        x = self.tokens(layout.pack(ids))
        for part in parts:
            x = part.embed(x, layout.positions)
        before = self.shape.norm_place == "post"
        x = self.dropout(self.norm(x) if before else x)
        if not self.causal:
            x, layout = with_prefixes(x, layout, parts)
        view = View.of(layout, self.causal, past, x.dtype)
        if self.save_memory and cache is None and torch.is_grad_enabled() and not self.watched():
            plan, whole = Plan.of(view, parts), layout.unpack(x)
            for block in self.blocks:
                whole = run_striped(cast(Block, block), whole, plan, parts)
            x = layout.pack(whole)
        else:
            for block in self.blocks:
                x = block(x, view, parts, cache)
        if cache is not None:
            cache.length += time
        return x if before else self.norm(x), layout

    def watched(self) -> bool:
        """Whether somebody wants to see attention as it happens."""
        return any(cast(Block, block).attention.maps.watcher is not None for block in self.blocks)

    def listed_parts(self) -> list[Part]:
        return cast(list[Part], list(self.parts.values()))


def with_prefixes(x: Tensor, layout: Layout, parts: Sequence[Part]) -> tuple[Tensor, Layout]:
    """Sentences with the parts' prefix vectors before them; positions in attention count from the first prefix."""
    found = [prefix for prefix in (part.prefix() for part in parts) if prefix is not None]
    if not found:
        return x, layout
    before = torch.cat(found).to(x.dtype)  # vector width
    whole = torch.cat((before.expand(layout.batch, -1, -1), layout.unpack(x)), dim=1)
    if layout.lengths is None:
        layout = Layout.full(layout.batch, layout.time + len(before))
    else:
        layout = Layout.ragged(layout.lengths + len(before), layout.time + len(before))
    return layout.pack(whole), layout


class Classifier(nn.Module):
    """An encoder, the mean over real tokens, and a classifier with one hidden layer."""

    def __init__(
        self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, classes: int, *, seed: int = 0
    ) -> None:
        super().__init__()
        with preserve_rng():
            self.body = Body(shape, choices, vocabulary, causal=False, seed=seed)
            self.hidden = nn.Linear(shape.width, shape.classifier_hidden)
            self.out = nn.Linear(shape.classifier_hidden, classes)
        chosen = shape.classifier_activation
        self.activation = ACTIVATIONS[shape.activation if chosen == "same" else chosen]
        start(self, shape.start, seed)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> logits [batch class]"""
        x, layout = self.body(ids, lengths)
        owner = next((part for part in self.body.listed_parts() if part.owns("pool")), None)
        pooled = layout.mean(x) if owner is None else owner.pool(layout.unpack(x), layout.real())
        return self.out(self.activation(self.hidden(pooled)))

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """(objective x scale, summed nats)"""
        logits = self(ids, lengths)
        nats = cross_entropy(logits, answers, reduction="sum")
        if not smoothing:
            return nats * scale, nats.detach().double()
        smoothed = cross_entropy(logits, answers, reduction="sum", label_smoothing=smoothing)
        return smoothed * scale, nats.detach().double()


class LanguageModel(nn.Module):
    """A decoder: each token sees itself and those before it, and predicts the next."""

    def __init__(self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        with preserve_rng():
            self.body = Body(shape, choices, vocabulary, causal=True, seed=seed)
            self.out = nn.Linear(shape.width, vocabulary, bias=shape.output_bias)
        self.scratch = Scratch()
        start(self, shape.start, seed)
        if shape.tied:
            self.out.weight = self.body.tokens.weight

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """[batch time] -> logits of the next token [batch time entry], zeros at padding"""
        x, layout = self.body(ids, lengths, cache)
        return layout.unpack(self.out(x))

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Next tokens [batch time] -> (objective x scale, summed nats) over real tokens"""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(answers)
        return VocabularyLoss.apply(x, self.out.weight, self.out.bias, answers, smoothing, scale, self.scratch)

    @torch.no_grad()
    def nll(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, counted: Tensor | None = None) -> Tensor:
        """Nats of each real target, in reading order [token]; only where `counted` [batch time], if given."""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(answers)
        if counted is not None:
            chosen = layout.pack(counted).nonzero()[:, 0]
            x, answers = x.index_select(0, chosen), answers.index_select(0, chosen)
        return vocabulary_nats(x, self.out.weight, self.out.bias, answers)


def preserve_rng() -> AbstractContextManager[None]:
    """torch's layers draw their first weights from the world's generator; ours are drawn again, by name (`start`)."""
    return torch.random.fork_rng(devices=[])


def count_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


class MaskedModel(nn.Module):
    """Body, a layer with a norm, the vocabulary: the head of BERT and RoBERTa, and their gelu in it."""

    def __init__(self, shape: Shape, choices: Sequence[PartChoice], vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        with preserve_rng():
            self.body = Body(shape, choices, vocabulary, causal=False, seed=seed)
            self.hidden = nn.Linear(shape.width, shape.width)
            self.out = nn.Linear(shape.width, vocabulary)
        self.norm = make_norm(shape)
        self.scratch = Scratch()
        start(self, shape.start, seed)
        if shape.tied:
            self.out.weight = self.body.tokens.weight

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> logits of the token at each place [batch time entry], zeros at padding"""
        x, layout = self.body(ids, lengths)
        return layout.unpack(self.out(self.read(x)))

    def read(self, x: Tensor) -> Tensor:
        """[token width] -> [token width]"""
        return self.norm(gelu(self.hidden(x)))

    def hidden_places(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors and answers of the places to guess: those whose answer is not below 0. [guess width], [guess]"""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(pad(answers, (layout.time - answers.shape[1], 0), value=-1))  # a prefix is no answer
        chosen = (answers >= 0).nonzero()[:, 0]
        return self.read(x.index_select(0, chosen)), answers.index_select(0, chosen)

    def loss(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        """(objective x scale, summed nats) over the places to guess"""
        x, wanted = self.hidden_places(ids, lengths, answers)
        return VocabularyLoss.apply(x, self.out.weight, self.out.bias, wanted, smoothing, scale, self.scratch)

    @torch.no_grad()
    def nll(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> Tensor:
        """Nats of each place to guess, in reading order [guess]"""
        x, wanted = self.hidden_places(ids, lengths, answers)
        return vocabulary_nats(x, self.out.weight, self.out.bias, wanted)
