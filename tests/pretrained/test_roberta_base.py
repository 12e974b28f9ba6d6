"""The exact configuration of roberta-base, with random weights: its own cannot be shipped or fetched in a test."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from checkpoints import write_byte_pairs

import fairtrial.parts  # noqa: F401
from fairtrial.model.network import Classifier, count_parameters
from fairtrial.pretrained.checkpoint import fill, fresh_parameters, read_checkpoint
from fairtrial.recipe import Shape


@pytest.mark.slow
@torch.no_grad()
def test_roberta_bases_configuration_gives_the_same_logits(tmp_path: Path) -> None:
    import transformers

    config = transformers.RobertaConfig(
        vocab_size=50265, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
        max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, hidden_act="gelu", pad_token_id=1,
        bos_token_id=0, eos_token_id=2, num_labels=2,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = transformers.RobertaForSequenceClassification(config).eval()
    write_byte_pairs(tmp_path)
    theirs.save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path, Shape())
    network = Classifier(checkpoint.shape, checkpoint.parts, 50265, 2).eval()
    fill(network, checkpoint)
    assert fresh_parameters(network, checkpoint) == []
    # theirs has two rows of positions before the first and a segment's vector; ours has neither
    assert count_parameters(network) == sum(each.numel() for each in theirs.parameters()) - 3 * 768
    ids = torch.randint(4, 50000, (3, 20))
    lengths = torch.tensor([20, 9, 1])
    seen = (torch.arange(20) < lengths[:, None]).long()
    padded = torch.where(seen.bool(), ids, torch.ones_like(ids))
    expected = theirs(input_ids=padded, attention_mask=seen).logits
    torch.testing.assert_close(network(padded, lengths), expected, rtol=1e-4, atol=1e-4)
