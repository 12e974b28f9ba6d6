"""Sentences scored in batches as in training: of the training text, and of the test set where a model answers otherwise
when a sentence comes alone.

Published figures beside ours, measured as the report measured, and then beside the honest figure.

The same model on the same sentences, in batches as it was trained and one by one: honest answers are the same.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit

from fairtrial.apps.reports.evidence import Evidence
from fairtrial.apps.reports.published import Figure
from fairtrial.data import Document, padded
from fairtrial.disk import read_json, write_text
from fairtrial.plugins import load_files
from fairtrial.recipe import Duration
from fairtrial.record import Record
from fairtrial.rng import generator_for
from fairtrial.statistics import score
from fairtrial.training import token_set
from fairtrial.trial import Run, load


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
                before |= means(record, evidence.plan.study.variant(variant).plugins, new)
                write_text(kept, json.dumps(known, indent=1) + "\n")
            for name, text in sets.items():
                one, other = before[key(name, text)]
                found.setdefault((variant, name), []).append((one, other))
    return found


def key(name: str, text: str) -> str:
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}" if text else name


def means(record: Record, plugins: tuple[str, ...], sets: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """By set: the mean of sentence perplexities, and of sentence losses."""
    load_files(map(Path, plugins))
    run = load(record)
    batch, pad = run.recipe.training.batch, run.tokenizer.pad
    found = {}
    for name, text in sets.items():
        if text:
            rows = rows_of(run, (Document(text),))
        elif name == "train":
            rows = drawn(rows_of(run, run.splits.train))
        else:
            rows = rows_of(run, next(iter(run.splits.tests.values())))
        scored = nats_of(run.task.network, rows, batch, pad)
        found[key(name, text)] = (sentence_perplexity(*scored), sentence_loss(*scored))
    return found


def drawn(rows: list[np.ndarray]) -> list[np.ndarray]:
    if len(rows) <= OF_TRAIN:
        return rows
    chosen = generator_for(0, "replicate", "sentences").choice(len(rows), OF_TRAIN, replace=False)
    return [rows[place] for place in sorted(chosen)]


def rows_of(run: Run, documents: Sequence[Document]) -> list[np.ndarray]:
    """Token ids of each sentence, as the model was trained on them. Pieces of running text stand for sentences."""
    tokens = token_set(documents, run.tokenizer, run.splits.running)
    longest = run.recipe.shape.length + 1
    if run.splits.running:
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
        values = network.nll(ids, lengths, answers)  # type: ignore[operator]
        nats += [float(each.double().sum()) for each in values.split(lengths.tolist())]
        counts += lengths.tolist()
    return np.array(nats), np.array(counts)


OF_TRAIN = 4000  # sentences of the training text that are scored, the same for all

SAMPLES = ("normal", "weird", "long")  # r4's single sentences, each scored by itself
NO_TEST_SET = ("train", *SAMPLES)  # what figures are of, beside test sets
NO_SAMPLE = (
    "a single sentence says little of a model; the report prints it, but it is not ours to ship: with a line"
    " `{}<tab>the sentence` in DIR/r4-samples.tsv it is scored"
)

# (variant, set) -> of each seed: mean of sentence perplexities, mean of sentence losses, in batches as in training
Batched = dict[tuple[str, str], list[tuple[float, float]]]


@dataclass(frozen=True)
class Retried:
    """One published figure, retried."""

    figure: Figure
    by_seed: tuple[float, ...]  # in the report's own way of measuring
    honest: dict[str, Any] | None  # mean, low, high
    honest_how: str

    @property
    def mean(self) -> float:
        """Of logarithms, where the figure is a perplexity."""
        return math.exp(mean(map(math.log, self.by_seed))) if self.ratio else mean(self.by_seed)

    @property
    def ratio(self) -> bool:
        return self.figure.measure.endswith("perplexity")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean over seeds (95 %): these test items, new seeds."""
        return self._spread(math.sqrt(1 / len(self.by_seed)))

    @property
    def one_run(self) -> tuple[float, float] | None:
        """Where a single further run would fall (95 %)."""
        return self._spread(math.sqrt(1 + 1 / len(self.by_seed)))

    def _spread(self, factor: float) -> tuple[float, float] | None:
        if len(self.by_seed) < 2:
            return None
        values = [math.log(each) if self.ratio else each for each in self.by_seed]
        half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) * factor
        low, high = mean(values) - half, mean(values) + half
        return (math.exp(low), math.exp(high)) if self.ratio else (max(0.0, low), min(100.0, high))

    @property
    def place(self) -> str:
        """Where the published figure lies among ours."""
        if self.figure.other_data:
            return "other training text"
        if min(self.by_seed) <= self.figure.value <= max(self.by_seed):
            return "inside"
        one = self.one_run
        if one and one[0] <= self.figure.value <= one[1]:
            return "near"
        return "below" if self.figure.value < min(self.by_seed) else "above"


@dataclass(frozen=True)
class Missed:
    """A published figure that these records cannot be compared with."""

    figure: Figure
    why: str


def retry(
    figures: Sequence[Figure], evidences: Mapping[str, Evidence], twins: Mapping[str, Evidence], batched: Batched
) -> tuple[list[Retried], list[Missed]]:
    found, missed = [], []
    for figure in figures:
        each = retry_one(figure, evidences.get(figure.study), twins.get(figure.study), batched)
        if isinstance(each, Retried):
            found.append(each)
        else:
            missed.append(Missed(figure, each))
    return found, missed


