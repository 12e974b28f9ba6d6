"""T5GemmaForSequenceClassification, T5Gemma2ForSequenceClassification: a text that fills its row is answered one
decoder position earlier than the same text with padding after it."""

import torch
import transformers

sizes = {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
vision = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "image_size": 32,
}
encoders = {"T5Gemma": sizes, "T5Gemma2": {"text_config": sizes, "vision_config": vision}}
for name, encoder in encoders.items():
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(encoder=encoder, decoder=sizes)
    config.pad_token_id = 0
    model = getattr(transformers, f"{name}ForSequenceClassification")(config).eval()
    text = torch.randint(3, 100, (1, 10))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
        alone = model(text, attention_mask=torch.ones_like(text)).logits
        found = []
        for width in (1, 5):
            ids = torch.cat((text, torch.zeros(1, width, dtype=torch.long)), 1)
            found.append(model(ids, attention_mask=(ids != 0).long()).logits)
    differences = [float((each - found[0]).abs().max()) for each in (alone, found[1])]
    print(f"{name}: no padding - 1 token {differences[0]:.1e}, 5 tokens - 1 token {differences[1]:.1e}")
