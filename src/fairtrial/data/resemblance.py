"""Resemblance: test items that share most of their words with one training text, in any order and however these are
written. It finds what 3-grams miss: replaced words, fillers, shuffled sentences, look-alike letters, cut stems.

Words are folded first: look-alike letters to Latin ones, numbers to words, words to short stems. A folded word weighs
more the fewer training texts hold it. A long item resembles a text if the cosine of their weights is above what most
training texts reach among one another; the limit depends on the length. A short item resembles a text that differs by
one word, if the words that they share are too rare to meet by chance among so many texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fairtrial.data.words import make_table

LOOK_ALIKES = str.maketrans(  # letters of other scripts, and the Latin ones that they look like
    "авгеёзіїјкмнорстухьѕһԁԛԝӏɡαβγεηικμνορτυχωϲϳıɩʟ", "abreeziijkmhopctyxbshdqwlgabyenikmvoptuxwcjiil"
)
LEET = str.maketrans("0134578@$", "oleastbas")
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ENDING = re.compile(r"(?<=..)(?:ies|ing|edly|ed|es|s|ly|er|est|ion|al|ment|ness|e|y)$")
STEM = 5  # letters
SHORT = 10  # folded words: shorter items are compared by their one word that differs
LENGTHS = (0, SHORT, 16, 26)  # where a new limit begins
SAMPLED = 3000  # training texts that are compared with the others, to know what is usual
LEAST_SAMPLED = 50  # for a limit of their length
USUAL = 0.992  # of these training texts are below the limit
LOWEST, HIGHEST = 0.45, 0.52  # of the limit; the highest is exceeded for short texts, by this divided by their length:
PER_WORD = 1.5  # training sets hold duplicates, too, which would raise the limit to 1
RARE = 30  # texts: words of fewer weigh no more; replaced words are often rare
POWER = 0.75  # of a weight: the best recall of replaced words (docs/contamination.md)
UNSEEN_WEIGHT = 0.4  # of a word that no training text holds, such as one with a typing error
LEAST_SHARE = 0.4  # of an item's weight
CHANGED = 4  # one word in four may differ in a short item
LUCK = 3.0  # nats for each of them, beyond what one of so many texts shares by chance
POSTINGS = 2000  # training texts that are looked up for an item, by its rarest words
CANDIDATE = 0.34  # of the weight of those rarest words
BLOCK = 1 << 23  # looked up at a time
COMPARED = 1 << 17  # pairs


@dataclass(frozen=True)
class Resemblance:
    """Of each item to the training text that it resembles most; `partner` is -1 where it resembles none."""

    score: np.ndarray  # [item] 0 to 1
    partner: np.ndarray  # [item]
    usual: float = 0.0  # share of training texts that resemble another training text, by the same limits


def find_resembling(known: Sequence[str], items: Sequence[str]) -> Resemblance:
    """Items (test) that resemble one of the `known` texts (training)."""
    none = Resemblance(np.zeros(len(items)), np.full(len(items), -1))
    if not known or not items:
        return none
    words = _word_matrix([*known, *items])
    train = words[: len(known)]
    sample = np.unique(np.linspace(0, len(known) - 1, SAMPLED).astype(int))
    asked = sparse.vstack([words[len(known) :], train[sample]]).tocsr()
    own = np.append(np.full(len(items), -1), sample)  # a training text is not compared with itself
    holding = train.getnnz(0)
    surprise = np.log((len(known) + 1) / np.maximum(2.5, holding + 0.5))
    weights = np.log((len(known) + 1) / np.maximum(min(RARE, len(known) / 10), holding + 0.5)).clip(0) ** POWER
    weights[holding == 0] *= UNSEEN_WEIGHT
    sizes, sums, train_sums = asked.getnnz(1), asked @ weights, train @ weights
    rows, columns = _candidates(train, asked, holding, weights)
    apart = own[rows] != columns
    rows, columns = rows[apart], columns[apart]
    shared, surprising, count = _shared(train, asked, [weights, surprise], rows, columns)
    cosine = shared / np.sqrt(sums[rows] * train_sums[columns])
    differ = np.maximum(sizes[rows], train.getnnz(1)[columns]) - count
    cosine[shared < LEAST_SHARE * sums[rows]] = 0
    by_chance = surprising < np.log(len(known)) + LUCK * differ
    cosine[(sizes[rows] < SHORT) & (by_chance | (differ > np.maximum(1, sizes[rows] // CHANGED)))] = 0
    best = np.lexsort((cosine, rows))
    score, partner = np.zeros(len(own)), np.full(len(own), -1)
    score[rows[best]], partner[rows[best]] = cosine[best], columns[best]  # the largest comes last
    limits = _limits(score[len(items) :], sizes[len(items) :], sizes)
    resembles = score >= limits
    partner[~resembles] = -1
    return Resemblance(score[: len(items)], partner[: len(items)], float(resembles[len(items) :].mean()))


def _limits(usual: np.ndarray, sampled_sizes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """[text] that a cosine must reach. `usual`: the best ones of training texts among one another."""
    limits = np.full(len(sizes), LOWEST)
    bins, sampled_bins = (np.searchsorted(LENGTHS, each, "right") for each in (sizes, sampled_sizes))
    for number in range(2, len(LENGTHS) + 1):
        alike = usual[sampled_bins == number]
        highest = HIGHEST + PER_WORD / sizes[bins == number]
        among = np.quantile(alike, USUAL) if len(alike) >= LEAST_SAMPLED else 1.0
        limits[bins == number] = np.clip(among, LOWEST, highest)
    return limits


def _candidates(
    train: sparse.csr_matrix, asked: sparse.csr_matrix, holding: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that share a good part of an item's rarest words."""
    rows = np.repeat(np.arange(asked.shape[0]), asked.getnnz(1))
    order = np.lexsort((holding[asked.indices], rows))
    columns = asked.indices[order]
    before = holding[columns].cumsum() - holding[columns]
    before -= before[asked.indptr[:-1].clip(max=max(0, len(before) - 1))][rows]  # texts of rarer words of the item
    kept = (before <= POSTINGS) & (holding[columns] > 0)
    rare = sparse.csr_matrix((weights[columns[kept]], (rows[kept], columns[kept])), shape=asked.shape)
    needed = CANDIDATE * np.asarray(rare.sum(1)).ravel()
    by_word = train.T.tocsr()
    looked_up = np.bincount(rows[kept], holding[columns[kept]], asked.shape[0]).cumsum()
    found, begin = [], 0
    while begin < asked.shape[0]:
        done = looked_up[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(looked_up, done + BLOCK, "right")))
        pairs = (rare[begin:end] @ by_word).tocoo()
        enough = pairs.data >= needed[pairs.row + begin]
        found.append((pairs.row[enough] + begin, pairs.col[enough]))
        begin = end
    return np.concatenate([rows for rows, _ in found]), np.concatenate([columns for _, columns in found])


