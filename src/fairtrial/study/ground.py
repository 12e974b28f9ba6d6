"""The ground that a task's variants share: which files, which test items. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.judge.ratio import contiguous_blocks
from fairtrial.recipe import Recipe
from fairtrial.study.design import refuse_other_items
from fairtrial.text.corpus import Document, Splits
from fairtrial.text.dealing import Dealt, deal

FEW, MANY = 6, 14  # words of a sentence that fits an attention map


@dataclass(frozen=True)
class Ground:
    files: dict[str, str]  # sha256 of every file, by name
    labels: tuple[str, ...]
    items: dict[str, int]  # documents of each test set
    sentence: str  # one of the first test set's, for the attention maps
    groups: dict[str, tuple[int, ...]]  # test set -> the speech or stretch of each document, where neighbours depend


def survey(recipes: Mapping[str, Recipe], seed: int) -> Ground:
    """The ground of one task. Its variants must share it."""
    refuse_other_items(recipes)
    recipe = next(iter(recipes.values()))
    dealt = deal(recipe, seed)
    refuse_other_cuts(recipes, recipe, dealt, seed)
    items = {name: len(documents) for name, documents in dealt.splits.tests.items()}
    groups = {name: grouped(documents, dealt) for name, documents in dealt.splits.tests.items()}
    known = {name: group for name, group in groups.items() if group}
    return Ground(dealt.corpus.files, dealt.splits.labels, items, map_sentence(dealt.splits), known)


def refuse_other_cuts(recipes: Mapping[str, Recipe], first: Recipe, dealt: Dealt, seed: int) -> None:
    """Words read a novel as sentences, characters and byte pairs as paragraphs: other items, so nothing to compare."""
    known = {first.tokens.kind: texts_of(dealt)}
    for name, recipe in recipes.items():
        kind = recipe.tokens.kind
        if kind not in known:
            known[kind] = texts_of(deal(recipe, seed))
        if known[kind] != known[first.tokens.kind]:
            what = f"variant {name!r} (tokens.kind = {kind!r}) is not scored on the items of the others"
            hint = 'these data are cut into items as tokens ask for; one sentence a line (data.format = "lines") is not'
            raise BadInput(what, hint)


def texts_of(dealt: Dealt) -> dict[str, list[str]]:
    return {name: [each.text.strip() for each in documents] for name, documents in dealt.splits.tests.items()}


def grouped(documents: tuple[Document, ...], dealt: Dealt) -> tuple[int, ...]:
    """Documents that belong together count as one item: in running text blocks of neighbours, else the groups that the
    data names. Empty where every document stands alone."""
    if dealt.corpus.ordered:
        words = np.array([len(document.text.split()) for document in documents])
        return tuple(contiguous_blocks(words, dealt.recipe.shape.length).tolist())
    if not any(document.group for document in documents):
        return ()
    names = [document.group or f"alone {place}" for place, document in enumerate(documents)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def map_sentence(splits: Splits) -> str:
    """A test sentence of a readable length."""
    texts = [document.text for documents in splits.tests.values() for document in documents]
    fitting = [text for text in texts if FEW <= len(text.split()) <= MANY]
    return (fitting or sorted(texts, key=len)[len(texts) // 2 :])[0]
