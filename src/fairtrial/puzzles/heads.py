"""Attention heads whose weights are written by hand, in fairtrial's own network.

A token's vector has four slots: its word, its position (from the part `learned`), the previous word (written by the
first layer of the induction network) and the answer. Word and position are one-hot, so a head's scores are two tables:
which key position a query position looks for, and whether the words must match. The norm divides every vector by one
known number, which the weights undo."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.model import LanguageModel, capture
from fairtrial.recipe import PartChoice, Shape
from fairtrial.registry import Registry
from fairtrial.rng import generator_for

SURE = 30.0  # a score that leaves exp(-30) to all others
LATER = 10.0  # what each later position adds, so that the latest of several matches wins
CERTAIN = 20.0  # the answer's logit
START = 0  # the number of ^
SHOWN = 20  # tokens of the sequence that is shown


@dataclass(frozen=True)
class Head:
    """One layer's head. `looks` gives its table of scores by place [query key]."""

    looks: Callable[[int], Tensor]
    match: bool = False  # a matching word outdoes all that places add
    reads: str = "word"  # the key's slot that is matched with the query's word: word or before
    writes: str = "answer"  # the slot that gets the word that was found: before or answer


@dataclass(frozen=True)
class Design:
    """A network of hand-made heads, and where its last head should look."""

    name: str
    story: str
    heads: tuple[Head, ...]
    start_word: bool  # sequences begin with ^, where a head looks that finds nothing
    looks_at: Callable[[list[int], int], int]  # words, query place -> the key place that is right


def fallback(places: int) -> float:
    """More than any place adds, so that ^ outdoes all words that do not match."""
    return LATER * places + SURE


def look_back(places: int) -> Tensor:
    """Query t looks at key t - 1; before the first there is none, so it sees itself."""
    return SURE * torch.diag(torch.ones(places - 1), -1)


def look_late(places: int) -> Tensor:
    """The later the better, and ^ before all."""
    keys = LATER * torch.arange(places, dtype=torch.float32)
    keys[0] = fallback(places)
    return keys.expand(places, places).clone()


def latest(words: list[int], place: int) -> int:
    """The latest key place after a word that is the query's; else 0."""
    return next((key for key in range(place, 0, -1) if words[key - 1] == words[place]), 0)


DESIGNS: Registry[Design] = Registry("head")
for _design in (
    Design(
        "previous token",
        "Each token looks one place back and copies the word it finds there; the first sees only itself. The query "
        "holds the place before its own, the key its own place: their product is large where they agree.",
        (Head(look_back),),
        False,
        lambda words, place: max(place - 1, 0),
    ),
    Design(
        "induction",
        "Two layers. The first looks one place back and writes the word it finds into a slot of its own: every token "
        "now knows the word before it. The second looks for a token whose word before is the query's own word, and "
        "copies its word: what followed last time is what comes next. Where the word is new, it looks at ^ and says "
        "so.",
        (Head(look_back, writes="before"), Head(look_late, match=True, reads="before")),
        True,
        latest,
    ),
):
    DESIGNS.add(_design.name)(_design)


def build_head(name: str, words: int, places: int) -> LanguageModel:
    """A network with the design's weights, ready to run."""
    if words < 2 or places < 2:
        raise BadInput(f"{words} words at {places} places are too few", "take at least 2 of each")
    heads, width = DESIGNS.find(name).heads, 3 * words + places
    slots = {"word": 0, "place": words, "before": words + places, "answer": 2 * words + places}  # where each begins
    shape = Shape(
        layers=len(heads), heads=1, width=width, length=places, hidden=1, dropout=0.0, norm="rms", norm_epsilon=1e-12
    )
    network = LanguageModel(shape, [PartChoice(name="learned")], words)
    weights = {key: torch.full_like(old, "norm" in key) for key, old in network.state_dict().items()}
    put(weights["body.tokens.weight"], 0, 0, torch.eye(words))
    put(weights["body.parts.learned.table.weight"], 0, slots["place"], torch.eye(places))
    filled = 2  # slots that hold a one: word and place
    for layer, head in enumerate(heads):
        attention = f"body.blocks.{layer}.attention"
        size = math.sqrt(width / filled)  # of a one, behind the norm
        back = math.sqrt(width) / size**2  # scores are q k / sqrt(width), and both q and k carry `size`
        q, k, v = weights[f"{attention}.qkv.weight"].split(width)  # each [to from]
        put(q, slots["place"], slots["place"], back * head.looks(places).T)
        put(k, slots["place"], slots["place"], torch.eye(places))
        if head.match:
            put(q, 0, 0, back * 2 * fallback(places) * torch.eye(words))
            put(k, 0, slots[head.reads], torch.eye(words))
        put(v, 0, 0, torch.eye(words) / size)
        put(weights[f"{attention}.out.weight"], slots[head.writes], 0, torch.eye(words))
        filled += 1
    # the last norm gives each one of the `filled` slots the same size; the output layer reads the answer
    put(weights["out.weight"], 0, slots["answer"], CERTAIN * math.sqrt(filled / width) * torch.eye(words))
    network.load_state_dict(weights, strict=True)
    return network.eval()


