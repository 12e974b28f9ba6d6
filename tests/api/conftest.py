"""Small data, a trained classifier and language model, and a finished study, for examples and tests alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_data import SMALL, reviews_of

from forked import auditing_here


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples in docstrings find: `reviews`, `classifier`, `language_model`, `encoder` (a folder), `finished`
    (a study)."""
    import fairtrial as ft

    workspace = tmp_path_factory.mktemp("library")
    reviews = workspace / "reviews.tsv"
    reviews.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for label, text in reviews_of()))
    classifier = ft.train("classify", reviews, out=workspace / "classifier", steps=40, **SMALL)
    language_model = ft.train(
        "lm", reviews, parts=["learned"], output_bias=False, out=workspace / "lm", steps=40, **SMALL
    )
    encoder = ft.train("mlm", reviews, out=workspace / "mlm", steps=2, **SMALL).folder
    here = ft.StudyOptions(engine="here")
    how = {"task": "classify", "seeds": 5, "steps": 40, "out": workspace / "study"}
    with auditing_here():
        study = ft.study(["none", "learned"], reviews, options=here, **how, **SMALL)
    runs = {"classifier": classifier, "language_model": language_model, "finished": study, "encoder": encoder}
    return {"ft": ft, "reviews": reviews, **runs}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default folders are below the working folder."""
    monkeypatch.chdir(tmp_path)
