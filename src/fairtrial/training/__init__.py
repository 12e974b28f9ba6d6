"""Training: the loop, optimizers and schedules, scoring, checkpoints."""
