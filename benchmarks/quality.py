"""Quality for a given time: validation perplexity after 15, 60 and 240 seconds of the processor, one thread.

    python benchmarks/quality.py                       # all that is not in quality.json yet; an hour, it resumes
    python benchmarks/quality.py --only nanoGPT:0.003 --seconds 60 --seeds 0
    python benchmarks/quality.py --figure docs/images/quality.svg       # what quality.json holds: table and figure

All train on the same tokens of the embedded speeches (seed 0: 81,888 tokens, 3,809 entries) and are scored on the same
windows of validation, of 64 tokens that do not overlap (0.2.0: of its 32); no test set is read. Each run is a process
of its own.
`fairtrial` is `fairtrial train lm --budget`, `0.2.0` its default of that version, `nanoGPT` the model and settings of
nanoGPT's README for a CPU (4 layers of 128, batch 12, AdamW, cosine), `GPT-2` the same sizes of Hugging Face's with the
Trainer's defaults (batch 8, AdamW, linear); a number after the colon is the learning rate. The schedules of the last
two follow the processor's time, so that they end when the time does.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from fairtrial.data.batches import Windows
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe, load_recipe

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests" / "model"))  # nano_gpt.py: nanoGPT's model, written anew
KEPT = HERE / "quality.json"
OLD = HERE.parent / "tests" / "golden" / "recipes" / "default-lm.toml"
SECONDS = (15, 60, 240)
LENGTH = 64
USUAL = {"nanoGPT": 1e-3, "GPT-2": 5e-5}
RATES = {"nanoGPT": (1e-3, 3e-3, 6e-3), "GPT-2": (5e-5, 1e-3, 3e-3)}
CONTENDERS = ("fairtrial", "0.2.0", *(f"{name}:{rate:g}" for name, rates in RATES.items() for rate in rates))

Result = dict[str, float]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", default=CONTENDERS)
    options.add_argument("--seconds", nargs="+", type=int, default=SECONDS)
    options.add_argument("--seeds", nargs="+", type=int, default=(0,))
    options.add_argument("--figure", type=Path)
    options.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        print(json.dumps(measure(chosen.only[0], chosen.seconds[0], chosen.seeds[0])))
        return
    if chosen.figure:
        show(chosen.figure)
        return
    for seconds in chosen.seconds:
        for seed in chosen.seeds:
            for name in chosen.only:
                kept = read()
                if f"{name} {seconds} {seed}" not in kept:
                    work = [sys.executable, __file__, "--work", "--only", name, "--seconds", str(seconds)]
                    said = subprocess.run([*work, "--seeds", str(seed)], capture_output=True, text=True, check=True)
                    kept = read() | {f"{name} {seconds} {seed}": json.loads(said.stdout.splitlines()[-1])}
                    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
                print(name, seconds, seed, kept[f"{name} {seconds} {seed}"], flush=True)


def read() -> dict[str, Result]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def measure(name: str, seconds: float, seed: int) -> Result:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    if name in ("fairtrial", "0.2.0"):
        return train_ours(name, seconds, seed)
    kind, _, rate = name.partition(":")
    return train_theirs(kind, float(rate), seconds, seed)


def prepared_text(recipe: Recipe, seed: int) -> tuple[Prepared, np.ndarray, np.ndarray]:
    """The tokens of training and validation, beside what they were made by."""
    prepared = prepare(recipe, seed)
    texts = [[each.text for each in split] for split in (prepared.splits.train, prepared.splits.validation)]
    train, validation = (np.concatenate([np.array(row) for row in prepared.tokenizer.encode(each)]) for each in texts)
    return prepared, train, validation


def kneser_ney() -> float:
    from fairtrial.baselines.kneser_ney import KneserNey

    prepared, train, validation = prepared_text(Recipe.load("lm"), 0)
    nats = -np.log(KneserNey([train], prepared.tokenizer.size, 3).probabilities([validation]))
    return float(math.exp(nats.mean()))


def windows_of(tokens: np.ndarray, length: int) -> Tensor:
    """[window token and next]"""
    count = (len(tokens) - 1) // length
    return torch.from_numpy(np.stack([tokens[at * length : (at + 1) * length + 1] for at in range(count)]).astype(int))


@torch.no_grad()
def perplexity(nll: Callable[[Tensor, Tensor], Tensor], validation: np.ndarray, length: int = LENGTH) -> float:
    """`nll`: the mean nats of ids and answers [window token]."""
    windows = windows_of(validation, length)
    return math.exp(float(nll(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())))


def train_ours(name: str, seconds: float, seed: int) -> Result:
    from fairtrial.budget import fit_budget
    from fairtrial.environment import keep_freed_memory
    from fairtrial.training.loop import Loop

    keep_freed_memory()  # as every trial does
    recipe = fit_budget(Recipe.load("lm"), f"{seconds:g}s").recipe if name == "fairtrial" else load_recipe(OLD)
    if name == "0.2.0":  # its rate is constant: it may be stopped at any step
        recipe = recipe.with_(duration="1000000 steps")
    prepared, _, validation = prepared_text(recipe, seed)
    loop = Loop(prepared.task, prepared.recipe.training, recipe.scoring, seed)
    begun, steps = time.process_time(), 0
    while steps < loop.steps and (name == "fairtrial" or time.process_time() - begun < seconds):
        loop.train_step(steps)
        steps += 1
    taken = time.process_time() - begun
    network = loop.network.eval()

    def nll(ids: Tensor, answers: Tensor) -> Tensor:
        return network.nll(ids, None, answers).mean()

    score = perplexity(nll, validation, prepared.recipe.shape.length)
    return {"perplexity": round(score, 2), "steps": steps, "seconds": round(taken, 1)}


def train_theirs(kind: str, rate: float, seconds: float, seed: int) -> Result:
    prepared, train, validation = prepared_text(Recipe.load("lm"), seed)
    model, logits = nano_gpt(prepared.tokenizer.size) if kind == "nanoGPT" else gpt2(prepared.tokenizer.size)
    nano = kind == "nanoGPT"
    batches = Windows(train, length=LENGTH, how="every" if nano else "disjoint", batch=12 if nano else 8, seed=seed)
    decay = 0.1 if nano else 0.0
    groups = [
        {"params": [each for each in model.parameters() if each.ndim >= 2], "weight_decay": decay},
        {"params": [each for each in model.parameters() if each.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99 if nano else 0.999), fused=True)
    model.train()
    begun, steps = time.process_time(), 0
    while (done := (time.process_time() - begun) / seconds) < 1:
        if nano:  # 100 steps of warm-up, then a cosine to a tenth
            now = rate * min(1.0, (steps + 1) / 100) * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))
        else:
            now = rate * (1 - done)
        for group in optimizer.param_groups:
            group["lr"] = now
        batch = batches.batch(steps)
        optimizer.zero_grad()
        loss = cross_entropy(
            logits(torch.from_numpy(batch.ids)).flatten(0, 1), torch.from_numpy(batch.answers).flatten()
        )
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    taken = time.process_time() - begun
    model.eval()

    def nll(ids: Tensor, answers: Tensor) -> Tensor:
        return cross_entropy(logits(ids).flatten(0, 1), answers.flatten())

    return {"perplexity": round(perplexity(nll, validation), 2), "steps": steps, "seconds": round(taken, 1)}


Model = tuple[nn.Module, Callable[[Tensor], Tensor]]


def nano_gpt(vocabulary: int) -> Model:
    from nano_gpt import GPT

    model = GPT(vocabulary, LENGTH, width=128, layers=4, heads=4, dropout=0.0)
    return model, lambda ids: model(ids)[0]


def gpt2(vocabulary: int) -> Model:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": vocabulary, "n_positions": LENGTH, "n_embd": 128, "n_layer": 4, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    return model, lambda ids: model(input_ids=ids, use_cache=False).logits


def show(figure: Path) -> None:
    """A table in Markdown, and the figure, of seed 0: other seeds have other validation texts."""
    scores: dict[str, dict[int, float]] = {}
    for key, result in sorted(read().items(), key=lambda item: int(item[0].split()[1])):
        name, seconds, seed = key.split()
        if seed == "0":
            scores.setdefault(name, {})[int(seconds)] = result["perplexity"]
    lines = {"fairtrial": scores["fairtrial"], "fairtrial 0.2.0": scores.get("0.2.0", {})}
    for kind, usual in USUAL.items():
        lines[f"{kind}, usual rate {usual:g}"] = scores.get(f"{kind}:{usual:g}", {})
        tried = [scores[f"{kind}:{rate:g}"] for rate in RATES[kind] if f"{kind}:{rate:g}" in scores]
        times = sorted({at for each in tried for at in each})
        lines[f"{kind}, tuned"] = {at: min(each[at] for each in tried if at in each) for at in times}
    known = kneser_ney()
    print("| validation perplexity after | " + " | ".join(f"{at} s" for at in SECONDS) + " |")
    print("|---" * (1 + len(SECONDS)) + "|")
    for name, points in lines.items():
        print(f"| {name} | " + " | ".join(f"{points[at]:.1f}" if at in points else "–" for at in SECONDS) + " |")
    print(f"| Kneser-Ney trigram | {known:.1f}" + " | |" * (len(SECONDS) - 1))
    draw(lines, known, figure)


def draw(lines: dict[str, dict[int, float]], known: float, path: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "fairtrial"
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    marks = ["o", "s", "^", "^", "v", "v"]
    colors = ["#0b6e4f", "#7a7a7a", "#d08c60", "#b3541e", "#8fa8d0", "#2f5aa8"]
    for (name, points), mark, color in zip(lines.items(), marks, colors, strict=True):
        dashed = "--" if "usual" in name else "-"
        axes.plot(list(points), list(points.values()), dashed, marker=mark, color=color, label=name, linewidth=1.6)
    axes.axhline(known, color="black", linewidth=1, linestyle=":", label=f"Kneser-Ney trigram ({known:.0f})")
    axes.set(xscale="log", yscale="log", xlabel="seconds of the processor, one thread", ylabel="validation perplexity")
    axes.set_xticks(SECONDS, [str(each) for each in SECONDS])
    axes.set_xticks([], minor=True)
    ticks = (80, 100, 150, 200, 300, 500, 1000, 2000)
    axes.set_yticks(ticks, [str(each) for each in ticks])
    axes.set_yticks([], minor=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
