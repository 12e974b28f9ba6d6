"""ReformerModelWithLMHead: position_ids of a text whose length is not a multiple of the chunk raise an error."""

import torch
from transformers import ReformerConfig, ReformerModelWithLMHead

sizes = {
    "vocab_size": 100,
    "hidden_size": 32,
    "attention_head_size": 8,
    "num_attention_heads": 4,
    "feed_forward_size": 64,
}
more = {"attn_layers": ["local", "local"], "local_attn_chunk_length": 8, "axial_pos_embds": False, "is_decoder": True}
model = ReformerModelWithLMHead(ReformerConfig(**sizes, **more, max_position_embeddings=32)).eval()
for length in (16, 12):
    ids = torch.randint(3, 100, (1, length))
    try:
        shape = list(model(ids, position_ids=torch.arange(length)[None]).logits.shape)
        print(f"{length} tokens: logits {shape}")
    except RuntimeError as error:
        print(f"{length} tokens: RuntimeError: {error}")
