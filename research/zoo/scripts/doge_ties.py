"""DogeForCausalLM: beyond keep_window_size, keys are chosen by a score that repeated tokens share in the first layer;
which of the equal ones are chosen depends on the length of the padding."""

import torch
from transformers import DogeConfig, DogeForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
config = DogeConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, keep_window_size=8)
model = DogeForCausalLM(config).eval()
with torch.no_grad():
    for weight in model.parameters():
        weight.add_(0.2 * torch.randn_like(weight))
    for what, ids in (
        ("16 different tokens", torch.randperm(90)[None, :16] + 3),
        ("4 tokens, 4 times each", torch.randperm(90)[None, :4].repeat(1, 4) + 3),
    ):
        alone, worst = model(ids).logits, 0.0
        for width in range(17, 33):
            padded = torch.cat((ids, torch.zeros(1, width - 16, dtype=torch.long)), 1)
            mask = (torch.arange(width) < 16).long()[None]
            worst = max(worst, float((model(padded, attention_mask=mask).logits[:, :16] - alone).abs().max()))
        print(f"{what}: padded on the right - alone {worst:.1e}")
