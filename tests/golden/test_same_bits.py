"""Trainings end with the same bits as those of the release before: version 0.2.0 (commit cb07178) is taken out of the
repository's history and trains the same recipes, its own default and course recipes, on the same machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from course_text import write_course

ROOT = Path(__file__).parents[2]
RELEASE = "cb07178"
RECIPES = Path(__file__).parent / "recipes"  # those of 0.2.0, whatever the default is today
SAME = ("model.safetensors", "outcomes.safetensors", "tokenizer.json")
STEPS = {"duration": "24 steps", "select_every": "10 steps"}
WORK = """
import sys
from pathlib import Path
from fairtrial.errors import Interrupted
from fairtrial.recipe import load_recipe
from fairtrial.trial import resume_trial, run_trial

for path in sorted(Path(sys.argv[1]).glob("*.toml")):
    folder = Path("runs") / path.stem
    if path.stem != "resumed":
        run_trial(load_recipe(path), 7, folder)
        continue
    asked = iter([False] * 11)
    try:
        run_trial(load_recipe(path), 7, folder, stop=lambda: next(asked, True))
    except Interrupted:
        resume_trial(folder)
"""


def cases(data: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Each trial by its name: a recipe of 0.2.0, and what is changed in it."""
    parts = {name: ("default-lm", {"parts": ["learned", name]}) for name in ("swiglu", "qk-norm")}
    parts |= {name: ("default-lm", {"parts": [name]}) for name in ("rope", "alibi", "t5")}
    parts["window"] = ("default-classify", {"parts": ["learned", {"name": "window", "size": 8}]})
    course = {"data": {"source": str(data)}}
    return {
        **{f"part-{name}": case for name, case in parts.items()},
        "classify": ("default-classify", {}),
        "lm": ("default-lm", {}),
        "resumed": ("default-lm", {"parts": ["rope"]}),
        "course-classify": ("course-classify", course),
        "course-lm": ("course-lm", course),
        "a-mlm": ("default-mlm", course),
        "finetune": ("finetune-classify", {**course, "encoder": {"source": "runs/a-mlm"}}),
    }


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value) if not isinstance(value, list) else "[" + ", ".join(map(toml, value)) + "]"


def write_recipes(folder: Path, data: Path) -> None:
    for name, (base, changes) in cases(data).items():
        table: dict[str, Any] = tomllib.loads((RECIPES / f"{base}.toml").read_text(encoding="utf-8"))
        table["training"] = {**table.get("training", {}), **STEPS}
        table["scoring"] = {**table.get("scoring", {}), "curve_every": "12 steps"}
        for key, value in changes.items():
            table[key] = {**table.get(key, {}), **value} if isinstance(value, dict) else value
        text = "\n".join(f"{key} = {toml(value)}" for key, value in table.items())
        (folder / f"{name}.toml").write_text(text + "\n", encoding="utf-8")


def train(source: Path, folder: Path, recipes: Path) -> None:
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-c", WORK, str(recipes)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_trainings_end_with_the_same_bits_as_those_of_the_release_before(tmp_path: Path) -> None:
    packed = subprocess.run(["git", "archive", RELEASE, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"the history of this clone does not hold {RELEASE}")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(tmp_path / "release", filter="data")
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    write_recipes(recipes, write_course(tmp_path / "speechesdataset"))
    for name, source in (("then", tmp_path / "release" / "src"), ("now", ROOT / "src")):
        train(source, tmp_path / name, recipes)
    names = sorted(path.stem for path in recipes.glob("*.toml"))
    assert names == sorted(cases(tmp_path))
    for name in names:
        then, now = (tmp_path / side / "runs" / name for side in ("then", "now"))
        assert [file for file in SAME if (then / file).read_bytes() != (now / file).read_bytes()] == [], name
        losses = [
            [json.loads(line).get("loss") for line in (side / "events.jsonl").read_text(encoding="utf-8").splitlines()]
            for side in (then, now)
        ]
        assert losses[0] == losses[1], name
