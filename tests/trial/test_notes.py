"""What a reader must know stands in the record: copies between splits, texts that were cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.prepare import prepare
from fairtrial.provenance import copies_notes
from fairtrial.recipe import Data, Recipe, choose_recipe
from fairtrial.trial import run_trial


def copies_told(folder: Path, train: list[str], test: list[str], **data: Any) -> list[str]:
    """The notes on copies of a trial on these texts."""
    folder.mkdir()
    for name, texts in (("train", train), ("test", test)):
        (folder / f"{name}.tsv").write_text("\n".join(f"{number % 2}\t{text}" for number, text in enumerate(texts)))
    return copies_notes(prepare(Recipe(data=Data(source=str(folder), **data)), 0))


def test_copies_are_counted_whatever_their_case_and_punctuation(tmp_path: Path) -> None:
    train, test = ["We won.", "They lost!"], ["we won", "WE WON!!", "Nobody came.", "It rains."]
    (note,) = copies_told(tmp_path / "data", train, test, validation=0.0)
    assert note.startswith(
        "test: 2 of 4 test items (50.0%) also occur in the training set (2 exact, 0 near duplicates)"
    )


def test_clean_splits_have_no_note(tmp_path: Path) -> None:
    assert copies_told(tmp_path / "data", ["We won.", "They lost."], ["It rains.", "No."], validation=0.0) == []


def test_one_number_of_copies_for_every_command_and_seed(shared_data: Path, fairtrial: Callable[..., Any]) -> None:
    """551 exact ones and one near; not those 487 that a trial's training split holds after validation is taken."""
    data = str(shared_data / "speeches")
    told = "552 of 750 test items (73.6%) also occur in the training set (551 exact, 1 near duplicates); 198 are clean"
    for name, seed in (("course", 0), ("default", 1)):
        (note,) = copies_notes(prepare(choose_recipe("classify", name, data), seed))
        assert told in note
    for command in ("baseline", "audit"):
        assert told in " ".join(fairtrial("data", command, "--data", data, "--task", "classify").out.split())


def test_texts_that_are_cut_are_told(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    short = run_trial(tiny_recipe("classify", "shape.length=4"), 0, tmp_path / "short").trial
    note = next(note for note in short.notes if "only their beginning" in note)
    assert note.startswith("longer than 4 tokens")
    assert f"{short.counts.cut_to_length['train']} of {short.counts.documents['train']} train" in note
    long = run_trial(tiny_recipe("classify", "shape.length=40"), 0, tmp_path / "long").trial
    assert not any("only their beginning" in note for note in long.notes)


def test_stopping_while_the_test_sets_are_scored_leaves_a_record_that_resumes(
    tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    from fairtrial.errors import Interrupted
    from fairtrial.events import FinalScoring
    from fairtrial.trial import resume_trial

    whole = run_trial(tiny_recipe("lm"), 0, tmp_path / "whole")
    testing: list[str] = []
    with pytest.raises(Interrupted, match="stopped while scoring"):
        run_trial(
            tiny_recipe("lm"), 0, tmp_path / "broken",
            on_event=lambda event: testing.append(event.split) if isinstance(event, FinalScoring) else None,
            stop=lambda: "wbush" in testing,
        )  # fmt: skip
    resumed = resume_trial(tmp_path / "broken")
    for name in ("events.jsonl", "result.json", "model.safetensors", "outcomes.safetensors"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
