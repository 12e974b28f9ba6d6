"""The scripts of research/, on tiny studies: they run, keep outcomes, and write their pages again without training."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from course_text import write_course
from fairtrial.audit.run import CHECKS

ROOT = Path(__file__).parents[2]
RESEARCH = ROOT / "research"
TINY = {
    "shape.layers": 1, "shape.width": 12, "shape.heads": 2, "shape.hidden": 12, "shape.length": 16, "training.batch": 8,
    "training.duration": '"4 steps"', "training.select_every": '"2 steps"', "scoring.curve_every": '"2 steps"',
    "data.train_share": 0.5, "scoring.full_context": 0.5,
}  # fmt: skip


def shorten(path: Path, keep: int) -> None:
    """A study file with two seeds, few variants and tiny networks."""
    text = path.read_text()
    for name in TINY:
        text = re.sub(rf'(?m)^"{re.escape(name)}" = .*\n', "", text)
    text = re.sub(r"(?m)^seeds = \d+", "seeds = 2", text)
    settings = "".join(f'"{name}" = {value}\n' for name, value in TINY.items())
    text = text.replace("[set]\n", f"[set]\n{settings}") if "[set]" in text else (
        re.sub(r"\n(?=\[variants)", f"\n[set]\n{settings}\n", text, count=1) if "\n[variants" in text
        else f"{text}\n[set]\n{settings}"
    )  # fmt: skip
    listed = re.search(r"variants = \[(.*?)\]\n", text, re.S)
    if listed:
        names = re.findall(r'"[^"]+"', listed[1])[:keep]
        text = text.replace(listed[0], f"variants = [{', '.join(names)}]\n")
    path.write_text(text)


@pytest.fixture
def research(tmp_path: Path) -> Path:
    return shutil.copytree(RESEARCH, tmp_path / "research", ignore=shutil.ignore_patterns("runs", "outcomes"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return write_course(tmp_path / "data" / "speeches").parent


def run(research: Path, name: str, data: Path | None = None) -> str:
    own = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{research}", "OMP_NUM_THREADS": "1"}
    own["FAIRTRIAL_DATA"] = str(data or research / "nowhere")
    done = subprocess.run(
        [sys.executable, str(research / name / "run.py")], cwd=research, env=own, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return (research / name / "README.md").read_text()


def run_again(research: Path, name: str, page: str, data: Path | None = None) -> None:
    """Without the records."""
    shutil.rmtree(research / name / "runs")
    assert run(research, name, data) == page


def test_the_speedrun_page_follows_from_the_trainings_beside_it(research: Path) -> None:
    page = (research / "speedruns" / "README.md").read_text()
    assert run(research, "speedruns") == page
    trainings = research / "speedruns" / "trainings.csv"
    lines = trainings.read_text().splitlines(keepends=True)
    trainings.write_text("".join(line for line in lines if "20260430_normuonh" not in line))
    without = run(research, "speedruns")
    assert "20260430_normuonh |" in page
    assert "20260430_normuonh |" not in without


@pytest.mark.slow
def test_the_atlas(research: Path) -> None:
    for path in (research / "atlas").glob("*.toml"):
        if path.stem != "claims":
            shorten(path, 4)
    page = run(research, "atlas")
    assert "| positions | **rope** |" in page
    assert "- **speeches-lm, against `none`**: " in page
    assert "## What would change our mind" in page, "what is written by hand stays"
    run_again(research, "atlas", page)


@pytest.mark.slow
def test_scaling(research: Path) -> None:
    shorten(research / "scaling" / "study.toml", 2)
    script = research / "scaling" / "run.py"
    script.write_text(script.read_text().replace("(32, 64, 128), (0.25, 0.5, 1.0)", "(8, 16), (0.3, 0.6)"))
    page = run(research, "scaling")
    assert "| **disentangled** | Obama | width |" in page
    run_again(research, "scaling", page)


@pytest.mark.slow
def test_the_five_reports(research: Path, data: Path) -> None:
    for name in ("speeches-classify", "speeches-lm"):
        shorten(research / "five-reports" / f"{name}.toml", 9)
    page = run(research, "five-reports", data)
    assert "| r1 | Attention to the last 8 tokens alone gives a lower perplexity than attention to all. | **" in page
    assert "its own code, repeated, fails the leak audit (M7" in page
    assert "| r4 | Shuffled heads change nothing. | **not run** |" in page
    assert re.search(r"\| r3 \| sinusoidal \| obama \| window perplexity \| 351.79 \| [\d,.]+ \[", page)
    assert "## Numbers that are possible" in page
    run_again(research, "five-reports", page, data)


@pytest.mark.slow
def test_course_studies(research: Path, data: Path) -> None:
    for path in (research / "course-studies").glob("*.toml"):
        shorten(path, 9)
    script = research / "course-studies" / "run.py"
    short = 'recipe="course", steps=3, layers=1, width=12, seed=seed'
    script.write_text(script.read_text().replace('recipe="course", seed=seed', short).replace("range(1, 6)", "(1, 2)"))
    page = run(research, "course-studies", data)
    assert "## learned vs rope vs disentangled" in page
    assert "| mean | " in (research / "course-studies" / "setting.md").read_text()
    run_again(research, "course-studies", page, data)


@pytest.mark.slow
def test_the_best(research: Path, data: Path) -> None:
    script = research / "best" / "run.py"
    text = script.read_text().replace("**changes)", "**changes, steps=3, layers=1)").replace("range(5)", "range(2)")
    script.write_text(re.sub(r'    "best-classifier-minilm": .*\n', "", text))
    page = run(research, "best", data)
    assert "| **combined** |" in page
    assert "## Language model, combined with counting" in page
    run_again(research, "best", page, data)


def test_without_data_and_records_nothing_is_lost(research: Path) -> None:
    before = (research / "best" / "README.md").read_text()
    assert run(research, "best") == before


def test_every_folder_has_its_page_and_its_script_uses_public_names_only() -> None:
    folders = [path for path in RESEARCH.iterdir() if path.is_dir() and not path.name.startswith("__")]
    assert len(folders) >= 9
    for folder in folders:
        assert (folder / "README.md").is_file()
        source = (folder / "run.py").read_text()
        assert not re.search(r"from fairtrial[. ]|import fairtrial\.", source), folder
    lines = sum(len(path.read_text().splitlines()) for path in RESEARCH.rglob("*.py"))
    assert lines <= 6000


def test_sections_are_written_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RESEARCH))
    import pages

    page = tmp_path / "page.md"
    page.write_text("# Title\n\nlead\n\n## One\n\nold\n\n### Inside\n\nold\n\n## Two\n\nkept\n\n## Records\n\nnone\n")
    pages.write_sections(page, {"One": "new", "Three": "added", "Records": "some"})
    expected = "# Title\n\nlead\n\n## One\n\nnew\n\n## Two\n\nkept\n\n## Three\n\nadded\n\n## Records\n\nsome\n"
    assert page.read_text() == expected
    assert pages.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def script(name: str) -> Any:
    specification = spec_from_file_location(f"research_{name}", RESEARCH / name / "run.py")
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look for it
    specification.loader.exec_module(module)
    return module


def test_what_the_gallery_shows_names_checks_that_exist_and_scripts_that_can_be_read() -> None:
    gallery = script("gallery")
    assert len({each.name for each in gallery.EXHIBITS}) == len(gallery.EXHIBITS)
    assert {each.fault for each in gallery.EXHIBITS} == gallery.FAULTS.keys()
    for exhibit in gallery.EXHIBITS:
        assert set(exhibit.checks) <= {check.id for check in CHECKS}
        assert "fairtrial" not in exhibit.script
        compile(exhibit.script, exhibit.name, "exec")
        compile(exhibit.file, exhibit.name, "exec")


def test_what_the_zoo_labels_names_checks_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(RESEARCH))
    zoo = script("zoo")
    assert set(zoo.CHECKS) <= {check.id for check in CHECKS}
    for label in zoo.LABELS:
        assert set(label["checks"]) <= set(zoo.CHECKS)
        assert "script" not in label or (RESEARCH / "zoo" / "scripts" / f"{label['script']}.py").is_file()
    assert (
        zoo.cell("GPT2LMHeadModel", {"M3": {"verdict": "PASS"}, "M4": {"verdict": "FAIL"}}, ("M3", "M4")) == "**FAIL**"
    )
    assert zoo.cell("GPT2LMHeadModel", {"M7": {"verdict": "PASS"}}, ("M7",)) == "ok"


def test_a_trend_is_the_slope_of_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.02 for every doubling of the width and 0.03 of the text, below the noise that all sizes share."""
    monkeypatch.syspath_prepend(str(RESEARCH))
    scaling = script("scaling")
    rng, tokens = np.random.default_rng(0), np.full((5, 40), 7)
    shared = rng.normal(size=(5, 40))
    outcomes = {}
    for width, share in product((8, 16, 32), (0.25, 1.0)):
        own = 0.02 * np.log2(width) + 0.03 * np.log2(share) + 0.001 * rng.normal(size=(5, 40))
        sides = {
            "new": {"nll": tokens * (shared + own), "tokens": tokens},
            "old": {"nll": tokens * shared, "tokens": tokens},
        }
        variants = {name: {"test": arrays} for name, arrays in sides.items()}
        outcomes[width, share] = SimpleNamespace(baseline="old", variants=variants, status={}, clusters={})
    by_width, by_text = scaling.trends_of(outcomes, "new", "test")
    assert by_width.comparison.difference.estimate == pytest.approx(0.02, abs=1e-3)
    assert by_text.comparison.difference.estimate == pytest.approx(0.03, abs=1e-3)
    assert by_width.comparison.p < 1e-6
