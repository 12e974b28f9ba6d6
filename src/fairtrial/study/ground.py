"""The ground that a task's variants share: which files, which test items. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairtrial.recipe import Recipe
from fairtrial.study.design import refuse_other_items
from fairtrial.text.corpus import Splits
from fairtrial.text.dealing import deal

FEW, MANY = 6, 14  # words of a sentence that fits an attention map


@dataclass(frozen=True)
class Ground:
    files: dict[str, str]  # sha256 of every file, by name
    labels: tuple[str, ...]
    items: dict[str, int]  # documents of each test set
    sentence: str  # one of the first test set's, for the attention maps


def survey(recipes: Mapping[str, Recipe], seed: int) -> Ground:
    """The ground of one task. Its variants must share it."""
    refuse_other_items(recipes)
    recipe = next(iter(recipes.values()))
    dealt = deal(recipe, seed)
    items = {name: len(documents) for name, documents in dealt.splits.tests.items()}
    return Ground(dealt.corpus.files, dealt.splits.labels, items, map_sentence(dealt.splits))


def map_sentence(splits: Splits) -> str:
    """A test sentence of a readable length."""
    texts = [document.text for documents in splits.tests.values() for document in documents]
    fitting = [text for text in texts if FEW <= len(text.split()) <= MANY]
    return (fitting or sorted(texts, key=len)[len(texts) // 2 :])[0]
