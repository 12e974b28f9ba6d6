"""Parts that are not what they claim to be, do not repeat themselves, or raise."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from fairtrial.model.part import AttentionContext, Part, concatenate
from fairtrial.recipe import Shape


class WideWindow(Part):
    """A window of 3 that shows 4."""

    def allow(self, context: AttentionContext) -> Tensor:
        return context.distance <= 3

    def window(self, causal: bool) -> tuple[int, int]:
        return (2, 0) if causal else (2, 2)


class SoftWindow(Part):
    """Hides what is far by a low score: a mask value that can be learnt around."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores.masked_fill(context.distance > 2, -10.0)

    def window(self, causal: bool) -> tuple[int, int]:
        return (2, 0) if causal else (2, 2)


class LostMask(Part):
    """Hides by minus infinity what the first token needs to see, so that rows are emptied."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores.masked_fill(context.offset >= 0, -torch.inf)


class EvalDropout(Part):
    """Drops in evaluation, too."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return dropout(x, 0.1, training=True)


class EvalNoise(Part):
    """Adds noise in evaluation."""

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
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


class GlobalRng(Part):
    """Draws from the global random generator in training."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x) if self.training else x


class Forgetful(Part):
    """Learns something that no checkpoint holds."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.scale = 1.0

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        if self.training:
            self.scale *= 1.05
        return concatenate(heads * self.scale)


class HashOfWord(Part):
    """Scales by a word's hash, which differs from process to process."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x * (1 + hash("rng") % 1000 / 1000)


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

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
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

    def bias(self, context: AttentionContext) -> Tensor:
        return (-0.1 * context.keys.double()).expand(self.shape.heads, len(context.queries), -1)


class HiddenTable(Part):
    """Claims distance, but adds a table of places."""

    sees_order = True
    relative = True

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + positions[..., None] / 10

    def bias(self, context: AttentionContext) -> Tensor:
        return (-0.1 * context.distance).expand(self.shape.heads, -1, -1)


class Deaf(Part):
    """Has a weight that nothing reads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.unread = nn.Parameter(torch.ones(3))


class Sharp(Part):
    """So sure of itself that every query looks at one key."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores * 1e9


class Loud(Part):
    """Starts with an opinion."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return 1e4 * (x * real[..., None]).sum(1)


class NotANumber(Part):
    """Divides by zero."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores / (scores - scores)


class Unmasked(Part):
    """Gives the next token a huge score. Attention hides it afterwards, so this is of no use, and no cheat."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores + 1e4 * (context.offset == -1)


class Breaks(Part):
    """Raises as soon as it is used."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        raise ValueError("no such luck\nand more lines")


class BreaksAtOnce(Part):
    """Raises when it is built."""

    def __init__(self, shape: Shape) -> None:
        raise ZeroDivisionError("no shape will do")
