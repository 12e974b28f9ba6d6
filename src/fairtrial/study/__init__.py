"""Studies: variants x seeds, run on any engine, judged together."""
