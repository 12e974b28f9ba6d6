"""The wheel works by itself: in an environment without the source, in a folder away from it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from course_text import write_course
from fairtrial import __version__
from fairtrial.environment import describe
from tiny import TINY

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str | Path) -> str:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which may name the source
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel; what it depends on is taken from this environment."""
    pytest.importorskip("setuptools", minversion="77", reason="the wheel is built without a network")
    workspace = tmp_path_factory.mktemp("wheel")
    copy = workspace / "source"
    run(ROOT, "git", "clone", "-q", ROOT, copy)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(copy, *pip, "wheel", ".", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", workspace)
    (wheel,) = workspace.glob(f"fairtrial-{__version__}-*.whl")
    environment = workspace / "environment"
    run(workspace, sys.executable, "-m", "venv", "--without-pip", environment)
    run(workspace, *pip, "--python", environment, "install", "--no-deps", "--no-index", wheel)
    (site,) = environment.glob("[lL]ib/**/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / ("Scripts" if sys.platform == "win32" else "bin")


def test_a_study_an_audit_and_a_look_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    data, fairtrial = write_course(tmp_path / "texts"), installed / "fairtrial"
    where = run(tmp_path, installed / "python", "-c", "import fairtrial; print(fairtrial.__file__)")
    assert Path(where).is_relative_to(installed.parent), "not the source"
    how = ["--task", "classify", "--seeds", "1", "--steps", "3", "--out", "study", "--set", *TINY]
    told = run(tmp_path, fairtrial, "study", "--data", data, "--variants", "learned", "rope", *how)
    assert "open this page" in told
    assert "<svg" in (tmp_path / "study" / "report.html").read_text()
    assert (tmp_path / "study" / "passports" / "classify" / "rope.json").is_file(), "the audit"
    run(tmp_path, fairtrial, "look", "study/trials/classify/rope/seed-0", "We will build.", "--out", "maps")
    assert list(tmp_path.glob("maps*"))
    assert run(tmp_path, fairtrial, "puzzle", "average", "0", "1")


def test_the_wheel_has_every_file_of_the_source(installed: Path) -> None:
    """Templates, styles and tables, too: a command that lacks its own is found here."""
    (site,) = installed.parent.glob("[lL]ib/**/site-packages")
    kept = run(ROOT, "git", "ls-files", "src/fairtrial").splitlines()
    assert [name for name in kept if not (site / Path(name).relative_to("src")).is_file()] == []


def test_whoever_names_the_version_names_the_same() -> None:
    citation, changes = (ROOT / "CITATION.cff").read_text(), (ROOT / "CHANGELOG.md").read_text()
    released = re.search(r"^date-released: (\S+)$", citation, flags=re.M)
    assert released
    assert re.search(r"^version: (\S+)$", citation, flags=re.M)[1] == __version__  # type: ignore[index]
    assert re.findall(r"^## (\d.*)$", changes, flags=re.M)[0] == f"{__version__} ({released[1]})"
    assert describe(1).fairtrial == __version__, "what records are told"
