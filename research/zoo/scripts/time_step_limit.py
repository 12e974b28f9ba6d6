"""Zamba2ForCausalLM, NemotronHForCausalLM: time steps below time_step_min are raised to it over a whole text, and not
token by token with a cache."""

import torch
from transformers import NemotronHConfig, NemotronHForCausalLM, Zamba2Config, Zamba2ForCausalLM

sizes = {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "chunk_size": 8}
zamba = {"num_hidden_layers": 2, "layers_block_type": ["linear_attention", "hybrid"], "n_mamba_heads": 4}
zamba |= {"mamba_d_state": 8, "num_key_value_heads": 4}
nemotron = {"layers_block_type": ["linear_attention", "full_attention"], "num_key_value_heads": 4, "head_dim": 8}
nemotron |= {"mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 8}
for kind, config in (
    (Zamba2ForCausalLM, Zamba2Config(**sizes, **zamba)),
    (NemotronHForCausalLM, NemotronHConfig(**sizes, **nemotron)),
):
    for bias in (0.0, -8.0):  # softplus(-8) = 0.0003 is below time_step_min = 0.001
        torch.manual_seed(0)
        model = kind(config).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.add_(0.2 * torch.randn_like(weight))
                if name.endswith("dt_bias"):
                    weight.fill_(bias)
            ids = torch.randint(3, 100, (1, 12))
            full, past, steps = model(ids).logits, None, []
            for token in ids.split(1, 1):
                output = model(token, past_key_values=past, use_cache=True)
                past = output.past_key_values
                steps.append(output.logits)
        print(f"{kind.__name__}, dt_bias {bias}: cached - full {(torch.cat(steps, 1) - full).abs().max():.1e}")
