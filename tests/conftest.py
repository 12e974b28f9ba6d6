"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def shared_data() -> Path:
    """The folder of the course's speeches, SST-2 and the 1B files, which cannot be shipped with the code."""
    place = os.environ.get("FAIRTRIAL_DATA")
    if not place:
        pytest.skip("FAIRTRIAL_DATA is not set to the folder that holds speeches/, sst2/ and lm1b/")
    return Path(place)
