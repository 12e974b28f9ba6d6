"""Networks: a classifier, a language model and a masked language model around one body of transformer blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, pad

from fairtrial.environment import check_memory
from fairtrial.errors import BadInput
from fairtrial.model.attention import EAGER, Attention, ForwardContext, KVCache, Layout
from fairtrial.model.layers import ACTIVATIONS, Dropout, FeedForward, WordDropout, own_rng
from fairtrial.model.loss import SampledWords, Scratch, VocabularyLoss, vocabulary_nats, widest
from fairtrial.model.part import SMALL_INIT, Part, build_parts, find_override, parts
from fairtrial.recipe import PartChoice, Recipe, Shape
from fairtrial.rng import seed_for

MODULE_BYTES = 20_000  # of Python objects, for each block

Loss = tuple[Tensor, Tensor]  # the objective, the summed nats
Choices = Sequence[PartChoice]


def make_norm(shape: Shape) -> nn.Module:
    kind = nn.LayerNorm if shape.norm == "layer" else nn.RMSNorm
    return kind(shape.width, eps=shape.norm_epsilon)


class Block(nn.Module):
    """Pre-norm: each layer reads a normed copy, and the residual stream stays as it is (GPT-2)."""

    def __init__(self, shape: Shape, layer: int, key_heads: int | None = None, *, forward_bias: bool = True) -> None:
        super().__init__()
        self.attention_norm, self.attention = make_norm(shape), Attention(shape, layer, key_heads)
        self.forward_norm, self.feed_forward = make_norm(shape), FeedForward(shape, bias=forward_bias)
        self.attention_dropout, self.forward_dropout = Dropout(shape.dropout), Dropout(shape.dropout)

    def forward(
        self, x: Tensor, forward: ForwardContext, parts: Sequence[Part], cache: KVCache | None = None
    ) -> Tensor:
        """[token width] -> [token width]"""
        if (arranger := find_override(parts, "arrange")) is not None:
            return arranger.arrange(
                x,
                lambda x: self.attended(self.attention_norm(x), forward, parts, cache),
                lambda x: self.fed_forward(self.forward_norm(x), parts),
                self.attention.layer,
            )
        normed = self.attention_norm(x)
        x = residual(x, normed, parts) + self.attended(normed, forward, parts, cache)
        normed = self.forward_norm(x)
        return residual(x, normed, parts) + self.fed_forward(normed, parts)

    def attended(self, x: Tensor, forward: ForwardContext, parts: Sequence[Part], cache: KVCache | None) -> Tensor:
        return self.attention_dropout(self.attention(x, forward, parts, cache))

    def fed_forward(self, x: Tensor, parts: Sequence[Part]) -> Tensor:
        part = find_override(parts, "feed_forward")
        fed = self.feed_forward(x) if part is None else part.feed_forward(x, self.feed_forward, self.attention.layer)
        return self.forward_dropout(fed)


class PostBlock(Block):
    """Post-norm: the sum of a layer's output and the stream is normed (Vaswani et al. 2017, BERT)."""

    def forward(
        self, x: Tensor, forward: ForwardContext, parts: Sequence[Part], cache: KVCache | None = None
    ) -> Tensor:
        """[token width] -> [token width]"""
        x = residual(x, x, parts) + self.attended(x, forward, parts, cache)
        x = self.attention_norm(x)
        return self.forward_norm(residual(x, x, parts) + self.fed_forward(x, parts))


def residual(x: Tensor, read: Tensor, parts: Sequence[Part]) -> Tensor:
    """What a layer's output is added to [token width]; `read` is what the layer got."""
    for part in parts:
        if part.overrides("residual"):
            x = part.residual(x, read)
    return x


def memory_needed(shape: Shape, vocabulary: int, tables: int = 1) -> int:
    """Bytes of the weights, about; `tables`: those over the vocabulary, embedding and output layer."""
    weights = shape.layers * (4 * shape.width**2 + 2 * shape.width * shape.hidden) + tables * vocabulary * shape.width
    return 4 * weights + MODULE_BYTES * shape.layers


