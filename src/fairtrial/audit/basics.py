"""The basic checks, of a few rows. What a network may see: attention rows sum to one (M1) and put nothing on what is
hidden (M2), and no gradient flows from a decoder's predictions to later tokens (M4); `probe` asks about the rest.
Positions: does a network see word order (M8), and do parts keep their claims about positions (M9, M9r)? Sanity:
attention has not collapsed (M10), blocks can be the identity (M11), the first loss and the gradients are as they should
be (M14). And what a network brings of its own (O). What user code knows beside input and weights: tables
(O3), what it reads (O4) and what changes from call to call (S2); whoever waits for a day, a file or a count of calls
cannot be waited for, but where it looks can be seen."""

from __future__ import annotations

import copy
import hashlib
import math
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import ExitStack
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fairtrial.audit.subject import Subject, as_batch, generator, largest_change, of_library
from fairtrial.finding import Measured, at_most, more_than
from fairtrial.model.external import ExternalModel, is_library_file, real_tokens, seeded
from fairtrial.model.layers import FeedForward, capture
from fairtrial.model.part import OTHER_WEIGHTS, AttentionContext, Part

CUTS = 5
LEAST = 1e-6  # of a change that counts as seeing word order
SHORTEST = 3  # two words that see each other by their distance alone have no order
DEPTH = 6  # of values inside values that are looked at
BITS, LETTERS = 8, 4  # of a number or a text, for each entry of a vocabulary that it could hold
SETTLING, CALLS = 3, 3  # calls in which a network may fill its caches, and those that must then change nothing
STDLIB = Path(sysconfig.get_path("stdlib"))
FILES, CALLERS, CLOCK, ENVIRONMENT = "files", "the variables of its callers", "the clock", "environment variables"
MODULES = {"time": CLOCK, "gc": CALLERS, "_io": FILES, "io": FILES, "mmap": FILES, "_socket": "the network"}
SYSTEM = frozenset("open stat lstat listdir scandir access readlink remove unlink rename replace mkdir system".split())
FUNCTIONS = {"_getframe": CALLERS, "_current_frames": CALLERS, "datetime.now": CLOCK, "datetime.today": CLOCK}
FUNCTIONS |= {"datetime.utcnow": CLOCK, "date.today": CLOCK}
ENVIRON: frozenset[CodeType] = frozenset(
    cast(FunctionType, each).__code__ for each in (os._Environ.__getitem__, os._Environ.__setitem__)
)
TRANSPARENT = ("numpy", "torch/serialization.py", "safetensors")  # read files in the name of whoever calls them
QUIET = ("logging", "warnings.py", "linecache.py", "traceback.py")  # look at callers to name them


@torch.no_grad()
def maps_of(subject: Subject, fresh: bool = False) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Each layer's (maps [batch head query key], open keys [batch query key], real queries [batch query]).

    Open keys are computed here, from lengths, causality and the parts' own `allow`, not taken from attention."""
    network: Any = subject.fresh if fresh else subject.network
    ids, lengths = as_batch(subject.rows)
    if isinstance(network, ExternalModel):
        full = subject.full_rows  # and without a mask: some leave the causal one out, too
        for asked, sizes in ((ids, lengths), (full, None)):
            real = torch.ones_like(asked, dtype=torch.bool) if sizes is None else real_tokens(asked, sizes)
            open_keys = real[:, None, :].expand(-1, asked.shape[1], -1)
            open_keys = open_keys.tril() if subject.causal else open_keys
            for maps in network.attention_maps(asked, sizes):
                yield maps, open_keys, real
        return
    views: list[Any] = []
    with ExitStack() as hooks, capture(network) as seen:
        for block in network.body.blocks:
            see = block.attention.register_forward_pre_hook(lambda module, given: views.append(given[1]))
            hooks.enter_context(see)
        network(ids, lengths)
    for layer, view in enumerate(views):
        maps = seen[f"body.blocks.{layer}.attention.maps"]
        context = AttentionContext(layer, subject.causal, view.queries, view.keys)
        added = maps.shape[-1] - ids.shape[1]  # tokens that a part has added are real
        real = torch.arange(maps.shape[-1]) < (lengths + added)[:, None]  # batch key
        open_keys = real[:, None, :].expand(-1, maps.shape[-2], -1)
        if subject.causal:
            open_keys = open_keys & (context.offset >= 0)
        for part in subject.parts.values():
            allowed = part.allow(context)
            open_keys = open_keys if allowed is None else open_keys & allowed
        yield maps, open_keys, real


