"""How time and memory grow with the data: rows of a classifier, megabytes of a language model.

    python benchmarks/growth.py                            # 10^4 to 10^6 rows, 1 to 100 MB: about half an hour
    python benchmarks/growth.py --rows 10000 100000 --megabytes 1 10
    python benchmarks/growth.py --study                    # only: 20 trials on 10^5 rows, what is not training
    python benchmarks/growth.py --scoring                  # only: scoring 10 MB beside training on it; curves

Every command runs in a process of its own.
Texts are pieces of three words of the embedded speeches in random order, so that words are as frequent
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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fairtrial.data.readers import read
from fairtrial.recipe import Data, choose_recipe
from fairtrial.report.plots import figure_bytes, our_look

PIECE = 3  # words that follow each other as in the speeches
WORDS_PER_ROW = (5, 40)
AXES = {"classify": "rows", "lm": "megabytes of text"}
BASELINES = {
    "classify": ("majority", "length only", "unigram naive Bayes", "naive Bayes", "logistic regression"),
    "lm": ("unigram", "bigram", "Kneser-Ney trigram"),
}
STEP = '{"event": "step"'
BASELINE = """import sys
from fairtrial.baselines.run import outcomes_of
from fairtrial.prepare import prepare
from fairtrial.recipe import choose_recipe
task, data, name = sys.argv[1:]
outcomes_of(prepare(choose_recipe(task, None, data), 0), names=(name,))
"""  # fitted and scored on validation and test


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


def measure(words: list[str], until: str = "") -> dict[str, float]:
    """Seconds, processor's seconds and megabytes of one command; to the first line that begins with `until`."""
    begun, seconds = time.monotonic(), 0.0
    command = [sys.executable, "-P", *words]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if until and line.startswith(until):
                seconds = time.monotonic() - begun
                process.kill()
                break
        _, status, used = os.wait4(process.pid, 0)
        process.stdout.close()
        fine = (0, 1) if "audit" in words else (0,)  # 1: an audit has findings
        if not seconds and os.waitstatus_to_exitcode(status) not in fine:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{errors.read()[-2000:]}")
    seconds = seconds or time.monotonic() - begun
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024}


def measurements(task: str, data: Path, workspace: Path) -> Iterator[tuple[str, dict[str, float]]]:
    fairtrial = ["-m", "fairtrial"]
    train = [*fairtrial, "train", task, "--data", str(data), "--steps", "50", "--json", "--out"]
    yield "first step", measure([*train, str(workspace / "run")], STEP)
    audit = [*fairtrial, "audit", "--data", str(data), "--task", task, "--json"]
    yield "data audit", measure(audit)
    for name in BASELINES[task]:
        yield name, measure(["-c", BASELINE, task, str(data), name])


def study_share(words: np.ndarray, trials: int = 20, rows: int = 100_000) -> str:
    """What a study of small trials spends outside of training and scoring, of networks and of baselines."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        write_rows(workspace / "rows.jsonl", rows, words)
        asked = ["-m", "fairtrial", "study", "--data", workspace / "rows.jsonl", "--task", "classify", "--json"]
        asked += ["--variants", "learned", "rope", "--seeds", trials // 2, "--out", workspace / "study"]
        begun, spent = time.monotonic(), Counter[str]()
        command = [sys.executable, "-P", *map(str, asked)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for facts in map(json.loads, process.stdout):
                if facts.get("event") == "done":
                    spent[facts["work"]] += facts["seconds"]
        whole, training = time.monotonic() - begun, []
        for path in (workspace / "study" / "trials").glob("*/*/*/clock.jsonl"):
            first, *_, last = (json.loads(line)["time"] for line in path.read_text().splitlines())
            training.append(last - first)  # with all scores
    width = min(len(os.sched_getaffinity(0)), trials)
    shares = {"training and scoring": sum(training), "data and start of trials": spent.pop("trial") - sum(training)}
    shares |= spent | {"one process alone, or none": width * whole - sum(shares.values()) - spent.total()}
    told = ", ".join(f"{what} {100 * share / (width * whole):.1f}%" for what, share in shares.items())
    return f"{len(training)} trials on {rows:,} rows, {width} at a time, {whole:.0f} s: {told}"


def scoring_share(words: np.ndarray, megabytes: int = 10, steps: int = 2000) -> Iterator[str]:
    """What scores cost beside training: the last one of a large test set, and the points of curves."""
    from fairtrial.environment import use_threads  # torch in this process would count as memory of every command
    from fairtrial.prepare import prepare
    from fairtrial.training.loop import Loop

    with tempfile.TemporaryDirectory() as folder:
        text, rows = Path(folder) / "text", Path(folder) / "rows.jsonl"
        text.mkdir()
        for name in ("train.txt", "test.txt"):
            write_text(text / name, megabytes, words)
        write_rows(rows, 100_000, words)
        for task, data in (("lm", text), ("classify", rows)):
            recipe = choose_recipe(task, None, str(data))
            prepared = prepare(recipe, 0)
            with use_threads(1):
                loop = Loop(prepared.task, prepared.recipe.training, prepared.recipe.scoring, 0)
                spent, steps_done, before = {"step": 0.0, "score": 0.0}, 0, time.perf_counter()
                for event in loop.run():
                    now = time.perf_counter()
                    spent[event.kind if event.kind == "step" else "score"] += now - before
                    before, steps_done = now, event.step
                    if event.step == steps and event.kind == "ready":
                        break
                began = time.perf_counter()
                prepared.task.score("test")
                scored = time.perf_counter() - began
            share = prepared.task.work("test") / prepared.task.work("train")  # of equal size, for language models
            one_pass = spent["step"] / steps_done * loop.steps_per_epoch * (1 if task == "lm" else share)
            yield (
                f"{task}: curves take {100 * spent['score'] / spent['step']:.1f}% of the time of {steps_done} steps; "
                f"test set scored in {scored:.1f} s, a training pass over as much takes {one_pass:.1f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--megabytes", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--study", action="store_true")
    parser.add_argument("--scoring", action="store_true")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    words = words_of_speeches()
    if asked.study:
        print(study_share(words))
        return
    if asked.scoring:
        for line in scoring_share(words):
            print(line, flush=True)
        return
    kept = [json.loads(line) for line in asked.log.read_text().splitlines()] if asked.log and asked.log.exists() else []
    done = {(row["task"], row["size"]) for row in kept if row["what"] in [names[-1] for names in BASELINES.values()]}
    sizes = [("classify", size) for size in asked.rows] + [("lm", size) for size in asked.megabytes]
    for task, size in sizes:
        if (task, size) in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder)
            data = workspace / ("rows.jsonl" if task == "classify" else "text.txt")
            (write_rows if task == "classify" else write_text)(data, size, words)
            for what, found in measurements(task, data, workspace):
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
            own = [row for row in rows if row["task"] == task]
            for what in dict.fromkeys(row["what"] for row in own):
                line = sorted((row["size"], row["seconds"]) for row in own if row["what"] == what)
                axes.plot(*zip(*line, strict=True), marker="o", markersize=4, label=what)
            sizes = sorted({row["size"] for row in own})
            axes.set(xscale="log", yscale="log", xlabel=unit)
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.minorticks_off()
            axes.legend(frameon=False, fontsize=7)
        figure.axes[0].set(ylabel="seconds")
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
