"""`fairtrial look`: maps of a few texts, statistics of all heads, heads ablated in turn; as one page and figures."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairtrial.description import Description, Result, Table, row
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import format_parts
from fairtrial.inspection.attention import AttentionMaps, initial_model, maps_of, model_input
from fairtrial.inspection.heads import OWN_HEADS, Effect, Heads, HeadSummary, ablate_heads, head_statistics
from fairtrial.inspection.text import OnProgress, no_progress
from fairtrial.recipe import one_of
from fairtrial.record import Record
from fairtrial.report.charts import MAP_SCALE
from fairtrial.report.page import render
from fairtrial.report.plots import drawing, figure_bytes, our_look
from fairtrial.results.sentences import counted
from fairtrial.training.tasks import Task
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Captions = dict[tuple[int, int], str]  # by layer and head
MAX_TEST_TEXTS = 1000  # of the test set, where no texts are given
MAX_DRAWN = 3  # texts whose maps are drawn; statistics are over all
MANY_HEADS = 32  # of more heads, only the first text gets a figure for each
NETWORKS = {"classify": "Encoder with classifier", "lm": "Decoder language model"}
WIDEST = 36.0  # inches of all maps in a row
SMALLEST_TYPE = 3.0  # points; smaller words are left out
INVISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "": "∅"}

CAUTION = "Attention is where a head looked, not why the model decided."
LARGEST_SHARE = 65535  # a weight is stored as a 16-bit share
HEAD_COLUMNS = (
    ("entropy", "entropy, nats", "{:.2f}"),
    ("entropy_share", "of maximum", "{:.0%}"),
    ("distance", "distance", "{:.1f}"),
    *((name, name, "{:.0%}") for name in ("itself", "previous", "next", "first", "punctuation", "stripe")),
)


def shorter(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


@dataclass(frozen=True)
class Drawn:
    text: str
    trained: AttentionMaps
    untrained: AttentionMaps  # of the initial network


@dataclass(frozen=True, repr=False)
class LookResult(Result):
    """What the heads of a network do: maps of a few texts, statistics over all, and what is lost without each head.

    >>> found = classifier.look(ablate=False)
    >>> found.texts, len(found.heads)
    (48, 2)
    """

    length: int  # tokens that the model sees at once
    texts: int
    cut: int  # texts that were truncated
    drawn: tuple[Drawn, ...]
    heads: tuple[HeadSummary, ...]
    effects: tuple[Effect, ...]
    stage: str = "untrained"
    source: str = ""
    not_ablated_because: str = ""
    notices: tuple[str, ...] = ()
    page: Path | None = None  # where it was written, with its figures
    figures: tuple[Path, ...] = ()

    @property
    def captions(self) -> Captions:
        return {(head.layer, head.head): head.caption for head in self.heads}

    def describe(self) -> Description:
        about = f"{len(self.heads)} heads over {self.texts:,} {self.source}."
        written = [f"page: {self.page}"] if self.page else []
        if self.figures:
            more = f" and {len(self.figures) - 1} more" * (len(self.figures) > 1)
            written.append(f"figures: {self.figures[0]}{more}")
        return Description([about, *self.notices, CAUTION, *written], [self._heads_table(), self._checks_table()])

    def _heads_table(self) -> Table:
        """One row for each head: its caption, and the change of the score without it."""
        tests = list(dict.fromkeys(effect.test for effect in self.effects))
        rows = []
        for head in self.heads:
            effects = [each.shown for each in self.effects if (each.layer, each.head) == (head.layer, head.head)]
            rows.append(row(str(head.layer), str(head.head), head.caption, *effects))
        columns = ("layer", "head", "where it looks", *(f"without it: {test}" for test in tests))
        measure = self.effects[0].measure if self.effects else ""
        note = f"Without it: change of {measure} on the whole test set [95% over its items, this one seed]"
        return Table("", columns, tuple(rows), note if measure else "", text_columns=len(columns))

    def _checks_table(self) -> Table:
        """The checks of the maps that are drawn."""
        rows = tuple(
            row(shorter(drawn.text), name, check.name, "yes" if check.passed else "NO", f"{check.value:.1e}")
            for drawn in self.drawn
            for name, maps in (("trained", drawn.trained), (self.stage, drawn.untrained))
            for check in maps.checks
        )
        note = " ".join(f"{shorter(drawn.text)}: {text}." for drawn in self.drawn for text in drawn.trained.notices)
        columns = ("text", "network", "check of its maps", "passed", "measured")
        return Table("", columns, rows, note, text_columns=4)

    def rows(self) -> list[dict[str, object]]:
        return [asdict(head) for head in self.heads]

    def plot(self, text: int = 0, layer: int | None = None, head: int | None = None) -> Figure:
        """Maps of one of the texts, before and after training."""
        drawn = self.drawn[text]
        heads = [place for place in self.captions if layer in (None, place[0]) and head in (None, place[1])]
        stages = [(drawn.untrained, self.stage), (drawn.trained, "trained")]
        return draw_maps(stages, heads, self.captions, drawn.text)

    def to_json(self) -> dict[str, object]:
        """For JSON: everything but the maps' weights."""
        drawn = [
            {
                "text": each.text,
                "words": each.trained.words,
                "cut": each.trained.cut,
                "unknown": each.trained.unknown,
                "checks": {
                    name: [asdict(check) | {"passed": check.passed} for check in maps.checks]
                    for name, maps in (("trained", each.trained), (self.stage, each.untrained))
                },
            }
            for each in self.drawn
        ]
        counts = {"length": self.length, "texts": self.texts, "cut": self.cut}
        heads = [asdict(head) for head in self.heads]
        effects = [asdict(effect) | {"clear": effect.clear} for effect in self.effects]
        return {"before": self.stage, **counts, "drawn": drawn, "portraits": heads, "switched_off": effects}


