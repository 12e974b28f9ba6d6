"""The work of calibration: a few real steps of a variant, so that its trials' time is known before they are run.

No test set is read. Beside it stands what the network costs: parameters, arithmetic."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.look.flops import flops_of
from fairtrial.look.ledger import ledger_of
from fairtrial.pretrained.encoder import open_encoder, with_encoder
from fairtrial.recipe import Recipe
from fairtrial.recipe_file import recipe_from
from fairtrial.strangers import load_files, load_installed
from fairtrial.text.dealing import deal
from fairtrial.train.bench import ClassifyBench, build_bench
from fairtrial.train.loop import Loop
from fairtrial.trial import fit_tokenizer, use_machine

WARM_STEPS = 2
MOST_STEPS = 30
STEP_SECONDS = 0.8  # spent on steps
SCORE_SECONDS = 0.5  # spent on scoring


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    load_files(Path(name) for name in job.strangers)
    recipe = recipe_from(tomllib.loads(job.recipe))
    load_installed(choice.name for choice in recipe.parts)
    with use_machine(1):
        begun = time.monotonic()
        bench = bench_of(recipe, job.seed)
        loop = Loop(bench, recipe.training, recipe.scoring, job.seed)
        set_up_seconds = time.monotonic() - begun
        rows = ledger_of(bench.network).rows
        flops = flops_of(bench.network, rows_in_step=recipe.training.batch * recipe.training.accumulate).per_step
        step_seconds = pace(loop)
        return {
            "set_up_seconds": round(set_up_seconds, 3),
            "step_seconds": round(step_seconds, 6),
            "steps": loop.steps,
            "score_seconds": round(scoring_seconds(bench, loop), 3),
            "parameters": sum(row.count for row in rows),
            "flops_per_step": flops,
            "ledger": [asdict(row) for row in rows],
        }


def bench_of(recipe: Recipe, seed: int) -> Any:
    dealt = deal(with_encoder(recipe, open_encoder(recipe)), seed)
    tokenizer = fit_tokenizer(dealt.recipe, dealt.corpus, [document.text for document in dealt.splits.train])
    return build_bench(dealt.recipe, seed, dealt.splits, tokenizer)


def pace(loop: Loop) -> float:
    """Seconds of one step, once warm."""
    spent: list[float] = []
    loop.network.train()
    while len(spent) < WARM_STEPS + 3 or (sum(spent) < STEP_SECONDS and len(spent) < MOST_STEPS):
        spent.append(timed(partial(loop.train_step, len(spent))))
    return median(spent[WARM_STEPS:])


def scoring_seconds(bench: Any, loop: Loop) -> float:
    """All scoring of one trial: the choices, the curves, and the sets at the end, by their sizes."""
    known = "validation" if "validation" in bench.sets else "train"
    choose = timed(lambda: bench.quick_score(known))
    curve = timed(lambda: bench.quick_score("train")) + choose * (len(bench.curves) - 1)
    whole = whole_seconds(bench, known) / size(bench, known)
    ends = sum(size(bench, name) for name in bench.sets if name != "train")
    chosen = (loop.steps / loop.select_every) * choose if bench.choose_on else 0.0
    return chosen + (loop.steps / loop.curve_every + 1) * curve + whole * ends


def size(bench: Any, split: str) -> int:
    return len(bench.sets[split][1]) if isinstance(bench, ClassifyBench) else max(1, bench.sets[split].targets)


class Enough(Exception):
    """The share that was scored tells the rest."""


def whole_seconds(bench: Any, split: str) -> float:
    """Seconds to score a split exactly; a long one is told by its beginning."""
    begun, done = time.monotonic(), 1.0

    def tell(share: float) -> None:
        nonlocal done
        if share and time.monotonic() - begun > SCORE_SECONDS:
            done = share
            raise Enough

    with suppress(Enough):
        bench.score(split, tell)
    return (time.monotonic() - begun) / done


def timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun
