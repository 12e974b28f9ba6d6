"""What each attention head does, over many texts: statistics beside those of the initial model and uniform attention,
a caption (its rules are also in docs/look.md: keep both alike), and the score without that head. `look` puts them
together with the maps of a few texts, as one page and figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import MISSING, format_parts
from fairtrial.inspection.attention import (
    AttentionMaps,
    ModelInput,
    Network,
    heads_of,
    initial_model,
    maps_in,
    maps_of,
    model_input,
    open_keys,
    prefix_words,
)
from fairtrial.inspection.text import OnProgress, no_progress
from fairtrial.model.external import ExternalModel
from fairtrial.model.part import AttentionContext, Part
from fairtrial.recipe import Shape, one_of
from fairtrial.record import Record
from fairtrial.report.page import result_page
from fairtrial.report.plots import draw, figure_bytes, our_look
from fairtrial.results.sentences import counted
from fairtrial.statistics.crossed import paired_change
from fairtrial.statistics.outcomes import score_interval
from fairtrial.training.scoring import Score, score_lm
from fairtrial.training.tasks import LanguageTask, Task
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Heads = Sequence[tuple[int, int]]  # (layer, head)
MAX_WEIGHTS = 2**22  # attention weights held at once
# limits of the captions
LEAD = 0.40  # least share of attention on one position for a caption that names it
TIMES = 1.5  # ... and so many times the share under uniform attention
STRIPE = 0.30
NEAR = 0.5  # mean distance, relative to uniform attention
DIFFUSE = 0.85  # entropy, relative to the maximum
ALIKE = 0.10  # values that differ by less are alike
POSITIONS = {"previous": "previous word", "next": "next word", "itself": "itself", "first": "first word"}
# of a head's score on a test set: a token sees at least half of the context; the exact score takes many times as long
LEAST_CONTEXT = 0.5


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the attention rows of one head. None: no row had more than one visible key of that kind."""

    entropy: float | None  # nats
    entropy_share: float | None  # entropy / ln(visible words)
    distance: float | None  # |query - key|, in tokens
    itself: float | None
    previous: float | None
    next: float | None
    first: float | None
    punctuation: float | None
    stripe: float | None  # mean weight that the most attended word of a text gets from the others
    stripe_word: str = ""  # that word, in most texts
    stripe_often: float = 0.0  # fraction of texts in which it is that word


@dataclass(frozen=True)
class HeadSummary:
    layer: int
    head: int
    trained: HeadStatistics
    untrained: HeadStatistics
    uniform: HeadStatistics  # of a head that attends equally to all visible words
    caption: str


def head_statistics(
    network: Network,
    initial: Network,
    tokenizer: Tokenizer,
    inputs: Sequence[ModelInput],
    on_progress: OnProgress = no_progress,
    stage: str = "untrained",
) -> list[HeadSummary]:
    """A summary of every head over all texts. `stage` says what the initial network was."""
    layers, heads = heads_of(network, min(inputs, key=lambda text: len(text.ids)))
    trained, untrained, uniform = (Sums(layers, heads) for _ in range(3))
    first, done = POSITIONS["first"], 0
    on_progress("reading", 0, len(inputs))
    for batch in batches(inputs, layers * heads, equal=isinstance(network, ExternalModel)):
        ids, lengths = (torch.from_numpy(array) for array in padded([text.ids for text in batch], tokenizer.pad))
        added = prefix_words(network)
        words = [(*added, *tokenizer.words(text.ids)) for text in batch]
        if added or tokenizer.start is not None:
            first = repr(words[0][0])  # a mark, the same in every text
        time = ids.shape[1] + len(added)
        visible = open_keys(network, lengths + len(added), time, layers)  # layer batch query key
        trained.add(maps_in(network, ids, lengths), visible, words)
        untrained.add(maps_in(initial, ids, lengths), visible, words)
        even = visible / np.maximum(1, visible.sum(-1, keepdims=True))
        uniform.add(np.repeat(even[:, :, None], heads, 2), visible, words)
        done += len(batch)
        on_progress("reading", done, len(inputs))
    found = []
    for layer, head in np.ndindex(layers, heads):
        after, before, alike = (sums.means(layer, head) for sums in (trained, untrained, uniform))
        found.append(HeadSummary(layer, head, after, before, alike, caption(after, before, alike, stage, first)))
    return found


