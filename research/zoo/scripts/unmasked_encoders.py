"""YosoForSequenceClassification, NystromformerForSequenceClassification, ConvBertForSequenceClassification: what stands
in the padding on the right, under a mask of zeros, changes the answer. BertForSequenceClassification for comparison."""

import torch
import transformers

sizes = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
more = {"Nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 8}, "ConvBert": {"embedding_size": 32}}
for name in ("Bert", "Yoso", "Nystromformer", "ConvBert"):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes, **more.get(name, {}))
    model = getattr(transformers, f"{name}ForSequenceClassification")(config).eval()
    text, mask = torch.randint(3, 100, (1, 11)), torch.tensor([[1] * 11 + [0] * 5])
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
        padded = [torch.cat((text, torch.randint(3, 100, (1, 5))), 1) for _ in range(2)]
        one, other = (model(ids, attention_mask=mask).logits for ids in padded)
        unmasked = model(padded[0]).logits
    difference, ignored = (one - other).abs().max(), torch.equal(unmasked, one)
    print(f"{name}: two contents of the padding differ by {difference:.1e}{'; the mask changes nothing' * ignored}")
