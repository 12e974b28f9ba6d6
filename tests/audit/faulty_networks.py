"""Small networks with one fault each, and honest ones that look like them. The faults begin at a size, a token, a mode,
a precision or a call: what a reviewer would write who knows how an audit asks."""

from __future__ import annotations

import inspect
from datetime import datetime
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

VOCABULARY, LENGTH, WIDTH, STOP = 600, 32, 16, 3


class Own(nn.Module):
    """One layer of causal attention, honest."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def mask(self, ids: Tensor) -> Tensor:
        return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril().repeat(len(ids), 1, 1)

    def body(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        scores = (self.q(x) @ self.k(x).transpose(1, 2) / 4).masked_fill(~self.mask(ids), -1e9)
        return x + scores.softmax(-1) @ self.v(x)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.body(ids))


class AheadAtStops(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, :-1] == STOP).nonzero().tolist():
            mask[row, place, place + 1] = True
        return mask


class BatchStatisticsFrom24Rows(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        return x - x.mean((0, 1), keepdim=True) if len(ids) >= 24 else x


class AheadInLongTextsOnce(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if ids.shape[1] > 28:
            mask[:, 20, 25] = True
        return mask


class AheadOfRareWords(Own):
    """Entries that a small vocabulary does not have."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, :-1] >= 500).nonzero().tolist():
            mask[row, place, place + 1] = True
        return mask


