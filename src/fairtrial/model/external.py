"""A network of the user's own: `build(vocabulary, length, classes, seed) -> nn.Module`, called `model(ids, mask=None)`.
It gives logits as a tensor, as `.logits` or inside a tuple, a dict or an object; what else it can do it declares, or
its signature says."""

from __future__ import annotations

import inspect
import random
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fairtrial.errors import BadInput, message_of
from fairtrial.model.layers import own_rng
from fairtrial.model.part import parts, same_place
from fairtrial.recipe import OPTIMIZERS, Shape
from fairtrial.registry import Registry, did_you_mean
from fairtrial.rng import seed_for

LIBRARY_FOLDERS = (Path(torch.__file__).parent, Path(__file__).parents[1])  # torch's and our own

BUILD = ("vocabulary", "length", "classes", "seed")  # what every builder is given
KINDS = {"causal": "lm", "classifier": "classify"}  # what a network is -> the task that it can be trained for
PADS = ("right", "left", "both", "none")
MASKS = {"mask": torch.bool, "attention_mask": torch.long}  # keyword -> type; 1 or True: a real token
POSITIONS = "position_ids"
LIKE_A_CACHE = re.compile(r"past|present|cache|kv|state|memor|mems|hidden", re.IGNORECASE)
NO_CACHE = re.compile(r"^(use|output|return|encoder|is)_|position|mask")
CONTRACT = "the contract: model(ids [batch, time], mask=None) -> logits"

Builder = Callable[..., nn.Module]
models: Registry[Builder] = Registry("model")  # by `file.py:function`; plugins fill it


Groups = list[dict[str, Any]]
Make = Callable[[Groups, float], torch.optim.Optimizer]
optimizers: Registry[Make] = Registry("optimizer")  # those of users; plugins fill it


def optimizer(name: str) -> Callable[[Make], Make]:
    """Names an optimizer of your own: a function of parameter groups and the learning rate, in a file of its own or in
    a notebook's cell. Each group has its `params` and its `weight_decay`; the schedule scales the rates that it sets.

    >>> import fairtrial as ft
    >>> import torch
    >>> @ft.optimizer("slow-sgd")
    ... def slow(groups, learning_rate):
    ...     return torch.optim.SGD(groups, lr=0.1 * learning_rate)
    >>> ft.Recipe().with_(optimizer="slow-sgd").training.optimizer
    'slow-sgd'
    """

    def keep(make: Make) -> Make:
        if name in (*OPTIMIZERS, *parts.list()):
            raise BadInput(f"{name!r} is the name of another optimizer or part", "choose another name")
        if name in optimizers.list() and same_place(optimizers.find(name), make):
            optimizers.drop(name)
        return optimizers.add(name)(make)

    return keep


