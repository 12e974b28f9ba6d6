"""A vocabulary taken from a record, so that two trials on different text score the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairtrial.record import Record
from fairtrial.text.tokenizer import Tokenizer


def is_record(folder: str) -> bool:
    return (Path(folder) / "trial.json").is_file()


def take_vocabulary(folder: Path, texts: Sequence[str]) -> Tokenizer:
    """The tokenizer of a record. Whether its unknown word is trained depends on `texts`, the training text here."""
    kept = Tokenizer.load(folder / "tokenizer.json", Record.open(folder).trial["tokenizer"])
    unknown = sum(row.count(kept.unknown) for row in kept.encode(texts)) if kept.unknown is not None else 0
    facts = {
        **kept.facts,
        "unknown_tokens": unknown,
        "unknown_trained": unknown > 0,
        "fitted_text": f"{kept.facts['fitted_text']} (the vocabulary of the record {folder.resolve().name})",
    }
    return Tokenizer(kept.inner, facts)
