"""More text for the models that count: documents of another source, without those that copy what is scored."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.errors import BadInput
from fairtrial.recipe import Data
from fairtrial.text.copies import CLEAN, match
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.read_sotu import presidents
from fairtrial.text.reading import find_format, read
from fairtrial.text.shaping import shape_documents


@dataclass(frozen=True)
class More:
    name: str
    documents: tuple[Document, ...]
    dropped: int  # documents that stand in a scored set, word for word or nearly so


def read_more(source: str, task: str, kind: str, scored: list[str]) -> More:
    """All splits of `source`, of the embedded corpus the addresses of all presidents, cut as tokens of that `kind` want
    it. `scored`: texts that no model may have seen."""
    data = Data(source=source)
    if find_format(data) == "sotu":
        data = Data(source=source, presidents=presidents())
    documents = whole(shape_documents(read(data, task), kind))
    status = match([each.text for each in documents], scored).known_status
    kept = tuple(each for each, found in zip(documents, status, strict=True) if found == CLEAN)
    if not kept:
        raise BadInput(f"all of {source} stands in the sets that are scored", "give text that they do not hold")
    return More(source, kept, len(documents) - len(kept))


def whole(corpus: Corpus) -> tuple[Document, ...]:
    return corpus.train + corpus.validation + tuple(each for tests in corpus.tests.values() for each in tests)