def look(
    run: Run, texts: Sequence[str] = (), *, ablate: bool = True, on_progress: OnProgress = no_progress
) -> LookResult:
    """Of these texts, or of the record's first test set; with `ablate`, every test set is scored without each head."""
    record, length, notices = run.record, run.recipe.shape.length, []
    task: Task | None = None
    no_task_because, source = "", "given texts"
    try:
        task = run.task
    except BadInput as error:  # maps of given texts need no data
        if not texts or record.recipe.task not in NETWORKS:
            raise
        no_task_because = error.what
    if not texts:
        test = record.trial.test_sets[0]
        source = f"texts of the test set {test!r}"
        texts = [each.text for each in run.splits.tests[test] if each.text.strip()][:MAX_TEST_TEXTS]
    try:
        initial, stage = (run.initial_network(), "untrained") if task is None else initial_model(run)
    except BadInput as error:  # the encoder that it was fine-tuned from is gone
        initial, stage = run.initial_network(), "untrained"
        notices.append(f"{error.what}: compared with a randomly initialized network instead")
    encoded = [model_input(run.tokenizer, text, length) for text in texts]
    heads = head_statistics(run.network, initial, run.tokenizer, encoded, on_progress, stage)
    drawn = tuple(
        Drawn(text, maps_of(run.network, run.tokenizer, text), maps_of(initial, run.tokenizer, text))
        for text in texts[:MAX_DRAWN]
    )
    effects: list[Effect] = []
    if run.recipe.external:
        no_task_because = no_task_because or OWN_HEADS
    elif ablate and task is not None:
        for test in record.trial.test_sets:
            effects += ablate_heads(task, test, [(head.layer, head.head) for head in heads], on_progress)
    cut = sum(bool(text.cut) for text in encoded)
    if len(encoded) > len(drawn):
        notices.append(f"statistics are over all {len(encoded):,} texts, maps of the first {len(drawn)}")
    if cut and len(encoded) > 1:
        notices.append(f"{cut:,} of {len(encoded):,} texts are longer than {length} tokens and were truncated")
    if ablate and no_task_because:
        notices.append(f"no head was ablated: {no_task_because}")
    because = no_task_because if ablate else "ablation was switched off (--no-ablate)"
    found = drawn, tuple(heads), tuple(effects)
    return LookResult(length, len(encoded), cut, *found, stage, source, because, tuple(notices))


