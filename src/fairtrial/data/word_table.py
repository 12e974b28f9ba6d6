"""Texts as numbers of words over their whole vocabulary. Words are split by the rules of a tokenizer.json, but each
distinct piece between two blanks only once: looking it up again is twenty times as fast as the rules. No rule looks
past a blank but those for the beginning and the end of a text, which are therefore pieces of another kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.data.batches import Rows
from fairtrial.data.words import CONTRACTIONS
from fairtrial.progress import follow

Split = Callable[[str], list[str]]  # the rules: a text -> its words

CLOSING = re.compile(r"[\s\])}>\"'»”’]*")  # what may follow the period that ends a text
# What most pieces are, for which no rule is needed: a word without signs, or one before a single mark.
PLAIN = re.compile(r"([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)([.,;:?!]?)")
APART = {pair.replace(" ", "") for pair in (*CONTRACTIONS, "wan na")}  # but these are split
BLOCK = 1 << 20  # pieces that are held as Python's integers before they become an array


@dataclass(frozen=True)
class WordTable:
    """The words of text t are vocabulary[ids[offsets[t] : offsets[t + 1]]]."""

    vocabulary: Sequence[str]
    ids: np.ndarray  # [word]
    offsets: np.ndarray  # [text + 1]

    @property
    def rows(self) -> Rows:
        return Rows(self.ids, self.offsets[:-1], np.diff(self.offsets))

    def counts(self, texts: np.ndarray | None = None) -> dict[str, int]:
        """How often each word occurs in these texts; None: in all."""
        ids = self.ids if texts is None else self.rows.take(texts).joined()
        found = np.bincount(ids, minlength=len(self.vocabulary)).tolist()
        return {word: count for word, count in zip(self.vocabulary, found, strict=True) if count}


def make_table(texts: Iterable[str], kind: str, split: Split, *, lowercase: bool = False) -> WordTable:
    """`split`: the rules of a tokenizer of this kind (word, whitespace or character)."""
    if kind == "character":
        return _characters(list(texts), split)
    pieces = (Pieces if kind == "word" else BlankPieces)(split, lowercase)
    blocks: list[np.ndarray] = []
    block: list[int] = []
    sizes: list[int] = []  # pieces of each text
    texts = list(texts)
    for text in follow(texts, len(texts)):
        before = len(block)
        pieces.number(text, block)
        sizes.append(len(block) - before)
        if len(block) > BLOCK:
            blocks.append(np.array(block, np.uint32))
            block = []
    blocks.append(np.array(block, np.uint32))
    return _spell_out(pieces.words, blocks, np.array(sizes, np.int64))


class Numbers(dict[str, int]):
    """The number of each piece; a new one is split into words."""

    def __init__(self, words: list[list[str]], split: Split) -> None:
        self.words, self.split = words, split

    def __missing__(self, piece: str) -> int:
        number = self[piece] = len(self.words)
        self.words.append(self.split(piece))
        return number


class BlankPieces:
    """Of texts that are split at white space only."""

    def __init__(self, split: Split, lowercase: bool) -> None:
        self.words: list[list[str]] = []  # of each piece, by its number
        self.inner = Numbers(self.words, split)

    def number(self, text: str, into: list[int]) -> None:
        into.extend(map(self.inner.__getitem__, text.split(" ")))


class Pieces(BlankPieces):
    """Of texts that are split by the rules for words. The last piece includes signs that close, as a period before them
    may end the text, too."""

    def __init__(self, split: Split, lowercase: bool) -> None:
        def plain(piece: str, marks: str) -> list[str]:
            """The words of a piece that needs no rule, else none. `marks` are words of their own."""
            found = PLAIN.fullmatch(piece)
            if not found or not APART.isdisjoint(found[1].lower().split("-")):
                return []
            word = found[1].lower() if lowercase else found[1]
            return [word] if not found[2] else [word, found[2]] if found[2] in marks else [word + found[2]]

        super().__init__(split, lowercase)
        self.inner.split = lambda piece: plain(piece, ",;:?!") or split(f" {piece} x")[:-1]
        self.first = Numbers(self.words, lambda piece: split(f"{piece} x")[:-1])
        self.last = Numbers(self.words, lambda piece: plain(piece, ".,;:?!") or split(f" {piece}"))
        self.whole = Numbers(self.words, split)

    def number(self, text: str, into: list[int]) -> None:
        pieces = text.split(" ")
        begin, end = 0, len(pieces) - 1
        while end and CLOSING.fullmatch(pieces[end]):
            end -= 1
        if not end:
            into.append(self.whole[text])
            return
        if not text[0].isalnum():
            into.append(self.first[pieces[0]])
            begin = 1
        into.extend(map(self.inner.__getitem__, pieces[begin:end]))
        into.append(self.last[" ".join(pieces[end:])])


def _characters(texts: list[str], split: Split) -> WordTable:
    """Every character is a piece."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    distinct, numbers = np.unique(codes, return_inverse=True)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return _spell_out([split(chr(code)) for code in distinct.tolist()], [numbers], sizes)


def _spell_out(words: list[list[str]], pieces: list[np.ndarray], sizes: np.ndarray) -> WordTable:
    """From the words of every piece, the pieces of all texts, and how many each text has."""
    numbers: dict[str, int] = {}
    flat = np.array([numbers.setdefault(word, len(numbers)) for piece in words for word in piece], np.uint32)
    counts = np.fromiter(map(len, words), np.int64, len(words))
    spelled = Rows(flat, np.cumsum(counts) - counts, counts)
    ids = np.concatenate([spelled.take(block).joined() for block in pieces])
    ends = np.append(0, np.concatenate([counts[block] for block in pieces]).cumsum())  # of each piece
    return WordTable(list(numbers), ids, ends[np.append(0, np.cumsum(sizes))])