def check_optimizer(name: str) -> None:
    known = [*OPTIMIZERS, *optimizers.list()]
    if name not in known:
        hint = "an optimizer of your own is read from its file: --with FILE.py (plugins= in Python)"
        raise BadInput(f"training.optimizer = {name!r} is not known{did_you_mean(name, known)}", hint)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What a network says of itself, in a dict called `fairtrial` that it or its builder has: `fairtrial = {"pads":
    "left"}`. What it does not say is found in its signature."""

    kind: str = ""  # causal or classifier; empty: what it is trained or audited as
    pads: str = ""  # right, left, both or none; empty: right where it takes a mask, else none
    pad: int | None = None  # the token that it takes for padding whatever the mask says
    end: int | None = None  # the token that every text ends with, and has nowhere else
    first_position: int = 0  # of a text, where positions are given
    embedding: str = ""  # the name of its token embedding; empty: the only nn.Embedding of the vocabulary's size
    cache: str = ""  # the keyword that takes a cache, and the name under which the output gives it back; "none": none
    maps: bool = False  # `output_attentions=True` gives `.attentions`, one [batch, head, query, key] for each layer
    chunk: int = 0  # tokens of a chunk or window that it reads at a time
    longest: int = 0  # tokens that it can read; 0: no limit is known
    shortest: int = 1  # tokens that it needs
    single: bool = False  # its softmax is in float32 whatever its weights are: it is audited in float32
    loss: str = ""  # a method (ids, mask, answers) -> the mean loss, used in training instead of the cross entropy
    optimizer: str = ""  # a method (learning_rate, weight_decay) -> a torch optimizer, used instead of the recipe's

    def __post_init__(self) -> None:
        for name, allowed in (("kind", ("", *KINDS)), ("pads", ("", *PADS))):
            if getattr(self, name) not in allowed:
                found = did_you_mean(str(getattr(self, name)), list(allowed[1:]))
                raise BadInput(f"a model declares {name} = {getattr(self, name)!r}{found}")

    @classmethod
    def of(cls, *sources: object) -> Declared:
        """What several say, the later over the earlier."""
        said: dict[str, Any] = {}
        known = [each.name for each in fields(cls)]
        for source in sources:
            found = source if isinstance(source, Mapping) else getattr(source, "fairtrial", {})
            if not isinstance(found, Mapping):
                raise BadInput(f"the declarations of a model are a dict, got {type(found).__name__}")
            for name in found:
                if name not in known:
                    raise BadInput(f"a model cannot declare {name!r}{did_you_mean(str(name), known)}")
            said |= found
        return cls(**said)


class NoCache(BadInput):
    """A network took a cache and gave none."""


class ModelCache:
    """What a network remembers of the tokens so far, as it gave it."""

    def __init__(self) -> None:
        self.state: object = None
        self.length = 0


class ExternalModel(nn.Module):
    """A user's network behind the interface of ours: rows are padded at their end, answers come where tokens stand."""

    def __init__(
        self,
        model: nn.Module,
        task: str,
        vocabulary: int,
        length: int,
        classes: int,
        *,
        name: str,
        declared: Declared | None = None,
    ) -> None:
        super().__init__()
        self.model, self.name = model, name
        self.causal, self.length = task == "lm", length
        self.outputs = vocabulary if self.causal else classes  # entries of the last axis of its logits
        self.vocabulary = vocabulary
        said = declared or Declared.of(model)
        if said.kind and KINDS[said.kind] != task:
            raise BadInput(f"{name} declares that it is {said.kind}, and the task is {task!r}")
        takes = inspect.signature(model.forward).parameters
        self.takes = list(takes)
        self.open = any(each.kind is each.VAR_KEYWORD for each in takes.values())  # **kwargs
        self.mask_name = next((each for each in MASKS if each in self.takes), "")
        pads = said.pads or ("right" if self.mask_name else "none")
        if pads != "none" and not self.mask_name:
            raise BadInput(f"{name} declares pads = {pads!r}, and its forward takes no mask", CONTRACT)
        like = (name for name, each in takes.items() if each.default is None and like_a_cache(name))
        cache = said.cache or next(like, "none")
        self.declared = replace(said, pads=pads, cache=cache if self.causal else "none")
        self.pads_assumed = bool(self.mask_name) and not said.pads  # nobody said on which side padding stands
        for method in filter(None, (said.loss, said.optimizer)):
            if not callable(getattr(model, method, None)):
                raise BadInput(f"{name} declares {method!r}, and has no method of that name")

    @property
    def takes_positions(self) -> bool:
        return POSITIONS in self.takes

    def forward(self, ids: Tensor, lengths: Tensor | None = None, cache: ModelCache | None = None) -> Tensor:
        """[batch time] -> logits [batch time entry] or [batch class]; those at padding mean nothing"""
        if cache is not None:
            return self.cached(ids, cache)
        if lengths is None or bool((lengths == ids.shape[1]).all()):
            return self.logits(ids)
        if self.declared.pads == "none":  # a causal network has read all of a text before its padding
            return self.logits(ids) if self.causal else self.by_length(ids, lengths)
        if self.declared.pads != "left":
            return self.logits(ids, real_tokens(ids, lengths))
        found = self.logits(*padded_left(ids, lengths), positions=self.takes_positions)
        return unpadded_left(found, lengths) if self.causal else found

    def by_length(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Rows of one length at a time: no padding is ever seen."""
        found, order = [], []
        for length in lengths.unique().tolist():
            order.append((lengths == length).nonzero()[:, 0].to(ids.device))
            found.append(self.logits(ids[order[-1], :length]))
        return torch.cat(found)[torch.cat(order).argsort()]

    def logits(self, ids: Tensor, mask: Tensor | None = None, *, positions: bool = False) -> Tensor:
        """One call. `mask` [batch time]: which tokens are real; `positions`: give their positions, too."""
        given: dict[str, object] = {}
        if mask is not None:
            given[self.mask_name] = mask.to(MASKS[self.mask_name])
        if positions:
            given[POSITIONS] = positions_of(ids, mask) + self.declared.first_position
        return self.find_logits(self.call(ids, given), ids, given)

    def call(self, ids: Tensor, given: Mapping[str, object]) -> object:
        """With ids in memory of their own: a view of the batch would lead to the targets behind it."""
        try:
            return self.model(ids.clone(memory_format=torch.contiguous_format), **given)
        except (BadInput, MemoryError):
            raise
        except Exception as error:
            raise BadInput(f"{self.format_call(ids, given)} raises {format_error(error)}", CONTRACT) from error

    def find_logits(self, output: object, ids: Tensor, given: Mapping[str, object]) -> Tensor:
        wanted = (*ids.shape, self.outputs) if self.causal else (ids.shape[0], self.outputs)
        for each in tensors_in(output):
            if each.shape == wanted:
                return each
        hint = f"it must be {format_shape(wanted)}, of every position, alone, as .logits or inside a tuple"
        raise BadInput(f"{self.format_call(ids, given)} gives {spoken(output)}, and no logits", hint)

    @torch.no_grad()
    def check_answers(self, ids: Tensor) -> None:
        """Refuse what has the shape of logits and is none: a network with its first weights."""
        logits = self(ids)
        wrong = int((~logits.isfinite()).sum())
        if wrong:
            what = f"gives {spoken(logits)} with {wrong:,} values that are not finite"
            raise BadInput(f"{self.format_call(ids, {})} {what}", "its initial weights or its mask overflow")
        if bool((logits >= 0).all()) and bool(((logits.sum(-1) - 1).abs() < 1e-4).all()):
            what = f"{self.format_call(ids, {})} gives probabilities, which sum to one"
            raise BadInput(what, "return logits: leave out the softmax")

    def format_call(self, ids: Tensor, given: Mapping[str, object]) -> str:
        """`my_model.py:build: model(ids [4, 32], mask [4, 32])`"""
        words = [
            f"ids {format_shape(ids.shape)}",
            *(f"{name} {spoken(value, typed=True)}" for name, value in given.items()),
        ]
        return f"{self.name}: model({', '.join(words)})"

    def new_cache(self) -> ModelCache | None:
        """An empty cache; None: it offers none."""
        return None if self.declared.cache == "none" or not self.gives_cache else ModelCache()

    @cached_property
    def gives_cache(self) -> bool:
        """Some take a cache that the caller has to make, and give none."""
        try:
            with torch.no_grad():
                self.cached(torch.ones(1, 1, dtype=torch.long), ModelCache())
        except NoCache:
            return False
        except BadInput:  # what is wrong with it the checks will report
            pass
        return True

    def cached(self, ids: Tensor, cache: ModelCache, mask: Tensor | None = None, *, positions: bool = False) -> Tensor:
        """Logits of the next tokens [batch time entry]; `mask` [batch all-tokens-so-far]. A recurrent state, of which a
        network of Hugging Face says `cache_params`, is told of the next tokens only, as its `generate` does."""
        given: dict[str, object] = {self.declared.cache: cache.state}
        if "use_cache" in self.takes or self.open:
            given["use_cache"] = True
        if "cache_position" in self.takes:  # older releases of transformers cannot count by their cache
            given["cache_position"] = torch.arange(cache.length, cache.length + ids.shape[1], device=ids.device)
        if mask is not None:
            seen = mask[:, -ids.shape[1] :] if self.declared.cache == "cache_params" else mask
            given[self.mask_name] = seen.to(MASKS[self.mask_name])
            if positions:
                every = positions_of(mask, mask) + self.declared.first_position
                given[POSITIONS] = every[:, -ids.shape[1] :]
        output = self.call(ids, given)
        logits = self.find_logits(output, ids, given)
        named = named_values(output)
        others = [each for name, each in named.items() if like_a_cache(name)]
        others = list(output) if isinstance(output, tuple | list) else others
        known = (named.get(self.declared.cache), *others)
        cache.state = next((each for each in known if each is not None and each is not logits), None)
        if cache.state is None:
            raise NoCache(f"{self.format_call(ids, given)} gives {spoken(output)}, and no {self.declared.cache}")
        cache.length += ids.shape[1]
        return logits

    def logits_of(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and answers of the real tokens whose answer is not below 0 [answer entry], [answer]"""
        chosen = answers >= 0 if lengths is None else (answers >= 0) & real_tokens(answers, lengths)
        return self(ids, lengths)[chosen], answers[chosen]

    def loss(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, smoothing: float, scale: float) -> object:
        """(objective x scale, summed nats) over the answers; of a loss of its own, its value in place of the nats"""
        if self.declared.loss:
            return self.own_loss(ids, lengths, answers, scale)
        logits, targets = self.logits_of(ids, lengths, answers) if self.causal else (self(ids, lengths), answers)
        nats = cross_entropy(logits, targets, reduction="sum")
        smoothed = cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing) if smoothing else nats
        return smoothed * scale, nats.detach().double()

    def own_loss(self, ids: Tensor, lengths: Tensor | None, answers: Tensor, scale: float) -> Any:
        """Its value x the number of answers, summed over what it can read together."""
        total: Any = 0.0
        for tokens, mask, targets in self.as_it_pads(ids, lengths, answers):
            given = None if mask is None or not self.mask_name else mask.to(MASKS[self.mask_name])
            value = getattr(self.model, self.declared.loss)(tokens, given, targets)
            if not isinstance(value, Tensor) or value.numel() != 1:
                called = f"{self.declared.loss}(ids {format_shape(tokens.shape)}, {spoken(given, typed=True)},"
                called += f" answers {format_shape(targets.shape)})"
                raise BadInput(f"{self.name}: {called} gives {spoken(value)}; a loss is one number")
            total = total + value.squeeze() * int((targets >= 0).sum())
        return total * scale, total.detach().double()

    def as_it_pads(
        self, ids: Tensor, lengths: Tensor | None, answers: Tensor
    ) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
        """Tokens, which of them are real (None: all), and answers, -1 at padding, with padding where it may stand."""
        if lengths is None or bool((lengths == ids.shape[1]).all()):
            yield ids, None, answers
        elif self.declared.pads == "none" and not self.causal:
            for length in lengths.unique().tolist():
                chosen = (lengths == length).nonzero()[:, 0].to(ids.device)
                yield ids[chosen, :length], None, answers[chosen]
        else:
            real = real_tokens(ids, lengths)
            targets = answers.masked_fill(~real, -1) if self.causal else answers
            if self.declared.pads == "left":
                targets = padded_left(targets, lengths)[0] if self.causal else targets
                ids, real = padded_left(ids, lengths)
            yield ids, real, targets

    @torch.no_grad()
    def nll(self, ids: Tensor, lengths: Tensor | None, answers: Tensor) -> Tensor:
        """Nats of each answer, in reading order [answer]"""
        logits, targets = self.logits_of(ids, lengths, answers)
        return cross_entropy(logits, targets, reduction="none").double()

    def embedding(self) -> nn.Module | None:
        """The layer that turns tokens into vectors; None: it is not known."""
        if self.declared.embedding:
            named = dict(self.model.named_modules())
            if self.declared.embedding not in named:
                raise BadInput(f"{self.name} declares embedding = {self.declared.embedding!r}, and has no such layer")
            return named[self.declared.embedding]
        if callable(getattr(self.model, "get_input_embeddings", None)):
            try:
                return self.model.get_input_embeddings()  # type: ignore[operator]
            except (NotImplementedError, AttributeError):
                return None
        kinds = [each for each in self.model.modules() if isinstance(each, nn.Embedding)]
        fitting = [each for each in kinds if each.num_embeddings == self.vocabulary]
        return fitting[0] if len(fitting) == 1 else None

    @torch.no_grad()
    def attention_maps(self, ids: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
        """Attention weights of each layer [batch head query key], where it offers them."""
        if not self.declared.maps:
            hint = 'one that has some gives them for output_attentions=True and declares "maps": True (own-model.md)'
            raise BadInput(f"{self.name} offers no attention maps", hint)
        given: dict[str, object] = {"output_attentions": True}
        if lengths is not None and self.mask_name:
            given[self.mask_name] = real_tokens(ids, lengths).to(MASKS[self.mask_name])
        with attention_kernel(self, "eager"):
            output = self.call(ids, given)
        found = getattr(output, "attentions", None)
        maps = [each for each in found or () if isinstance(each, Tensor) and each.dim() == 4]
        if not maps:
            raise BadInput(f"{self.format_call(ids, given)} gives no attention maps", 'declare "maps": False')
        return maps


@contextmanager
def attention_kernel(network: ExternalModel, kind: str) -> Iterator[bool]:
    """A Hugging Face network with this implementation of attention; False: it has no choice."""
    model: Any = network.model
    config = getattr(model, "config", None)
    old = getattr(config, "_attn_implementation", None)
    if old is None or not callable(getattr(model, "set_attn_implementation", None)):
        yield False
        return
    try:
        model.set_attn_implementation(kind)
        yield config is not None and config._attn_implementation == kind
    except (ValueError, ImportError):
        yield False
    finally:
        model.set_attn_implementation(old)


def build_external(
    name: str,
    builder: Builder,
    options: Mapping[str, object],
    task: str,
    sizes: Sequence[int],
    shape: Shape,
    seed: int,
    said: Mapping[str, object] = {},
) -> ExternalModel:
    """Call a builder with `sizes` (vocabulary, length, classes); all that it draws comes from a stream of the seed."""
    given = dict(zip(BUILD, (*sizes, seed), strict=True))
    takes = inspect.signature(builder).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in takes.values())
    for each in options:
        if each not in takes and not every:
            known = [other for other in takes if other not in given]
            raise BadInput(f"{name} has no option {each!r}{did_you_mean(each, known)}")
    extra = {key: value for key, value in (("shape", shape), ("task", task)) if key in takes}
    with seeded(seed_for(seed, "init", "model")):
        try:
            model = builder(**given, **extra, **options)
        except (BadInput, MemoryError):
            raise
        except Exception as error:
            words = ", ".join(f"{key}={value}" for key, value in (given | dict(options)).items())
            raise BadInput(f"{name}({words}) raises {format_error(error)}") from error
    if not isinstance(model, nn.Module):
        raise BadInput(f"{name} gives {spoken(model)}; it must give a torch.nn.Module")
    return ExternalModel(model, task, *sizes, name=name, declared=Declared.of(builder, model, said))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """All global random generators start from `seed`, and are left as they were: a user's network draws from them."""
    python, array = random.getstate(), np.random.get_state()
    with own_rng(seed):
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(array)


