"""A zoo of parts that cheat, each in its own way, with the checks that must catch it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from fairtrial.model.part import Part, Site, concatenate
from fairtrial.recipe import Shape


class FutureNorm(Part):
    """Weighs a row by the norm of all its outputs, later ones too."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads / (1 + heads.norm(dim=(2, 3), keepdim=True)))


class FutureMean(Part):
    """Weighs every key by the mean over time."""

    def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        return q, k * (1 + k.mean(2, keepdim=True))


class RightSum(Part):
    """Adds up from the right."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads + 0.1 * heads.flip(2).cumsum(2).flip(2))


class NextOutput(Part):
    """Shifts by one place in time where it meant heads: off by one."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads.roll(-1, dims=2))


class ScoreSpread(Part):
    """Divides scores by their spread over all keys, hidden ones too."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores / (0.1 + scores.std(-1, keepdim=True, correction=0))


class DetachedFuture(Part):
    """Sees the future, but lets no gradient tell."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads + heads.detach().mean(2, keepdim=True))


class ShutGate(Part):
    """Sees the future through a gate that starts shut and learns to open."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.gate = nn.Parameter(torch.zeros(1))

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads + self.gate * heads.mean(2, keepdim=True))


class MovedQueries(Part):
    """Changes the positions that it is given, in place, so that attention believes queries to be further on."""

    def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        site.queries.add_(1)
        return q, k

    def bias(self, site: Site) -> Tensor:
        return torch.zeros(self.shape.heads, len(site.queries), len(site.keys))


class BatchNorm(Part):
    """Normalizes over the batch."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.norm = nn.BatchNorm1d(shape.width, track_running_stats=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.norm(x) if len(x) > 1 else x


class BatchMean(Part):
    """Compares each row with the mean row of its batch."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads - 0.5 * heads.mean(0, keepdim=True))


class TokenMean(Part):
    """Takes the packed tokens for one row."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x - x.mean(0)


class Squeezed(Part):
    """Works on any batch but a batch of one."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return heads.squeeze(0).transpose(1, 2).flatten(2)


class PaddingMean(Part):
    """Means over padding, too."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return x.mean(1)


class PaddingOutput(Part):
    """Counts how wide the batch is."""

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        return concatenate(heads * len(site.queries) / 10)


class WideWindow(Part):
    """A window of 3 that shows 4."""

    def allow(self, site: Site) -> Tensor:
        return site.distance <= 3

    def reach(self, causal: bool) -> tuple[int, int]:
        return (2, 0) if causal else (2, 2)


class SoftWindow(Part):
    """Hides what is far by a low score: a mask value that can be learnt around."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores.masked_fill(site.distance > 2, -10.0)

    def reach(self, causal: bool) -> tuple[int, int]:
        return (2, 0) if causal else (2, 2)


class LostMask(Part):
    """Hides by minus infinity what the first token needs to see, so that rows are emptied."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores.masked_fill(site.offset >= 0, -torch.inf)


class EvalDropout(Part):
    """Drops in evaluation, too."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return dropout(x, 0.1, training=True)


class EvalNoise(Part):
    """Adds noise in evaluation."""

    def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        return q + 1e-3 * torch.randn_like(q), k


class LastBatch(Part):
    """Remembers the last batch."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.last: Tensor | float = 0.0

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        answer, self.last = x + self.last, x.detach().mean()
        return answer


class Counter(Part):
    """Counts what it is scored on, in place."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.register_buffer("seen", torch.zeros(1))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        self.get_buffer("seen").add_(len(x))
        return x


class WorldDice(Part):
    """Draws from the world's dice in training."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x) if self.training else x


class Forgetful(Part):
    """Learns something that no checkpoint holds."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.scale = 1.0

    def merge(self, heads: Tensor, site: Site) -> Tensor:
        if self.training:
            self.scale *= 1.05
        return concatenate(heads * self.scale)


class HashDice(Part):
    """Scales by a word's hash, which is another in every process."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x * (1 + hash("dice") % 1000 / 1000)


class ContentTable(Part):
    """Looks its positions up by content."""

    sees_order = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.table = nn.Embedding(16, shape.width)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table((x[..., 0] * 100).long() % 16)


