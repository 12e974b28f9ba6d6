"""The seam: a part changes a block of the transformer through hooks that are identities by default. `attention.py` and
`network.py` call the hooks in order; a part overrides those that carry its idea. Causality and padding are not a part's
business: no hook can show a token that attention has masked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.layers import FeedForward, own_rng
from fairtrial.recipe import PartChoice, Shape
from fairtrial.registry import Registry
from fairtrial.rng import seed_for

SMALL_INIT = 0.02  # the standard deviation of GPT-2's and BERT's first weights
MAX_SCALE = 10 * SMALL_INIT  # what a part adds at this scale dominates the token vectors


@dataclass(frozen=True)
class AttentionContext:
    """Where attention happens: which layer, which way, at which positions. Queries and keys are kept apart, so that
    cached decoding (one query, many keys) runs the same code as training."""

    layer: int
    causal: bool
    queries: Tensor  # positions of the queries [query]
    keys: Tensor  # positions of the keys [key]
    attached: dict[Part, Tensor] = field(default_factory=dict)  # what `attach` gave for each key [batch key n]
    memory: dict[Part, Tensor] = field(default_factory=dict)  # a part's own, handed from layer to layer in one pass

    @cached_property
    def offset(self) -> Tensor:
        """query - key: how far back a key lies; below zero it lies ahead. [query key]"""
        return self.queries[:, None] - self.keys[None, :]

    @cached_property
    def distance(self) -> Tensor:
        """|query - key| [query key]"""
        return self.offset.abs()


Site = AttentionContext  # its name in version 0.2.0, which parts of users may import


def dominates_embedding(shape: Shape, scale: float) -> bool:
    """Are the network's first token vectors lost beside what a part adds to them at this scale?"""
    return shape.start == "small" and scale >= MAX_SCALE


class PartType(type):
    """`Window(size=8)`, without the shape of a network, is the choice of a part and its options, as in a recipe."""

    def __call__(cls, *values: Any, **options: Any) -> Any:
        if not values and "shape" not in options:
            return cls.choice(**options)  # type: ignore[attr-defined]
        return super().__call__(*values, **options)


