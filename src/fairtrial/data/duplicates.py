"""Duplicates: texts of one set that also occur in another. Exact: the same letters and digits, whatever case and
punctuation. Near: the word 3-grams of two texts have a Jaccard similarity of at least one half. Contained: at least
half of a text's 3-grams occur in texts that it contains or is contained in. The search is complete, not sampled: such
texts share one of their rarest 3-grams, so only these are looked up (prefix filtering, Chaudhuri et al. 2006)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from fairtrial.data.words import make_table, text_key
from fairtrial.stored import CopiedItems
from fairtrial.typed import structure

CLEAN, EXACT, NEAR = 0, 1, 2  # status of an item; a contained one is near, and has a share
GRAM = 3  # words
HALF = 0.5  # of the 3-grams of both texts, or of an item
CONTAINED = 0.8  # of its 3-grams in the longer text: a text is contained
LEAST_WORDS = 8  # of an item: "it's the right thing to do" occurs in many texts by chance
LEAST_SHARED = 3  # 3-grams, that is five words in a row: a "thank you very much" inside a text makes no duplicate
PAIRS = 1 << 22  # candidate pairs compared at a time
COMPARED = 1 << 18  # of these at a time
SIGNS_TO_BLANKS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
MOST_NUMBER = 1 << 62
BOTH = 1 << 32  # two counts in one number
COMMON = 500  # texts of a gram, when texts of one set are clustered


@dataclass(frozen=True)
class Duplicates:
    """Which items (test) duplicate which known texts (training). `partner`: the most similar one, -1: there is none."""

    status: np.ndarray  # [item]
    partner: np.ndarray  # [item]
    known_status: np.ndarray  # [known text] the same from the other side: what to remove
    known_partner: np.ndarray  # [known text]
    share: np.ndarray  # [item] of its 3-grams, where being contained or containing made it near; else 0
    identical: int  # items that are equal character by character

    def counts(self) -> dict[str, int | float]:
        exact, near, clean = (int((self.status == kind).sum()) for kind in (EXACT, NEAR, CLEAN))
        share = 1 - clean / len(self.status)
        items = {"items": len(self.status), "identical": self.identical}
        return {**items, "exact": exact, "near": near, "clean": clean, "share": share}

    def items(self) -> CopiedItems:
        """With the status of each item, and the shares of those that the rule of contained texts made near."""
        contained = {str(number): round(float(self.share[number]), 3) for number in np.flatnonzero(self.share)}
        return structure(CopiedItems, {**self.counts(), "status": self.status.tolist(), "contained": contained})


def find_duplicates(known: Sequence[str], items: Sequence[str]) -> Duplicates:
    """Duplicates of `known` texts (training) among `items` (test)."""
    found = Duplicates(
        *(np.zeros(len(items), np.int8), np.full(len(items), -1)),
        *(np.zeros(len(known), np.int8), np.full(len(known), -1)),
        share=np.zeros(len(items)),
        identical=sum(map(set(known).__contains__, items)),
    )
    _mark_exact(found, [text_key(text) for text in known], [text_key(text) for text in items])
    _mark_near(found, known, items)
    return found


def words(text: str) -> list[str]:
    if text.isascii():
        return text.lower().encode().translate(SIGNS_TO_BLANKS).decode().split()
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
    for rows, columns in _candidates(train, test):
        rows, columns, jaccard, share = _near(train, test, lengths[len(known) :], rows, columns)
        found.share[rows] = share
        found.share[rows[jaccard >= HALF]] = 0
        free = found.known_status[columns] != EXACT
        found.known_status[columns[free]], found.known_partner[columns[free]] = NEAR, rows[free]
        free = found.status[rows] != EXACT
        found.status[rows[free]], found.partner[rows[free]] = NEAR, columns[free]
    found.share[found.status == EXACT] = 0


def near_clusters(texts: Sequence[str]) -> np.ndarray:
    """[text] the number of its cluster: texts that are near duplicates or contain one another, directly or through
    others. Texts that are neighbours in the lists of texts of several grams are joined first, and grams with more than
    `COMMON` texts are then not looked up: ten thousand texts of one pattern would make a hundred million pairs."""
    grams, lengths = _gram_matrix(texts)
    by_gram = grams.T.tocsr()
    by_gram.sort_indices()
    gram = np.repeat(np.arange(by_gram.shape[0]), by_gram.getnnz(1))
    next_to = np.flatnonzero(gram[1:] == gram[:-1])
    pairs = by_gram.indices[next_to].astype(np.int64) * len(texts) + by_gram.indices[next_to + 1]
    pairs, times = np.unique(pairs, return_counts=True)
    one, other = np.divmod(pairs[times >= LEAST_SHARED], max(1, len(texts)))
    clusters, links = np.arange(len(texts)), []
    neighbours = np.append(one, other), np.append(other, one)
    for rows, columns in chain([neighbours], _candidates(grams, grams, COMMON)):
        apart = clusters[rows] != clusters[columns]
        rows, columns, *_ = _near(grams, grams, lengths, rows[apart], columns[apart])
        if not len(rows):
            continue
        links.append(sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts),) * 2))
        _, clusters = connected_components(sum(links[1:], links[0]), directed=False)
    return clusters


def _candidates(
    train: sparse.csr_matrix, test: sparse.csr_matrix, most: float = np.inf
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Items and known texts that may be near, all of an item together, by grams of at most `most` texts. Two texts
    share at most the grams that were looked up and found in the other, and all that were not looked up."""
    if not train.nnz or not test.nnz:
        return
    in_train, in_test = train.getnnz(0), test.getnnz(0)  # how many texts hold each gram
    alone = int(train is test)  # a gram of that many texts makes no pair
    rare_train, left_train = _rarest(train, in_test, CONTAINED, alone, most)
    rare_test, left_test = _rarest(test, in_train, HALF, alone, most)
    train_sizes, test_sizes = train.getnnz(1), test.getnnz(1)
    train_by_gram, rare_train_by_gram = train.T.tocsr(), rare_train.T.tocsr()
    candidates = (rare_test @ in_train + test @ rare_train.getnnz(0)).cumsum()  # pairs up to each item
    begin = 0
    while begin < test.shape[0]:
        done = candidates[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(candidates, done + PAIRS, "right")))
        pairs = (rare_test[begin:end] @ train_by_gram * BOTH + test[begin:end] @ rare_train_by_gram).tocoo()
        rows, columns = pairs.row + begin, pairs.col
        of_test, of_train = np.divmod(pairs.data, BOTH)  # rare grams of one that are in the other
        shared = np.minimum(of_test + left_test[rows], of_train + left_train[columns])  # at most
        ones, others = test_sizes[rows], train_sizes[columns]
        needed = np.minimum(HALF / (1 + HALF) * (ones + others), CONTAINED * np.minimum(ones, others)) - 1e-9
        may_be = shared >= np.maximum(LEAST_SHARED, needed)
        yield rows[may_be], columns[may_be]
        begin = end


