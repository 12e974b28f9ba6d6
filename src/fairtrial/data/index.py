"""What is computed once from all texts of a corpus, whatever the seed: words as numbers, duplicates, and what belongs
together. Taken from the cache where the corpus is large."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from fairtrial.data import cache
from fairtrial.data.batches import Rows
from fairtrial.data.corpus import Corpus, Document, Documents
from fairtrial.data.tokenizer import Tokenizer, word_table
from fairtrial.data.word_table import WordTable
from fairtrial.data.words import text_key
from fairtrial.progress import doing
from fairtrial.recipe import Tokens

if TYPE_CHECKING:
    from fairtrial.data.duplicates import Duplicates


class TextIndex:
    """The documents of a corpus by their places: train, validation, then all test sets."""

    def __init__(self, corpus: Corpus) -> None:
        self.documents: Documents = (*corpus.train, *corpus.validation, *chain(*corpus.tests.values()))
        self.train, self.key = len(corpus.train), corpus.key
        self._tables: dict[tuple[str, bool], WordTable] = {}
        self._numbered: tuple[Tokenizer, np.ndarray] | None = None  # all words as the last tokenizer's tokens

    @cached_property
    def _place(self) -> dict[int, int]:
        return {id(document): place for place, document in enumerate(self.documents)}

    def places(self, documents: Sequence[Document]) -> np.ndarray:
        """Where these documents of the corpus are [document]"""
        return np.fromiter(map(self._place.__getitem__, map(id, documents)), np.int64, len(documents))

    def table(self, tokens: Tokens) -> WordTable:
        """The words of all documents; those of place p are the p-th row."""
        how = (tokens.kind, tokens.lowercase)
        if how not in self._tables:
            self._tables[how] = self._made_table(tokens)
        return self._tables[how]

    def encoded(self, documents: Sequence[Document], tokenizer: Tokenizer) -> Rows | None:
        """The tokens of these documents; None: this tokenizer's rules are not ours."""
        if tokenizer.table_of is None:
            return None
        table = self.table(tokenizer.table_of)
        if self._numbered is None or self._numbered[0] is not tokenizer:
            self._numbered = tokenizer, tokenizer.numbers(table.vocabulary)[table.ids]
        rows = table.rows
        return Rows(self._numbered[1], rows.begins, rows.sizes).take(self.places(documents))

    def _made_table(self, tokens: Tokens) -> WordTable:
        fresh: list[WordTable] = []

        def make() -> cache.Arrays:
            with doing(f"splitting {len(self.documents):,} documents into words"):
                fresh.append(word_table(tokens, [document.text for document in self.documents]))
            words = cache.pack_texts(fresh[0].vocabulary, "words")
            return {"ids": fresh[0].ids, "offsets": fresh[0].offsets, **words}

        found = cache.kept(self._key("words", tokens.kind, tokens.lowercase), f"words ({tokens.kind})", make)
        return (
            fresh[0] if fresh else WordTable(tuple(cache.unpack_texts(found, "words")), found["ids"], found["offsets"])
        )

    def _key(self, *what: object) -> str:
        return cache.key_of(self.key, *what) if self.key else ""

    @cached_property
    def keys(self) -> np.ndarray:
        """Numbers that are equal for duplicates, case and punctuation aside [document]"""

        def make() -> cache.Arrays:
            numbers = number_all(text_key(document.text) for document in self.documents)
            return {"keys": np.fromiter(numbers, np.int64, len(self.documents))}

        return cache.kept(self._key("keys"), "duplicates", make)["keys"]

    @cached_property
    def _keys(self) -> list[int]:
        return self.keys.tolist()

    def key_of(self, document: Document) -> int:
        """Equal for duplicates, case and punctuation aside."""
        return self._keys[self._place[id(document)]]

    @cached_property
    def clusters(self) -> np.ndarray:
        """The number of each training document's cluster [document]"""

        def make() -> cache.Arrays:
            with doing(f"looking for near duplicates among {self.train:,} training documents"):
                return {"clusters": cluster(self.documents[: self.train], self.keys[: self.train])}

        return cache.kept(self._key("clusters"), "near duplicates", make)["clusters"]

    def copies(self, known: Sequence[Document], items: Sequence[Document]) -> Duplicates:
        """Duplicates of known documents among items, searched for in the order of the corpus, whatever the split's."""
        from fairtrial.data.duplicates import Duplicates, find_duplicates

        order = np.argsort(places := self.places(known))
        asked = [places[order], self.places(items)]

        def make() -> cache.Arrays:
            texts = ([self.documents[place].text for place in side.tolist()] for side in asked)
            found = vars(find_duplicates(*texts))
            return found | {"identical": np.array([found["identical"]])}

        sums = [sha256(side.tobytes()).hexdigest() for side in asked]
        found = dict(cache.kept(self._key("copies", *sums), "copies between training and test sets", make))
        known_status, known_partner = np.empty_like(found["known_status"]), np.empty_like(found["known_partner"])
        known_status[order], known_partner[order] = found["known_status"], found["known_partner"]
        partner = np.where(found["partner"] < 0, -1, order[found["partner"]])
        identical = int(found["identical"][0])
        return Duplicates(found["status"], partner, known_status, known_partner, found["share"], identical)


def number_all(names: Iterable[Hashable]) -> Iterator[int]:
    """Each name's number, in the order in which they first occur."""
    numbers: dict[Hashable, int] = {}
    return (numbers.setdefault(name, len(numbers)) for name in names)


def cluster(documents: Sequence[Document], keys: np.ndarray) -> np.ndarray:
    """Documents that share a group, or are duplicates (of one key) or near ones, directly or through others, have one
    number [document]"""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from fairtrial.data.duplicates import near_clusters

    count = len(documents)
    firsts = np.sort(np.unique(keys, return_index=True)[1])  # a document of each key
    grouped = np.flatnonzero([bool(document.group) for document in documents])
    groups = np.fromiter(number_all(documents[number].group for number in grouped.tolist()), np.int64, len(grouped))
    near = near_clusters([documents[number].text for number in firsts.tolist()])
    # one graph of documents, keys, groups and clusters of near duplicates
    edges, nodes = [], count
    for members, shared in ((np.arange(count), keys), (grouped, groups), (firsts, near)):
        edges.append((members, nodes + shared))
        nodes += int(shared.max(initial=-1)) + 1
    ones, others = (np.concatenate(side) for side in zip(*edges, strict=True))
    graph = coo_array((np.ones(len(ones)), (ones, others)), shape=(nodes, nodes))
    return connected_components(graph, directed=False)[1][:count].astype(np.int64)
