"""What a reader must know stands in the record: copies between splits, texts that were cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtrial.data.corpus import Document, Splits
from fairtrial.data.readers import read
from fairtrial.data.splits import split
from fairtrial.provenance import duplicates
from fairtrial.recipe import Data
from fairtrial.trial import run_trial


def splits(train: list[str], test: list[str]) -> Splits:
    def documents(texts: list[str]) -> tuple[Document, ...]:
        return tuple(Document(text) for text in texts)

    return Splits(train=documents(train), validation=(), tests={"test": documents(test)}, labels=(), running=False)


def test_copies_are_counted_whatever_their_case_and_punctuation() -> None:
    (note,) = duplicates(splits(["We won.", "They lost!"], ["we won", "WE WON!!", "Nobody came.", "..."]))
    assert note.startswith("2 of 4 documents of 'test' (50.0%) also occur in the training set")


def test_clean_splits_have_no_note() -> None:
    assert duplicates(splits(["We won."], ["They lost."])) == []


def test_the_courses_551_copies_are_told(shared_data: Path) -> None:
    data = Data(source=str(shared_data / "speeches"), validation=0.0)
    (note,) = duplicates(split(read(data, "classify"), data, 0))
    # 551 rows are equal byte for byte; one more differs in punctuation only
    assert int(note.split()[0]) in (551, 552)


def test_texts_that_are_cut_are_told(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    short = run_trial(tiny_recipe("classify", "shape.length=4"), 0, tmp_path / "short").trial
    note = next(note for note in short["notes"] if "only their beginning" in note)
    assert note.startswith("longer than 4 tokens")
    assert f"{short['cut_to_length']['train']} of {short['documents']['train']} train" in note
    long = run_trial(tiny_recipe("classify", "shape.length=40"), 0, tmp_path / "long").trial
    assert not any("only their beginning" in note for note in long["notes"])


def test_stopping_while_the_test_sets_are_scored_leaves_a_record_that_resumes(
    tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    import pytest

    from fairtrial.errors import Interrupted
    from fairtrial.trial import resume_trial

    whole = run_trial(tiny_recipe("lm"), 0, tmp_path / "whole")
    testing: list[str] = []
    with pytest.raises(Interrupted, match="stopped while scoring"):
        run_trial(
            tiny_recipe("lm"), 0, tmp_path / "broken",
            on_event=lambda event: testing.append(event.facts["split"]) if event.kind == "testing" else None,
            stop=lambda: "wbush" in testing,
        )  # fmt: skip
    resumed = resume_trial(tmp_path / "broken")
    for name in ("events.jsonl", "result.json", "model.safetensors", "outcomes.safetensors"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
