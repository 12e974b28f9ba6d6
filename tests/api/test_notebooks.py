"""The notebooks in docs/notebooks: stored with outputs, small, of no particular machine; and they run."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from test_names import build

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NAMES = ["is-rotary-better", "your-own-part", "look-inside", "judge-results-from-elsewhere"]
QUICK = "judge-results-from-elsewhere"  # trains nothing
PLACES = re.compile(r"(?<![\w.])/(?:work|root|home|tmp|Users|var)/")


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts_of(cell: Any) -> list[str]:
    """What a cell printed or gave, as text."""
    return [each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell.outputs]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_as_it_ran(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    content = path.read_text()
    notebook = nbformat.reads(content, as_version=4)
    nbformat.validate(notebook)
    cells = code_of(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "from top to bottom, in one go"
    assert len(content) < 400_000
    assert not PLACES.search(content)
    assert "<script" not in content
    for cell in cells:
        assert all(each.output_type != "error" for each in cell.outputs)
        shows = isinstance(ast.parse(cell.source).body[-1], ast.Expr)
        assert any(texts_of(cell)) == shows, cell.source
    assert notebook.cells[0].source.startswith("# ")


def test_there_are_no_others() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


def test_arrays_are_judged_as_the_notebook_says(tmp_path: Path) -> None:
    path = FOLDER / f"{QUICK}.ipynb"
    ran = build.run_notebook(path, tmp_path)
    stored = nbformat.read(path, as_version=4)
    assert [texts_of(cell) for cell in code_of(ran)] == [texts_of(cell) for cell in code_of(stored)]
    assert not list(tmp_path.iterdir()), "nothing is written"


@pytest.mark.second
@pytest.mark.parametrize("name", [name for name in NAMES if name != QUICK])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    ran = build.run_notebook(FOLDER / f"{name}.ipynb", tmp_path)
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    kinds = [
        [[sorted(each.get("data", ())) for each in cell.outputs] for cell in code_of(one)] for one in (ran, stored)
    ]
    assert kinds[0] == kinds[1]
