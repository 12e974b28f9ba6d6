"""BambaForCausalLM: without position_ids, tokens after a cache are rotated as if they were the first."""

import torch
from transformers import BambaConfig, BambaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 4, "mamba_d_state": 8}
config = BambaConfig(**sizes, **heads, attn_layer_indices=[1], mamba_chunk_size=8, initializer_range=0.2)
model = BambaForCausalLM(config).eval()
ids = torch.randint(3, 100, (1, 12))
with torch.no_grad():
    full = model(ids).logits[:, -1]
    for given in ({}, {"position_ids": torch.tensor([[11]])}):
        past = model(ids[:, :-1], use_cache=True).past_key_values
        last = model(ids[:, -1:], past_key_values=past, use_cache=True, **given).logits[:, -1]
        print(f"{'with' if given else 'without'} position_ids: cached - full {(last - full).abs().max():.1e}")
