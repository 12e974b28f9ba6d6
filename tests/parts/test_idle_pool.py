"""A part that only makes sentence vectors has no place in a language model, and a trial says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, check_idle, parts
from fairtrial.recipe import PartChoice
from fairtrial.trial import run_trial
from sampling import cases

POOLS = [name for name in parts.list() if name.startswith("pool-")]
OTHERS = [name for name in parts.list() if not name.startswith("pool-")]


class Both(Part):
    """A bias and a pool in one part: in a language model the bias still counts."""

    def bias(self, context):
        return None

    def pool(self, x, real):
        return x[:, 0]


@cases("name", POOLS)
def test_a_pool_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadInput, match=f"part '{name}' works for sentence vectors") as refused:
        check_idle([PartChoice(name="rope"), PartChoice(name=name)])
    assert name in refused.value.hint


def test_what_a_language_model_uses_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "both", Both)
    check_idle([PartChoice(name=name) for name in (*OTHERS, "both")])


def test_a_trial_of_a_language_model_with_a_pool_does_not_begin(tiny_recipe, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="works for sentence vectors"):
        run_trial(tiny_recipe("lm", "parts=pool-max"), 0, tmp_path / "idle")
    run_trial(tiny_recipe("classify", "parts=pool-max", "training.duration=2 steps"), 0, tmp_path / "pooled")
