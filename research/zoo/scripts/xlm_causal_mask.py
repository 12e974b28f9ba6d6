"""XLMWithLMHeadModel with causal=True: the attention mask hides no key, so padding on the left is attended to."""

import torch
from transformers import XLMConfig, XLMWithLMHeadModel

torch.manual_seed(0)
config = XLMConfig(vocab_size=100, emb_dim=32, n_layers=2, n_heads=4, causal=True, pad_index=0, embed_init_std=0.3)
model = XLMWithLMHeadModel(config).eval()
text = torch.randint(3, 100, (1, 10))
ids = torch.cat((torch.zeros(1, 5, dtype=torch.long), text), 1)
mask = (ids != 0).long()
positions = (mask.cumsum(1) - 1).clamp(min=0)
with torch.no_grad():
    alone = model(text).logits
    padded = model(ids, attention_mask=mask, position_ids=positions, output_attentions=True)
shown = padded.attentions[0][0, :, -1, :5].sum(-1).max()
print(f"padded - alone {(padded.logits[:, 5:] - alone).abs().max():.1e}")
print(f"attention of the last token on padding {shown:.2f}")
