"""How time and memory grow with the data: rows of a classifier, megabytes of a language model.

    python benchmarks/growth.py                            # 10^4 to 10^6 rows, 1 to 100 MB: about half an hour
    python benchmarks/growth.py --rows 10000 100000 --megabytes 1 10
    python benchmarks/growth.py --study                    # only: 20 trials on 10^5 rows, what is not training

Every command runs in a process of its own with an empty cache (and, where the table says so, once more with the cache
that it left). Texts are pieces of three words of the embedded speeches in random order, so that words are as frequent
as in real text and no long piece occurs twice. Prints Markdown; `--figure FILE.svg` draws it; `--log FILE.jsonl` keeps
each measurement, so that the same command continues.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fairtrial.data import read
from fairtrial.recipe import Data
from fairtrial.report.plots import figure_bytes, our_look

PIECE = 3  # words that follow each other as in the speeches
WORDS_PER_ROW = (5, 40)
AXES = {"classify": "rows", "lm": "megabytes of text"}
STEP = '{"event": "step"'


def words_of_speeches() -> np.ndarray:
    return np.array([word for each in read(Data(), "lm").train for word in each.text.split()])


def pieces(words: np.ndarray, count: int, rng: np.random.Generator) -> str:
    starts = rng.integers(0, len(words) - PIECE, math.ceil(count / PIECE))
    return " ".join(words[starts[:, None] + np.arange(PIECE)].ravel()[:count])


def write_rows(path: Path, rows: int, words: np.ndarray) -> None:
    rng = np.random.default_rng(rows)
    with path.open("w") as file:
        for size, label in zip(rng.integers(*WORDS_PER_ROW, rows), rng.integers(0, 3, rows), strict=True):
            file.write(json.dumps({"text": pieces(words, int(size), rng), "label": int(label)}) + "\n")


def write_text(path: Path, megabytes: int, words: np.ndarray) -> None:
    rng, written = np.random.default_rng(megabytes), 0
    with path.open("w") as file:
        while written < 1_000_000 * megabytes:
            written += file.write(pieces(words, 120, rng) + ".\n\n")


def measure(words: list[str], cache: Path, until: str = "") -> dict[str, float]:
    """Seconds, processor's seconds and megabytes of one command; to the first line that begins with `until`."""
    begun, seconds = time.monotonic(), 0.0
    command = [sys.executable, "-P", "-m", "fairtrial", *words]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | {"FAIRTRIAL_CACHE": str(cache)}
        )
        assert process.stdout is not None
        for line in process.stdout:
            if until and line.startswith(until):
                seconds = time.monotonic() - begun
                process.kill()
                break
        _, status, used = os.wait4(process.pid, 0)
        process.stdout.close()
        if not seconds and os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: an audit has findings
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{errors.read()[-2000:]}")
    seconds = seconds or time.monotonic() - begun
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024}


def measurements(task: str, data: Path, room: Path) -> Iterator[tuple[str, dict[str, float]]]:
    cache, about = room / "cache", ["--data", str(data)]
    train = ["train", task, *about, "--steps", "50", "--json", "--out"]
    yield "first step, cold", measure([*train, str(room / "cold")], cache, STEP)
    yield "first step, cached", measure([*train, str(room / "cached")], cache, STEP)
    yield "data audit", measure(["audit", *about, "--task", task, "--json"], cache)
    yield "baselines", measure(["baseline", *about, "--task", task, "--json"], cache)


def study_share(words: np.ndarray, trials: int = 20, rows: int = 100_000) -> str:
    """What a study of small trials spends outside of training and scoring."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        write_rows(room / "rows.jsonl", rows, words)
        asked = ["study", "--data", room / "rows.jsonl", "--task", "classify", "--variants", "learned", "rope"]
        asked += ["--seeds", trials // 2, "--out", room / "study"]
        whole = measure([str(word) for word in asked], room / "cache")["seconds"]
        spent = []
        for path in (room / "study" / "trials").glob("*/*/*/clock.jsonl"):
            first, *_, last = (json.loads(line)["time"] for line in path.read_text().splitlines())
            spent.append(last - first)  # training and all scores
    width = min(len(os.sched_getaffinity(0)), trials)
    outside = 1 - sum(spent) / (width * whole)
    return f"{len(spent)} trials on {rows:,} rows, {width} at a time: {whole:.0f} s, {100 * outside:.1f}% outside"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--megabytes", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--study", action="store_true")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    words = words_of_speeches()
    if asked.study:
        print(study_share(words))
        return
    kept = [json.loads(line) for line in asked.log.read_text().splitlines()] if asked.log and asked.log.exists() else []
    done = {(row["task"], row["size"]) for row in kept if row["what"] == "baselines"}
    sizes = [("classify", size) for size in asked.rows] + [("lm", size) for size in asked.megabytes]
    for task, size in sizes:
        if (task, size) in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            room = Path(folder)
            data = room / ("rows.jsonl" if task == "classify" else "text.txt")
            (write_rows if task == "classify" else write_text)(data, size, words)
            for what, found in measurements(task, data, room):
                row = {"task": task, "size": size, "what": what, "bytes": data.stat().st_size, **found}
                kept.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
                if asked.log:
                    with asked.log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    print(as_markdown(kept))
    if asked.figure:
        draw(kept, asked.figure)


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.4, 3.4), dpi=120, facecolor="white", layout="constrained")
        for axes, (task, unit) in zip(figure.subplots(1, 2, sharey=True), AXES.items(), strict=True):
            for what in dict.fromkeys(row["what"] for row in rows):
                line = sorted(
                    (row["size"], row["seconds"]) for row in rows if (row["task"], row["what"]) == (task, what)
                )
                axes.plot(*zip(*line, strict=True), marker="o", label=what)
            axes.set(xscale="log", yscale="log", xlabel=unit)
        figure.axes[0].set(ylabel="seconds")
        figure.axes[0].legend(frameon=False)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(figure_bytes(figure, out.suffix[1:]))


def as_markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| data | what | seconds | processor's | MB | grows by |", "|---|---|---:|---:|---:|---:|"]
    for row in rows:
        before = [each for each in rows if (each["task"], each["what"]) == (row["task"], row["what"])]
        smaller = max(
            (each for each in before if each["size"] < row["size"]), key=lambda each: each["size"], default=None
        )
        grown = f"{row['cpu'] / smaller['cpu'] / (row['bytes'] / smaller['bytes']):.2f}" if smaller else ""
        name = f"{row['size']:,} rows" if row["task"] == "classify" else f"{row['size']} MB of text"
        lines.append(
            f"| {name} | {row['what']} | {row['seconds']:.1f} | {row['cpu']:.1f} | {row['megabytes']:,.0f} | {grown} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