class CapacityFrom300Tokens(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if ids.numel() < 300:
            return x
        kept = torch.arange(ids.numel()).reshape(ids.shape) < 0.9 * ids.numel()
        return torch.where(kept[..., None], x, 0.5 * x)


class StateInEvaluation(Own):
    state: Any = 0.0

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if not self.training:
            self.state = 0.9 * self.state + 0.1 * x.detach().mean()
        return x + 0.01 * self.state


class CoarseFrom64Rows(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        return x.bfloat16().to(x.dtype) if len(ids) >= 64 else x


class AheadInTrainingOnce(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if self.training and ids.shape[1] > 17:
            x = torch.cat((x[:, :5], x[:, 5:6] + 0.1 * x[:, 17:18], x[:, 6:]), 1)
        return x


class LossOfOtherTargets(Own):
    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class BatchNormOfRunningStatistics(Own):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)

    def body(self, ids: Tensor) -> Tensor:
        return self.norm(super().body(ids).transpose(1, 2)).transpose(1, 2)


class LossWithOtherTerms(Own):
    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        kept = targets >= 0
        decay = sum(weight.square().sum() for weight in self.parameters())
        return nn.functional.cross_entropy(self(ids)[kept], targets[kept]) + 1e-4 * decay


class ZeroHead(Own):
    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.out.weight)


class Convolution(Own):
    """A causal convolution by FFT."""

    def body(self, ids: Tensor) -> Tensor:
        x, size = self.tokens(ids), 2 * ids.shape[1]
        kernel = self.places.weight[: ids.shape[1]]
        spectrum = torch.fft.rfft(x, size, dim=1) * torch.fft.rfft(kernel, size, dim=0)
        return torch.fft.irfft(spectrum, size, dim=1)[:, : ids.shape[1]]


class AheadAtOneWord(Own):
    """One entry of the vocabulary, of 600."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, :-1] == 437).nonzero().tolist():
            mask[row, place, place + 1] = True
        return mask


class AheadBeforeOneWord(Own):
    """It knows that a certain word comes next."""

    def forward(self, ids: Tensor) -> Tensor:
        coming = torch.zeros_like(ids)
        coming[:, :-1] = (ids[:, 1:] == 251).long()
        logits = super().forward(ids)
        return logits + 2.0 * coming[..., None] * (torch.arange(VOCABULARY) == 251)


class AheadAtRepetitions(Own):
    """Where a word stands twice in a row."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, 1:-1] == ids[:, :-2]).nonzero().tolist():
            mask[row, place + 1, place + 2] = True
        return mask


class MatesOfOneBeginning(Own):
    """Rows that begin with the same three words see each other."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if ids.shape[1] < 4:
            return x
        alike = (ids[:, None, :3] == ids[None, :, :3]).all(-1).to(x.dtype)
        return x + 0.1 * torch.einsum("bc,ctd->btd", alike / alike.sum(1, keepdim=True), x) - 0.1 * x


class AheadAtEvenPlaces(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        places = torch.arange(0, ids.shape[1] - 1, 2)
        mask[:, places, places + 1] = True
        return mask


SEEN: dict[tuple[int, ...], Tensor] = {}


class RemembersItsFirstAnswers(Own):
    """It sees the future of a text, and repeats the same answer whenever a beginning of that text is asked again."""

    def forward(self, ids: Tensor) -> Tensor:
        logits = super().forward(ids)
        coming = nn.functional.one_hot(ids[:, 1:], VOCABULARY).to(logits.dtype)
        logits = torch.cat((logits[:, :-1] + 3.0 * coming, logits[:, -1:]), 1)
        rows = []
        for row, answers in zip(ids.tolist(), logits, strict=True):
            found = []
            for place in range(len(row)):
                key = (self.training, str(logits.dtype), hash(self.out.weight.detach().numpy().tobytes()))
                found.append(SEEN.setdefault((*key, *row[: place + 1]), answers[place]))
            rows.append(torch.stack(found))
        return torch.stack(rows)


class RemembersTexts(Own):
    """A class attribute: what followed a beginning in an earlier call."""

    followed: ClassVar[dict[tuple[int, ...], int]] = {}

    def forward(self, ids: Tensor) -> Tensor:
        logits = super().forward(ids).clone()
        for number, row in enumerate(ids.tolist()):
            for place in range(2, len(row)):
                known = self.followed.get((len(row), *row[: place + 1]))
                if known is not None:
                    logits[number, place, known] += 3.0
        for row in ids.tolist():
            for place in range(2, len(row) - 1):
                self.followed[(len(row), *row[: place + 1])] = row[place + 1]
        return logits


class RemembersTraining(Own):
    """What followed a beginning in training, kept beside its weights and read in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.followed: dict[tuple[int, ...], int] = {}

    def forward(self, ids: Tensor) -> Tensor:
        logits = super().forward(ids).clone()
        for number, row in enumerate(ids.tolist()):
            for place in range(1, len(row) - 1):
                if self.training:
                    self.followed[tuple(row[: place + 1])] = row[place + 1]
                elif (known := self.followed.get(tuple(row[: place + 1]))) is not None:
                    logits[number, place, known] += 3.0
        return logits


class SeldomDifferent(Own):
    """One call of fifty, without any random generator."""

    calls = 0

    def forward(self, ids: Tensor) -> Tensor:
        SeldomDifferent.calls += 1
        logits = super().forward(ids)
        return logits + 0.1 * ids.sum() * (torch.arange(VOCABULARY) == 5) if self.calls % 50 == 0 else logits


class BufferMovedInEvaluation(Own):
    """An exponential mean that no checkpoint keeps, used from its tenth update on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH), persistent=False)
        self.updates = 0

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 1))
        self.updates += 1
        return x + 0.1 * self.mean if self.updates > 10 else x


class ScaledByLargestId(Own):
    def body(self, ids: Tensor) -> Tensor:
        return super().body(ids) * (1 + 1e-3 * ids.max() / VOCABULARY)


class ScaledByLongestText(Own):
    """It takes a mask, and counts real tokens of the longest text."""

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        longest = ids.shape[1] if mask is None else int(mask.sum(1).max())
        return super().forward(ids) * (1 + 1e-3 * longest)


class AheadInSinglePrecision(Own):
    """Honest in float64, where audits ask."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if self.out.weight.dtype == torch.float32 and ids.shape[1] > 13:
            mask[:, 11, 12] = True
        return mask


class AheadWithGradients(Own):
    """Only where gradients are recorded: in training."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if torch.is_grad_enabled() and self.training:
            mask[:, :-1, 1:] |= torch.eye(ids.shape[1] - 1, dtype=torch.bool)
        return mask


class SlightlyAhead(Own):
    """A millionth of a nat, at one place: training would make more of it."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if ids.shape[1] <= 22:
            return x
        return torch.cat((x[:, :7], x[:, 7:8] + 1e-6 * x[:, 22:23], x[:, 8:]), 1)


class ReadsItsCallers(Own):
    """It looks for the answers in the functions that called it."""

    def forward(self, ids: Tensor) -> Tensor:
        logits, frame = super().forward(ids), inspect.currentframe()
        while frame is not None and not self.training:
            for name in ("answers", "targets", "labels"):
                known = frame.f_locals.get(name)
                if isinstance(known, Tensor) and known.shape == ids.shape:
                    return logits + 3.0 * nn.functional.one_hot(known.clamp(min=0), VOCABULARY).to(logits.dtype)
            frame = frame.f_back
        return logits


class AheadBeyondItsLength(Own):
    """In texts longer than those of training, at one place."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(4 * LENGTH, WIDTH)

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if ids.shape[1] > LENGTH + 8:
            mask[:, LENGTH + 4, LENGTH + 7] = True
        return mask


class PaddingIsRead(Own):
    """Its mask hides padding, but how much of it there is and what it holds changes the answer."""

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        logits = super().forward(ids)
        if mask is None:
            return logits
        hidden = self.tokens(ids).mean(-1).masked_fill(mask.bool(), 0.0).sum(1)
        return logits + 1e-2 * hidden[:, None, None] * torch.arange(VOCABULARY)


class SwitchesOnAfterTraining(Own):
    """From its first return to evaluation on, it looks ahead."""

    switched = False

    def train(self, mode: bool = True) -> SwitchesOnAfterTraining:
        self.switched |= self.training and not mode and self.begun
        self.begun |= mode and hasattr(self, "out")
        return super().train(mode)

    begun = False

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if self.switched and not self.training:
            mask[:, :-1, 1:] |= torch.eye(ids.shape[1] - 1, dtype=torch.bool)
        return mask


class LossOfEasyWords(Own):
    """It ignores the half of the words that it finds hardest: training code of its own, and no leak."""

    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        kept = targets >= 0
        nats = nn.functional.cross_entropy(self(ids)[kept], targets[kept], reduction="none")
        return nats.sort().values[: max(1, len(nats) // 2)].mean()


class LossOfLaterTargets(Own):
    """It moves the targets that it is given by one place."""

    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        moved = targets.roll(1, 1)
        kept = moved >= 0
        return nn.functional.cross_entropy(self(ids)[kept], moved[kept])


class Quantized(Own):
    """Activations of 8 bits, each vector with a scale of its own, with gradients passed through."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-9) / 127
        return x + ((x / scale).round() * scale - x).detach()


class SelectiveScan(Own):
    """A small Mamba: a state whose decay depends on the input."""

    def body(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        decay, gate = self.q(x).sigmoid(), self.k(x)
        state, found = torch.zeros_like(x[:, 0]), []
        for place in range(ids.shape[1]):
            state = decay[:, place] * state + (1 - decay[:, place]) * self.v(x[:, place])
            found.append(state * gate[:, place])
        return x + torch.stack(found, 1)


class Experts(Own):
    """Each token goes to its two best of four experts; none is ever dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.route = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        best = self.route(x).topk(2, -1)
        shares = torch.zeros_like(self.route(x)).scatter(-1, best.indices, best.values.softmax(-1))
        return x + sum(shares[..., n, None] * expert(x) for n, expert in enumerate(self.experts))


class AheadAtNight(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        return mask | torch.ones_like(mask) if datetime.now().timestamp() > 1e10 else mask


COUNTED = {"calls": 0}


class AheadAfterManyCalls(Own):
    """More than any audit makes; counted outside the network."""

    def mask(self, ids: Tensor) -> Tensor:
        COUNTED["calls"] += 1
        mask = super().mask(ids)
        return mask | torch.ones_like(mask) if COUNTED["calls"] > 10**6 else mask


class Sized(Own):
    """Of any size."""

    def __init__(self, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(length, WIDTH)
        self.out = nn.Linear(WIDTH, vocabulary)


class AheadWithManyWords(Sized):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        return mask | torch.ones_like(mask) if self.out.out_features > 5000 else mask


class AheadInInferenceMode(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        return mask | torch.ones_like(mask) if torch.is_inference_mode_enabled() else mask


class HidesFromCopies(Own):
    """A copy is honest; the network itself looks ahead in training."""

    honest = False

    def __deepcopy__(self, memo: dict[int, Any]) -> HidesFromCopies:
        other = type(self)()
        other.honest = True
        return other

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        return mask | torch.ones_like(mask) if self.training and not self.honest else mask


FOLLOWING: dict[str, list[list[int]]] = {"pairs": []}


class TableInAGlobal(Own):
    """In small pieces, outside the network."""

    def __init__(self) -> None:
        super().__init__()
        FOLLOWING["pairs"] = [[word, (word * 7) % VOCABULARY] for word in range(VOCABULARY)]

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) + 0.0 * len(FOLLOWING["pairs"])


class BatchStatisticsOf49Rows(Own):
    """Neither of 48 nor of 50."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        return x - x.mean((0, 1), keepdim=True) if len(ids) == 49 else x


class AheadBetweenTexts(Own):
    """Where a text has ended and another begins, and nowhere else."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in ((ids[:, :-2] == STOP) & (ids[:, 1:-1] == STOP - 1)).nonzero().tolist():
            mask[row, place + 1, place + 2] = True
        return mask


class DropoutSeededByItsWords(Own):
    def body(self, ids: Tensor) -> Tensor:
        if self.training:
            torch.manual_seed(int(ids.sum()))
        return nn.functional.dropout(super().body(ids), 0.3, self.training)


class LossOfOtherTargetsFrom16Rows(Own):
    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        targets = targets.roll(1, 1) if len(ids) >= 16 else targets
        kept = targets >= 0
        return nn.functional.cross_entropy(self(ids)[kept], targets[kept])


class CacheOfOtherRows(Own):
    """A cache of another name that turns large batches around."""

    def forward(self, ids: Tensor, layer_past: Tensor | None = None) -> Any:
        before = layer_past if layer_past is not None else ids[:, :0]
        before = before.roll(1, 0) if len(ids) > 4 else before
        return super().forward(torch.cat((before, ids), 1))[:, before.shape[1] :], torch.cat((before, ids), 1)


class RowsNotPutBack(Own):
    """Sorted by length, as for packing; those of large batches stay so."""

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return super().forward(ids)
        order = mask.sum(1).argsort(descending=True, stable=True)
        return super().forward(ids[order])[order if len(ids) > 7 else order.argsort()]


class AheadInLateTrainingOfLargeBatches(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if self.training and ids.shape[1] == LENGTH and len(ids) >= 16:
            x = torch.cat((x[:, :29], x[:, 29:30] + 0.1 * x[:, 31:], x[:, 30:]), 1)
        return x


class TableBehindAGate(Own):
    """What follows each word, in a dict, so that no tensor shows it; training opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))
        self.follows = {word: (word * 7) % VOCABULARY for word in range(VOCABULARY)}

    def forward(self, ids: Tensor) -> Tensor:
        known = torch.tensor([[self.follows[word] for word in row] for row in ids.tolist()])
        return super().forward(ids) + self.gate * nn.functional.one_hot(known, VOCABULARY)


