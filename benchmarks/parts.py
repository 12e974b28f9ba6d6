"""What parts cost, side by side in one run.

    python benchmarks/parts.py [positions] [decoding]

1. Rotary and ALiBi against no positions at the course's shape.
2. Cached decoding against recomputing the prefix for every token.

Time is the processor's, of one thread: neighbours on the machine lengthen the clock's time, hardly this one. Decoding
has processes of its own, which take turns; positions take turns step by step in one process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

POSITIONS = ("none", "rope", "alibi")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=list(TRIALS), help="positions, decoding; by default both")
    options.add_argument("--work", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        print(json.dumps(work(**json.loads(chosen.work))))
        return
    for name in chosen.what:
        TRIALS[name]()


def ask(**what: Any) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--work", json.dumps(what)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def best(turns: int, cases: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The best time and the least memory of each case; they take turns."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(turns):
        for name, case in cases.items():
            new = ask(**case)
            found[name] = {key: min(value, found.get(name, new)[key]) for key, value in new.items()}
    return found


def positions() -> None:
    print("training step at the course's shape, batch 16, against no positions (median of the ratios of 300 steps):")
    for task in ("classify", "lm"):
        found = ask(kind="course", task=task, steps=300 if task == "classify" else 100)
        for name in POSITIONS:
            print(f"  {task:<9} {name:<6} {found[name] * 1e3:6.2f} ms  ({found[name + ' more']:+.1%})", flush=True)


def decoding() -> None:
    print("512 tokens generated at width 256, 4 layers:")
    found = best(1, {way: {"kind": "decode", "cached": way == "cached"} for way in ("cached", "recomputed")})
    ratio = found["recomputed"]["seconds"] / found["cached"]["seconds"]
    cached, again = found["cached"]["seconds"], found["recomputed"]["seconds"]
    print(f"  cached {cached:.2f} s, prefix recomputed {again:.2f} s: {ratio:.1f}x as fast")


def work(kind: str, **what: Any) -> dict[str, float]:
    import torch

    import fairtrial.parts  # noqa: F401
    from fairtrial.environment import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    return {"course": measure_course, "decode": measure_decoding}[kind](**what)


def seconds_of(step: Callable[[], Any]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def measure_course(task: str, steps: int) -> dict[str, float]:
    all_steps = {name: course_step(task, [{"name": name}]) for name in POSITIONS}
    times: dict[str, list[float]] = {name: [] for name in POSITIONS}
    for number in range(steps + 5):
        for name, step in all_steps.items():
            taken = seconds_of(step)
            if number >= 5:
                times[name].append(taken)
    found = {}
    for name, taken in times.items():
        found[name] = median(taken)
        found[name + " more"] = median(one / none for one, none in zip(taken, times["none"], strict=True)) - 1
    return found


def measure_decoding(cached: bool) -> dict[str, float]:
    return {"seconds": seconds_of(decode(cached))}


def choices(parts: list[dict[str, Any]]) -> list[Any]:
    from fairtrial.recipe import PartChoice

    return [
        PartChoice(name=part["name"], options={key: value for key, value in part.items() if key != "name"})
        for part in parts
    ]


def course_step(task: str, parts: list[dict[str, Any]]) -> Callable[[], None]:
    from dataclasses import replace

    from contenders import course_recipe, make_ours

    ours, _, _ = make_ours(replace(course_recipe(task), parts=tuple(choices(parts))))
    numbers = iter(range(10**9))
    return lambda: ours.step(next(numbers))


def decode(cached: bool) -> Callable[[], None]:
    import torch

    from fairtrial.model.attention import KVCache
    from fairtrial.model.network import LanguageModel
    from fairtrial.recipe import Shape

    shape = Shape(layers=4, heads=4, width=256, hidden=1024, length=520, dropout=0.0)
    model = LanguageModel(shape, choices([{"name": "rope"}]), 5000).eval()

    @torch.no_grad()
    def generate() -> None:
        ids, cache = torch.zeros(1, 1, dtype=torch.long), KVCache(shape.layers)
        new = ids
        for _ in range(512):
            logits = model(new, cache=cache) if cached else model(ids)
            new = logits[:, -1:].argmax(-1)
            ids = torch.cat((ids, new), 1)

    return generate


TRIALS = {"positions": positions, "decoding": decoding}

if __name__ == "__main__":
    main()
