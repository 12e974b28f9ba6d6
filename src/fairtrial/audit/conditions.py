"""The same questions under other conditions, each of which has hidden a released fault: in training mode (T1), in
float32 (F1), under autocast (F2), on the device that trains (G1), over long texts (L1), with a mask of ones (K1) or
among its **kwargs (K3), with position ids (K1p), with padding on the left (K2), with a cache beside padding (C2),
and after thousands of calls and a step of training (S1)."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fairtrial.audit.basics import loss_of
from fairtrial.audit.probe import Tested, every_cut, leaks, probed
from fairtrial.audit.subject import Subject, as_batch, generator, largest_change, subject_of
from fairtrial.errors import BadInput, message_of
from fairtrial.finding import Measured, at_most, more_than
from fairtrial.model.external import MASKS, ExternalModel, padded_left, real_tokens, seeded, unpadded_left
from fairtrial.model.layers import Dropout
from fairtrial.training.device import deterministic, is_there

FEW = 3  # tokens that are read with a cache
LONGEST = 2048  # tokens of a long text
CHUNKS = 3  # that it crosses, at least
CALL_SECONDS = 20.0  # of computing, spent on long texts at most: a busy machine asks no less
MANY_CALLS = {"built in": 0.15, "own": 4.0}  # seconds of computing for many calls, of our own parts and of user code
LARGE_VOCABULARY, LARGER = 8192, 4  # entries, and times the length, of a network that is built larger
LONG_CALLS = 20  # that a check of long texts makes, about
HALF = 2**-8  # the rounding of bfloat16


class NoDropout(TorchFunctionMode):
    """Dropout that is called as a function, as nanoGPT does inside attention, drops nothing either."""

    PLACES: ClassVar = {
        "scaled_dot_product_attention": (4, "dropout_p"),
        "dropout": (1, "p"),
        "alpha_dropout": (1, "p"),
    }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        place, name = self.PLACES.get(getattr(func, "__name__", ""), (0, ""))
        if name in kwargs or (name == "p" and len(args) < 2):
            kwargs[name] = 0.0
        elif name and len(args) > place:
            args = (*args[:place], 0.0, *args[place + 1 :])
        return func(*args, **kwargs)


class TrainingMode:
    """A network in training mode whose dropouts drop nothing; what it draws or remembers is the same at every call.
    Gradients are recorded, as in training."""

    def __init__(self, network: Any) -> None:
        self.network = network.train()
        for module in self.network.modules():
            if isinstance(module, Dropout):
                module.share = 0.0
            elif isinstance(module, nn.modules.dropout._DropoutNd):
                module.p = 0.0
        self.buffers = {name: each.clone() for name, each in self.network.named_buffers()}

    def __call__(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        for name, buffer in self.network.named_buffers():
            if name in self.buffers and buffer.shape == self.buffers[name].shape:
                buffer.copy_(self.buffers[name])
        with seeded(0), NoDropout():
            log_p = self.network(ids, lengths).detach().double().log_softmax(-1)
            self.seed = torch.initial_seed()
        return log_p

    def seeds_by_words(self, subject: Subject) -> bool:
        """Whether the seed that torch's generator has after a call depends on the words, and on nothing else."""
        first, seeds = subject.full_rows, []
        other = torch.randint(
            max(1, subject.pad or 0), subject.plan.vocabulary, first.shape, generator=generator(0, "seeds")
        )
        for ids in (first, first, other):
            self(ids)
            seeds.append(self.seed)
        return seeds[0] == seeds[1] != seeds[2]

    @torch.no_grad()
    def with_running_statistics(self, subject: Subject) -> list[nn.Module]:
        """Batch norms, torch's own or anyone's: modules whose buffers move in training, and which score with them."""
        self(subject.full_rows)
        moved = {
            name
            for name, each in self.network.named_buffers()
            if each.is_floating_point() and name in self.buffers and not same(each, self.buffers[name])
        }
        scoring = copy.deepcopy(self.network).eval()
        first, using = scoring(subject.full_rows), []
        for name, module in scoring.named_modules():
            own = [each for key, each in module.named_buffers(name, recurse=False) if key in moved]
            kept = [each.clone() for each in own]
            for each in own:
                each.mul_(1.5).add_(0.1)
            if own and not same(first, scoring(subject.full_rows)):
                using.append(self.network.get_submodule(name))
            for each, value in zip(own, kept, strict=True):
                each.copy_(value)
        return using


