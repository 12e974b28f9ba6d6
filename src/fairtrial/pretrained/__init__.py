"""Pretrained encoders: published checkpoints and our own records, read into our network."""