class ContentRotary(Part):
    """A "rotary" that turns by what a token is, not by where it stands."""

    sees_order = True
    relative = True

    def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        def turned(x: Tensor) -> Tensor:
            angle = x.mean(-1, keepdim=True)
            first, second = x.chunk(2, -1)
            return torch.cat(
                (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()), -1
            )

        return turned(q), turned(k)


class FromTheStart(Part):
    """Claims distance, but fades with the key's place in the text."""

    sees_order = True
    relative = True

    def bias(self, site: Site) -> Tensor:
        return (-0.1 * site.keys.double()).expand(self.shape.heads, len(site.queries), -1)


class HiddenTable(Part):
    """Claims distance, but adds a table of places."""

    sees_order = True
    relative = True

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + positions[..., None] / 10

    def bias(self, site: Site) -> Tensor:
        return (-0.1 * site.distance).expand(self.shape.heads, -1, -1)


class Deaf(Part):
    """Has a weight that nothing reads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.unread = nn.Parameter(torch.ones(3))


class Sharp(Part):
    """So sure of itself that every query looks at one key."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores * 1e9


class Loud(Part):
    """Starts with an opinion."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return 1e4 * (x * real[..., None]).sum(1)


class NotANumber(Part):
    """Divides by zero."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores / (scores - scores)


class Cheat(NamedTuple):
    kind: type[Part]
    task: str
    caught_by: frozenset[str]


def cheat(kind: type[Part], task: str, caught_by: str) -> Cheat:
    return Cheat(kind, task, frozenset(caught_by.split()))


ZOO = [
    cheat(FutureNorm, "lm", "M3 M4 M5 M6 C1"),
    cheat(FutureMean, "lm", "M3 M4 M5 C1"),
    cheat(RightSum, "lm", "M3 M4 M5 M6 C1"),
    cheat(NextOutput, "lm", "M3 M4 M5 C1"),
    cheat(ScoreSpread, "lm", "M3 M4 M5"),
    cheat(DetachedFuture, "lm", "M3 M5 C1"),
    cheat(ShutGate, "lm", "M3 M4 M5 C1"),
    cheat(MovedQueries, "lm", "M3 M4"),
    cheat(BatchNorm, "lm", "M3 M4 M7 M7s"),
    cheat(BatchNorm, "classify", "M7 M7s"),
    cheat(BatchMean, "lm", "M7 M7s"),
    cheat(BatchMean, "classify", "M7 M7s"),
    cheat(TokenMean, "classify", "M7 M7s"),
    cheat(Squeezed, "classify", "M7"),
    cheat(PaddingMean, "classify", "M6 M7 M7s"),
    cheat(PaddingOutput, "classify", "M6 M7 M7s"),
    cheat(PaddingOutput, "lm", "M5 M6 C1"),
    cheat(WideWindow, "lm", "M9r"),
    cheat(WideWindow, "classify", "M9r"),
    cheat(SoftWindow, "lm", "M9r"),
    cheat(SoftWindow, "classify", "M9r"),
    cheat(LostMask, "lm", "M1"),
    cheat(EvalDropout, "lm", "M12"),
    cheat(EvalDropout, "classify", "M12"),
    cheat(EvalNoise, "classify", "M12"),
    cheat(LastBatch, "classify", "M12"),
    cheat(Counter, "lm", "M12"),
    cheat(WorldDice, "classify", "R1 R2"),
    cheat(WorldDice, "lm", "R1 R2"),
    cheat(Forgetful, "lm", "R2 R3"),
    cheat(ContentTable, "classify", "M8"),
    cheat(ContentTable, "lm", "M8"),
    cheat(ContentRotary, "classify", "M8 M9"),
    cheat(ContentRotary, "lm", "M8 M9"),
    cheat(FromTheStart, "lm", "M9"),
    cheat(HiddenTable, "classify", "M9"),
    cheat(Deaf, "lm", "M14g"),
    cheat(Sharp, "lm", "M10"),
    cheat(Loud, "classify", "M14"),
    cheat(NotANumber, "lm", "M1"),
]


class Unmasked(Part):
    """Gives the next token a huge score. Attention hides it afterwards, so this is of no use, and no cheat."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, site: Site) -> Tensor:
        return scores + 1e4 * (site.offset == -1)


class Breaks(Part):
    """Raises as soon as it is used."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        raise ValueError("no such luck\nand more lines")


class BreaksAtOnce(Part):
    """Raises when it is built."""

    def __init__(self, shape: Shape) -> None:
        raise ZeroDivisionError("no shape will do")
