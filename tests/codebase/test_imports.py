"""Imports follow the map: who may know whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairtrial"
PLAIN = {
    "errors",
    "registry",
    "rng",
    "recipe",
    "finding",
    "progress",
    "typed",
    "events",
    "stored",
}
VALUES = PLAIN | {"disk", "environment", "record", "stored"}

SHOWN = {"description", "formatting"}

# package -> what it may import of fairtrial; one that is not named may import all but `cli` and `puzzles`
MAY_IMPORT = {
    "data": PLAIN | {"disk", "data", "prepare"},
    "model": PLAIN | {"environment", "model"},
    "parts": {"model.part", "recipe", "errors", "rng", "parts"},
    "statistics": {"errors", "statistics", "results.values", "results.sentences"},
    "description": {"errors", "typed", "report.render", "report.plots"},
    "formatting": {"errors", "description", "recipe"},
    "results": VALUES | SHOWN | {"legacy", "results", "statistics", "report", "run", "api", "data.tables"},
    "training": PLAIN | {"disk", "stored", "data", "model", "parts", "statistics", "training"},
    "loggers": PLAIN,
    "report": VALUES | SHOWN | {"report", "results", "statistics"},
    "inspection": PLAIN
    | {"disk", "environment", "record", "prepare", "plugins", "data", "model", "parts", "training", "statistics"}
    | SHOWN
    | {"audit", "inspection", "report", "results", "pretrained", "trial"},
    "audit": VALUES | {"data", "model", "parts", "training", "plugins", "prepare", "audit"},
    "engines": {
        "errors",
        "registry",
        "disk",
        "environment",
        "engines",
        "events",
        "finding",
    },  # what a job does is imported by name in the process that does it
    "plugins": PLAIN | {"disk", "record", "model", "parts"},
    "baselines": PLAIN
    | {"data", "disk", "environment", "record", "prepare", "statistics", "training", "trial", "baselines"},
    "pretrained": VALUES | {"data", "model", "parts", "pretrained"},
    "record": VALUES | {"data.tokenizer"},
    "finding": {"environment", "typed"},
}
NO_TORCH = (
    "typed",
    "data",
    "statistics",
    "results",
    "description",
    "formatting",
    "report",
    "cli",
    "recipe",
    "record",
    "errors",
    "rng",
    "registry",
    "disk",
    "finding",
)
SHOWING = ("study.run", "puzzles", "puzzles.solve", "prepare", "environment")
# what an engine imports by name, in the process that runs a job
BY_NAME = {
    *(
        ("engines", name)
        for name in ("study.jobs", "trial", "audit.run", "inspection.parameters", "baselines.classifiers")
    ),
    ("plugins", "parts"),
}
PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())


def modules() -> dict[str, Path]:
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py"]
    return {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path for path in paths}


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports anywhere in it, or names in a string: "fairtrial.study.jobs"."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            packages = ("fairtrial", *(f"fairtrial.{package}" for package in PACKAGES))
            found |= {f"{node.module}.{name.name}" for name in node.names if node.module in packages}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} if re.fullmatch(r"fairtrial(\.[a-z_]+)+", node.value) else set()
    return found


def packages_of(path: Path) -> set[str]:
    names = (name.removeprefix("fairtrial.") for name in imported(path) if name.startswith("fairtrial."))
    return {name for name in names if not name.startswith("__")}


def refused(name: str, path: Path) -> set[str]:
    """What a module imports although it may not."""
    package = name.split(".")[0]
    if package in ("cli", "__init__"):
        return set()
    others = {other for other in packages_of(path) if (package, other) not in BY_NAME}
    if package in (
        "puzzles",
        "explore",
    ):  # what a package exports, never a module inside it; `results` exports its modules
        inner = {
            each
            for each in others
            if "." in each and each in modules() and not each.startswith((f"{package}.", "results."))
        }
        return inner | {
            other for other in others if other.split(".")[0] in {"cli", "explore", "api"} - {package, "api"}
        }
    allowed = MAY_IMPORT.get(package)
    if allowed is None:  # everything but the puzzles, and the command line above them
        return {other for other in others if other.split(".")[0] in {"cli", "puzzles"} - {package}}
    return {other for other in others if other not in allowed and other.split(".")[0] not in allowed}


def test_a_package_imports_only_what_the_map_allows() -> None:
    found = {name: refused(name, path) for name, path in modules().items()}
    assert not {name: others for name, others in found.items() if others}


def test_the_import_rule_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from fairtrial.training.loop import Loop\n")
    assert "training.loop" in refused("data.words", bad)
    assert not refused("trial", bad)
    bad.write_text('JOB = ("fairtrial.study.jobs", "run")\n')
    assert refused("statistics.power", bad) == {"study.jobs"}
    bad.write_text("from fairtrial import puzzles\n")
    assert refused("study.run", bad) == refused("inspection.heads", bad) == {"puzzles"}
    bad.write_text(
        "from fairtrial.study import Study, plan\nfrom fairtrial.data.tables import Table\nimport fairtrial.parts\n"
    )
    assert refused("puzzles.solve", bad) == {"study.plan", "data.tables"}


def test_packages_that_know_no_model_import_no_torch() -> None:
    for name, path in modules().items():
        if name.split(".")[0] in NO_TORCH or name in NO_TORCH:
            assert not {other for other in imported(path) if other.split(".")[0] == "torch"}, name


def test_reading_and_showing_load_no_torch() -> None:
    names = [name for name in modules() if name.split(".")[0] in NO_TORCH or name in NO_TORCH]
    names = [f"fairtrial.{name.removesuffix('.__init__')}" for name in [*names, *SHOWING]]
    code = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
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
