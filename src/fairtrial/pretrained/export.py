"""A record as a folder that `transformers` loads, where one of its architectures fits.

Decoders: the first of `DECODERS` that has all that a network needs. Encoders with learned, sinusoidal or no positions
and LayerNorm: BERT (post-norm) or XLM-RoBERTa-XL (pre-norm: RoBERTa with no norm after the embedding)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any, cast

import torch
from safetensors.torch import load, save
from torch import Tensor

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import disk_errors, preparing, whole_folder, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.model.part import Part, build_parts, parts
from fairtrial.pretrained.checkpoint import BERT
from fairtrial.recipe import PartChoice, Recipe, Shape, to_table, toml
from fairtrial.record import Record, ensure_free

KINDS = ("weight", "bias")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}
SPECIAL = {"pad": "pad_token", "unknown": "unk_token", "start": "bos_token", "stop": "eos_token", "mask": "mask_token"}
AUTO_CLASSES = {
    "LMHeadModel": "AutoModelForCausalLM",
    "ForCausalLM": "AutoModelForCausalLM",
    "Decoder": "AutoModelForCausalLM",
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
Sizes = Mapping[str, Any]


def split(q: Tensor, k: Tensor, v: Tensor, heads: int) -> dict[str, Tensor]:
    return {"attention.q": q, "attention.k": k, "attention.v": v}


def joined(q: Tensor, k: Tensor, v: Tensor, heads: int) -> dict[str, Tensor]:
    return {"attention.qkv": torch.cat((q, k, v))}


def joined_by_head(q: Tensor, k: Tensor, v: Tensor, heads: int) -> dict[str, Tensor]:
    return {"attention.qkv": torch.cat([each.unflatten(0, (heads, -1)) for each in (q, k, v)], 1).flatten(0, 1)}


def unscaled(q: Tensor, k: Tensor, v: Tensor, heads: int) -> dict[str, Tensor]:
    """For scores that are not divided by the root of the head dimension: queries are."""
    return split(q / math.sqrt(len(q) / heads), k, v, heads)


@dataclass(frozen=True)
class Decoder:
    """A class of `transformers` for causal language models, and which of our networks it computes."""

    architecture: str
    model_type: str
    has: frozenset[str]  # features, as `features_of` names them
    names: Mapping[str, str]  # ours -> Hugging Face's, with {} for the number of the layer
    config: Mapping[str, str]  # entry of config.json -> one of our sizes
    fixed: Callable[[Sizes], dict[str, object]] = lambda sizes: {}  # other entries
    attention: Callable[..., dict[str, Tensor]] = split  # queries, keys, values, heads
    shares_keys: bool = True  # otherwise shared keys and values are written once for each head
    transposed: bool = False  # matrices of layers
    gemma: bool = False  # norms store their scale minus one, and token vectors are multiplied by sqrt(width)

    @property
    def title(self) -> str:
        return re.sub("(LMHeadModel|ForCausalLM|Decoder)$", "", self.architecture).replace("GPT", "GPT-")


def pairs(text: str, begin: str = "") -> dict[str, str]:
    """`tokens=wte norm=ln_f` -> a table"""
    return {ours: begin + theirs for ours, theirs in (pair.split("=") for pair in text.split())}


def windowed(sizes: Sizes) -> dict[str, object]:
    kind = "full_attention" if sizes["window"] is None else "sliding_attention"
    return {"use_sliding_window": sizes["window"] is not None, "layer_types": [kind] * sizes["layers"]}


GPT2_NAMES = {
    **pairs("tokens=transformer.wte positions=transformer.wpe norm=transformer.ln_f out=lm_head"),
    **pairs("attention.qkv=attn.c_attn attention.out=attn.c_proj attention_norm=ln_1", "transformer.h.{}."),
    **pairs("feed_forward.up=mlp.c_fc feed_forward.down=mlp.c_proj forward_norm=ln_2", "transformer.h.{}."),
}
NEO_ATTENTION = "attention.q=q_proj attention.k=k_proj attention.v=v_proj attention.out=out_proj"
NEO_NAMES = GPT2_NAMES | pairs(NEO_ATTENTION, "transformer.h.{}.attn.attention.")
NEOX_NAMES = {
    **pairs("tokens=gpt_neox.embed_in norm=gpt_neox.final_layer_norm out=lm_head"),
    **pairs("attention.qkv=query_key_value attention.out=dense", "gpt_neox.layers.{}.attention."),
    **pairs("feed_forward.up=dense_h_to_4h feed_forward.down=dense_4h_to_h", "gpt_neox.layers.{}.mlp."),
    **pairs("attention_norm=input_layernorm forward_norm=post_attention_layernorm", "gpt_neox.layers.{}."),
}
LLAMA_ATTENTION = "attention.q=q_proj attention.k=k_proj attention.v=v_proj attention.out=o_proj"
LLAMA_NAMES = {
    **pairs("tokens=model.embed_tokens norm=model.norm out=lm_head"),
    **pairs(f"{LLAMA_ATTENTION} query_norm=q_norm key_norm=k_norm", "model.layers.{}.self_attn."),
    # `gate_proj` is what the activation reads: our own layer; what our parts call a gate is multiplied with it
    **pairs("feed_forward.up=gate_proj feed_forward.gate=up_proj feed_forward.down=down_proj", "model.layers.{}.mlp."),
    **pairs("attention_norm=input_layernorm forward_norm=post_attention_layernorm", "model.layers.{}."),
}
STARCODER2_NAMES = LLAMA_NAMES | pairs("feed_forward.up=c_fc feed_forward.down=c_proj", "model.layers.{}.mlp.")
BERT_NAMES_OF_DECODER = {
    **pairs("tokens=word_embeddings positions=position_embeddings norm=LayerNorm", "bert.embeddings."),
    **{f"attention.{which}": f"bert.{hf_name}" for which, hf_name in zip("qkv", BERT.qkv, strict=True)},
    **{name: f"bert.{hf_name}" for name, hf_name in BERT.layer.items()},
    "out": "lm_head.decoder",
}
GPT2_SIZES = {
    **pairs("n_layer=layers n_head=heads n_positions=length n_embd=width n_inner=hidden resid_pdrop=dropout"),
    **pairs("activation_function=activation embd_pdrop=dropout attn_pdrop=attention_dropout"),
    "layer_norm_epsilon": "norm_epsilon",
}
SIZES = {**{hf_name: field for field, hf_name in BERT.sizes.items()}, "hidden_act": "activation"}
NEO_SIZES = {
    **pairs("num_layers=layers num_heads=heads max_position_embeddings=length hidden_size=width window_size=window"),
    **pairs("intermediate_size=hidden activation_function=activation resid_dropout=dropout embed_dropout=dropout"),
    **pairs("attention_dropout=attention_dropout layer_norm_epsilon=norm_epsilon"),
}
NEOX_SIZES = SIZES | pairs(
    "rotary_emb_base=base layer_norm_eps=norm_epsilon hidden_dropout=dropout attention_dropout=attention_dropout"
    " use_parallel_residual=parallel"
)
LLAMA_SIZES = SIZES | pairs(
    "num_key_value_heads=key_heads head_dim=head_dim rope_theta=base rms_norm_eps=norm_epsilon"
    " attention_dropout=attention_dropout mlp_bias=feed_forward_bias"
)
STARCODER2_SIZES = SIZES | pairs(
    "num_key_value_heads=key_heads rope_theta=base norm_epsilon=norm_epsilon sliding_window=window"
    " attention_dropout=attention_dropout residual_dropout=dropout embedding_dropout=dropout"
)
BERT_SIZES = SIZES | pairs(
    "layer_norm_eps=norm_epsilon hidden_dropout_prob=dropout attention_probs_dropout_prob=attention_dropout"
)
TABLES = {"learned", "sinusoidal", "none"}  # a table of positions has them
PLAIN = frozenset({"LayerNorm", "pre-norm", "plain", "feed-forward bias", "query bias", "output bias"})
LLAMA = frozenset({"RMSNorm", "pre-norm", "rope", "gated", "feed-forward bias", "query bias"})
WITH_BIAS: dict[str, object] = {"attention_bias": True}
DECODERS = (  # the first that fits is taken
    Decoder(
        *("Starcoder2ForCausalLM", "starcoder2", PLAIN | {"rope", "window"}, STARCODER2_NAMES, STARCODER2_SIZES),
        lambda sizes: {"use_bias": True},
    ),
    Decoder(
        *("GPTNeoXForCausalLM", "gpt_neox", PLAIN | {"rope", "parallel"}, NEOX_NAMES, NEOX_SIZES),
        lambda sizes: {"rotary_pct": 1.0, **WITH_BIAS},
        attention=joined_by_head,
        shares_keys=False,
    ),
    Decoder(
        *("GPT2LMHeadModel", "gpt2", PLAIN | TABLES, GPT2_NAMES, GPT2_SIZES),
        attention=joined,
        shares_keys=False,
        transposed=True,
    ),
    Decoder(
        *("GPTNeoForCausalLM", "gpt_neo", (PLAIN | TABLES | {"window"}) - {"query bias"}, NEO_NAMES, NEO_SIZES),
        lambda sizes: {"attention_types": [[["local"], sizes["layers"]]]},
        attention=unscaled,
        shares_keys=False,
    ),
    Decoder(
        "BertGenerationDecoder",
        "bert-generation",
        (PLAIN | TABLES | {"post-norm"}) - {"pre-norm"},
        BERT_NAMES_OF_DECODER,
        BERT_SIZES,
        lambda sizes: {"is_decoder": True},
        shares_keys=False,
    ),
    Decoder("LlamaForCausalLM", "llama", LLAMA, LLAMA_NAMES, LLAMA_SIZES, lambda sizes: WITH_BIAS),
    Decoder(
        *("SmolLM3ForCausalLM", "smollm3", LLAMA | {"window", "none"}, LLAMA_NAMES),
        LLAMA_SIZES | pairs("sliding_window=window"),
        lambda sizes: {"no_rope_layers": [int(sizes["rope"])] * sizes["layers"], **windowed(sizes), **WITH_BIAS},
    ),
    Decoder(
        *("ArceeForCausalLM", "arcee", (LLAMA | {"plain"}) - {"gated"}),
        LLAMA_NAMES | pairs("feed_forward.up=model.layers.{}.mlp.up_proj"),
        LLAMA_SIZES,
        lambda sizes: WITH_BIAS,
    ),
    Decoder(
        *("Qwen3ForCausalLM", "qwen3", (LLAMA | {"window", "qk-norm"}) - {"feed-forward bias"}, LLAMA_NAMES),
        LLAMA_SIZES | pairs("sliding_window=window"),
        lambda sizes: {**windowed(sizes), **WITH_BIAS},
    ),
    Decoder(
        *("VaultGemmaForCausalLM", "vaultgemma", (LLAMA | {"window", "soft-cap"}) - {"feed-forward bias"}),
        LLAMA_NAMES | pairs("forward_norm=model.layers.{}.pre_feedforward_layernorm"),
        LLAMA_SIZES | pairs("hidden_activation=activation attn_logit_softcapping=cap query_pre_attn_scalar=head_dim"),
        lambda sizes: {
            "final_logit_softcapping": None,
            **windowed(sizes),
            "sliding_window": sizes["window"] or sizes["length"],  # it makes the mask of a window in any case
            **WITH_BIAS,
        },
        gemma=True,
    ),
    Decoder(
        *("HYV3ForCausalLM", "hy_v3", LLAMA | {"qk-norm"}, LLAMA_NAMES, LLAMA_SIZES),
        lambda sizes: {"mlp_layer_types": ["dense"] * sizes["layers"], **WITH_BIAS},
    ),
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
    recipe = record.recipe
    if recipe.external:
        raise BadInput(f"a network of your own cannot be exported: {recipe.model.name}", "save it with its own library")
    if recipe.task == "lm":
        decoder_for(recipe)
    else:
        check_encoder(recipe)
    weights, tokenizer = load(record.weights()), record.tokenizer()
    build = decoder if recipe.task == "lm" else encoder
    architecture, whole, config, tensors = build(recipe, weights, record.trial.labels, tokenizer)
    ensure_free(folder)
    marks = {"pad_token_id": tokenizer.pad, "bos_token_id": tokenizer.start, "eos_token_id": tokenizer.stop}
    config = {"architectures": [architecture], "tie_word_embeddings": recipe.shape.tied, **config, **marks}
    config["vocab_size"] = len(tensors[next(iter(tensors))])
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with preparing(folder), whole_folder(folder) as beside:
        write_text(beside / "config.json", json.dumps(config, indent=1) + "\n")
        write_bytes(beside / "model.safetensors", save(tensors, {"format": "pt"}))
        write_text(beside / "tokenizer.json", tokenizer.to_json())
        write_text(beside / "tokenizer_config.json", json.dumps(tokenizer_config(recipe, tokenizer), indent=1) + "\n")
    return Exported(folder, architecture, whole)


Built = tuple[str, bool, dict[str, object], dict[str, Tensor]]
GATES = {"swiglu": "silu", "geglu": "gelu"}  # part -> its activation
SHARING = {"multi-query", "grouped-query"}  # any class will do: keys can be written once for each head
POSITIONS = {"rope", "learned", "sinusoidal"}
FIELDS = {  # feature -> what to set so that a network is without it
    "LayerNorm": "shape.norm=rms",
    "RMSNorm": "shape.norm=layer",
    "pre-norm": "shape.norm_place=post",
    "post-norm": "shape.norm_place=pre",
    "output bias": "shape.output_bias=false",
    "query bias": "shape.qkv_bias=false",
}


def feature_of(choice: PartChoice) -> str:
    """What a class of `transformers` must have for a part; a part that none has is a feature of its own."""
    if choice.options.get("global_tokens"):
        return f"{choice.name} with global_tokens"
    return "gated" if choice.name in GATES else "plain" if choice.name == "relu-squared" else choice.name


def features_of(recipe: Recipe) -> set[str]:
    """What a class of `transformers` must have to compute a decoder."""
    shape = recipe.shape
    found = {feature_of(choice) for choice in recipe.parts} - SHARING
    found |= {"LayerNorm" if shape.norm == "layer" else "RMSNorm", f"{shape.norm_place}-norm"}
    found |= {"gated"} & found or {"plain"}
    others = {name for name in found if not any(name in each.has for each in DECODERS)}
    ordered = POSITIONS & found or any(parts.find(name).sees_order for name in others & {*parts.list()})
    found = found - {"none"} if ordered else found | {"none"}
    biases = {"output bias": shape.output_bias, "query bias": shape.qkv_bias, "feed-forward bias": forward_bias(recipe)}
    return found | {name for name, there in biases.items() if there}


def forward_bias(recipe: Recipe) -> bool:
    return all(choice.options.get("bias", True) for choice in recipe.parts if choice.name in GATES)


def activation_of(recipe: Recipe) -> str:
    of_parts = {**GATES, "relu-squared": "relu2"}
    own = ACTIVATIONS[recipe.shape.activation]
    return next((of_parts[choice.name] for choice in recipe.parts if choice.name in of_parts), own)


def decoder_for(recipe: Recipe) -> Decoder:
    """The first class that has all that a network needs. If there is none: what the closest lacks, and what to set."""
    features = features_of(recipe)

    def cost(decoder: Decoder) -> int:  # a part counts twice as much as a field
        return sum(1 if name in FIELDS or name.endswith("bias") else 2 for name in features - decoder.has)

    closest = min(DECODERS, key=cost)
    missing = features - closest.has
    if not missing:
        return closest
    without = ", no ".join(describe(name, recipe) for name in sorted(missing))
    what = f"this network cannot be exported: {closest.title}, the closest class of `transformers`, has no {without}"
    settings = " ".join(f"--set {each}" for each in changes_for(recipe, closest))
    raise BadInput(what, f"train with {settings} to export it as {closest.title}")


def describe(feature: str, recipe: Recipe) -> str:
    gates = ", ".join(choice.name for choice in recipe.parts if choice.name in GATES)
    words = {"gated": gates, "plain": "feed-forward layer without a gate", "none": "network without positions"}
    field = FIELDS.get(feature, "").partition("=")[0]
    return words.get(feature, feature) + (f" ({field})" if field.startswith("shape.") else "")


def changes_for(recipe: Recipe, decoder: Decoder) -> list[str]:
    """Settings of a network like the recipe's that the class computes."""
    has, features = decoder.has, features_of(recipe)
    plain = [replace(choice, options=without(choice.options, "global_tokens")) for choice in recipe.parts]
    if "feed-forward bias" not in has:
        plain = [
            replace(each, options={**each.options, "bias": False}) if each.name in GATES else each for each in plain
        ]
    kept = [choice for choice in plain if choice.name in SHARING or feature_of(choice) in has]
    if POSITIONS.isdisjoint(choice.name for choice in kept) and "none" not in features & has:
        kept.insert(0, PartChoice(name="rope" if "rope" in has else "learned"))
    if "plain" in features - has:
        kept.append(PartChoice(name="swiglu", options={} if "feed-forward bias" in has else {"bias": False}))
    changed = [] if tuple(kept) == recipe.parts else [f"parts={quote(toml(to_table(kept)))}"]
    return changed + [FIELDS[name] for name in sorted(features - has) if name in FIELDS]


