"""DeepseekV4ForCausalLM, RecurrentGemmaForCausalLM, BltForCausalLM: what stands in the padding on the left, under a
mask of zeros, changes the logits of the text. GPT2LMHeadModel for comparison."""

import torch
import transformers

sizes = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
}
deepseek = {"moe_intermediate_size": 64, "head_dim": 16, "q_lora_rank": 8, "o_lora_rank": 8, "o_groups": 2}
deepseek |= {"n_routed_experts": 4, "num_experts_per_tok": 2, "index_n_heads": 16, "index_head_dim": 8, "index_topk": 8}
deepseek |= {"layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"], "sliding_window": 8}
deepseek |= {"compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}}
gemma = {"intermediate_size": 64, "lru_width": 32, "head_dim": 8, "attention_window_size": 8, "num_hidden_layers": 3}
inner = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}
blt = dict.fromkeys(("patcher_config", "global_config"), inner)
blt |= dict.fromkeys(("encoder_config", "decoder_config"), inner | {"hidden_size_global": 32})
families = {
    "GPT2LMHeadModel": ("GPT2Config", {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    "DeepseekV4ForCausalLM": ("DeepseekV4Config", sizes | deepseek),
    "RecurrentGemmaForCausalLM": ("RecurrentGemmaConfig", sizes | gemma),
    "BltForCausalLM": (
        "BltConfig",
        {"vocab_size": 100, "encoder_hash_byte_group_vocab": 64, "use_cache": False, **blt},
    ),
}
for name, (config, fields) in families.items():
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**fields)).eval()
    text, mask = torch.randint(3, 100, (1, 16)), torch.tensor([[0] * 5 + [1] * 16])
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
        padded = [torch.cat((torch.randint(3, 100, (1, 5)), text), 1) for _ in range(2)]
        one, other = (model(ids, attention_mask=mask, position_ids=positions).logits[:, 5:] for ids in padded)
    print(f"{name}: two contents of the padding differ by {(one - other).abs().max():.1e}")
