"""Duplicates: texts of one set that also occur in another. Exact: the same letters and digits, whatever case and
punctuation. Near: the word 3-grams of two texts have a Jaccard similarity of at least one half, or four fifths of the
shorter text's 3-grams occur in the longer one. The search is complete, not sampled: near duplicates share one of their
rarest 3-grams, so only these are looked up (prefix filtering, Chaudhuri et al. 2006)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fairtrial.data.splits import text_key

CLEAN, EXACT, NEAR = 0, 1, 2  # status of an item
GRAM = 3  # words
JACCARD = 0.5
CONTAINED = 0.8
LEAST_WORDS = 8  # of an item: "it's the right thing to do" occurs in many texts by chance
LEAST_SHARED = 3  # 3-grams, that is five words in a row: a "thank you very much" inside a text makes no duplicate
PAIRS = 1 << 22  # candidate pairs compared at a time


@dataclass(frozen=True)
class Duplicates:
    """Which items (test) duplicate which known texts (training). `partner`: the most similar text of the other set, -1
    where there is none."""

    status: np.ndarray  # [item]
    partner: np.ndarray  # [item]
    known_status: np.ndarray  # [known text] the same from the other side: what to remove
    known_partner: np.ndarray  # [known text]
    identical: int  # items that are equal character by character

    def counts(self) -> dict[str, int | float]:
        exact, near, clean = (int((self.status == kind).sum()) for kind in (EXACT, NEAR, CLEAN))
        share = 1 - clean / len(self.status)
        items = {"items": len(self.status), "identical": self.identical}
        return {**items, "exact": exact, "near": near, "clean": clean, "share": share}


def find_duplicates(known: Sequence[str], items: Sequence[str]) -> Duplicates:
    """Duplicates of `known` texts (training) among `items` (test)."""
    found = Duplicates(
        *(np.zeros(len(items), np.int8), np.full(len(items), -1)),
        *(np.zeros(len(known), np.int8), np.full(len(known), -1)),
        identical=sum(map(set(known).__contains__, items)),
    )
    _mark_exact(found, [text_key(text) for text in known], [text_key(text) for text in items])
    _mark_near(found, known, items)
    return found


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())


def _mark_exact(found: Duplicates, known: list[str], items: list[str]) -> None:
    sides = (items, known, found.status, found.partner), (known, items, found.known_status, found.known_partner)
    for keys, others, status, partner in sides:
        first = {key: number for number, key in reversed(list(enumerate(others)))}
        for number, key in enumerate(keys):
            if key in first:
                status[number], partner[number] = EXACT, first[key]


def _mark_near(found: Duplicates, known: Sequence[str], items: Sequence[str]) -> None:
    """Marks both sides. An exact duplicate of one text may be a near duplicate of another, so none is left out."""
    grams, lengths = _gram_matrix([*known, *items])
    train, test = grams[: len(known)], grams[len(known) :]
    long = lengths[len(known) :] >= LEAST_WORDS
    if not train.nnz or not test.nnz:
        return
    train_sizes, test_sizes = train.getnnz(1), test.getnnz(1)
    in_train, in_test = train.getnnz(0), test.getnnz(0)  # how many texts hold each gram
    rare_train, rare_test = _rarest(train, in_test, CONTAINED), _rarest(test, in_train, JACCARD)
    train_by_gram, rare_train_by_gram = train.T.tocsr(), rare_train.T.tocsr()
    candidates = (rare_test @ in_train + test @ rare_train.getnnz(0)).cumsum()  # pairs up to each item
    begin = 0
    while begin < test.shape[0]:
        done = candidates[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(candidates, done + PAIRS, "right")))
        pairs = (rare_test[begin:end] @ train_by_gram + test[begin:end] @ rare_train_by_gram).tocoo()
        kept = long[pairs.row + begin]
        rows, columns = pairs.row[kept] + begin, pairs.col[kept]
        shared = np.asarray(test[rows].multiply(train[columns]).sum(1)).ravel()  # grams that each pair has in common
        jaccard = shared / (test_sizes[rows] + train_sizes[columns] - shared)
        contained = shared / np.minimum(test_sizes[rows], train_sizes[columns])
        near = (shared >= LEAST_SHARED) & ((jaccard >= JACCARD) | (contained >= CONTAINED))
        _mark_pairs(found, rows[near], columns[near], np.maximum(jaccard, contained)[near])
        begin = end


def _mark_pairs(found: Duplicates, rows: np.ndarray, columns: np.ndarray, similarity: np.ndarray) -> None:
    order = np.argsort(similarity, kind="stable")  # the most similar is written last, so that it stays
    rows, columns = rows[order], columns[order]
    free = found.known_status[columns] != EXACT
    found.known_status[columns[free]], found.known_partner[columns[free]] = NEAR, rows[free]
    free = found.status[rows] != EXACT
    found.status[rows[free]], found.partner[rows[free]] = NEAR, columns[free]


def _rarest(texts: sparse.csr_matrix, common: np.ndarray, share: float) -> sparse.csr_matrix:
    """The rarest grams of each text, so many that a text without any of them cannot hold `share` of its grams. (A
    Jaccard similarity of one half takes half of either text.)"""
    sizes = texts.getnnz(1)
    rows = np.repeat(np.arange(texts.shape[0]), sizes)
    order = np.lexsort((texts.indices, common[texts.indices], rows))
    rank = np.arange(texts.nnz) - np.repeat(texts.indptr[:-1], sizes)
    needed = sizes - np.ceil(share * sizes - 1e-9).astype(int) + 1
    kept = rank < np.repeat(needed, sizes)
    columns = texts.indices[order][kept]
    return sparse.csr_matrix((np.ones(len(columns), np.int64), (rows[kept], columns)), shape=texts.shape)


def _gram_matrix(texts: Sequence[str]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """[text gram], 1 where the text holds the gram; and the number of words of each text."""
    numbers: dict[str, int] = {}
    rows: list[int] = []
    flat: list[int] = []
    for text in texts:
        found = words(text)
        rows.append(len(found))
        flat += [numbers.setdefault(word, len(numbers)) for word in found]
    sizes, ids = np.array(rows, dtype=np.int64), np.array(flat, dtype=np.int64)
    owner = np.repeat(np.arange(len(texts)), sizes)
    inside = np.zeros(len(ids), bool)  # whether a gram that begins here ends in the same text
    if len(ids) >= GRAM:
        inside[: 1 - GRAM] = owner[: 1 - GRAM] == owner[GRAM - 1 :]
    starts = np.flatnonzero(inside)
    grams = ids[starts]
    for step in range(1, GRAM):  # renumbered at each step, so that no product overflows
        _, grams = np.unique(grams * len(numbers) + ids[starts + step], return_inverse=True)
    shape = (len(texts), int(grams.max(initial=0)) + 1)
    matrix = sparse.csr_matrix((np.ones(len(starts), np.int64), (owner[starts], grams)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix, sizes
