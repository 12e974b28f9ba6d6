"""A folder that holds what the pages of the documentation name, and trainings that are short enough for tests."""

from __future__ import annotations

import csv
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import fairtrial as ft
import fairtrial.engines as job
from course_text import write_course
from fairtrial import recipe
from fairtrial.data import sotu
from forked import auditing_here, leaving_plugins
from tiny import TINY

LASTS = ("training.duration=6 steps", "training.select_every=3 steps", "scoring.curve_every=3 steps")


@contextmanager
def short(folder: Path) -> Iterator[None]:
    """Within it the built-in recipes are tiny, the embedded speeches are their beginnings, and a study's jobs run in
    this process, which has them so."""
    if not folder.exists():
        shutil.copytree(sotu._folder(), folder / "sotu")
        for speech in (folder / "sotu" / "speeches").glob("*.txt"):
            speech.write_text("\n\n".join(speech.read_text().split("\n\n")[:6]))
        (folder / "recipes").mkdir()
        for path in recipe.BUILT_IN.glob("*.toml"):
            settings = LASTS if path.stem.startswith("finetune") else (*TINY, *LASTS)  # its encoder has a shape
            tiny = recipe.with_settings(recipe.load_recipe(path), settings)
            (folder / "recipes" / path.name).write_text(recipe.write_recipe(tiny))
    really_open = job.open_engine

    def open_engine(name: str = "cores", *more: Any, **other: Any) -> job.Engine:
        return job.InProcess() if name == "cores" else really_open(name, *more, **other)

    with (
        mock.patch.object(recipe, "BUILT_IN", folder / "recipes"),
        mock.patch.object(sotu, "_folder", return_value=folder / "sotu"),
        mock.patch.object(job, "open_engine", open_engine),
    ):
        yield


def furnish(workspace: Path, saved: Mapping[str, str]) -> None:
    """`saved`: files that pages tell to save."""
    (workspace / "named").mkdir()
    with chdir(workspace / "named"), short(workspace / "short"), auditing_here(), leaving_plugins():
        for name, text in saved.items():
            Path(name).write_text(text)
        for name in ("my_part", "ada", "grace"):  # other people's parts
            Path(f"{name}.py").write_text(re.sub(r"\bfade\b", name.replace("_", "-"), saved["fade.py"]))
        write_texts()
        write_results()
        write_records()


def write_texts() -> None:
    write_course(Path("my-texts"))
    shutil.copytree("my-texts", "speechesdataset")
    sentences = Path("my-texts/train_LM.txt").read_text()
    Path("shakespeare_char").mkdir()
    np.frombuffer(sentences[:20_000].encode(), np.uint8).astype(np.uint16).clip(0, 64).tofile(
        "shakespeare_char/train.bin"
    )
    for name in ("my-novel.txt", "novel.txt", "my-text.txt"):
        Path(name).write_text("\n\n".join([sentences] * 3))
    Path("sentences.txt").write_text("We will build bridges.\nOur enemies shall find no harbour.\n")
    train, test = (Path(f"my-texts/{split}_CLS.tsv").read_text() for split in ("train", "test"))
    lines = train.splitlines(keepends=True)
    for name in ("reviews.tsv", "labels.tsv"):
        Path(name).write_text(train)
    for name in ("sst2", "reviews", "raw", "final"):
        Path(name).mkdir(parents=True)
        for split, text in (("train", "".join(lines[20:])), ("dev", "".join(lines[:20])), ("test", test)):
            Path(name, f"{split}.tsv").write_text(text)
    rows = [line.strip().split("\t") for line in lines[:60]]
    folds = [[*row, "test" if number % 4 == 0 else "train"] for number, row in enumerate(rows)]
    with Path("reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["stars", "body", "fold"], *folds])


def write_results() -> None:
    """Two variants, five seeds, forty items: as a table, under other names, by file, and as two programs log them."""
    rng, rows = random.Random(0), []
    Path("preds").mkdir()
    for variant, share in (("old", 0.5), ("new", 0.7)):
        for seed in range(5):
            right = [int(rng.random() < share) for _ in range(40)]
            rows += [(seed, item, variant, value) for item, value in enumerate(right)]
            with Path(f"preds/{variant}_seed{seed}.csv").open("w", newline="") as file:
                guesses = [[item, "...", "pos", "pos" if value else "neg"] for item, value in enumerate(right)]
                csv.writer(file).writerows([["id", "text", "gold", "pred"], *guesses])
    for name, columns in (("results", "seed item variant value"), ("scores", "seed item network solved")):
        with Path(f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns.split(), *rows])
    runs = [
        f"{name},{seed},{3.27 + 0.01 * at + seed / 1000}"
        for at, name in enumerate(("muon", "adamw"))
        for seed in range(5)
    ]
    Path("runs.csv").write_text("\n".join(["variant,seed,val_loss", *runs]) + "\n")


def write_records() -> None:
    for task in ("classify", "lm"):
        name = "recipe.toml" if task == "classify" else "my-recipe.toml"
        Path(name).write_text(ft.Recipe.load(task).to_toml())
    ft.train("classify", "reviews.tsv", out="runs/my-run", quiet=True)
    ft.train("lm", "my-texts", out="runs/my-lm", layers=3, quiet=True)
    ft.train("lm", "my-texts", out="runs/lm-seed0", quiet=True)
    for seed in range(3):
        ft.train("classify", "reviews.tsv", seed=seed, out=f"runs/seed{seed}", quiet=True)
        ft.train("classify", "reviews.tsv", seed=seed, out=f"submissions/student-{seed}", quiet=True)
    ft.train("classify", "reviews.tsv", parts=["my-part"], plugins=["my_part.py"], out="runs/mine", quiet=True)
    ft.study(["learned", "rope"], "reviews.tsv", task="classify", seeds=2, out="studies/my-study", quiet=True)
