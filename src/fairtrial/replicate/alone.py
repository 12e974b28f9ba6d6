"""The same model on the same sentences, in batches as it was trained and one by one: honest answers are the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from fairtrial.disk import write_text
from fairtrial.record import Record
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.own_measure import sentence_perplexity
from fairtrial.replicate.sentences import nats_of, rows_of
from fairtrial.revive import revive
from fairtrial.strangers import load_files
from fairtrial.study.beside import read_json

SENTENCES = 320

Ways = dict[str, list[tuple[float, float]]]  # variant -> of each seed: in batches, and alone


def together_and_alone(evidence: Evidence, kept: Path, tell: Callable[[str], None]) -> Ways:
    """Of the first seed; of every seed where the passport is red, since a score in other batches than those of training
    is no measure of such a variant at all."""
    known = read_json(kept)
    found: Ways = {}
    for variant, records in evidence.records.items():
        chosen = list(records.items()) if evidence.outcomes.stamp(variant) else list(records.items())[:1]
        for seed, record in chosen:
            mark = record.result["model_sha256"]
            if mark not in known:
                tell(f"sentences of {variant}, seed {seed}, together and alone")
                known[mark] = two_ways(record, evidence.plan.study.variant(variant).strangers)
                write_text(kept, json.dumps(known, indent=1) + "\n")
            found.setdefault(variant, []).append((known[mark][0], known[mark][1]))
    return found


def two_ways(record: Record, strangers: tuple[str, ...]) -> tuple[float, float]:
    load_files(map(Path, strangers))
    revived = revive(record)
    documents = next(iter(revived.splits.tests.values()))[:SENTENCES]
    rows = rows_of(revived, documents)[:SENTENCES]
    batch = revived.recipe.training.batch
    return (
        scored(revived.bench.network, rows, batch, revived.tokenizer.pad),
        scored(revived.bench.network, rows, 1, revived.tokenizer.pad),
    )


def scored(network: torch.nn.Module, rows: list[np.ndarray], size: int, pad: int) -> float:
    """Mean of sentence perplexities, `size` sentences at a time."""
    return sentence_perplexity(*nats_of(network, rows, size, pad))
