"""Published figures beside ours, measured as the report measured and then as one should; and what records do not store:
sentences scored in batches and one by one, attention entropy by layer."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from fairtrial.analysis import head_statistics, model_input
from fairtrial.apps.reports.evidence import Evidence, t_interval
from fairtrial.apps.reports.published import Figure
from fairtrial.data import Document, padded
from fairtrial.disk import read_json, write_text
from fairtrial.plugins import load_files
from fairtrial.record import Record
from fairtrial.rng import generator_for
from fairtrial.statistics import score
from fairtrial.training import token_set
from fairtrial.trial import Run, load

TRAIN_SENTENCES = 4000  # of the training text that are scored, the same for all
TEST_SENTENCES = 320  # scored in batches and one by one
LAYER_TEXTS = 150  # test sentences whose attention is measured
SAMPLES = ("normal", "weird", "long")  # single sentences that r4 prints
NO_TEST_SET = ("train", *SAMPLES)  # what figures are of, besides test sets
NO_SAMPLE = (
    "a single sentence says little about a model; the report prints it, but it is not ours to ship: with a line"
    " `{}<tab>the sentence` in DIR/r4-samples.tsv it is scored"
)

# (variant, set) -> for each seed: mean of sentence perplexities, mean of sentence losses, in batches as in training
Batched = dict[tuple[str, str], list[tuple[float, float]]]
Ways = dict[str, list[list[float]]]  # variant -> for each seed: in batches, and one by one
Layers = dict[str, list[list[float]]]  # trained or untrained -> seed, layer: attention entropy, 1 where it is uniform
OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Retried:
    """One published figure, retried."""

    figure: Figure
    by_seed: tuple[float, ...]  # measured as the report measured
    honest: dict[str, Any] | None  # mean, low, high
    honest_how: str

    @property
    def is_ratio(self) -> bool:
        """Perplexities are averaged as logarithms."""
        return self.figure.measure.endswith("perplexity")

    @property
    def mean(self) -> float:
        return math.exp(mean(map(math.log, self.by_seed))) if self.is_ratio else mean(self.by_seed)

    def interval(self, further: int = 0) -> tuple[float, float] | None:
        """95%: of the mean over seeds (these test items, new seeds), or of one `further` run."""
        if len(self.by_seed) < 2:
            return None
        values = [math.log(value) if self.is_ratio else value for value in self.by_seed]
        low, high = t_interval(values, math.sqrt(further + 1 / len(values)))
        return (math.exp(low), math.exp(high)) if self.is_ratio else (max(0.0, low), min(100.0, high))

    @property
    def position(self) -> str:
        """Where the published figure lies among ours."""
        if self.figure.other_data:
            return "other training text"
        if min(self.by_seed) <= self.figure.value <= max(self.by_seed):
            return "inside"
        one = self.interval(further=1)
        if one and one[0] <= self.figure.value <= one[1]:
            return "near"
        return "below" if self.figure.value < min(self.by_seed) else "above"


def retry(
    figures: Sequence[Figure], evidences: Mapping[str, Evidence], validated: Mapping[str, Evidence], batched: Batched
) -> tuple[list[Retried], list[tuple[Figure, str]]]:
    """Ours; and the figures that these records cannot be compared with, and why."""
    tried = [retry_one(each, evidences.get(each.study), validated.get(each.study), batched) for each in figures]
    missed = [(figure, why) for figure, why in zip(figures, tried, strict=True) if isinstance(why, str)]
    return [ours for ours in tried if isinstance(ours, Retried)], missed


def retry_one(figure: Figure, evidence: Evidence | None, validated: Evidence | None, batched: Batched) -> Retried | str:
    """Ours for this figure, or why there is none."""
    if evidence is None:
        return "the trials that it needs were not run: see what was left out"
    if not evidence.has(figure.variant):
        return "no trial of this variant is finished"
    name = set_of(figure, evidence)
    if name is None:
        return "these data have no such test set"
    by_seed = measured(figure, evidence, name, batched)
    if not by_seed:
        return NO_SAMPLE.format(figure.set) if figure.set in SAMPLES else "the records store no such score"
    return Retried(figure, by_seed, *honest(figure, validated, name))


def set_of(figure: Figure, evidence: Evidence) -> str | None:
    """The set by our name; any name means a single test set."""
    if figure.set in NO_TEST_SET:
        return figure.set
    known = evidence.test_set(figure.set)
    return evidence.outcomes.sets[0] if known is None and len(evidence.outcomes.sets) == 1 else known


def measured(figure: Figure, evidence: Evidence, name: str, batched: Batched) -> tuple[float, ...]:
    """Ours, one for each seed, measured as the report measured. Empty where a seed lacks it."""
    if figure.measure.startswith("sentence"):
        return by_sentence(figure, evidence, name, batched)
    key, factor = ("accuracy", 100) if figure.measure == "accuracy" else ("window_perplexity", 1)
    scores = [score_at(record, name, figure) for record in evidence.records[figure.variant].values()]
    return tuple(factor * found[key] for found in scores if found) if all(scores) else ()


def score_at(record: Record, name: str, figure: Figure) -> dict[str, Any] | None:
    """The score of a set so far into training, at the end, or at the best moment on test."""
    result: dict[str, Any] = record.result
    if figure.at is not None:
        return scores_of(record).get((figure.at.steps(result["steps_per_epoch"]), name))
    if name == "train":
        return dict(result["train"])
    return (figure.picked_on_test and result["picked_on_test"].get(name)) or dict(result["tests"][name])


@lru_cache(maxsize=256)
def scores_of(record: Record) -> dict[tuple[int, str], dict[str, Any]]:
    """(step, set) -> score, of a finished record, which does not change any more."""
    return {(line["step"], line["split"]): line for line in record.events() if line["event"] == "score"}


def by_sentence(figure: Figure, evidence: Evidence, name: str, batched: Batched) -> tuple[float, ...]:
    loss = figure.measure == "sentence loss"
    if name in NO_TEST_SET or evidence.outcomes.stamp(figure.variant):
        pairs = batched.get((figure.variant, name if name in NO_TEST_SET else "test"), [])
        return tuple(pair[loss] for pair in pairs)
    outcomes = evidence.outcomes.variants[figure.variant][name]
    return tuple(sentence_means(*rows)[loss] for rows in zip(outcomes["nll"], outcomes["tokens"], strict=True))


def sentence_means(nll: np.ndarray, tokens: np.ndarray) -> tuple[float, float]:
    """The means of sentence perplexities and of sentence losses, as in report r4: a few hard sentences weigh most in
    the one, a token of a short sentence weighs more in the other."""
    losses = nll[tokens > 0] / tokens[tokens > 0]
    return float(np.exp(np.minimum(700.0, losses)).mean()), float(losses.mean())


def honest(figure: Figure, validated: Evidence | None, name: str) -> tuple[dict[str, Any] | None, str]:
    """The same idea measured as one should: weights chosen on validation, test items that do not occur in the training
    set, every token once."""
    no_test = name in NO_TEST_SET or figure.at is not None or figure.measure == "sentence loss"
    if no_test or validated is None or not validated.has(figure.variant):
        return None, ""
    outcomes = validated.outcomes.variants[figure.variant][name]
    status = validated.outcomes.status.get(name)
    keep = np.ones(outcomes.items, bool) if status is None or validated.subset == "all" else status == 0
    shown = score(validated.outcomes.metric, outcomes, keep, validated.outcomes.clusters.get(name))
    if figure.measure == "accuracy":
        return shown, f"{int(keep.sum())} {'items' if keep.all() else 'clean items'}"
    return shown, "exact perplexity"


def measure(
    evidence: Evidence, variant: str, cache: Path, on_progress: OnProgress, what: str,
    way: Callable[[Run, Any], Any], *, needed: Iterable[str] = (), most: int | None = None,
) -> list[Any]:  # fmt: skip
    """What `way` finds out about the trained weights of each seed, from a run and what is known of it. It is kept in a
    JSON file, by the weights' checksum, and measured again only if one of the `needed` names is not there."""
    found = []
    for seed, record in list(evidence.records[variant].items())[:most]:
        known, key = read_json(cache), record.result["model_sha256"]
        if key not in known or not set(needed) <= set(known[key]):
            on_progress(f"{what} of {variant}, seed {seed}")
            load_files(map(Path, evidence.plan.study.variant(variant).plugins))
            known[key] = way(load(record), known.get(key, {}))
            write_text(cache, json.dumps(known, indent=1) + "\n")
        found.append(known[key])
    return found


