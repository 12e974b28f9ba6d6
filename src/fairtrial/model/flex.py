"""FlexAttention's functions as parts (arXiv 2412.05496): a `score_mod(score, b, h, q_idx, kv_idx)` changes a score, a
`mask_mod(b, h, q_idx, kv_idx)` says what may be seen. A file that defines some needs no other code: each is a part of
its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, Site, parts
from fairtrial.recipe import Shape

Mod = Callable[..., Tensor]


def kind_of(function: Any) -> str:
    """score_mod, mask_mod or nothing, by its arguments."""
    if not isinstance(function, FunctionType):
        return ""
    names = list(inspect.signature(function).parameters)
    if names[-2:] != ["q_idx", "kv_idx"]:
        return ""
    return {5: "score_mod", 4: "mask_mod"}.get(len(names), "")


def register_mods(module: ModuleType) -> None:
    """Every function of a file that FlexAttention would take, as a part: `soft_cap` is called soft-cap."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_") and kind_of(value):
            parts.add(name.replace("_", "-"))(flex_part(value))


def flex_part(mod: Mod) -> type[Part]:
    """The part that a score_mod or a mask_mod is.

    >>> def cap(score, b, h, q_idx, kv_idx):
    ...     return 20 * torch.tanh(score / 20)
    >>> sorted(flex_part(cap).verbs)
    ['score']
    """
    kind = kind_of(mod)
    if not kind:
        what = f"{getattr(mod, '__name__', mod)!r} is neither a score_mod nor a mask_mod"
        raise BadInput(what, "they are called (score, b, h, q_idx, kv_idx) and (b, h, q_idx, kv_idx)")
    base = ScoreMod if kind == "score_mod" else MaskMod
    names = {"mod": staticmethod(mod), "__doc__": mod.__doc__ or f"FlexAttention's {kind} `{mod.__name__}`."}
    return type(mod.__name__, (base,), {**names, "__module__": mod.__module__})


def over_positions(mod: Mod, site: Site, heads: int) -> Tensor:
    """A mask_mod's answers [head query key]; the batch is not known to it."""
    found = mod
    for places in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None)):
        found = torch.vmap(found, in_dims=places)
    where = site.keys.device
    return found(torch.tensor(0, device=where), torch.arange(heads, device=where), site.queries, site.keys)


class ScoreMod(Part):
    mod: Mod

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        found = self.mod
        for axis in (4, 3, 2, 1):  # over keys, queries, heads, rows, as FlexAttention does
            places: list[int | None] = [None] * 5
            places[0], places[axis] = 0, 0
            found = torch.vmap(found, in_dims=tuple(places))
        batch, heads = (torch.arange(size, device=scores.device) for size in scores.shape[:2])
        return found(scores, batch, heads, site.queries, site.keys).to(scores.dtype)


class MaskMod(Part):
    mod: Mod

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)

    def allow(self, site: Site) -> Tensor | None:
        found = over_positions(self.mod, site, self.shape.heads)
        if not bool((found == found[:1]).all()):
            raise BadInput(f"{type(self).__name__}: its mask differs between heads", "write it as a score_mod")
        return found[0]
