"""`fairtrial look`: maps of a few texts, statistics of all heads, heads ablated in turn; as one page and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import MISSING, format_parts
from fairtrial.inspection.attention import AttentionMaps, initial_model, maps_of, model_input
from fairtrial.inspection.heads import OWN_HEADS, Effect, Heads, HeadSummary, ablate_heads, head_statistics
from fairtrial.inspection.text import OnProgress, no_progress
from fairtrial.recipe import one_of
from fairtrial.record import Record
from fairtrial.report.page import result_page
from fairtrial.report.plots import draw, figure_bytes, our_look
from fairtrial.results.sentences import counted
from fairtrial.training.tasks import Task
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TEST_TEXTS = 1000  # of the test set, where no texts are given
MAX_DRAWN = 3  # texts whose maps are drawn; statistics are over all
MANY_HEADS = 32  # of more heads, only the first text is drawn
NETWORKS = {"classify": "Encoder with classifier", "lm": "Decoder language model"}
CAUTION = "Attention is where a head looked, not why the model decided."
SCALE = "No colour is 0% of the attention, full colour 100%. Colour scales with the square root of the weight."
STATISTICS = (
    ("entropy", "entropy, nats", "{:.2f}"),
    ("entropy_share", "of maximum", "{:.0%}"),
    ("distance", "distance", "{:.1f}"),
    *((name, name, "{:.0%}") for name in ("itself", "previous", "next", "first", "punctuation", "stripe")),
)


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
    notices: tuple[str, ...] = ()
    title: str = ""
    shown: tuple[tuple[int, int], ...] = ()  # (layer, head) whose maps are drawn; empty: all
    page: Path | None = None  # where it was written, with its figures
    figures: tuple[Path, ...] = ()

    def describe(self) -> Description:
        about = f"{len(self.heads)} heads over {self.texts:,} {self.source}."
        written = [f"page: {self.page}"] if self.page else []
        if self.figures:
            more = f" and {len(self.figures) - 1} more" * (len(self.figures) > 1)
            written.append(f"figures: {self.figures[0]}{more}")
        tables = [self._heads_table()]
        sections = [
            Description(drawn.trained.notices, title=drawn.text, charts=self.charts(drawn)) for drawn in self.mapped
        ]
        return Description([about, *self.notices, CAUTION, *written], tables, self.title, sections=sections)

    @property
    def mapped(self) -> tuple[Drawn, ...]:
        return self.drawn[:1] if len(self.shown or self.heads) > MANY_HEADS else self.drawn

    def charts(self, drawn: Drawn, layer: int | None = None, head: int | None = None) -> list[AttentionMap]:
        """Each head's map before and after training."""
        captions = {(each.layer, each.head): each.caption for each in self.heads}
        chosen = choose(self.shown or tuple(captions), layer, head)
        return [
            maps.chart(*place, f"{stage}{caption}")
            for place in chosen
            for maps, stage, caption in (
                (drawn.untrained, self.stage, ""),
                (drawn.trained, "trained", f": {captions[place]}"),
            )
        ]

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

    def statistics(self) -> Table:
        """Each head's numbers, with those of the initial network in brackets."""

        def shown(head: HeadSummary, name: str, form: str) -> str:
            both = [getattr(each, name) for each in (head.trained, head.untrained)]
            after, before = (MISSING if value is None else form.format(value) for value in both)
            return MISSING if after == MISSING else f"{after} ({before})"

        rows = tuple(
            row(f"{head.layer}, {head.head}", *(shown(head, name, form) for name, _, form in STATISTICS))
            for head in self.heads
        )
        columns = ("layer, head", *(title for _, title, _ in STATISTICS))
        return Table(f"Head statistics ({self.stage} in brackets)", columns, rows).without_empty_columns()

    def rows(self) -> list[dict[str, object]]:
        return [asdict(head) for head in self.heads]

    def plot(self, text: int = 0, layer: int | None = None, head: int | None = None) -> Figure:
        """Maps of one of the texts, before and after training."""
        return draw(self.charts(self.drawn[text], layer, head))

    def to_json(self) -> dict[str, object]:
        """For JSON: everything but the maps' weights."""
        drawn = [
            {name: getattr(each.trained, name) for name in ("words", "cut", "unknown")} | {"text": each.text}
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
    found = drawn, tuple(heads), tuple(effects)
    title = f"Attention heads: {record.folder.resolve().name}"
    return LookResult(length, len(encoded), cut, *found, stage, source, tuple(notices), title)


def choose(places: Heads, layer: int | None, head: int | None) -> list[tuple[int, int]]:
    """Those of one layer, or of one head."""
    for name, index, known in (
        ("layer", layer, {place[0] for place in places}),
        ("head", head, {place[1] for place in places}),
    ):
        if index is not None and index not in known:
            raise BadInput(f"there is no {name} {index}", f"this network has {name}s 0 to {max(known)}")
    return [place for place in places if layer in (None, place[0]) and head in (None, place[1])]


@dataclass(frozen=True)
class Target:
    """Where a look is written, and what of it is drawn; what cannot be written is refused at once."""

    record: Record
    folder: Path
    layer: int | None = None  # None: all
    head: int | None = None
    kind: str = "png"  # of the figures

    def __post_init__(self) -> None:
        one_of("--format", self.kind, ("png", "svg", "pdf"))
        shape, target = self.record.recipe.shape, self.folder.resolve()
        if not self.record.recipe.external:  # whose heads are known once it has answered
            choose(list(product(range(shape.layers), range(shape.heads))), self.layer, self.head)
        if self.record.folder.resolve() in (target, *target.parents) or (self.folder / "trial.json").exists():
            raise BadInput(f"{self.folder} is a record or inside one", "choose another folder with --out")
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"{self.folder} is a file", "choose another folder with --out")


def write_look(result: LookResult, target: Target, on_progress: OnProgress) -> LookResult:
    """The page with its numbers, and a figure for each drawn text."""
    record, folder = target.record, target.folder
    heads = choose([(each.layer, each.head) for each in result.heads], target.layer, target.head)
    result = replace(result, shown=tuple(heads))
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("text-[0-9].*"):  # of an earlier look, which may be of other texts
            old.unlink()
    page = folder / "index.html"
    write_text(page, look_page(result, record))
    write_text(folder / "look.json", dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n")
    figures = []
    for number, drawn in enumerate(result.mapped):
        on_progress("drawing", number, len(result.mapped))
        figures.append(folder / f"text-{number + 1}.{target.kind}")
        with our_look():
            write_bytes(figures[-1], figure_bytes(draw(result.charts(drawn)), target.kind))
    return replace(result, page=page, figures=tuple(figures))


def look_page(result: LookResult, record: Record) -> str:
    recipe, trial, shape = record.recipe, record.trial, result.drawn[0].trained.weights.shape
    about = (
        f"{NETWORKS.get(recipe.task, 'Encoder')} of {counted(shape[0], 'layer')} with {counted(shape[1], 'head')} each;"
        f" parts: {format_parts(recipe)}; seed {trial.seed}; context length {result.length} tokens."
    )
    described = result.describe()
    sentences = [*described.sentences, about, *trial.notes, SCALE]
    return result_page(replace(described, sentences=sentences, tables=[*described.tables, result.statistics()]))