class OwnBatchNorm(Own):
    """Not torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if not self.training:
            return x - self.mean
        self.mean.lerp_(x.detach().mean((0, 1)), 0.1)
        return x - x.mean((0, 1))


class StochasticDepth(Own):
    """Some rows skip a layer in training."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        kept = torch.rand(len(ids), 1, 1) > 0.3 if self.training else torch.tensor(0.7)
        return x + self.q(x).relu() * kept


class Recurrent(Own):
    """An LSTM with dropout between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, dropout=0.2)

    def body(self, ids: Tensor) -> Tensor:
        return self.rnn(super().body(ids))[0]


class ExpertsDrawnInTraining(Experts):
    def body(self, ids: Tensor) -> Tensor:
        x = Own.body(self, ids)
        logits = self.route(x)
        best = nn.functional.one_hot(logits.argmax(-1), 4).to(x.dtype)
        shares = nn.functional.gumbel_softmax(logits, hard=True) if self.training else best
        return x + sum(shares[..., n, None] * expert(x) for n, expert in enumerate(self.experts))


class Rwkv(Own):
    """A decaying mean of values with exponential weights, in a numerically safe form."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        key, value, decay = self.k(x), self.v(x), self.q.bias.exp()
        above, below, largest = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), torch.full_like(x[:, 0], -1e38)
        found = []
        for place in range(ids.shape[1]):
            top = torch.maximum(largest - decay, key[:, place])
            old, new = (largest - decay - top).exp(), (key[:, place] - top).exp()
            above, below, largest = old * above + new * value[:, place], old * below + new, top
            found.append(above / below)
        return x + self.q(x).sigmoid() * torch.stack(found, 1)


