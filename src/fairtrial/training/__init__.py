"""Training: the loop, optimizers and schedules, scoring, checkpoints."""

from fairtrial.training.tasks import token_set

__all__ = ["token_set"]
