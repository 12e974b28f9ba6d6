"""Head portraits: means that a plain loop finds too, and captions that follow their rules."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fairtrial.inspection import heads as captions
from fairtrial.inspection.attention import maps_of, model_input
from fairtrial.inspection.heads import HeadStatistics, Sums, batches, caption, head_statistics, is_punctuation, kind_of
from fairtrial.record import Record
from fairtrial.trial import load
from sampling import cases

NAMES = ("entropy", "entropy_share", "distance", "itself", "previous", "next", "first", "punctuation")


def by_loop(texts: list[tuple[np.ndarray, np.ndarray, list[str]]]) -> dict[str, float]:
    """The same means, row by row: maps [query key], what may be seen [query key], words."""
    found: dict[str, list[float]] = {name: [] for name in (*NAMES, "stripe")}
    for weights, visible, words in texts:
        size = len(words)
        drawn: dict[int, list[float]] = {}
        for query in range(size):
            seen = [key for key in range(size) if visible[query, key]]
            if len(seen) < 2:
                continue
            row = weights[query]
            entropy = -sum(row[key] * math.log(row[key]) for key in seen if row[key] > 0)
            found["entropy"].append(entropy)
            found["entropy_share"].append(entropy / math.log(len(seen)))
            found["distance"].append(sum(row[key] * abs(query - key) for key in seen))
            for name, key in (("itself", query), ("previous", query - 1), ("next", query + 1)):
                if key in seen:
                    found[name].append(row[key])
            if 0 in seen and query > 0:
                found["first"].append(row[0])
            marks = [key for key in seen if words[key] in ",."]
            if marks:
                found["punctuation"].append(sum(row[key] for key in marks))
            for key in seen:
                if key != query:
                    drawn.setdefault(key, []).append(row[key])
        watched = [sum(shares) / len(shares) for shares in drawn.values() if len(shares) >= max(2, size / 2)]
        if watched:
            found["stripe"].append(max(watched))
    return {name: sum(values) / len(values) for name, values in found.items() if values}


@pytest.mark.parametrize("causal", [True, False])
def test_means_are_those_of_a_plain_loop(causal: bool) -> None:
    rng = np.random.default_rng(3)
    words = [["a", ",", "b", "c", "."], ["d", "e"], ["f", ".", "g", "h"]]
    weights, visible = np.zeros((1, 3, 2, 5, 5)), np.zeros((1, 3, 5, 5), dtype=bool)
    for place, row in enumerate(words):
        size = len(row)
        open_here = np.tri(size, dtype=bool) if causal else np.ones((size, size), dtype=bool)
        visible[0, place, :size, :size] = open_here
        for head in range(2):
            raw = rng.random((size, size)) ** 3 * open_here
            weights[0, place, head, :size, :size] = raw / raw.sum(-1, keepdims=True)
        weights[0, place, :, size:] = 0.2  # rows of padding are computed too, and must not count
    sums = Sums(1, 2)
    sums.add(weights, visible, words)
    for head in range(2):
        wanted = by_loop([(weights[0, place, head], visible[0, place], row) for place, row in enumerate(words)])
        habits = sums.means(0, head)
        for name in (*NAMES, "stripe"):
            assert getattr(habits, name) == (pytest.approx(wanted[name]) if name in wanted else None), name
    assert causal == (sums.means(0, 0).next is None)


def test_a_stripe_knows_its_word() -> None:
    weights = np.full((1, 1, 1, 4, 4), 0.05)
    weights[..., 2] = 0.85
    sums = Sums(1, 1)
    sums.add(weights, np.ones((1, 1, 4, 4), dtype=bool), [["most", "of", "important", "all"]])
    habits = sums.means(0, 0)
    assert (habits.stripe_word, habits.stripe_often) == ("important", 1.0)
    assert habits.stripe == pytest.approx(0.85)


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_portraits_do_not_depend_on_how_texts_are_batched(finished_records: dict[str, Path], task: str) -> None:
    run = load(Record.open(finished_records[task]))
    network, tokenizer = run.task.network, run.tokenizer
    texts = ["schools will build bridges tonight.", "We will.", "find no harbour while brave soldiers stand on guard."]
    readings = [model_input(tokenizer, text, 12) for text in texts]
    portraits = head_statistics(network, run.initial_network(), tokenizer, readings)
    for portrait in portraits:
        alone = []
        for text in texts:
            maps = maps_of(network, tokenizer, text)
            row = maps.weights[portrait.layer, portrait.head].astype(float)
            alone.append((row, maps.open[portrait.layer], list(maps.words)))
        wanted = by_loop(alone)
        for name in (*NAMES, "stripe"):
            assert getattr(portrait.trained, name) == pytest.approx(wanted.get(name), abs=1e-5), name
        assert portrait.uniform.entropy_share == pytest.approx(1.0)
        assert portrait.trained != portrait.untrained


def test_batches_hold_every_text_once_within_their_room(finished_records: dict[str, Path]) -> None:
    tokenizer = load(Record.open(finished_records["classify"])).tokenizer
    readings = [model_input(tokenizer, "bridges " * size, 99) for size in (9, 1, 5, 90, 2)]
    grouped = list(batches(readings, 200))
    assert sorted(len(each.ids) for group in grouped for each in group) == [1, 2, 5, 9, 90]
    assert 1 < len(list(batches(readings, 600))) <= len(readings)
    assert len(list(batches(readings, 1))) == 1


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


EVEN = HeadStatistics(
    entropy=2.0, entropy_share=1.0, distance=4.0, itself=0.1, previous=0.1, next=0.1, first=0.1, punctuation=0.2,
    stripe=0.1, stripe_word="a", stripe_often=1.0,
)  # fmt: skip


@cases(
    ("change", "wanted"),
    [
        ({"previous": 0.71}, "previous word, 71%"),
        ({"previous": 0.39, "entropy_share": 0.5}, "mixed, sharper than untrained"),
        ({"next": 0.5}, "next word, 50%"),
        ({"itself": 0.5, "previous": 0.45}, "itself, 50%"),
        ({"first": 0.9, "stripe": 0.9}, "first word, 90%"),
        ({"punctuation": 0.44}, "punctuation, 44%"),
        ({"stripe": 0.45, "stripe_word": "important"}, "stripe on 'important', 45%"),
        ({"stripe": 0.45, "stripe_word": "the", "stripe_often": 0.2}, "stripe on one word of each text, 45%"),
        ({"stripe": 0.29}, "diffuse, as untrained"),
        ({"distance": 1.8}, "near words, mean distance 1.8"),
        ({"distance": 2.1}, "diffuse, as untrained"),
        ({"entropy_share": 0.86}, "diffuse, sharper than untrained"),
        ({"entropy_share": 0.95}, "diffuse, as untrained"),
        ({"entropy_share": 0.6}, "mixed, sharper than untrained"),
        ({"entropy_share": None}, "nothing to choose from"),
    ],
)
def test_a_caption_follows_its_rule(change: dict[str, float | str | None], wanted: str) -> None:
    assert caption(replace(EVEN, **change), EVEN, EVEN) == wanted  # type: ignore[arg-type]


def test_what_the_untrained_twin_does_too_is_said() -> None:
    near = replace(EVEN, distance=1.0)
    assert caption(near, near, EVEN) == "near words, mean distance 1.0, as untrained"
    assert caption(near, replace(near, distance=1.9), EVEN) == "near words, mean distance 1.0"
    looks_back = replace(EVEN, previous=0.7)
    assert caption(looks_back, replace(EVEN, previous=0.65), EVEN) == "previous word, 70%, as untrained"
    assert caption(looks_back, replace(EVEN, previous=0.5), EVEN) == "previous word, 70%"
    assert caption(EVEN, replace(EVEN, entropy_share=0.7), EVEN) == "diffuse, flatter than untrained"
    assert caption(looks_back, looks_back, EVEN, "pretrained") == "previous word, 70%, as pretrained"
    assert caption(replace(EVEN, first=0.6), EVEN, EVEN, first="'[CLS]'") == "'[CLS]', 60%"


def test_in_a_short_text_even_looking_is_no_habit() -> None:
    short = replace(EVEN, previous=0.5, itself=0.5, entropy_share=1.0)
    assert kind_of(short, short)[0] == "diffuse"
    assert kind_of(replace(short, previous=0.8), short)[0] == "previous"


def test_docs_tell_the_limits_that_are_used() -> None:
    text = (Path(__file__).parents[2] / "docs/look.md").read_text()
    for limit in (captions.LEAD, captions.STRIPE, captions.DIFFUSE):
        assert f"at least {limit:.0%}" in text
    assert f"{captions.TIMES} times" in text
    assert re.search(r"at most half .*(everywhere alike|uniform attention)", text)
    assert captions.NEAR == 0.5
    assert f"less than {100 * captions.ALIKE:.0f} points" in text


@cases(
    ("word", "wanted"),
    [(",", True), ("...", True), (" ?", True), ("'s", False), ("a", False), ("", False), (" ", False)],
)
def test_punctuation_has_no_letters(word: str, wanted: bool) -> None:
    assert is_punctuation(word) == wanted
