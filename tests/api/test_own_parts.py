"""A part of one's own, written in a notebook or a script, is kept with the record as one file."""

from __future__ import annotations

import linecache
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_data import SMALL, reviews_of

import fairtrial as ft
from fairtrial.audit.subject import plans_of_part
from fairtrial.plugins import load_file, source_of
from fairtrial.recipe import PartChoice

Leave = Callable[[], None]
CELL = '''
import math
import torch
import fairtrial as ft
from torch import tensor as make
from fairtrial.parts.alibi import slopes

RATES = (0.5, {more})
UNUSED = make([1.0])

def rate_of(head):
    return RATES[head % 2] + math.exp(-30)

class Fade(ft.Part):
    """Scores fall with distance."""

    relative = True

    def __init__(self, shape, rate: float = 1.0):
        super().__init__(shape)
        self.rate = rate
        UNUSED = [rate_of(head) for head in range(shape.heads)]
        self.register_buffer("rates", make(UNUSED)[:, None, None] * rate, persistent=False)

    def bias(self, context):
        return -self.rates * context.distance
'''


def run_cell(text: str, number: int = 1) -> dict[str, Any]:
    """As IPython does: a cell's text is in linecache under a name that is no file, its names are those of __main__."""
    name = f"/tmp/ipykernel_{number}/{number}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), names)
    return names


@pytest.fixture
def fade(plugins_leave: Leave) -> type[ft.Part]:
    return run_cell(CELL.format(more=0.25))["Fade"]


def test_the_source_holds_what_the_part_uses_and_nothing_else(fade: type[ft.Part]) -> None:
    text = source_of(fade, "fade")
    assert "RATES = (0.5, 0.25)" in text
    assert "from torch import tensor as make" in text
    assert text.index("def rate_of") < text.index("class Fade")
    assert "slopes" not in text
    assert "UNUSED = make" not in text, "a local name hides the notebook's"


def test_a_record_keeps_the_source_and_is_resumed_with_it_in_another_process(
    fade: type[ft.Part], plugins_leave: Leave, tmp_path: Path
) -> None:
    calls = iter([False] * 5)
    with pytest.raises(ft.Interrupted, match="all is saved"):
        ft.train("classify", reviews_of(), parts=[fade(rate=2.0)], steps=12, out=tmp_path / "run",
                 options=ft.RunOptions(stop=lambda: next(calls, True)), **SMALL)  # fmt: skip
    whole = ft.train("classify", reviews_of(), parts=[fade(rate=2.0)], steps=12, out=tmp_path / "whole", **SMALL)
    kept = tmp_path / "run" / "parts" / "fade.py"
    assert kept.read_text() == source_of(fade, "fade")
    plugins_leave()  # as in a new process
    with pytest.raises(ft.BadInput, match=r"needs code from fade\.py") as error:
        ft.resume(tmp_path / "run")
    assert f"--with {kept}" in error.value.hint, "code in a record is never run unless it is named"
    resumed = ft.resume(tmp_path / "run", plugins=[kept])
    assert resumed.record.result.model_sha256 == whole.record.result.model_sha256
    assert resumed.recipe.parts[0].options == {"rate": 2.0}


def test_a_cell_that_is_run_again_replaces_its_part(plugins_leave: Leave, tmp_path: Path) -> None:
    old, new = (run_cell(CELL.format(more=more), n)["Fade"] for n, more in enumerate((0.25, 0.125)))
    first = ft.train("classify", reviews_of(), parts=[old], steps=2, **SMALL)
    second = ft.train("classify", reviews_of(), parts=[new], steps=2, **SMALL)
    assert first.folder != second.folder
    assert ft.load(second.folder).seed == 0
    with pytest.raises(ft.BadInput, match=r"fade\.py has changed"):
        ft.load(first.folder)


