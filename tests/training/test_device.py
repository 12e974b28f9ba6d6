"""Devices and precisions: the same weights and the same dropout everywhere, and no tensor on the wrong device."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretend_device import DEVICE, Elsewhere, PretendDevice

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.audit import conditions
from fairtrial.audit import subject as subject_module
from fairtrial.audit.run import audit
from fairtrial.audit.subject import plan_of_recipe, subject_of
from fairtrial.data.batches import Batch
from fairtrial.engines import InProcess
from fairtrial.errors import BadInput, Interrupted
from fairtrial.finding import NOT_ASKED, PASS
from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel
from fairtrial.model.part import Part, parts
from fairtrial.recipe import PartChoice, Recipe, Shape, Training
from fairtrial.study.run import run_study
from fairtrial.study.tables import study_from
from fairtrial.training import device as module
from fairtrial.training.optimizer import make_optimizer
from fairtrial.training.scoring import as_tensors
from fairtrial.trial import resume_trial, run_trial
from sealed import events_of

ENTRIES, LENGTHS = 30, np.array([9, 4, 12])


def batch_of(kind: type) -> Batch:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, ENTRIES, (len(LENGTHS), max(LENGTHS)))
    answers = rng.integers(0, 3, len(LENGTHS)) if kind is Classifier else rng.integers(1, ENTRIES, ids.shape)
    return Batch(ids, LENGTHS, answers, len(LENGTHS))


def stepped(kind: type, choices: list[PartChoice], device: torch.device) -> tuple[float, list[torch.Tensor]]:
    """The loss and the weights after one step of training, with dropout, on a padded batch."""
    eager = 0.2 if kind is Classifier else 0.0  # weights that are dropped: no fused kernel
    shape = Shape(layers=2, heads=2, width=16, hidden=16, length=12, dropout=0.3, attention_dropout=eager)
    network = kind(shape, choices, ENTRIES, **({"classes": 3} if kind is Classifier else {}), seed=1)
    network.to(device).train()
    seed_dropout(dropouts_of(network), 1, 1)
    optimizer = make_optimizer(network, Training(optimizer="sgd"))
    for group in optimizer.param_groups:
        group.update(lr=0.01, fused=False)
    objective, nats = network.loss(*as_tensors(batch_of(kind), device), 0.1, 1.0)
    objective.backward()
    optimizer.step()
    return float(nats), [weight.detach().cpu() for weight in network.parameters()]


@pytest.mark.parametrize("kind", [Classifier, LanguageModel])
def test_every_part_trains_on_another_device_as_on_the_cpu(kind: type) -> None:
    for name in parts.list():
        part = parts.find(name)
        if (part.decoder_only and kind is Classifier) or not part.__module__.startswith("fairtrial.parts."):
            continue
        if kind is LanguageModel and ({"pool", "prefix"} & part.hooks):
            continue
        choices = [PartChoice(name=name)]
        nats, weights = stepped(kind, choices, torch.device("cpu"))
        with PretendDevice():
            there, moved = stepped(kind, choices, DEVICE)
        assert there == pytest.approx(nats, rel=1e-6), name
        for one, other in zip(weights, moved, strict=True):
            assert torch.allclose(one, other, atol=1e-6), name


def test_a_masked_model_trains_there_too_and_a_tensor_on_the_wrong_device_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with PretendDevice():
        stepped(MaskedModel, [PartChoice(name="learned")], DEVICE)

    class Stray(Part):
        def bias(self, context: Any) -> torch.Tensor:
            return -torch.arange(len(context.keys)).float().expand(self.shape.heads, len(context.queries), -1)

    parts.add("stray")(Stray)
    try:
        stepped(LanguageModel, [PartChoice(name="stray")], torch.device("cpu"))
        with PretendDevice(), pytest.raises(RuntimeError, match=r"a CPU tensor .* meets the device's"):
            stepped(LanguageModel, [PartChoice(name="stray")], DEVICE)
    finally:
        parts.drop("stray")


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_trial_on_another_device_scores_as_on_the_cpu_and_resumes(
    task: str, tiny_recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe(
        task, "shape.dropout=0.2", "training.optimizer=sgd", "shape.tied=false"
    )  # the pretended one unties
    here = run_trial(recipe, 0, tmp_path / "here")
    monkeypatch.setattr(module, "choose_device", lambda *asked: DEVICE)
    stops = iter([False] * 4 + [True] * 99)
    with PretendDevice():
        with pytest.raises(Interrupted):
            run_trial(recipe, 0, tmp_path / "there", stop=lambda: next(stops))
        there = resume_trial(tmp_path / "there")
    assert there.trial.environment.device == "meta"
    assert here.trial.environment.device == "cpu"
    one, other = (next(iter(record.result.tests.values())) for record in (here, there))
    metric = "accuracy" if task == "classify" else "perplexity"
    assert other.figure(metric) == pytest.approx(one.figure(metric), rel=1e-5)
    ours, theirs = (
        {row["step"]: row["loss"] for row in events_of(record) if "loss" in row} for record in (here, there)
    )
    assert theirs == pytest.approx(ours, rel=1e-5)


def test_bfloat16_trains_scores_and_resumes_to_the_same_bits(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    for task in ("classify", "lm", "mlm"):
        half, full = (tiny_recipe(task, f"training.precision={kind}") for kind in ("bfloat16", "float32"))
        whole, usual = run_trial(half, 0, tmp_path / task), run_trial(full, 0, tmp_path / f"{task}-usual")
        stops = iter([False] * 4 + [True] * 99)
        with pytest.raises(Interrupted):
            run_trial(half, 0, tmp_path / f"{task}-again", stop=lambda stops=stops: next(stops))
        again = resume_trial(tmp_path / f"{task}-again")
        assert again.result.model_sha256 == whole.result.model_sha256 != usual.result.model_sha256
        assert whole.trial.environment.precision == "bfloat16"
        losses = [[row["loss"] for row in events_of(record) if "loss" in row] for record in (whole, usual)]
        assert losses[0] == pytest.approx(losses[1], rel=0.02)
        assert losses[0] != losses[1]


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_a_study_in_bfloat16_ends_with_a_verdict(course_folder: Path, tiny: list[str], tmp_path: Path) -> None:
    variants = {"learned": {"parts": ["learned"]}, "rope": {"parts": ["rope"]}}
    small = dict(pair.split("=") for pair in tiny) | {"training.duration": "8 steps", "training.precision": "bfloat16"}
    table = {"data": str(course_folder), "tasks": ["lm"], "seeds": 2, "variants": variants}
    study = study_from(
        table | {"set": {name: int(value) if value.isdigit() else value for name, value in small.items()}}
    )
    run_study(study, tmp_path / "study", InProcess())
    rows = json.loads((tmp_path / "study/verdict.json").read_text())["tasks"]["lm"]["comparisons"]
    assert len(rows) == 1
    trials = [json.loads(path.read_text()) for path in (tmp_path / "study").rglob("trial.json")]
    assert {trial["environment"]["precision"] for trial in trials} == {"bfloat16"}


def test_devices_that_are_unknown_or_missing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"training\.device = 'gpu' is not known"):
        Training(device="gpu")
    monkeypatch.setattr(module, "is_there", lambda name: False)
    with pytest.raises(BadInput, match="has no device 'cuda:1'"):
        module.choose_device("cuda:1", 1, 1)
    assert module.choose_device("auto", 10**9, 10**4).type == "cpu"
    monkeypatch.setattr(module, "is_there", lambda name: name == "cuda")
    small, large = (module.choose_device("auto", size, 512) for size in (10**6, 10**8))
    assert (small.type, large.type) == ("cpu", "cuda")
    assert not isinstance(torch.zeros(2), Elsewhere)


def test_an_audit_asks_once_more_on_the_device_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(Part):
        """Right on the CPU, where the device's branch sees the future."""

        def score(self, scores: torch.Tensor, q: torch.Tensor, k: torch.Tensor, context: Any) -> torch.Tensor:
            return scores + (0.0 if scores.device.type == "cpu" else 3 * k.mean((2, 3), keepdim=True) * scores)

    parts.add("careless")(Careless)
    asked: list[str] = []
    monkeypatch.setattr(conditions, "is_there", lambda name: asked.append(name) or name == str(DEVICE))
    monkeypatch.setattr(subject_module, "choose_device", lambda *told: DEVICE)
    try:
        for name, passed in (("rope", True), ("learned", True), ("careless", False)):
            recipe = Recipe(
                task="lm", parts=(PartChoice(name=name),), shape=Shape(layers=1, width=8, heads=2, hidden=8)
            )
            subject = subject_of(plan_of_recipe(recipe))
            with PretendDevice():
                (finding,) = audit(subject, only=["G1"])
            assert (finding.verdict == PASS) is passed, finding
        elsewhere = dataclasses.replace(subject, plan=dataclasses.replace(subject.plan, device="cuda:1"))
        (finding,) = audit(elsewhere, only=["G1"])
        assert (finding.verdict, finding.meaning) == (NOT_ASKED, "This machine has no device cuda:1.")
    finally:
        parts.drop("careless")
    here = dataclasses.replace(subject, plan=dataclasses.replace(subject.plan, device="cpu"))
    assert asked == [str(DEVICE)] * 3 + ["cuda:1"]
    assert audit(here, only=["G1"]) == []  # nothing is done twice
    assert asked == [str(DEVICE)] * 3 + ["cuda:1"]