def without(options: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in options.items() if key != name}


def check_encoder(recipe: Recipe) -> None:
    """Encoders that no architecture of `transformers` covers."""
    names = {choice.name for choice in recipe.parts}
    pools = {name for name in names if name.startswith("pool-")}
    others = names - pools - TABLES - SHARING - {"relu-squared"}
    no_parts = f"no encoder of `transformers` has these parts: {', '.join(sorted(others))}"
    no_norm = f"no encoder of `transformers` fits with norm = {recipe.shape.norm!r}"
    for refused, what, hint in (
        (others, no_parts, "train with --set parts=learned to export an encoder"),
        (pools & {"pool-cls", "pool-attention"}, "no encoder of `transformers` pools this way", "use pool-first"),
        (recipe.shape.norm != "layer", no_norm, "train with --set shape.norm=layer to export an encoder"),
    ):
        if refused:
            raise BadInput(what, hint)


def decoder(recipe: Recipe, weights: dict[str, Tensor], labels: Sequence[str], tokenizer: Tokenizer) -> Built:
    shape, to = recipe.shape, decoder_for(recipe)
    sizes = sizes_of(recipe, weights)
    found: dict[str, Tensor] = {}

    def put(name: str, kind: str, value: Tensor, layer: int = 0) -> None:
        value = value - 1 if to.gemma and name.endswith("norm") else value
        transposed = to.transposed and name.startswith(("attention.", "feed_forward."))
        found[f"{to.names[name].format(layer)}.{kind}"] = (value.t() if transposed else value).contiguous()

    tokens = weights["body.tokens.weight"]
    out, bias = tokens if shape.tied else weights["out.weight"], weights.get("out.bias", torch.zeros(len(tokens)))
    folds = bool(bias.any()) and "pre-norm" in to.has  # these have no output bias, and a last norm that it goes into
    tied = shape.tied and not to.gemma and not folds
    put("tokens", "weight", tokens / math.sqrt(shape.width) if to.gemma else tokens)
    if "positions" in to.names:
        put("positions", "weight", position_table(recipe, weights))
    gates = next((f"body.parts.{choice.name}.gates" for choice in recipe.parts if choice.name in GATES), "")
    for layer, kind in product(range(shape.layers), KINDS):
        block = f"body.blocks.{layer}"
        sources = {
            **{name: f"{block}.{name}" for name in BERT.layer},
            "feed_forward.gate": f"{gates}.{layer}",
            "query_norm": f"body.parts.qk-norm.queries.{layer}",
            "key_norm": f"body.parts.qk-norm.keys.{layer}",
        }
        for name, source in sources.items():
            if f"{source}.{kind}" in weights:
                put(name, kind, weights[f"{source}.{kind}"], layer)
        if kind == "weight" or "query bias" in to.has:
            qkv = projections(weights, block, kind, shape, shared=to.shares_keys)
            for name, value in to.attention(*qkv, shape.heads).items():
                put(name, kind, value, layer)
    norm = {kind: weights[f"body.norm.{kind}"] for kind in KINDS if f"body.norm.{kind}" in weights}
    if folds:
        out = bias_into_norm(out, bias, norm["weight"], norm["bias"])
        norm = {kind: torch.ones_like(value) for kind, value in norm.items()}
    for kind, value in norm.items():
        put("norm", kind, value)
    if not tied:
        put("out", "weight", out)
    if "post-norm" in to.has:
        put("out", "bias", bias)
        found["lm_head.bias"] = bias.clone()
    config = {
        "model_type": to.model_type,
        "tie_word_embeddings": tied,
        **{name: sizes[ours] for name, ours in to.config.items()},
    }
    return to.architecture, True, config | to.fixed(sizes), found


