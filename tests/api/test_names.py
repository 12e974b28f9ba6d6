"""The public names: complete, lazy, typed, each with an example that runs."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial import PUBLIC
from fairtrial.plugins import run_file
from forked import auditing_here

ROOT = Path(__file__).parents[2]

ASKED = "train resume load study verdict audit audit_data baseline compare power Part part Recipe".split()


def test_the_public_names_are_there() -> None:
    assert set(ASKED) <= set(dir(ft))
    assert all(getattr(ft, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        ft.trian  # type: ignore[attr-defined]  # noqa: B018


def test_a_package_does_not_hide_the_function_of_its_name() -> None:
    import fairtrial.audit.run
    import fairtrial.study.run  # noqa: F401

    assert inspect.isfunction(ft.study)
    assert inspect.isfunction(ft.audit)


def test_importing_fairtrial_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, time\nbegun = time.perf_counter()\nimport fairtrial\nseconds = time.perf_counter() - begun\n"
        "dir(fairtrial)\nloaded = {'torch', 'numpy', 'scipy', 'rich', 'jinja2'} & set(sys.modules)\n"
        "assert not loaded, loaded\nassert len(sys.modules) < 120, len(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


build = run_file("docs_build", ROOT / "docs" / "build.py", (ROOT / "docs" / "build.py").read_bytes())
DOCUMENTED: dict[str, Any] = {f"ft.{name}": name for name in PUBLIC} | {
    name: package for package, names in build.RESULTS.items() for name in names
}


def docs_of(name: str) -> dict[str, str]:
    """Its docstring, and those of its methods and properties."""
    known = DOCUMENTED[name]
    thing = getattr(ft, known) if name.startswith("ft.") else getattr(import_module(f"fairtrial.{known}"), name)
    own = build.members(thing) if isinstance(thing, type) else ()
    return {name: inspect.getdoc(thing)} | {f"{name}.{each}": build.function_of(own).__doc__ for each, own in own}


# the demo's command has a test of its own
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "ft.demo" else []) for name in DOCUMENTED]
)
def test_every_public_name_has_an_example_that_runs(
    name: str, library: dict[str, Any], plugins_leave: Callable[[], None]
) -> None:
    docs = docs_of(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    parse = doctest.DocTestParser().get_doctest
    tests = [parse(doc, library.copy(), place, f"<{place}>", 0) for place, doc in docs.items()]
    with auditing_here():
        for test in tests:
            runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert name in {test.name for test in tests if test.examples}, "without an example"


def test_the_references_are_up_to_date_and_name_everything() -> None:
    for name, write in build.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == write(), f"{name}: python docs/build.py writes it again"
    page = (ROOT / "docs" / "api.md").read_text()
    assert all(f"\n### {name}\n" in page for name in DOCUMENTED)
