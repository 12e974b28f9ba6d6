"""Small sources to read, and the ways the tests read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.data.corpus import Corpus
from fairtrial.data.readers import read
from fairtrial.errors import BadInput
from fairtrial.recipe import Data

GOOD = "0\tIt is bad.\n1\tIt is good.\n0\tIt is worse.\n1\tIt is better.\n"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def course(folder: Path, without: str = "") -> Path:
    files = {
        "train_CLS.tsv": GOOD,
        "test_CLS.tsv": GOOD,
        "train_LM.txt": "One.\nTwo.\n",
        "test_LM_obama.txt": "Three.\n",
    }
    for name, content in files.items():
        if name != without:
            write(folder / name, content)
    return folder


def classify(path: Path, format: str = "auto") -> Corpus:
    return read(Data(source=str(path), format=format), "classify")


def model(path: Path, format: str = "auto") -> Corpus:
    return read(Data(source=str(path), format=format), "lm")


def refusal(path: Path, task: str = "classify", format: str = "auto") -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(Data(source=str(path), format=format), task)
    return caught.value
