"""A language model with the vocabulary of another, and other text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.record import Record
from fairtrial.trial import run_trial

Make = Callable[..., Any]


@pytest.fixture
def first(tiny_recipe: Make, tmp_path: Path) -> Record:
    """Every word has an entry, so that unknown is not trained."""
    return run_trial(tiny_recipe("lm", "tokens.fit=course", "tokens.min_count=1"), 0, tmp_path / "first")


def test_a_vocabulary_is_taken_from_a_record(first: Record, tiny_recipe: Make, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("\n\n".join(["We will build a spaceship for every child.", "The senate is on guard."] * 20))
    recipe = tiny_recipe("lm", f"data.source={other}", f"tokens.fit={first.folder}")
    record = run_trial(recipe, 0, tmp_path / "second")
    assert (record.folder / "tokenizer.json").read_text() == (first.folder / "tokenizer.json").read_text()
    assert not first.trial.tokenizer["unknown_trained"]
    assert record.trial.tokenizer["unknown_trained"]  # nobody spoke of a spaceship
