"""Uses the stored samples of version 0.2.0 (`before/`) through the command line, and gathers the numbers.

`before/` was written once, by the last code of that version; it is never written again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from golden_runs import TEXT, answers, flatten, need, record_values, study_values

from course_text import write_course

HERE = Path(__file__).parent
BEFORE = HERE / "before"
RECORDS = ("classify", "lm", "unfinished", "plugin")
RECIPES = ("classify", "lm", "mlm", "full")
REMOVED = ("split_seed", "accumulate", "momentum", "frozen_layers", "layer_decay")


def shown(name: str) -> dict[str, Any]:
    need("show", name)
    whole = json.loads(need("show", name, "--json"))
    return {"numbers": flatten({key: whole[key] for key in ("result", "events")}, "show")}


def said(*words: object) -> dict[str, Any]:
    return {"numbers": answers(*words)}


def resumed() -> dict[str, Any]:
    need("train", "--resume", "unfinished", "--ignore-changes")
    return record_values(Path("unfinished"))


def judged() -> dict[str, Any]:
    need("verdict", "study", "--all")
    return said("verdict", "study")


def reported() -> dict[str, Any]:
    page = Path("study") / "report.html"
    page.unlink(missing_ok=True)
    need("report", "study")
    if not page.is_file():
        raise RuntimeError("report wrote no report.html")
    values = study_values(Path("study"))
    return {key: values[key] for key in ("tensors", "files")}


def trained(name: str) -> dict[str, Any]:
    """Without the fields that were removed since, which are refused where they are set."""
    path = Path(f"recipes/{name}.toml")
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.partition(" ")[0] not in REMOVED]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    need("train", f"recipes/{name}.toml", "--data", "speechesdataset", "--steps", 2, "--out", f"trained-{name}")
    return record_values(Path(f"trained-{name}"))


def planned() -> dict[str, Any]:
    told = need("study", "recipes/study.toml", "--dry-run", "--engine", "here", "--out", "planned", "--json")
    return {"numbers": flatten(json.loads(told.splitlines()[-1]), "plan")}


USES: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"show {name}": lambda name=name: shown(name) for name in RECORDS},
    "predict": lambda: said("predict", "classify", TEXT),
    "errors": lambda: said("errors", "classify"),
    "surprise": lambda: said("inspect", "surprisal", "lm", TEXT),
    "generate": lambda: said("generate", "lm", "We will", "--tokens", 8),
    "predict plugin": lambda: said("predict", "plugin", TEXT, "--with", "plugin-file/fade_plugin.py"),
    "resume": resumed,
    "verdict": judged,
    "report": reported,
    **{f"train {name}": lambda name=name: trained(name) for name in RECIPES},
    "study": planned,
}


def use_all(folder: Path) -> dict[str, Any]:
    """What each use of a sample gives, on a copy beside the data that the samples name; `{"failed": why}` where it
    fails."""
    shutil.copytree(BEFORE, folder, dirs_exist_ok=True)
    os.chdir(folder)
    write_course(Path("speechesdataset"))
    found: dict[str, Any] = {}
    for name, use in USES.items():
        try:
            found[name] = use()
        except Exception as error:  # the test of this use tells it
            found[name] = {"failed": f"{type(error).__name__}: {error}"}
    return found
