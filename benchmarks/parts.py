"""What parts cost, side by side in one run.

    python benchmarks/parts.py

1. Local windows at length 4,096 against full attention (torch's fused kernel) and against full attention with a mask:
   time and memory of a training step without the output layer.
2. Rotary and ALiBi against no positions at the course's shape.
3. Cached decoding against recomputing the prefix for every token.

Each measurement has a process of its own; they take turns, and the best of several turns counts, as neighbours on the
machine can only make a step slower.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FULL = [{"name": "none"}]
LOCAL = [{"name": "window", "size": 64}]
FULL_ALIBI = [{"name": "alibi"}]
LOCAL_ALIBI = [{"name": "alibi"}, {"name": "window", "size": 64}]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        print(json.dumps(work(**json.loads(chosen.work))))
        return
    windows()
    positions()
    decoding()


def ask(**what: Any) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--work", json.dumps(what)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def best(turns: int, cases: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The best time and the least memory of each case, which take turns."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(turns):
        for name, case in cases.items():
            new = ask(**case)
            found[name] = {key: min(value, found.get(name, new)[key]) for key, value in new.items()}
    return found


def windows() -> None:
    print("training step at length 4,096, width 64, 2 heads, 4 layers, without the output layer, window 64:")
    for kind, causal in (("decoder", True), ("encoder", False)):
        common = {"kind": "body", "causal": causal, "steps": 3}
        cases = {
            "full": {**common, "length": 4096, "parts": FULL},
            "local": {**common, "length": 4096, "parts": LOCAL},
            "local, 8,192": {**common, "length": 8192, "parts": LOCAL},
            "masked": {**common, "length": 4096, "parts": LOCAL, "hide": True},
            "full alibi": {**common, "length": 4096, "parts": FULL_ALIBI},
            "local alibi": {**common, "length": 4096, "parts": LOCAL_ALIBI},
        }
        found = best(2, cases)
        for name, facts in found.items():
            print(f"  {kind}  {name:<13} {facts['seconds'] * 1e3:7.0f} ms  {facts['memory']:6.0f} MB")
        for one, other in (("full", "local"), ("masked", "local"), ("full alibi", "local alibi")):
            faster = found[one]["seconds"] / found[other]["seconds"]
            less = found[one]["memory"] / found[other]["memory"]
            print(f"  {kind}  {other} is {faster:.1f}x as fast as {one} and takes {less:.1f}x less memory")
        ratio = found["local, 8,192"]["seconds"] / found["local"]["seconds"]
        print(f"  {kind}  twice the length takes {ratio:.2f}x the time", flush=True)


def positions() -> None:
    print("training step at the course's shape, batch 16, against no positions:")
    for task in ("classify", "lm"):
        names = ("none", "rope", "alibi")
        cases = {name: {"kind": "course", "task": task, "parts": [{"name": name}], "steps": 60} for name in names}
        found = best(3, cases)
        for name in names:
            more = found[name]["seconds"] / found["none"]["seconds"] - 1
            print(f"  {task:<9} {name:<6} {found[name]['seconds'] * 1e3:6.2f} ms  ({more:+.0%})", flush=True)


def decoding() -> None:
    print("512 tokens generated at width 256, 4 layers:")
    found = best(1, {way: {"kind": "decode", "cached": way == "cached"} for way in ("cached", "recomputed")})
    ratio = found["recomputed"]["seconds"] / found["cached"]["seconds"]
    cached, again = found["cached"]["seconds"], found["recomputed"]["seconds"]
    print(f"  cached {cached:.2f} s, prefix recomputed {again:.2f} s: {ratio:.1f}x as fast")


def work(kind: str, **what: Any) -> dict[str, float]:
    import torch

    import fairtrial.parts  # noqa: F401
    from fairtrial.memory import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    step = {"body": body_step, "course": course_step, "decode": decode}[kind]
    return measure(step(**{key: value for key, value in what.items() if key != "steps"}), what.get("steps", 0))


def measure(step: Callable[[], None], steps: int) -> dict[str, float]:
    before = memory("VmRSS")
    begun = time.perf_counter()
    step()
    first = time.perf_counter() - begun
    peak = memory("VmHWM") - before
    times = [first]
    for _ in range(steps):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    return {"seconds": sorted(times)[len(times) // 4], "memory": peak}


def choices(parts: list[dict[str, Any]]) -> list[Any]:
    from fairtrial.recipe import PartChoice

    return [
        PartChoice(name=part["name"], options={key: value for key, value in part.items() if key != "name"})
        for part in parts
    ]


def body_step(parts: list[dict[str, Any]], length: int, causal: bool, hide: bool = False) -> Callable[[], None]:
    """`hide`: full attention with a mask over what is far, as a window is usually written."""
    import torch

    from fairtrial.model import attention
    from fairtrial.model.network import Body
    from fairtrial.recipe import Shape

    if hide:
        attention.worth_it = lambda reach, time: False
    shape = Shape(layers=4, heads=2, width=64, hidden=256, length=length, dropout=0.0)
    body = Body(shape, choices(parts), 100, causal=causal, seed=0)
    ids = torch.arange(length)[None] % 100

    def step() -> None:
        body.zero_grad()
        body(ids)[0].pow(2).sum().backward()

    return step


def course_step(task: str, parts: list[dict[str, Any]]) -> Callable[[], None]:
    from dataclasses import replace

    from contenders import course_recipe, make_ours

    ours, _, _ = make_ours(replace(course_recipe(task), parts=tuple(choices(parts))))
    numbers = iter(range(10**9))
    return lambda: ours.step(next(numbers))


def decode(cached: bool) -> Callable[[], None]:
    import torch

    from fairtrial.model.attention import Cache
    from fairtrial.model.network import LanguageModel
    from fairtrial.recipe import Shape

    shape = Shape(layers=4, heads=4, width=256, hidden=1024, length=520, dropout=0.0)
    model = LanguageModel(shape, choices([{"name": "rope"}]), 5000).eval()

    @torch.no_grad()
    def generate() -> None:
        ids, cache = torch.zeros(1, 1, dtype=torch.long), Cache(shape.layers)
        new = ids
        for _ in range(512):
            logits = model(new, cache=cache) if cached else model(ids)
            new = logits[:, -1:].argmax(-1)
            ids = torch.cat((ids, new), 1)

    return generate


def memory(what: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
