"""The causal-LM and sequence-classification classes of the installed transformers, each built small and asked a few
checks in a process of its own, with a time limit. Rows are kept on disk: the same command continues where it
stopped."""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import fairtrial
from fairtrial.disk import disk_errors
from fairtrial.engines import Engine, Job, JobResult, Stop, open_engine
from fairtrial.errors import BadInput, Interrupted
from fairtrial.finding import FAIL, NOT_ASKED, Finding
from fairtrial.registry import did_you_mean
from fairtrial.stored import ZOO_ROW, read_document, write_document

HERE = Path(__file__).parent
LIBRARIES = ["transformers"]
MAPPINGS = {"lm": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "classify": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES"}
KINDS = {"lm": "causal language model", "classify": "sequence classifier"}
COLUMNS = {  # of a row -> the checks behind it
    "future": ("M3", "M4"),
    "padding right": ("M6",),
    "padding left": ("K2",),
    "mask of ones": ("K1",),
    "batch mates": ("M7",),
    "repeats": ("M12",),
    "cache": ("C1",),
    "cache in pieces": ("C1p",),
    "cache + padding": ("C2",),
    "eager = fused": ("E1",),
}
CHECKS = [id for ids in COLUMNS.values() for id in ids]
SHAPE = {"layers": 2, "heads": 4, "width": 32, "hidden": 64, "length": 32}
SECONDS = 120.0  # for one class
PRELOAD = ("transformers.models.llama.modeling_llama", "transformers.models.bert.modeling_bert")
AUDITING = ("audit", "model/external.py", "model/adapters.py", "model/hf_config.py", "apps/zoo/families.toml")


@dataclass(frozen=True)
class Species:
    """One class of a library that can be asked."""

    name: str  # GPT2LMHeadModel
    families: tuple[str, ...]  # gpt2, gpt-sw3: what the library builds it for
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of its configuration, beside its size


@dataclass(frozen=True)
class Row:
    """What became of one class: findings, or the reason why there are none."""

    species: Species
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    lasting: bool = True  # False: it took too long or its process ended, which another run may change

    @property
    def failed(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.verdict == FAIL)

    def to_dict(self) -> dict[str, Any]:
        findings = [each.to_dict() for each in self.findings]
        facts = {"name": self.species.name, "findings": findings, "reason": self.reason}
        return {**facts, "seconds": round(self.seconds, 2), "lasting": self.lasting}

    def cell(self, column: str) -> str:
        """`PASS`, `FAIL`, `not asked`; empty: it does not apply"""
        found = [each.verdict for each in self.findings if each.id in COLUMNS[column]]
        return next((each for each in (FAIL, NOT_ASKED) if each in found), found[0] if found else "")


@dataclass(frozen=True)
class Zoo:
    library: str
    version: str
    folder: Path
    rows: tuple[Row, ...]


OnRow = Callable[[Row, int, int, float], None]  # a row as it is done, how many are, of how many, seconds left


def audit_zoo(
    zoo: str = "transformers", families: Sequence[str] = (), *, out: str | Path | None = None, jobs: int | None = None,
    seconds: float = SECONDS, page: str | Path | None = None, engine: Engine | None = None,
    on_row: OnRow = lambda *told: None, stop: Stop = lambda: False,
) -> Zoo:  # fmt: skip
    """Audit all families of the installed library, or those that are named (a family, `gpt2`, or a class). `jobs` at a
    time, at most so many `seconds` for each class. Rows in the folder `out` that the same code and versions made are
    not made again. `page`: a Markdown page of all rows."""
    found = version_of(zoo)
    chosen = chosen_species(list_species(), families)
    folder = Path(out) if out is not None else Path("zoo") / f"{zoo}-{found}"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    rows = {each.name: row for each in chosen if (row := read_row(folder, each)) is not None}
    waiting = [each for each in chosen if each.name not in rows]
    engine = engine or open_engine("cores", jobs, preload=PRELOAD)
    started = time.monotonic()
    results = engine.run([job_of(each, seconds) for each in waiting], lambda *told: None, stop)
    for number, result in enumerate((each for each in results if not each.stopped), start=1):
        species = next(each for each in waiting if each.name == result.job.key[-1])
        rows[species.name] = row = row_of(species, result)
        write_row(folder, row)
        left = (time.monotonic() - started) / number * (len(waiting) - number)
        on_row(row, len(rows), len(chosen), left)
    if len(rows) < len(chosen):
        raise Interrupted(f"stopped after {len(rows)} of {len(chosen)} classes", "the same command continues")
    whole = Zoo(zoo, found, folder, tuple(rows[each.name] for each in chosen))
    if page is not None:
        from fairtrial.apps.zoo.page import write_page

        write_page(whole, Path(page))
    return whole


def version_of(library: str) -> str:
    if library not in LIBRARIES:
        raise BadInput(f"there is no zoo of {library!r}{did_you_mean(library, LIBRARIES)}")
    try:
        return version(library)
    except PackageNotFoundError as error:
        raise BadInput(f"{library} is not installed", f"pip install {library}") from error


@cache
def list_species() -> tuple[Species, ...]:
    """Every class that the library has for one of the tasks, once."""
    auto = import_module("transformers.models.auto.modeling_auto")
    configs: Mapping[str, str] = import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    options = tomllib.loads((HERE / "families.toml").read_text(encoding="utf-8"))
    found: dict[str, Species] = {}
    for task, mapping in MAPPINGS.items():
        for family, names in getattr(auto, mapping).items():
            for name in (names,) if isinstance(names, str) else names:
                known = found.get(name, Species(name, (), task))
                needs = known.options or options.get(configs.get(family, ""), {})
                found[name] = replace(known, families=(*known.families, family), options=needs)
    return tuple(found.values())


def chosen_species(known: Sequence[Species], families: Sequence[str]) -> list[Species]:
    names = {name for each in known for name in (each.name, *each.families)}
    for name in families:
        if name not in names:
            raise BadInput(f"transformers has no family or class {name!r}{did_you_mean(name, sorted(names))[:80]}")
    return [each for each in known if not families or {each.name, *each.families} & set(families)]


def job_of(species: Species, seconds: float) -> Job:
    asked = {"model": f"hf:{species.name}", "task": species.task, "options": dict(species.options)}
    options = {**asked, "shape": SHAPE, "checks": CHECKS}
    return Job(("zoo", species.name), "checks", seconds=seconds, options=options)


def row_of(species: Species, result: JobResult) -> Row:
    if result.facts is None:
        return Row(species, reason=result.error, lasting=result.mistake)
    findings = tuple(Finding.from_dict(each) for each in result.facts["findings"])
    return Row(species, findings, seconds=result.seconds)


def path_of(folder: Path, species: Species) -> Path:
    return folder / f"{species.task}-{species.name}.json"


def write_row(folder: Path, row: Row) -> None:
    write_document(path_of(folder, row.species), {"mark": mark_of(row.species), **row.to_dict()})


def read_row(folder: Path, species: Species) -> Row | None:
    """None: it is not there, is damaged, or was made by other code or another version."""
    path = path_of(folder, species)
    if not path.is_file():
        return None
    try:
        facts = read_document(path, ZOO_ROW)
    except BadInput:
        return None
    if facts["mark"] != mark_of(species) or not facts["lasting"]:
        return None
    findings = tuple(Finding.from_dict(each) for each in facts["findings"])
    return Row(species, findings, facts["reason"], facts["seconds"])


def mark_of(species: Species) -> str:
    """What a row depends on."""
    return hashlib.sha256(json.dumps([made_by(), CHECKS, SHAPE, species.options]).encode()).hexdigest()[:16]


@cache
def made_by() -> list[str]:
    """Versions, and the code that asks."""
    root, whole = Path(fairtrial.__file__).parent, hashlib.sha256()
    for path in sources(root):
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return [version("transformers"), version("torch"), whole.hexdigest()]


def sources(root: Path) -> Iterator[Path]:
    for name in AUDITING:
        path = root / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]
