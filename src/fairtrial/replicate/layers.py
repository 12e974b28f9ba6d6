"""How concentrated attention is in each layer: entropy as a share of an even spread's, trained and untrained."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairtrial.disk import write_text
from fairtrial.record import Record
from fairtrial.replicate.evidence import Evidence
from fairtrial.study.beside import read_json

TEXTS = 150  # test sentences


@dataclass(frozen=True)
class Layers:
    trained: list[list[float]]  # seed, layer
    untrained: list[list[float]]

    @property
    def climb(self) -> list[float]:
        """Last layer minus first, of each seed: below zero, attention becomes more concentrated."""
        return [row[-1] - row[0] for row in self.trained]


def by_layer(evidence: Evidence, variant: str, kept: Path, tell: Callable[[str], None]) -> Layers:
    """What was measured before is kept in `kept`, by the checksum of the weights."""
    known = read_json(kept)
    for seed, record in evidence.records[variant].items():
        mark = record.result["model_sha256"]
        if mark not in known:
            tell(f"attention of {variant}, seed {seed}")
            known[mark] = entropies(record)
            write_text(kept, json.dumps(known, indent=1) + "\n")
    rows = [known[record.result["model_sha256"]] for record in evidence.records[variant].values()]
    return Layers([row["trained"] for row in rows], [row["untrained"] for row in rows])


def entropies(record: Record) -> dict[str, list[float]]:
    from fairtrial.look.maps import read_text
    from fairtrial.look.portraits import paint
    from fairtrial.look.twin import untrained_twin
    from fairtrial.revive import revive

    revived = revive(record)
    network = revived.bench.network
    shape = network.body.shape
    documents = [each for test in revived.splits.tests.values() for each in test]
    texts = [each.text for each in documents[:: max(1, len(documents) // TEXTS)]][:TEXTS]
    readings = [read_text(revived.tokenizer, text, shape.length) for text in texts]
    portraits = paint(network, untrained_twin(revived), revived.tokenizer, readings)

    def means(stage: str) -> list[float]:
        heads = [(each.layer, getattr(each, stage).entropy_share) for each in portraits]
        rows = [[share for layer, share in heads if layer == number] for number in range(shape.layers)]
        return [round(sum(row) / len(row), 6) for row in rows]

    return {"trained": means("trained"), "untrained": means("untrained")}
