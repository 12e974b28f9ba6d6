"""Looking at pretrained encoders: our maps are those of `transformers`, and the twin is what was pretrained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import SENTENCES, write_checkpoint

import fairtrial.parts  # noqa: F401
from fairtrial.errors import BadInput
from fairtrial.inspection.attention import initial_model, maps_of, model_input
from fairtrial.model.network import Classifier
from fairtrial.pretrained.checkpoint import fill, read_checkpoint
from fairtrial.recipe import Shape
from fairtrial.trial import load, run_trial


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@torch.no_grad()
def test_maps_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs = write_checkpoint(tmp_path / kind, kind, num_labels=3)
    theirs.set_attn_implementation("eager")
    checkpoint = read_checkpoint(tmp_path / kind, Shape())
    rows = checkpoint.weights["body.tokens.weight"].shape[0]
    network = Classifier(checkpoint.shape, checkpoint.parts, rows, 3).eval()
    fill(network, checkpoint)
    for text in SENTENCES[:3]:
        maps = maps_of(network, checkpoint.tokenizer, text)
        assert maps.weights.sum(-1) == pytest.approx(1, abs=1e-5)
        ids = torch.tensor(checkpoint.tokenizer.encode([text]))
        assert ids.shape[1] == len(maps.words)
        assert maps.words[-1] == ("</s>" if kind == "roberta" else "[SEP]")
        wanted = theirs(input_ids=ids, output_attentions=True).attentions
        for layer, each in enumerate(wanted):
            ours = torch.from_numpy(maps.weights[layer])
            torch.testing.assert_close(ours, each[0], rtol=1e-4, atol=1e-5)
        assert wanted[0].std() > 1e-3  # no head looks everywhere alike


def test_marks_are_read_once_and_the_closing_one_outlives_a_cut(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "bert", "bert", head=False)
    tokenizer = read_checkpoint(tmp_path / "bert", Shape()).tokenizer
    words = tokenizer.words(model_input(tokenizer, "the film is unheard", 20).ids)
    assert words == ["[CLS]", "the", "film", "is", "[UNK]", "[SEP]"]
    assert model_input(tokenizer, "the film is unheard", 20).unknown == ("unheard",)
    cut = model_input(tokenizer, "the film is very good and bright", 6)
    assert tokenizer.words(cut.ids) == ["[CLS]", "the", "film", "is", "very", "[SEP]"]
    assert cut.cut == "the text has 9 tokens and the model reads 6: truncated between 'very' (token 5) and 'good'"
    with pytest.raises(BadInput, match="no words"):
        model_input(tokenizer, "  ", 6)


def test_a_fine_tuned_record_stands_beside_what_was_pretrained(
    tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Any
) -> None:
    write_checkpoint(tmp_path / "bert", "bert", head=False)
    recipe = tiny_recipe("classify", f"encoder.source={tmp_path / 'bert'}", "training.duration=3 steps")
    run = load(run_trial(recipe, 0, tmp_path / "run"))
    twin, stage = initial_model(run)
    given = read_checkpoint(tmp_path / "bert", recipe.shape).weights["body.tokens.weight"]
    assert stage == "pretrained"
    assert torch.equal(twin.body.tokens.weight, given)
    assert not torch.equal(run.initial_network().body.tokens.weight, given)
    said = fairtrial("look", tmp_path / "run", "the film is good", "--layer", 0, "--head", 0)
    assert said.code == 0, said.err
    assert "pretrained" in said.out
    (tmp_path / "bert").rename(tmp_path / "elsewhere")
    said = fairtrial("look", tmp_path / "run", "the film is good", "--layer", 0, "--head", 0)
    assert said.code == 0, said.err
    assert "compared with a randomly initialized network instead" in " ".join(said.out.split())
