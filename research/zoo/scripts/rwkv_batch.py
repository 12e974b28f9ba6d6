"""RwkvForCausalLM: with a state, one token for each of several texts gives logits of a wrong shape."""

import torch
from transformers import RwkvConfig, RwkvForCausalLM

torch.manual_seed(0)
model = RwkvForCausalLM(RwkvConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, context_length=32)).eval()
for batch in (1, 4):
    ids = torch.randint(3, 100, (batch, 6))
    with torch.no_grad():
        state = model(ids[:, :5], use_cache=True).state
        found = model(ids[:, 5:], state=state, use_cache=True).logits
    print(f"logits of {batch} x 1 tokens: {list(found.shape)}")
