"""Small files in the course's form, with text of our own."""

from __future__ import annotations

import random
from pathlib import Path

SPEAKERS = {
    "0": "we will build bridges and schools for every child in this hopeful country".split(),
    "1": "our enemies shall find no harbour while brave soldiers stand on guard tonight".split(),
    "2": "i ask the senate to pass the budget with prudence and a gentle steady hand".split(),
}


def sentence(speaker: str, rng: random.Random) -> str:
    words = rng.choices(SPEAKERS[speaker], k=rng.randint(3, 12))
    return " ".join([words[0].capitalize(), *words[1:]]) + "."


def write_course(folder: Path) -> Path:
    rng = random.Random(1)
    folder.mkdir()
    for name, rows in (("train", 90), ("test", 30)):
        lines = [f"{speaker}\t{sentence(speaker, rng)}" for speaker in rng.choices("012", k=rows)]
        (folder / f"{name}_CLS.tsv").write_text("\n".join(lines) + "\n")
    (folder / "train_LM.txt").write_text("\n".join(sentence(rng.choice("012"), rng) for _ in range(80)) + "\n")
    for number, name in enumerate(("obama", "wbush", "hbush")):
        text = "\n".join(sentence(str(number), rng) for _ in range(12))
        (folder / f"test_LM_{name}.txt").write_text(text + "\n")
    return folder