def in_batches(
    evidence: Evidence, variants: Iterable[str], samples: Mapping[str, str], cache: Path, on_progress: OnProgress
) -> Batched:
    """Sentences in batches as in training: of the training text, and of the test set where a model answers differently
    when a sentence comes alone. `samples`: single sentences by name, each a batch of its own."""
    found: Batched = {}
    for variant in variants:
        names = ("train", "test") if evidence.outcomes.stamp(variant) else ("train",)
        sets = dict.fromkeys(names, "") | dict(samples)  # name -> sentence, or nothing
        keys = {name: sample_key(name, text) for name, text in sets.items()}
        way = partial(score_sets, sets)
        for known in measure(evidence, variant, cache, on_progress, "sentences", way, needed=keys.values()):
            for name, key in keys.items():
                perplexity, loss = known[key]
                found.setdefault((variant, name), []).append((perplexity, loss))
    return found


def sample_key(name: str, text: str) -> str:
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}" if text else name


def score_sets(sets: Mapping[str, str], run: Run, before: dict[str, Any]) -> dict[str, Any]:
    """`sentence_means` by set; only of what was not measured before."""
    found = dict(before)
    for name, text in sets.items():
        if sample_key(name, text) in found:
            continue
        if text:
            rows = token_rows(run, (Document(text),))
        elif name == "train":
            rows = sampled(token_rows(run, run.splits.train))
        else:
            rows = token_rows(run, next(iter(run.splits.tests.values())))
        scored = sentence_nll(run.network, rows, run.recipe.training.batch, run.tokenizer.pad)
        found[sample_key(name, text)] = sentence_means(*scored)
    return found


