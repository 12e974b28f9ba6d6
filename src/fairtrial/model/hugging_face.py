"""The networks that a recipe's `model` names: a builder of the user's own, or `hf:CLASS` (Hugging Face, random first
weights), which needs no code.

A class of transformers is built small: the recipe's shape under the names that the class has for it, and whatever else
has a size (experts, ranks, states, windows, inner models) made small, too."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import nn

from fairtrial.errors import BadInput
from fairtrial.model.external import BUILD, Builder, ExternalModel, build_external, format_error, models
from fairtrial.recipe import PartChoice, Shape
from fairtrial.registry import did_you_mean

LIBRARY = "hf:"
HEADS = {"lm": "ForCausalLM", "classify": "ForSequenceClassification"}
# what some families need to be told of, or are asked wrongly for: the beginning of a class's name -> declarations
DECLARED: dict[str, dict[str, Any]] = {
    "RecurrentGemma": {"cache": "none"},  # it takes one and gives none: its state is inside its layers
    "XLMWith": {"cache": "none"},  # what it calls so is filled by its caller
    "Canine": {"shortest": 4},
    "Funnel": {"shortest": 8},
    "MobileBert": {"pad": 0},  # its trigrams read the padding, whose vector is zero
    "XLM": {"pad": 0},  # texts end where its id begins
    "Flaubert": {"pad": 0},
    "XLNetForSequenceClassification": {"pads": "left"},  # it answers at the last position
}


CHUNKS = ("chunk_size", "mamba_chunk_size", "sliding_window", "attention_window", "window_size", "block_size")
# what the name of a size says of its role, the first that fits; it is set to the size of the role where it is larger
ROLES = {
    re.compile(words): role
    for words, role in (
        (r"vocab", "vocabulary"),
        (r"position|n_ctx|context_len|seq_len", "length"),
        (r"chunk|window|block_size|attention$|stride|index_topk$", "chunk"),
        (r"(kv|key|key_value)_n?_?heads|n_groups", "key heads"),
        (r"(?<!^qk_)head_dim|head_size|d_kv|d_head|dim_head|channels|rotary_dim|pre_attn_scalar", "head_dim"),
        (r"heads?$", "heads"),
        (r"rank|state|num_latents|landmarks|per_layer|d_rel", "few"),
        (r"experts?(_num)?$", "experts"),
        (r"per_tok|moe_top_?k|moe_k|top_k_experts", "chosen"),
        (r"layers?$|num_blocks|depth|per_block", "layers"),
        (r"intermediate|inner|ffn|d_?ff$|dim_ff|feed_forward|hidden_dim|mlp_dim|router_hidden", "hidden"),
        (r"(hidden|embed\w*|emb|bottleneck|image)_size|d_model|n_embd|(^|_)dim$|width$|d_latents|_dim$", "width"),
    )
}
SMALL = {"chunk": 8, "few": 8, "experts": 4, "chosen": 2}  # tokens of a chunk: so that a short text has several
# lists with one entry for each layer: every kind of layer that the family has by default, once
LAYER_KINDS = ("layer_types", "layers_block_type", "mlp_layer_types")
TOKENS = {"pad_token_id": 0, "pad_index": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
SMALLER = {  # of layers and groups: rarer sizes, each of its own meaning
    "first_k_dense_replace": 1,
    "num_dense_layers": 1,
    "sliding_window_pattern": 2,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "n_group": 2,
    "topk_group": 1,
    "num_kv_shared_layers": 0,
}
CORE = {  # set whatever the default is
    "vocab_size": "vocabulary",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "hidden",
    "n_inner": "hidden",
    "head_dim": "head_dim",
    "max_position_embeddings": "length",
}


def build_model(choice: PartChoice, task: str, vocabulary: int, classes: int, shape: Shape, seed: int) -> ExternalModel:
    """The network that a recipe's `model` names."""
    if task not in HEADS:
        raise BadInput(f"a model of your own cannot be trained for the task {task!r}", "tasks: lm, classify")
    builder = find_builder(choice.name)
    return build_external(choice.name, builder, choice.options, task, (vocabulary, shape.length, classes), shape, seed)


