"""Generated text is what recomputing every prefix would give, repeats by its seed, and obeys its options."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.data.tokenizer import fit
from fairtrial.data.words import gap, spelled
from fairtrial.inspection.language import (
    generate_tokens,
    sample_token,
    spell,
    token_probabilities,
)
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import PartChoice, Shape, Tokens
from fairtrial.rng import generator_for
from fairtrial.trial import run_trial
from sampling import cases

SHAPE = Shape(layers=2, heads=2, width=16, length=12, hidden=24, dropout=0.0, start="torch")
GREEDY, FREE = 0.0, 1.2
PROMPT = (5, 9, 3, 21)


def decoder(name: str, **changes: Any) -> LanguageModel:
    return LanguageModel(replace(SHAPE, **changes), (PartChoice(name=name),), 40).double()


def said(network: LanguageModel, temperature: float, tokens: int = 20, **more: Any) -> list[int]:
    return list(generate_tokens(network, PROMPT, tokens=tokens, temperature=temperature, seed=3, **more))


def recomputed(network: LanguageModel, temperature: float, tokens: int = 20) -> list[int]:
    """The same, written out: the last tokens, its training length."""
    ids, throws = list(PROMPT), generator_for(3, "generate", 0)
    for _ in range(tokens):
        with torch.no_grad():
            logits = network.eval()(torch.tensor([ids[-12:]]))[0, -1].numpy()
        ids.append(sample_token(token_probabilities(logits, temperature), throws))
    return ids[len(PROMPT) :]


@cases(
    ("name", "temperature"),
    [("learned", FREE), ("rope", GREEDY), ("t5", FREE), ("disentangled", FREE), ("window", FREE), ("reweight", FREE)],
)
def test_text_is_that_of_recomputing_every_prefix(name: str, temperature: float) -> None:
    network = decoder(name)
    text = said(network, temperature)  # 24 tokens, twice the trained length
    assert text == recomputed(network, temperature)
    assert len(set(text)) > 1 or temperature == GREEDY


def test_seeds_repeat_and_differ() -> None:
    network = decoder("rope")
    first = said(network, FREE)
    assert first == said(network, FREE)
    assert first != said(network, FREE, sample=1)
    torch.manual_seed(0)  # nobody else's rng are thrown
    before = torch.get_rng_state()
    said(network, FREE)
    assert torch.equal(before, torch.get_rng_state())


def test_stop_tokens_end_the_text_and_others_never_come() -> None:
    network = decoder("rope")
    free = said(network, FREE)
    stop = free[5]
    assert said(network, FREE, stops=[stop]) == free[: free.index(stop) + 1]
    assert stop not in said(network, FREE, never=[stop], tokens=60)


LOGITS = np.random.default_rng(0).normal(size=50) * 3


def test_shares_are_a_softmax_at_a_temperature() -> None:
    expected = torch.from_numpy(LOGITS / 0.7).softmax(-1).numpy()
    np.testing.assert_allclose(token_probabilities(LOGITS, 0.7), expected, atol=1e-12)


def test_tokens_are_drawn_as_often_as_their_shares_say() -> None:
    chances = token_probabilities(LOGITS, 2.0, never=np.argsort(LOGITS)[:40])
    throws = generator_for(0, "test")
    drawn = np.bincount([sample_token(chances, throws) for _ in range(20_000)], minlength=50)
    assert not drawn[chances == 0].any()
    assert chisquare(drawn[chances > 0], 20_000 * chances[chances > 0]).pvalue > 1e-3
    assert chisquare(drawn[chances > 0], np.full(10, 2000)).pvalue < 1e-9  # the control: other shares do not fit


@cases("temperature", [0.0, 1e-320, 1e-3])
def test_a_cold_draw_takes_the_likeliest(temperature: float) -> None:
    chances = token_probabilities(LOGITS, temperature)
    assert sample_token(chances, generator_for(1, "x")) == int(LOGITS.argmax())


TEXTS = ['"Don\'t go," she said (twice), "it\'s 5% of $3."', "We can't stop; they'll see!", "naïve café: 你好, 🙂 ok"]


@cases("kind", ["word", "character", "bpe", "whitespace"])
@cases("text", TEXTS)
def test_tokens_come_back_as_text(kind: str, text: str) -> None:
    tokenizer = fit(Tokens(kind=kind, min_count=1), TEXTS)
    ids = tokenizer.encode([text])[0]
    for begun in (1, len(ids) // 2):
        everything = spell(tokenizer, [], ids)
        assert everything == text
        assert everything.endswith(spell(tokenizer, ids[:begun], ids[begun:]))


def test_words_join_as_they_are_written() -> None:
    def join(text: str) -> str:
        words = text.split()
        return spelled(words[0]) + "".join(gap(before, word) + spelled(word) for before, word in pairwise(words))

    assert join("`` I wo n't , '' he said -- $ 5 ( or 6 ) .") == '"I won\'t," he said -- $5 (or 6).'
    assert join("it ’ s gon na rain") == "it’s gonna rain"


@cases("kind", ["word", "character", "bpe", "whitespace"])
def test_a_space_at_the_prompts_end_is_not_doubled(kind: str) -> None:
    tokenizer = fit(Tokens(kind=kind, min_count=1, size=300), ["we will build bridges"] * 3)
    prompt, ids = "we will ", tokenizer.encode(["we will build"])[0]
    begun = len(tokenizer.encode(["we will " if kind == "character" else "we will"])[0])
    assert prompt + spell(tokenizer, ids[:begun], ids[begun:], prompt) == "we will build"


def test_the_command_speaks(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    words = ("generate", finished_records["lm"], "We will", "--tokens", 8, "--seed", 4, "--temperature", 0.8)
    said = fairtrial(*words)
    assert said.code == 0, said.err
    assert said.out.startswith("We will")
    row = json.loads(fairtrial(*words, "--json").out)
    assert row["text"] == said.out.rstrip("\n")
    spaced = fairtrial("inspect", "generate", finished_records["lm"], "We will ", *words[3:]).out
    assert spaced == said.out
    assert len(row["tokens"]) == 8
    assert fairtrial(*words).out == said.out
    several = [json.loads(line) for line in fairtrial(*words, "--json", "--samples", 2).out.splitlines()]
    assert several[0] == row
    assert several[1]["tokens"] != row["tokens"]
    assert "'xyzzy'" in fairtrial("inspect", "generate", finished_records["lm"], "We xyzzy", "--tokens", 1).err


def test_a_model_of_sentences_begins_and_stops_by_itself(
    tmp_path: Path, tiny_recipe: Callable[..., Any], fairtrial: Callable[..., Any]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(f"we go home number{number} ." for number in range(120)))
    more = ("data.format=lines", f"data.source={lines}", "training.duration=150 steps", "training.learning_rate=0.01")
    record = run_trial(tiny_recipe("lm", *more), 0, tmp_path / "record")
    row = json.loads(fairtrial("inspect", "generate", record.folder, "--json", "--tokens", 30, "--temperature", 0).out)
    assert row["stopped"]
    assert row["tokens"][:3] == ["we", "go", "home"]
    assert row["text"].startswith("we go home")
    assert "<stop>" not in row["text"]


@pytest.mark.parametrize("kind", ["character", "bpe", "whitespace"])
def test_models_of_other_tokens_speak_too(
    kind: str, tmp_path: Path, tiny_recipe: Callable[..., Any], fairtrial: Callable[..., Any]
) -> None:
    record = run_trial(tiny_recipe("lm", f"tokens.kind={kind}", "tokens.size=400"), 0, tmp_path / "record")
    row = json.loads(fairtrial("inspect", "generate", record.folder, "we will build", "--tokens", 9, "--json").out)
    assert row["text"].startswith("we will build")
    assert len(row["tokens"]) == 9
    if kind == "character":
        assert row["text"] == "we will build" + "".join(row["tokens"])
    said = fairtrial("inspect", "surprisal", record.folder, "we will build")
    assert said.code == 0, said.err
    assert "perplexity" in said.out


@cases(
    ("words", "told"),
    [
        ((), "the prompt is empty"),
        (("   ",), "the prompt is empty"),
        (("We", "--temperature", -1), "temperature"),
    ],
)
def test_mistakes_are_told(
    words: tuple[object, ...], told: str, finished_records: dict[str, Path], fairtrial: Callable[..., Any]
) -> None:
    said = fairtrial("inspect", "generate", finished_records["lm"], *words)
    assert said.code == 2
    assert told in said.err
    assert "language model" in fairtrial("inspect", "generate", finished_records["classify"], "We").err
