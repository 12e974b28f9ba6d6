"""MoshiForCausalLM: the cache forgets what is beyond the sliding window, attention without a cache does not."""

import torch
from transformers import MoshiConfig, MoshiForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
config = MoshiConfig(**sizes, num_key_value_heads=4, head_dim=8, sliding_window=8, initializer_range=0.2)
model = MoshiForCausalLM(config).eval()
for length in (8, 9, 16):
    ids = torch.randint(3, 100, (1, length))
    with torch.no_grad():
        full = model(ids).logits[:, -1]
        past = model(ids[:, :-1], use_cache=True).past_key_values
        last = model(ids[:, -1:], past_key_values=past, use_cache=True).logits[:, -1]
    print(f"window 8, {length} tokens: cached - full {(last - full).abs().max():.1e}")
