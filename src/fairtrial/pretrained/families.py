"""Families of published encoders: how their configuration becomes our shape, and their names for weights ours.

All are post-norm encoders with learned positions. BERT's and RoBERTa's vector of the first segment is the same for
every token of a single text, so it is added to the positions when it is read, and is no weight of its own here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.recipe import Shape

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
BODY, TABLE = "body.", "body.parts.learned.table.weight"


@dataclass(frozen=True)
class Family:
    """What one family calls things. `{}` stands for a layer's number."""

    prefix: str  # before the encoder's weights in checkpoints that have a head, too
    sizes: Mapping[str, str]  # field of Shape -> entry of config.json
    layer: Mapping[str, str]  # our name in a block -> theirs, without `.weight` and `.bias`
    qkv: tuple[str, str, str]
    head: Mapping[str, str]  # our layer of the classifier -> theirs
    head_activation: str
    heads_of_others: tuple[str, ...]  # weights of other tasks that we may leave out
    first_position: int = 0  # row of the position table where counting begins
    types: bool = True  # has segment vectors


_BERT_SIZES = {
    "layers": "num_hidden_layers", "heads": "num_attention_heads", "width": "hidden_size",
    "hidden": "intermediate_size", "length": "max_position_embeddings",
}  # fmt: skip
_BERT_LAYER = {
    "attention.out": "encoder.layer.{}.attention.output.dense",
    "attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "feed_forward.up": "encoder.layer.{}.intermediate.dense",
    "feed_forward.down": "encoder.layer.{}.output.dense",
    "forward_norm": "encoder.layer.{}.output.LayerNorm",
}
_BERT_QKV = (
    "encoder.layer.{}.attention.self.query",
    "encoder.layer.{}.attention.self.key",
    "encoder.layer.{}.attention.self.value",
)

_DISTILBERT_SIZES = {
    "layers": "n_layers", "heads": "n_heads", "width": "dim", "hidden": "hidden_dim",
    "length": "max_position_embeddings",
}  # fmt: skip

BERT = Family(
    prefix="bert.",
    sizes=_BERT_SIZES,
    layer=_BERT_LAYER,
    qkv=_BERT_QKV,
    head={"hidden": "pooler.dense", "out": "classifier"},
    head_activation="tanh",
    heads_of_others=("cls.", "qa_outputs."),
)
ROBERTA = replace(
    BERT,
    prefix="roberta.",
    head={"hidden": "classifier.dense", "out": "classifier.out_proj"},
    heads_of_others=("lm_head.", "qa_outputs.", "pooler."),
    first_position=2,  # the rows before it are of padding and its neighbour
)
DISTILBERT = Family(
    prefix="distilbert.",
    sizes=_DISTILBERT_SIZES,
    layer={
        "attention.out": "transformer.layer.{}.attention.out_lin",
        "attention_norm": "transformer.layer.{}.sa_layer_norm",
        "feed_forward.up": "transformer.layer.{}.ffn.lin1",
        "feed_forward.down": "transformer.layer.{}.ffn.lin2",
        "forward_norm": "transformer.layer.{}.output_layer_norm",
    },
    qkv=tuple(f"transformer.layer.{{}}.attention.{name}_lin" for name in "qkv"),  # type: ignore[arg-type]
    head={"hidden": "pre_classifier", "out": "classifier"},
    head_activation="relu",
    heads_of_others=("vocab_", "qa_outputs."),
    types=False,
)
FAMILIES = {"bert": BERT, "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA, "distilbert": DISTILBERT}


def shape_of(family: Family, config: Mapping[str, Any], shape: Shape) -> Shape:
    """The checkpoint's shape; dropout and what else is not written in its weights stay as the recipe has them."""
    kind = config.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise BadInput(f"this encoder has positions of the kind {kind!r}; learned ('absolute') ones can be read")
    activation = str(config.get("hidden_act", config.get("activation", "gelu")))
    if activation not in ACTIVATIONS:
        raise BadInput(f"this encoder's activation is {activation!r}; there is: {', '.join(ACTIVATIONS)}")
    sizes: dict[str, int] = {}
    for ours, theirs in family.sizes.items():
        if not isinstance(config.get(theirs), int):
            raise BadInput(f"config.json has no whole number {theirs!r}", "give the folder of a whole checkpoint")
        sizes[ours] = config[theirs]
    sizes["length"] -= family.first_position
    return replace(
        shape,
        **sizes,  # type: ignore[arg-type]
        classifier_hidden=sizes["width"],
        classifier_activation=family.head_activation,
        activation=ACTIVATIONS[activation],
        norm="layer",
        norm_place="post",
        norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        qkv_bias=True,
    )


def to_ours(family: Family, theirs: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Their weights under our names. What is missing, or fits nowhere, is an error."""
    left = {re.sub(f"^{re.escape(family.prefix)}", "", name): tensor for name, tensor in theirs.items()}
    left = {new_name(name): tensor.float() for name, tensor in left.items() if not name.endswith("position_ids")}

    def take(name: str) -> Tensor:
        if name not in left:
            raise BadInput(f"the weight {name!r} is missing", "give the folder of a whole checkpoint")
        return left.pop(name)

    found = {"body.tokens.weight": take("embeddings.word_embeddings.weight")}
    positions = take("embeddings.position_embeddings.weight")[family.first_position :]
    found[TABLE] = positions + take("embeddings.token_type_embeddings.weight")[0] if family.types else positions
    for kind in ("weight", "bias"):
        found[f"body.norm.{kind}"] = take(f"embeddings.LayerNorm.{kind}")
        for layer in range(layers):
            block = f"body.blocks.{layer}"
            joined = [take(f"{name.format(layer)}.{kind}") for name in family.qkv]
            found[f"{block}.attention.qkv.{kind}"] = torch.cat(joined)
            for ours, name in family.layer.items():
                found[f"{block}.{ours}.{kind}"] = take(f"{name.format(layer)}.{kind}")
        for ours, name in family.head.items():
            if f"{name}.{kind}" in left:
                found[f"{ours}.{kind}"] = take(f"{name}.{kind}")
    if extra := sorted(name for name in left if not name.startswith(family.heads_of_others)):
        hint = "config.json and the weights are of two different encoders"
        raise BadInput(f"the weight {extra[0]!r} fits nowhere in this encoder ({len(extra)} such)", hint)
    return found


def new_name(name: str) -> str:
    """The names of norms before 2019."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
