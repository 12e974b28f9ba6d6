"""The replication: the studies that the reports need, one after the other, then the answers and the page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors, write_text
from fairtrial.engines.job import Engine, Stop
from fairtrial.errors import Interrupted
from fairtrial.replicate.chosen import apart
from fairtrial.replicate.comparing import decide_all
from fairtrial.replicate.evidence import Evidence, collect
from fairtrial.replicate.facts import Figure, figures
from fairtrial.replicate.layers import Layers, by_layer
from fairtrial.replicate.library import chosen_reports, claims
from fairtrial.replicate.nearest import Likeness, likeness
from fairtrial.replicate.own_measure import Batched, Missed, Retried, retry
from fairtrial.replicate.rules import Answer, Found, answer
from fairtrial.replicate.settings import Wanted
from fairtrial.study.beside import read_json
from fairtrial.study.calibrate import calibrate
from fairtrial.study.design import Study
from fairtrial.study.events import Listen
from fairtrial.study.file import write_study
from fairtrial.study.plan import Plan, make_plan, missing, write_plan
from fairtrial.study.run import Wishes, describe, refuse_strange_folder, run_study
from fairtrial.study.search import remembered

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Replication:
    """Everything that the page shows."""

    reports: tuple[str, ...]
    evidences: dict[str, Evidence]  # of the reports' own studies
    twins: dict[str, Evidence]  # of the same with weights chosen on validation, by the same names
    answers: list[Answer]
    retried: list[Retried]
    missed: list[Missed]  # published figures that these records cannot be compared with
    layers: Layers | None
    likeness: Likeness | None
    alone: dict[str, list[tuple[float, float]]]  # variant -> of each seed: together, alone
    left_out: tuple[str, ...]
    seconds: float  # that all runs of the command took together
    width: int
    quick: bool
    command: str

    @property
    def everything(self) -> list[Evidence]:
        return [*self.evidences.values(), *self.twins.values()]


def estimate(wanted: Wanted, out: Path, engine: Engine, listen: Listen, stop: Stop, *, write: bool) -> dict[str, Any]:
    """The plan of every study by its name. With `write` the measured pace stays in its folder, to be measured once."""
    plans = {}
    for key, study in wanted.studies.items():
        folder = out / key
        refuse_strange_folder(folder)
        plan = planned(study, folder)
        missing(plan, plan.trials())
        plan = calibrate(plan, engine, listen, stop)
        if stop():
            raise Interrupted("stopped before any trial")
        plans[key] = describe(plan, engine, Wishes(), "")
        if write:
            with disk_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / "study.toml", write_study(study))
            write_plan(plan, plans[key])
    return plans


def run_all(wanted: Wanted, out: Path, engine: Engine, wishes: Wishes, listen: Listen, stop: Stop) -> float:
    """Run what is missing; seconds that all runs so far took."""
    path = out / "replication.json"
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for key, study in wanted.studies.items():
        plan = planned(study, out / key)
        left, _ = missing(plan, plan.trials())
        began = time.monotonic()
        try:
            run_study(study, out / key, engine, wishes, listen, stop)
        finally:
            kept = read_json(path).get("seconds", {})
            took = time.monotonic() - began if left else 0.0  # reading finished trials again is no part of them
            kept[key] = round(kept.get(key, 0.0) + took, 1)
            write_text(path, json.dumps({"format": 1, "seconds": kept}, indent=1) + "\n")
    return float(sum(seconds for key, seconds in read_json(path)["seconds"].items() if key in wanted.studies))


def gather_all(studies: Mapping[str, Study], out: Path) -> dict[str, Evidence]:
    return {key: collect(planned(study, out / key)) for key, study in studies.items()}


def planned(study: Study, folder: Path) -> Plan:
    """The plan, with what a search chose in this folder before."""
    plan = make_plan(study, folder)
    return plan.with_recipes(remembered(plan))


def find_answers(
    names: list[str], wanted: Wanted, out: Path, tell: Tell, *, seconds: float, width: int, quick: bool, command: str
) -> Replication:
    """Out of the records, without training anything."""
    reports = chosen_reports(names)
    evidences, twins = apart(gather_all(wanted.studies, out))
    asked = [claim for claim in claims() if claim.report in reports]
    published = [figure for figure in figures() if figure.report in reports]
    layers = like = None
    alone: dict[str, list[tuple[float, float]]] = {}
    for claim in asked:
        evidence = evidences.get(claim.study)
        if evidence is None or not evidence.has(claim.variant):
            continue
        if claim.rule == "concentrates":
            layers = by_layer(evidence, claim.variant, out / "layers.json", tell)
        if claim.rule == "nearest":
            like = likeness(evidence, claim.variant, claim.set)
        if claim.id == "r4-reweight":
            from fairtrial.replicate.alone import together_and_alone

            alone = together_and_alone(evidence, out / "alone.json", tell)
    decided = decide_all(asked, evidences)
    family = sum(each.p_adjusted is not None for each in decided.values())
    found = Found(evidences, decided, family, layers, like, twins)
    answers = [answer(claim, found, published) for claim in asked]
    batched = score_sentences(published, evidences, wanted.samples, out / "sentences.json", tell)
    retried, missed = retry(published, evidences, twins, batched)
    return Replication(
        reports, evidences, twins, answers, retried, missed, layers, like, alone,
        wanted.left_out, seconds, width, quick, command,
    )  # fmt: skip


def score_sentences(
    published: list[Figure], evidences: Mapping[str, Evidence], samples: Mapping[str, str], kept: Path, tell: Tell
) -> Batched:
    """For figures of sentences that the records do not keep."""
    needed: dict[str, dict[str, None]] = {}
    for figure in published:
        evidence = evidences.get(figure.study)
        if figure.measure.startswith("sentence") and evidence is not None and evidence.has(figure.variant):
            needed.setdefault(figure.study, {})[figure.variant] = None
    if not needed:
        return {}
    from fairtrial.replicate.sentences import in_batches

    found: Batched = {}
    for study, variants in needed.items():
        found |= in_batches(evidences[study], variants, samples, kept, tell)
    return found