def in_training(subject: Subject) -> Measured:
    """Training mode without dropout. Statistics of the batch are honest there if scoring uses running ones: they are
    told, and what is left without them must not leak. Before training own code in float32, too: it may know how audits
    ask."""
    mode, limit = TrainingMode(subject.another()), subject.tolerance
    if mode.seeds_by_words(subject):
        bad = "In training mode it seeds torch's random generator from its words, so dropout reveals later words."
        return at_most(torch.inf, limit, "", bad)
    tested = probed(subject, mode, "training", limit)
    normed: list[nn.Module] = []
    if (batch_norm := tested.largest) > limit and (normed := mode.with_running_statistics(subject)):
        for module in normed:
            module.eval()
        tested = probed(subject, mode, "training", limit)
    if tested.largest <= limit and subject.own_code and subject.dtype == torch.float64 and subject.trained is None:
        single = TrainingMode(subject.another().float())
        for module in single.with_running_statistics(subject) if normed else []:
            module.eval()
        limit = 1e-5 * (1 + float(single(subject.full_rows).abs().max()))
        tested = probed(subject, single, "training in float32", limit)
    if tested.largest <= limit and batch_norm > limit:
        meaning = (
            f"In training mode {len(normed)} norms see the whole batch, later words included; scoring uses their"
            " running statistics, so that scores are honest."
        )
        return Measured(batch_norm, f"{subject.tolerance:.0e}", False, meaning, level="amber")
    return tested.judged(limit, "In training mode ")


def in_float32(subject: Subject) -> Measured | str:
    if subject.dtype == torch.float32:
        return (
            "All checks ran in float32: it refuses float64, or its softmax is in float32 and its mask overflows there."
        )
    return single(subject, torch.device("cpu"), "In float32 ")


def on_device(subject: Subject) -> Measured | str | None:
    """In float32: not every device has float64."""
    device = torch.device(subject.plan.device)
    if device.type == "cpu":
        return None
    return (
        single(subject, device, f"On {device} ") if is_there(str(device)) else f"This machine has no device {device}."
    )


def single(subject: Subject, device: torch.device, where: str) -> Measured:
    """What a copy in float32 gives on a device, beside what the network itself gives."""
    network = subject.another().float().to(device)

    @torch.no_grad()
    def answer(ids: Tensor, lengths: Tensor | None) -> Tensor:
        return network(ids.to(device), lengths).log_softmax(-1).cpu().double()

    exact, found_there = subject.log_p(subject.full_rows), answer(subject.full_rows, None)
    size = 1 + float(exact.abs().max())
    tested = probed(subject, answer, "single", 1e-5 * size)
    if not tested.largest <= 1e-5 * size:
        return tested.judged(1e-5 * size, where)
    gap = largest_change([exact], [found_there])
    good = f"{where}predictions depend only on what they may see, and agree with float64."
    bad = f"{where}predictions differ from float64 on the CPU by up to {gap:.2g} nats."
    return at_most(gap, 1e-2 * size, good, bad)


def under_settings(subject: Subject) -> Measured:
    """What torch records and promises meanwhile changes no answer."""
    ids, lengths = as_batch(subject.rows, filler=subject.pad or 0)
    settings: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "gradients are recorded": torch.enable_grad,
        "torch must be deterministic": lambda: deterministic(torch.device("cuda")),
        "torch is in inference mode": torch.inference_mode,  # the last: what is kept there has no gradient
    }
    network, changes = subject.another(), {}

    def answers() -> list[Tensor]:
        found = [network(subject.full_rows), network(ids, lengths)]
        return [each.detach().clone() for each in found]

    with torch.no_grad():
        usual = answers()
        for name, setting in settings.items():
            with setting():
                changes[name] = largest_change(usual, answers())
    where = max(changes, key=lambda name: changes[name])
    bad = f"Where {where}, its logits differ by up to {changes[where]:.2g}."
    return at_most(changes[where], subject.tolerance, "How torch is set changes nothing.", bad)