def training_memory(recipe: Recipe, vocabulary: int, rows: int) -> int:
    """Bytes that training on so many rows at once takes, about: weights, their gradients, moments and best copy, two
    copies more when they are stored at the end, and what each block keeps of each token for its gradient."""
    shape, training = recipe.shape, recipe.training
    moments = {"sgd": 0, "adagrad": 1}.get(training.optimizer, 2)
    copies = 4 + moments + (training.keep == "best")
    numbers = shape.width * (10 + 2 * (shape.dropout > 0)) + shape.hidden * (1 if shape.activation == "relu" else 2)
    if shape.attention_dropout or any(EAGER & parts.find(choice.name).hooks for choice in recipe.parts):
        numbers += shape.heads * shape.length * (4 if shape.attention_dropout else 2)  # maps: no fused kernel
    kept = 4 * rows * shape.length * shape.layers * (numbers + shape.width)
    return copies * memory_needed(shape, vocabulary, 1 if recipe.task == "classify" or shape.tied else 2) + kept


class Body(nn.Module):
    """Tokens in, one vector for each real token out."""

    def __init__(self, shape: Shape, choices: Choices, vocabulary: int, *, causal: bool, seed: int) -> None:
        super().__init__()
        if not shape.length:
            raise BadInput("shape.length = 0 leaves the length open until data are read", "give a length")
        check_memory(memory_needed(shape, vocabulary), "the network")
        self.shape, self.causal = shape, causal
        self.tokens = nn.Embedding(vocabulary, shape.width)
        self.parts = build_parts(choices, shape, seed, causal=causal)
        self.dropout, self.word_dropout = Dropout(shape.dropout), WordDropout(shape.embedding_dropout)
        kind = Block if shape.norm_place == "pre" else PostBlock
        sharer = find_override(self.listed_parts(), "key_heads")
        key_heads = None if sharer is None else sharer.key_heads()
        bias = all(part.forward_bias for part in self.listed_parts())
        self.blocks = nn.ModuleList(kind(shape, layer, key_heads, forward_bias=bias) for layer in range(shape.layers))
        self.norm = make_norm(shape)  # of what leaves pre-norm blocks, of what enters post-norm ones

    def forward(
        self, ids: Tensor, lengths: Tensor | None = None, cache: KVCache | None = None
    ) -> tuple[Tensor, Layout]:
        """Token ids [batch time], real tokens in each row [batch] -> vectors of the real tokens [token width]"""
        batch, time = ids.shape
        past = cache.length if cache is not None else 0
        if lengths is None:
            layout = Layout.full(batch, time, past, device=ids.device)
        else:
            layout = Layout.ragged(lengths, time, ids.device)
        if cache is not None and lengths is not None:
            raise BadInput("cached decoding takes rows of equal length")
        parts = self.listed_parts()
        x = self.word_dropout(self.tokens(layout.pack(ids)))
        for part in parts:
            x = part.embed(x, layout.positions)
        before = self.shape.norm_place == "post"
        x = self.dropout(self.norm(x) if before else x)
        if not self.causal:
            x, layout = with_prefixes(x, layout, parts)
        forward = ForwardContext(layout, self.causal, past, x.dtype)
        for block in self.blocks:
            x = block(x, forward, parts, cache)
        if cache is not None:
            cache.length += time
        return x if before else self.norm(x), layout

    def listed_parts(self) -> list[Part]:
        return cast(list[Part], list(self.parts.values()))


def with_prefixes(x: Tensor, layout: Layout, parts: Sequence[Part]) -> tuple[Tensor, Layout]:
    """Sentences with the parts' prefix vectors before them; positions in attention count from the first prefix."""
    found = [prefix for prefix in (part.prefix() for part in parts) if prefix is not None]
    if not found:
        return x, layout
    before = torch.cat(found).to(x.dtype)  # vector width
    x = torch.cat((before.expand(layout.batch, -1, -1), layout.unpack(x)), dim=1)
    layout = Layout.ragged(layout.real().sum(1) + len(before), layout.time + len(before))
    return layout.pack(x), layout