def choose_heads(layers: int, heads: int, layer: int | None = None, head: int | None = None) -> list[tuple[int, int]]:
    """All (layer, head), or those of one layer, or of one head."""
    for name, index, count in (("layer", layer, layers), ("head", head, heads)):
        if index is not None and index >= count:
            raise BadInput(f"there is no {name} {index}", f"this network has {name}s 0 to {count - 1}")
    every = product(range(layers), range(heads))
    return [place for place in every if layer in (None, place[0]) and head in (None, place[1])]


@dataclass(frozen=True)
class Target:
    """Where a look is written, and what of it is drawn; what cannot be written is refused at once."""

    record: Record
    folder: Path
    layer: int | None = None  # None: all
    head: int | None = None
    kind: str = "png"  # of the figures
    command: str = ""  # that writes it again

    def __post_init__(self) -> None:
        one_of("--format", self.kind, ("png", "svg", "pdf"))
        shape, target = self.record.recipe.shape, self.folder.resolve()
        if not self.record.recipe.external:  # whose heads are known once it has answered
            choose_heads(shape.layers, shape.heads, self.layer, self.head)
        if self.record.folder.resolve() in (target, *target.parents) or (self.folder / "trial.json").exists():
            raise BadInput(f"{self.folder} is a record or inside one", "choose another folder with --out")
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"{self.folder} is a file", "choose another folder with --out")


