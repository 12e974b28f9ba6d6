"""The caption of a map follows its rules, and the initial network is the one that training started from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fairtrial.inspection import attention
from fairtrial.inspection.attention import AttentionMaps
from fairtrial.record import Record
from fairtrial.trial import load
from sampling import cases

WORDS = ("we", "will", "build", "most", "important", "schools")
SIZE = len(WORDS)


def caption(weights: np.ndarray, causal: bool = False) -> str:
    seen = np.tri(len(weights), dtype=bool) if causal else np.ones((len(weights),) * 2, dtype=bool)
    weights = weights * seen
    weights = weights / weights.sum(-1, keepdims=True)
    return AttentionMaps(WORDS[: len(weights)], weights[None, None], seen[None], causal, 0, 8, "", ()).caption(0, 0)


def towards(place: np.ndarray, share: float) -> np.ndarray:
    """So much of each row on this place, the rest on all words alike."""
    return place * share + (1 - share) / SIZE


COLUMN = np.zeros((SIZE, SIZE))
COLUMN[:, 4] = 1


@cases(
    ("weights", "wanted"),
    [
        (towards(np.eye(SIZE), 0.7), "itself, 75%"),
        (towards(COLUMN, 0.7), "'important', 75%"),
        (towards(COLUMN, 0.1), "diffuse, entropy 99% of the maximum"),
        (towards(COLUMN, 0.0), "uniform, the same share for every word"),
        (towards(COLUMN, 0.999), "all on 'important', at least 99.9%"),
        (towards(np.eye(SIZE, k=-2) + np.eye(SIZE, k=SIZE - 2), 0.9), "mixed, entropy 23% of the maximum"),
    ],
)
def test_a_caption_follows_its_rule(weights: np.ndarray, wanted: str) -> None:
    assert caption(weights) == wanted


def test_neighbours_are_named() -> None:
    back, on = np.eye(SIZE, k=-1), np.eye(SIZE, k=1)
    assert caption(towards(back, 0.8)).startswith("previous word, ")
    assert caption(towards(on, 0.8)).startswith("next word, ")
    assert caption(towards(back, 0.8), causal=True).startswith("previous word, ")


def test_one_word_has_nothing_to_choose_from_and_even_looking_is_no_habit() -> None:
    assert caption(np.ones((1, 1))) == "nothing to choose from"
    assert caption(np.ones((2, 2))) == caption(np.ones((4, 4)), causal=True) == "uniform, the same share for every word"


def test_docs_tell_the_limits_that_are_used() -> None:
    text = (Path(__file__).parents[2] / "docs/look.md").read_text()
    for limit in (attention.LEAD, attention.DIFFUSE):
        assert f"at least {limit:.0%}" in text
    assert f"{attention.TIMES} times" in text


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_the_twin_is_the_network_before_its_first_step(finished_records: dict[str, Path], task: str) -> None:
    from fairtrial.training.tasks import build_task

    record = Record.open(finished_records[task])
    run = load(record)
    twin = run.initial_network()
    fresh = build_task(run.recipe, record.trial.seed, run.splits, run.tokenizer).network
    other = build_task(run.recipe, record.trial.seed + 1, run.splits, run.tokenizer).network
    keptless = load(record).initial_network()
    for name, weight in twin.state_dict().items():
        if name == "out.bias":  # which training begins at the frequencies of the answers: attention never reads it
            continue
        assert torch.equal(weight, fresh.state_dict()[name])
        assert torch.equal(weight, keptless.state_dict()[name])
    tokens = "body.tokens.weight"
    assert not torch.equal(twin.state_dict()[tokens], other.state_dict()[tokens])
    assert not torch.equal(twin.state_dict()[tokens], run.task.network.state_dict()[tokens])