class Part(nn.Module, metaclass=PartType):
    """One architecture idea. Options are keyword arguments of `__init__`, whose first argument is the network's shape.

    A part may claim what the leak audit then checks: `sees_order` (it tells positions apart) and `relative` (in
    attention, positions matter by their distances alone). Where it makes no sense it says why: `excludes` (in a recipe
    with another part that overrides the method) and `decoder_only` (in an encoder).

    >>> import fairtrial as ft
    >>> class Fade(ft.Part):  # scores fall with distance
    ...     relative = True
    ...
    ...     def __init__(self, shape, rate=0.1):
    ...         super().__init__(shape)
    ...         self.rate = rate
    ...
    ...     def bias(self, context):
    ...         return -self.rate * context.distance.expand(self.shape.heads, -1, -1)
    >>> ft.Recipe().with_(parts=["rope", Fade(rate=0.2)]).parts
    (PartChoice(name='rope', options={}), PartChoice(name='fade', options={'rate': 0.2}))
    """

    sees_order: bool = False
    relative: bool = False
    forward_bias: bool = True  # whether the blocks' own feed-forward layers have biases
    excludes: Mapping[str, str] = {}  # hook -> reason
    decoder_only: ClassVar[str] = ""  # the reason
    hooks: ClassVar[frozenset[str]] = frozenset()  # those that a class overrides

    @classmethod
    def choice(cls, **options: object) -> PartChoice:
        """This part with these options, for a recipe. A class without a name is known by its own: FadeOut is
        `fade-out`."""
        return PartChoice(name=name_part(cls), options=options)

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Token vectors [... width] at positions [...] -> token vectors."""
        return x

    def prefix(self) -> Tensor | None:
        """Vectors set before every sentence of an encoder, to take part in attention like tokens [vector width]."""
        return None

    def key_heads(self) -> int | None:
        """How many heads of keys and values the heads of queries share, as many as they are if None. Exclusive."""
        return None

    def project(self, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [batch head time head_dim], keys and values [batch key_head time head_dim] as they were projected ->
        the same before any positions, each token by itself."""
        return q, k, v

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        """Queries [batch head time head_dim] and keys [batch key_head time head_dim], both at `context.queries` ->
        rotated, each token by itself."""
        return q, k

    def attach(self, x: Tensor, context: AttentionContext) -> Tensor | None:
        """What each token brings to `score` beside its key, from what the layer reads: [... width] -> [... n]. It is
        cached with the keys; `context.attached[self]` has that of all keys [batch key n]."""
        return None

    def features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Positive features [batch head time n] whose products are the weights, in place of exp(q k). Exclusive."""
        return q, k

    def bias(self, context: AttentionContext) -> Tensor | None:
        """What is added to every score whatever the content [head query key]."""
        return None

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        """Scores [batch head query key], already scaled -> scores."""
        return scores

    def allow(self, context: AttentionContext) -> Tensor | None:
        """What may be seen [query key], true or false. It may forbid, never permit."""
        return None

    def window(self, causal: bool) -> tuple[int, int] | None:
        """How many tokens (back, ahead) `allow` lets a query see: the leak audit checks it. None: any number."""
        return None

    def weigh(self, scores: Tensor, context: AttentionContext) -> Tensor:
        """Scores [batch head query key], the lowest number where a key is hidden -> weights. Exclusive."""
        return scores.softmax(-1)

    def mix(self, weights: Tensor, context: AttentionContext) -> Tensor:
        """Weights [batch head query key] -> the weights by which values are summed. Exclusive."""
        return weights

    def read(self, heads: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        """What heads have summed [batch head query head_dim] by weights [batch head query key] -> head outputs."""
        return heads

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        """Head outputs [batch head time head_dim] -> [batch time width]. Exclusive."""
        return concatenate(heads)

    def feed_forward(self, x: Tensor, own: FeedForward, layer: int) -> Tensor:
        """Token vectors [token width], the block's feed-forward layer -> what it gives [token width]. Exclusive."""
        return cast(Tensor, own(x))

    def arrange(self, x: Tensor, attention: Branch, feed_forward: Branch, layer: int) -> Tensor:
        """The residual stream and the two layers of a pre-norm block, each from the stream to what it adds -> the
        stream after the block, all [token width]. Exclusive."""
        x = x + attention(x)
        return x + feed_forward(x)

    def residual(self, x: Tensor, read: Tensor) -> Tensor:
        """The residual stream, each token by itself -> what a layer's output is added to. `read` is what the layer got,
        the normed copy of a pre-norm block [token width]."""
        return x

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        """Token vectors [batch time width], which are real [batch time] -> sentences [batch width]. Exclusive."""
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def notes(self) -> list[str]:
        """What a trained part tells of itself, for its record."""
        return []

    @classmethod
    def overrides(cls, hook: str) -> bool:
        return hook in cls.hooks

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls.hooks = frozenset(hook for hook in HOOKS if getattr(cls, hook) is not getattr(Part, hook))


Branch = Callable[[Tensor], Tensor]


parts: Registry[type[Part]] = Registry(
    "part", "a part of your own is read from its file: --with FILE.py (plugins= in Python)"
)


def part(name: str) -> Callable[[type[AnyPart]], type[AnyPart]]:
    """Names a part of your own, so that recipes, studies and commands know it. Defined again (as in a notebook's cell
    that is run twice), the new class takes the place of the old one.

    >>> import fairtrial as ft
    >>> @ft.part("no-op")
    ... class Nothing(ft.Part):
    ...     pass
    >>> ft.Recipe().with_(parts=[Nothing]).parts[0].name
    'no-op'
    """

    def keep(kind: type[AnyPart]) -> type[AnyPart]:
        there = parts.find(name) if name in parts.list() else None
        if there is not None and there is not kind and same_place(there, kind):
            parts.drop(name)
        return kind if there is kind else parts.add(name)(kind)  # type: ignore[return-value]

    return keep


AnyPart = TypeVar("AnyPart", bound=Part)


def name_part(kind: type[Part]) -> str:
    """The name that a class is registered under. One without a name gets it from the class."""
    for name in parts.list():
        if parts.find(name) is kind:
            return name
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()
    part(name)(kind)
    return name


