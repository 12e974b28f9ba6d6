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
from fairtrial.recipe import PartChoice, Recipe, fingerprint, read_model, read_settings, split_model

Call = Callable[..., Any]
HERE = Path(__file__).parents[1]
NANO = HERE / "model" / "nano_gpt.py"


def test_a_model_is_read_as_it_is_typed() -> None:
    assert read_model("my.py") == read_model("my.py:build") == PartChoice(name="my.py:build")
    assert read_model("my.py:small:width=8,rate=0.5").options == {"width": 8, "rate": 0.5}
    assert read_model("C:\\mine\\my.py:small") == PartChoice(name="C:\\mine\\my.py:small")  # a drive's colon
    assert read_model("D:/my.py:width=8") == PartChoice(name="D:/my.py:build", options={"width": 8})
    assert split_model(read_model("D:/my.py")) == (PartChoice(name="my.py:build"), ["D:/my.py"])
    assert read_model("hf:C:\\saved") == PartChoice(name="hf:C:\\saved")
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
    assert any("initial weights are not shared" in note for note in trial["notes"])
    stops = iter([False, False, False, True])
    with pytest.raises(ft.Interrupted):
        ft.train(
            ft.Recipe.load("lm"),
            str(course_folder),
            model=f"{NANO}:build:width=8",
            steps=8,
            **read_settings(tiny),
            out=tmp_path / "half",
            options=ft.RunOptions(stop=lambda: next(stops, True), on_event=lambda event: None),
        )
    ft.resume(tmp_path / "half", quiet=True)
    same = ("model.safetensors", "events.jsonl", "outcomes.safetensors")
    for name in same:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "half" / name).read_bytes(), name
    run = ft.load(tmp_path / "whole")
    assert len(run.generate("The", tokens=3).samples[0].tokens) == 3
    assert run.surprisal("The state of the union .").counted > 2
    assert run.parameters().total == sum(each.numel() for each in run.network.parameters())
    assert sum(chance for _, chance in run.next_tokens("The state", None)) == pytest.approx(1)
    for asked in (run.attention, run.look):
        with pytest.raises(BadInput, match="offers no attention maps"):
            asked("The state")


def test_look_shows_the_heads_of_a_network_that_offers_maps(
    fairtrial: Call, tmp_path: Path, tiny: list[str], course_folder: Path
) -> None:
    pytest.importorskip("transformers")
    model = "hf:GPT2LMHeadModel:n_layer=2"
    run = ft.train(
        "lm",
        str(course_folder),
        model=model,
        steps=2,
        **read_settings(tiny),
        out=tmp_path / "gpt2",
        quiet=True,
    )
    said = fairtrial("look", tmp_path / "gpt2", "The state of the union", "--head", 1, "--format", "svg")
    assert said.code == 0, said.err
    assert (tmp_path / "gpt2-look" / "text-1.svg").is_file()
    with pytest.raises(BadInput, match="there is no layer 2"):
        run.look(["The state"], layer=2, out=tmp_path / "look")


@pytest.mark.usefixtures("plugins_leave")
def test_a_classifier_that_takes_no_padding_predicts(tmp_path: Path, tiny: list[str]) -> None:
    """A bag of words."""
    (tmp_path / "bag.py").write_text(
        "from torch import nn\n\nclass Bag(nn.Module):\n"
        "    def __init__(self, vocabulary, classes):\n        super().__init__()\n"
        "        self.tokens, self.out = nn.Embedding(vocabulary, 8), nn.Linear(8, classes, bias=False)\n\n"
        "    def forward(self, ids):\n        return self.out(self.tokens(ids).mean(1))\n\n"
        "def build(vocabulary, length, classes, seed):\n    return Bag(vocabulary, classes)\n"
    )
    texts = [
        {"text": f"{word} {' '.join(f'{word[0]}{n}{k}' for k in range(6 + n % 4))}", "label": word}
        for n in range(20)
        for word in ("good", "bad")
    ]
    run = ft.train(
        "classify",
        texts,
        model=str(tmp_path / "bag.py"),
        steps=3,
        **read_settings(tiny),
        out=tmp_path / "run",
        quiet=True,
    )
    found = run.predict(["good film", "a bad , bad film again"])
    assert len(found.guesses) == 2
    assert "weight matrices only" not in str(run.parameters())


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
    assert fairtrial("inspect", "generate", out, "The", "--with", file).code == 2


