"""Statistics and verdicts. Pure functions of arrays; no torch."""
