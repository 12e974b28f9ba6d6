"""ProphetNetForCausalLM: later tokens, and the number of them, change the logits of earlier ones."""

import torch
from transformers import ProphetNetConfig, ProphetNetForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 100, "hidden_size": 32, "num_decoder_layers": 2, "num_decoder_attention_heads": 4}
model = ProphetNetForCausalLM(ProphetNetConfig(**sizes, decoder_ffn_dim=64, max_position_embeddings=40)).eval()
with torch.no_grad():
    for weight in model.parameters():
        weight.add_(0.2 * torch.randn_like(weight))
    ids = torch.randint(3, 100, (1, 12))
    other = torch.cat((ids[:, :3], torch.randint(3, 100, (1, 9))), 1)
    before, changed, shorter = (model(each).logits[:, :3] for each in (ids, other, ids[:, :6]))
print(f"first 3 of 12 tokens: other tokens after them change their logits by {(changed - before).abs().max():.1e},")
print(f"6 tokens instead of 12 by {(shorter - before).abs().max():.1e}")
