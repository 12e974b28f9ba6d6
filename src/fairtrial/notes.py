"""What a reader of a record must know before believing its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.data.corpus import Splits
from fairtrial.data.splits import normalised
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.recipe import Recipe


def notes_on(recipe: Recipe, splits: Splits, tokenizer: Tokenizer, cut: Mapping[str, int]) -> list[str]:
    """`cut`: how many documents of each split are longer than the model's length."""
    notes = [*copies(splits), *cuts(recipe, splits, cut)]
    if tokenizer.unknown is not None and not tokenizer.unknown_trained:
        notes.append(
            "the unknown token never occurs in training, so its weights are untrained (raise tokens.min_count)"
        )
    if recipe.tokens.fit == "course":
        notes.append(
            "the tokenizer was fitted on both whole training files, labels included, not on the training split"
        )
    if recipe.scoring.watch_test:
        notes.append("test watched: the test sets were scored during training")
    if not splits.validation:
        notes.append("no validation set: nothing could be chosen honestly")
    return notes


def copies(splits: Splits) -> list[str]:
    """Test documents that stand in the training text, but for case and punctuation: a score on them tests memory."""
    known = {normalised(document.text) for document in splits.train} - {""}
    found = []
    for name, documents in splits.tests.items():
        count = sum(normalised(document.text) in known for document in documents)
        if count:
            share = count / len(documents)
            found.append(
                f"{count:,} of {len(documents):,} documents of {name!r} ({share:.1%}) also stand in the training text:"
                " on these the score tests memory"
            )
    return found


def cuts(recipe: Recipe, splits: Splits, cut: Mapping[str, int]) -> list[str]:
    sizes = {"train": len(splits.train), "validation": len(splits.validation)}
    sizes |= {name: len(documents) for name, documents in splits.tests.items()}
    parts = [f"{count:,} of {sizes[name]:,} {name}" for name, count in cut.items() if count]
    if not parts:
        return []
    return [f"longer than {recipe.shape.length} tokens, so only their beginning is read: {', '.join(parts)} documents"]
