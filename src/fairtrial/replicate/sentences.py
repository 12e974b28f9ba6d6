"""Sentences scored in batches as in training: of the training text, and of the test set where a model answers otherwise
when a sentence comes alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from fairtrial.disk import write_text
from fairtrial.record import Record
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.own_measure import OF_TRAIN, Batched, sentence_loss, sentence_perplexity
from fairtrial.revive import Revived, revive
from fairtrial.strangers import load_files
from fairtrial.streams import dice
from fairtrial.study.beside import read_json
from fairtrial.text.batches import padded
from fairtrial.text.corpus import Document
from fairtrial.train.bench import token_set


def in_batches(evidence: Evidence, variants: Iterable[str], kept: Path, tell: Callable[[str], None]) -> Batched:
    """What was measured before is kept in `kept`, by the checksum of the weights."""
    known = read_json(kept)
    found: Batched = {}
    for variant in variants:
        sets = ("train", "test") if evidence.outcomes.stamp(variant) else ("train",)
        for seed, record in evidence.records[variant].items():
            mark = record.result["model_sha256"]
            if not known.get(mark, {}).keys() >= set(sets):
                tell(f"training sentences of {variant}, seed {seed}")
                known[mark] = means(record, evidence.plan.study.variant(variant).strangers, sets)
                write_text(kept, json.dumps(known, indent=1) + "\n")
            for name in sets:
                found.setdefault((variant, name), []).append((known[mark][name][0], known[mark][name][1]))
    return found


def means(record: Record, strangers: tuple[str, ...], sets: Sequence[str]) -> dict[str, tuple[float, float]]:
    """By set: the mean of sentence perplexities, and of sentence losses."""
    load_files(map(Path, strangers))
    revived = revive(record)
    rows = {"train": drawn(rows_of(revived, revived.splits.train))}
    if "test" in sets:
        rows["test"] = rows_of(revived, next(iter(revived.splits.tests.values())))
    batch, pad = revived.recipe.training.batch, revived.tokenizer.pad
    scored = {name: nats_of(revived.bench.network, each, batch, pad) for name, each in rows.items()}
    return {name: (sentence_perplexity(*each), sentence_loss(*each)) for name, each in scored.items()}


def drawn(rows: list[np.ndarray]) -> list[np.ndarray]:
    if len(rows) <= OF_TRAIN:
        return rows
    chosen = dice(0, "replicate", "sentences").choice(len(rows), OF_TRAIN, replace=False)
    return [rows[place] for place in sorted(chosen)]


def rows_of(revived: Revived, documents: Sequence[Document]) -> list[np.ndarray]:
    """Token ids of each sentence, as the model was trained on them. Pieces of running text stand for sentences."""
    tokens = token_set(documents, revived.tokenizer, revived.splits.running)
    longest = revived.recipe.shape.length + 1
    if revived.splits.running:
        (whole,) = tokens.sequences
        return [whole[start : start + longest] for start in range(0, len(whole) - longest, longest)]
    return [row[:longest] for row in tokens.sequences if len(row) > 1]


@torch.no_grad()
def nats_of(network: torch.nn.Module, rows: list[np.ndarray], size: int, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Nats and targets of every sentence, `size` sentences at a time."""
    nats, counts = [], []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        ids, lengths = (torch.from_numpy(each) for each in padded([row[:-1] for row in batch], pad))
        answers = torch.from_numpy(padded([row[1:] for row in batch], pad)[0])
        values = network.nats(ids, lengths, answers)  # type: ignore[operator]
        nats += [float(each.double().sum()) for each in values.split(lengths.tolist())]
        counts += lengths.tolist()
    return np.array(nats), np.array(counts)