def same_place(one: Any, other: Any) -> bool:
    """Whether one class or function is the other, written anew."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


# in the order in which a pass calls them
HOOKS = tuple(
    "embed prefix arrange key_heads project rotate attach features score bias allow window weigh mix read merge "
    "feed_forward residual pool".split()
)
EXCLUSIVE = ("key_heads", "features", "weigh", "mix", "merge", "feed_forward", "arrange", "pool")
OUTSIDE_ATTENTION = {"feed_forward", "arrange", "residual", "pool", "prefix"}
ENCODER_ONLY = {"prefix", "pool"}  # what a language model never calls
OTHER_WEIGHTS = ("weigh", "mix")  # overridden: the weights of a query need not sum to one


def find_override(parts: Sequence[Part], hook: str) -> Part | None:
    """The part that overrides the hook, if one does."""
    return next((part for part in parts if hook in part.hooks), None)


def concatenate(heads: Tensor) -> Tensor:
    """[batch head time head_dim] -> [batch time width]"""
    return heads.transpose(1, 2).flatten(2)


def collect_biases(context: AttentionContext, parts: Sequence[Part]) -> tuple[list[Tensor], list[Tensor]]:
    """The biases [head query key], and what each part allows to be seen [query key]."""
    biases, allowed = [part.bias(context) for part in parts], [part.allow(context) for part in parts]
    return [each for each in biases if each is not None], [each for each in allowed if each is not None]


def and_masks(visible: Tensor | None, allowed: Sequence[Tensor]) -> Tensor | None:
    """What is left to see when every part has forbidden what it forbids."""
    for mask in allowed:
        visible = mask if visible is None else visible & mask
    return visible


def to_attention_mask(biases: Sequence[Tensor], visible: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The sum of the biases, minus infinity where nothing may be seen. Broadcasts over [batch head query key]."""
    if not biases:
        if visible is None:
            raise ValueError("neither a bias nor a mask")
        return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, -math.inf)
    total = sum(biases[1:], biases[0])[None]
    return (total if visible is None else total.masked_fill(~visible, -math.inf)).to(dtype)


def build_parts(choices: Sequence[PartChoice], shape: Shape, seed: int, *, causal: bool | None = None) -> nn.ModuleDict:
    """The parts that a recipe names, in its order. `causal`: for a decoder or for an encoder, if that is known."""
    built = nn.ModuleDict()
    owners: dict[str, str] = {}
    for choice in choices:
        if choice.name in built:
            raise BadInput(f"the part {choice.name!r} is named twice", "name each part once")
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", choice.name) or hasattr(built, choice.name):
            raise BadInput(f"a part cannot be called {choice.name!r}", "choose another name in lower-case letters")
        kind = parts.find(choice.name)
        check_options(kind, choice.name, choice.options)
        # torch.randn in a part's constructor draws from a stream of its own, and the global generator stays untouched
        with own_rng(seed_for(seed, "init", "parts", choice.name)):
            try:
                built[choice.name] = kind(shape, **choice.options)
            except TypeError as error:
                hint = f"see the options of {kind.__qualname__}"
                raise BadInput(f"part {choice.name!r}: {error}", hint) from error
        for hook in filter(kind.overrides, EXCLUSIVE):
            if owners.setdefault(hook, choice.name) != choice.name:
                raise BadInput(f"{owners[hook]!r} and {choice.name!r} both override {hook!r}", "keep one of them")
        if kind.decoder_only and causal is False:
            hint = "leave it out, or train a language model"
            raise BadInput(f"part {choice.name!r} works in a decoder only: {kind.decoder_only}", hint)
        if kind.overrides("arrange") and shape.norm_place == "post":
            what = f"part {choice.name!r} arranges pre-norm blocks, and shape.norm_place is 'post'"
            raise BadInput(what, f"set shape.norm_place = 'pre', or leave {choice.name!r} out")
    check_senseless(cast(dict[str, Part], dict(built.items())))
    return built


def check_senseless(built: Mapping[str, Part]) -> None:
    """What one part says that it cannot be combined with."""
    for name, part in built.items():
        for other, another in built.items():
            if part is another:
                continue
            if reason := next((why for hook, why in part.excludes.items() if another.overrides(hook)), ""):
                raise BadInput(f"{name!r} and {other!r} do not combine: {reason}", "keep one of them")


def check_idle(choices: Sequence[PartChoice]) -> None:
    """A language model makes no sentence vector and has no prefix: a part for these would silently do nothing."""
    for choice in choices:
        kind = parts.find(choice.name)
        if kind.hooks and kind.hooks <= ENCODER_ONLY:
            what = f"part {choice.name!r} works for sentence vectors, and a language model has none"
            raise BadInput(what, f"leave {choice.name!r} out, or train a classifier")


def check_options(kind: type[Part], name: str, options: dict[str, object]) -> None:
    """Options have the types that the part's constructor says; one without a type takes anything."""
    try:
        hints = get_type_hints(kind.__init__)
    except (NameError, TypeError):  # an annotation that cannot be read
        return
    for option, value in options.items():
        hint = hints.get(option, Any)
        allowed = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        plain = [kind for kind in allowed if kind in (bool, int, float, str)]
        if not plain or Any in allowed or type(value) in allowed or (type(value) is int and float in plain):
            continue
        names = " or ".join(kind.__name__ for kind in plain)
        raise BadInput(f"part {name!r}: {option} = {value!r} must be {names}")