def no_maps(subject: Subject) -> str:
    """Why attention maps cannot be asked for; empty: they can."""
    found = subject.external
    if found is None:
        return ""
    if not found.declared.maps:
        return "It offers no attention maps."
    if found.declared.pads not in ("right", "both"):
        return "It does not pad on the right, as attention maps require."
    return ""


def rows_sum(subject: Subject) -> Measured | str | None:
    if why := no_maps(subject):
        return why
    if any(part.overrides(hook) for part in subject.parts.values() for hook in OTHER_WEIGHTS):
        return None
    worst = 0.0
    for maps, open_keys, real in maps_of(subject):
        sees = (open_keys.any(-1) & real)[:, None].expand(maps.shape[:-1])  # a row without open keys is zero
        totals, least = maps.sum(-1)[sees], maps.amin(-1)[sees]
        gap = torch.maximum((totals - 1).abs(), -least).nan_to_num(torch.inf)
        worst = max(worst, float(gap.max()) if len(gap) else 0.0)
    good = "The attention weights of every token sum to 1."
    bad = "Attention weights of a token do not sum to 1, so attention maps are not reliable."
    return at_most(worst, 1e-6, good, bad)


def nothing_hidden(subject: Subject) -> Measured | str:
    if why := no_maps(subject):
        return why
    on_hidden = [  # what stands in a row of padding means nothing, also where it is no number
        maps.masked_fill((open_keys | ~real[:, :, None])[:, None], 0.0) for maps, open_keys, real in maps_of(subject)
    ]
    worst = max((float(weights.abs().nan_to_num(torch.inf).max()) for weights in on_hidden), default=0.0)
    good = "No token attends to padding or to what is hidden from it."
    bad = "Tokens attend to padding or to positions that are hidden from them."
    return at_most(worst, 0.0, good, bad)


def cut_points(time: int) -> list[int]:
    """The last positions that keep their token: at most five, from the first to the last but one."""
    if time < 2:
        return []
    return sorted({round(position) for position in torch.linspace(0, time - 2, CUTS).tolist()})


