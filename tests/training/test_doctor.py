"""`fairtrial doctor`: passes here, notices what is broken, names no person. A GPU's checks run on the CPU and on a
pretended GPU."""

from __future__ import annotations

import getpass
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pretend_device import DEVICE, PretendDevice

import fairtrial as ft
from fairtrial import checkup as module
from fairtrial.training import device as devices


def results(checkup: module.Checkup) -> dict[str, bool | None]:
    return {check.name: check.passed for check in checkup.checks}


@pytest.mark.second
def test_a_sound_installation_passes_and_its_report_names_nobody(fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("doctor", "--device", "cpu", "--json")
    assert said.code == 0
    told = json.loads(said.out)
    passed = {check["name"]: check["passed"] for check in told["checks"]}
    judged = [
        "repeat lm",
        "resume lm",
        "repeat classify",
        "resume classify",
        "cpu agrees",
        "cpu repeats",
        "cpu bfloat16",
    ]
    assert all(passed[name] for name in judged)
    assert passed["cpu speed"] is passed["cpu memory"] is None
    for private in (str(Path.home()), str(Path.cwd()), tempfile.gettempdir()):
        assert private not in said.out
    assert module.anonymous(f"{Path.home()}/x {Path.cwd()} {getpass.getuser()}").count("…") >= 2


@pytest.mark.second
def test_what_is_broken_is_noticed(
    fairtrial: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train, resume, begun = module.train, module.resume, []

    def careless(task: str, data: Any, **given: Any) -> ft.Run:
        """Another seed whenever a classifier is trained again; other weights on the device."""
        begun.append(task)
        return train(
            task,
            data,
            seed=begun.count(task) * (task == "classify"),
            **given | {"learning_rate": 0.02 * (1 + 9 * ("device" in given))},
        )

    def forgetful(folder: Path, **given: Any) -> ft.Run:
        run = resume(folder, **given)
        weights = bytearray((folder / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (folder / "model.safetensors").write_bytes(weights)
        return run

    monkeypatch.setattr(module, "train", careless)
    monkeypatch.setattr(module, "resume", forgetful)
    monkeypatch.setattr(module, "PLACES", (("nowhere", lambda: tmp_path / "missing"),))
    found = results(ft.doctor(device="cpu", quiet=True))
    failed = {name for name, passed in found.items() if passed is False}
    assert failed - {"cpu bfloat16"} == {  # with so large a learning rate, rounding may grow beyond its limit
        "nowhere", "resume lm", "repeat classify", "resume classify", "cpu agrees",
    }  # fmt: skip
    assert found["repeat lm"]
    said = fairtrial("doctor")
    assert said.code == 1
    assert "Something is wrong: nowhere, resume lm" in said.out


@pytest.mark.second
def test_a_gpu_is_found_and_checked_and_one_that_fails_does_not_end_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_there", lambda name: name == "cuda")
    monkeypatch.setattr(
        devices, "choose_device", lambda wanted, *asked: DEVICE if wanted == "cuda" else torch.device("cpu")
    )
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda name: SimpleNamespace(name="Pretended", total_memory=8e9)
    )
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda name: 5e6)
    with PretendDevice():
        checkup = ft.doctor(quiet=True)
    found = results(checkup)
    assert checkup.device == "cuda"
    assert found["cuda agrees"]
    assert found["cuda repeats"]
    assert checkup.checks[-1].details == "Pretended: 5 MB at most, of 8.0 GB"
    assert "cuda speed" in found
    assert found["cuda bfloat16"] is False, "torch knows no autocast for the pretended device"


def test_a_device_that_is_missing_is_refused() -> None:
    with pytest.raises(ft.BadInput, match="is not known"):
        ft.doctor(device="gpu")
    with pytest.raises(ft.BadInput, match="has no device 'cuda:7'"):
        ft.doctor(device="cuda:7")