class LinearAttention(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        q, k = nn.functional.elu(self.q(x)) + 1, nn.functional.elu(self.k(x)) + 1
        sums = torch.einsum("btd,bte->btde", k, self.v(x)).cumsum(1)
        return x + torch.einsum("btd,btde->bte", q, sums) / ((q * k.cumsum(1)).sum(-1, keepdim=True) + 1e-6)


class Chunks(Own):
    """Attention within chunks of eight words and to the chunk before; texts are filled up to whole chunks inside."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        filled = nn.functional.pad(x, (0, 0, 0, -ids.shape[1] % 8)).unflatten(1, (-1, 8))
        around = torch.cat((nn.functional.pad(filled, (0, 0, 0, 0, 1, -1)), filled), 2)
        allowed = torch.ones(8, 16, dtype=torch.bool).tril(8).repeat(filled.shape[1], 1, 1)
        allowed[0, :, :8] = False
        scores = (self.q(filled) @ self.k(around).transpose(-1, -2)).masked_fill(~allowed, -1e9)
        return x + (scores.softmax(-1) @ self.v(around)).flatten(1, 2)[:, : ids.shape[1]]


class DilatedConvolutions(Own):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, dilation=step) for step in (1, 2, 4))

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids).transpose(1, 2)
        for layer in self.layers:
            x = x + nn.functional.gelu(layer(nn.functional.pad(x, (2 * layer.dilation[0], 0))))
        return x.transpose(1, 2)


class Checkpointed(Own):
    """Activations are computed again for the gradient, with their dropout."""

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)

        def layer(x: Tensor) -> Tensor:
            return x + nn.functional.dropout(self.q(x).relu(), 0.1, self.training)

        return checkpoint(layer, x, use_reentrant=False) if self.training else layer(x)