@pytest.mark.second
@pytest.mark.usefixtures("audits_here", "plugins_leave")
def test_a_study_file_names_a_model_and_its_verdict_says_that_first_weights_are_not_shared(
    tmp_path: Path, course_folder: Path, fairtrial: Call, tiny: list[str], audits_here: None
) -> None:
    (tmp_path / "nano_gpt.py").write_text(NANO.read_text())
    (tmp_path / "study.toml").write_text(
        f"""
        data = {str(course_folder)!r}
        tasks = ["lm"]
        seeds = 2
        [variants.learned]
        parts = ["learned"]
        [variants.nano]
        model = "nano_gpt.py:build:width=8"
        [set]
        {
            chr(10).join(
                f"{name!r} = {json.dumps(value) if not value.isdigit() else value}"
                for name, _, value in (each.partition("=") for each in tiny)
            )
        }
        """
    )
    said = fairtrial("study", tmp_path / "study.toml", "--out", tmp_path / "out", "--engine", "here")
    assert said.code == 0, said.err
    assert "failed" not in said.out + said.err, "a network without maps has none on the page"
    told = json.loads((tmp_path / "out" / "verdict.json").read_text())
    (line,) = [each["text"] for each in told["sentences"] if "but not initial weights" in each["text"]]
    assert "nano_gpt.py:build" in line
    assert told["tasks"]["lm"]["comparisons"][0]["variant"] == "nano"
    trained = json.loads(next((tmp_path / "out").glob("trials/lm/nano/*/trial.json")).read_text())
    other = json.loads(next((tmp_path / "out").glob("trials/lm/learned/*/trial.json")).read_text())
    assert trained["counts"]["documents"] == other["counts"]["documents"], "the same splits"


class Stepped:
    """Source of a network with a loss and an optimizer of its own, whose weights move by momentum."""

    source = (
        NANO.read_text()
        + """

class Trained(GPT):
    fairtrial = {"loss": "objective", "optimizer": "steps"}

    def objective(self, ids, mask, answers):
        logits, _ = self(ids)
        return F.cross_entropy(logits[answers >= 0], answers[answers >= 0]) + 1e-3 * logits.square().mean()

    def steps(self, learning_rate, weight_decay):
        return torch.optim.SGD(self.parameters(), lr=10 * learning_rate, momentum=0.9)


def trained(vocabulary, length, classes, seed):
    return Trained(vocabulary, length, 8, 1)
"""
    )


