"""GitForCausalLM without an image: with a cache, the padding mask is widened for image tokens that are not there."""

import torch
from transformers import GitConfig, GitForCausalLM

torch.manual_seed(0)
vision = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "image_size": 32,
}
sizes = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
model = GitForCausalLM(GitConfig(vision_config=vision, **sizes, initializer_range=0.2)).eval()
ids = torch.cat((torch.zeros(1, 5, dtype=torch.long), torch.randint(3, 100, (1, 10))), 1)
mask = (ids != 0).long()
positions = (mask.cumsum(1) - 1).clamp(min=0)
with torch.no_grad():
    full = model(ids, attention_mask=mask, position_ids=positions).logits[:, -1]
    first = {"attention_mask": mask[:, :-1], "position_ids": positions[:, :-1]}
    past = model(ids[:, :-1], **first, use_cache=True).past_key_values
    last = model(ids[:, -1:], attention_mask=mask, position_ids=positions[:, -1:], past_key_values=past).logits[:, -1]
print(f"left-padded text: cached - full {(last - full).abs().max():.1e}")
