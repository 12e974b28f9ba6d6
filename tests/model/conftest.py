"""Fixtures for the tests of the model."""

from __future__ import annotations

import pytest
from networks import STRANGERS

from fairtrial.model.part import parts


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of `networks.py`, known by name for one test."""
    for name, kind in STRANGERS.items():
        monkeypatch.setitem(parts._things, name, kind)
