"""Fixtures for all tests."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest


@pytest.fixture
def shared_data() -> Path:
    """The folder of the course's speeches, SST-2 and the 1B files, which cannot be shipped with the code."""
    place = os.environ.get("FAIRTRIAL_DATA")
    if not place:
        pytest.skip("FAIRTRIAL_DATA is not set to the folder that holds speeches/, sst2/ and lm1b/")
    return Path(place)


SPEAKERS = {
    "0": "we will build bridges and schools for every child in this hopeful country".split(),
    "1": "our enemies shall find no harbour while brave soldiers stand on guard tonight".split(),
    "2": "i ask the senate to pass the budget with prudence and a gentle steady hand".split(),
}


def sentence(speaker: str, dice: random.Random) -> str:
    words = dice.choices(SPEAKERS[speaker], k=dice.randint(3, 12))
    return " ".join([words[0].capitalize(), *words[1:]]) + "."


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """A small folder in the course's form, with text of our own."""
    dice = random.Random(1)
    folder = tmp_path / "speechesdataset"
    folder.mkdir()
    for name, rows in (("train", 90), ("test", 30)):
        lines = [f"{speaker}\t{sentence(speaker, dice)}" for speaker in dice.choices("012", k=rows)]
        (folder / f"{name}_CLS.tsv").write_text("\n".join(lines) + "\n")
    (folder / "train_LM.txt").write_text("\n".join(sentence(dice.choice("012"), dice) for _ in range(80)) + "\n")
    for number, name in enumerate(("obama", "wbush", "hbush")):
        text = "\n".join(sentence(str(number), dice) for _ in range(12))
        (folder / f"test_LM_{name}.txt").write_text(text + "\n")
    return folder


TINY = (
    "shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.length=12", "shape.classifier_hidden=8", "training.batch=8",
)  # fmt: skip


@pytest.fixture
def tiny() -> list[str]:
    """Settings that make any recipe small enough for a test."""
    return list(TINY)