class Classifier(nn.Module):
    """An encoder, the mean over real tokens, and a classifier with one hidden layer."""

    precision = "float32"  # of forward passes; a task sets it

    def __init__(self, shape: Shape, choices: Choices, vocabulary: int, classes: int, *, seed: int = 0) -> None:
        super().__init__()
        with own_rng():  # `init_weights` draws all weights again, by name
            self.body = Body(shape, choices, vocabulary, causal=False, seed=seed)
            self.hidden = nn.Linear(shape.width, shape.classifier_hidden)
            self.out = nn.Linear(shape.classifier_hidden, classes)
        chosen = shape.classifier_activation
        self.activation = ACTIVATIONS[shape.activation if chosen == "same" else chosen]
        init_weights(self, shape, seed)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> logits [batch class]"""
        x, layout = self.body(ids, lengths)
        pooler = find_override(self.body.listed_parts(), "pool")
        pooled = layout.mean(x) if pooler is None else pooler.pool(layout.unpack(x), layout.real())
        return self.out(self.activation(self.hidden(pooled)))

    def loss(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float) -> Loss:
        """(objective x scale, summed nats)"""
        logits = self(ids, lengths)
        nats = cross_entropy(logits, answers, reduction="sum")
        smoothed = cross_entropy(logits, answers, reduction="sum", label_smoothing=smoothing) if smoothing else nats
        return smoothed * scale, nats.detach().to(widest(nats))


class VocabularyModel(nn.Module):
    """A body and an output layer over the vocabulary."""

    precision = "float32"  # of forward passes; a task sets it
    causal: bool
    out: nn.Linear

    def __init__(self, shape: Shape, choices: Choices, vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        with own_rng():  # `init_weights` draws all weights again, by name
            self.body = Body(shape, choices, vocabulary, causal=self.causal, seed=seed)
            self.add_head(shape, vocabulary)
        self.dropout, self.sampled = Dropout(shape.embedding_dropout), SampledWords()
        self.scratch = Scratch()
        init_weights(self, shape, seed)
        if shape.tied:
            self.out.weight = self.body.tokens.weight

    def add_head(self, shape: Shape, vocabulary: int) -> None:
        self.out = nn.Linear(shape.width, vocabulary, bias=shape.output_bias)

    def read(self, x: Tensor) -> Tensor:
        """What the output layer gets [token width]"""
        return x

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """[batch time] -> logits [batch time entry], zeros at padding"""
        x, layout = self.body(ids, lengths, cache)
        return layout.unpack(self.out(self.read(x)))

    def answered(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors and answers of the real tokens whose answer is not below 0. [answer width], [answer]"""
        x, layout = self.body(ids, lengths)
        answers = layout.pack(pad(answers, (layout.time - answers.shape[1], 0), value=-1))  # a prefix is no answer
        chosen = (answers >= 0).nonzero()[:, 0]
        if len(chosen) < len(answers):
            x, answers = x.index_select(0, chosen), answers.index_select(0, chosen)
        return self.dropout(self.read(x)), answers

    def logits_of(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and answers of the real tokens whose answer is not below 0 [answer entry], [answer]"""
        x, targets = self.answered(ids, lengths, answers)
        return self.out(x), targets

    def loss(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float) -> Loss:
        """(objective x scale, summed nats) over the answers"""
        x, targets = self.answered(ids, lengths, answers)
        with self.exactly(x):
            if self.training and self.sampled.count:
                nats = self.sampled.loss(x.to(self.out.weight.dtype), self.out.weight, self.out.bias, targets).sum()
                return nats * scale, nats.detach().to(widest(nats))
            how = (targets, smoothing, scale, self.scratch)
            return VocabularyLoss.apply(x.to(self.out.weight.dtype), self.out.weight, self.out.bias, *how)

    def exactly(self, x: Tensor) -> AbstractContextManager[object]:
        """The loss is computed in the weights' own precision, also where the network computes in less."""
        return nullcontext() if self.precision == "float32" else torch.autocast(x.device.type, enabled=False)

    @property
    def length(self) -> int:
        return self.body.shape.length

    def new_cache(self) -> KVCache:
        return KVCache(len(self.body.blocks))

    @torch.no_grad()
    def nll(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> Tensor:
        """Nats of each answer, in reading order [answer]"""
        x, targets = self.answered(ids, lengths, answers)
        with self.exactly(x):
            return vocabulary_nats(x.to(self.out.weight.dtype), self.out.weight, self.out.bias, targets)


class LanguageModel(VocabularyModel):
    """A decoder: each token sees itself and those before it, and predicts the next."""

    causal = True


class MaskedModel(VocabularyModel):
    """Body, a layer with a norm, the vocabulary: the head of BERT and RoBERTa, and their gelu in it."""

    causal = False

    def add_head(self, shape: Shape, vocabulary: int) -> None:
        self.hidden = nn.Linear(shape.width, shape.width)
        self.out = nn.Linear(shape.width, vocabulary)
        self.norm = make_norm(shape)

    def read(self, x: Tensor) -> Tensor:
        return self.norm(gelu(self.hidden(x)))


EMBEDDING_INIT = 0.3  # of `scaled` embeddings that are not the output layer, too


@torch.no_grad()
def init_weights(network: nn.Module, shape: Shape, seed: int) -> None:
    """Draw every embedding and linear layer, each parameter from a stream of its own name, so that variants at one seed
    share what they have in common. Norms and the bare parameters of parts stay as they were built."""

    def stream(name: str) -> torch.Generator:
        return torch.Generator().manual_seed(seed_for(seed, "init", name))

    how, tied = shape.start, shape.tied and isinstance(network, VocabularyModel)
    for name, module in network.named_modules():
        if isinstance(module, nn.Embedding):
            std = {"torch": 1.0, "small": SMALL_INIT, "scaled": SMALL_INIT if tied else EMBEDDING_INIT}[how]
            module.weight.normal_(0.0, std, generator=stream(f"{name}.weight"))
        elif isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)  # what torch.nn.Linear does, for weight and bias alike
            std = scaled_std(name, bound, shape.layers) if how == "scaled" else SMALL_INIT
            rows = getattr(module, "rows", None)  # where heads share keys: which rows of the full layer these are
            for kind, parameter in module.named_parameters(recurse=False):
                drawn = parameter if rows is None else parameter.new_empty(3 * module.in_features, *parameter.shape[1:])
                if how == "torch":
                    drawn.uniform_(-bound, bound, generator=stream(f"{name}.{kind}"))
                elif kind == "weight":
                    drawn.normal_(0.0, std, generator=stream(f"{name}.{kind}"))
                else:
                    drawn.zero_()
                if rows is not None:
                    parameter.copy_(drawn[rows])


def scaled_std(name: str, bound: float, layers: int) -> float:
    """Queries and keys of size 1 at any width, so that attention has a gradient from the first step: with 0.02 scores
    are all alike in a narrow network, and AdamW leaves them so. What blocks add stays small beside the stream (GPT-2),
    and the output layer begins near zero, so that its bias decides the first answers."""
    if name == "out":
        return SMALL_INIT
    return bound / math.sqrt(2 * layers) if name.endswith(("attention.out", "feed_forward.down")) else bound


@torch.no_grad()
def start_at_frequencies(network: nn.Module, counts: Tensor) -> None:
    """Before the first step the network answers with the frequencies of the training set's answers [answer]: training
    begins where a unigram model ends."""
    out = cast(nn.Linear, network.out)
    if out.bias is not None:
        smoothed = counts.double() + 0.5
        out.bias.copy_((smoothed / smoothed.sum()).log())


def count_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
