"""The same questions under other conditions, each of which has hidden a released fault: in training mode (T1), in
float32 (F1), under autocast (F2), on the device that trains (G1), over long texts (L1), with a mask of ones (K1) or
among its **kwargs (K3), with position ids (K1p), with padding on the left (K2, K2p), with a cache beside padding (C2),
and after thousands of calls (S1)."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fairtrial.audit.subject import Subject, as_batch, generator, largest_change
from fairtrial.audit.visibility import cut_points
from fairtrial.errors import BadInput
from fairtrial.finding import Measured, at_most, more_than
from fairtrial.model.external import MASKS, ExternalModel, padded_left, real_tokens, seeded, unpadded_left
from fairtrial.model.layers import Dropout
from fairtrial.training.device import is_there
from fairtrial.training.loop import weights_of

Answer = Callable[[Tensor, Tensor | None], Tensor]  # ids, lengths -> log-probabilities
FEW = 3  # cuts of a text
LONGEST = 2048  # tokens of a long text
CHUNKS = 3  # that it crosses, at least
CALL_SECONDS = 20.0  # of computing, spent on many calls or on long texts at most: a busy machine asks no less
LONG_CALLS = 20  # that a check of long texts makes, about
HALF = 2**-8  # the rounding of bfloat16


def leaks(subject: Subject, answer: Answer, rows: Sequence[Tensor] = ()) -> dict[str, float]:
    """How much answers depend on later tokens, on what padding holds and on other rows. What is compared has one shape,
    so that a network which drops something drops the same."""
    rows = rows or subject.rows
    ids, lengths = as_batch(rows, filler=subject.pad or 0)
    rng = generator(subject.plan.seed, "conditions")
    low = 0 if subject.pad is None else 1
    drawn = torch.randint(low, subject.plan.vocabulary, ids.shape, generator=rng)
    if subject.pad is not None:
        drawn = drawn.masked_fill(drawn == subject.pad, (subject.pad + 1) % subject.plan.vocabulary)
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    found = {}
    if subject.causal:
        full = ids[lengths == ids.shape[1]]
        before, worst = answer(full, None), 0.0
        for cut in cut_points(full.shape[1])[:: max(1, 5 // FEW)]:
            other = torch.cat((full[:, : cut + 1], drawn[: len(full), cut + 1 :]), 1)
            worst = max(worst, largest_change([before[:, : cut + 1]], [answer(other, None)[:, : cut + 1]]))
        found["later words"] = worst
    before = answer(ids, lengths)
    chosen = real if subject.causal else torch.ones(len(ids), dtype=torch.bool)
    if subject.pad is None and bool((lengths < ids.shape[1]).any()):
        after = answer(torch.where(real, ids, drawn), lengths)
        found["padding"] = largest_change([before[chosen]], [after[chosen]])
    kept = torch.zeros(len(ids), dtype=torch.bool)
    kept[:: max(1, len(ids) // 2)] = True
    if len(ids) > 1:
        after = answer(torch.where(real & ~kept[:, None], drawn, ids), lengths)
        mine = chosen & (kept[:, None] if subject.causal else kept)
        found["other texts of its batch"] = largest_change([before[mine]], [after[mine]])
    return found


def judged(found: dict[str, float], limit: float, where: str) -> Measured:
    name = max(found, key=lambda name: found[name] if found[name] == found[name] else torch.inf)
    bad = f"{where} predictions depend on {name}, by up to {found[name]:.2g} nats."
    return at_most(found[name], limit, f"{where} predictions depend on nothing that they may not see.", bad)


class TrainingMode:
    """A copy in training mode whose dropouts drop nothing; what it draws or remembers is the same at every call."""

    def __init__(self, subject: Subject) -> None:
        self.network = copy.deepcopy(subject.network).train()
        for module in self.network.modules():
            if isinstance(module, Dropout):
                module.share = 0.0
            elif isinstance(module, nn.modules.dropout._DropoutNd):
                module.p = 0.0
        self.buffers = {name: each.clone() for name, each in self.network.named_buffers()}

    @torch.no_grad()
    def __call__(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        for name, buffer in self.network.named_buffers():
            if name in self.buffers:
                buffer.copy_(self.buffers[name])
        with seeded(0):
            return self.network(ids, lengths).log_softmax(-1)


def in_float32(subject: Subject) -> Measured | str:
    if subject.dtype == torch.float32:
        return (
            "All checks ran in float32: it refuses float64, or its softmax is in float32 and its mask overflows there."
        )
    return single(subject, torch.device("cpu"), "In float32")


def on_device(subject: Subject) -> Measured | str | None:
    """In float32: not every device has float64."""
    device = torch.device(subject.plan.device)
    if device.type == "cpu":
        return None
    return single(subject, device, f"On {device}") if is_there(str(device)) else f"This machine has no device {device}."


def single(subject: Subject, device: torch.device, where: str) -> Measured:
    """What a copy in float32 gives on a device, beside what the network itself gives."""
    network = copy.deepcopy(subject.network).float().to(device)

    @torch.no_grad()
    def answer(ids: Tensor, lengths: Tensor | None) -> Tensor:
        return network(ids.to(device), lengths).log_softmax(-1).cpu().double()

    exact, found_there = subject.log_p(subject.full_rows), answer(subject.full_rows, None)
    size = 1 + float(exact.abs().max())
    found = leaks(subject, answer)
    if not max(found.values()) <= 1e-5 * size:
        return judged(found, 1e-5 * size, where)
    gap = largest_change([exact], [found_there])
    good = f"{where} predictions depend on nothing that they may not see, and are those of float64."
    bad = f"{where} predictions differ from those of float64 on the CPU by up to {gap:.2g} nats."
    return at_most(gap, 1e-2 * size, good, bad)


def in_bf16(subject: Subject) -> Measured | str | None:
    if not subject.bf16:
        return None
    network = copy.deepcopy(subject.network).float()

    @torch.no_grad()
    def answer(ids: Tensor, lengths: Tensor | None) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return network(ids, lengths).float().log_softmax(-1)

    size = 1 + float(answer(subject.full_rows, None).abs().max())
    return judged(leaks(subject, answer), 4 * HALF * size, "Under autocast to bfloat16")


def over_long_texts(subject: Subject) -> Measured | str:
    """Texts of twice the training length, and of more than three chunks or windows, where it reads so many tokens."""
    length, chunk = subject.plan.shape.length, chunk_of(subject)
    sizes = {min(LONGEST, max(2 * length, CHUNKS * chunk + 1)), min(LONGEST, length), subject.longest}
    why = ""
    for time_ in sorted(sizes, reverse=True):
        if time_ <= subject.longest:
            break
        rows, started = long_rows(subject, time_), time.process_time()
        try:
            subject.log_p(rows[0][None])
            if (seconds := time.process_time() - started) > CALL_SECONDS / LONG_CALLS:
                why = f"{time_} take {seconds:.1f} s"
                continue
        except (BadInput, IndexError, RuntimeError, ValueError) as error:
            why = first_line(error)
            continue
        found = leaks(subject, subject.log_p, rows)
        if subject.causal and subject.network.new_cache() is not None:
            few = min(FEW, time_ - 1)
            full, pieces = subject.log_p(rows[0][None]), [time_ - few, *[1] * few]
            found["whether a cache is used"] = largest_change([full], [subject.in_pieces(rows[0][None], pieces)])
        measured = judged(found, subject.tolerance, f"Over {time_} tokens")
        if measured.passed and time_ <= CHUNKS * chunk:
            crossed = f"its chunks or windows of {chunk:,} are not crossed"
            return f"{measured.meaning[:-1]}, but {crossed}{f' ({why})' if why else ''}: build it with smaller ones."
        return measured
    if chunk and CHUNKS * chunk < subject.longest:
        return f"It reads at most {subject.longest} tokens, {subject.longest // chunk} chunks, as all checks did."
    return f"It reads at most {subject.longest} tokens{f' ({why})' if why else ''}."


def chunk_of(subject: Subject) -> int:
    """Tokens of a chunk or window, where the network or a part declares one."""
    if subject.external is not None:
        return subject.external.declared.chunk
    reaches = [part.window(subject.causal) for part in subject.parts.values() if part.overrides("window")]
    return max((max(reach) for reach in reaches if reach is not None), default=0)


def long_rows(subject: Subject, size: int) -> list[Tensor]:
    rng = generator(subject.plan.seed, "long")
    low = 0 if subject.pad is None else subject.pad + 1
    return [torch.randint(low, subject.plan.vocabulary, (each,), generator=rng) for each in (size, size, size // 2 + 1)]


def mask_of_ones(subject: Subject) -> Measured | str:
    """No mask, and a mask that says that all tokens are real."""
    if subject.external is not None and not subject.external.mask_name:
        return "It takes no mask."
    worst = 0.0
    for ids in (subject.full_rows, subject.full_rows[:1]):
        if subject.external is not None:
            with torch.no_grad():
                masked = subject.external.logits(ids, torch.ones_like(ids)).log_softmax(-1)
        else:
            masked = subject.log_p(ids, torch.full((len(ids),), ids.shape[1]))
        worst = max(worst, largest_change([subject.log_p(ids)], [masked]))
    bad = f"A mask that hides nothing changes predictions, by up to {worst:.2g} nats."
    return at_most(worst, subject.tolerance, "A mask that hides nothing changes nothing.", bad)


@torch.no_grad()
def mask_among_kwargs(subject: Subject) -> Measured | str | None:
    """A network that names no mask and takes any keyword: it should use a mask, or refuse it."""
    network = subject.external
    if network is None or network.mask_name or not network.open:
        return None
    ids, name = subject.full_rows[:1], "attention_mask"
    given = {name: (torch.arange(ids.shape[1]) >= ids.shape[1] // 2).to(MASKS[name])[None]}
    try:
        masked = network.find_logits(network.call(ids, given), ids, given).log_softmax(-1)
    except BadInput as refused:
        return f"It refuses a mask ({first_line(refused)})."
    change = largest_change([subject.log_p(ids)], [masked])
    bad = f"It takes {name} among its **kwargs and ignores it: a padded text is read with its padding."
    return more_than(change, subject.tolerance, f"It uses {name}, which it takes among its **kwargs.", bad)


def position_change(subject: Subject) -> float:
    """How much predictions change when the position ids 0, 1, 2 ... are given with a text."""
    network, ids = subject.external, subject.full_rows
    assert network is not None
    with torch.no_grad():
        return largest_change([subject.log_p(ids)], [network.logits(ids, positions=True).log_softmax(-1)])


def counts_from_zero(subject: Subject) -> bool:
    """Whether the network takes position ids, and means by them what most do."""
    network = subject.external
    return network is not None and network.takes_positions and position_change(subject) <= subject.tolerance


@torch.no_grad()
def position_ids(subject: Subject) -> Measured | str:
    """Position ids that say what the network assumes anyway, of whole texts and of texts with padding after them."""
    network = subject.external
    if network is None or not network.takes_positions:
        return "It takes no position ids."
    if (change := position_change(subject)) > subject.tolerance:
        return Measured(change, "-", None, "The position ids 0, 1, 2 ... change predictions: it counts otherwise.")
    if network.declared.pads not in ("right", "both"):
        return at_most(change, subject.tolerance, "Position ids from 0 change nothing.", "")
    ids, lengths = as_batch(subject.rows, filler=subject.pad or 0)
    found = network.logits(ids, real_tokens(ids, lengths), positions=True).log_softmax(-1)
    alone = [subject.answers([row])[0] for row in subject.rows]
    own = [each[: len(row)] if network.causal else each for each, row in zip(found, subject.rows, strict=True)]
    worst = largest_change(alone, own)
    bad = f"Position ids beside padding after a text change its predictions, by up to {worst:.2g} nats."
    return at_most(worst, subject.tolerance, "Position ids from 0 change nothing, also beside padding.", bad)


def no_left(subject: Subject) -> str:
    """Why padding on the left cannot be asked about; empty: it can."""
    if subject.external is None:
        return "It takes lengths: padding stands on the right."
    pads = subject.external.declared.pads
    return "" if pads in ("left", "both") else f"It declares pads = {pads}."


@torch.no_grad()
def left_padded(network: ExternalModel, rows: Sequence[Tensor], width: int, filler: Tensor, positions: bool) -> Any:
    """Log-probabilities of each row when all are one batch, padded on the left."""
    ids, lengths = as_batch(rows, width, filler)
    found = network.logits(*padded_left(ids, lengths), positions=positions).log_softmax(-1)
    if not network.causal:
        return list(found)
    return [each[: len(row)] for each, row in zip(unpadded_left(found, lengths), rows, strict=True)]


def left_filler(subject: Subject) -> Tensor:
    """Any tokens, in place of padding [time]"""
    rng = generator(subject.plan.seed, "left")
    return torch.randint(subject.plan.vocabulary, (subject.longest,), generator=rng)


def left_change(subject: Subject, *, positions: bool) -> tuple[float, str]:
    """The largest change by padding on the left, and where: each row by itself, and all together."""
    network = subject.external
    assert network is not None
    drawn = left_filler(subject)
    fillers = (torch.zeros_like(drawn), drawn) if subject.pad is None else (torch.full_like(drawn, subject.pad),)
    rows = [row for row in subject.rows if len(row) > 1] or list(subject.rows)
    alone = [subject.answers([row])[0] for row in rows]
    found = {"a batch of one": 0.0, "a batch": 0.0}
    for filler in fillers:
        for row, answer in zip(rows, alone, strict=True):
            for width in sorted({len(row) + 1, subject.longest} - {len(row)}):
                if width <= subject.longest:
                    changed = left_padded(network, [row], width, filler, positions)
                    found["a batch of one"] = max(found["a batch of one"], largest_change([answer], changed))
        changed = left_padded(network, rows, subject.longest, filler, positions)
        found["a batch"] = max(found["a batch"], largest_change(alone, changed))
    where = max(found, key=found.__getitem__)
    return found[where], where


def left_padding(subject: Subject) -> Measured | str:
    """With position ids, where the network takes them."""
    if why := no_left(subject):
        return why
    assert subject.external is not None
    positions = counts_from_zero(subject)
    worst, where = left_change(subject, positions=positions)
    how = " with position ids" if positions else ""
    bad = f"Padding before a text{how} changes its predictions in {where}, by up to {worst:.2g} nats."
    return at_most(worst, subject.tolerance, f"Padding before a text{how} changes nothing.", bad)


def left_without_positions(subject: Subject) -> Measured | str | None:
    """A network with absolute positions cannot know where a text begins unless it counts by the mask: to know, not to
    pass."""
    if subject.external is None or no_left(subject) or not counts_from_zero(subject):
        return None
    worst, _ = left_change(subject, positions=False)
    needs = "Padding before a text changes its predictions unless position ids are given."
    good = "Padding before a text changes nothing, also without position ids."
    return Measured(worst, "-", None, needs if worst > subject.tolerance else good)


def cache_beside_padding(subject: Subject) -> Measured | str:
    """Texts of several lengths, padded on the left: a prompt, then token by token with a cache. The mask is of all
    tokens so far, as attention needs it, or given with the prompt alone, as a recurrent network needs it."""
    network = subject.external
    if subject.network.new_cache() is None:
        return "It offers no cache."
    if network is None:
        return "Its cache takes texts of one length."
    if why := no_left(subject):
        return why
    rows = [row for row in subject.rows if len(row) > 1][:6]
    if not rows:
        return "The texts are too short."
    alone = [subject.answers([row])[0] for row in rows]
    changes, refused = {}, ""
    for words, often in (("a mask of all tokens", True), ("a mask of the prompt alone", False)):
        try:
            changes[words] = max(
                largest_change(alone[-size:], decoded(subject, rows[-size:], often))
                for size in (len(rows), 1)  # and a batch of one, with padding
            )
        except BadInput as error:
            changes[words], refused = torch.inf, first_line(error)
    words = min(changes, key=lambda each: changes[each])
    if refused and changes[words] == torch.inf:
        return at_most(torch.inf, subject.tolerance, "", f"A padded batch with a cache: {refused}")
    bad = f"With a cache and {words}, a padded batch changes predictions by up to {changes[words]:.2g} nats."
    return at_most(changes[words], subject.tolerance, f"With a cache and {words}, padding changes nothing.", bad)


@torch.no_grad()
def decoded(subject: Subject, rows: Sequence[Tensor], often: bool) -> list[Tensor]:
    """Log-probabilities of each row, of a batch that is padded on the left, with any tokens (the vector of a token for
    padding is zero, and changes no sum), and read with a cache. `often`: with a mask at every step."""
    filler = left_filler(subject) if subject.pad is None else subject.pad
    network, (ids, lengths) = subject.network, as_batch(rows, subject.longest, filler)
    shifted, mask = padded_left(ids, lengths)
    few = min(FEW, int(lengths.min()) - 1)  # the prompt of every text has a token
    cache, found, seen = network.new_cache(), [], 0
    for piece in shifted.split([ids.shape[1] - few, *[1] * few], 1):
        given = mask[:, : seen + piece.shape[1]] if often or not seen else None
        found.append(network.cached(piece, cache, given, positions=counts_from_zero(subject)))
        seen += piece.shape[1]
    whole = unpadded_left(torch.cat(found, 1).log_softmax(-1), lengths)
    return [log_p[: len(row)] for log_p, row in zip(whole, rows, strict=True)]


@torch.no_grad()
def after_many_calls(subject: Subject) -> Measured:
    """The same answer after thousands of calls; as many as a limited time allows."""
    ids, lengths = as_batch(subject.rows[:4])
    short, network = subject.rows[0][None, :4], subject.network
    before, weights = subject.log_p(ids, lengths), {name: each.clone() for name, each in weights_of(network).items()}
    done, until = 0, time.process_time() + CALL_SECONDS
    while done < subject.calls and time.process_time() < until:
        network(short)
        done += 1
    worst = largest_change([before], [subject.log_p(ids, lengths)])
    moved = [name for name, each in weights_of(network).items() if name in weights and not same(each, weights[name])]
    good = f"After {done:,} calls it gives its first answers."
    bad = f"After {done:,} calls its answers have moved by {worst:.2g} nats"
    return at_most(worst, 0.0, good, bad + (f" ({moved[0]!r} has changed)." if moved else "."))


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:120]