def put(table: Tensor, row: int, column: int, block: Tensor) -> None:
    """Write a block into a table, in place."""
    table[row : row + block.shape[0], column : column + block.shape[1]] = block


def random_words(design: Design, words: int, places: int, count: int, seed: int) -> Tensor:
    """Random sequences [sequence place]. Where ^ is used, it stands first and nowhere else."""
    rng = generator_for(seed, "puzzle words", design.name)
    drawn = rng.integers(int(design.start_word), words, size=(count, places))
    if design.start_word:
        drawn[:, 0] = START
    return torch.from_numpy(drawn)


@torch.no_grad()
def run(network: LanguageModel, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The words it predicts [sequence place], and each layer's map [sequence query key]."""
    with capture(network) as seen:
        predicted = network(ids).argmax(-1)
    maps = [seen[f"body.blocks.{layer}.attention.maps"][:, 0] for layer in range(network.body.shape.layers)]
    return predicted, maps


@dataclass(frozen=True, repr=False)
class HandmadeHead(Result):
    """One network written by hand: a sequence it read, and its maps."""

    name: str
    story: str
    words: list[str]
    predicted: list[str]
    maps: list[list[list[float]]]  # layer query key
    right: list[int]  # where its last head should look, by place
    layers: int
    width: int

    def describe(self) -> Description:
        sentences = [self.story, f"{self.layers} layers, one head each, width {self.width}."]
        shown = zip(self.words, self.right, self.maps[-1], self.predicted, strict=True)
        rows = tuple(
            row(word, f"{self.words[right]} ({right})", f"{weights[right]:.0%}", said)
            for word, right, weights, said in shown
        )
        table = Table("", ("word", "looks at", "weight", "says next"), rows, text_columns=4)
        charts = [
            AttentionMap(
                f"layer {layer}",
                tuple(self.words),
                [[*of_query[: at + 1], *[None] * len(of_query[at + 1 :])] for at, of_query in enumerate(weights)],
            )
            for layer, weights in enumerate(self.maps)
        ]
        return Description(sentences, [table], self.name, charts)

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "head": self.name}


def head(name: str, words: int = 8, places: int = 24, seed: int = 0) -> HandmadeHead:
    """A small network whose attention head is written by hand, on a random sequence."""
    design, network = DESIGNS.find(name), build_head(name, words, places)
    known = (["^"] if design.start_word else []) + [chr(ord("a") + number) for number in range(words)]
    ids = random_words(design, words, places, 1, seed)[0, :SHOWN]
    return shown_head(design, network, ids, known)


def head_names() -> list[str]:
    return DESIGNS.list()


def read_sequence(name: str, words: list[str]) -> HandmadeHead:
    """What a hand-made head does on a sequence of words."""
    design = DESIGNS.find(name)
    read = [*(["^"] if design.start_word else []), *words]
    known = list(dict.fromkeys(read))
    known += [f"({number})" for number in range(2 - len(known))]  # a network knows two words at least
    network = build_head(name, len(known), len(read))
    return shown_head(design, network, torch.tensor([known.index(word) for word in read]), known)


def shown_head(design: Design, network: LanguageModel, ids: Tensor, known: list[str]) -> HandmadeHead:
    predicted, maps = run(network, ids[None])
    numbers, shape = ids.tolist(), network.body.shape
    return HandmadeHead(
        design.name,
        design.story,
        [known[word] for word in numbers],
        [known[word] for word in predicted[0].tolist()],
        [layer[0].tolist() for layer in maps],
        [design.looks_at(numbers, place) for place in range(len(numbers))],
        shape.layers,
        shape.width,
    )
