"""A record as a folder that `transformers` loads, where one of its architectures fits.

| ours | Hugging Face |
|---|---|
| decoder, pre-norm, learned positions, no output bias | GPT-2 |
| encoder, pre-norm, learned positions | XLM-RoBERTa-XL: RoBERTa with pre-norm and no norm after the embedding |
| encoder, post-norm, learned positions | BERT |
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import disk_errors, sha256_of, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.pretrained.checkpoint import BERT
from fairtrial.recipe import Recipe
from fairtrial.record import Record, ensure_free

Weights = dict[str, Tensor]
AddHead = Callable[[Weights, Weights], None]
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}
SPECIAL = {"pad": "pad_token", "unknown": "unk_token", "start": "bos_token", "stop": "eos_token", "mask": "mask_token"}
AUTO_CLASSES = {
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
}


@dataclass(frozen=True)
class HuggingFaceNames:
    title: str  # how the class names begin
    model_type: str
    prefix: str
    norm: str  # the norm outside of layers
    layer: Mapping[str, str]
    qkv: tuple[str, str, str]
    types: int
    first_position: Callable[[int], int]  # pad token -> row where positions begin
    add_classifier: AddHead
    add_masked: AddHead


def copy(into: Weights, hf_name: str, weights: Weights, name: str) -> None:
    for kind in ("weight", "bias"):
        into[f"{hf_name}.{kind}"] = weights[f"{name}.{kind}"]


def output(weights: Weights) -> Tensor:
    """The output layer, which may be the embedding."""
    return weights.get("out.weight", weights["body.tokens.weight"])


def classifier(hidden: str, out: str) -> AddHead:
    def put(into: Weights, weights: Weights) -> None:
        copy(into, hidden, weights, "hidden")
        copy(into, out, weights, "out")

    return put


def masked(head: str, dense: str, norm: str) -> AddHead:
    def put(into: Weights, weights: Weights) -> None:
        copy(into, f"{head}.{dense}", weights, "hidden")
        copy(into, f"{head}.{norm}", weights, "norm")
        into[f"{head}.decoder.weight"] = output(weights).clone()
        into[f"{head}.decoder.bias"] = weights["out.bias"]
        into[f"{head}.bias"] = weights["out.bias"].clone()

    return put


BERT_NAMES = HuggingFaceNames(
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
XL_NAMES = HuggingFaceNames(
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


@dataclass(frozen=True)
class Exported:
    folder: Path
    architecture: str  # the class of `transformers`
    whole: bool  # with its head: logits agree, not only hidden states

    @property
    def auto_class(self) -> str:
        return next((auto for end, auto in AUTO_CLASSES.items() if self.architecture.endswith(end)), "AutoModel")


def export_record(record: Record, folder: Path) -> Exported:
    recipe, result = record.recipe, record.result
    refuse_unsupported(recipe)
    path = record.folder / "model.safetensors"
    if not path.is_file() or sha256_of(path) != result["model_sha256"]:
        raise BadInput("the weights are missing or damaged (their checksum differs)", path=path)
    weights = load(path.read_bytes())
    tokenizer = Tokenizer.load(record.folder / "tokenizer.json", record.trial["tokenizer"])
    build = gpt2 if recipe.task == "lm" else encoder
    architecture, whole, config, tensors = build(recipe, weights, record.trial["labels"], tokenizer)
    ensure_free(folder)
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    with disk_errors(beside):
        beside.mkdir(parents=True)
    config = {"architectures": [architecture], **config, "vocab_size": len(tensors[next(iter(tensors))])}
    write_text(beside / "config.json", json.dumps(config, indent=1) + "\n")
    write_bytes(beside / "model.safetensors", save(tensors, {"format": "pt"}))
    write_text(beside / "tokenizer.json", tokenizer.to_json())
    write_text(beside / "tokenizer_config.json", json.dumps(tokenizer_config(recipe, tokenizer), indent=1) + "\n")
    with disk_errors(folder):
        beside.rename(folder)
    return Exported(folder, architecture, whole)


def refuse_unsupported(recipe: Recipe) -> None:
    """Networks that no architecture of `transformers` covers."""
    names = {choice.name for choice in recipe.parts if not choice.name.startswith("pool-")}
    if names != {"learned"}:
        raise BadInput(
            f"no architecture of `transformers` has these parts: {', '.join(sorted(names)) or 'none'}",
            "only networks with learned positions can be exported",
        )
    if any(choice.name in ("pool-cls", "pool-attention") for choice in recipe.parts):
        raise BadInput("no architecture of `transformers` pools this way", "use pool-first")
    if recipe.shape.norm != "layer":
        raise BadInput(
            f"no architecture of `transformers` fits with norm = {recipe.shape.norm!r}",
            "only layer norm can be exported",
        )
    if recipe.task == "lm" and recipe.shape.norm_place != "pre":
        raise BadInput("GPT-2 is not post-norm", "only pre-norm decoders can be exported")
    if recipe.task == "lm" and recipe.shape.output_bias:
        raise BadInput(
            "GPT-2 has no bias in its output layer, and this record has one",
            "train with --set shape.output_bias=false to export a model",
        )


Built = tuple[str, bool, dict[str, Any], dict[str, Tensor]]


def gpt2(recipe: Recipe, weights: dict[str, Tensor], labels: list[str], tokenizer: Tokenizer) -> Built:
    shape = recipe.shape
    found = {"transformer.wte.weight": weights["body.tokens.weight"]}
    found["transformer.wpe.weight"] = weights["body.parts.learned.table.weight"]
    for layer in range(shape.layers):
        block, hf_block = f"body.blocks.{layer}", f"transformer.h.{layer}"
        linear = {
            "attention.qkv": "attn.c_attn", "attention.out": "attn.c_proj",
            "feed_forward.up": "mlp.c_fc", "feed_forward.down": "mlp.c_proj",
        }  # fmt: skip
        for name, hf_name in linear.items():  # Conv1D of GPT-2 stores its matrix transposed
            found[f"{hf_block}.{hf_name}.weight"] = weights[f"{block}.{name}.weight"].t().contiguous()
            found[f"{hf_block}.{hf_name}.bias"] = bias_of(weights, f"{block}.{name}")
        for name, hf_name in (("attention_norm", "ln_1"), ("forward_norm", "ln_2")):
            for kind in ("weight", "bias"):
                found[f"{hf_block}.{hf_name}.{kind}"] = weights[f"{block}.{name}.{kind}"]
    for kind in ("weight", "bias"):
        found[f"transformer.ln_f.{kind}"] = weights[f"body.norm.{kind}"]
    if not shape.tied:
        found["lm_head.weight"] = weights["out.weight"]
    config = {
        "model_type": "gpt2",
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_embd": shape.width,
        "n_inner": shape.hidden,
        "n_positions": shape.length,
        "activation_function": ACTIVATIONS[shape.activation],
        "layer_norm_epsilon": shape.norm_epsilon,
        "resid_pdrop": shape.dropout,
        "embd_pdrop": shape.dropout,
        "attn_pdrop": shape.attention_dropout,
        "tie_word_embeddings": shape.tied,
        "bos_token_id": tokenizer.start,
        "eos_token_id": tokenizer.stop,
        "pad_token_id": tokenizer.pad,
    }
    return "GPT2LMHeadModel", True, config, found


def encoder(recipe: Recipe, weights: dict[str, Tensor], labels: list[str], tokenizer: Tokenizer) -> Built:
    shape = recipe.shape
    names: HuggingFaceNames = BERT_NAMES if shape.norm_place == "post" else XL_NAMES
    head, whole = head_of(recipe)
    prefix = "" if head == "Model" else names.prefix
    found: dict[str, Tensor] = {}

    def put(hf_name: str, value: Tensor) -> None:
        found[prefix + hf_name] = value.contiguous()

    positions = weights["body.parts.learned.table.weight"]
    put("embeddings.word_embeddings.weight", weights["body.tokens.weight"])
    before = positions.new_zeros(names.first_position(tokenizer.pad), shape.width)
    put("embeddings.position_embeddings.weight", torch.cat((before, positions)))
    put("embeddings.token_type_embeddings.weight", positions.new_zeros(names.types, shape.width))
    for kind in ("weight", "bias"):
        put(f"{names.norm}.{kind}", weights[f"body.norm.{kind}"])
        for layer in range(shape.layers):
            block = f"body.blocks.{layer}"
            qkv = (
                weights[f"{block}.attention.qkv.weight"]
                if kind == "weight"
                else bias_of(weights, f"{block}.attention.qkv")
            )
            for hf_name, value in zip(names.qkv, qkv.chunk(3), strict=True):
                put(f"{hf_name.format(layer)}.{kind}", value)
            for name, hf_name in names.layer.items():
                put(f"{hf_name.format(layer)}.{kind}", weights[f"{block}.{name}.{kind}"])
    if head != "Model":
        add_head: Callable[..., None] = names.add_classifier if recipe.task == "classify" else names.add_masked
        add_head(found, weights)
    config: dict[str, Any] = {
        "model_type": names.model_type,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "max_position_embeddings": shape.length + names.first_position(tokenizer.pad),
        "type_vocab_size": names.types,
        "hidden_act": ACTIVATIONS[shape.activation],
        "layer_norm_eps": shape.norm_epsilon,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.attention_dropout,
        "tie_word_embeddings": shape.tied,
        "pad_token_id": tokenizer.pad,
        "bos_token_id": tokenizer.start,
        "eos_token_id": tokenizer.stop,
    }
    if recipe.task == "classify":
        config |= {
            "id2label": dict(enumerate(labels)),
            "label2id": {label: number for number, label in enumerate(labels)},
        }
    return f"{names.title}{head}", whole, config, found


def head_of(recipe: Recipe) -> tuple[str, bool]:
    """(ending of the class name, whether it has our head); the bare encoder where no class has our head"""
    shape = recipe.shape
    if recipe.task == "mlm":
        fits = shape.norm_place == "pre" or shape.activation == "gelu"  # BERT's head uses the encoder's activation
        return ("ForMaskedLM", True) if fits else ("Model", False)
    first = any(choice.name == "pool-first" for choice in recipe.parts)
    tanh = shape.classifier_activation == "tanh" and shape.classifier_hidden == shape.width
    return ("ForSequenceClassification", True) if first and tanh else ("Model", False)


def bias_of(weights: dict[str, Tensor], name: str) -> Tensor:
    """Zeros where our queries, keys and values have no bias: Hugging Face's always have one."""
    matrix = weights[f"{name}.weight"]
    return weights.get(f"{name}.bias", matrix.new_zeros(len(matrix)))


def tokenizer_config(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, Any]:
    marks = {what: getattr(tokenizer, what) for what in SPECIAL}
    named = {SPECIAL[what]: tokenizer.inner.id_to_token(mark) for what, mark in marks.items() if mark is not None}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": recipe.shape.length, **named}