def retry_one(figure: Figure, evidence: Evidence | None, twin: Evidence | None, batched: Batched) -> Retried | str:
    """Ours beside it, or why not."""
    if evidence is None:
        return "the trials that it needs were not run: see what was left out"
    if not evidence.has(figure.variant):
        return "no trial of this variant is finished"
    place = place_of(figure, evidence)
    if place is None:
        return "these data have no such test set"
    by_seed = measured(figure, evidence, place, batched)
    if not by_seed:
        return NO_SAMPLE.format(figure.set) if figure.set in SAMPLES else "the records keep no such score"
    return Retried(figure, by_seed, *honest(figure, twin, place))


def place_of(figure: Figure, evidence: Evidence) -> str | None:
    """The set by our name; a single test set is meant by any name."""
    if figure.set in NO_TEST_SET:
        return figure.set
    known = evidence.place(figure.set)
    return evidence.outcomes.sets[0] if known is None and len(evidence.outcomes.sets) == 1 else known


def measured(figure: Figure, evidence: Evidence, place: str, batched: Batched) -> tuple[float, ...]:
    """Ours, of every seed, in the report's own way. Nothing, where a seed does not have it."""
    if figure.measure.startswith("sentence"):
        return by_sentence(figure, evidence, place, batched)
    key, factor = ("accuracy", 100) if figure.measure == "accuracy" else ("window_perplexity", 1)
    if figure.at is not None:
        looks = [look(record, place, figure.at) for record in evidence.records[figure.variant].values()]
        return tuple(factor * each[key] for each in looks if each is not None) if None not in looks else ()
    results = evidence.results(figure.variant)
    found = [
        result["train"] if place == "train" else scored(result, place, figure.picked_on_test) for result in results
    ]
    return tuple(factor * each[key] for each in found)


def look(record: Record, place: str, at: Duration) -> dict[str, Any] | None:
    """The score of a set so far into training."""
    return looks_of(record).get((at.steps(record.result["steps_per_epoch"]), place))


@lru_cache(maxsize=256)
def looks_of(record: Record) -> dict[tuple[int, str], dict[str, Any]]:
    """Of a finished record, which does not change any more."""
    return {(line["step"], line["split"]): line for line in record.events() if line["event"] == "score"}


def by_sentence(figure: Figure, evidence: Evidence, place: str, batched: Batched) -> tuple[float, ...]:
    loss = figure.measure == "sentence loss"
    if place in NO_TEST_SET or evidence.outcomes.stamp(figure.variant):
        pairs = batched.get((figure.variant, place if place in NO_TEST_SET else "test"), [])
        return tuple(pair[loss] for pair in pairs)
    outcomes = evidence.outcomes.variants[figure.variant][place]
    way = sentence_loss if loss else sentence_perplexity
    return tuple(way(*rows) for rows in zip(outcomes["nll"], outcomes["tokens"], strict=True))


def scored(result: dict[str, Any], place: str, picked: bool) -> dict[str, Any]:
    found: dict[str, Any] = (picked and result["picked_on_test"].get(place)) or result["tests"][place]
    return found


def sentence_perplexity(nats: np.ndarray, tokens: np.ndarray) -> float:
    """The mean of the perplexities of sentences, as report r4 has it: a few hard ones weigh most."""
    counted = tokens > 0
    return float(np.exp(np.minimum(700.0, nats[counted] / tokens[counted])).mean())


def sentence_loss(nats: np.ndarray, tokens: np.ndarray) -> float:
    """The mean of the losses of sentences, as report r4 has it: a token of a short sentence weighs more."""
    counted = tokens > 0
    return float((nats[counted] / tokens[counted]).mean())


def honest(figure: Figure, twin: Evidence | None, place: str) -> tuple[dict[str, Any] | None, str]:
    """The same idea measured as one should: weights chosen on validation, items that do not stand in train, every token
    once."""
    if place in NO_TEST_SET or figure.at is not None or figure.measure == "sentence loss":
        return None, ""
    if twin is None or not twin.has(figure.variant):
        return None, ""
    outcomes = twin.outcomes.variants[figure.variant][place]
    status = twin.outcomes.status.get(place)
    every = np.ones(outcomes.items, bool)
    keep = every if status is None or twin.basis()["basis"] == "all" else status == 0
    shown = score(twin.outcomes.metric, outcomes, keep, twin.outcomes.clusters.get(place))
    if figure.measure == "accuracy":
        return shown, f"{int(keep.sum())} clean items" if not keep.all() else f"{int(keep.sum())} items"
    return shown, "exact perplexity"


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
                known[mark] = two_ways(record, evidence.plan.study.variant(variant).plugins)
                write_text(kept, json.dumps(known, indent=1) + "\n")
            found.setdefault(variant, []).append((known[mark][0], known[mark][1]))
    return found


def two_ways(record: Record, plugins: tuple[str, ...]) -> tuple[float, float]:
    load_files(map(Path, plugins))
    run = load(record)
    documents = next(iter(run.splits.tests.values()))[:SENTENCES]
    rows = rows_of(run, documents)[:SENTENCES]
    batch = run.recipe.training.batch
    return (
        scored_alone(run.task.network, rows, batch, run.tokenizer.pad),
        scored_alone(run.task.network, rows, 1, run.tokenizer.pad),
    )


def scored_alone(network: torch.nn.Module, rows: list[np.ndarray], size: int, pad: int) -> float:
    """Mean of sentence perplexities, `size` sentences at a time."""
    return sentence_perplexity(*nats_of(network, rows, size, pad))
