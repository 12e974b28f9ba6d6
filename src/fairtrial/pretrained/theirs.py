"""Names of weights in the encoders of `transformers` that hold our pre-norm and post-norm encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from fairtrial.pretrained.families import BERT

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Names:
    title: str  # how their classes begin
    model_type: str
    prefix: str
    norm: str  # the norm outside of blocks
    layer: Mapping[str, str]
    qkv: tuple[str, str, str]
    types: int
    first_position: Callable[[int], int]  # pad token -> row where positions begin
    add_classifier: Callable[[Weights, Weights], None]
    add_masked: Callable[[Weights, Weights], None]


def copy(into: Weights, theirs: str, weights: Weights, ours: str) -> None:
    for kind in ("weight", "bias"):
        into[f"{theirs}.{kind}"] = weights[f"{ours}.{kind}"]


def output(weights: Weights) -> Tensor:
    """The output layer, which may be the embedding."""
    return weights.get("out.weight", weights["body.tokens.weight"])


def bert_classifier(into: Weights, weights: Weights) -> None:
    copy(into, "bert.pooler.dense", weights, "hidden")
    copy(into, "classifier", weights, "out")


def bert_masked(into: Weights, weights: Weights) -> None:
    copy(into, "cls.predictions.transform.dense", weights, "hidden")
    copy(into, "cls.predictions.transform.LayerNorm", weights, "norm")
    into["cls.predictions.decoder.weight"] = output(weights).clone()
    into["cls.predictions.decoder.bias"] = weights["out.bias"]
    into["cls.predictions.bias"] = weights["out.bias"].clone()


def xl_classifier(into: Weights, weights: Weights) -> None:
    copy(into, "classifier.dense", weights, "hidden")
    copy(into, "classifier.out_proj", weights, "out")


def xl_masked(into: Weights, weights: Weights) -> None:
    copy(into, "lm_head.dense", weights, "hidden")
    copy(into, "lm_head.layer_norm", weights, "norm")
    into["lm_head.decoder.weight"] = output(weights).clone()
    into["lm_head.decoder.bias"] = weights["out.bias"]
    into["lm_head.bias"] = weights["out.bias"].clone()


BERT_NAMES = Names(
    title="Bert",
    model_type="bert",
    prefix="bert.",
    norm="embeddings.LayerNorm",
    layer=BERT.layer,
    qkv=BERT.qkv,
    types=2,
    first_position=lambda pad: 0,
    add_classifier=bert_classifier,
    add_masked=bert_masked,
)
XL_NAMES = Names(
    title="XLMRobertaXL",
    model_type="xlm-roberta-xl",
    prefix="roberta.",
    norm="encoder.LayerNorm",
    layer={
        "attention.out": "encoder.layer.{}.attention.output.dense",
        "attention_norm": "encoder.layer.{}.attention.self_attn_layer_norm",
        "feed_forward.up": "encoder.layer.{}.intermediate.dense",
        "feed_forward.down": "encoder.layer.{}.output.dense",
        "forward_norm": "encoder.layer.{}.LayerNorm",
    },
    qkv=BERT.qkv,
    types=1,
    first_position=lambda pad: pad + 1,
    add_classifier=xl_classifier,
    add_masked=xl_masked,
)