def find_builder(name: str) -> Builder:
    if name.startswith(LIBRARY):
        return partial(build_hf, hf_class(name.removeprefix(LIBRARY)))
    if name in models.list():
        return models.find(name)
    hint = f"name its file (--model FILE.py:FUNCTION, or --with FILE.py); the function takes {', '.join(BUILD)}"
    raise BadInput(f"no model is called {name!r}{did_you_mean(name, models.list())}", hint)


def sources_of(name: str) -> dict[str, Path]:
    """The library behind a name, with its version, and the file that has the class: what a record was trained with."""
    if not name.startswith(LIBRARY):
        return {}
    kind = hf_class(name.removeprefix(LIBRARY))
    return {f"transformers {version('transformers')} ({kind.__module__})": Path(inspect.getfile(kind))}


def hf_class(name: str) -> Any:
    """A class of transformers. Nothing is downloaded and no remote code is run."""
    try:
        import transformers
    except ImportError as error:
        raise BadInput("transformers is not installed", "pip install transformers") from error
    kind = getattr(transformers, name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module) and getattr(kind, "config_class", None)):
        known = [each for each in dir(transformers) if each.endswith((*HEADS.values(), "LMHeadModel"))]
        raise BadInput(f"transformers has no model {name!r}{did_you_mean(name, known)[:80]}")
    return kind


def build_hf(
    kind: Any, vocabulary: int, length: int, classes: int, seed: int, shape: Shape, task: str, **options: Any
) -> nn.Module:
    if task == "lm" and kind.__name__.endswith(HEADS["classify"]):
        raise BadInput(f"{kind.__name__} is a classifier, and the task is 'lm'", f"take a class such as {HEADS['lm']}")
    model = build_small(kind, vocabulary, length, classes, shape, task, options)
    skipped = skipped_positions(model)
    if skipped:  # it counts positions from there: once more, with as many more of them
        fields = {"max_position_embeddings": length + skipped, **options}
        model = build_small(kind, vocabulary, length, classes, shape, task, fields)
    config = model.config
    takes = inspect.signature(kind.forward).parameters
    can_map = bool(getattr(kind, "_can_record_outputs", None) or "output_attentions" in takes)
    said: dict[str, Any] = {
        "pads": ("both" if task == "lm" else "right") if "attention_mask" in takes else "none",
        "chunk": chunk_of(config),
        "maps": can_map and getattr(config, "num_attention_heads", 0) > 0,
        "longest": max(0, longest_of(model, length) - skipped),
        "first_position": skipped,
        "single": True,
    }
    encoder = re.search("Bert(?!Decoder)|Electra|MPNet|Deberta|Albert|FNet|Funnel|Longformer", kind.__name__)
    if skipped or (task == "classify" and not encoder):
        said["pad"] = 0  # found by its id: positions count without it, or the last token is the last other one
    if task == "classify" and getattr(config, "is_encoder_decoder", False):
        said["end"] = config.eos_token_id
    for name, known in DECLARED.items():
        said |= known if kind.__name__.startswith(name) else {}
    model.fairtrial = said
    return model


def build_small(
    kind: Any, vocabulary: int, length: int, classes: int, shape: Shape, task: str, options: Mapping[str, Any]
) -> Any:
    try:
        return kind(small_config(kind.config_class, vocabulary, length, classes, shape, task, options))
    except BadInput:
        raise
    except Exception as error:
        hint = "give options that fit together: hf:CLASS:hidden_size=32,num_attention_heads=2"
        raise BadInput(f"{kind.__name__} cannot be built so small: {format_error(error)}", hint) from error


def position_tables(model: nn.Module) -> list[Any]:
    named = ((name.rpartition(".")[2], each) for name, each in model.named_modules())
    return [each for name, each in named if re.search(r"(?:^|_)(wpe|position|pos)", name) and hasattr(each, "weight")]


def skipped_positions(model: nn.Module) -> int:
    """Positions that stand for padding and what is before it, as in RoBERTa, which counts from the next."""
    found = [getattr(each, "padding_idx", None) for each in position_tables(model)]
    return max((index + 1 for index in found if index is not None), default=0)


def longest_of(model: nn.Module, length: int) -> int:
    """How much it can read at once: the rows of a table of positions; 0: no limit is known."""
    tables = [len(each.weight) for each in position_tables(model) if isinstance(each, nn.Embedding)]
    return min((size for size in tables if size >= length), default=0)


