"""The honest twin of a report's study: a part of the training text is held back, the weights are those that do best on
it, and the test sets are scored once. The reports' recipes hold nothing back, so that nothing could be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairtrial.judge.words import figures as in_words
from fairtrial.replicate.comparing import DECIDED_BY_COMPARISON, compare_two
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.facts import figures
from fairtrial.replicate.library import FINE_TUNING, Claim, claims
from fairtrial.study.design import Settings, Study

CHOSEN = "-chosen"  # behind the name of the study whose twin it is
HOLD_BACK: Settings = {"data.validation": 0.1, "training.keep": "best", "scoring.watch_test": False}
# the course's language models train for 500 steps, which are two epochs and a half
EVERY_FEW_STEPS: Settings = {"training.select_every": "50 steps"}


def with_twins(studies: Mapping[str, Study]) -> dict[str, Study]:
    """Each study and, where it holds nothing back, its twin."""
    found = dict(studies)
    for key, study in studies.items():
        if not key.startswith(FINE_TUNING):  # these data bring a validation set
            found[key + CHOSEN] = twin(key, study)
    return found


def twin(key: str, study: Study) -> Study:
    """Without the reports' faulty code: a cheat has no honest figure."""
    flawed = {claim.as_coded for claim in claims()}
    asked = {name for claim in claims() for each, name in claim.needs if each == key}
    asked |= {figure.variant for figure in figures() if figure.study == key} | {study.baseline}
    return replace(
        study,
        name=key + CHOSEN,
        settings={**study.settings, **HOLD_BACK, **(EVERY_FEW_STEPS if "lm" in study.tasks else {})},
        variants=tuple(each for each in study.variants if each.name in asked - flawed),
    )


def apart(evidences: Mapping[str, Evidence]) -> tuple[dict[str, Evidence], dict[str, Evidence]]:
    """The reports' own studies, and their twins by the same names."""
    own = {key: each for key, each in evidences.items() if not key.endswith(CHOSEN)}
    return own, {key.removesuffix(CHOSEN): each for key, each in evidences.items() if key.endswith(CHOSEN)}


def chosen_words(claim: Claim, twins: Mapping[str, Evidence]) -> str:
    """What the twin says of a comparison, beside the verdict: it is one more look, and is not corrected for."""
    evidence = twins.get(claim.study)
    if claim.rule not in DECIDED_BY_COMPARISON or not (evidence and evidence.has(claim.variant, claim.against)):
        return ""
    found = compare_two(evidence, claim.variant, claim.against, evidence.basis()["basis"])
    return f"With a tenth of the training text held back and the weights chosen on it: {in_words(found)}."
