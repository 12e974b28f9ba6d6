"""Contamination: does a test set test what it should? Copies, labels, vocabulary, drift, in one value to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairtrial.recipe import Recipe
from fairtrial.text.audit_copies import audit_copies, audit_groups, audit_repeats
from fairtrial.text.audit_drift import audit_drift, audit_files
from fairtrial.text.audit_labels import audit_conflicts, audit_leaks
from fairtrial.text.audit_vocabulary import audit_vocabulary
from fairtrial.text.copies import CLEAN, EXACT, NEAR, Copies, match
from fairtrial.text.dealing import Dealt, deal
from fairtrial.text.finding import AMBER, PASS, RED, DataFinding

Tell = Callable[[str], None]


def find_copies(train_texts: Sequence[str], test_texts: Sequence[str]) -> np.ndarray:
    """The status of each test text: 0 clean, 1 a copy of a training text, 2 nearly one."""
    return match(train_texts, test_texts).status


def audit_data(recipe: Recipe, seed: int = 0, tell: Tell = lambda what: None) -> dict[str, Any]:
    """All checks on the data of a recipe; docs/contamination.md tells the shape. `tell` hears what is being done."""
    tell("reading")
    dealt = deal(recipe, seed)
    copies = {}
    for name, documents in dealt.splits.tests.items():
        tell(f"looking for copies of {len(dealt.known):,} training documents among {len(documents):,} of {name!r}")
        copies[name] = match([each.text for each in dealt.known], [each.text for each in documents])
    tell("looking at labels, vocabulary and drift")
    findings = [*_all_findings(dealt, copies)]
    verdicts = {finding.verdict for finding in findings}
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "level": (RED if RED in verdicts else AMBER if AMBER in verdicts else PASS).lower(),
        "documents": {"train": len(dealt.splits.train), "validation": len(dealt.splits.validation)},
        "sets": {name: summary(found) for name, found in copies.items()},
        "findings": [finding.to_dict() for finding in findings],
        "notes": list(dealt.corpus.notes),
    }


def summary(copies: Copies) -> dict[str, Any]:
    status = copies.status
    count = {name: int((status == kind).sum()) for name, kind in (("exact", EXACT), ("near", NEAR), ("clean", CLEAN))}
    share = 1 - count["clean"] / len(status)
    return {"items": len(status), "identical": copies.identical, **count, "share": share, "status": status.tolist()}


def _all_findings(dealt: Dealt, copies: dict[str, Copies]) -> Sequence[DataFinding]:
    splits = dealt.splits
    found: list[DataFinding] = []
    for name, documents in splits.tests.items():
        found += audit_copies(name, dealt.known, documents, copies[name])
        found.append(audit_groups(name, dealt.known, documents))
    if dealt.corpus.validation:  # where we carve it, copies never straddle
        validation = dealt.corpus.validation
        between = match([each.text for each in splits.train], [each.text for each in validation])
        found += audit_copies("validation", splits.train, validation, between, most=AMBER)
    found += [audit_repeats(name, documents) for name, documents in (("train", dealt.known), *splits.tests.items())]
    if splits.labels:
        found += audit_conflicts({"train": dealt.known, **splits.tests})
        found += audit_leaks(dealt.known, splits.labels)
    found += audit_vocabulary(dealt)
    found += audit_drift(splits)
    found += audit_files(dealt.recipe.data, dealt.recipe.task)
    return found