def _shared(
    train: sparse.csr_matrix, asked: sparse.csr_matrix, weights: list[np.ndarray], rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """[weights + 1, pair] the sum of each of the weights over the words that both hold, and their number"""
    summed = np.column_stack([*weights, np.ones(train.shape[1])])
    parts = [np.zeros((len(weights) + 1, 0))]
    for begin in range(0, len(rows), COMPARED):
        pairs = slice(begin, begin + COMPARED)
        parts.append((asked[rows[pairs]].multiply(train[columns[pairs]]).tocsr() @ summed).T)
    return np.concatenate(parts, 1)


def _word_matrix(texts: Sequence[str]) -> sparse.csr_matrix:
    """[text word], 1 where the text holds the folded word"""
    table = make_table(texts, "whitespace", fold)
    shape = (len(texts), len(table.vocabulary))
    matrix = sparse.csr_matrix((np.ones(len(table.ids)), table.ids.astype(np.int64), table.offsets), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def fold(text: str) -> list[str]:
    """Words, equal for those that look alike, for numbers and their names, and for forms of one stem."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", readable(text).lower().translate(LOOK_ALIKES))
    words = re.findall(r"[^\W_]+(?:[@$][^\W_]+)*", text)
    numbers = (number_names(int(word)) if word.isdecimal() and len(word) < 10 else [word] for word in words)
    return [stem(word) for names in numbers for word in names]


def readable(text: str) -> str:
    """Without accents and invisible characters, in the compatibility form of Unicode."""
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if unicodedata.category(sign) not in UNSEEN)


UNSEEN = ("Mn", "Cf", "Cc")


def number_names(number: int) -> list[str]:
    """21 -> twenty, one"""
    for size, name in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            return [*number_names(number // size), name, *(number_names(number % size) if number % size else [])]
    if number < len(ONES):
        return [ONES[number]]
    return [TENS[number // 10 - 2], *(number_names(number % 10) if number % 10 else [])]


def stem(word: str) -> str:
    """The first letters of a word, without its endings: running, runs -> run. A name such as x12 stays whole."""
    if re.fullmatch(r"[^\W\d]+[\d@$]+[^\W\d]+", word):
        word = word.translate(LEET)  # w0rd, p@ss
    if not word.isalpha():
        return word
    word = ENDING.sub("", ENDING.sub("", word))
    return (word[:-1] if len(word) > 2 and word[-1] == word[-2] else word)[:STEM]
