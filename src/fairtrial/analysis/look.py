"""Attention maps as figures: all heads in one grid, or one head alone; PNG, SVG or PDF. Numbers in, no torch.

All that `fairtrial look` finds, as plain numbers: maps of a few texts, portraits over all, each head's worth.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtrial.analysis.attention import Maps, Network, maps_of, read_text
from fairtrial.analysis.heads import Effect, Portrait, paint, switch_off
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.report.plots import figure_bytes, our_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fairtrial.analysis.attention import Maps


WIDEST = 36.0  # inches of all maps in a row
SMALLEST_TYPE = 3.0  # points; smaller words are left out
INVISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "": "∅"}


def map_figure(
    trained: Maps,
    untrained: Maps,
    heads: Sequence[tuple[int, int]],
    captions: dict[tuple[int, int], str],
    title: str,
    kind: str,
    stage: str = "untrained",
) -> bytes:
    """Maps of these (layer, head), each before and after training: the same bytes for the same numbers. `stage` says
    what the network was before."""
    from matplotlib.figure import Figure

    layers = sorted({layer for layer, _ in heads})
    rows = [[head for each, head in heads if each == layer] for layer in layers]
    frame = Frame.of(trained.words, len(layers), 2 * max(map(len, rows)))
    with our_look({"hatch.linewidth": 0.6}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a word in a script that the font lacks is drawn as boxes
        figure = Figure(figsize=(frame.width, frame.height), dpi=120)
        top = textwrap.wrap(title, int(12 * frame.width))[:2]
        figure.suptitle("\n".join(top), fontsize=10, y=1 - 0.1 / frame.height, va="top", parse_math=False)
        for row, (layer, numbers) in enumerate(zip(layers, rows, strict=True)):
            for place, head in enumerate(numbers):
                for column, (maps, name) in enumerate(((untrained, stage), (trained, "trained"))):
                    axis = figure.add_axes(frame.place(row, 2 * place + column))
                    said = captions.get((layer, head), "") if name == "trained" else ""
                    lines = [f"layer {layer}, head {head}", f"{name}{said and ': '}{said}"]
                    points = min(8.0, 72 * (frame.side + 0.1) / (0.58 * max(map(len, lines))))  # as wide as its map
                    axis.set_title("\n".join(lines), fontsize=points, parse_math=False)
                    shown = draw(axis, maps, layer, head, frame.points, left=not (place or column))
        bar = figure.colorbar(shown, cax=figure.add_axes(frame.bar()))
        bar.set_label("share of a word's attention\n(square-root scale; hatched: hidden)", fontsize=7)
        bar.set_ticks([0, 0.05, 0.25, 0.5, 1], labels=["0", "5%", "25%", "50%", "100%"])
        return figure_bytes(figure, kind)


@dataclass(frozen=True)
class Frame:
    """Where everything stands, in inches. matplotlib's own layout would draw each figure twice to find out."""

    rows: int
    columns: int
    side: float  # of one map
    points: float  # size of the words; 0: they are left out
    label: float  # the longest word's length

    @classmethod
    def of(cls, words: Sequence[str], rows: int, columns: int) -> Frame:
        side = min(6.0, max(2.4, 0.16 * len(words)), WIDEST / columns)
        points = min(8.0, 72 * side / len(words) * 0.8)
        points = points if points >= SMALLEST_TYPE else 0.0
        longest = max(len(axis_word(word)) for word in words)
        return cls(rows, columns, side, points, 0.1 + 0.62 * points * longest / 72)

    @property
    def width(self) -> float:
        return 0.3 + self.label + self.columns * (self.side + 0.1) + 1.1

    @property
    def height(self) -> float:
        return 0.5 + self.rows * self.step + 0.1

    @property
    def step(self) -> float:
        return 0.4 + self.side + self.label + 0.25  # title, map, words, axis name

    def place(self, row: int, column: int) -> tuple[float, float, float, float]:
        left = 0.3 + self.label + column * (self.side + 0.1)
        low = self.height - 0.5 - row * self.step - 0.4 - self.side
        return left / self.width, low / self.height, self.side / self.width, self.side / self.height

    def bar(self) -> tuple[float, float, float, float]:
        low = self.place(0, 0)[1]
        return (self.width - 1.0) / self.width, low, 0.1 / self.width, self.side / self.height


