"""Fixtures for the tests of the passport."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairtrial.model.part import Part, parts


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[Part]], str]:
    """Put a part into the registry for one test; gives its name."""

    def know(kind: type[Part]) -> str:
        monkeypatch.setitem(parts._things, kind.__name__.lower(), kind)
        return kind.__name__.lower()

    return know
