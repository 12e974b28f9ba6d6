"""What a study tells while it runs: a kind and plain facts, for a screen, for lines, for JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listen = Callable[[str, dict[str, Any]], None]

# plan       what is about to happen: trials, seconds, what so many seeds can see
# notice     something that a user should know
# begin      a job begins: key, work
# step       a trial's progress: key, step, steps
# done       a job is done: key, work, and a trial's scores
# failed     a job failed: key, work, error
# verdict    the verdict file


def nobody(kind: str, facts: dict[str, Any]) -> None:
    """Listens to nothing."""
