"""Mixtures: a transformer and models that count words, as one model whose weights were chosen on validation."""
