"""Attention maps: what attention did, checked, for every part; looking changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.errors import BadInput
from fairtrial.inspection.attention import AttentionMaps, maps_in, maps_of, model_input, open_keys
from fairtrial.model.layers import capture
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.recipe import PartChoice
from fairtrial.record import Record
from fairtrial.trial import Run, load

TEXT = "schools will build bridges tonight."


@pytest.fixture(scope="module")
def run(finished_records: dict[str, Path]) -> dict[str, Run]:
    return {task: load(Record.open(finished_records[task])) for task in ("classify", "lm")}


def with_parts(run: Run, *choices: PartChoice, length: int = 12) -> tuple[Run, Classifier | LanguageModel]:
    """The same record with another network; in small first weights all maps would look alike, so torch's own."""
    shape = replace(run.recipe.shape, layers=2, start="torch", length=length)
    entries = run.tokenizer.size
    if run.recipe.task == "classify":
        network: Classifier | LanguageModel = Classifier(shape, choices, entries, 3, seed=5)
    else:
        network = LanguageModel(shape, choices, entries, seed=5)
    return replace(run, recipe=replace(run.recipe, shape=shape)), network.eval()


def attention_maps(run: Run, text: str, network: Any = None) -> AttentionMaps:
    return maps_of(run.network if network is None else network, run.tokenizer, text)


def assert_nothing_hidden_is_attended(network: Any, run: Run) -> None:
    """In a padded batch: rows sum to one, and no weight is on padding, on the future or on what parts mask."""
    encoded = model_input(run.tokenizer, TEXT, 12).ids
    real, ids = torch.tensor([len(encoded)]), torch.full((1, 12), run.tokenizer.pad)
    ids[0, : len(encoded)] = torch.from_numpy(encoded)
    weights = maps_in(network, ids, real)[:, 0, :, : len(encoded)]
    visible = open_keys(network, real, 12, len(weights))[:, 0, : len(encoded)]
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
    assert (weights[np.broadcast_to(~visible[:, None], weights.shape)] == 0).all()


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_the_words_of_the_text_stand_on_both_axes_and_the_future_is_closed(run: dict[str, Run], task: str) -> None:
    maps = attention_maps(run[task], TEXT)
    assert maps.words == ("schools", "will", "build", "bridges", "tonight", ".")  # no padding
    assert maps.weights.shape == (1, 2, 6, 6)
    assert (maps.prefix, maps.cut) == (0, "")
    assert (maps.open[0] == (np.tri(6, dtype=bool) if task == "lm" else True)).all()
    assert (maps.weights[np.broadcast_to(~maps.open[:, None], maps.weights.shape)] == 0).all()
    assert maps.weights.sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "task"),
    [("learned", "lm"), ("disentangled", "classify"), ("t5", "lm"), ("window", "lm"), ("block", "classify"),
     ("reweight", "lm"), ("pool-cls", "classify")],
)  # fmt: skip
def test_every_part_has_maps_that_pass(run: dict[str, Run], name: str, task: str) -> None:
    record, network = with_parts(run[task], PartChoice(name=name))
    maps = attention_maps(record, TEXT, network)
    if name != "pool-cls":
        assert_nothing_hidden_is_attended(network, record)
    assert maps.prefix == (name == "pool-cls" and task == "classify")
    assert maps.words[maps.prefix] == "schools"
    assert maps.weights.shape[2] == len(maps.words)
    assert np.ptp(maps.weights[maps.weights > 0]) > 1e-3  # no head looks everywhere alike


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_window_is_drawn_as_hidden(run: dict[str, Run], task: str) -> None:
    record, network = with_parts(run[task], PartChoice(name="window", options={"size": 3}), length=300)
    maps = attention_maps(record, " ".join(["bridges and schools"] * 100), network)
    assert len(maps.words) == 300
    assert_nothing_hidden_is_attended(network, record)
    far = np.arange(300)[:, None] - np.arange(300)
    assert (maps.open[0] == ((np.abs(far) <= 1) if task == "classify" else ((far >= 0) & (far < 3)))).all()


def test_a_map_is_what_the_equation_says(run: dict[str, Run]) -> None:
    record, network = with_parts(run["lm"])
    maps = attention_maps(record, TEXT, network)
    block = network.body.blocks[0]
    ids = torch.tensor(record.tokenizer.encode([TEXT])[0])
    with torch.no_grad():
        q, k, _ = block.attention.qkv(block.attention_norm(network.body.tokens(ids))).chunk(3, -1)
    each = record.recipe.shape.head_dim
    for head in range(2):
        columns = slice(head * each, (head + 1) * each)
        for query in range(len(ids)):
            scores = [float(q[query, columns] @ k[key, columns]) / math.sqrt(each) for key in range(query + 1)]
            total = sum(map(math.exp, scores))
            wanted = [math.exp(score) / total for score in scores]
            assert maps.weights[0, head, query, : query + 1] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("name", "limit"), [("disentangled", 0.0), ("rope", 1e-5)])
def test_looking_changes_nothing(run: dict[str, Run], name: str, limit: float) -> None:
    """Bit for bit where a part reads the scores; elsewhere the fused kernel rounds differently."""
    for record in run.values():
        record, network = with_parts(record, PartChoice(name=name))
        ids = torch.tensor(record.tokenizer.encode([TEXT]))
        with torch.no_grad():
            plain = network(ids)
            with capture(network):
                assert float((network(ids) - plain).abs().max()) <= limit


def test_a_network_in_training_is_left_as_it_was(run: dict[str, Run]) -> None:
    network = run["lm"].task.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.train()
    attention_maps(run["lm"], TEXT)
    assert network.training
    assert all(tap.on_capture is None for tap in network.modules() if hasattr(tap, "on_capture"))
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    network.eval()


def test_a_long_text_is_cut_and_says_where(run: dict[str, Run]) -> None:
    maps = attention_maps(run["classify"], " ".join(["bridges"] * 11 + ["and", "schools"]))
    assert len(maps.words) == 12
    assert maps.cut == "the text has 13 tokens and the model reads 12: truncated between 'and' (token 12) and 'schools'"


def test_unknown_words_are_told_as_they_were_written(run: dict[str, Run]) -> None:
    maps = attention_maps(run["classify"], "We will (obfuscate) bridges.")
    assert "<unk>" in maps.words
    assert "obfuscate" in maps.unknown
    assert "bridges" not in maps.unknown


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(run: dict[str, Run], text: str) -> None:
    with pytest.raises(BadInput, match="no words"):
        model_input(run["lm"].tokenizer, text, 12)