def batches(inputs: Sequence[ModelInput], maps: int, *, equal: bool = False) -> Iterator[list[ModelInput]]:
    """Texts of similar length, or of `equal` length, together, as many as memory allows."""
    batch: list[ModelInput] = []
    for text in sorted(inputs, key=lambda text: len(text.ids)):
        longer = equal and bool(batch) and len(text.ids) > len(batch[0].ids)
        if batch and (longer or (len(batch) + 1) * maps * len(text.ids) ** 2 > MAX_WEIGHTS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


class Sums:
    """Sums over attention rows. A row counts if at least two words are visible to it."""

    def __init__(self, layers: int, heads: int) -> None:
        self.totals: dict[str, np.ndarray] = {}  # [layer head]
        self.counts: dict[str, np.ndarray] = {}  # [layer]
        self.words = [[Counter[str]() for _ in range(heads)] for _ in range(layers)]

    def add(self, weights: np.ndarray, visible: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """Maps [layer batch head query key] of texts, and what is visible in them [layer batch query key]."""
        time = visible.shape[-1]
        choices = visible.sum(-1)  # layer batch query
        free = choices >= 2
        weights = weights.astype(np.float64) * free[:, :, None, :, None]
        offset = np.arange(time)[:, None] - np.arange(time)  # query key
        logs = np.log(np.where(weights > 0, weights, 1.0))
        entropy = -(weights * logs).sum(-1)  # layer batch head query
        self.rows("entropy", entropy, free)
        self.rows("entropy_share", entropy / np.log(np.maximum(2, choices))[:, :, None], free)
        self.rows("distance", (weights * np.abs(offset)).sum(-1), free)
        first = (np.arange(time) == 0) & (offset != 0)
        positions = {"itself": offset == 0, "previous": offset == 1, "next": offset == -1, "first": first}
        for name, keys in positions.items():
            self.share(name, weights, visible & keys & free[..., None])
        marks = np.array([[*map(is_punctuation, row), *[False] * (time - len(row))] for row in words])
        self.share("punctuation", weights, visible & marks[None, :, None, :] & free[..., None])
        self.stripe(weights, visible & (offset != 0) & free[..., None], words)

    def rows(self, name: str, values: np.ndarray, counted: np.ndarray) -> None:
        """Values [layer batch head query] of the rows that count [layer batch query]"""
        total, count = (values * counted[:, :, None]).sum((1, 3)), counted.sum((1, 2))
        self.totals[name] = self.totals.get(name, 0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def share(self, name: str, weights: np.ndarray, keys: np.ndarray) -> None:
        """The weight on these keys [layer batch query key], over the rows that see one of them."""
        self.rows(name, (weights * keys[:, :, None]).sum(-1), keys.sum(-1) > 0)

    def stripe(self, weights: np.ndarray, others: np.ndarray, words: Sequence[Sequence[str]]) -> None:
        """The word that gets most weight from all others; at least half see it (few see a decoder's last words)."""
        seers = others.sum(2)  # layer batch key
        drawn = (weights * others[:, :, None]).sum(3) / np.maximum(1, seers)[:, :, None]  # layer batch head key
        sizes = np.array([len(row) for row in words])
        fit = seers >= np.maximum(2, sizes / 2)[:, None]
        drawn = np.where(fit[:, :, None], drawn, 0.0)
        best = drawn.argmax(-1)  # layer batch head
        most = np.take_along_axis(drawn, best[..., None], -1)
        self.rows("stripe", most, fit.sum(-1, keepdims=True) > 0)
        for layer, batch, head in np.argwhere(most[..., 0] > 0):
            self.words[layer][head][words[batch][best[layer, batch, head]]] += 1

    def means(self, layer: int, head: int) -> HeadStatistics:
        def mean(name: str) -> float | None:
            count = int(self.counts[name][layer])
            return float(self.totals[name][layer, head]) / count if count else None

        leading = self.words[layer][head].most_common(1)
        word, times = leading[0] if leading else ("", 0)
        often = times / max(1, self.words[layer][head].total())
        return HeadStatistics(**{name: mean(name) for name in self.totals}, stripe_word=word, stripe_often=often)


def is_punctuation(word: str) -> bool:
    return bool(word.strip()) and not any(letter.isalnum() for letter in word)


def caption(
    trained: HeadStatistics,
    untrained: HeadStatistics,
    uniform: HeadStatistics,
    before: str = "untrained",
    first: str = POSITIONS["first"],
) -> str:
    """One line, compared with the initial network, which was `before`; `first` names the first token of every text."""
    kind, value = kind_of(trained, uniform)
    kind_then, value_then = kind_of(untrained, uniform)
    alike = kind == kind_then and abs(value - value_then) < ALIKE
    end = f", as {before}" if alike else ""
    named = repr(trained.stripe_word) if trained.stripe_often > 0.5 else "one word of each text"
    names = POSITIONS | {"first": first, "punctuation": "punctuation", "stripe": f"stripe on {named}"}
    if kind in names:
        return f"{names[kind]}, {value:.0%}{end}"
    if kind == "near":
        return f"near words, mean distance {trained.distance:.1f}{end}"
    if kind == "nothing":
        return "nothing to choose from"
    if not alike:
        sharper = (trained.entropy_share or 0.0) < (untrained.entropy_share or 0.0)
        end = f", {'sharper' if sharper else 'flatter'} than {before}"
    return f"{kind}{end}"


def kind_of(statistics: HeadStatistics, uniform: HeadStatistics) -> tuple[str, float]:
    """(class, the number that put it there)"""
    if statistics.entropy_share is None:
        return "nothing", 0.0
    shares = {name: (getattr(statistics, name), getattr(uniform, name)) for name in (*POSITIONS, "punctuation")}
    leading = {name: share for name, (share, alike) in shares.items() if leads(share, alike, LEAD)}
    if leading:
        return max(leading.items(), key=lambda item: item[1])
    if leads(statistics.stripe, uniform.stripe, STRIPE):
        return "stripe", statistics.stripe or 0.0
    if statistics.distance is not None and uniform.distance and statistics.distance <= NEAR * uniform.distance:
        return "near", statistics.distance / uniform.distance
    return "diffuse" if statistics.entropy_share >= DIFFUSE else "mixed", statistics.entropy_share


def leads(share: float | None, alike: float | None, least: float) -> bool:
    return share is not None and alike is not None and share >= max(least, min(0.95, TIMES * alike))


@dataclass(frozen=True)
class Effect:
    """The effect of ablating one head on the score of one test set, on the same items."""

    layer: int
    head: int
    test: str
    measure: str  # accuracy or perplexity
    whole: float  # the score with all heads
    without: float
    change: float  # without - whole for accuracy, without / whole for perplexity
    interval: tuple[float, float] | None  # 95% over test items, one seed; None: there is only one document

    @property
    def clear(self) -> bool:
        """The interval excludes "no change"."""
        no_change = 0.0 if self.measure == "accuracy" else 1.0
        return self.interval is not None and not self.interval[0] <= no_change <= self.interval[1]

    @property
    def shown(self) -> str:
        """`-5.2 points [-7.4, -3.0]` of accuracy, or `+4.1% [+3.0%, +5.2%]` of perplexity."""
        accuracy = self.measure == "accuracy"
        values = [self.change, *(self.interval or ())]
        mean, *ends = [f"{100 * value:+.1f}" if accuracy else f"{100 * (value - 1):+.1f}%" for value in values]
        return mean + " points" * accuracy + (f" [{ends[0]}, {ends[1]}]" if ends else "")


ELSEWHERE = frozenset(("project", "mix", "read"))  # overridden: a head without values may have an output all the same


OWN_HEADS = "its heads are its own and cannot be switched off"


class HeadOff(Part):
    """The output of one head is zero."""

    def __init__(self, shape: Shape, layer: int, head: int) -> None:
        super().__init__(shape)
        self.layer, self.head = layer, head

    def read(self, heads: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        off = torch.arange(heads.shape[1], device=heads.device) == self.head
        return heads.masked_fill(off[:, None, None], 0.0) if context.layer == self.layer else heads


@contextmanager
def head_off(network: Network, layer: int, head: int) -> Iterator[None]:
    """Without one head inside the `with` block: the rows of its value weights are zeroed, so that it outputs zeros
    wherever it attends and the fused kernel runs as usual; then they are restored bit for bit. Where a part takes
    values from elsewhere, or heads share them, a part of our own empties the head's output instead."""
    if isinstance(network, ExternalModel):
        raise BadInput(f"{network.name}: {OWN_HEADS}")
    attention, parts = network.body.blocks[layer].attention, network.body.parts
    if attention.shared_by > 1 or any(ELSEWHERE & part.hooks for part in network.body.listed_parts()):
        name = f"head-off-{layer}-{head}"  # of its own, so that several may be off
        parts[name] = HeadOff(network.body.shape, layer, head)
        try:
            yield
        finally:
            del parts[name]
        return
    width, head_dim = attention.out.in_features, attention.head_dim
    rows = slice(2 * width + head * head_dim, 2 * width + (head + 1) * head_dim)  # rows of q, then k, then v
    values = [parameter.data[rows] for parameter in (attention.qkv.weight, attention.qkv.bias) if parameter is not None]
    saved = [value.clone() for value in values]
    try:
        for value in values:
            value.zero_()
        yield
    finally:
        for value, before in zip(values, saved, strict=True):
            value.copy_(before)


def ablate_heads(task: Task, test: str, heads: Heads, on_progress: OnProgress = no_progress) -> list[Effect]:
    """The effect of ablating each (layer, head) alone."""
    what, scores = f"ablating heads on {test}", len(heads) + 1
    on_progress(what, 0, scores)
    full = score_test(task, test)
    effects = []
    for number, (layer, head) in enumerate(heads, 1):
        on_progress(what, number, scores)
        with head_off(task.network, layer, head):
            without = score_test(task, test)
        effects.append(effect_of(layer, head, test, full, without))
    on_progress(what, scores, scores)
    return effects


def score_test(task: Task, test: str) -> Score:
    if isinstance(task, LanguageTask):
        return score_lm(task.network, task.sets[test], length=task.length, full_context=LEAST_CONTEXT)
    return task.score(test)


def effect_of(layer: int, head: int, test: str, whole: Score, without: Score) -> Effect:
    if "guess" in whole.outcomes:
        right, still = (score.outcomes["guess"] == score.outcomes["label"] for score in (whole, without))
        changed = paired_change(right, still, whole.outcomes.get("group"))
        before, after = whole.metrics.figure("accuracy"), without.metrics.figure("accuracy")
        return Effect(layer, head, test, "accuracy", before, after, after - before, changed)
    added, tokens = without.outcomes["nll"] - whole.outcomes["nll"], whole.outcomes["tokens"]
    factor = math.exp(min(700.0, float(added.sum() / tokens.sum())))
    before, after = whole.metrics.figure("perplexity"), without.metrics.figure("perplexity")
    interval = score_interval(whole.outcomes | {"nll": added})  # of the factor: exp of the mean of added nats
    return Effect(layer, head, test, "perplexity", before, after, factor, interval)


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
