"""What parts cost, side by side in one run.

    python benchmarks/parts.py [windows] [positions] [decoding]

1. Local windows at length 4,096 against full attention, in every form that a user can meet: time and memory of a
   training step without the output layer, and what of that memory is attention's own.
2. Rotary and ALiBi against no positions at the course's shape.
3. Cached decoding against recomputing the prefix for every token.

Time is the processor's, of one thread: neighbours on the machine lengthen the clock's time, hardly this one. Windows
and decoding have processes of their own, which take turns; positions take turns step by step in one process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

FULL = [{"name": "none"}]
LOCAL = [{"name": "window", "size": 64}]
FULL_ALIBI = [{"name": "alibi"}]
LOCAL_ALIBI = [{"name": "alibi"}, {"name": "window", "size": 64}]
COMPARED = (
    ("full", "local"),
    ("full, padded", "local, padded"),
    ("masked", "local"),
    ("full alibi", "local alibi"),
    ("full, dropout", "local, dropout"),
)
DROPOUT = 0.1  # of attention weights, as GPT-2 and BERT are trained
POSITIONS = ("none", "rope", "alibi")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=list(TRIALS), help="windows, positions, decoding; by default all")
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


def windows() -> None:
    print("training step at length 4,096, width 64, 2 heads, 4 layers, without the output layer, window 64")
    print(
        "(peak: the most that tensors hold at once in a step; process: how far the process grew in it; kept: what waits"
    )
    print(" for the gradient beyond the network without attention)")
    for kind, causal in (("decoder", True), ("encoder", False)):
        common = {"kind": "body", "causal": causal, "steps": 3, "length": 4096}
        cases = {
            "no attention": {**common, "parts": FULL, "instead": "skip"},
            "full": {**common, "parts": FULL},
            "full, padded": {**common, "parts": FULL, "padding": 64},
            "masked": {**common, "parts": LOCAL, "instead": "mask"},
            "full alibi": {**common, "parts": FULL_ALIBI},
            "local": {**common, "parts": LOCAL},
            "local, padded": {**common, "parts": LOCAL, "padding": 64},
            "local alibi": {**common, "parts": LOCAL_ALIBI},
            "full, dropout": {**common, "parts": FULL, "instead": "dropout"},
            "local, dropout": {**common, "parts": LOCAL, "dropout": DROPOUT},
            "local, 8,192": {**common, "parts": LOCAL, "length": 8192},
        }
        found = best(2, cases)
        bare = found["no attention"]
        kept = {name: facts["kept"] - bare["kept"] for name, facts in found.items()}
        for name, facts in found.items():
            print(
                f"  {kind}  {name:<21} {facts['seconds'] * 1e3:7.0f} ms {facts['peak']:7.1f} MB peak"
                f" {facts['process']:6.0f} MB process {kept[name]:7.1f} MB kept"
            )
        for one, other in COMPARED:
            faster, less, smaller = (found[one][key] / found[other][key] for key in ("seconds", "peak", "process"))
            reached = " (5x reached)" if min(faster, less, smaller) >= 5 else ""
            print(
                f"  {kind}  {other} against {one}: {faster:.1f}x as fast, {less:.1f}x less memory in tensors,"
                f" {smaller:.1f}x in the process{reached}"
            )
        for name in ("local",):
            longer, more = (found[f"{name}, 8,192"][key] / found[name][key] for key in ("seconds", "peak"))
            print(
                f"  {kind}  {name}: twice the length takes {longer:.2f}x the time, {more:.2f}x the memory", flush=True
            )
    print(
        "  without dropout, mask or bias, torch's fused kernel stores no map: its memory is linear too, and a window is"
    )
    print("  smaller only by what its nearness allows: computing layers stripe by stripe, again for the gradient")


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
    return {"body": measure_body, "course": measure_course, "decode": measure_decoding}[kind](**what)


def seconds_of(step: Callable[[], Any]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def measure_body(steps: int, length: int, **what: Any) -> dict[str, float]:
    body_step(length=min(512, length), **what)[1]()  # what torch loads at its first step is not a step's memory
    forward, step = body_step(length=length, **what)
    before = memory("VmRSS")
    times = [seconds_of(step)]
    grown = memory("VmHWM") - before
    times += [seconds_of(step) for _ in range(steps)]
    return {
        "seconds": sorted(times)[len(times) // 4],
        "process": grown,
        "peak": most_held(body_step(length=length, **what)[1]),
        "kept": kept_by(forward),
    }


def most_held(step: Callable[[], Any]) -> float:
    """Megabytes that tensors hold at once at most, as torch's allocator counts them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    events = [each for each in seen.profiler.kineto_results.events() if each.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most / 2**20


def kept_by(forward: Callable[[], Any]) -> float:
    """Megabytes that wait for the gradient, memory that tensors share counted once."""
    from torch.autograd.graph import saved_tensors_hooks

    sizes: dict[int, int] = {}

    def note(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        alive = forward()  # held, so that no memory is used twice
    del alive
    return sum(sizes.values()) / 2**20


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


def body_step(
    parts: list[dict[str, Any]],
    length: int,
    causal: bool,
    instead: str = "",
    padding: int = 0,
    dropout: float = 0.0,
) -> tuple[Callable[[], Any], Callable[[], None]]:
    """A forward pass and a step. `instead` of our attention: `mask` (full attention with a mask over what is far, as a
    window is usually written), `dropout` (torch's own attention with its dropout), `skip` (none at all)."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from fairtrial.model import attention
    from fairtrial.model.network import Body
    from fairtrial.recipe import Shape

    if instead == "mask":
        attention.worth_it = lambda reach, time: False
    elif instead == "dropout":
        attention.Attention.attend_fast = lambda self, q, k, v, *rest: scaled_dot_product_attention(
            q, k, v, dropout_p=DROPOUT, is_causal=causal
        )
    elif instead == "skip":
        attention.Attention.attend_fast = lambda self, q, k, v, *rest: v
    shape = Shape(layers=4, heads=2, width=64, hidden=256, length=length, dropout=0.0, attention_dropout=dropout)
    body = Body(shape, choices(parts), 100, causal=causal, seed=0)
    ids = torch.arange(length)[None] % 100
    lengths = torch.tensor([length - padding]) if padding else None

    def forward() -> Any:
        return body(ids, lengths)[0]

    def step() -> None:
        body.zero_grad()
        forward().pow(2).sum().backward()

    return forward, step


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


def memory(what: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


TRIALS = {"windows": windows, "positions": positions, "decoding": decoding}

if __name__ == "__main__":
    main()
