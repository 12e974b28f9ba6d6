"""Mirrors show the record's own numbers elsewhere, and the record stays as it is."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import Ready, Scored, Stepped
from fairtrial.loggers import numbers, open_logger
from fairtrial.recipe import Recipe
from fairtrial.record import Record
from fairtrial.stored import Metrics
from fairtrial.trial import resume_trial, run_trial
from sealed import events_of

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors", "trial.json", "recipe.toml")


def bits(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in SAME}


def told(record: Record) -> dict[str, dict[int, float]]:
    """What a mirror should show: every plain number of the record's events, by name and step."""
    found: dict[str, dict[int, float]] = {}
    for event in events_of(record):
        if event["event"] in ("step", "score"):
            for key, value in event.items():
                if isinstance(value, int | float) and key != "step":
                    found.setdefault(f"{event.get('split', 'train')}/{key}", {})[event["step"]] = value
    return found


def shown_in_tensorboard(folder: Path) -> dict[str, dict[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curves = EventAccumulator(str(folder))
    curves.Reload()
    return {name: {point.step: point.value for point in curves.Scalars(name)} for name in curves.Tags()["scalars"]}


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_tensorboard_shows_the_records_numbers_and_the_record_is_the_same(
    task: str, tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    plain = run_trial(tiny_recipe(task), 0, tmp_path / "plain")
    mirror = open_logger("tensorboard", tmp_path / "a", tiny_recipe(task))
    record = run_trial(tiny_recipe(task), 0, tmp_path / "a", on_event=mirror.send)
    mirror.close()
    assert bits(record.folder) == bits(plain.folder)
    shown = shown_in_tensorboard(tmp_path / "a.tensorboard")
    expected = told(record)
    assert {"train/loss", "train/learning_rate"} < expected.keys()
    assert shown.keys() == expected.keys()
    for name, points in expected.items():
        assert shown[name] == pytest.approx(points, rel=1e-6)


def test_tensorboard_shows_a_resumed_trial_once(tiny_recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    asked = iter([False] * 4)
    mirror = open_logger("tensorboard", tmp_path / "a", tiny_recipe("lm"))
    with pytest.raises(Interrupted):
        run_trial(tiny_recipe("lm"), 0, tmp_path / "a", on_event=mirror.send, stop=lambda: next(asked, True))
    mirror.send(Stepped(5, 99.0, 1.0))  # trained but lost with the process
    mirror.close()
    again = open_logger("tensorboard", tmp_path / "a", tiny_recipe("lm"))
    record = resume_trial(tmp_path / "a", on_event=again.send)
    again.close()
    assert shown_in_tensorboard(tmp_path / "a.tensorboard")["train/loss"] == pytest.approx(
        told(record)["train/loss"], rel=1e-6
    )


def test_wandb_works_offline_without_network_or_login_and_the_record_is_the_same(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    gateway = socket.create_server(
        ("127.0.0.1", 0)
    )  # whoever asks for the network, wandb's own processes too, asks here
    gateway.setblocking(False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{gateway.getsockname()[1]}")

    def read_line(*_: Any) -> str:
        raise AssertionError("a login was asked for")

    monkeypatch.setattr("builtins.input", read_line)
    plain = run_trial(tiny_recipe("classify"), 0, tmp_path / "plain")
    mirror = open_logger("wandb", tmp_path / "a", tiny_recipe("classify"))
    record = run_trial(tiny_recipe("classify"), 0, tmp_path / "a", on_event=mirror.send)
    mirror.close()
    assert bits(record.folder) == bits(plain.folder)
    with gateway, pytest.raises(BlockingIOError):
        gateway.accept()
    (run,) = (tmp_path / "a.wandb" / "wandb").glob("offline-run-*")
    (log,) = run.glob("run-*.wandb")
    names = [name.encode() for name in told(record)]
    latest = time.monotonic() + 600  # wandb's own process may still be writing when `finish` returns
    while not all(name in log.read_bytes() for name in names) and time.monotonic() < latest:
        time.sleep(0.05)
    assert [name for name in names if name not in log.read_bytes()] == []


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [
        each for each in sys.modules if each.split(".")[0] == name or each.startswith("torch.utils.tensorboard")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fairtrial.loggers", raising=False)
    with pytest.raises(BadInput, match=f"{name} is not installed") as refused:
        open_logger(name, tmp_path / "a", Recipe())
    assert refused.value.hint == f"install it with: pip install 'fairtrial[{name}]'"
    assert not list(tmp_path.iterdir())


def test_an_unknown_mirror_is_met_with_the_near_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no logger is called 'wanbd'; did you mean 'wandb'\?"):
        open_logger("wanbd", tmp_path, Recipe())


def test_only_plain_numbers_are_shown_under_the_split_they_are_of() -> None:
    score = Scored(3, "validation", Metrics(accuracy=0.5, items=7, interval=(0.1, 0.9)))
    assert numbers(score) == {"validation/accuracy": 0.5, "validation/items": 7.0}
    assert numbers(Stepped(1, 2.0, 0.1)) == {"train/loss": 2.0, "train/learning_rate": 0.1}
    assert numbers(Ready(0)) == {}


def test_a_wandb_mode_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "nonsense")
    mirror = open_logger("wandb", tmp_path / "a", Recipe())
    with pytest.raises(BadInput, match="wandb: ") as refused:
        mirror.send(Ready(0))
    assert "WANDB_MODE" in refused.value.hint
    mirror.close()
