"""The gate: keep a candidate, discard it, or run one more pair. Valid over hundreds of proposals."""
