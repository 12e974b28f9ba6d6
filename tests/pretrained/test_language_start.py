"""A language model that starts from another: same vocabulary, same weights, and other text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from fairtrial.errors import BadInput
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


@pytest.mark.parametrize("tied", ["true", "false"])
def test_training_starts_at_the_language_models_weights(tied: str, tiny_recipe: Make, tmp_path: Path) -> None:
    first = run_trial(tiny_recipe("lm", f"shape.tied={tied}", "tokens.fit=course"), 0, tmp_path / "first")
    start = f"encoder.source={first.folder}"
    record = run_trial(tiny_recipe("lm", start, "training.learning_rate=1e-12"), 7, tmp_path / "second")
    kept, given = load_file(record.folder / "model.safetensors"), load_file(first.folder / "model.safetensors")
    assert kept.keys() == given.keys()
    for name, tensor in given.items():
        torch.testing.assert_close(kept[name], tensor, rtol=0, atol=1e-6)
    assert record.recipe.shape.tied == (tied == "true")
    assert record.trial.encoder.fresh == ()
    moved = run_trial(tiny_recipe("lm", start), 7, tmp_path / "third")
    assert (load_file(moved.folder / "model.safetensors")["body.tokens.weight"] != given["body.tokens.weight"]).any()


def test_a_language_model_starts_from_no_other_thing(tiny_recipe: Make, tmp_path: Path) -> None:
    run_trial(tiny_recipe("classify", "training.duration=1 steps"), 0, tmp_path / "classifier")
    with pytest.raises(BadInput, match="is not a language model"):
        run_trial(tiny_recipe("lm", f"encoder.source={tmp_path / 'classifier'}"), 0, tmp_path / "run")
    with pytest.raises(BadInput, match="is not a record"):
        run_trial(tiny_recipe("lm", f"encoder.source={tmp_path / 'nothing'}"), 0, tmp_path / "run")
    assert not (tmp_path / "run").exists()
