"""Sentences scored in batches as in training: of the training text, and of the test set where a model answers otherwise
when a sentence comes alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def in_batches(
    evidence: Evidence, variants: Iterable[str], samples: Mapping[str, str], kept: Path, tell: Callable[[str], None]
) -> Batched:
    """`samples`: single sentences by name, each a batch of its own. What was measured before is kept in `kept`, by the
    checksum of the weights, and for a sample by the sentence."""
    known = read_json(kept)
    found: Batched = {}
    for variant in variants:
        whole = ("train", "test") if evidence.outcomes.stamp(variant) else ("train",)
        sets = dict.fromkeys(whole, "") | dict(samples)  # name -> sentence, or nothing
        for seed, record in evidence.records[variant].items():
            mark = record.result["model_sha256"]
            before = known.setdefault(mark, {})
            if new := {name: text for name, text in sets.items() if key(name, text) not in before}:
                tell(f"sentences of {variant}, seed {seed}")
                before |= means(record, evidence.plan.study.variant(variant).strangers, new)
                write_text(kept, json.dumps(known, indent=1) + "\n")
            for name, text in sets.items():
                one, other = before[key(name, text)]
                found.setdefault((variant, name), []).append((one, other))
    return found


def key(name: str, text: str) -> str:
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}" if text else name


def means(record: Record, strangers: tuple[str, ...], sets: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """By set: the mean of sentence perplexities, and of sentence losses."""
    load_files(map(Path, strangers))
    revived = revive(record)
    batch, pad = revived.recipe.training.batch, revived.tokenizer.pad
    found = {}
    for name, text in sets.items():
        if text:
            rows = rows_of(revived, (Document(text),))
        elif name == "train":
            rows = drawn(rows_of(revived, revived.splits.train))
        else:
            rows = rows_of(revived, next(iter(revived.splits.tests.values())))
        scored = nats_of(revived.bench.network, rows, batch, pad)
        found[key(name, text)] = (sentence_perplexity(*scored), sentence_loss(*scored))
    return found


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
        return [whole[start : start + longest] for start in range(0, len(whole) - longest + 1, longest)]
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
