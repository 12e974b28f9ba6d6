"""Recipe + seed -> the documents that a trial of that recipe and seed trains, chooses and is tested on. No torch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairtrial.data.corpus import Corpus, Document, Splits
from fairtrial.data.readers import find_format, read
from fairtrial.data.splits import fitting_tokens, shape_documents, split
from fairtrial.recipe import Data, Recipe


@dataclass(frozen=True)
class Dealt:
    recipe: Recipe  # its tokens as they fit the corpus
    corpus: Corpus
    splits: Splits

    @property
    def known(self) -> tuple[Document, ...]:
        """All that weights are trained on or chosen by: at every seed the same documents, unless train is thinned."""
        return self.splits.train + self.splits.validation


def deal(recipe: Recipe, seed: int) -> Dealt:
    corpus = read(recipe.data, recipe.task)
    recipe = replace(recipe, tokens=fitting_tokens(corpus, recipe.tokens))
    corpus = shape_documents(corpus, recipe.tokens.kind)
    return Dealt(recipe, corpus, split(corpus, recipe.data, seed))


def tasks_of(data: Data) -> tuple[str, ...]:
    """What a source is there for, where nobody said it: plain text has no labels, the course's folder serves both."""
    found = find_format(data)
    if found in ("course", "sotu"):
        return ("classify", "lm")
    return ("lm",) if found in ("text", "lines") else ("classify",)