def chunk_of(config: Any) -> int:
    """Tokens of the largest chunk or window that a configuration, or one inside it, names; 0: it names none."""
    inner = [chunk_of(each) for each in vars(config).values() if hasattr(each, "to_dict")]
    named = (getattr(config, name, None) for name in CHUNKS)
    return max((size for size in (*named, *inner) if type(size) is int), default=0)


def settable(config_class: Any) -> set[str]:
    """The fields that a configuration takes by name; what it computes from them is not among them."""
    return set(inspect.signature(config_class.__init__).parameters) - {"self", "kwargs"}


def small_config(
    own: Any, vocabulary: int, length: int, classes: int, shape: Shape, task: str, options: Mapping[str, Any]
) -> Any:
    """A configuration of this class and size, and the options over it."""
    known, renamed = settable(own), getattr(own, "attribute_map", {}) or {}
    for name in options:
        if renamed.get(name, name) not in known:
            raise BadInput(f"{own.__name__} has no field {name!r}{did_you_mean(name, sorted(known))}")
    given = small_fields(own, sizes_of(vocabulary, length, shape))
    if task == "lm":
        given |= {name: True for name in ("is_decoder", "causal") if name in known}
    if task == "classify":
        given["num_labels"] = classes
        if getattr(own(), "is_encoder_decoder", False):
            given.setdefault("decoder_start_token_id", TOKENS["decoder_start_token_id"])
    return own(**{**given, **{renamed.get(name, name): value for name, value in options.items()}})


def sizes_of(vocabulary: int, length: int, shape: Shape) -> dict[str, int]:
    """By role."""
    own = {"width": shape.width, "hidden": shape.hidden, "layers": shape.layers, "heads": shape.heads}
    own |= {"key heads": max(1, shape.heads // 2), "head_dim": shape.head_dim}
    return {"vocabulary": vocabulary, "length": length, **own, **SMALL}


def role_of(name: str) -> str:
    return next((role for words, role in ROLES.items() if words.search(name)), "")


def small_fields(own: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Fields of a configuration class, and of those inside it, that make it small."""
    usual, known = own(), settable(own)
    renamed = getattr(own, "attribute_map", {}) or {}
    defaults = {name: default_of(own, usual, name) for name in known}
    given: dict[str, Any] = {}
    for name, value in defaults.items():
        role, smaller = role_of(name), SMALLER.get(name)
        if name in TOKENS:
            given[name] = TOKENS[name] if value is not None or name == "pad_token_id" else None
        elif type(value) is int and (smaller is not None or role):
            given[name] = min(value, sizes[role] if smaller is None else smaller)
        elif hasattr(value, "to_dict"):  # a configuration inside this one
            given[name] = small_fields(type(value), sizes)
    core = {renamed.get(name, name): sizes[role] for name, role in CORE.items()}
    given |= {name: size for name, size in core.items() if name in known}
    if "num_key_value_heads" in known:
        heads, keys = defaults.get("num_attention_heads"), defaults["num_key_value_heads"]
        grouped = isinstance(heads, int) and isinstance(keys, int) and keys < heads
        given["num_key_value_heads"] = sizes["key heads" if grouped else "heads"]
    if {"expand", "num_heads", "head_dim"} <= known:  # a state-space model: heads x their size = expand x width
        given["head_dim"] = usual.expand * sizes["width"] // sizes["heads"]
    kinds = {
        name: list(dict.fromkeys(found))
        for name in LAYER_KINDS
        if name in known and (found := getattr(usual, name, None))
    }
    if kinds:
        layers = max(sizes["layers"], *map(len, kinds.values()))
        given |= {name: (found * layers)[:layers] for name, found in kinds.items()}
        given |= {name: layers for name in given if role_of(name) == "layers" and name not in SMALLER}
    return given


def default_of(own: Any, usual: Any, name: str) -> Any:
    value = inspect.signature(own.__init__).parameters[name].default
    if value is None or value is inspect.Parameter.empty:
        try:
            return getattr(usual, name, None)
        except Exception:  # differs between layers
            return None
    return value
