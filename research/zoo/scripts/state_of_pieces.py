"""MambaForCausalLM, FalconMambaForCausalLM, JambaForCausalLM, ZambaForCausalLM: what follows a cache as more than one
token is read as if the recurrent state were empty; token by token it is right."""

import torch
import transformers

mamba = {"num_hidden_layers": 2, "state_size": 8}
attention = {"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64, "mamba_d_state": 8}
jamba = {
    "num_hidden_layers": 2,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_experts": 2,
    "num_experts_per_tok": 1,
}
zamba = {"num_hidden_layers": 5, "attention_hidden_size": 64, "attention_head_dim": 16}
zamba["layers_block_type"] = ["linear_attention", "linear_attention", "hybrid", "linear_attention", "hybrid"]
families = {
    "Mamba": (mamba, "cache_params"),
    "FalconMamba": (mamba, "cache_params"),
    "Jamba": (attention | jamba, "past_key_values"),
    "Zamba": (attention | zamba, "past_key_values"),
}
for name, (fields, cache) in families.items():
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(vocab_size=100, hidden_size=32, **fields)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    ids = torch.randint(3, 100, (1, 12))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
        full = model(ids).logits[:, -1]
        for rest in ([1, 1, 1, 1], [4]):
            past = getattr(model(ids[:, :8], use_cache=True), cache)
            for piece in ids[:, 8:].split(rest, 1):
                output = model(piece, **{cache: past}, use_cache=True)
                past = getattr(output, cache)
            print(f"{name}, 8 + {rest}: cached - full {(output.logits[:, -1] - full).abs().max():.1e}")
