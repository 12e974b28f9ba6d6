"""A network of the user's own is trained, resumed, loaded and judged as ours are, and its code runs only where it is
named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.errors import BadInput
from fairtrial.recipe import PartChoice, Recipe, fingerprint, read_model

Call = Callable[..., Any]
HERE = Path(__file__).parents[1]
NANO = HERE / "model" / "nano_gpt.py"


def test_a_model_is_read_as_it_is_typed() -> None:
    assert read_model("my.py") == read_model("my.py:build") == PartChoice(name="my.py:build")
    assert read_model("my.py:small:width=8,rate=0.5").options == {"width": 8, "rate": 0.5}
    assert read_model("my.py:width=8") == PartChoice(name="my.py:build", options={"width": 8})
    with pytest.raises(BadInput, match="is not a model"):
        read_model("hf:")
    recipe = Recipe(model=read_model("my.py:build"))
    assert recipe.parts == ()
    assert fingerprint(recipe) != fingerprint(Recipe(parts=()))


@pytest.mark.usefixtures("plugins_leave")
def test_a_fork_of_nanogpt_is_trained_stopped_resumed_and_used(
    fairtrial: Call, tmp_path: Path, tiny: list[str], course_folder: Path
) -> None:
    settings = [word for each in tiny for word in ("--set", each)]
    how = ("lm", "--data", str(course_folder), "--model", f"{NANO}:build:width=8", "--steps", 8, *settings)
    whole = fairtrial("train", *how, "--out", tmp_path / "whole")
    assert whole.code == 0, whole.err
    trial = json.loads((tmp_path / "whole" / "trial.json").read_text())
    assert trial["plugins"].keys() == {"nano_gpt.py"}
    assert any("first weights are its own" in note for note in trial["notes"])
    stops = iter([False, False, False, True])
    with pytest.raises(ft.Interrupted):
        ft.train(
            ft.Recipe.load("lm"), str(course_folder), model=f"{NANO}:build:width=8", steps=8, settings=tiny,
            out=tmp_path / "half", stop=lambda: next(stops, True), on_event=lambda event: None,
        )  # fmt: skip
    ft.resume(tmp_path / "half", quiet=True)
    same = ("model.safetensors", "events.jsonl", "outcomes.safetensors")
    for name in same:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "half" / name).read_bytes(), name
    run = ft.load(tmp_path / "whole")
    assert len(run.generate("The", tokens=3).samples[0].tokens) == 3
    assert run.surprisal("The state of the union .").totals.tokens > 2
    assert run.parameters().total == sum(each.numel() for each in run.network.parameters())
    with pytest.raises(BadInput, match="offers no attention maps"):
        run.attention("The state")
    with pytest.raises(BadInput, match="its heads are its own"):
        run.look(["The state"])


def test_the_code_of_a_model_runs_only_where_it_is_named(
    fairtrial: Call, tmp_path: Path, tiny: list[str], course_folder: Path, plugins_leave: Callable[[], None]
) -> None:
    file, canary = tmp_path / "traced.py", tmp_path / "ran"
    file.write_text(NANO.read_text() + f"\nopen({str(canary)!r}, 'a').write('x')\n")
    settings = [word for each in tiny for word in ("--set", each)]
    out = tmp_path / "record"
    said = fairtrial(
        "train", "lm", "--data", str(course_folder), "--model", file, "--steps", 2, *settings, "--out", out
    )
    assert said.code == 0, said.err
    canary.unlink()
    (out / "traced.py").write_text(file.read_text())  # neither from the record
    plugins_leave()
    for command in (("generate", out, "The"), ("audit", out), ("show", out), ("train", out / "recipe.toml")):
        said = fairtrial(*command)
        assert said.code == (0 if command[0] == "show" else 2), command
        assert not canary.exists(), command
    assert "traced.py" in said.err
    file.write_text(file.read_text() + "\n# changed\n")
    assert fairtrial("generate", out, "The", "--with", file).code == 2
