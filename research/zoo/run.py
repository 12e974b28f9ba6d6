"""Every class that the installed `transformers` lists for causal language models and sequence classification, built
small with random weights and audited: `python research/zoo/run.py [CLASS...]`.

Each class is audited in a process of its own by `fairtrial audit --model hf:CLASS --json`. What was found is kept in
`outcomes/`, one file for each version of the library, and not asked again."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pages import table, write_sections

HERE = Path(__file__).parent
STORED = HERE / "outcomes" / f"transformers-{version('transformers')}.json.gz"
MAPPINGS = {"lm": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "classify": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES"}
TITLES = {"lm": "Causal language models", "classify": "Sequence classifiers"}
COLUMNS = {  # of the table -> the checks behind it
    "future": ("M3", "M4"),
    "padding left": ("K2",),
    "mask of ones": ("K1",),
    "padding right, batch mates": ("M7",),
    "repeats": ("S1",),
    "cache": ("C1",),
    "cache in pieces": ("C1p",),
    "cache + padding": ("C2",),
    "eager = fused": ("E1",),
}
CHECKS = [check for checks in COLUMNS.values() for check in checks]
SHAPE = ("shape.layers=2", "shape.heads=4", "shape.width=32", "shape.hidden=64", "shape.length=32")
LABELS = tomllib.loads((HERE / "labels.toml").read_text(encoding="utf-8"))["label"]
JOBS, SECONDS = 2, 600


@dataclass(frozen=True)
class ModelClass:
    name: str  # GPT2LMHeadModel
    task: str
    families: tuple[str, ...]  # gpt2, gpt-sw3: what the library builds it for
    options: dict[str, Any]  # fields of its configuration, beside its size


def main() -> None:
    known = {each.name: each for each in model_classes()}
    wanted = [known[name] for name in sys.argv[1:]] or list(known.values())
    rows = json.loads(gzip.decompress(STORED.read_bytes())) if STORED.is_file() else {}
    waiting = [each for each in wanted if each.name not in rows]
    with ThreadPoolExecutor(JOBS) as pool:
        for number, (one, row) in enumerate(zip(waiting, pool.map(audit, waiting), strict=True), start=1):
            rows[one.name] = row
            STORED.parent.mkdir(exist_ok=True)
            STORED.write_bytes(gzip.compress(json.dumps(rows).encode(), mtime=0))
            print(
                f"[{number}/{len(waiting)}] {one.name}: {', '.join(row['failed']) or row['reason'] or 'passed'}",
                flush=True,
            )
    if set(known) <= set(rows):
        write_page(known, rows)


def model_classes() -> Iterator[ModelClass]:
    auto = import_module("transformers.models.auto.modeling_auto")
    configs = import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    options = tomllib.loads((HERE / "families.toml").read_text(encoding="utf-8"))
    families: dict[tuple[str, str], list[str]] = {}
    for task, mapping in MAPPINGS.items():
        for family, names in getattr(auto, mapping).items():
            for name in (names,) if isinstance(names, str) else names:
                families.setdefault((name, task), []).append(family)
    for (name, task), several in families.items():
        needs = next((options[config] for family in several if (config := configs.get(family)) in options), {})
        yield ModelClass(name, task, tuple(several), needs)


def audit(one: ModelClass) -> dict[str, Any]:
    """Findings by check: PASS, FAIL or not tested; or the reason why there are none."""
    model = f"hf:{one.name}" + (
        f":{','.join(f'{key}={json.dumps(value)}' for key, value in one.options.items())}" if one.options else ""
    )
    words = ["audit", "--model", model, "--task", one.task, "--json", "--time-limit", "5m"]
    for setting in SHAPE:
        words += ["--set", setting]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fairtrial", *words], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"findings": {}, "failed": [], "reason": "it takes too long"}
    if not done.stdout.startswith("{"):
        return {"findings": {}, "failed": [], "reason": " ".join(done.stderr.split())[:300]}
    found = [each for each in json.loads(done.stdout)["findings"] if each["id"] in CHECKS]
    findings = {each["id"]: {key: each.get(key) for key in ("verdict", "value", "meaning")} for each in found}
    failed = [name for name, each in findings.items() if each["verdict"] == "FAIL"]
    return {"findings": findings, "failed": failed, "reason": ""}


def label_of(name: str, check: str) -> dict[str, Any]:
    """What people found of a failed check: a fault, by design, or nothing yet."""
    return next((each for each in LABELS if name in each["classes"] and check in each["checks"]), {"kind": "open"})


def write_page(known: dict[str, ModelClass], rows: dict[str, Any]) -> None:
    audited = {name: row for name, row in rows.items() if not row["reason"]}
    sections = {
        TITLES[task]: classes_table([known[name] for name in audited if known[name].task == task], rows)
        for task in TITLES
    }
    failed = [(name, check) for name, row in audited.items() for check in row["failed"]]
    sections["By design"] = table(
        ["class", "check", "why"],
        [
            [f"`{name}`", check, label_of(name, check)["why"]]
            for name, check in failed
            if label_of(name, check)["kind"] == "by design"
        ],
    )
    sections["Not looked at yet"] = table(
        ["class", "check", "finding"],
        [
            [f"`{name}`", check, rows[name]["findings"][check]["meaning"]]
            for name, check in failed
            if label_of(name, check)["kind"] == "open"
        ],
    )
    sections["Not audited"] = table(
        ["class", "why"], [[f"`{name}`", row["reason"]] for name, row in rows.items() if row["reason"]]
    )
    faults = len({name for name, check in failed if label_of(name, check)["kind"] == "fault"})
    passed = sum(not row["failed"] for row in audited.values())
    sections["Records"] = (
        f"transformers {version('transformers')}: {len(audited)} classes audited, {passed} passed, {faults} have a"
        f" fault. All findings are in `outcomes/{STORED.name}`, and `run.py` writes these tables from there."
    )
    write_sections(HERE / "README.md", sections)


def classes_table(classes: list[ModelClass], rows: dict[str, Any]) -> str:
    cells = []
    for one in classes:
        findings = rows[one.name]["findings"]
        cells.append(
            [
                f"`{one.name}`",
                ", ".join(one.families),
                *(cell(one.name, findings, checks) for checks in COLUMNS.values()),
            ]
        )
    return table(["class", "families", *COLUMNS], cells)


def cell(name: str, findings: dict[str, Any], checks: tuple[str, ...]) -> str:
    verdicts = [findings[check]["verdict"] for check in checks if check in findings]
    if "FAIL" in verdicts:
        kinds = {label_of(name, check)["kind"] for check in checks if findings.get(check, {}).get("verdict") == "FAIL"}
        return "**FAIL**" if "open" in kinds else "**fault**" if "fault" in kinds else "design"
    return "" if not verdicts else "ok" if verdicts[0] == "PASS" else "–"


if __name__ == "__main__":
    main()