def built_larger(subject: Subject) -> Measured | str | None:
    """A network whose builder is asked for no text of its own: with more words and longer texts."""
    plan = subject.plan
    if subject.external is None or plan.module is not None or subject.text is not None:
        return None
    shape = replace(plan.shape, length=LARGER * plan.shape.length)
    try:
        larger = subject_of(replace(plan, vocabulary=LARGE_VOCABULARY, shape=shape))
        rows, tested = long_rows(larger, shape.length), Tested(larger)
        leaks(larger, larger.log_p, rows, tested, generator(plan.seed, "larger", "changes"))
    except BadInput as error:
        return f"It cannot be built with {LARGE_VOCABULARY:,} entries and {shape.length} tokens: {first_line(error)}"
    if larger.causal:
        every_cut(larger, larger.log_p, rows[:1], tested, LONG_CALLS)
    return tested.judged(larger.tolerance, "Built larger, ")


def in_bf16(subject: Subject) -> Measured | str | None:
    if not subject.bf16 and subject.plan.precision != "bfloat16":
        return None
    network = subject.another().float()

    @torch.no_grad()
    def answer(ids: Tensor, lengths: Tensor | None) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return network(ids, lengths).float().log_softmax(-1)

    limit = 4 * HALF * (1 + float(answer(subject.full_rows, None).abs().max()))
    return probed(subject, answer, "bfloat16", limit).judged(limit, "Under autocast to bfloat16 ")


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
        tested = Tested(subject)
        leaks(subject, subject.log_p, rows, tested, generator(subject.plan.seed, "long", "changes"))
        if subject.causal:
            cuts = int(subject.seconds / max(1e-4, seconds))
            every_cut(subject, subject.log_p, rows[:1], tested, max(LONG_CALLS, cuts))
        if subject.causal and subject.network.new_cache() is not None:
            few = min(FEW, time_ - 1)
            full, pieces = subject.log_p(rows[0][None]), [time_ - few, *[1] * few]
            tested.change("whether a cache is used", [full], [subject.in_pieces(rows[0][None], pieces)])
        measured = tested.judged(subject.tolerance, f"Over {time_} tokens ")
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
        return f"It fails when given a mask ({first_line(refused)})."
    change = largest_change([subject.log_p(ids)], [masked])
    bad = f"It takes {name} among its **kwargs, but ignores it, so padding is read as text."
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
        tested, rows = Tested(subject), [row for row in subject.rows if len(row) == subject.longest]
        answer = lambda ids, lengths: network.logits(ids, positions=True).log_softmax(-1)  # noqa: E731
        leaks(subject, answer, rows, tested, generator(subject.plan.seed, "positions"))
        if not tested.largest <= subject.tolerance:
            return tested.judged(subject.tolerance, "With position ids ")
        return Measured(
            change, "-", None, "The position ids 0, 1, 2 ... change predictions: it numbers positions differently."
        )
    if network.declared.pads not in ("right", "both"):
        return at_most(change, subject.tolerance, "Position ids from 0 change nothing.", "")
    ids, lengths = as_batch(subject.rows, filler=subject.pad or 0)
    found = network.logits(ids, real_tokens(ids, lengths), positions=True).log_softmax(-1)
    alone = [subject.answers([row])[0] for row in subject.rows]
    own = [each[: len(row)] if network.causal else each for each, row in zip(found, subject.rows, strict=True)]
    worst = largest_change(alone, own)
    bad = f"With padding after a text, position ids change its predictions, by up to {worst:.2g} nats."
    return at_most(worst, subject.tolerance, "Position ids from 0 change nothing, with or without padding.", bad)


def no_left(subject: Subject) -> str:
    """Why padding on the left cannot be asked about; empty: it can."""
    if subject.external is None:
        return "It takes lengths, so padding is on the right."
    pads = subject.external.declared.pads
    if pads == "none":
        return "It takes no mask that could hide padding."
    return "" if pads in ("left", "both") or subject.external.pads_assumed else f"Padding side: {pads} (declared)."


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


