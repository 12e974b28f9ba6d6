"""Speed of a training step, side by side in one run: fairtrial against transformers and x-transformers.

    python benchmarks/step.py            # ratios, peak memory, time to first step, time of --help
    python benchmarks/step.py --rounds 40
    python benchmarks/step.py --same-memory     # our setting of the memory allocator for all of them
    python benchmarks/step.py --large           # width 512, length 1,024, 8 layers, against nanoGPT's model

One thread each, the course's shape, real batches. Each contender has a process of its own, set up as its users would;
they take turns, ten steps at a time, so that a busy moment of the machine hits all of them. The ratio is of medians,
the first two steps of each turn not counted; on a busy machine that of the processor's time says more. FAIRTRIAL_DATA
names the folder that holds the course's speeches/; without it the embedded corpus is used.
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

RACES = {
    "classify": ("fairtrial", "transformers", "x-transformers"),
    "lm": ("fairtrial", "transformers", "x-transformers"),
    "large": ("fairtrial", "nanoGPT"),
}
TURN, UNCOUNTED = {"classify": 10, "lm": 10, "large": 2}, {"classify": 2, "lm": 2, "large": 0}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=20, help="turns of each contender")
    options.add_argument("--large", action="store_true", help="a larger language model instead; three turns are enough")
    options.add_argument(
        "--same-memory", action="store_true", help="let all keep freed memory, as fairtrial's trials do"
    )
    options.add_argument("--work", nargs=2, metavar=("TASK", "NAME"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        work(*chosen.work, chosen.same_memory)
        return
    for name in ("large",) if chosen.large else ("classify", "lm"):
        race(name, chosen.rounds, chosen.same_memory)
    print_help_time()


def race(task: str, rounds: int, same_memory: bool) -> None:
    workers = {name: Worker(task, name, same_memory) for name in RACES[task]}
    times: dict[str, list[float]] = {name: [] for name in workers}
    processor: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            answer = worker.ask("steps")
            times[name] += answer["times"][UNCOUNTED[task] :]
            processor[name] += answer["processor"][UNCOUNTED[task] :]
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    used = {name: statistics.median(taken) for name, taken in processor.items()}
    setting = ", freed memory kept by all" if same_memory else ""
    print(f"{task}: one training step, one thread, {rounds} turns of {TURN[task]} steps{setting}")
    for name, worker in workers.items():
        facts = worker.ask("facts")
        taken = sorted(times[name])
        low, high = taken[len(taken) // 10] * 1e3, taken[len(taken) * 9 // 10] * 1e3
        ratio = f"  fairtrial is {medians[name] / medians['fairtrial']:.2f}x as fast"
        ratio += f" ({used[name] / used['fairtrial']:.2f}x by the processor's time)"
        ratio = ratio if name != "fairtrial" else ""
        print(
            f"  {name:<15} {medians[name] * 1e3:6.2f} ms (80% within {low:.1f} to {high:.1f};"
            f" {used[name] * 1e3:.2f} of the processor),"
            f" first step after {worker.first:.1f} s, peak memory {facts['peak']:.0f} MB"
            f" (training added {facts['added']:.0f} MB), {facts['parameters']:,} parameters{ratio}"
        )
        worker.close()
    print(flush=True)


class Worker:
    """A contender in a process of its own, which steps when it is asked to."""

    def __init__(self, task: str, name: str, same_memory: bool) -> None:
        begun = time.perf_counter()
        command = [sys.executable, __file__, "--work", task, name, *(["--same-memory"] if same_memory else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("ready")
        self.first = time.perf_counter() - begun

    def ask(self, what: str) -> dict:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(what, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work(task: str, name: str, same_memory: bool) -> None:
    """In a worker: answer each line of the standard input with one line of JSON."""
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import torch

    from contenders import make
    from fairtrial.environment import keep_freed_memory

    torch.set_num_threads(1)
    torch.manual_seed(0)
    if same_memory:
        keep_freed_memory()
    contender = make(task, name)
    before = memory("VmRSS")
    contender.step(0)
    number = 1
    for line in sys.stdin:
        answer: dict = {}
        if line.strip() == "steps":
            answer = {"times": [], "processor": []}
            for _ in range(TURN[task]):
                begun, used = time.perf_counter(), time.process_time()
                contender.step(number)
                answer["processor"].append(time.process_time() - used)
                answer["times"].append(time.perf_counter() - begun)
                number += 1
        elif line.strip() == "facts":
            peak = memory("VmHWM")
            answer = {"peak": peak, "added": peak - before, "parameters": contender.parameters}
        print(json.dumps(answer), flush=True)


def memory(what: str) -> float:
    """Megabytes of this process, as Linux counts them (not getrusage: a child inherits its parent's peak there)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def print_help_time() -> None:
    taken = []
    for _ in range(7):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fairtrial", "--help"], capture_output=True, check=True)
        taken.append(time.perf_counter() - begun)
    print(f"fairtrial --help: {statistics.median(taken):.2f} s (median of 7)")


if __name__ == "__main__":
    main()
