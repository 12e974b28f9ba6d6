"""A part -> numbers that show what it does: masks, biases, angles, waves, head orders, what a sentence is made of.

Weights are the untrained first ones. Every number is measured by calling the part's verb, so that a stranger's part can
be drawn as well as ours, and a drawing cannot say what the code does not do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fairtrial.look.draw import Panel, Picture
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.model.part import Part, Site
from fairtrial.model.tap import watch
from fairtrial.recipe import PartChoice, Shape
from fairtrial.streams import seed_for

EACH, LAYERS = 8, 2  # enough to see a pattern


def portray(name: str, *, heads: int = 4, length: int = 24, causal: bool = True, **options: Any) -> list[Picture]:
    """One picture for each verb that the part uses."""
    shape = Shape(
        layers=LAYERS, heads=heads, width=heads * EACH, length=length, hidden=8, classifier_hidden=8, dropout=0.0,
        start="torch",
    )  # fmt: skip
    choices = (PartChoice(name=name, options=options),)
    network = LanguageModel(shape, choices, length) if causal else Classifier(shape, choices, length, 2)
    network.eval()
    part = network.body.listed_parts()[0]
    site = Site(0, causal, torch.arange(length), torch.arange(length))
    drawn = [draw(part, site) for verb, draw in DRAWN.items() if part.owns(verb)]
    if drawn and not part.owns("score"):
        return drawn
    said = {"score": "scores are changed", "carry": "what layers add to is changed", "prefix": "a prefix is set before"}
    changed = next((words for verb, words in said.items() if part.owns(verb)), "nothing is changed")
    return [*drawn, attention_map(network, site, changed)]


def portray_embed(part: Part, site: Site) -> Picture:
    table = part.embed(torch.zeros(len(site.queries), part.shape.width), site.queries)
    return Picture("what is added to a token's vector at each position", "position", "width", (panel("", table),))


def portray_turn(part: Part, site: Site) -> Picture:
    """The angle by which each pair of coordinates is turned: unit vectors go in, and where they come out tells."""
    time, each = len(site.queries), part.shape.each
    units = torch.eye(each)[:, None, None, :].expand(each, part.shape.heads, time, each)
    turned, _ = part.turn(units, units, site)  # coordinate head time coordinate
    panels = []
    for head in range(part.shape.heads):
        rows = []
        for place in range(each):
            came = turned[place, head]  # time coordinate
            stayed = came[:, place]
            partner = int(came.abs().sum(0).index_fill(0, torch.tensor(place), -1.0).argmax())
            if partner > place:  # each pair once
                rows.append(torch.atan2(came[:, partner], stayed).remainder(2 * math.pi))
        panels.append(panel(f"head {head}", torch.stack(rows)))
    return Picture("the angle by which queries and keys are turned", "pair", "position", same(panels, "all heads"))


def portray_bias(part: Part, site: Site) -> Picture:
    bias = part.bias(site)
    assert bias is not None
    bias = bias.expand(part.shape.heads, -1, -1)
    panels = [panel(f"head {head}", bias[head], future(site)) for head in range(part.shape.heads)]
    return Picture("what is added to every score", "query", "key", same(panels, "all heads"))


def portray_allow(part: Part, site: Site) -> Picture:
    allowed = part.allow(site)
    assert allowed is not None
    shown = (panel("", allowed.expand(len(site.queries), -1).float(), future(site)),)
    return Picture("what may be seen", "query", "key", shown, yes_or_no=True)


def portray_merge(part: Part, site: Site) -> Picture:
    """How much each head counts at each place of the joined vector: the size of the gradient."""
    panels = []
    for layer in range(part.shape.layers):
        heads = noise(1, part.shape.heads, len(site.queries), EACH).requires_grad_()
        joined = part.merge(heads, Site(layer, site.causal, site.queries, site.keys)).unflatten(-1, (-1, EACH))
        slopes = [
            torch.autograd.grad(joined[:, :, place].sum(), heads, retain_graph=True)[0].abs().mean((0, 2, 3))
            for place in range(part.shape.heads)
        ]
        panels.append(panel(f"layer {layer}", torch.stack(slopes)))
    return Picture("how much each head counts at each place", "place", "head", same(panels, "all layers"))


def portray_pool(part: Part, site: Site) -> Picture:
    """The same for the tokens of a sentence, of which the last quarter is padding."""
    time = len(site.queries)
    x = noise(1, time, part.shape.width).requires_grad_()
    real = (torch.arange(time) < max(1, time * 3 // 4))[None]
    slopes = torch.autograd.grad(part.pool(x, real).sum(), x)[0].abs().mean(-1)  # batch time
    what = "how much each place counts for the sentence (the last quarter is padding)"
    return Picture(what, "", "place", (panel("", slopes / slopes.sum()),))


def attention_map(network: Classifier | LanguageModel, site: Site, changed: str) -> Picture:
    ids = torch.randperm(len(site.queries), generator=torch.Generator().manual_seed(0))[None]
    with torch.no_grad(), watch(network) as seen:
        network(ids)
    maps = next(each for name, each in seen.items() if name.endswith("blocks.0.attention.maps"))[0]
    maps = maps / maps.amax(-1, keepdim=True).clamp(min=1e-12)  # else early rows, with few keys, outshine all others
    hidden = future(site) if maps.shape[-1] == len(site.queries) else None
    panels = tuple(panel(f"head {head}", weights, hidden) for head, weights in enumerate(maps))
    what = f"{changed}; attention of an untrained layer, each row relative to its greatest"
    return Picture(what, "query", "key", panels)


DRAWN: dict[str, Callable[[Part, Site], Picture]] = {
    "embed": portray_embed,
    "turn": portray_turn,
    "bias": portray_bias,
    "allow": portray_allow,
    "merge": portray_merge,
    "pool": portray_pool,
}


def future(site: Site) -> Tensor | None:
    return site.offset < 0 if site.causal else None


def panel(title: str, values: Tensor, hidden: Tensor | None = None) -> Panel:
    rows = values.detach().double().tolist()
    if hidden is None:
        return Panel(title, rows)
    covered = hidden.tolist()
    return Panel(
        title,
        [
            [None if hide else value for value, hide in zip(row, hides, strict=True)]
            for row, hides in zip(rows, covered, strict=True)
        ],
    )


def same(panels: Sequence[Panel], title: str) -> tuple[Panel, ...]:
    """One panel where all show the same."""
    alike = all(each.values == panels[0].values for each in panels)
    return (Panel(title, panels[0].values),) if alike else tuple(panels)


def noise(*size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed_for(0, "portray")))
