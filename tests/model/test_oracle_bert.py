"""With copied weights our encoder is BERT's, pre-norm, as `transformers` has it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from networks import choices
from torch import Tensor, nn
from transformers import BertConfig, RobertaPreLayerNormConfig, RobertaPreLayerNormModel
from transformers.models.bert.modeling_bert import BertSelfAttention, BertSelfOutput

from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.network import Body
from fairtrial.recipe import Shape
from sampling import cases

ENTRIES, WIDTH, HIDDEN, LENGTH, PAD, EPSILON = 50, 32, 48, 16, 1, 1e-12
LENGTHS = torch.tensor([9, 1, 5, 12])
SETTINGS = {
    "vocab_size": ENTRIES,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "hidden_act": "gelu",
    "layer_norm_eps": EPSILON,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.5,  # far from the tiny start, so that attention is sharp and a slip shows
}


def shape_of(heads: int, layers: int = 1) -> Shape:
    return Shape(
        layers=layers,
        heads=heads,
        width=WIDTH,
        hidden=HIDDEN,
        length=LENGTH,
        dropout=0.0,
        activation="gelu",
        norm_epsilon=EPSILON,
        qkv_bias=True,
    )


def shake(oracle: nn.Module) -> None:
    """Biases and norms begin at 0 and 1, where a copy that was forgotten would not show."""
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng) * 0.2)


def copy(source: Sequence[nn.Module] | nn.Module, target: nn.Module) -> None:
    """Linear layers or norms into one, stacked by their outputs."""
    sources = [source] if isinstance(source, nn.Module) else source
    with torch.no_grad():
        target.weight.copy_(torch.cat([each.weight for each in sources]))
        target.bias.copy_(torch.cat([each.bias for each in sources]))


def roberta(heads: int, layers: int) -> RobertaPreLayerNormModel:
    torch.manual_seed(0)
    config = RobertaPreLayerNormConfig(
        **SETTINGS,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=LENGTH + PAD + 1,
        pad_token_id=PAD,
        type_vocab_size=1,
    )
    oracle = RobertaPreLayerNormModel(config, add_pooling_layer=False).eval()
    oracle.embeddings.LayerNorm = nn.Identity()  # ours has no norm right behind the embedding
    shake(oracle)
    return oracle


def as_ours(oracle: RobertaPreLayerNormModel, heads: int, layers: int) -> Body:
    body = Body(shape_of(heads, layers), choices("learned"), ENTRIES, causal=False, seed=0).eval()
    theirs = oracle.embeddings
    with torch.no_grad():
        body.tokens.weight.copy_(theirs.word_embeddings.weight + theirs.token_type_embeddings.weight[0])
        # their first position stands behind the padding's entry
        body.parts["learned"].table.weight.copy_(theirs.position_embeddings.weight[PAD + 1 :])
    for layer, block in zip(oracle.encoder.layer, body.blocks, strict=True):
        copy(layer.attention.LayerNorm, block.attention_norm)
        copy([layer.attention.self.query, layer.attention.self.key, layer.attention.self.value], block.attention.qkv)
        copy(layer.attention.output.dense, block.attention.out)
        copy(layer.intermediate.LayerNorm, block.forward_norm)
        copy(layer.intermediate.dense, block.feed_forward.up)
        copy(layer.output.dense, block.feed_forward.down)
    copy(oracle.LayerNorm, body.norm)
    return body


def a_batch() -> tuple[Tensor, Tensor]:
    """(ids, which are real), padded"""
    real = torch.arange(int(LENGTHS.max())) < LENGTHS[:, None]
    ids = torch.randint(PAD + 1, ENTRIES, real.shape, generator=torch.Generator().manual_seed(1))
    return ids.masked_fill(~real, PAD), real


@cases(("heads", "layers"), [(1, 1), (2, 2), (4, 3)])
def test_the_whole_encoder_equals_pre_norm_roberta_on_a_padded_batch(heads: int, layers: int) -> None:
    oracle = roberta(heads, layers)
    body = as_ours(oracle, heads, layers)
    ids, real = a_batch()
    with torch.no_grad():
        expected = oracle(ids, attention_mask=real.long()).last_hidden_state
        without_mask = oracle(ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        ours, layout = body(ids, LENGTHS)
    torch.testing.assert_close(layout.unpack(ours)[real], expected[real], atol=1e-5, rtol=1e-5)
    assert (without_mask - expected)[real].abs().max() > 1e-2  # the mask matters in this batch
    order = torch.arange(len(ids)).flip(0)
    assert (expected[real] - expected[order][real]).abs().max() > 1e-1  # and rows are told apart


def test_our_gradients_equal_robertas_too() -> None:
    oracle = roberta(2, 2)
    body = as_ours(oracle, 2, 2)
    ids, real = a_batch()
    wanted = torch.randn(int(real.sum()), WIDTH, generator=torch.Generator().manual_seed(2))
    (oracle(ids, attention_mask=real.long()).last_hidden_state[real] * wanted).mean().backward()
    (body(ids, LENGTHS)[0] * wanted).mean().backward()
    for layer, block in zip(oracle.encoder.layer, body.blocks, strict=True):
        attention = layer.attention.self
        theirs = torch.cat([each.weight.grad for each in (attention.query, attention.key, attention.value)])
        assert theirs.abs().max() > 1e-3
        torch.testing.assert_close(block.attention.qkv.weight.grad, theirs, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(
            block.feed_forward.up.weight.grad, layer.intermediate.dense.weight.grad, atol=1e-5, rtol=1e-4
        )


@cases("heads", [1, 2, 4])
def test_attention_alone_equals_berts_on_a_padded_batch(heads: int) -> None:
    config = BertConfig(**SETTINGS, num_attention_heads=heads, attn_implementation="eager")
    torch.manual_seed(0)
    theirs, output = BertSelfAttention(config).eval(), BertSelfOutput(config).eval()
    shake(theirs)
    shake(output)
    ours = Attention(shape_of(heads), layer=0)
    copy([theirs.query, theirs.key, theirs.value], ours.qkv)
    copy(output.dense, ours.out)
    _, real = a_batch()
    x = torch.randn(*real.shape, WIDTH, generator=torch.Generator().manual_seed(4)) * 2
    hidden = torch.zeros(real.shape).masked_fill(~real, torch.finfo(torch.float32).min)[:, None, None, :]
    layout = Layout.ragged(LENGTHS, real.shape[1])
    with torch.no_grad():
        expected = output.dense(theirs(x, attention_mask=hidden)[0])
        without_mask = output.dense(theirs(x)[0])
        answer = ours(layout.pack(x), ForwardContext(layout, causal=False, past=0, dtype=x.dtype), [])
    torch.testing.assert_close(layout.unpack(answer)[real], expected[real], atol=1e-5, rtol=1e-5)
    assert (without_mask - expected)[real].abs().max() > 1e-2
