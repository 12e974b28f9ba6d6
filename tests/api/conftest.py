"""Small data, a trained classifier and language model, and a finished study, for examples and tests alike."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

WORDS = {"good": "fine warm bright funny clever tender lively", "bad": "dull cold slow sad clumsy loud hollow"}
PLAIN = "film story scene actor music end plot voice town night train river letter house garden ship road light"
PLAIN += " morning window winter market teacher doctor captain brother song bridge forest paper colour mirror"
SMALL: dict[str, Any] = {"layers": 1, "width": 16, "hidden": 16, "length": 12, "learning_rate": 0.02, "quiet": True}


def reviews_of(count: int = 240) -> list[tuple[str, str]]:
    """(label, text): a word or two of a text tell its label."""
    rng = random.Random(0)
    found = []
    for number in range(count):
        label = ("good", "bad")[number % 2]
        words = [*rng.sample(WORDS[label].split(), 2), *rng.sample(PLAIN.split(), 6)]
        rng.shuffle(words)
        found.append((label, " ".join(words)))
    return found


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples in docstrings find: `reviews`, `classifier`, `language_model`, `finished` (a study)."""
    import fairtrial as ft

    room = tmp_path_factory.mktemp("library")
    reviews = room / "reviews.tsv"
    reviews.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for label, text in reviews_of()))
    classifier = ft.train("classify", reviews, out=room / "classifier", steps=40, **SMALL)
    language_model = ft.train("lm", reviews, out=room / "lm", steps=40, **SMALL)
    how = {"task": "classify", "seeds": 5, "steps": 40, "engine": "here", "out": room / "study"}
    study = ft.study(["none", "learned"], reviews, **how, **SMALL)
    return {"ft": ft, "reviews": reviews, "classifier": classifier, "language_model": language_model, "finished": study}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default folders are below the working folder."""
    monkeypatch.chdir(tmp_path)
