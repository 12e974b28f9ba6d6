"""Texts as numbers of words over their whole vocabulary. Words are split by the rules of a tokenizer.json, but each
distinct piece between two blanks only once: looking it up again is twenty times as fast as the rules. No rule looks
past a blank but those for the beginning and the end of a text, which are therefore pieces of another kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.data.words import CONTRACTIONS

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

    def counts(self, texts: np.ndarray | None = None) -> dict[str, int]:
        """How often each word occurs in these texts; None: in all."""
        found = np.bincount(self.ids if texts is None else self.take(texts)[0], minlength=len(self.vocabulary))
        return {word: count for word, count in zip(self.vocabulary, found.tolist(), strict=True) if count}

    def take(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of these texts one after another, and their offsets."""
        return take_rows(self.ids, self.offsets, texts)


def take_rows(flat: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of the rows that lie one after another in `flat`, with offsets of their own."""
    begins, sizes = offsets[rows], offsets[rows + 1] - offsets[rows]
    new = np.append(0, np.cumsum(sizes))
    return flat[np.repeat(begins - new[:-1], sizes) + np.arange(new[-1])], new


def make_table(texts: Iterable[str], kind: str, split: Split, *, lowercase: bool = False) -> WordTable:
    """`split`: the rules of a tokenizer of this kind (word, whitespace or character)."""
    if kind == "character":
        return _characters(list(texts), split)
    pieces = (Pieces if kind == "word" else BlankPieces)(split, lowercase)
    blocks: list[np.ndarray] = []
    block: list[int] = []
    sizes: list[int] = []  # pieces of each text
    for text in texts:
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
    offsets = np.append(0, np.cumsum(np.fromiter(map(len, words), np.int64, len(words))))
    found = [take_rows(flat, offsets, block) for block in pieces]
    piece_ends = np.concatenate([np.diff(each[1]) for each in found]).cumsum()
    ends = np.append(0, piece_ends)[np.append(0, np.cumsum(sizes))]
    return WordTable(list(numbers), np.concatenate([ids for ids, _ in found]), ends)