def _near(
    train: sparse.csr_matrix, test: sparse.csr_matrix, words: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Those pairs that are near duplicates or contain one another, the most similar last: numbers of the item and the
    known text, Jaccard similarity, and the share of the item's grams in all that it contains or is contained in."""
    rows, columns = rows[words[rows] >= LEAST_WORDS], columns[words[rows] >= LEAST_WORDS]
    train_sizes, test_sizes = train.getnnz(1)[columns], test.getnnz(1)[rows]
    begins = range(0, max(1, len(rows)), COMPARED)
    parts = [(rows[begin : begin + COMPARED], columns[begin : begin + COMPARED]) for begin in begins]
    shared = np.concatenate([test[some].multiply(train[others]).getnnz(1) for some, others in parts])
    jaccard = shared / (test_sizes + train_sizes - shared)
    contained = (
        (jaccard < HALF) & (shared / np.minimum(test_sizes, train_sizes) >= CONTAINED) & (shared >= LEAST_SHARED)
    )
    common = test[rows[contained]].multiply(train[columns[contained]]).tocsr()  # [pair gram]
    share = np.zeros(len(rows))
    share[contained] = _shares_together(rows[contained], common, test_sizes[contained])
    order = np.lexsort((shared, np.where(contained, 0, jaccard)))
    near = order[((shared >= LEAST_SHARED) & ((jaccard >= HALF) | (share >= HALF)))[order]]
    return rows[near], columns[near], jaccard[near], share[near]


def _shares_together(rows: np.ndarray, common: sparse.csr_matrix, sizes: np.ndarray) -> np.ndarray:
    """For each pair: the share of its item's grams that occur in any of the item's pairs."""
    items, number = np.unique(rows, return_inverse=True)
    shape = (len(items), len(rows))
    together = sparse.csr_matrix((np.ones(len(rows), np.int64), (number, np.arange(len(rows)))), shape=shape) @ common
    return np.asarray(together.getnnz(1)[number] / sizes)


def _rarest(
    texts: sparse.csr_matrix, common: np.ndarray, share: float, alone: int, most: float
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """The rarest grams of each text, so many that a text without any of them cannot hold `share` of its grams; without
    those of at most `alone` texts, which find nothing. And how many others that may find something it has [text]"""
    sizes = texts.getnnz(1)
    rows = np.repeat(np.arange(texts.shape[0]), sizes)
    needed = sizes - np.ceil(share * sizes - 1e-9).astype(int) + 1
    fruitful = common[texts.indices] > alone
    rows, columns = rows[fruitful], texts.indices[fruitful]
    found = np.bincount(rows, minlength=len(sizes))
    order = np.argsort(rows * (int(common.max(initial=0)) + 1) + common[columns], kind="stable")
    rank = np.arange(len(rows)) + np.repeat(sizes - found - (np.cumsum(found) - found), found)  # the rarest come first
    columns = columns[order]
    kept = (rank < needed[rows]) & (common[columns] <= most)
    columns = columns[kept]
    chosen = sparse.csr_matrix((np.ones(len(columns), np.int64), (rows[kept], columns)), shape=texts.shape)
    return chosen, found - chosen.getnnz(1)


def _gram_matrix(texts: Sequence[str]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """[text gram], 1 where the text holds the gram; and the number of words of each text."""
    table = make_table(texts, "whitespace", words)
    ids, sizes, count = table.ids.astype(np.int64), np.diff(table.offsets), len(table.vocabulary)
    owner = np.repeat(np.arange(len(texts)), sizes)
    inside = np.zeros(len(ids), bool)  # whether a gram that begins here ends in the same text
    if len(ids) >= GRAM:
        inside[: 1 - GRAM] = owner[: 1 - GRAM] == owner[GRAM - 1 :]
    starts = np.flatnonzero(inside)
    grams = ids[starts]
    for step in range(1, GRAM):
        if grams.max(initial=0) * count >= MOST_NUMBER:  # renumbered, so that no product overflows
            _, grams = np.unique(grams, return_inverse=True)
        grams = grams * count + ids[starts + step]
    _, grams = np.unique(grams, return_inverse=True)
    shape = (len(texts), int(grams.max(initial=0)) + 1)
    matrix = sparse.csr_matrix((np.ones(len(starts), np.int64), (owner[starts], grams)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix, sizes
