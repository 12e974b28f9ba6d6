"""Copies: texts of one set that stand in another, word for word or nearly so.

Exact: the same letters and digits, whatever case and punctuation. Near: the word 3-grams of two texts agree by half
(Jaccard), or four fifths of the shorter text's 3-grams stand in the longer one. The search is complete, not sampled:
texts that are near enough share one of their rarest 3-grams, so only these are looked up (prefix filtering, Chaudhuri
et al. 2006).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from fairtrial.data.splits import normalised

CLEAN, EXACT, NEAR = 0, 1, 2  # status of an item
GRAM = 3  # words
JACCARD = 0.5
CONTAINED = 0.8
LEAST_WORDS = 8  # of an item: "it's the right thing to do" stands in many a text by chance
LEAST_SHARED = 3  # 3-grams, which are five words in a row: a "thank you very much" inside a text makes no copy
PAIRS = 1 << 22  # candidates looked at together


@dataclass(frozen=True)
class Copies:
    """Which texts copy which. `partner`: the nearest text of the other set, -1 where there is none."""

    status: np.ndarray  # [item]
    partner: np.ndarray  # [item]
    likeness: np.ndarray  # [item] 1 for exact copies, else the larger of Jaccard and contained share
    known_status: np.ndarray  # [known text] the same from the other side: what to take out
    known_partner: np.ndarray  # [known text]
    identical: int  # items that are equal letter by letter


def match(known: Sequence[str], items: Sequence[str], tell: Callable[[float], None] = lambda share: None) -> Copies:
    """Copies of `known` texts (training) among `items` (test). `tell` hears the share that is done."""
    found = Copies(
        *(np.zeros(len(items), np.int8), np.full(len(items), -1), np.zeros(len(items))),
        *(np.zeros(len(known), np.int8), np.full(len(known), -1)),
        identical=sum(map(set(known).__contains__, items)),
    )
    _match_exact(found, [key(text) for text in known], [key(text) for text in items])
    _match_near(found, known, items, tell)
    return found


@lru_cache(maxsize=1 << 18)
def key(text: str) -> str:
    """Equal for copies. A text without letters and digits is compared as it is: '?' is no copy of '!'."""
    return normalised(text) or text


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())


def _match_exact(found: Copies, known: list[str], items: list[str]) -> None:
    first_known = {each: at for at, each in reversed(list(enumerate(known)))}
    first_item = {each: at for at, each in reversed(list(enumerate(items)))}
    for at, each in enumerate(items):
        if each in first_known:
            found.status[at], found.partner[at], found.likeness[at] = EXACT, first_known[each], 1
    for at, each in enumerate(known):
        if each in first_item:
            found.known_status[at], found.known_partner[at] = EXACT, first_item[each]


def _match_near(
    found: Copies, known: Sequence[str], items: Sequence[str], tell: Callable[[float], None] = lambda share: None
) -> None:
    """Marks both sides. A text that is an exact copy of one may be a near copy of another, so none is left out."""
    grams, lengths = _gram_matrix([*known, *items])
    train, test = grams[: len(known)], grams[len(known) :]
    long = lengths[len(known) :] >= LEAST_WORDS
    if not train.nnz or not test.nnz:
        return
    train_sizes, test_sizes = train.getnnz(1), test.getnnz(1)
    in_train, in_test = train.getnnz(0), test.getnnz(0)  # how many texts hold each gram
    rare_train, rare_test = _rarest(train, in_test, CONTAINED), _rarest(test, in_train, JACCARD)
    train_by_gram, rare_train_by_gram = train.T.tocsr(), rare_train.T.tocsr()
    reach = (rare_test @ in_train + test @ rare_train.getnnz(0)).cumsum()  # candidates up to each item
    begin = 0
    while begin < test.shape[0]:
        done = reach[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(reach, done + PAIRS, "right")))
        pairs = (rare_test[begin:end] @ train_by_gram + test[begin:end] @ rare_train_by_gram).tocoo()
        kept = long[pairs.row + begin]
        rows, columns = pairs.row[kept] + begin, pairs.col[kept]
        shared = _shared(test, train, rows, columns)
        jaccard = shared / (test_sizes[rows] + train_sizes[columns] - shared)
        contained = shared / np.minimum(test_sizes[rows], train_sizes[columns])
        near = (shared >= LEAST_SHARED) & ((jaccard >= JACCARD) | (contained >= CONTAINED))
        _mark(found, rows[near], columns[near], np.maximum(jaccard, contained)[near])
        begin = end
        tell(begin / test.shape[0])


def _mark(found: Copies, rows: np.ndarray, columns: np.ndarray, likeness: np.ndarray) -> None:
    order = np.argsort(likeness, kind="stable")  # the likest last, so that it stays
    rows, columns, likeness = rows[order], columns[order], likeness[order]
    free = found.known_status[columns] != EXACT
    found.known_status[columns[free]], found.known_partner[columns[free]] = NEAR, rows[free]
    free = found.status[rows] != EXACT
    rows, columns, likeness = rows[free], columns[free], likeness[free]
    found.status[rows], found.partner[rows], found.likeness[rows] = NEAR, columns, likeness


def _rarest(texts: sparse.csr_matrix, common: np.ndarray, share: float) -> sparse.csr_matrix:
    """Of each text the grams of which another must hold one in order to share `share` of them: all but the most
    common, fewer than that share. (A Jaccard of one half asks for half of either text.)"""
    sizes = texts.getnnz(1)
    rows = np.repeat(np.arange(texts.shape[0]), sizes)
    order = np.lexsort((texts.indices, common[texts.indices], rows))
    rank = np.arange(texts.nnz) - np.repeat(texts.indptr[:-1], sizes)
    needed = sizes - np.ceil(share * sizes - 1e-9).astype(int) + 1
    kept = rank < np.repeat(needed, sizes)
    columns = texts.indices[order][kept]
    return sparse.csr_matrix((np.ones(len(columns), np.int64), (rows[kept], columns)), shape=texts.shape)


def _shared(test: sparse.csr_matrix, train: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Grams that each pair has in common."""
    return np.asarray(test[rows].multiply(train[columns]).sum(1)).ravel()


def _gram_matrix(texts: Sequence[str]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """[text gram], 1 where the text holds the gram; and the words of each text."""
    numbers: dict[str, int] = {}
    rows: list[int] = []
    flat: list[int] = []
    for text in texts:
        found = words(text)
        rows.append(len(found))
        flat += [numbers.setdefault(word, len(numbers)) for word in found]
    sizes, ids = np.array(rows, dtype=np.int64), np.array(flat, dtype=np.int64)
    owner = np.repeat(np.arange(len(texts)), sizes)
    whole = np.zeros(len(ids), bool)  # whether a gram begins here, inside one text
    if len(ids) >= GRAM:
        whole[: 1 - GRAM] = owner[: 1 - GRAM] == owner[GRAM - 1 :]
    starts = np.flatnonzero(whole)
    grams = ids[starts]
    for step in range(1, GRAM):  # numbered anew at each step, so that no product overflows
        _, grams = np.unique(grams * len(numbers) + ids[starts + step], return_inverse=True)
    matrix = sparse.csr_matrix(
        (np.ones(len(starts), np.int64), (owner[starts], grams)), shape=(len(texts), int(grams.max(initial=0)) + 1)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix, sizes
