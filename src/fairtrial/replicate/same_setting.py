"""Are ours built and trained as published? Parameters counted as a report counts them, and settings field by field."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from fairtrial.look.ledger import Ledger, ledger
from fairtrial.recipe import Recipe
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.facts import Count

KNOWN_BY_RECORDS: dict[str, Callable[[dict[str, Any]], int]] = {
    "vocabulary": lambda trial: int(trial["vocabulary"]),
    "classes": lambda trial: len(trial["labels"]),
    "training sentences": lambda trial: int(trial["documents"]["train"]),
}


def our_setting(name: str, evidence: Evidence) -> Any:
    """A recipe's field by its dotted name, or what the records tell."""
    record = next(iter(evidence.records[evidence.outcomes.baseline].values()))
    if name in KNOWN_BY_RECORDS:
        return KNOWN_BY_RECORDS[name](record.trial)
    return reduce(getattr, name.split("."), record.recipe)


def our_count(count: Count, evidence: Evidence) -> int:
    """Parameters of the study's baseline, counted as the report does."""
    record = next(iter(evidence.records[evidence.outcomes.baseline].values()))
    trial = record.trial
    return WAYS[count.counted](ledger(record.recipe, trial["vocabulary"], len(trial["labels"])), record.recipe)


def of(book: Ledger, component: str) -> int:
    """Matrices of all components whose names begin so."""
    return sum(row.bias_free for row in book.rows if row.component.startswith(component))


WAYS: dict[str, Callable[[Ledger, Recipe], int]] = {
    "everything": lambda book, recipe: book.total,
    "matrices": lambda book, recipe: book.bias_free,
    "token embedding": lambda book, recipe: of(book, "token embedding"),
    "attention matrices of one layer": lambda book, recipe: of(book, "attention") // recipe.shape.layers,
    "feed-forward matrices of one layer": lambda book, recipe: of(book, "feed-forward") // recipe.shape.layers,
    "all but the classifier": lambda book, recipe: (
        book.total - sum(row.count for row in book.rows if row.component == "classifier")
    ),
}