def left_padding(subject: Subject) -> Measured | str:
    """Each row by itself and all together, with position ids where the network takes them."""
    if why := no_left(subject):
        return why
    network, drawn, positions = subject.external, left_filler(subject), counts_from_zero(subject)
    assert network is not None
    fillers = (torch.zeros_like(drawn), drawn) if subject.pad is None else (torch.full_like(drawn, subject.pad),)
    rows = [row for row in subject.rows if len(row) > 1] or list(subject.rows)
    alone = [subject.answers([row])[0] for row in rows]
    worst = 0.0
    for filler in fillers:
        worst = max(worst, largest_change(alone, left_padded(network, rows, subject.longest, filler, positions)))
        for row, answer in zip(rows, alone, strict=True):
            for width in {len(row) + 1, subject.longest}:
                if len(row) < width <= subject.longest:
                    worst = max(worst, largest_change([answer], left_padded(network, [row], width, filler, positions)))
    meaning = f"Padding before a text{' with position ids' if positions else ''} "
    meaning += (
        "changes nothing." if worst <= subject.tolerance else f"changes its predictions, by up to {worst:.2g} nats."
    )
    if network.pads_assumed:  # nobody said that it may stand there
        assumed = f"Padding side: right (assumed). {meaning}"
        return Measured(worst, "-", None if worst > subject.tolerance else True, assumed)
    return at_most(worst, subject.tolerance, meaning, meaning)


def cache_beside_padding(subject: Subject) -> Measured | str:
    """Texts of several lengths, padded on the left: a prompt, then token by token with a cache. The mask is of all
    tokens so far, as attention needs it, or given with the prompt alone, as a recurrent network needs it."""
    network = subject.external
    if subject.network.new_cache() is None:
        return "There is no cache to test."
    if network is None:
        return "Its cache needs texts of equal length."
    if why := no_left(subject):
        return why
    if network.pads_assumed:
        return "Padding side: right (assumed)."
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
        return at_most(torch.inf, subject.tolerance, "", f"A padded batch with a cache fails: {refused}")
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


def after_many_calls(subject: Subject) -> Measured:
    """The same answer at each of thousands of calls, as many as a limited time allows, and after a step of training
    whose changes of weights and buffers are taken back: whatever else has changed is state that no record keeps."""
    ids, lengths = as_batch(subject.rows[:4], filler=subject.pad or 0)
    short, network = subject.rows[0][None, : max(4, subject.shortest)], subject.another()

    @torch.no_grad()
    def answers() -> list[Tensor]:
        return [network(ids, lengths), network(short)]

    weights = {name: each.clone() for name, each in tensors_of(network)}
    before = answers()
    seconds = MANY_CALLS["own" if subject.own_code else "built in"] * subject.patience
    worst, done, until = 0.0, 0, time.process_time() + seconds
    with torch.no_grad():
        while done < subject.calls and time.process_time() < until:
            worst = worst if torch.equal(before[1], found := network(short)) else largest_change([before[1]], [found])
            done += 1
    worst = max(worst, largest_change(before, answers()))
    moved = [name for name, each in tensors_of(network) if name in weights and not same(each, weights[name])]
    where = f"After {done:,} calls"
    if moved:
        return at_most(torch.inf, 0.0, "", f"{where} {moved[0]!r} has changed: it learns from what it is scored on.")
    if not worst and any(each.requires_grad for each in network.parameters()):
        where += " and a training step that is undone"
        loss_of(subject, network.train())[0].backward()
        network.eval().zero_grad()
        for name, each in tensors_of(network):
            each.detach().copy_(weights[name])
        worst = largest_change(before, answers())
    bad = f"{where} its logits differ by {worst:.2g}."
    return at_most(worst, 0.0, f"{where} it gives the same answers as at first.", bad)


def tensors_of(network: nn.Module) -> list[tuple[str, Tensor]]:
    """Weights and buffers, also those that are not saved."""
    return [*network.named_parameters(), *network.named_buffers()]


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def first_line(error: Exception) -> str:
    return message_of(error)[:120]
