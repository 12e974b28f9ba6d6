"""A parallel block is GPT-NeoX's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from layers import SHAPE, TIME, vectors
from transformers import GPTNeoXConfig
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXLayer

from fairtrial.errors import BadInput
from fairtrial.model.attention import ForwardContext, Layout
from fairtrial.model.network import Block
from fairtrial.model.part import Part, build_parts, parts
from fairtrial.parts.parallel import Parallel
from fairtrial.recipe import PartChoice


@torch.no_grad()
def test_a_parallel_block_equals_gpt_neoxs() -> None:
    shape = replace(SHAPE, activation="gelu", dropout=0.0)
    config = GPTNeoXConfig(
        hidden_size=24, num_attention_heads=3, intermediate_size=20, hidden_act="gelu", attn_implementation="eager",
        use_parallel_residual=True, attention_dropout=0.0, hidden_dropout=0.0, layer_norm_eps=shape.norm_epsilon,
    )  # fmt: skip
    torch.manual_seed(0)
    oracle, ours, x = GPTNeoXLayer(config, 0).double().eval(), Block(shape, 0).double(), vectors(2, TIME, 24)
    for weight in ours.parameters():
        weight.normal_()
    # theirs: queries, keys and values of the first head, then of the second, ...
    order = torch.arange(72).view(3, 3, 8).transpose(0, 1).flatten()
    oracle.attention.query_key_value.weight.copy_(ours.attention.qkv.weight[order])
    oracle.attention.query_key_value.bias.copy_(ours.attention.qkv.bias[order])
    oracle.attention.dense.load_state_dict(ours.attention.out.state_dict())
    oracle.input_layernorm.load_state_dict(ours.attention_norm.state_dict())
    oracle.post_attention_layernorm.load_state_dict(ours.forward_norm.state_dict())
    oracle.mlp.dense_h_to_4h.load_state_dict(ours.feed_forward.up.state_dict())
    oracle.mlp.dense_4h_to_h.load_state_dict(ours.feed_forward.down.state_dict())
    still = torch.ones(1, TIME, 2, dtype=torch.float64), torch.zeros(1, TIME, 2, dtype=torch.float64)
    future = torch.full((TIME, TIME), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    expected = oracle(x, attention_mask=future, position_embeddings=still)
    expected = expected if isinstance(expected, torch.Tensor) else expected[0]
    forward = ForwardContext(Layout.full(2, TIME), True, 0, x.dtype)
    found = ours(x.flatten(0, 1), forward, [Parallel(shape)]).view_as(x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-6)
    assert (ours(x.flatten(0, 1), forward, []).view_as(x) - expected).abs().max() > 1e-2


def test_it_does_not_combine_with_other_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half(Part):
        def residual(self, x: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
            return x / 2

    monkeypatch.setitem(parts._things, "halved", Half)
    with pytest.raises(BadInput, match="'parallel' and 'halved' do not combine: both define"):
        build_parts([PartChoice(name="halved"), PartChoice(name="parallel")], SHAPE, 0)
