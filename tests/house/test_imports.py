"""Imports follow the map: who may know whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairtrial"
PLAIN = {"errors", "names", "streams", "duration", "recipe"}
VALUES = PLAIN | {"recipe_file", "disk", "environment", "record"}

# room -> rooms and files of fairtrial that it may import
MAY_KNOW = {
    "text": PLAIN | {"disk", "text"},
    "model": PLAIN | {"model"},
    "parts": {"model.part", "recipe", "errors", "streams", "parts"},
    "judge": {"errors", "judge"},
    "train": PLAIN | {"disk", "text", "model", "parts", "judge", "train"},
    "mirrors": PLAIN | {"recipe_file", "mirrors"},
    "report": VALUES | {"figure", "report", "judge"},
    "look": PLAIN
    | {
        "figure",
        "disk",
        "text",
        "model",
        "parts",
        "train",
        "judge",
        "passport",
        "look",
        "revive",
        "kept",
        "pretrained",
    },
    "passport": VALUES | {"text", "model", "parts", "train", "strangers", "passport"},
    "engines": {"errors", "disk", "engines"},  # what a job does, its own process imports by name
    "strangers": PLAIN | {"disk", "model", "parts"},
    "puzzles": PLAIN | {"figure", "disk", "text.lines", "model", "parts", "look.draw", "puzzles"},
    "baselines": PLAIN | {"text", "judge", "train", "trial", "baselines"},
    "mix": VALUES | {"text", "train", "judge", "baselines", "revive", "mix"},
    "pretrained": VALUES | {"text", "model", "pretrained"},
    "replicate": VALUES
    | {
        "engines",
        "figure",
        "judge",
        "look",
        "model.part",
        "replicate",
        "report",
        "revive",
        "strangers",
        "study",
        "text",
        "train",
    },
    "record": VALUES,
}
NO_TORCH = ("text", "judge", "report", "cli", "look.draw")


def modules() -> list[tuple[str, Path]]:
    return [
        (path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."), path) for path in PACKAGE.rglob("*.py")
    ]


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {
                f"{node.module}.{name.name}" for name in node.names if node.module in ("fairtrial", "fairtrial.parts")
            }
    return found


def known_of(path: Path) -> set[str]:
    inside = {name.removeprefix("fairtrial.") for name in imported(path) if name.startswith("fairtrial.")}
    return {name for name in inside if not name.startswith("__")}


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_room_imports_only_what_the_map_allows(name: str, path: Path) -> None:
    room = name.split(".")[0]
    allowed = MAY_KNOW.get(room)
    if allowed is None:
        pytest.skip(f"{room} may know everything")
    for other in known_of(path):
        assert other in allowed or other.split(".")[0] in allowed, f"{name} imports {other}"


def test_the_import_rule_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from fairtrial.train.loop import Loop\n")
    assert known_of(bad) == {"train.loop"}
    assert not any(other in MAY_KNOW["text"] for other in known_of(bad))


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_rooms_that_know_no_model_import_no_torch(name: str, path: Path) -> None:
    if name.split(".")[0] in NO_TORCH or name in NO_TORCH or name in VALUES:
        assert not {other for other in imported(path) if other.split(".")[0] == "torch"}


@pytest.mark.parametrize(
    "module",
    ["fairtrial.cli.main", "fairtrial.record", "fairtrial.report.page", "fairtrial.report.record_text",
     "fairtrial.report.study_page", "fairtrial.report.verdict_text",
     "fairtrial.judge.interval", "fairtrial.text.reading", "fairtrial.text.tokenizer", "fairtrial.recipe_file",
     "fairtrial.look.draw", "fairtrial.study.run",
     "fairtrial.puzzles", "fairtrial.puzzles.course", "fairtrial.puzzles.draw"],
)  # fmt: skip
def test_reading_and_showing_load_no_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_help_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys\nsys.argv = ['fairtrial', '--help']\nfrom fairtrial.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "loaded = {'torch', 'numpy', 'scipy', 'tokenizers', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