def sampled(rows: list[np.ndarray]) -> list[np.ndarray]:
    if len(rows) <= TRAIN_SENTENCES:
        return rows
    chosen = generator_for(0, "replicate", "sentences").choice(len(rows), TRAIN_SENTENCES, replace=False)
    return [rows[number] for number in sorted(chosen)]


def token_rows(run: Run, documents: Sequence[Document]) -> list[np.ndarray]:
    """Token ids of each sentence, as the model was trained on them. Running text is cut into windows."""
    tokens = token_set(documents, run.tokenizer, run.splits.running)
    longest = run.recipe.shape.length + 1
    if run.splits.running:
        (text,) = tokens.sequences
        return [text[start : start + longest] for start in range(0, len(text) - longest + 1, longest)]
    return [row[:longest] for row in tokens.sequences if len(row) > 1]


@torch.no_grad()
def sentence_nll(
    network: torch.nn.Module, rows: list[np.ndarray], size: int, pad: int
) -> tuple[np.ndarray, np.ndarray]:
    """Negative log-likelihood and targets of every sentence, `size` sentences at a time."""
    nll, counts = [], []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        ids, lengths = (torch.from_numpy(array) for array in padded([row[:-1] for row in batch], pad))
        answers = torch.from_numpy(padded([row[1:] for row in batch], pad)[0])
        values = network.nll(ids, lengths, answers)  # type: ignore[operator]
        nll += [float(value.double().sum()) for value in values.split(lengths.tolist())]
        counts += lengths.tolist()
    return np.array(nll), np.array(counts)


def together_and_alone(evidence: Evidence, cache: Path, on_progress: OnProgress) -> Ways:
    """The same model on the same sentences, in batches as in training and one by one: a sound model gives the same.
    Of the first seed; of every seed where the passport is red, since scores in other batches than those of training
    mean nothing for such a variant."""
    found = {}
    for variant in (name for name, records in evidence.records.items() if records):
        most = None if evidence.outcomes.stamp(variant) else 1
        what = "sentences together and alone"
        found[variant] = measure(evidence, variant, cache, on_progress, what, two_ways, most=most)
    return found


def two_ways(run: Run, before: Any) -> list[float]:
    """Means of sentence perplexities."""
    rows = token_rows(run, next(iter(run.splits.tests.values()))[:TEST_SENTENCES])[:TEST_SENTENCES]
    sizes = (run.recipe.training.batch, 1)
    return [sentence_means(*sentence_nll(run.network, rows, size, run.tokenizer.pad))[0] for size in sizes]


def by_layer(evidence: Evidence, variant: str, cache: Path, on_progress: OnProgress) -> Layers:
    rows = measure(evidence, variant, cache, on_progress, "attention", entropies)
    return {stage: [row[stage] for row in rows] for stage in ("trained", "untrained")}


def entropies(run: Run, before: Any) -> dict[str, list[float]]:
    """By layer, the mean over its heads."""
    shape = run.network.body.shape
    texts = [document.text for test in run.splits.tests.values() for document in test]
    texts = texts[:: max(1, len(texts) // LAYER_TEXTS)][:LAYER_TEXTS]
    inputs = [model_input(run.tokenizer, text, shape.length) for text in texts]
    heads = head_statistics(run.network, run.initial_network(), run.tokenizer, inputs)
    layers = [[head for head in heads if head.layer == layer] for layer in range(shape.layers)]
    return {
        stage: [round(sum(getattr(head, stage).entropy_share for head in row) / len(row), 6) for row in layers]
        for stage in ("trained", "untrained")
    }
