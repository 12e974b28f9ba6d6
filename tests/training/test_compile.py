"""`training.compile`: the same losses as without it, the same bits after a stop, and clear refusals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fairtrial.errors import BadInput, Interrupted
from fairtrial.model import compiled
from fairtrial.model.network import LanguageModel
from fairtrial.prepare import prepare
from fairtrial.recipe import PartChoice, Recipe, Shape, Training, fingerprint, with_settings
from fairtrial.study.design import check_same_items
from fairtrial.trial import load, resume_trial, run_trial


@pytest.mark.slow
def test_compiled_steps_give_the_usual_losses_and_resume_to_the_same_bits(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    for task in ("classify", "lm"):
        usual = tiny_recipe(task, "shape.dropout=0.2")
        recipe = with_settings(usual, ["training.compile=true"])
        here, whole = run_trial(usual, 0, tmp_path / f"{task}-usual"), run_trial(recipe, 0, tmp_path / task)
        stops = iter([False] * 4 + [True] * 99)
        with pytest.raises(Interrupted):
            run_trial(recipe, 0, tmp_path / f"{task}-again", stop=lambda stops=stops: next(stops))
        torch._dynamo.reset()  # as in a new process
        again = resume_trial(tmp_path / f"{task}-again")
        assert again.result["model_sha256"] == whole.result["model_sha256"] != here.result["model_sha256"]
        losses = [[row["loss"] for row in record.events() if "loss" in row] for record in (whole, here)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
        assert whole.trial["environment"]["compiled"] == "torch.compile"
        assert "compiled" not in here.trial["environment"]
        assert not load(whole).network.body.compiled
    assert not list(scratch.glob("fairtrial-compile-*"))


def test_without_a_compiler_it_is_refused_and_the_network_is_as_before(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._inductor.config as inductor

    torch._dynamo.reset()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(inductor.cpp, "cxx", (str(tmp_path / "no-compiler"),))
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    with pytest.raises(BadInput, match=r"training\.compile: torch cannot compile") as refused:
        run_trial(tiny_recipe("lm", "training.compile=true"), 0, tmp_path / "record")
    assert "C++ compiler" in refused.value.hint
    assert not (tmp_path / "record").exists()
    assert not list(tmp_path.glob("fairtrial-compile-*"))


def test_compiling_leaves_buffers_and_gradients_as_they_were() -> None:
    network = LanguageModel(Shape(layers=1, width=8, heads=2, hidden=8), [PartChoice(name="experts")], 9).eval()
    before, ids = [buffer.clone() for buffer in network.buffers()], torch.ones(2, 5, dtype=torch.long)

    def step() -> None:
        network.body.compiled = False  # what is compiled does not matter here
        objective, _ = network.loss(ids, None, ids, 0.0, 1.0)
        objective.backward()
        assert any(not torch.equal(one, other) for one, other in zip(before, network.buffers(), strict=True))

    compiled.compile_blocks(network, step)
    assert all(torch.equal(one, other) for one, other in zip(before, network.buffers(), strict=True))
    assert all(weight.grad is None for weight in network.parameters())
    assert not network.training


def test_what_cannot_be_compiled_or_compared_is_refused(tiny_recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(BadInput, match="exclude each other"):
        Training(compile=True, save_memory=True)
    with pytest.raises(BadInput, match=r"differ in training\.compile"):
        check_same_items({"one": Recipe(), "other": with_settings(Recipe(), ["training.compile=true"])})
    assert fingerprint(Recipe()) == fingerprint(with_settings(Recipe(), ["training.compile=false"]))
    assert fingerprint(Recipe()) != fingerprint(with_settings(Recipe(), ["training.compile=true"]))
    assert not prepare(tiny_recipe("lm"), 0).task.network.body.compiled
