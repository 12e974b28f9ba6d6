"""An unfinished record resumes after an edit to a page, a chart or a command, not after one that may change numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fairtrial
from fairtrial.environment import DECIDES_NUMBERS, code_fingerprint

sys.path.insert(0, str(Path(__file__).parents[1] / "codebase"))

from test_imports import modules, packages_of

PACKAGE = Path(fairtrial.__file__).parent
# what the code that decides numbers imports, and none decides one: messages, files, the registry of names, the record
# that is written, and what the statistics do with the scores of several trials
NO_NUMBERS = {
    "baselines", "disk", "environment", "errors", "events", "finding", "legacy", "plugins", "progress",
    "provenance", "record", "registry", "results", "run", "stored", "typed", "statistics.multiplicity",
    "statistics.power", "statistics.speedup",
}  # fmt: skip
TRAIN = """
import sys
from fairtrial.recipe import load_recipe
from fairtrial.trial import run_trial
from pathlib import Path
steps = 0
def count(event):
    global steps
    steps = event.step
run_trial(load_recipe(Path("recipe.toml")), 0, Path("record"), on_event=count, stop=lambda: steps >= 2)
"""
RESUME = "from fairtrial.trial import resume_trial\nfrom pathlib import Path\nresume_trial(Path('record'))\n"


def decides(name: str) -> bool:
    path = name.replace(".", "/")
    return name.partition(".")[0] in DECIDES_NUMBERS or f"{path}.py" in DECIDES_NUMBERS


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to edit."""
    folder = tmp_path_factory.mktemp("code") / "fairtrial"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def edit(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")


def fingerprint_after(copied: Path, name: str) -> str:
    before = (copied / name).read_text(encoding="utf-8")
    edit(copied / name)
    try:
        return code_fingerprint.__wrapped__(copied)
    finally:
        (copied / name).write_text(before, encoding="utf-8")


def test_all_that_the_deciding_code_imports_is_covered_or_known_to_decide_nothing() -> None:
    known = modules()
    for name in (name for name in known if decides(name)):
        for other in packages_of(known[name]):
            if other in known or f"{other}.__init__" in known:
                none = other in NO_NUMBERS or other.partition(".")[0] in NO_NUMBERS
                assert decides(other) or none or other == "statistics", f"{name} imports {other}"


def test_every_name_in_the_list_exists() -> None:
    assert all((PACKAGE / name).exists() for name in DECIDES_NUMBERS)


@pytest.mark.parametrize(
    "name", ["training/loop.py", "model/network.py", "data/corpus.py", "parts/rope.py", "rng.py", "prepare.py"]
)
def test_an_edit_to_what_decides_numbers_changes_the_fingerprint(name: str, copied: Path) -> None:
    assert fingerprint_after(copied, name) != code_fingerprint.__wrapped__(copied) == code_fingerprint()


@pytest.mark.parametrize("folder", ["report", "cli", "explore", "study", "engines", "audit"])
def test_an_edit_to_what_shows_or_orders_trials_does_not(folder: str, copied: Path) -> None:
    for path in (copied / folder).rglob("*.py"):
        assert fingerprint_after(copied, str(path.relative_to(copied))) == code_fingerprint(), path


def test_an_edit_to_what_judges_several_trials_does_not(copied: Path) -> None:
    for name in ("statistics/comparison.py", "statistics/verdict.py", "results/sentences.py"):
        assert fingerprint_after(copied, name) == code_fingerprint(), name


def run_code(code: str, copied: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(copied.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


def test_an_unfinished_record_resumes_after_an_edit_to_a_page_but_not_to_training(
    copied: Path, course_folder: Path, tmp_path: Path
) -> None:
    from fairtrial.recipe import write_recipe
    from tiny import make_tiny

    (tmp_path / "recipe.toml").write_text(write_recipe(make_tiny("classify", course_folder)), encoding="utf-8")
    begun = run_code(TRAIN, copied, tmp_path)
    assert "stopped after step" in begun.stderr, begun.stderr
    kept = (copied / "training" / "loop.py").read_text(encoding="utf-8")
    edit(copied / "training" / "loop.py")
    refused = run_code(RESUME, copied, tmp_path)
    assert "EnvironmentChanged" in refused.stderr, refused.stderr
    (copied / "training" / "loop.py").write_text(kept, encoding="utf-8")
    for path in (*(copied / "report").rglob("*.py"), *(copied / "cli").rglob("*.py")):
        edit(path)
    resumed = run_code(RESUME, copied, tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "record" / "result.json").is_file()
