"""Names of weights in the encoders of `transformers` that hold our pre-norm and post-norm encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from fairtrial.pretrained.families import BERT

Weights = dict[str, Tensor]
Put = Callable[[Weights, Weights], None]


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
    add_classifier: Put
    add_masked: Put


def copy(into: Weights, theirs: str, weights: Weights, ours: str) -> None:
    for kind in ("weight", "bias"):
        into[f"{theirs}.{kind}"] = weights[f"{ours}.{kind}"]


def output(weights: Weights) -> Tensor:
    """The output layer, which may be the embedding."""
    return weights.get("out.weight", weights["body.tokens.weight"])


def classifier(hidden: str, out: str) -> Put:
    def put(into: Weights, weights: Weights) -> None:
        copy(into, hidden, weights, "hidden")
        copy(into, out, weights, "out")

    return put


def masked(head: str, dense: str, norm: str) -> Put:
    def put(into: Weights, weights: Weights) -> None:
        copy(into, f"{head}.{dense}", weights, "hidden")
        copy(into, f"{head}.{norm}", weights, "norm")
        into[f"{head}.decoder.weight"] = output(weights).clone()
        into[f"{head}.decoder.bias"] = weights["out.bias"]
        into[f"{head}.bias"] = weights["out.bias"].clone()

    return put


BERT_NAMES = Names(
    title="Bert",
    model_type="bert",
    prefix="bert.",
    norm="embeddings.LayerNorm",
    layer=BERT.layer,
    qkv=BERT.qkv,
    types=2,
    first_position=lambda pad: 0,
    add_classifier=classifier("bert.pooler.dense", "classifier"),
    add_masked=masked("cls.predictions", "transform.dense", "transform.LayerNorm"),
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
    add_classifier=classifier("classifier.dense", "classifier.out_proj"),
    add_masked=masked("lm_head", "dense", "layer_norm"),
)
