"""Attention maps of a few texts before and after training, each with a caption of its own, as one page and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import format_parts
from fairtrial.inspection.attention import AttentionMaps, initial_model, maps_of
from fairtrial.recipe import one_of
from fairtrial.record import Record
from fairtrial.report.page import result_page
from fairtrial.report.plots import draw, figure_bytes, our_look
from fairtrial.results.sentences import counted
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DRAWN = 3  # texts whose maps are drawn
NETWORKS = {"classify": "Encoder with classifier", "lm": "Decoder language model"}
CAUTION = "Attention is where a head looked, not why the model decided."
SCALE = "No colour is 0% of the attention, full colour 100%. Colour scales with the square root of the weight."


@dataclass(frozen=True)
class Drawn:
    text: str
    trained: AttentionMaps
    untrained: AttentionMaps  # of the initial network


@dataclass(frozen=True, repr=False)
class LookResult(Result):
    """Attention maps of a few texts, before and after training.

    >>> found = classifier.look("a warm and funny film")
    >>> len(found.drawn), len(found.rows())
    (1, 2)
    """

    drawn: tuple[Drawn, ...]
    stage: str = "untrained"  # what the initial network was: or "pretrained"
    notices: tuple[str, ...] = ()
    title: str = ""
    layer: int | None = None  # whose maps are shown; None: all
    head: int | None = None
    page: Path | None = None  # where it was written, with its figures
    figures: tuple[Path, ...] = ()

    def describe(self) -> Description:
        written = [f"page: {self.page}"] if self.page else []
        written += [f"figures: {', '.join(map(str, self.figures))}"] if self.figures else []
        rows = tuple(
            row(str(layer), str(head), drawn.trained.caption(layer, head), drawn.untrained.caption(layer, head))
            for drawn in self.drawn[:1]
            for layer, head in self.places(drawn)
        )
        table = Table("Where each head looks in the first text", ("layer", "head", "trained", self.stage), rows)
        sections = [
            Description(drawn.trained.notices, title=drawn.text, charts=self.charts(drawn)) for drawn in self.drawn
        ]
        told = [*self.notices, CAUTION, *written]
        return Description(told, [replace(table, text_columns=4)], self.title, sections=sections)

    def places(self, drawn: Drawn) -> list[tuple[int, int]]:
        """Layer and head of each map that is shown."""
        every = np.ndindex(drawn.trained.weights.shape[:2])
        chosen = [place for place in every if self.layer in (None, place[0]) and self.head in (None, place[1])]
        if not chosen:
            layers, heads = drawn.trained.weights.shape[:2]
            what = f"there is no layer {self.layer}, head {self.head}"
            raise BadInput(what, f"this network has layers 0 to {layers - 1} and heads 0 to {heads - 1}")
        return chosen

    def charts(self, drawn: Drawn) -> list[AttentionMap]:
        """Each head's map before and after training."""
        return [
            maps.chart(*place, f"{stage}: {maps.caption(*place)}")
            for place in self.places(drawn)
            for maps, stage in ((drawn.untrained, self.stage), (drawn.trained, "trained"))
        ]

    def rows(self) -> list[dict[str, object]]:
        """One for each text, layer and head."""
        return [
            {"text": drawn.text, "layer": layer, "head": head}
            | {"trained": drawn.trained.caption(layer, head), self.stage: drawn.untrained.caption(layer, head)}
            for drawn in self.drawn
            for layer, head in self.places(drawn)
        ]

    def plot(self, text: int | None = None) -> Figure:
        """Maps before and after training, of all texts or of one of them."""
        chosen = self.drawn if text is None else self.drawn[text : text + 1]
        return draw([chart for drawn in chosen for chart in self.charts(drawn)])


def look(run: Run, texts: Sequence[str] = (), layer: int | None = None, head: int | None = None) -> LookResult:
    """Of the first of these texts, or of the record's first test set."""
    record, notices = run.record, []
    if not texts:
        test = record.trial.test_sets[0]
        notices.append(f"the first texts of the test set {test!r}")
        texts = [each.text for each in run.splits.tests[test] if each.text.strip()][:MAX_DRAWN]
    elif len(texts) > MAX_DRAWN:
        notices.append(f"maps of the first {MAX_DRAWN} of {len(texts):,} texts")
    try:
        initial, stage = initial_model(run)
    except BadInput as error:  # the encoder that it was fine-tuned from is gone
        initial, stage = run.initial_network(), "untrained"
        notices.append(f"{error.what}: compared with a randomly initialized network instead")
    drawn = tuple(
        Drawn(text, maps_of(run.network, run.tokenizer, text), maps_of(initial, run.tokenizer, text))
        for text in texts[:MAX_DRAWN]
    )
    title = f"Attention heads: {record.folder.resolve().name}"
    result = LookResult(drawn, stage, tuple(notices), title, layer, head)
    result.places(drawn[0])
    return result


def write_look(result: LookResult, record: Record, folder: Path, kind: str = "png") -> LookResult:
    """The page, and a figure for each drawn text."""
    one_of("--format", kind, ("png", "svg", "pdf"))
    target = folder.resolve()
    if record.folder.resolve() in (target, *target.parents) or (folder / "trial.json").exists():
        raise BadInput(f"{folder} is a record or inside one", "choose another folder with --out")
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("text-[0-9].*"):  # of an earlier look, which may be of other texts
            old.unlink()
    page = folder / "index.html"
    write_text(page, look_page(result, record))
    figures = []
    for number, drawn in enumerate(result.drawn, 1):
        figures.append(folder / f"text-{number}.{kind}")
        with our_look():
            write_bytes(figures[-1], figure_bytes(draw(result.charts(drawn)), kind))
    return replace(result, page=page, figures=tuple(figures))


def look_page(result: LookResult, record: Record) -> str:
    recipe, trial, maps = record.recipe, record.trial, result.drawn[0].trained
    layers, heads = maps.weights.shape[:2]
    about = (
        f"{NETWORKS.get(recipe.task, 'Encoder')} of {counted(layers, 'layer')} with {counted(heads, 'head')} each;"
        f" parts: {format_parts(recipe)}; seed {trial.seed}; context length {maps.length} tokens."
    )
    described = result.describe()
    return result_page(replace(described, sentences=[*described.sentences, about, *trial.notes, SCALE]))
