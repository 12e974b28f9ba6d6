"""Text: reading, splitting, tokenizers, batches. No model, no torch."""
