"""BltForCausalLM: with a cache, which is the default, BltConfig lacks what DynamicCache asks of it."""

import torch
from transformers import BltConfig, BltForCausalLM

inner = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}
blt = dict.fromkeys(("patcher_config", "global_config"), inner)
blt |= dict.fromkeys(("encoder_config", "decoder_config"), inner | {"hidden_size_global": 32})
model = BltForCausalLM(BltConfig(vocab_size=100, encoder_hash_byte_group_vocab=64, **blt)).eval()
for use_cache in (False, True):
    try:
        found = model(torch.randint(3, 100, (1, 8)), use_cache=use_cache).logits
        print(f"use_cache={use_cache}: logits {list(found.shape)}")
    except AttributeError as error:
        print(f"use_cache={use_cache}: AttributeError: {error}")
