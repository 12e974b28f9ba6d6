"""Fixtures for the tests of the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from networks import STRANGERS

from fairtrial.model.part import parts


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny networks are slower on many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of `networks.py`, known by name for one test."""
    for name, kind in STRANGERS.items():
        monkeypatch.setitem(parts._things, name, kind)