@pytest.mark.usefixtures("plugins_leave")
def test_with_a_loss_and_an_optimizer_of_its_own_it_resumes_to_the_same_bits_and_is_proven(
    tmp_path: Path, course_folder: Path, tiny: list[str]
) -> None:
    (tmp_path / "mine.py").write_text(Stepped.source)

    def train(name: str, *stops: bool) -> None:
        asked = iter(stops)
        ft.train(
            ft.Recipe.load("lm"),
            str(course_folder),
            model=f"{tmp_path / 'mine.py'}:trained",
            steps=6,
            **read_settings(tiny),
            out=tmp_path / name,
            options=ft.RunOptions(stop=lambda: next(asked, bool(stops)), on_event=lambda event: None),
        )

    train("whole")
    with pytest.raises(ft.Interrupted):
        train("half", False, False, True)
    ft.resume(tmp_path / "half", quiet=True)
    for name in ("model.safetensors", "events.jsonl", "outcomes.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "half" / name).read_bytes(), name
    (checked,) = ft.verify(tmp_path / "half").records
    assert checked.state == "proven"


LION = """
import torch

import fairtrial as ft


class Lion(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["momentum"], state["count"] = torch.zeros_like(weight), 0
                state["count"] += 1  # a number of Python's: a checkpoint keeps it, too
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                update = state["momentum"].lerp(weight.grad, 0.1).sign() / (1 - 0.9 ** state["count"])
                weight.add_(update, alpha=-group["lr"])
                state["momentum"].lerp_(weight.grad, 0.01)


@ft.optimizer("lion")
def lion(groups, learning_rate):
    return Lion(groups, {"lr": 0.1 * learning_rate})
"""


def test_an_optimizer_of_ones_own_resumes_to_the_same_bits_and_is_proven(
    tmp_path: Path, course_folder: Path, tiny: list[str], plugins_leave: Callable[[], None]
) -> None:
    file = tmp_path / "lion.py"
    file.write_text(LION)
    recipe = ft.Recipe.load("lm").with_(data=str(course_folder), optimizer="lion", steps=6)

    def train(name: str, *stops: bool) -> None:
        asked = iter(stops)
        options = ft.RunOptions(stop=lambda: next(asked, bool(stops)), on_event=lambda event: None)
        ft.train(recipe, **read_settings(tiny), plugins=[file], out=tmp_path / name, options=options)

    train("whole")
    with pytest.raises(ft.Interrupted):
        train("half", False, False, True)
    plugins_leave()  # as in a new process
    with pytest.raises(BadInput, match=r"needs code from lion\.py"):
        ft.resume(tmp_path / "half", quiet=True)
    ft.resume(tmp_path / "half", plugins=[file], quiet=True)
    for name in ("model.safetensors", "events.jsonl", "outcomes.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "half" / name).read_bytes(), name
    (checked,) = ft.verify(tmp_path / "half", plugins=[file]).records
    assert checked.state == "proven"
    ft.train(recipe.with_(optimizer="sgd"), **read_settings(tiny), out=tmp_path / "other", quiet=True)
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != (
        tmp_path / "half" / "model.safetensors"
    ).read_bytes()
    plugins_leave()
    file.write_text(LION.replace("0.99", "0.9").replace("0.1)", "0.2)"))
    with pytest.raises(BadInput, match=r"lion\.py has changed"):
        ft.load(tmp_path / "half", plugins=[file])


def test_an_unknown_optimizer_is_refused_with_those_that_are_known(
    tmp_path: Path, course_folder: Path, fairtrial: Call, plugins_leave: Callable[[], None]
) -> None:
    (tmp_path / "lion.py").write_text(LION)
    asked = ("train", "lm", "--data", course_folder, "--out", tmp_path / "run")
    said = fairtrial(*asked, "--set", "training.optimizer=adamm")
    assert (said.code, "did you mean 'adam'?" in said.err) == (2, True)
    said = fairtrial(*asked, "--set", "training.optimizer=lionn", "--with", tmp_path / "lion.py")
    assert (said.code, "did you mean 'lion'?" in said.err) == (2, True)
    said = fairtrial(*asked, "--set", "training.optimizer=xyz")
    assert "there is: adamw, muon, adam, adagrad, sgd" in said.err
    assert not (tmp_path / "run").exists()
    said = fairtrial(
        "study", "--data", course_folder, "--variants", "none", "rope", "--set", "training.optimizer=adamm"
    )
    assert (said.code, "did you mean 'adam'?" in said.err) == (2, True)


@pytest.mark.second
def test_a_study_compares_optimizers_and_discloses_the_own_one(
    tmp_path: Path, course_folder: Path, fairtrial: Call, tiny: list[str], audits_here: None, plugins_leave: Any
) -> None:
    (tmp_path / "lion.py").write_text(LION)
    (tmp_path / "study.toml").write_text(
        f"""
        data = {str(course_folder)!r}
        tasks = ["lm"]
        seeds = 2
        [variants.adamw]
        parts = ["rope"]
        [variants.lion]
        parts = ["rope"]
        with = ["lion.py"]
        "training.optimizer" = "lion"
        """
    )
    settings = [word for setting in tiny for word in ("--set", setting)]
    out = tmp_path / "out"
    said = fairtrial("study", tmp_path / "study.toml", "--out", out, "--engine", "here", *settings)
    assert said.code == 0, said.err
    told = json.loads((out / "verdict.json").read_text())
    lines = [each["text"] for each in told["sentences"] if each["text"].startswith("Own training code")]
    wanted = "lion uses its own optimizer. What is compared is network and optimizer, not the network alone."
    assert lines == [f"Own training code: {wanted}"], "and nothing is said of adamw, which is ours"
