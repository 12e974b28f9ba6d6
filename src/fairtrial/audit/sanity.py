"""Sanity: attention that has not collapsed (M10), blocks that can be the identity (M11), an evaluation that repeats
itself (M12), a first loss and gradients as they should be (M14)."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from fairtrial.audit.finding import Measured, at_most
from fairtrial.audit.subject import Subject, as_batch, largest_change
from fairtrial.audit.visibility import maps_of
from fairtrial.model.layers import Dropout
from fairtrial.training.checkpoint import weights_of


def collapsed(subject: Subject) -> Measured | None:
    """The share of queries, in the worst head of a fresh network, that look at one key or all at the same key."""
    if subject.longest < 4:
        return None
    worst = 0.0
    for _, maps, open_keys, real in maps_of(subject, fresh=True):
        count = open_keys.sum(-1)
        asked = (real & (count > 1))[:, None].expand(maps.shape[:-1])
        entropy = -(maps * maps.clamp(min=1e-300).log()).sum(-1) / count.clamp(min=2).log()[:, None]
        for head in range(maps.shape[1]):
            chosen = asked[:, head]
            if not bool(chosen.any()):
                continue
            and_masks = (entropy[:, head][chosen] < 0.05).double().mean()
            one_key = (maps[:, head][chosen] > 0.95).double().mean(0).max()
            worst = max(worst, float(and_masks), float(one_key))
    return at_most(
        worst,
        0.9,
        "Fresh attention looks around.",
        f"In a fresh network {worst:.0%} of a head's queries look at a single key: attention has collapsed.",
    )


@torch.no_grad()
def residual_identity(subject: Subject) -> Measured | None:
    """With the last projections at zero, what goes into the first block comes out of the last. Post-norm blocks norm
    the stream itself, as BERT's do, and are not asked."""
    if subject.network.body.shape.norm_place == "post":
        return None
    network: Any = copy.deepcopy(subject.network)
    passed: list[Tensor] = []
    for block in network.body.blocks:
        for last in (block.attention.out, block.feed_forward.down):
            for weight in last.parameters():
                weight.zero_()
    blocks = network.body.blocks
    blocks[0].register_forward_pre_hook(lambda module, given: passed.append(given[0].clone()))
    blocks[-1].register_forward_hook(lambda module, given, said: passed.append(said.clone()))
    network(subject.full_rows)
    return at_most(
        largest_change(passed[:1], passed[1:]),
        subject.tolerance,
        "Blocks add to what they get, and keep it.",
        "A block whose last layers are zero still changes what it gets: it is no pre-norm block.",
    )


def repeats_itself(subject: Subject) -> Measured:
    """The same answers before and after other texts and other rng; the inputs and weights stay as they were."""
    ids, lengths = as_batch(subject.rows)
    kept, weights = ids.clone(), {name: tensor.clone() for name, tensor in weights_of(subject.network).items()}
    torch.manual_seed(1)
    before = subject.log_p(ids, lengths)
    torch.manual_seed(2)
    again = subject.log_p(ids, lengths)
    subject.log_p(ids.flip(0)[:3], lengths.flip(0)[:3])
    after = subject.log_p(ids, lengths)
    worst = max(largest_change([before], [again]), largest_change([before], [after]))
    moved = [name for name, tensor in weights_of(subject.network).items() if not torch.equal(tensor, weights[name])]
    if not torch.equal(ids, kept):
        worst, bad = math.inf, "It changes the tokens that it is given."
    elif moved:
        worst, bad = math.inf, f"Evaluation changes {moved[0]!r}: it learns from what it is scored on."
    else:
        bad = f"Two evaluations of one text differ by up to {worst:.2g} nats: dropout, rng or memory in evaluation."
    return at_most(worst, 0.0, "Evaluation gives the same answer every time.", bad)


def dropouts(subject: Subject) -> Measured:
    """Where something is dropped in training: two variants should differ in their idea, not in their dropout."""
    kinds = (Dropout, nn.modules.dropout._DropoutNd)
    shares: dict[float, int] = {}
    foreign = []
    for name, module in subject.network.named_modules():
        if isinstance(module, kinds):
            share = float(module.share if isinstance(module, Dropout) else module.p)
            shares[share] = shares.get(share, 0) + 1
            if name.startswith("body.parts."):
                foreign.append(name.removeprefix("body.parts."))
    total = sum(shares.values())
    told = ", ".join(f"{count} places drop {share:.0%}" for share, count in sorted(shares.items()))
    inside = f"; of these inside parts: {', '.join(foreign)}" if foreign else "; none inside parts"
    return Measured(float(total), "-", None, f"In training {told or 'nothing is dropped'}{inside}.")


def loss_of(subject: Subject, network: Any) -> tuple[Tensor, int]:
    """(summed nats with a gradient, number of answers) over all rows that have an answer"""
    if subject.causal:
        rows = [row for row in subject.rows if len(row) > 1]
        if not rows:  # of single tokens each has another row's to predict: tied weights know their own
            rows = [torch.cat(pair) for pair in zip(subject.rows, (*subject.rows[1:], subject.rows[0]), strict=True)]
        ids, lengths = as_batch(rows)
        given = (ids[:, :-1], lengths - 1, ids[:, 1:])
        count = int((lengths - 1).sum())
    else:
        ids, lengths = as_batch(subject.rows)
        given = (ids, lengths, torch.arange(len(ids)) % subject.plan.classes)
        count = len(ids)
    return network.loss(*given, 0.0, 1.0)[0], count


@torch.no_grad()
def first_loss(subject: Subject) -> Measured:
    total, count = loss_of(subject, subject.fresh)
    chance = math.log(subject.plan.vocabulary if subject.causal else subject.plan.classes)
    gap = abs(float(total) / count - chance) / max(chance, 1e-9)
    return at_most(
        gap,
        0.05,
        "A fresh network knows nothing, as it should.",
        f"A fresh network's loss is {gap:.0%} off the loss of guessing ({chance:.3g} nats).",
    )


def gradients_arrive(subject: Subject) -> Measured | None:
    if subject.longest < 3:
        return None  # of a single token, attention has nothing to learn
    network = copy.deepcopy(subject.network)
    loss_of(subject, network)[0].backward()
    # a decoder makes no sentence vector, so that a part for it has nothing to learn there
    idle = [f"body.parts.{name}." for name, part in subject.parts.items() if subject.causal and part.owns("pool")]
    weights = {name: each for name, each in network.named_parameters() if not name.startswith(tuple(idle))}
    lost = [name for name, each in weights.items() if each.grad is None or not bool(each.grad.any())]
    broken = [name for name, each in weights.items() if each.grad is not None and not bool(each.grad.isfinite().all())]
    if broken:
        return at_most(float(len(broken)), 0.0, "", f"The gradient of {broken[0]!r} is not a finite number.")
    return at_most(
        float(len(lost)),
        0.0,
        "Every weight gets a gradient.",
        f"{lost[0] if lost else ''} gets no gradient: it cannot learn ({len(lost)} weights in all).",
    )
