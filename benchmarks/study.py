"""Do two processes do twice the work of one? The same trials, one at a time and two at a time, in one run.

python benchmarks/study.py [--trials 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from fairtrial.engines import Job
from fairtrial.engines.processes import Processes
from fairtrial.recipe import built_in_recipe, with_settings, write_recipe

SETTINGS = ["training.duration=150 steps", "scoring.curve_every=150 steps", "scoring.full_context=0.5"]


def run(width: int, trials: int, task: str) -> float:
    """Seconds for so many trials, so many at a time."""
    text = write_recipe(with_settings(built_in_recipe("default", task), SETTINGS))
    with tempfile.TemporaryDirectory() as workspace:
        jobs = [
            Job((task, "x", str(seed)), "trial", text, seed, str(Path(workspace) / str(seed))) for seed in range(trials)
        ]
        begun = time.monotonic()
        for answer in Processes(width).run(jobs, lambda event: None, lambda: False):
            if answer.value is None:
                raise SystemExit(answer.error)
        return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    run(1, 1, "classify")  # the server that processes are forked from is up
    for task in ("classify", "lm"):
        ratios = []
        for _ in range(asked.rounds):
            one, two = run(1, asked.trials, task), run(2, asked.trials, task)
            ratios.append(one / two)
            print(
                f"{task}: {asked.trials} trials, one at a time {one:.1f} s, two at a time {two:.1f} s: {one / two:.2f}x"
            )
        print(f"{task}: two processes do {median(ratios):.2f} times the work of one (median of {asked.rounds})")


if __name__ == "__main__":
    main()
