"""Hand-made heads do what they say, in fairtrial's own network; broken ones do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from fairtrial.errors import BadInput
from fairtrial.model.network import LanguageModel
from fairtrial.puzzles.heads import (
    DESIGNS,
    build_head,
    random_words,
    run,
)
from fairtrial.recipe import PartChoice
from sampling import cases

NAMES = ["previous token", "induction"]


def expected(name: str, words: list[int]) -> list[int]:
    """What the network should say at each token, told without places: by slices of the words so far."""
    said = []
    for at, word in enumerate(words):
        before = words[:at]
        if name == "previous token":
            said.append(before[-1] if before else word)
        else:
            pairs = dict(pairwise(words[: at + 1]))  # the latest follower of each word wins
            said.append(pairs.get(word, 0))
    return said


def right_words(name: str, network: LanguageModel, words: int) -> float:
    """The share of tokens of random sequences at which the network says what it should."""
    ids = random_words(DESIGNS.find(name), words, network.body.shape.length, 50, seed=4)
    wanted = torch.tensor([expected(name, row) for row in ids.tolist()])
    return float((run(network, ids)[0] == wanted).float().mean())


@cases(
    ("name", "words", "places"),
    [*((name, 8, 24) for name in NAMES), ("induction", 2, 2), ("induction", 60, 100)],
)
def test_a_head_is_right_on_random_sequences(name: str, words: int, places: int) -> None:
    network = build_head(name, words, places)
    ids = random_words(DESIGNS.find(name), words, places, 50, seed=3)
    predicted, maps = run(network, ids)
    assert predicted.tolist() == [expected(name, row) for row in ids.tolist()]
    assert maps[-1].max(-1).values.min() > 0.99
    assert right_words(name, network, words) == 1.0


@cases("name", NAMES)
def test_a_network_that_no_one_wrote_does_not_do_it(name: str) -> None:
    made = build_head(name, 8, 24)
    fresh = LanguageModel(made.body.shape, [PartChoice(name="learned")], 8).eval()
    assert right_words(name, fresh, 8) < 0.5


def test_induction_needs_both_layers() -> None:
    for layer in (0, 1):
        network = build_head("induction", 8, 24)
        with torch.no_grad():
            network.body.blocks[layer].attention.out.weight.zero_()
        assert right_words("induction", network, 8) < 0.6


def test_what_induction_says_is_what_followed_last_time() -> None:
    network = build_head("induction", 6, 12)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1]])  # ^ a b c d e a b c d e a
    predicted, maps = run(network, ids)
    assert predicted[0, 6:].tolist() == [2, 3, 4, 5, 1, 2]
    assert maps[0][0].diagonal(-1).min() > 0.99  # the first layer looks one place back
    assert maps[1][0, 6, 2] > 0.99


@cases("name", NAMES)
def test_the_fused_kernel_gives_the_same_words(name: str) -> None:
    """Watching the maps takes attention's plain way; training takes the fused one."""
    network = build_head(name, 8, 24)
    ids = random_words(DESIGNS.find(name), 8, 24, 20, seed=0)
    captured, _ = run(network, ids)
    with torch.no_grad():
        assert (network(ids).argmax(-1) == captured).all()


def test_the_command_shows_and_draws(fairtrial: Callable, tmp_path: Path) -> None:
    said = fairtrial("puzzle", "head", "previous token", "--figure", tmp_path / "map.svg")
    assert said.code == 0, said.err
    assert "looks at" in said.out
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    plain = json.loads(fairtrial("puzzle", "head", "induction", "--json").out)
    assert plain["layers"] == 2
    words = plain["words"]
    numbers = [sorted(set(words)).index(word) for word in words]  # ^ comes first
    assert plain["predicted"] == [sorted(set(words))[word] for word in expected("induction", numbers)]


def test_a_misspelled_name_gets_a_suggestion(fairtrial: Callable) -> None:
    said = fairtrial("puzzle", "head", "previous", "tokens")
    assert said.code == 2
    assert "did you mean 'previous token'?" in said.err
    with pytest.raises(BadInput):
        build_head("induction", 1, 24)
