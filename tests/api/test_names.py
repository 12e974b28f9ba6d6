"""The public names: complete, lazy, typed, each with an example that runs."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import fairtrial as ft
from fairtrial import PUBLIC
from forked import auditing_here

ASKED = "train resume load study verdict audit audit_data baseline compare power Part part Recipe".split()


def test_the_public_names_are_there() -> None:
    assert set(ASKED) <= set(dir(ft))
    assert all(getattr(ft, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        ft.trian  # type: ignore[attr-defined]  # noqa: B018


def test_a_room_does_not_hide_the_function_of_its_name() -> None:
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


def examples_of(name: str) -> list[doctest.DocTest]:
    thing: Any = getattr(ft, name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(thing, f"ft.{name}") if test.examples]


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith("Error")])
def test_every_public_name_has_an_example_that_runs(
    name: str, library: dict[str, Any], plugins_leave: Callable[[], None], audits_here: None
) -> None:
    found = examples_of(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in found:
        test.globs.update(library)
        with auditing_here():
            runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert found or name in ("BadInput", "Interrupted"), f"{name} has no example"
