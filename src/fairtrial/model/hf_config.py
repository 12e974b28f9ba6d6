"""A small configuration of any class of transformers: the recipe's shape under the names that the class has for it, and
whatever else has a size (experts, ranks, states, windows, inner models) made small, too."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.recipe import Shape
from fairtrial.registry import did_you_mean

CHUNKS = ("chunk_size", "mamba_chunk_size", "sliding_window", "attention_window", "window_size", "block_size")
SMALL_CHUNK = 8  # tokens: so that a short text has several
FEW = 8  # of a rank, a state, a feature
EXPERTS, CHOSEN = 4, 2
# what families call a size; it is set to that of the role where it is larger
SIZES = {
    "vocabulary": "vocab_size decoder_vocab_size vocab_size_per_layer_input unpadded_vocab_size",
    "length": "max_position_embeddings n_positions n_ctx context_length max_seq_len max_target_positions",
    "width": "hidden_size d_model n_embd dim emb_dim embedding_dim embedding_size input_embedding_size "
    "hidden_size_global output_embedding_size attention_hidden_size lru_width prediction_head_size "
    "pronunciation_embed_dim shape_embed_dim entity_emb_size d_latents intra_bottleneck_size "
    "backbone_hidden_size dim_model_base true_hidden_size",
    "hidden": "intermediate_size n_inner ffn_dim d_ff d_inner dff dim_ff hidden_dim ffn_hidden_size decoder_ffn_dim "
    "encoder_ffn_dim moe_intermediate_size shared_expert_intermediate_size expert_ffn_hidden_size "
    "feed_forward_size dense_intermediate_size intermediate_size_mlp moe_shared_expert_intermediate_size "
    "shared_intermediate_size mlp_dim router_hidden_size prompt_mid_dim",
    "layers": "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers "
    "num_decoder_layers num_blocks depth num_self_attends_per_block num_mtp_layers",
    "heads": "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
    "attention_heads num_encoder_attention_heads num_decoder_attention_heads mamba_n_heads "
    "mamba_num_heads swa_num_attention_heads num_self_attention_heads num_cross_attention_heads "
    "linear_num_value_heads linear_num_heads",
    "key heads": "num_key_value_heads num_kv_heads kv_n_heads linear_num_key_heads swa_num_key_value_heads n_groups "
    "mamba_n_groups",
    "head_dim": "head_dim attention_head_size attention_head_dim d_kv d_head dim_head kv_channels swa_head_dim "
    "v_head_dim qk_nope_head_dim qk_rope_head_dim index_head_dim linear_head_dim linear_key_head_dim "
    "linear_value_head_dim rotary_dim query_pre_attn_scalar global_head_dim",
    "experts": "num_experts num_local_experts n_routed_experts moe_num_experts zero_expert_num",
    "chosen": "num_experts_per_tok moe_k moe_topk moe_top_k top_k_experts",
    "chunk": "chunk_size mamba_chunk_size sliding_window sliding_window_size attention_window "
    "attention_window_size local_attention window_size attention_chunk_size block_size "
    "lsh_attn_chunk_length local_attn_chunk_length keep_window_size index_topk index_block_size "
    "local_transformer_stride",
    "few": "q_lora_rank kv_lora_rank o_lora_rank laurel_rank adapter_rank hc_lowrank gated_norm_rank d_rel "
    "state_size ssm_state_size mamba_d_state hidden_size_per_layer_input num_landmarks "
    "segment_means_seq_len num_latents coordinate_size shape_size xpath_unit_hidden_size rel_extent",
}
# lists with one entry for each layer: every kind of layer that the family has by default, once
LAYER_KINDS = ("layer_types", "layers_block_type", "mlp_layer_types")
SMALLER = {  # rarer sizes, each of its own meaning
    "first_k_dense_replace": 1,
    "num_dense_layers": 1,
    "sliding_window_pattern": 2,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "global_attn_every_n_layers": 2,
    "no_rope_layer_interval": 2,
    "layer_group_size": 2,
    "n_group": 2,
    "topk_group": 1,
    "o_groups": 2,
    "num_kv_shared_layers": 0,
    "index_topk_blocks": 2,
    "index_n_heads": 16,  # with few, scores of exactly 0 tie
    "entity_vocab_size": 32,
    "num_hash_buckets": 64,
    "max_2d_position_embeddings": 64,
    "pronunciation_vocab_size": 32,
    "shape_vocab_size": 32,
    "image_size": 32,
    "patch_size": 8,
    "encoder_hash_byte_group_vocab": 64,
}

TOKENS = {"pad_token_id": 0, "pad_index": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
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

ROLE_OF = {name: role for role, names in SIZES.items() for name in names.split()}


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
    return {
        "vocabulary": vocabulary,
        "length": length,
        "width": shape.width,
        "hidden": shape.hidden,
        "layers": shape.layers,
        "heads": shape.heads,
        "key heads": max(1, shape.heads // 2),
        "head_dim": shape.head_dim,
        "experts": EXPERTS,
        "chosen": CHOSEN,
        "chunk": SMALL_CHUNK,
        "few": FEW,
    }


def small_fields(own: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Fields of a configuration class, and of those inside it, that make it small."""
    usual, known = own(), settable(own)
    renamed = getattr(own, "attribute_map", {}) or {}
    defaults = {name: default_of(own, usual, name) for name in known}
    given: dict[str, Any] = {}
    for name, value in defaults.items():
        role = ROLE_OF.get(name, "")
        if name in TOKENS:
            given[name] = TOKENS[name] if value is not None or name == "pad_token_id" else None
        elif role and type(value) is int and value > sizes[role]:
            given[name] = sizes[role]
        elif name in SMALLER and type(value) is int and value > SMALLER[name]:
            given[name] = SMALLER[name]
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
        given |= {name: layers for name, role in ROLE_OF.items() if role == "layers" and name in given}
    return given


def default_of(own: Any, usual: Any, name: str) -> Any:
    value = inspect.signature(own.__init__).parameters[name].default
    if value is None or value is inspect.Parameter.empty:
        try:
            return getattr(usual, name, None)
        except Exception:  # differs between layers
            return None
    return value