def bias_into_norm(out: Tensor, bias: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """An output layer [entry width] with the same logits, which needs no bias after a LayerNorm with scale and shift 1.
    What leaves a LayerNorm adds up to 0 before its shift, so what is added to all columns counts by the shift only."""
    scaled = out.double() * scale
    constant = out.double() @ shift.double() + bias  # the logits of a zero vector [entry]
    return (scaled + ((constant - scaled.sum(1)) / len(scale))[:, None]).to(out.dtype)


def sizes_of(recipe: Recipe, weights: Mapping[str, Tensor]) -> Sizes:
    """What entries of config.json may be."""
    shape = recipe.shape
    built: Mapping[str, Any] = dict(build_parts(recipe.parts, shape, 0).items())
    others = len(weights["body.blocks.0.attention.qkv.weight"]) - shape.width  # rows of keys and values
    return {
        **vars(shape),
        "head_dim": shape.head_dim,
        "key_heads": others // (2 * shape.head_dim),
        "activation": activation_of(recipe),
        "feed_forward_bias": forward_bias(recipe),
        "cap": built["soft-cap"].cap if "soft-cap" in built else None,
        "base": built["rope"].base if "rope" in built else 10_000.0,
        "window": built["window"].size if "window" in built else None,
        "rope": "rope" in built,
        "parallel": "parallel" in built,
    }


def position_table(recipe: Recipe, weights: Mapping[str, Tensor]) -> Tensor:
    """What is added to the token at each position [position width]"""
    shape = recipe.shape
    built = build_parts([choice for choice in recipe.parts if choice.name in TABLES], shape, 0)
    built.load_state_dict({name: weights[f"body.parts.{name}"] for name in built.state_dict()})
    table = torch.zeros(shape.length, shape.width)
    with torch.no_grad():
        for part in built.values():
            table = cast(Part, part).embed(table, torch.arange(shape.length))
    return table


def projections(weights: Mapping[str, Tensor], block: str, kind: str, shape: Shape, *, shared: bool) -> list[Tensor]:
    """Queries, keys and values. A bias of zeros where ours have none. Unless `shared`, every head has its keys."""
    joined = tensor_of(weights, f"{block}.attention.qkv", kind)
    size = (len(joined) - shape.width) // 2
    q, k, v = joined.split((shape.width, size, size))
    if not shared and size < shape.width:
        by_head = (each.unflatten(0, (-1, shape.head_dim)) for each in (k, v))
        k, v = (each.repeat_interleave(shape.width // size, 0).flatten(0, 1) for each in by_head)
    return [q, k, v]


def encoder(recipe: Recipe, weights: dict[str, Tensor], labels: Sequence[str], tokenizer: Tokenizer) -> Built:
    shape = recipe.shape
    names: HuggingFaceNames = BERT_NAMES if shape.norm_place == "post" else XL_NAMES
    head, whole = head_of(recipe)
    prefix = "" if head == "Model" else names.prefix
    found: dict[str, Tensor] = {}

    def put(hf_name: str, value: Tensor) -> None:
        found[prefix + hf_name] = value.contiguous()

    positions = position_table(recipe, weights)
    put("embeddings.word_embeddings.weight", weights["body.tokens.weight"])
    before = positions.new_zeros(names.first_position(tokenizer.pad), shape.width)
    put("embeddings.position_embeddings.weight", torch.cat((before, positions)))
    put("embeddings.token_type_embeddings.weight", positions.new_zeros(names.types, shape.width))
    for kind in KINDS:
        put(f"{names.norm}.{kind}", weights[f"body.norm.{kind}"])
        for layer in range(shape.layers):
            block = f"body.blocks.{layer}"
            qkv = projections(weights, block, kind, shape, shared=False)
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
        "hidden_act": activation_of(recipe),
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


def tensor_of(weights: Mapping[str, Tensor], name: str, kind: str) -> Tensor:
    """A bias of zeros where our queries, keys and values have none: Hugging Face's always have one."""
    matrix = weights[f"{name}.weight"]
    return weights.get(f"{name}.{kind}", matrix.new_zeros(len(matrix)))


def tokenizer_config(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, object]:
    marks = {what: getattr(tokenizer, what) for what in SPECIAL}
    named = {SPECIAL[what]: tokenizer.inner.id_to_token(mark) for what, mark in marks.items() if mark is not None}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": recipe.shape.length, **named}