def write_look(result: LookResult, target: Target, on_progress: OnProgress) -> LookResult:
    """The page with its numbers, and the figures: for each drawn text a grid of all these heads, and one of each."""
    record, folder, kind = target.record, target.folder, target.kind
    layers, in_layer = (1 + max(numbers) for numbers in zip(*result.captions, strict=True))
    heads = choose_heads(layers, in_layer, target.layer, target.head)
    recipe, trial, name = record.recipe, record.trial, record.folder.resolve().name
    one_text = "the one text above (many texts say more: give a file, or no text to read a test set)"
    about = {
        "about": f"{NETWORKS.get(recipe.task, 'Encoder')} of {counted(layers, 'layer')} with"
        f" {counted(in_layer, 'head')} each; parts: {format_parts(recipe)}; seed {trial.seed}; context"
        f" length {result.length} tokens.",
        "notes": trial.notes,
        "read": f"{result.texts:,} {result.source}" if result.texts > 1 else one_text,
        "command": target.command or f"ft.load({str(record.folder)!r}).look(..., out={str(folder)!r})",
    }
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    write_text(page, look_page(result, heads, f"Attention heads: {name}", about))
    write_text(folder / "look.json", dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n")
    remove_figures(folder)
    grid = {"grid": heads} if len(heads) > 1 else {}
    single = {f"layer-{layer}-head-{head}": [(layer, head)] for layer, head in heads}
    plans = [
        (drawn, folder / f"text-{number + 1}" / f"{stem}.{kind}", shown)
        for number, drawn in enumerate(result.drawn)
        for stem, shown in (grid | single if number == 0 or len(heads) <= MANY_HEADS else grid).items()
    ]
    for done, (drawn, path, shown) in enumerate(plans):
        on_progress("drawing", done, len(plans))
        with disk_errors(path.parent):
            path.parent.mkdir(exist_ok=True)
        title = f"{name}: {drawn.text}"
        write_bytes(path, map_figure(drawn.trained, drawn.untrained, shown, result.captions, title, kind, result.stage))
    return replace(result, page=page, figures=tuple(path for _, path, _ in plans))


def remove_figures(folder: Path) -> None:
    """Figures of an earlier look, which may be of other texts."""
    for old in folder.glob("text-*"):
        for figure in [*old.glob("grid.*"), *old.glob("layer-*-head-*.*")]:
            with disk_errors(figure):
                figure.unlink()
        if not any(old.iterdir()):
            with disk_errors(old):
                old.rmdir()


def map_figure(
    trained: AttentionMaps,
    untrained: AttentionMaps,
    heads: Heads,
    captions: Captions,
    title: str,
    kind: str,
    stage: str = "untrained",
) -> bytes:
    """Maps of these (layer, head), each before (`stage`) and after training: equal numbers give equal bytes."""
    with our_look({"hatch.linewidth": 0.6}):
        return figure_bytes(draw_maps([(untrained, stage), (trained, "trained")], heads, captions, title), kind)


def draw_maps(stages: Sequence[tuple[AttentionMaps, str]], heads: Heads, captions: Captions, title: str) -> Figure:
    """Maps of these (layer, head), at each stage; captions belong to the last."""
    layers, words = sorted({layer for layer, _ in heads}), stages[-1][0].words
    rows = [[head for own, head in heads if own == layer] for layer in layers]
    layout = GridLayout(words, len(layers), len(stages) * max(map(len, rows)))
    with our_look({"hatch.linewidth": 0.6}):
        figure = drawing()(figsize=(layout.width, layout.height), dpi=120)
        top = textwrap.wrap(title, int(12 * layout.width))[:2]
        figure.suptitle("\n".join(top), fontsize=10, y=1 - 0.1 / layout.height, va="top", parse_math=False)
        for row, (layer, numbers) in enumerate(zip(layers, rows, strict=True)):
            for number, head in enumerate(numbers):
                for column, (maps, name) in enumerate(stages):
                    axis = figure.add_axes(layout.box(row, len(stages) * number + column))
                    caption = captions.get((layer, head), "") if maps is stages[-1][0] else ""
                    lines = [f"layer {layer}, head {head}", ": ".join(filter(None, (name, caption)))]
                    points = min(8.0, 72 * (layout.side + 0.1) / (0.58 * max(map(len, lines))))  # as wide as its map
                    axis.set_title("\n".join(filter(None, lines)), fontsize=points, parse_math=False)
                    shown = draw_map(axis, maps, layer, head, layout.points, left=not (number or column))
        bar = figure.colorbar(shown, cax=figure.add_axes(layout.bar()))
        bar.set_label("attention weight\n(square-root scale; hatched: hidden)", fontsize=7)
        bar.set_ticks([0, 0.05, 0.25, 0.5, 1], labels=["0", "5%", "25%", "50%", "100%"])
        return figure


class GridLayout:
    """Sizes and positions in inches. matplotlib's own layout engine would draw each figure twice."""

    def __init__(self, words: Sequence[str], rows: int, columns: int) -> None:
        self.side = min(6.0, max(2.4, 0.16 * len(words)), WIDEST / columns)  # of one map
        points = min(8.0, 72 * self.side / len(words) * 0.8)
        self.points = points if points >= SMALLEST_TYPE else 0.0  # size of the words; 0: they are left out
        longest = max(len(axis_word(word)) for word in words)
        self.label = 0.1 + 0.62 * self.points * longest / 72  # the longest word's length
        self.width = 0.3 + self.label + columns * (self.side + 0.1) + 1.1
        self.step = 0.4 + self.side + self.label + 0.25  # title, map, words, axis name
        self.height = 0.5 + rows * self.step + 0.1

    def box(self, row: int, column: int) -> tuple[float, float, float, float]:
        left = 0.3 + self.label + column * (self.side + 0.1)
        low = self.height - 0.5 - row * self.step - 0.4 - self.side
        return left / self.width, low / self.height, self.side / self.width, self.side / self.height

    def bar(self) -> tuple[float, float, float, float]:
        return (self.width - 1.0) / self.width, self.box(0, 0)[1], 0.1 / self.width, self.side / self.height


def draw_map(axis: Axes, maps: AttentionMaps, layer: int, head: int, points: float, *, left: bool) -> AxesImage:
    """One map: queries go down, keys across. Hidden cells show the hatched background."""
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    weights = np.ma.masked_array(maps.weights[layer, head], ~maps.open[layer])
    colours = colormaps["Blues"].with_extremes(bad=(0, 0, 0, 0))
    axis.patch.set(facecolor="0.94", edgecolor="0.72", hatch="/////")
    shown = axis.imshow(weights, cmap=colours, norm=PowerNorm(0.5, 0, 1), interpolation="none", aspect="auto")
    words = [axis_word(word) for word in maps.words] if points else []
    ticks = range(len(words))
    axis.set_xticks(ticks, words, rotation=90, fontsize=points or 1, parse_math=False)
    axis.set_yticks(ticks, words if left else [""] * len(words), fontsize=points or 1, parse_math=False)
    axis.tick_params(length=0, pad=1.5)
    axis.set_xlabel("key", fontsize=7)
    if left:
        axis.set_ylabel("query", fontsize=7)
    return shown


def axis_word(word: str, longest: int = 14) -> str:
    """A word as an axis label: white space is made visible, long words are shortened."""
    if not word.strip():
        return "".join(INVISIBLE.get(letter, letter) for letter in word) or INVISIBLE[""]
    word = word.strip()
    if len(word) < 3 and not any(letter.isalnum() for letter in word):
        return f"‘{word}’"  # a lone comma would be overlooked
    return word if len(word) <= longest else word[: longest - 1] + "…"


def look_page(look: LookResult, heads: Sequence[tuple[int, int]], title: str, about: Mapping[str, object]) -> str:
    """Where heads look: maps of these (layer, head), which the page's own script draws, head statistics, heads switched
    off. `about`: the network, notes on its record, the texts read, the command"""
    data = {
        "heads": [{"layer": layer, "head": head, "caption": look.captions[layer, head]} for layer, head in heads],
        "stage": look.stage,
        "texts": [packed(drawn, heads) for drawn in look.drawn],
    }
    ahead = any(head.uniform.next is not None for head in look.heads)
    tests: dict[str, list[tuple[Effect, float]]] = {}
    for effect, bar in zip(look.effects, bars(look.effects), strict=True):
        tests.setdefault(effect.test, []).append((effect, bar))
    return render(
        "look",
        title,
        look=look,
        **about,
        caution=CAUTION,
        scale=MAP_SCALE,
        hidden=hidden(look),
        data=data,
        heads=look.heads,
        columns=[column for column in HEAD_COLUMNS if ahead or column[0] != "next"],
        tests=tests,
    )


def packed(drawn: Drawn, heads: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Small enough for a page: 16-bit shares, and one bit for what is visible. Arrays are [head query key]."""
    layers, numbers = (list(column) for column in zip(*heads, strict=True))
    arrays = {"open": np.packbits(drawn.trained.open[layers].reshape(len(layers), -1), axis=1)}
    for name in ("trained", "untrained"):
        shares = np.clip(getattr(drawn, name).weights[layers, numbers], 0, 1)
        arrays[name] = np.round(shares * LARGEST_SHARE).astype("<u2")
    encoded = {name: b64encode(array.tobytes()).decode() for name, array in arrays.items()}
    return {"words": drawn.trained.words, **encoded}


def hidden(look: LookResult) -> str:
    """What the hatched cells are; empty where there are none."""
    maps, size = look.drawn[0].trained, len(look.drawn[0].trained.words)
    allowed = np.tri(size, dtype=bool) if maps.causal else np.ones((size, size), dtype=bool)
    forbidden = bool((allowed & ~maps.open).any())
    return " and ".join([*["the future"] * (maps.causal and size > 1), *["what a part forbids"] * forbidden])


def bars(effects: Sequence[Effect]) -> list[float]:
    """How much worse each effect is, as a share of the largest; below zero it is better."""
    harms = [-effect.change if effect.measure == "accuracy" else effect.change - 1 for effect in effects]
    longest = max(map(abs, harms), default=0.0) or 1.0
    return [harm / longest for harm in harms]