def draw(axis: Axes, maps: Maps, layer: int, head: int, points: float, *, left: bool) -> Any:
    """One map: who looks goes down, at whom goes across. What is hidden shows the hatched ground."""
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    weights = np.ma.masked_array(maps.weights[layer, head], ~maps.open[layer])
    colours = colormaps["Blues"].with_extremes(bad=(0, 0, 0, 0))
    axis.patch.set(facecolor="0.94", edgecolor="0.72", hatch="/////")
    shown = axis.imshow(weights, cmap=colours, norm=PowerNorm(0.5, 0, 1), interpolation="none", aspect="auto")
    words = [axis_word(word) for word in maps.words] if points else []
    places = range(len(words))
    axis.set_xticks(places, words, rotation=90, fontsize=points or 1, parse_math=False)
    axis.set_yticks(places, words if left else [""] * len(words), fontsize=points or 1, parse_math=False)
    axis.tick_params(length=0, pad=1.5)
    axis.set_xlabel("looks at", fontsize=7)
    if left:
        axis.set_ylabel("a word", fontsize=7)
    return shown


def axis_word(word: str, longest: int = 14) -> str:
    """A word as it stands on an axis: white space is made visible, long words are cut."""
    if not word.strip():
        return "".join(INVISIBLE.get(letter, letter) for letter in word) or INVISIBLE[""]
    word = word.strip()
    if len(word) < 3 and not any(letter.isalnum() for letter in word):
        return f"‘{word}’"  # a lone comma would be taken for dust
    return word if len(word) <= longest else word[: longest - 1] + "…"


MOST_DRAWN = 3  # texts whose maps are drawn; portraits are over all

Tell = Callable[[int], None]  # hears how much is done


@dataclass(frozen=True)
class Drawn:
    text: str
    trained: Maps
    untrained: Maps


@dataclass(frozen=True)
class Album:
    length: int  # tokens that the model sees at once
    texts: int
    cut: int  # texts that were longer
    drawn: tuple[Drawn, ...]
    portraits: tuple[Portrait, ...]
    effects: tuple[Effect, ...]
    stage: str = "untrained"  # what the network was before training; "pretrained" where it was fine-tuned

    @property
    def captions(self) -> dict[tuple[int, int], str]:
        return {(each.layer, each.head): each.caption for each in self.portraits}

    def to_dict(self) -> dict[str, Any]:
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
        facts = {"before": self.stage, "length": self.length, "texts": self.texts, "cut": self.cut, "drawn": drawn}
        return facts | {
            "portraits": [asdict(each) for each in self.portraits],
            "switched_off": [asdict(each) | {"clear": each.clear} for each in self.effects],
        }


def fill_album(
    network: Network,
    twin: Network,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    tell: Tell = lambda done: None,
    stage: str = "untrained",
) -> Album:
    """Maps and portraits beside those of the twin; heads are switched off in `worth`, which needs test sets."""
    length = network.body.shape.length
    readings = [read_text(tokenizer, text, length) for text in texts]
    portraits = paint(network, twin, tokenizer, readings, lambda done, of: tell(done), stage)
    drawn = tuple(
        Drawn(text, maps_of(network, tokenizer, text), maps_of(twin, tokenizer, text)) for text in texts[:MOST_DRAWN]
    )
    cut = sum(bool(reading.cut) for reading in readings)
    return Album(length, len(texts), cut, drawn, tuple(portraits), (), stage)


def worth(bench: Any, tests: Sequence[str], tell: Tell = lambda done: None) -> tuple[Effect, ...]:
    """Each head switched off in turn, on every test set."""
    shape = bench.network.body.shape
    heads = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    found: list[Effect] = []
    for number, test in enumerate(tests):
        before = number * (len(heads) + 1)
        found += switch_off(bench, test, heads, lambda done, of, before=before: tell(before + done))  # type: ignore[misc]
    return tuple(found)


def scores_needed(bench: Any, tests: Sequence[str]) -> int:
    """How much `worth` tells of."""
    shape = bench.network.body.shape
    return len(tests) * (shape.layers * shape.heads + 1)