def future_gradient(subject: Subject) -> Measured | str:
    if subject.embedding is None:
        return 'Unknown token embedding: declare "embedding".'
    ids = subject.full_rows[:: max(1, len(subject.full_rows) // 2)]  # a real and a random row
    leaf: list[Tensor] = []

    def cut_off(module: torch.nn.Module, given: object, vectors: Tensor) -> Tensor:
        leaf.append(vectors.detach().requires_grad_())
        return leaf[-1].clone()  # which may be changed in place

    try:
        with subject.embedding.register_forward_hook(cut_off):
            logits = subject.network(ids)
            if logits.requires_grad:
                logits.sum().backward(retain_graph=True)
    except Exception as error:
        if subject.external is None:
            raise
        return f"In evaluation mode it gives no gradient: {str(error.__cause__ or error)[:100]}"
    if len(leaf) != 1 or leaf[0].numel() % ids.numel():
        return "Its token embedding is not called once for each text."
    rng = generator(subject.plan.seed, "gradient")
    weights = torch.randn(logits.shape[-1], generator=rng).to(logits.dtype)  # so that the sum does not cancel
    worst = largest = 0.0
    for cut in cut_points(ids.shape[1]):
        target = (logits[:, : cut + 1] @ weights).sum()
        (gradient,) = torch.autograd.grad(target, leaf[0], retain_graph=True)
        gradient = gradient.reshape(*ids.shape, -1).abs().nan_to_num(torch.inf)
        worst, largest = max(worst, float(gradient[:, cut + 1 :].max())), max(largest, float(gradient.max()))
    limit = 0.0 if subject.external is None else min(1e-6, subject.tolerance) * largest  # ours masks to exact zeros
    good = "No gradient flows from a prediction to a later word."
    bad = "A gradient flows from a prediction to later words: training can learn to read the answer."
    return at_most(worst, limit, good, bad)


def orders(time: int, seed: int) -> list[Tensor]:
    """A swap of the first two words, of the first and the last, and four shuffles."""
    swapped, ends = torch.arange(time), torch.arange(time)
    swapped[:2], ends[[0, -1]] = swapped[:2].flip(0), ends[[-1, 0]]
    rng = generator(seed, "orders")
    return [swapped, ends, *(torch.randperm(time, generator=rng) for _ in range(4))]


def random_heads(subject: Subject, time: int, use: str) -> tuple[Tensor, Tensor]:
    """Queries and keys of random content [batch head time head_dim]"""
    rng = generator(subject.plan.seed, use)
    shape = (1, subject.plan.shape.heads, time, subject.plan.shape.head_dim)
    q, k = (torch.randn(shape, generator=rng).to(subject.network.out.weight.dtype) for _ in range(2))
    return q, k


@torch.no_grad()
def scores_at(part: Part, q: Tensor, k: Tensor, positions: Tensor, causal: bool) -> Tensor:
    """Scores of this part alone in every layer [layer head query key]; what it forbids scores -1000."""
    found = []
    for layer in range(part.shape.layers):
        context = AttentionContext(layer, causal, positions, positions)
        here_q, here_k, _ = part.project(q.clone(), k.clone(), k.clone(), context)
        turned_q, turned_k = part.rotate(here_q, here_k, context)
        if (attached := part.attach(q.transpose(1, 2).flatten(2), context)) is not None:  # heads side by side: a vector
            context.attached[part] = attached
        scores = turned_q @ turned_k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        bias = part.bias(context)
        scores = part.score(scores if bias is None else scores + bias, turned_q, turned_k, context)
        allowed = part.allow(context)
        found.append((scores if allowed is None else scores.masked_fill(~allowed, -1000.0))[0])
    return torch.stack(found)


@torch.no_grad()
def order_of_part(subject: Subject, part: Part) -> float:
    """How much a part's output depends on word order: 0 where scores and vectors only move along with the words."""
    time, worst = subject.longest, 0.0
    q, k = random_heads(subject, time, "order")
    vectors = subject.network.body.tokens.weight[:time]
    vectors = vectors.repeat(-(-time // len(vectors)), 1)[:time]
    positions = torch.arange(time)
    before, embedded = scores_at(part, q, k, positions, subject.causal), part.embed(vectors.clone(), positions)
    for order in orders(time, subject.plan.seed):
        moved = scores_at(part, q[:, :, order], k[:, :, order], positions, subject.causal)
        carried = before[..., order, :][..., order]
        change = (part.embed(vectors[order], positions) - embedded[order]).abs().max()
        worst = max(worst, float((moved - carried).abs().max()), float(change))
    return worst


def total_variation(subject: Subject) -> float:
    """The largest total variation between the predictions for a text and for the same words shuffled. A decoder
    predicts after the last word, which stays."""
    ids, keep = subject.full_rows, 1 if subject.causal else 0
    if ids.shape[1] - keep < 2:
        return 0.0

    def predicted(ids: Tensor) -> Tensor:
        log_p = subject.log_p(ids)
        return (log_p[:, -1] if subject.causal else log_p).exp()

    before = predicted(ids)
    shuffles = orders(ids.shape[1] - keep, subject.plan.seed)
    shuffled = [ids[:, torch.cat((order, torch.arange(len(order), ids.shape[1])))] for order in shuffles]
    return max(0.0, *(float((predicted(other) - before).abs().sum(-1).max() / 2) for other in shuffled))


def hides_nothing(subject: Subject, part: Part) -> bool:
    """Whether a part is only a mask, and one that is wider than the text."""
    if not part.overrides("allow") or any(part.overrides(hook) for hook in ("embed", "rotate", "bias", "score")):
        return False
    positions = torch.arange(subject.longest)
    allowed = part.allow(AttentionContext(0, subject.causal, positions, positions))
    if allowed is None:
        return True
    return bool((allowed.tril() | ~torch.ones_like(allowed).tril() if subject.causal else allowed).all())


def sees_order(subject: Subject) -> Measured:
    claims = {
        name: part for name, part in subject.parts.items() if part.sees_order and not hides_nothing(subject, part)
    }
    seen = total_variation(subject)
    meaning = "It sees word order." if seen > LEAST else "It sees no word order: a text is a bag of words."
    if not claims or subject.longest < SHORTEST:
        return Measured(seen, f"> {LEAST:.0e} if claimed", None, meaning)
    blind = [name for name, part in claims.items() if not order_of_part(subject, part) > LEAST]
    if blind:
        what = f"{blind[0]!r} declares that it sees word order, but its output only moves with the words."
        return more_than(0.0, LEAST, "", what)
    # the causal mask alone shows a decoder some order; the parts were tested one by one above
    passed = subject.causal or seen > LEAST
    bad = "It declares that it sees word order, but shuffling changes nothing."
    return Measured(seen, f"> {LEAST:.0e}", passed, meaning if passed else bad)


@torch.no_grad()
def keeps_distance(subject: Subject) -> Measured | None:
    """Scores of parts that claim `relative`: the same wherever a text begins, and not the same at all distances."""
    claims = {name: part for name, part in subject.parts.items() if part.relative}
    time = subject.longest // 2
    if not claims or time < 2:
        return None
    q, k = random_heads(subject, time, "shift")
    limit, worst = max(1e-6, subject.tolerance), 0.0
    for name, part in claims.items():
        first = torch.arange(time)
        here = scores_at(part, q, k, first, subject.causal)
        vectors = subject.network.body.tokens.weight[:1].repeat(time, 1)
        for shift in sorted({1, subject.longest - time}):
            there = scores_at(part, q, k, first + shift, subject.causal)
            moved = part.embed(vectors.clone(), first + shift) - part.embed(vectors.clone(), first)
            worst = max(worst, float((there - here).abs().max()), float(moved.abs().max()))
        if hides_nothing(subject, part):  # at so small distances it makes no difference
            continue
        positions = torch.arange(subject.longest)
        same_q, same_k = (x[:, :, :1].expand(-1, -1, len(positions), -1) for x in (q, k))  # one word over and over
        spread = float(scores_at(part, same_q, same_k, positions, subject.causal)[:, :, -1].std(-1).max())
        if not spread > limit:
            what = f"{name!r} declares that distance matters, but the same words score the same at every distance."
            return more_than(spread, limit, "", what)
    good = "Scores depend on distance, not on where a text begins."
    bad = f"It declares that only distance matters, but moving a text changes its scores by up to {worst:.2g}."
    return at_most(worst, limit, good, bad)


def keeps_window(subject: Subject) -> Measured | None:
    """Parts that declare a window: no attention beyond it."""
    found = (part.window(subject.causal) for part in subject.parts.values() if part.overrides("window"))
    windows = [window for window in found if window is not None]
    if not windows:
        return None
    worst = 0.0
    for maps, _, real in maps_of(subject):
        added = maps.shape[-1] - subject.longest
        positions = torch.arange(maps.shape[-1])
        offset = positions[:, None] - positions
        for back, ahead in windows:
            beyond = (offset > back) | (-offset > ahead)
            if added:  # added tokens have no position in the text
                beyond[:added] = beyond[:, :added] = False
            hidden = (beyond & real[:, :, None])[:, None]
            worst = max(worst, float((maps * hidden).abs().max()))
    good = "It attends as far as its declared window, and no further."
    bad = f"It attends beyond its declared window, with a weight of up to {worst:.2g}."
    return at_most(worst, 0.0, good, bad)


def collapsed(subject: Subject) -> Measured | str | None:
    """The share of queries, in the worst head of a fresh network, that attend to one key, or all to the same key."""
    if why := no_maps(subject):
        return why
    if subject.longest < 4:
        return None
    worst = 0.0
    for maps, open_keys, real in maps_of(subject, fresh=True):
        count = open_keys.sum(-1)
        queries = (real & (count > 1))[:, None].expand(maps.shape[:-1])
        maps = maps.abs() / maps.abs().sum(-1, keepdim=True).clamp(min=1e-300)  # a part's own weights may sum to less
        entropy = -(maps * maps.clamp(min=1e-300).log()).sum(-1) / count.clamp(min=2).log()[:, None]
        for head in range(maps.shape[1]):
            chosen = queries[:, head]
            if not bool(chosen.any()):
                continue
            peaked = (entropy[:, head][chosen] < 0.05).double().mean()
            one_key = (maps[:, head][chosen] > 0.95).double().mean(0).max()
            worst = max(worst, float(peaked), float(one_key))
    good = "In an untrained network, attention is spread over several keys."
    bad = f"In an untrained network, {worst:.0%} of a head's queries attend to a single key: attention has collapsed."
    return at_most(worst, 0.9, good, bad)


@torch.no_grad()
def residual_identity(subject: Subject) -> Measured | str | None:
    """With the output projections at zero, the input of the first block is the output of the last. Not for post-norm
    blocks, which normalize the residual stream itself, as BERT's do."""
    if subject.external is not None:
        return "It has its own blocks."
    if subject.network.body.shape.norm_place == "post":
        return None
    network: Any = copy.deepcopy(subject.network)
    passed: list[Tensor] = []
    blocks = network.body.blocks
    last = [block.attention.out for block in blocks]
    last += [module.down for module in network.modules() if isinstance(module, FeedForward)]  # a part's own, too
    for weight in (weight for module in last for weight in module.parameters()):
        weight.zero_()
    blocks[0].register_forward_pre_hook(lambda module, inputs: passed.append(inputs[0].clone()))
    blocks[-1].register_forward_hook(lambda module, inputs, output: passed.append(output.clone()))
    network(subject.full_rows)
    good = "Blocks add to their input and do not change it."
    bad = "A block whose output projections are zero still changes its input: it is not a pre-norm block."
    return at_most(largest_change(passed[:1], passed[1:]), subject.tolerance, good, bad)


def brings(kind: str) -> Callable[[Subject], Measured | None]:
    """Whether a network brings its own `optimizer` or `loss`."""

    def measure(subject: Subject) -> Measured | None:
        if subject.external is None or not getattr(subject.external.declared, kind):
            return None
        return Measured(1.0, "-", None, f"It has its own {kind}: a comparison is of network and {kind}.")

    return measure


def loss_of(subject: Subject, network: Any) -> tuple[Tensor, int]:
    """(summed nats with a gradient, number of targets) over all rows that have a target"""
    if not subject.causal:
        ids, lengths = as_batch(subject.rows)
        return network.loss(ids, lengths, torch.arange(len(ids)) % subject.plan.classes, 0.0, 1.0)[0], len(ids)
    rows = [row for row in subject.rows if len(row) > 1]
    if not rows:  # single tokens predict the next row's token: tied weights would know their own
        rows = [torch.cat(pair) for pair in zip(subject.rows, (*subject.rows[1:], subject.rows[0]), strict=True)]
    ids, lengths = as_batch(rows)
    return network.loss(ids[:, :-1], lengths - 1, ids[:, 1:], 0.0, 1.0)[0], int((lengths - 1).sum())


@torch.no_grad()
def first_loss(subject: Subject) -> Measured | str:
    if subject.plan.module is not None:
        return "The initial weights of a module are unknown."
    if subject.external is not None and subject.external.declared.loss:
        return "It has a loss of its own."
    total, count = loss_of(subject, subject.fresh)
    uniform = math.log(subject.plan.vocabulary if subject.causal else subject.plan.classes)
    gap = abs(float(total) / count - uniform) / max(uniform, 1e-9)
    good = "The loss of an untrained network equals that of a uniform guess."
    bad = f"The loss of an untrained network is {gap:.0%} off that of a uniform guess ({uniform:.3g} nats)."
    return at_most(gap, 0.05, good, bad)


def gradients_arrive(subject: Subject) -> Measured | str | None:
    if not any(each.requires_grad for each in subject.network.parameters()):
        return "It has no weights to train."
    if subject.longest < 3:
        return None  # with so few tokens attention has nothing to learn
    network = subject.another()
    loss_of(subject, network)[0].backward()
    # a decoder has no sentence vector, so a part that pools has nothing to learn there
    idle = [f"body.parts.{name}." for name, part in subject.parts.items() if subject.causal and part.overrides("pool")]
    learning = ((name, weight) for name, weight in network.named_parameters() if weight.requires_grad)
    gradients = {name: weight.grad for name, weight in learning if not name.startswith(tuple(idle))}
    lost = [name for name, grad in gradients.items() if grad is None or not bool(grad.any())]
    broken = [name for name, grad in gradients.items() if grad is not None and not bool(grad.isfinite().all())]
    if broken:
        return at_most(float(len(broken)), 0.0, "", f"The gradient of {broken[0]!r} is not finite.")
    good = "Every weight gets a gradient."
    bad = f"{len(lost)} weights get no gradient and cannot learn, such as {lost[0] if lost else ''!r}."
    return at_most(float(len(lost)), 0.0, good, bad)


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python or to an installed package: not to the user."""
    return path.startswith("<frozen") or "site-packages" in path or "dist-packages" in path or is_standard(path)


def is_standard(path: str) -> bool:
    return path.startswith("<frozen") or ("-packages" not in path and Path(path).is_relative_to(STDLIB))


class Watch:
    """Notes what user code reads of the world while it runs, and where."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __enter__(self) -> Watch:
        self.before = sys.getprofile()
        sys.setprofile(self.note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self.before)

    def note(self, frame: FrameType, event: str, called: Any) -> None:
        kind, caller = "", cast("FrameType | None", frame)
        if event == "c_call":
            kind = kind_of(called)
        elif event == "call" and frame.f_code in ENVIRON:
            kind, caller = ENVIRONMENT, frame.f_back
        if kind and kind not in self.seen and (where := user_code(caller)):
            self.seen[kind] = where


def kind_of(called: BuiltinFunctionType) -> str:
    name, module = called.__name__, called.__module__ or ""
    if module in ("posix", "nt"):
        return FILES if name in SYSTEM else ""
    if (module == "time" and name in ("sleep", "strftime", "gmtime", "localtime")) or name in ("collect", "disable"):
        return ""
    return MODULES.get(module) or FUNCTIONS.get(name) or FUNCTIONS.get(called.__qualname__, "")


def user_code(frame: FrameType | None) -> str:
    """The line of user code that a call comes from; empty: a library's own."""
    while frame is not None:
        path = frame.f_code.co_filename
        if any(name in path for name in QUIET):
            return ""
        transparent = is_standard(path) or any(name in path for name in TRANSPARENT)
        if not transparent:
            mine = not is_installed(path) and not is_library_file(Path(path))
            return f"{Path(path).name}:{frame.f_lineno}" if mine else ""
        frame = frame.f_back
    return ""


def reads_more(subject: Subject) -> Measured | None:
    """While it answers and while it is trained. Callers and the memory of the process have the answers."""
    if not subject.own_code:
        return None
    training = subject.another().train()
    with seeded(0), Watch() as watch:
        subject.log_p(subject.full_rows)
        training(subject.full_rows)
    found = ", ".join(f"{kind} ({where})" for kind, where in sorted(watch.seen.items()))
    good, bad = "It reads nothing but its input and its weights.", f"While it computes, it reads {found}."
    measured = at_most(float(len(watch.seen)), 0.0, good, bad)
    return Measured(measured.value, "0", measured.passed, measured.meaning, "red" if CALLERS in watch.seen else "amber")


def keeps_state(subject: Subject) -> Measured | None:
    """What the same call changes every time, in evaluation or in training, and no record keeps: a counter, a list."""
    if not subject.own_code:
        return None
    changing: dict[str, None] = {}
    for network in (subject.another(), subject.another().train()):
        before: dict[str, str] = {}
        for call in range(SETTLING + CALLS):
            with seeded(0):
                network(subject.full_rows)
            after = {name: digest_of(value) for name, value in held(network)}
            changing |= {name: None for name in after if call >= SETTLING and after[name] != before.get(name)}
            before = after
    names = ", ".join(list(changing)[:3])
    bad = f"Every call changes {names}, which no record keeps: what it does after more calls was not tested."
    return at_most(float(len(changing)), 0.0, "The same call changes nothing that it holds.", bad)


def own_tables(subject: Subject) -> Measured | None:
    """What user code holds and does not train, and what could hold what was read elsewhere: tensors, arrays, containers
    and numbers as large as the vocabulary, neither constant nor made for positions; and files read to build it."""
    if not subject.own_code:
        return None
    network = cast(nn.Module, subject.fresh)
    fixed: list[tuple[str, object]] = [
        (name, each) for name, each in network.named_parameters() if not each.requires_grad
    ]
    fixed += network.named_buffers()
    own = tuple(f"body.parts.{name}." for name, part in subject.parts.items() if not of_library(part))
    fixed = [(name, each) for name, each in fixed if subject.external is not None or name.startswith(own)]
    values = {name.removeprefix("model."): each for name, each in (*fixed, *held(network))}
    tables = [f"{name} {size_of(each)}" for name, each in values.items() if could_hold_text(subject, each)]
    if subject.plan.module is None:
        with Watch() as watch:
            subject.plan.build()
        tables += [f"files read at {where}" for kind, where in watch.seen.items() if kind == FILES]
    if not tables:
        return None
    meaning = f"It holds tables that are not trained ({', '.join(tables[:3])}): a comparison is of network and tables."
    return Measured(float(len(tables)), "-", None, meaning)


def held(network: nn.Module) -> Iterator[tuple[str, object]]:
    """Plain attributes of the user's modules and classes, and what their functions use: globals, closures, defaults."""
    usual, found = vars(nn.Module()).keys(), dict[Any, None]()
    for name, module in network.named_modules():
        if not is_installed(str(getattr(sys.modules.get(type(module).__module__), "__file__", ""))):
            found |= dict.fromkeys(kind for kind in type(module).__mro__ if not is_of_library(kind))
            for key, value in vars(module).items() if not of_library(module) else ():
                if isinstance(value, FunctionType):
                    found[value] = None
                elif key not in usual:
                    yield f"{name}.{key}".lstrip(".").removeprefix("model."), value
    waiting = list(found)
    while waiting:
        used = waiting.pop()
        for key, value in vars(used).items() if isinstance(used, type) else used_by(used):
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType | type):
                if function not in found and is_users(function):
                    found[function] = None
                    waiting.append(function)
            elif is_data(key, value):
                yield f"{used.__name__}.{key}" if isinstance(used, type) else key, value


def used_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Globals, closures and defaults of a function, by name."""
    codes, names = [function.__code__], dict[str, None]()
    while codes:
        code = codes.pop()
        names |= dict.fromkeys(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    yield from ((name, function.__globals__[name]) for name in names if name in function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield from ((f"{function.__name__}.{name}", contents(cell)) for name, cell in cells)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"default of {function.__name__}", value) for value in defaults)


def is_users(used: FunctionType | type) -> bool:
    if isinstance(used, type):
        path = str(getattr(sys.modules.get(used.__module__), "__file__", ""))
        return not is_of_library(used) and not is_installed(path)
    path = used.__code__.co_filename
    return not is_installed(path) and not is_library_file(Path(path))


def is_of_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "fairtrial", "builtins", "typing", "abc")


def is_data(name: str, value: object) -> bool:
    return not name.startswith("__") and not isinstance(value, ModuleType | type | nn.Module) and not callable(value)


def contents(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is not filled
        return None


def inside(value: object) -> list[object] | None:
    """The values that a container or an object holds; None: it is a value itself."""
    if isinstance(value, Mapping):
        return [each for pair in value.items() if is_data("", pair[1]) for each in pair]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return list(value)
    if isinstance(value, nn.Module | ModuleType | type) or callable(value):
        return []
    return list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, Tensor) else None


def digest_of(value: object, depth: int = DEPTH) -> str:
    if isinstance(value, Tensor):
        value = value.detach().cpu().double().numpy() if value.is_floating_point() else value.cpu().numpy()
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if (others := inside(value)) is not None:
        return f"[{','.join(digest_of(each, depth - 1) for each in others)}]" if depth else ""
    return repr(value) if isinstance(value, bool | int | float | complex | str | bytes | bytearray) else ""


def leaves(value: object, depth: int = DEPTH) -> int:
    """How many entries a value could hold, those inside its values included."""
    if isinstance(value, str | bytes | bytearray):
        return 1 + len(value) // LETTERS
    if isinstance(value, Tensor | np.ndarray):
        return int(np.prod(value.shape))
    if isinstance(value, int):
        return 1 + value.bit_length() // BITS
    return sum(leaves(each, depth - 1) for each in inside(value) or ()) if depth else 0


def size_of(value: object) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return str(list(value.shape))
    return f"[{len(value) if isinstance(value, Sized) else leaves(value)}]"


def could_hold_text(subject: Subject, value: object) -> bool:
    vocabulary, lengths = subject.plan.vocabulary, {subject.plan.shape.length, subject.longest}
    if not isinstance(value, Tensor | np.ndarray):
        return leaves(value) >= vocabulary
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy() if value.dtype != torch.bfloat16 else value.detach().float().cpu().numpy()
    if value.dtype == bool or not value.size:
        return False
    large = vocabulary in value.shape or (value.size >= vocabulary and not lengths & set(value.shape))
    return large and bool((value != value.flat[0]).any())