def test_a_decorated_part_keeps_its_name(plugins_leave: Leave) -> None:
    text = CELL.format(more=0.25).replace("class Fade", '@ft.part("fade-out")\nclass Fade')
    kind = run_cell(text)["Fade"]
    kind = run_cell(text, 2)["Fade"]  # the cell is run twice
    assert kind.choice().name == "fade-out"
    assert '@ft.part("fade-out")' in source_of(kind, "fade-out")


def test_a_part_without_a_source_or_with_a_tensor_from_outside_is_refused(plugins_leave: Leave, tmp_path: Path) -> None:
    bare: dict[str, Any] = {"__name__": "__main__"}
    exec("import fairtrial as ft\nclass Bare(ft.Part):\n    def bias(self, context):\n        return None\n", bare)
    with pytest.raises(ft.BadInput, match="the source of Bare is not available") as error:
        ft.train("classify", reviews_of(), parts=[bare["Bare"]], out=tmp_path / "run", steps=1, **SMALL)
    assert "notebook" in error.value.hint
    text = "import torch, fairtrial as ft\nTABLE = torch.ones(3)\nclass Uses(ft.Part):\n    def bias(self, context):\n"
    with pytest.raises(ft.BadInput, match="Uses uses 'TABLE', a Tensor"):
        source_of(run_cell(text + "        return TABLE\n")["Uses"], "uses")


def test_a_part_is_its_class_its_choice_or_as_it_is_typed() -> None:
    from fairtrial.parts import Rope, Window

    wanted = PartChoice(name="window", options={"size": 8})
    for given in (
        Window(size=8),
        [Window(size=8)],
        "window:size=8",
        ["window:size=8"],
        [{"name": "window", "size": 8}],
    ):
        assert ft.Recipe().with_(parts=given).parts == (wanted,)
        alone = given[0] if isinstance(given, list) else given
        if not isinstance(alone, dict):
            assert all(plan.choices == (wanted,) for plan in plans_of_part(alone)), "it is audited with its options"
    assert ft.Recipe().with_(parts=["window:size=8", Rope]).parts == (wanted, PartChoice(name="rope"))
    with pytest.raises(ImportError):
        from fairtrial.parts import Rpoe  # noqa: F401
    with pytest.raises(ft.BadInput, match="'window:' is not a part"):
        ft.Recipe().with_(parts=["window:"])
    for nothing, words in ((None, "nothing to audit was given"), (3, "3 cannot be audited")):
        with pytest.raises(ft.BadInput, match=words):
            ft.audit(nothing)


def test_a_built_in_name_cannot_be_taken(plugins_leave: Leave) -> None:
    with pytest.raises(ft.BadInput, match="two parts are called 'rope'"):
        ft.part("rope")(type("Rope", (ft.Part,), {}))


def test_the_kept_file_is_a_plugin(fade: type[ft.Part], plugins_leave: Leave, tmp_path: Path) -> None:
    path = tmp_path / "fade.py"
    path.write_text(source_of(fade, "fade"))
    plugins_leave()
    assert load_file(path) == ["fade"]


def test_a_new_process_does_not_import_the_users_script(monkeypatch: pytest.MonkeyPatch) -> None:
    from multiprocessing import spawn

    from fairtrial.engines.processes import without_main

    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/somewhere/script.py", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    assert "init_main_from_path" in spawn.get_preparation_data("job")
    with without_main():
        assert not {"init_main_from_path", "init_main_from_name"} & spawn.get_preparation_data("job").keys()


@pytest.mark.slow
def test_a_script_without_a_guard_runs_a_study_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        CELL.format(more=0.25)
        + f"print('script runs')\nreviews = {reviews_of()!r}\n"
        + f"study = ft.study(['none', Fade], reviews, seeds=2, steps=4, out='study', **{SMALL!r})\n"
        + "print(study.run('fade', seed=1).recipe.parts[0].name, study.verdict.name)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "script runs\nfade none vs fade\n"
    assert not done.stderr
