"""All that `fairtrial look` finds, as plain numbers: maps of a few texts, portraits over all, each head's worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairtrial.look.ablation import Effect, switch_off
from fairtrial.look.maps import Maps, Network, maps_of, read_text
from fairtrial.look.portraits import Portrait, paint
from fairtrial.text.tokenizer import Tokenizer

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