def tensors_in(output: object) -> Iterator[Tensor]:
    """Tensors that may be logits: what is called so first, then those of a tuple, a dict or an object in order."""
    if isinstance(output, Tensor):
        yield output
        return
    named = named_values(output)
    values = output if isinstance(output, tuple | list) else named.values()
    yield from (each for each in (named.get("logits"), *values) if isinstance(each, Tensor))


def like_a_cache(name: str) -> bool:
    return bool(LIKE_A_CACHE.search(name)) and not NO_CACHE.search(name)


def named_values(output: object) -> dict[str, Any]:
    """What an output has under a name: a dict, a named tuple, a dataclass or any object."""
    if isinstance(output, Mapping):
        return {str(name): each for name, each in output.items()}
    names: Any = (
        getattr(output, "_fields", None) or getattr(output, "__dict__", None) or getattr(output, "__slots__", ())
    )
    return {name: getattr(output, name, None) for name in names}


def real_tokens(ids: Tensor, lengths: Tensor) -> Tensor:
    """[batch time]"""
    return torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]


def positions_of(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Positions that count real tokens only [batch time]"""
    real = torch.ones_like(ids) if mask is None else mask.long()
    return (real.cumsum(1) - 1).clamp(min=0)


def padded_left(ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that are padded at their end -> the same padded at their beginning, and which tokens are real there."""
    places = torch.arange(ids.shape[1], device=ids.device) - padding_of(ids, lengths)
    return ids.gather(1, places % ids.shape[1]), places >= 0  # the padding comes round to the front


def unpadded_left(logits: Tensor, lengths: Tensor) -> Tensor:
    """[batch time entry] of rows padded at their beginning -> of rows padded at their end"""
    places = torch.arange(logits.shape[1], device=logits.device) + padding_of(logits, lengths)
    return logits.gather(1, (places % logits.shape[1])[..., None].expand_as(logits))


def padding_of(rows: Tensor, lengths: Tensor) -> Tensor:
    """How many of the places of each row are padding [batch 1]"""
    return (rows.shape[1] - lengths.to(rows.device))[:, None]


def format_shape(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def spoken(value: object, *, typed: bool = False) -> str:
    """What a call was given or gave, in a few words: `(tensor [4, 32, 100], None)`, `bool [4, 32]`."""
    if isinstance(value, Tensor):
        kind = str(value.dtype).removeprefix("torch.") if typed else "tensor"
        return f"{kind} {format_shape(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {spoken(each)}" for name, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return f"({', '.join(spoken(each) for each in value[:6])}{', ...' * (len(value) > 6)})"
    return str(value) if value is None or isinstance(value, bool | int | float) else type(value).__name__


def format_error(error: Exception) -> str:
    """`IndexError: index out of range in self (my_model.py:12)`: the last line of the user's own."""
    first = message_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_library_file(Path(frame.filename))]
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {first[:300]}{where}"


def is_library_file(path: Path) -> bool:
    """Whether a file belongs to torch or to fairtrial itself. Their own folders decide, never a folder's name: users
    keep files in folders called fairtrial and torch, too."""
    return any(path.is_relative_to(folder) for folder in LIBRARY_FOLDERS)
