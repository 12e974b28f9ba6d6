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
from fairtrial.study.beside import read_json
from fairtrial.text.batches import padded

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
    from fairtrial.revive import revive
    from fairtrial.strangers import load_files
    from fairtrial.train.bench import token_set

    load_files(map(Path, strangers))
    revived = revive(record)
    documents = next(iter(revived.splits.tests.values()))[:SENTENCES]
    tokens = token_set(documents, revived.tokenizer, revived.splits.running)
    longest = revived.recipe.shape.length + 1
    if revived.splits.running:  # one long row: pieces of it stand for sentences
        (whole,) = tokens.sequences
        rows = [whole[start : start + longest] for start in range(0, len(whole) - longest, longest)][:SENTENCES]
    else:
        rows = [row[:longest] for row in tokens.sequences if len(row) > 1]
    batch = revived.recipe.training.batch
    return (
        scored(revived.bench.network, rows, batch, revived.tokenizer.pad),
        scored(revived.bench.network, rows, 1, revived.tokenizer.pad),
    )


@torch.no_grad()
def scored(network: torch.nn.Module, rows: list[np.ndarray], size: int, pad: int) -> float:
    """Mean of sentence perplexities, `size` sentences at a time."""
    nats, counts = [], []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        ids, lengths = (torch.from_numpy(each) for each in padded([row[:-1] for row in batch], pad))
        answers = torch.from_numpy(padded([row[1:] for row in batch], pad)[0])
        values = network.nats(ids, lengths, answers)  # type: ignore[operator]
        nats += [float(each.double().sum()) for each in values.split(lengths.tolist())]
        counts += lengths.tolist()
    return sentence_perplexity(np.array(nats), np.array(counts))
