"""Records -> one mixture, its weights chosen on validation, scored on the test sets: the whole flow."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.judge.outcomes import stack_outcomes
from fairtrial.judge.scores import three_ways
from fairtrial.mix.classify import ClassifyMixture
from fairtrial.mix.language import UNSEEN, LanguageMixture
from fairtrial.mix.more import More, read_more
from fairtrial.record import Record
from fairtrial.revive import Revived, revive
from fairtrial.text.copies import match
from fairtrial.text.shaping import kind_in_use

MIXTURE = "mixture"
KINDS: dict[str, Any] = {"classify": ClassifyMixture, "lm": LanguageMixture}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Counted:
    """Models that count, and the further text that they have read."""

    models: dict[str, Any]
    more: list[More]


@dataclass(frozen=True)
class Opened:
    """A record with the models that are mixed."""

    revived: Revived
    mixture: ClassifyMixture | LanguageMixture
    counted: Counted


def mix_records(
    records: Sequence[Record],
    chosen_on: Sequence[Record] = (),
    more: Sequence[str] = (),
    *,
    tests: bool = True,
    tell: Tell = lambda what: None,
) -> dict[str, Any]:
    """`records`: trials of one recipe, each with a seed of its own. `chosen_on`: records with a validation set that the
    weights are chosen on; without them, `records` themselves. No test set has a part in that choice; with `tests` false
    none is scored at all."""
    refuse_mismatch(records, chosen_on)
    known: dict[str, Counted] = {}  # records that share their training text share what counts it
    held_out = [open_mixture(record, more, known, tell, validated=True) for record in chosen_on or records]
    kind = KINDS[records[0].recipe.task]
    tell("choosing weights on validation")
    weights = kind.choose([each.mixture for each in held_out])
    found: dict[str, Any] = {
        "format": 1,
        "task": records[0].recipe.task,
        "metric": kind.metric,
        "records": [record.folder.name for record in records],
        "chosen_on": [record.folder.name for record in chosen_on or records],
        "weights": dict(zip(held_out[0].mixture.models, weights.tolist(), strict=True)),
        "more": [
            {"name": m.name, "documents": len(m.documents), "dropped": m.dropped} for m in held_out[0].counted.more
        ],
        "validation": validation_figures(held_out, weights),
        "tests": {},
    }
    if tests:
        opened = [open_mixture(record, more, known, tell) for record in records] if chosen_on else held_out
        for name in records[0].trial["test_sets"]:
            tell(f"scoring {name}")
            found["tests"][name] = test_figures(str(name), opened, weights)
    return found


def refuse_mismatch(records: Sequence[Record], chosen_on: Sequence[Record]) -> None:
    first = records[0]
    if first.recipe.task not in KINDS:
        raise BadInput(f"{first.folder} guesses hidden words; only classifiers and language models can be mixed")
    if other := next((each for each in chosen_on if each.recipe.task != first.recipe.task), None):
        raise BadInput(f"{other.folder} has another task than {first.folder}", "choose on records of the same task")
    if other := next((each for each in records if each.trial["recipe"] != first.trial["recipe"]), None):
        raise BadInput(
            f"{other.folder} and {first.folder} are trials of different recipes", "mix each recipe by itself"
        )
    if other := next((each for each in records if each.trial["data"] != first.trial["data"]), None):
        raise BadInput(
            f"{other.folder} and {first.folder} were trained on different data", "mix records of one data set"
        )
    seeds = [record.trial["seed"] for record in records]
    if len(set(seeds)) < len(seeds):
        raise BadInput("two of these records have the same seed", "give each seed once")


def open_mixture(
    record: Record,
    more: Sequence[str] = (),
    known: dict[str, Counted] | None = None,
    tell: Tell = lambda what: None,
    *,
    validated: bool = False,
) -> Opened:
    """`known` keeps models that count from record to record."""
    tell(f"reading {record.folder.name}")
    revived = revive(record)
    splits = revived.splits
    if validated and not splits.validation:
        hint = "give records of this recipe with data.validation=0.1 to choose them on: --chosen-on RECORD"
        raise BadInput(f"{record.folder} has no validation set to choose weights on", hint)
    known = {} if known is None else known
    kind = KINDS[revived.recipe.task]
    read = [revived.tokenizer.to_json(), *(f"{each.label} {each.text}" for each in splits.train)]
    key = hashlib.sha256("\n".join(read).encode()).hexdigest()
    if key not in known:
        tell(f"counting words for {record.folder.name}")
        scored = [each.text for documents in (splits.validation, *splits.tests.values()) for each in documents]
        cut = kind_in_use(revived.recipe.tokens, revived.tokenizer.facts)
        further = [read_more(source, revived.recipe.task, cut, scored) for source in more]
        known[key] = Counted(kind.count(revived, further), further)
    return Opened(revived, kind(revived, known[key].models), known[key])


def alone_and_together(opened: Opened, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of the mixture, and those that make it one of its models. Unseen words are no model by themselves:
    all others are impossible to it."""
    alone = dict(zip(opened.mixture.models, np.eye(len(weights)), strict=True))
    return {MIXTURE: weights, **{name: only for name, only in alone.items() if name != UNSEEN}}


def validation_figures(held_out: Sequence[Opened], weights: np.ndarray) -> dict[str, dict[str, Any]]:
    """Of each record by itself, since every seed has a validation set of its own; and their mean (for perplexity, of
    logs)."""
    found = {}
    metric = held_out[0].mixture.metric
    for model, taken in alone_and_together(held_out[0], weights).items():
        outcomes = [stack_outcomes({0: each.mixture.outcomes("validation", taken)}) for each in held_out]
        values = [three_ways(metric, each, None)["all"]["mean"] for each in outcomes]
        mean = float(np.exp(np.mean(np.log(values)))) if metric == "perplexity" else float(np.mean(values))
        found[model] = {"mean": mean, "by_record": values}
    return found


def test_figures(name: str, opened: Sequence[Opened], weights: np.ndarray) -> dict[str, Any]:
    """Over all records: mean and interval on all, clean and contaminated items."""
    splits = opened[0].revived.splits
    known = [document.text for document in (*splits.train, *splits.validation)]
    status = match(known, [document.text for document in splits.tests[name]]).status
    found = {}
    for model, taken in alone_and_together(opened[0], weights).items():
        outcomes = {each.revived.seed: each.mixture.outcomes(name, taken) for each in opened}
        found[model] = three_ways(opened[0].mixture.metric, stack_outcomes(outcomes), status)
    return found
