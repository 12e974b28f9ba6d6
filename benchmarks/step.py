"""Speed of a training step, side by side in one run: fairtrial against transformers and x-transformers.

    python benchmarks/step.py            # ratios, then peak memory, time to first step and time of --help
    python benchmarks/step.py --rounds 200

One thread each, the course's shape, real batches. The contenders take turns, step by step, so that a busy moment of the
machine hits all of them; the ratio is of medians. FAIRTRIAL_DATA names the folder that holds the course's speeches/;
without it the embedded corpus is used.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
TASKS = ("classify", "lm")
WARM_UP = 10


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=120, help="steps of each contender")
    options.add_argument("--alone", nargs=2, metavar=("TASK", "NAME"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        run_alone(*chosen.alone)
        return
    for task in TASKS:
        race(task, chosen.rounds)
    print("alone in a process of its own, 30 steps:")
    for task in TASKS:
        compare_alone(task)
    print_help_time()


def race(task: str, rounds: int) -> None:
    import torch

    from contenders import NAMES, course_recipe, make_ours, make_theirs

    torch.set_num_threads(1)
    torch.manual_seed(0)
    recipe = course_recipe(task)
    ours, batches, vocabulary = make_ours(recipe)
    contenders = [ours, *(make_theirs(name, recipe, batches, vocabulary) for name in NAMES[1:])]
    times: dict[str, list[float]] = {each.name: [] for each in contenders}
    for number in range(rounds + WARM_UP):
        for each in contenders:
            begun = time.perf_counter()
            each.step(number)
            times[each.name].append(time.perf_counter() - begun)
    medians = {name: statistics.median(taken[WARM_UP:]) for name, taken in times.items()}
    print(
        f"{task}: training step, one thread, batch {recipe.training.batch}, vocabulary {vocabulary:,}, {rounds} rounds"
    )
    for each in contenders:
        taken = sorted(times[each.name][WARM_UP:])
        low, high = taken[len(taken) // 10], taken[len(taken) * 9 // 10]
        ratio = medians[each.name] / medians["fairtrial"]
        said = "" if each is ours else f"  fairtrial is {ratio:.2f}x as fast"
        print(
            f"  {each.name:<15} {medians[each.name] * 1e3:7.2f} ms (80% within {low * 1e3:.1f} to {high * 1e3:.1f})"
            f"  {each.parameters:>9,} parameters{said}"
        )
    print(flush=True)


def run_alone(task: str, name: str) -> None:
    """In a child: time from the process's start to the first step done, and the memory that 30 steps add."""
    begun = float(os.environ["BENCHMARK_BEGUN"])
    import torch

    from contenders import course_recipe, make_ours, make_theirs

    torch.set_num_threads(1)
    recipe = course_recipe(task)
    contender, batches, vocabulary = make_ours(recipe)
    if name != "fairtrial":
        contender = make_theirs(name, recipe, batches, vocabulary)
    before = memory("VmRSS")
    contender.step(0)
    first = time.time() - begun
    for number in range(1, 30):
        contender.step(number)
    print(json.dumps({"first": first, "peak": memory("VmHWM"), "added": memory("VmHWM") - before}))


def memory(what: str) -> float:
    """Megabytes of this process, as Linux counts them (not getrusage: a child inherits its parent's peak there)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def compare_alone(task: str) -> None:
    from contenders import NAMES

    for name in NAMES:
        environment = {**os.environ, "BENCHMARK_BEGUN": str(time.time())}
        command = [sys.executable, __file__, "--alone", task, name]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            sys.exit(done.stderr)
        facts = json.loads(done.stdout.splitlines()[-1])
        print(
            f"  {task:<9} {name:<15} first step after {facts['first']:5.2f} s, peak memory {facts['peak']:6.0f} MB"
            f" (training added {facts['added']:5.1f} MB)",
            flush=True,
        )


def print_help_time() -> None:
    taken = []
    for _ in range(7):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fairtrial", "--help"], capture_output=True, check=True)
        taken.append(time.perf_counter() - begun)
    print(f"fairtrial --help: {statistics.median(taken):.2f} s (median of 7)")


if __name__ == "__main__":
    main()
