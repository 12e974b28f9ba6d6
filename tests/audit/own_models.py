"""Networks of a user's own for the tests: an honest one that offers all, and faults that show under one condition."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

WIDTH = 12


class Own(nn.Module):
    """A decoder with one layer of attention by distance: it takes a mask, position ids and a cache, and gives maps."""

    fairtrial: ClassVar[dict[str, Any]] = {"pads": "both", "maps": True}

    def __init__(self, vocabulary: int, length: int, classes: int, seed: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, vocabulary)
        self.drop = nn.Dropout(0.1)
        nn.init.normal_(self.out.weight, std=0.02)

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, use_cache: bool = False,
        output_attentions: bool = False, position_ids: Tensor | None = None,
    ) -> Any:  # fmt: skip
        x = self.tokens(ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
        past = k.shape[1] - ids.shape[1]
        offset = torch.arange(past, k.shape[1])[:, None] - torch.arange(k.shape[1])
        hidden = (offset < 0)[None]
        if mask is not None:
            hidden = hidden | ~mask[:, None, :]
        scores = (q @ k.transpose(1, 2)) / WIDTH**0.5 - 0.1 * offset.clamp(min=0)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        x = self.changed(x + self.drop(weights @ v), ids, mask)
        found = Output()
        found.logits, found.attentions = self.out(x), (weights[:, None],) if output_attentions else None
        found.cache = (k, v) if use_cache else None
        return found

    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        """What a fault does to the vectors that the output layer reads [batch time width]"""
        return x


class Output:
    logits: Tensor
    attentions: Any
    cache: Any


def mixed(x: Tensor, share: float = 1.0) -> Tensor:
    """Every token sees the mean of all: a leak."""
    return x + share * x.mean(1, keepdim=True)


class TrainingLeak(Own):
    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return mixed(x) if self.training else x


class SingleLeak(Own):
    """So small that predictions in both precisions seem the same."""

    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return mixed(x, 0.03) if x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu") else x


class AutocastLeak(Own):
    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return mixed(x) if torch.is_autocast_enabled("cpu") else x


class LongLeak(Own):
    """Across the fourth chunk of 8."""

    fairtrial: ClassVar[dict[str, Any]] = {**Own.fairtrial, "chunk": 8, "cache": "none"}

    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return mixed(x) if ids.shape[1] > 24 else x


class OnesMatter(Own):
    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return x if mask is None or not bool(mask.all()) else 2 * x


class PositionsMistaken(Own):
    """Given positions beside padding after a text, it takes them for another text's."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, position_ids: Any = None, **more: Any) -> Any:
        found = super().forward(ids, mask, **more)
        if position_ids is not None and mask is not None and bool(mask[:, 0].all()):
            found.logits = 2 * found.logits
        return found


class UnmaskedAlone(Own):
    """A batch of one is not masked, as in a released hybrid of attention and state space."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
        return super().forward(ids, None if len(ids) == 1 and mask is not None and not mask[0, 0] else mask, **more)


class UnmaskedCache(Own):
    """Cached steps forget the mask."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, **more: Any) -> Any:
        return super().forward(ids, mask if cache is None else None, cache=cache, **more)


class PaddingRemembered(Own):
    """With a cache it sums what is masked, too, as a released linear attention did; the token for padding adds zero."""

    def __init__(self, vocabulary: int, *sizes: int) -> None:
        super().__init__(vocabulary, *sizes)
        self.tokens = nn.Embedding(vocabulary, WIDTH, padding_idx=0)

    def forward(self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, **more: Any) -> Any:
        found = super().forward(ids, mask, cache=cache, **more)
        if found.cache is not None and mask is not None:
            masked = (self.tokens(ids) * ~mask[:, -ids.shape[1] :, None]).sum(1, keepdim=True)
            found.logits = found.logits + masked @ self.out.weight.T
        return found


class StepwiseCache(Own):
    """A cache that several tokens at once do not see, as in a released state-space model."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, **more: Any) -> Any:
        return super().forward(ids, mask, cache=cache if ids.shape[1] == 1 else None, **more)


class Drifting(Own):
    """After so many calls its answers move."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.count = 0

    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        self.count += 1
        return x * (1 + (self.count > 1500))


class HiddenMaps(Own):
    """Its maps are not what it computes with."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
        found = super().forward(ids, mask, **more)
        if found.attentions:
            found.attentions = (found.attentions[0] * 1.1,)
        return found


class UnmaskedMaps(Own):
    """Without a mask its maps show no causal one, as in a released decoder whose fast path is right."""

    def forward(self, ids: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
        found = super().forward(ids, mask, **more)
        if found.attentions and mask is None:
            found.attentions = (torch.full_like(found.attentions[0], 1 / ids.shape[1]),)
        return found


class SwallowedMask(Own):
    """Any keyword is taken, a mask among them, and not used, as in a released state-space model."""

    fairtrial: ClassVar[dict[str, Any]] = {"maps": True}

    def forward(self, ids: Tensor, cache: Any = None, **more: Any) -> Any:  # type: ignore[override]
        more.pop("attention_mask", None)
        return super().forward(ids, cache=cache, **more)


class FutureGradient(Own):
    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        return x + (x - x.detach()).sum(1, keepdim=True)  # adds nothing, but learns from all


class Cheat(NamedTuple):
    kind: type[Own]
    caught_by: str


CHEATS = [
    Cheat(TrainingLeak, "T1"), Cheat(SingleLeak, "F1"), Cheat(AutocastLeak, "F2"), Cheat(LongLeak, "L1"),
    Cheat(OnesMatter, "K1"), Cheat(UnmaskedAlone, "K2"), Cheat(UnmaskedCache, "C2"), Cheat(StepwiseCache, "C1p"),
    Cheat(Drifting, "S1"), Cheat(HiddenMaps, "M1"), Cheat(FutureGradient, "M4"), Cheat(UnmaskedMaps, "M2"),
    Cheat(SwallowedMask, "K3"), Cheat(PositionsMistaken, "K1p"), Cheat(PaddingRemembered, "C2"),
]  # fmt: skip
