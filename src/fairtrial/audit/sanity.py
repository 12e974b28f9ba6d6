"""Sanity: attention has not collapsed (M10), blocks can be the identity (M11), evaluation repeats itself (M12), the
first loss and the gradients are as they should be (M14)."""

from __future__ import annotations

import copy
import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from fairtrial.audit.subject import Subject, as_batch, largest_change
from fairtrial.audit.visibility import maps_of, no_maps
from fairtrial.finding import Measured, at_most
from fairtrial.model.layers import FeedForward
from fairtrial.training.loop import weights_of


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
    good = "Attention of a fresh network is spread over several keys."
    bad = f"In a fresh network {worst:.0%} of a head's queries attend to a single key: attention has collapsed."
    return at_most(worst, 0.9, good, bad)


@torch.no_grad()
def residual_identity(subject: Subject) -> Measured | str | None:
    """With the output projections at zero, the input of the first block is the output of the last. Not for post-norm
    blocks, which normalize the residual stream itself, as BERT's do."""
    if subject.external is not None:
        return "Its blocks are its own."
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
    good = "Blocks add to their input and leave it as it is."
    bad = "A block whose output projections are zero still changes its input: it is not a pre-norm block."
    return at_most(largest_change(passed[:1], passed[1:]), subject.tolerance, good, bad)


def repeats_itself(subject: Subject) -> Measured:
    """The same answers before and after other texts and other random seeds; inputs and weights stay unchanged."""
    ids, lengths = as_batch(subject.rows)
    kept, weights = ids.clone(), {name: tensor.clone() for name, tensor in weights_of(subject.network).items()}
    torch.manual_seed(1)
    before = subject.log_p(ids, lengths)
    torch.manual_seed(2)
    again = subject.log_p(ids, lengths)
    subject.log_p(ids.flip(0)[:3], lengths.flip(0)[:3])
    after = subject.log_p(ids, lengths)
    worst = largest_change([before, before], [again, after])
    moved = [name for name, tensor in weights_of(subject.network).items() if not torch.equal(tensor, weights[name])]
    if not torch.equal(ids, kept):
        worst, bad = math.inf, "It changes its input tokens in place."
    elif moved:
        worst, bad = math.inf, f"Evaluation changes {moved[0]!r}: it learns from what it is scored on."
    else:
        bad = f"Two evaluations of one text differ by up to {worst:.2g} nats: dropout, noise or state in evaluation."
    return at_most(worst, 0.0, "Evaluation gives the same answer every time.", bad)


def own_optimizer(subject: Subject) -> Measured | None:
    return brought("optimizer", subject.external is not None and subject.external.declared.optimizer)


def own_loss(subject: Subject) -> Measured | None:
    return brought("loss", subject.external is not None and subject.external.declared.loss)


def brought(kind: str, method: str | bool) -> Measured | None:
    if not method:
        return None
    return Measured(1.0, "-", None, f"It brings its own {kind}: a comparison is of network and {kind}.")


def own_tables(subject: Subject) -> Measured | None:
    """Tensors of user code that are not trained and could hold what was read elsewhere: as large as the vocabulary, and
    neither constant nor made for positions."""
    plan, fresh = subject.plan, cast(nn.Module, subject.fresh)
    built_in = [
        f"body.parts.{name}." for name, part in subject.parts.items() if type(part).__module__.startswith("fairtrial.")
    ]
    frozen = [(name, each) for name, each in fresh.named_parameters() if not each.requires_grad]
    found = []
    for name, each in (*frozen, *fresh.named_buffers()):
        if subject.external is None and (name.startswith(tuple(built_in)) or not name.startswith("body.parts.")):
            continue
        wide = plan.vocabulary in each.shape
        large = each.numel() >= plan.vocabulary and not {plan.shape.length, subject.longest} & set(each.shape)
        if each.dtype != torch.bool and (wide or large) and bool((each != each.flatten()[0]).any()):
            found.append(f"{name.removeprefix('model.')} {list(each.shape)}")
    if not found:
        return None
    meaning = f"It holds tables that are not trained ({', '.join(found[:3])}): a comparison is of network and tables."
    return Measured(float(len(found)), "-", None, meaning)


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
        return "A module is audited as it is: its first weights are not known."
    if subject.external is not None and subject.external.declared.loss:
        return "It has a loss of its own."
    total, count = loss_of(subject, subject.fresh)
    uniform = math.log(subject.plan.vocabulary if subject.causal else subject.plan.classes)
    gap = abs(float(total) / count - uniform) / max(uniform, 1e-9)
    good = "The loss of a fresh network is that of a uniform guess."
    bad = f"The loss of a fresh network is {gap:.0%} off that of a uniform guess ({uniform:.3g} nats)."
    return at_most(gap, 0.05, good, bad)


def gradients_arrive(subject: Subject) -> Measured | str | None:
    if not any(each.requires_grad for each in subject.network.parameters()):
        return "It has no weights to train."
    if subject.longest < 3:
        return None  # with so few tokens attention has nothing to learn
    network = copy.deepcopy(subject.network)
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
