"""What each part is and does: its docstring, options, hooks and claims; plots of it; the page about all. A plot is
measured by calling the part's hooks with initial weights: it cannot show what the code does not do."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fairtrial.description import Description, Result, Row, Table, row
from fairtrial.errors import BadInput
from fairtrial.model.layers import capture
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.model.part import HOOKS, AttentionContext, Part, parts
from fairtrial.recipe import PartChoice, Shape
from fairtrial.report.plots import Panel, Picture, draw_pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMS = {"sees_order": "sees order", "relative": "by distance alone"}
CHANGES = {  # of hooks that show in attention
    "score": "scores are changed",
    "features": "weights are products of features",
    "mix": "the heads' weights are mixed",
    "project": "queries, keys or values are changed",
    "read": "what heads have summed is changed",
    "residual": "the residual stream is changed",
    "merge": "the heads are merged in another way",
    "pool": "the sentence vector is made in another way",
    "prefix": "vectors are put before the sentence",
    "weigh": "weights are not a softmax of the scores",
    "key_heads": "heads share keys and values",
    "feed_forward": "the feed-forward layer is changed",
    "arrange": "layers are arranged differently",
}
SEEN, POSITIONS = "what may be seen", "positions"
GROUPS = {  # what a part changes, by the hooks that it overrides
    POSITIONS: ("embed", "rotate", "bias"),
    SEEN: ("allow", "window"),
    "scores and weights": ("score", "attach", "features", "weigh", "mix"),
    "queries, keys and values": ("key_heads", "project"),
    "heads": ("read", "merge"),
    "feed-forward layers": ("feed_forward",),
    "residual stream and order of layers": ("residual", "arrange"),
    "sentence vectors": ("pool", "prefix"),
    "nothing": (),
}
HOW = {  # to read the plot of a hook
    "embed": "Row p is what is added to the vector of the token at position p. Where rows differ, positions do.",
    "rotate": "Each row is a pair of dimensions, each column a position, the shade an angle from 0 to 2 pi. A score"
    " depends on the difference between the angles of its query and its key.",
    "bias": "Row q, column k: what is added to the score of query q for key k. The greater, the more attention.",
    "allow": "Row q, column k: whether query q may see key k at all.",
}
PAPER = re.compile(r"https?://[^\s,;)]+")
HEAD_DIM, LAYERS = 8, 2  # of plots: enough to see a pattern


@dataclass(frozen=True)
class Entry:
    name: str
    line: str
    options: dict[str, str]  # name -> default, as in TOML
    options_help: str
    hooks: tuple[str, ...]
    claims: tuple[str, ...]
    definition: str
    papers: tuple[str, ...]
    file: str
    changes: str  # one of GROUPS

    @property
    def options_text(self) -> list[str]:
        return [f"{name} = {default}" for name, default in self.options.items()]


@dataclass(frozen=True, repr=False)
class Catalogue(Result):
    """Parts, and what each is and does.

    >>> {"rope", "alibi"} <= {entry.name for entry in ft.catalogue().entries}
    True
    """

    entries: tuple[Entry, ...]

    def describe(self) -> Description:
        """Of one part all that is known; of several a table for each thing that parts change."""
        if len(self.entries) == 1:
            (only,) = self.entries
            known = {
                "options": ", ".join(only.options_text) or "none",
                "": only.options_help,
                "changes": only.changes,
                "uses": ", ".join(only.hooks) or "no hook",
                "claims": ", ".join(only.claims) or "nothing",
                "file": only.file,
            }
            rows = tuple(row(name, text) for name, text in known.items() if text)
            return Description(only.definition.split("\n\n"), [Table("", ("part", only.name), rows, text_columns=2)])
        groups: dict[str, list[Row]] = {group: [] for group in GROUPS}
        for each in self.entries:
            cells = row(each.name, each.line, ", ".join(each.options_text), ", ".join(each.claims))
            groups.setdefault(each.changes, []).append(cells)
        columns = ("part", "what it does", "options", "claims")
        tables = [
            Table(f"{group}:", columns, tuple(rows), text_columns=4).without_empty_columns()
            for group, rows in groups.items()
            if rows
        ]
        return Description((), tables)

    def rows(self) -> list[dict[str, object]]:
        return [asdict(each) for each in self.entries]

    def plot(self, *, heads: int = 4, length: int = 18, encoder: bool = False, **options: Any) -> Figure:
        """What a part does, measured on initial weights; `encoder`: bidirectional, as all pools are."""
        if len(self.entries) != 1:
            raise BadInput("nothing to plot", "name a part: catalogue('alibi').plot()")
        causal = not (encoder or "pool" in self.entries[0].hooks)
        pictures = plot_part(self.entries[0].name, heads=heads, length=length, causal=causal, **options)
        return draw_pictures(pictures, self.entries[0].name)


def catalogue() -> list[Entry]:
    return [describe(name) for name in parts.list()]


def describe(name: str) -> Entry:
    kind = parts.find(name)
    written_here = kind.__module__ == "__main__"  # in a notebook or a script, whose own text is about something else
    texts = (vars(kind).get("__doc__"), "" if written_here else sys.modules[kind.__module__].__doc__)
    own, of_module = (inspect.cleandoc(text or "") for text in texts)
    hooks = tuple(hook for hook in HOOKS if kind.overrides(hook))
    return Entry(
        name=name,
        line=first_sentence(own or of_module) or "no description",
        options={option.name: written(option.default) for option in options_of(kind)},
        options_help=" ".join((kind.__init__.__doc__ or "").split()) if "__init__" in vars(kind) else "",
        hooks=hooks,
        claims=tuple(words for claim, words in CLAIMS.items() if getattr(kind, claim)),
        definition="\n\n".join(filter(None, (own, of_module))),
        papers=tuple(dict.fromkeys(PAPER.findall(own) or PAPER.findall(of_module))),
        file="" if written_here else inspect.getsourcefile(kind) or "",
        changes=group_of(hooks, kind.sees_order),
    )


def group_of(hooks: Sequence[str], sees_order: bool) -> str:
    """What a part changes. What tells positions apart is about positions, whatever its hook, unless it hides tokens."""
    held = [group for group, own in GROUPS.items() if set(own) & set(hooks)]
    if SEEN in held or sees_order:
        return SEEN if SEEN in held else POSITIONS
    return held[0] if held else f"other: {', '.join(hooks)}" if hooks else "nothing"


def first_sentence(text: str) -> str:
    """`Rope: queries and keys are turned (Su et al. 2021, https://...). More.` -> `queries and keys are turned`"""
    text = re.sub(r"\s*\([^()]*(https?://|et al\.)[^()]*\)", "", " ".join(text.split()))
    text = re.sub(r"^[A-Z][\w-]*: (?=\S)", "", text)
    text = re.split(r"(?<=\.)\s|: ", text, maxsplit=1)[0].removesuffix(".")
    return text[:1].lower() + text[1:] if re.match(r"[A-Z][a-z ]", text) else text


def options_of(kind: type[Part]) -> list[inspect.Parameter]:
    named = list(inspect.signature(kind.__init__).parameters.values())[2:]  # after self and shape
    return [option for option in named if option.kind not in (option.VAR_KEYWORD, option.VAR_POSITIONAL)]


def written(default: object) -> str:
    if default is inspect.Parameter.empty:
        return "must be given"
    if default is None:
        return "not set"
    return str(default).lower() if isinstance(default, bool) else repr(default)


def plot_part(name: str, *, heads: int = 4, length: int = 24, causal: bool = True, **options: Any) -> list[Picture]:
    """One picture for each hook that the part uses."""
    shape = Shape(
        layers=LAYERS,
        heads=heads,
        width=heads * HEAD_DIM,
        length=length,
        hidden=8,
        classifier_hidden=8,
        dropout=0.0,
        start="torch",
    )
    choices = (PartChoice(name=name, options=options),)
    network = LanguageModel(shape, choices, length) if causal else Classifier(shape, choices, length, 2)
    network.eval()
    part = network.body.listed_parts()[0]
    context = AttentionContext(0, causal, torch.arange(length), torch.arange(length))
    plots = [
        replace(plot(part, context), how=HOW.get(hook, "")) for hook, plot in PLOTS.items() if part.overrides(hook)
    ]
    if plots and part.hooks.isdisjoint(("score", "mix", "read")):
        return plots
    change = next((words for hook, words in CHANGES.items() if part.overrides(hook)), "nothing is changed")
    return [*plots, attention_map(network, context, change)]


def plot_embed(part: Part, context: AttentionContext) -> Picture:
    table = part.embed(torch.zeros(len(context.queries), part.shape.width), context.queries)
    return Picture("what is added to a token's vector at each position", "position", "width", (panel("", table),))


def plot_rotate(part: Part, context: AttentionContext) -> Picture:
    """The angle by which each pair of coordinates is rotated, measured on unit vectors."""
    time, size = len(context.queries), part.shape.head_dim
    units = torch.eye(size)[:, None, None, :].expand(size, part.shape.heads, time, size)
    rotated, _ = part.rotate(units, units, context)  # coordinate head time coordinate
    panels = []
    for head in range(part.shape.heads):
        rows = []
        for coordinate in range(size):
            image_of = rotated[coordinate, head]  # time coordinate
            partner = int(image_of.abs().sum(0).index_fill(0, torch.tensor(coordinate), -1.0).argmax())
            if partner > coordinate:  # each pair once
                rows.append(torch.atan2(image_of[:, partner], image_of[:, coordinate]).remainder(2 * math.pi))
        panels.append(panel(f"head {head}", torch.stack(rows)))
    return Picture("the angle by which queries and keys are rotated", "pair", "position", merged(panels, "all heads"))


def plot_bias(part: Part, context: AttentionContext) -> Picture:
    bias = cast(Tensor, part.bias(context)).expand(part.shape.heads, -1, -1)
    panels = [panel(f"head {head}", values, future(context)) for head, values in enumerate(bias)]
    return Picture("what is added to every score", "query", "key", merged(panels, "all heads"))


def plot_allow(part: Part, context: AttentionContext) -> Picture:
    allowed = cast(Tensor, part.allow(context)).expand(len(context.queries), -1).float()
    return Picture("what is visible", "query", "key", (panel("", allowed, future(context)),), yes_or_no=True)


def attention_map(network: Classifier | LanguageModel, context: AttentionContext, change: str) -> Picture:
    ids = torch.randperm(len(context.queries), generator=torch.Generator().manual_seed(0))[None]
    with torch.no_grad(), capture(network) as seen:
        network(ids)
    maps = next(tensor for name, tensor in seen.items() if name.endswith("blocks.0.attention.maps"))[0]
    maps = maps / maps.amax(-1, keepdim=True).clamp(min=1e-12)  # early rows with few keys would outshine all others
    hidden = future(context) if maps.shape[-1] == len(context.queries) else None
    panels = tuple(panel(f"head {head}", weights, hidden) for head, weights in enumerate(maps))
    what = f"{change}; attention of an untrained layer, each row relative to its maximum"
    how = "Row q, column k: how much query q attends to key k. Weights and words are random: only what looks regular is"
    return Picture(what, "query", "key", panels, how=f"{how} due to the part.")


PLOTS: dict[str, Callable[[Part, AttentionContext], Picture]] = {
    "embed": plot_embed,
    "rotate": plot_rotate,
    "bias": plot_bias,
    "allow": plot_allow,
}


def future(context: AttentionContext) -> Tensor | None:
    return context.offset < 0 if context.causal else None


def panel(title: str, values: Tensor, hidden: Tensor | None = None) -> Panel:
    rows = values.detach().double().numpy().astype(object)
    if hidden is not None:
        rows[hidden.numpy()] = None
    return Panel(title, rows.tolist())


def merged(panels: Sequence[Panel], title: str) -> tuple[Panel, ...]:
    """One panel where all are equal."""
    alike = all(one.values == panels[0].values for one in panels)
    return (Panel(title, panels[0].values),) if alike else tuple(panels)
