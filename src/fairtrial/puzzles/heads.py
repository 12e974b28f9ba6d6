"""Attention heads whose weights are written by hand, in a network that is fairtrial's own.

A token's vector has four slots: its word, its place (from the part `learned`), the word before it (written by the
first layer of the induction network) and the answer. Word and place are one-hot, so a head's scores are two tables:
which key place a query place looks for, and whether the words must match. The norm divides every vector by one known
number, which the weights undo."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.errors import BadInput
from fairtrial.model.network import LanguageModel
from fairtrial.names import Names
from fairtrial.recipe import PartChoice, Shape

SURE = 30.0  # a score that leaves exp(-30) to all others
LATER = 10.0  # what each place further on adds, so that the latest of several matches wins
CERTAIN = 20.0  # the answer's logit


@dataclass(frozen=True)
class Slots:
    """Where the slots of a token's vector begin."""

    words: int
    places: int

    @property
    def place(self) -> int:
        return self.words

    @property
    def before(self) -> int:
        return self.words + self.places

    @property
    def answer(self) -> int:
        return 2 * self.words + self.places

    @property
    def width(self) -> int:
        return 3 * self.words + self.places


@dataclass(frozen=True)
class Head:
    """One layer's head. `looks` gives its table of scores by place [query key]; `match` is what a matching word
    adds."""

    looks: Callable[[int], Tensor]
    match: Callable[[int], float] | None = None
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


def look_first(places: int) -> Tensor:
    return SURE * (torch.arange(places) == 0).float().expand(places, places).clone()


def look_late(places: int) -> Tensor:
    """The later the better, and ^ before all."""
    keys = LATER * torch.arange(places, dtype=torch.float32)
    keys[0] = fallback(places)
    return keys.expand(places, places).clone()


def look_late_but_not_here(places: int) -> Tensor:
    return look_late(places) - 4 * fallback(places) * torch.eye(places) * (torch.arange(places) > 0)


def strong_match(places: int) -> float:
    return 2 * fallback(places)


def latest(words: list[int], place: int, shift: int, first: int) -> int:
    """The latest key place from `first` on whose word, or the one `shift` places before it, is the query's; else 0."""
    for key in range(first, 0, -1):
        if words[key - shift] == words[place]:
            return key
    return 0


DESIGNS: Names[Design] = Names("head")

DESIGNS.add("previous token")(
    Design(
        "previous token",
        "Each token looks one place back and copies the word it finds there; the first sees only itself. The query "
        "holds the place before its own, the key its own place: their product is large where they agree.",
        (Head(look_back),),
        False,
        lambda words, place: max(place - 1, 0),
    )
)
DESIGNS.add("first token")(
    Design(
        "first token",
        "Each token looks at the first place and copies its word. Every query is the same: the key of place 0.",
        (Head(look_first),),
        False,
        lambda words, place: 0,
    )
)
DESIGNS.add("same word before")(
    Design(
        "same word before",
        "Each token looks for its own word further left, and copies it; a word that is new looks at ^ and copies that. "
        "Query and key hold the word, so equal words score high. Places add a little, so that the latest wins; a "
        "token's own place counts against it, so that no token finds itself.",
        (Head(look_late_but_not_here, strong_match),),
        True,
        lambda words, place: latest(words, place, 0, place - 1),
    )
)
DESIGNS.add("induction")(
    Design(
        "induction",
        "Two layers. The first looks one place back and writes the word it finds into a slot of its own: every token "
        "now knows the word before it. The second looks for a token whose word before is the query's own word, and "
        "copies its word: what followed last time is what comes next. Where the word is new, it looks at ^ and says "
        "so.",
        (Head(look_back, writes="before"), Head(look_late, strong_match, reads="before")),
        True,
        lambda words, place: latest(words, place, 1, place),
    )
)


def build_head(name: str, words: int, places: int) -> LanguageModel:
    """A network with the design's weights, ready to run."""
    if words < 2 or places < 2:
        raise BadInput(f"{words} words at {places} places are too few", "take at least 2 of each")
    heads, slots = DESIGNS.find(name).heads, Slots(words, places)
    shape = Shape(
        layers=len(heads),
        heads=1,
        width=slots.width,
        length=places,
        hidden=1,
        dropout=0.0,
        norm="rms",
        norm_epsilon=1e-12,
    )
    network = LanguageModel(shape, [PartChoice(name="learned")], words)
    weights = {
        key: torch.ones_like(old) if "norm" in key else torch.zeros_like(old)
        for key, old in network.state_dict().items()
    }
    put(weights["body.tokens.weight"], 0, 0, torch.eye(words))
    put(weights["body.parts.learned.table.weight"], 0, slots.place, torch.eye(places))
    filled = 2  # slots that hold a one: word and place
    for layer, head in enumerate(heads):
        write_head(weights, f"body.blocks.{layer}.attention", head, slots, filled)
        filled += 1
    # the last norm gives each one of the `filled` slots the same size; the output layer reads the answer
    put(weights["out.weight"], 0, slots.answer, CERTAIN * math.sqrt(filled / slots.width) * torch.eye(words))
    network.load_state_dict(weights, strict=True)
    return network.eval()


def write_head(weights: Mapping[str, Tensor], name: str, head: Head, slots: Slots, filled: int) -> None:
    width = slots.width
    size = math.sqrt(width / filled)  # of a one, behind the norm
    q, k, v = weights[f"{name}.qkv.weight"].split(width)  # each [to from]
    # scores are q k / sqrt(width), and both q and k carry `size`
    back = math.sqrt(width) / size**2
    put(q, slots.place, slots.place, back * head.looks(slots.places).T)
    put(k, slots.place, slots.place, torch.eye(slots.places))
    if head.match is not None:
        put(q, 0, 0, back * head.match(slots.places) * torch.eye(slots.words))
        put(k, 0, 0 if head.reads == "word" else slots.before, torch.eye(slots.words))
    put(v, 0, 0, torch.eye(slots.words) / size)
    put(
        weights[f"{name}.out.weight"],
        slots.before if head.writes == "before" else slots.answer,
        0,
        torch.eye(slots.words),
    )


def put(table: Tensor, row: int, column: int, block: Tensor) -> None:
    """Write a block into a table, in place."""
    table[row : row + block.shape[0], column : column + block.shape[1]] = block
