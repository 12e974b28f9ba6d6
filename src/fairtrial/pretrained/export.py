"""A record as a folder that `transformers` loads, where one of its architectures fits.

| ours | Hugging Face |
|---|---|
| decoder, pre-norm, learned positions, no output bias | GPT-2 |
| encoder, pre-norm, learned positions | XLM-RoBERTa-XL: RoBERTa with pre-norm and no norm after the embedding |
| encoder, post-norm, learned positions | BERT |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import disk_errors, preparing, whole_folder, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.pretrained.checkpoint import BERT
from fairtrial.recipe import Recipe
from fairtrial.record import Record, ensure_free

KINDS = ("weight", "bias")
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
    types: int
    first_position: Callable[[int], int]  # pad token -> row where positions begin
    classifier: Mapping[str, str]  # our layers of a head -> Hugging Face names
    masked: Mapping[str, str]
    masked_output: str  # what the names of its output layer begin with


BERT_NAMES = HuggingFaceNames(
    title="Bert",
    model_type="bert",
    prefix="bert.",
    norm="embeddings.LayerNorm",
    layer=BERT.layer,
    types=2,
    first_position=lambda pad: 0,
    classifier={"hidden": "bert.pooler.dense", "out": "classifier"},
    masked={"hidden": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"},
    masked_output="cls.predictions",
)
XL_NORMS = {
    "attention_norm": "encoder.layer.{}.attention.self_attn_layer_norm",
    "forward_norm": "encoder.layer.{}.LayerNorm",
}
XL_NAMES = HuggingFaceNames(
    title="XLMRobertaXL",
    model_type="xlm-roberta-xl",
    prefix="roberta.",
    norm="encoder.LayerNorm",
    layer={**BERT.layer, **XL_NORMS},
    types=1,
    first_position=lambda pad: pad + 1,
    classifier={"hidden": "classifier.dense", "out": "classifier.out_proj"},
    masked={"hidden": "lm_head.dense", "norm": "lm_head.layer_norm"},
    masked_output="lm_head",
)
GPT2_LAYER = {
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "attention_norm": "ln_1",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.down": "mlp.c_proj",
    "forward_norm": "ln_2",
}


@dataclass(frozen=True)
class Exported:
    folder: Path
    architecture: str  # the class of `transformers`
    whole: bool  # with its head: logits agree, not only hidden states

    @property
    def auto_class(self) -> str:
        return next((auto for end, auto in AUTO_CLASSES.items() if self.architecture.endswith(end)), "AutoModel")


def export_record(record: Record, folder: Path) -> Exported:
    recipe = record.recipe
    check_unsupported(recipe)
    weights, tokenizer = load(record.weights()), record.tokenizer()
    build = gpt2 if recipe.task == "lm" else encoder
    architecture, whole, config, tensors = build(recipe, weights, record.trial.labels, tokenizer)
    ensure_free(folder)
    marks = {"pad_token_id": tokenizer.pad, "bos_token_id": tokenizer.start, "eos_token_id": tokenizer.stop}
    config = {"architectures": [architecture], **config, "tie_word_embeddings": recipe.shape.tied, **marks}
    config["vocab_size"] = len(tensors[next(iter(tensors))])
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with preparing(folder), whole_folder(folder) as beside:
        write_text(beside / "config.json", json.dumps(config, indent=1) + "\n")
        write_bytes(beside / "model.safetensors", save(tensors, {"format": "pt"}))
        write_text(beside / "tokenizer.json", tokenizer.to_json())
        write_text(beside / "tokenizer_config.json", json.dumps(tokenizer_config(recipe, tokenizer), indent=1) + "\n")
    return Exported(folder, architecture, whole)


def check_unsupported(recipe: Recipe) -> None:
    """Networks that no architecture of `transformers` covers."""
    names = {choice.name for choice in recipe.parts}
    pools = {name for name in names if name.startswith("pool-")}
    shape, decoder = recipe.shape, recipe.task == "lm"
    no_parts = f"no architecture of `transformers` has these parts: {', '.join(sorted(names - pools)) or 'none'}"
    no_norm = f"no architecture of `transformers` fits with norm = {shape.norm!r}"
    no_bias = "GPT-2 has no bias in its output layer, and this record has one"
    train_again = "train with --set shape.output_bias=false to export a model"
    as_gpt2 = "train with --set parts=learned --set shape.output_bias=false to export a model as GPT-2"
    learned_only = as_gpt2 if decoder else "only networks with learned positions can be exported"
    for refused, what, hint in (
        (names - pools != {"learned"}, no_parts, learned_only),
        (pools & {"pool-cls", "pool-attention"}, "no architecture of `transformers` pools this way", "use pool-first"),
        (shape.norm != "layer", no_norm, "only layer norm can be exported"),
        (decoder and shape.norm_place != "pre", "GPT-2 is not post-norm", "only pre-norm decoders can be exported"),
        (decoder and shape.output_bias, no_bias, train_again),
    ):
        if refused:
            raise BadInput(what, hint)


Built = tuple[str, bool, dict[str, object], dict[str, Tensor]]


def gpt2(recipe: Recipe, weights: dict[str, Tensor], labels: Sequence[str], tokenizer: Tokenizer) -> Built:
    shape = recipe.shape
    found = {"transformer.wte.weight": weights["body.tokens.weight"]}
    found["transformer.wpe.weight"] = weights["body.parts.learned.table.weight"]
    for layer, (name, hf_name), kind in product(range(shape.layers), GPT2_LAYER.items(), KINDS):
        value = tensor_of(weights, f"body.blocks.{layer}.{name}", kind)
        found[f"transformer.h.{layer}.{hf_name}.{kind}"] = value.t().contiguous()  # its Conv1D stores them transposed
    for kind in KINDS:
        found[f"transformer.ln_f.{kind}"] = weights[f"body.norm.{kind}"]
    if not shape.tied:
        found["lm_head.weight"] = weights["out.weight"]
    config = {
        "model_type": "gpt2",
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_positions": shape.length,
        "n_embd": shape.width,
        "n_inner": shape.hidden,
        "activation_function": ACTIVATIONS[shape.activation],
        "resid_pdrop": shape.dropout,
        "embd_pdrop": shape.dropout,
        "attn_pdrop": shape.attention_dropout,
        "layer_norm_epsilon": shape.norm_epsilon,
    }
    return "GPT2LMHeadModel", True, config, found


def encoder(recipe: Recipe, weights: dict[str, Tensor], labels: Sequence[str], tokenizer: Tokenizer) -> Built:
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
    for kind in KINDS:
        put(f"{names.norm}.{kind}", weights[f"body.norm.{kind}"])
        for layer in range(shape.layers):
            block = f"body.blocks.{layer}"
            qkv = tensor_of(weights, f"{block}.attention.qkv", kind).chunk(3)
            for hf_name, value in zip(BERT.qkv, qkv, strict=True):
                put(f"{hf_name.format(layer)}.{kind}", value)
            for name, hf_name in names.layer.items():
                put(f"{hf_name.format(layer)}.{kind}", weights[f"{block}.{name}.{kind}"])
    if head != "Model":
        layers = names.classifier if recipe.task == "classify" else names.masked
        for (name, hf_name), kind in product(layers.items(), KINDS):
            found[f"{hf_name}.{kind}"] = weights[f"{name}.{kind}"]
    if head == "ForMaskedLM":
        output = weights.get("out.weight", weights["body.tokens.weight"])  # it may be the embedding
        found[f"{names.masked_output}.decoder.weight"] = output.clone()
        found[f"{names.masked_output}.decoder.bias"] = weights["out.bias"]
        found[f"{names.masked_output}.bias"] = weights["out.bias"].clone()
    config: dict[str, object] = {
        "model_type": names.model_type,
        **{hf_name: getattr(shape, field) for field, hf_name in BERT.sizes.items()},
        "max_position_embeddings": shape.length + names.first_position(tokenizer.pad),
        "type_vocab_size": names.types,
        "hidden_act": ACTIVATIONS[shape.activation],
        "layer_norm_eps": shape.norm_epsilon,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.attention_dropout,
    }
    if recipe.task == "classify":
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: number for number, label in enumerate(labels)}
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


def tensor_of(weights: dict[str, Tensor], name: str, kind: str) -> Tensor:
    """A bias of zeros where our queries, keys and values have none: Hugging Face's always have one."""
    matrix = weights[f"{name}.weight"]
    return weights.get(f"{name}.{kind}", matrix.new_zeros(len(matrix)))


def tokenizer_config(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, object]:
    marks = {what: getattr(tokenizer, what) for what in SPECIAL}
    named = {SPECIAL[what]: tokenizer.inner.id_to_token(mark) for what, mark in marks.items() if mark is not None}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": recipe.shape.length, **named}
