"""Angles, biases and masks follow from positions alone: made once, they serve all layers and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Thing = TypeVar("Thing", Tensor, tuple[Tensor, ...])


class Kept(Generic[Thing]):
    """The thing made last, given again while the key is the same, number by number.

    It must follow from its key, so that nobody can tell whether it was made or kept. One that somebody has changed in
    place since is made anew, and so is one that carries a gradient."""

    def __init__(self) -> None:
        self._last: tuple[list[Any], Thing, list[int | None]] | None = None

    def get(self, make: Callable[[], Thing], *key: Any) -> Thing:
        """What `make` gives, or what it gave for this key."""
        if any(each.requires_grad for thing in key for each in _tensors(thing)):
            return make()  # a thing made while gradients were off would cut this one's
        last = self._last  # read once: another thread may set it meanwhile
        if last is not None and self._fits(*last, key):
            return last[1]
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False), torch.no_grad():  # what is kept must do for training too
                thing = make()
        else:
            thing = make()
        if not any(each.requires_grad for each in _tensors(thing)):
            self._last = (list(key), thing, _versions((*key, thing)))
        return thing

    @staticmethod
    def _fits(kept: list[Any], thing: Thing, versions: list[int | None], key: tuple[Any, ...]) -> bool:
        return (
            len(kept) == len(key)
            and versions == _versions((*kept, thing))
            and all(_same(old, new) for old, new in zip(kept, key, strict=True))
        )


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        return old is new or (old.dtype == new.dtype and old.device == new.device and torch.equal(old, new))
    return type(old) is type(new) and bool(old == new)


def _versions(things: tuple[Any, ...]) -> list[int | None]:
    """How often each tensor was changed in place; tensors of inference mode do not count it."""
    return [None if each.is_inference() else each._version for thing in things for each in _tensors(thing)]


def _tensors(thing: Any) -> tuple[Tensor, ...]:
    if isinstance(thing, Tensor):
        return (thing,)
    return tuple(each for each in thing if isinstance(each, Tensor)) if isinstance(thing, tuple) else ()
