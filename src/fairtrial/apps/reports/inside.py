"""Whose speeches is the training text like? Perplexities, of counting too, and rows whose speaker is known.

A low perplexity alone does not answer it: a text may be easy to predict for anyone. So three things are asked: is the
set the easiest for the trained model, is it for models that only count words, and how many training rows are known to
be that speaker's.

How concentrated attention is in each layer: entropy as a share of an even spread's, trained and untrained.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scipy.special import stdtrit

from fairtrial.apps.reports.evidence import Evidence
from fairtrial.data import Document, find_format, read, text_key
from fairtrial.disk import read_json, write_text
from fairtrial.record import Record
from fairtrial.statistics import SetOutcomes


@dataclass(frozen=True)
class Likeness:
    perplexity: dict[str, dict[str, float]]  # model -> test set -> perplexity
    lead: dict[
        str, dict[str, tuple[float, float]]
    ]  # model -> other set -> interval of nats per token above the claimed set
    rows: dict[str, int]  # label -> rows of the training text that are known to be that speaker's
    claimed: str

    @property
    def easiest(self) -> dict[str, bool]:
        """Whether the claimed set is clearly easier than every other, by model."""
        return {model: all(low > 0 for low, _ in others.values()) for model, others in self.lead.items()}

    def verdict(self, label: str) -> str:
        """Perplexity must say it, with and without a transformer; where speakers of rows are known, they must, too."""
        most = max(self.rows.values(), default=0)
        by_rows = not most or self.rows.get(label, 0) == most
        if all(self.easiest.values()) and by_rows:
            return "holds"
        if any(all(high < 0 for _, high in others.values()) for others in self.lead.values()) or not by_rows:
            return "does not hold"
        return "cannot be told"


def likeness(evidence: Evidence, variant: str, claimed: str) -> Likeness | None:
    place = evidence.place(claimed)
    if place is None:
        return None
    models = {variant: evidence.outcomes.variants[variant]}
    models |= {name: sets for name, sets in evidence.outcomes.baselines.items() if name != "bigram"}
    perplexity = {
        name: {each: math.exp(min(700.0, level(outcomes))) for each, outcomes in sets.items()}
        for name, sets in models.items()
    }
    lead = {
        name: {other: apart(sets[other], sets[place]) for other in sets if other != place}
        for name, sets in models.items()
    }
    return Likeness(perplexity, lead, known_rows(evidence), place)


def level(outcomes: SetOutcomes) -> float:
    return float(outcomes["nll"].sum() / outcomes["tokens"].sum())


def apart(one: SetOutcomes, other: SetOutcomes) -> tuple[float, float]:
    """95 % interval of the difference in nats per token. Two sets are different texts, so nothing is paired (Welch)."""
    ones, others = spread(one), spread(other)
    variance = ones[0] + others[0]
    df = variance**2 / (ones[0] ** 2 / ones[1] + others[0] ** 2 / others[1])
    half = float(stdtrit(df, 0.975)) * math.sqrt(variance)
    difference = level(one) - level(other)
    return difference - half, difference + half


def spread(outcomes: SetOutcomes) -> tuple[float, int]:
    """Variance of a ratio over documents, and its degrees of freedom; seeds are averaged first."""
    nats, tokens = outcomes["nll"].mean(0), outcomes["tokens"].mean(0)
    counted = tokens > 0
    nats, tokens = nats[counted], tokens[counted]
    residual = (nats - nats.sum() / tokens.sum() * tokens) / tokens.mean()
    return float(residual.var(ddof=1) / len(residual)), len(residual) - 1


def known_rows(evidence: Evidence) -> dict[str, int]:
    """Rows of the language model's training text that stand in the classifier's files, by their label there. Only the
    course's folder has both."""
    data = evidence.plan.recipes[evidence.task][evidence.outcomes.baseline].data
    if find_format(data) != "course":
        return {}
    labelled = read(data, "classify")
    rows: list[Document] = [*labelled.train, *(each for test in labelled.tests.values() for each in test)]
    speakers = {text_key(row.text): row.label for row in rows}
    found = Counter(speakers[text_key(row.text)] for row in read(data, "lm").train if text_key(row.text) in speakers)
    return {str(label): found[label] for label in sorted(set(speakers.values()))}


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
    from fairtrial.analysis import head_statistics, model_input
    from fairtrial.trial import load

    run = load(record)
    network = run.task.network
    shape = network.body.shape
    documents = [each for test in run.splits.tests.values() for each in test]
    texts = [each.text for each in documents[:: max(1, len(documents) // TEXTS)]][:TEXTS]
    inputs = [model_input(run.tokenizer, text, shape.length) for text in texts]
    summaries = head_statistics(network, run.initial_network(), run.tokenizer, inputs)

    def means(stage: str) -> list[float]:
        heads = [(each.layer, getattr(each, stage).entropy_share) for each in summaries]
        rows = [[share for layer, share in heads if layer == number] for number in range(shape.layers)]
        return [round(sum(row) / len(row), 6) for row in rows]

    return {"trained": means("trained"), "untrained": means("untrained")}
