"""What a tokenizer hides, in nats, so that a language model answers for every byte of a text whatever its tokens are.

A tokenizer of words replaces rare words by <unk> and drops the spaces between words. Here these are priced by a small
model that is fitted on the training split: an unknown word costs its spelling, letter by letter with an end mark, and
every space costs the surprise that it is not (or is) where the words' joining rule expects it. Probabilities of all
texts with the same tokens sum to 1, so that bits per byte of all kinds of tokens can be compared."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from fairtrial.data.tokenizer import Tokenizer, word_table
from fairtrial.data.words import gap, spelled
from fairtrial.progress import status

END = ""  # of a spelling
ORDER = 5  # letters that a letter's probability depends on, itself included
CODE_POINTS = 0x110000
FITTED_CHARACTERS = 1_000_000  # of the training split; more changes little
Word = tuple[str, str, str, str, bool]  # expected and real space before it, usual and real form, whether it is unknown
OTHER = "other"  # space that is neither none nor one blank


class Speller:
    """Letters by interpolated Witten-Bell counts (Bell, Witten and Cleary 1989) over the distinct words of a text."""

    def __init__(self, words: Iterable[str], alphabet: int = CODE_POINTS) -> None:
        self.alphabet = alphabet
        self.priced: dict[str, float] = {}
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word in sorted(set(words)):
            for context, letter in _letters(word):
                for start in range(len(context) + 1):
                    self.counts[context[start:]][letter] += 1

    def nll(self, word: str) -> float:
        if word not in self.priced:
            self.priced[word] = -sum(math.log(self.probability(context, letter)) for context, letter in _letters(word))
        return self.priced[word]

    def probability(self, context: str, letter: str) -> float:
        p = 1 / (self.alphabet + 1)  # any letter, or the end
        for start in range(len(context), -1, -1):
            seen = self.counts.get(context[start:])
            if seen:
                total, kinds = seen.total(), len(seen)
                p = (seen[letter] + kinds * p) / (total + kinds)
        return p


def _letters(word: str) -> Iterator[tuple[str, str]]:
    """Each letter of a word and the end, with the letters before it; a word begins after a line break."""
    marked = "\n" + word
    for end in range(1, len(marked) + 1):
        yield marked[max(0, end - ORDER + 1) : end], marked[end] if end < len(marked) else END


class HiddenText:
    """Prices what `tokenizer` does not say about a text."""

    def __init__(self, tokenizer: Tokenizer, training: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.kind = tokenizer.facts.get("kind")
        self.joins = {expected: Counter({"": 0.5, " ": 0.5, OTHER: 0.5}) for expected in ("", " ")}
        self.forms = {True: 0.5, False: 0.5}  # how often a known word has its usual form
        self.known = frozenset(tokenizer.inner.get_vocab())
        words: set[str] = set()
        if tokenizer.unknown is not None:
            texts = training[
                : 1 + int(np.searchsorted(np.cumsum(list(map(len, training))), FITTED_CHARACTERS, "right"))
            ]
            if self.kind == "character":
                words.update(*texts)
            else:
                for expected, found, usual, form, _ in chain.from_iterable(self._read(texts)):
                    self.joins[expected][_kind(found)] += 1
                    self.forms[usual == form] += 1
                    words.add(form)
        self.speller = Speller(words)
        self.join_nats = {
            expected: {kind: -math.log(count / join.total()) for kind, count in join.items()}
            for expected, join in self.joins.items()
        }
        self.form_nats = {usual: -math.log(count / sum(self.forms.values())) for usual, count in self.forms.items()}

    def nll(self, texts: Sequence[str]) -> np.ndarray:
        """Nats [text]; none for byte pairs, which hide nothing."""
        if self.tokenizer.unknown is None:
            return np.zeros(len(texts))
        found = map(self._characters, texts) if self.kind == "character" else map(self._words, self._read(texts))
        with status("pricing unknown words by their spelling"):
            nats = np.fromiter(found, np.float64, len(texts))
        for number, text in enumerate(texts):
            if not text.strip() and not self.tokenizer.inner.encode(text, add_special_tokens=False).ids:
                nats[number] = self.speller.nll(text)  # it counts as one unknown word
        return nats

    def _characters(self, text: str) -> float:
        encoded = self.tokenizer.inner.encode(text, add_special_tokens=False)
        spans = zip(encoded.ids, encoded.offsets, strict=True)
        return sum(
            self.speller.nll(text[start:end]) for number, (start, end) in spans if number == self.tokenizer.unknown
        )

    def _words(self, words: Iterable[Word]) -> float:
        nats = 0.0
        for expected, found, usual, form, unknown in words:
            nats += self.join_nats[expected][_kind(found)]
            nats += self.speller.nll(found) if _kind(found) == OTHER else 0.0
            if unknown:
                nats += self.speller.nll(form)
            else:
                nats += self.form_nats[usual == form]
                nats += 0.0 if usual == form else self.speller.nll(form)
        return nats

    def _read(self, texts: Sequence[str]) -> Iterator[list[Word]]:
        """The words of each text, and its end."""
        texts = [text.lower() for text in texts] if self.tokenizer.facts.get("lowercase") else texts
        tokens = self.tokenizer.table_of
        if tokens is None:
            yield from map(self._read_by_offsets, texts)
            return
        table = word_table(tokens, texts)
        for text, row in zip(texts, table.rows, strict=True):
            yield self._read_in_order(text, [table.vocabulary[word] for word in row.tolist()])

    def _read_in_order(self, text: str, words: list[str]) -> list[Word]:
        """Each word begins where the last one and the space after it end, in all but odd texts."""
        before, end, rows = "", 0, list[Word]()
        for word in words:
            usual = spelled(word) if self.kind == "word" else word
            start = end
            while text[start : start + 1].isspace():
                start += 1
            if not text.startswith(usual, start):
                return self._read_by_offsets(text)
            expected = (gap(before, word) if self.kind == "word" else " ") if before else ""
            rows.append((expected, text[end:start], usual, usual, word not in self.known))
            before, end = word, start + len(usual)
        rows.append(("", text[end:], "", "", False))
        return rows

    def _read_by_offsets(self, text: str) -> list[Word]:
        encoded = self.tokenizer.inner.encode(text, add_special_tokens=False)
        before, end, rows = "", 0, list[Word]()
        for number, token, (start, stop) in zip(encoded.ids, encoded.tokens, encoded.offsets, strict=True):
            unknown = number == self.tokenizer.unknown
            word = text[start:stop] if unknown else token
            usual = spelled(word) if self.kind == "word" else word
            near = end + len(text[end:]) - len(text[end:].lstrip())
            if text.startswith(usual, near):  # the library's offsets are off by one around some signs
                start, stop = near, near + len(usual)
            expected = (gap(before, word) if self.kind == "word" else " ") if before else ""
            rows.append((expected, text[end:start], usual, text[start:stop], unknown))
            before, end = word, stop
        rows.append(("", text[end:], "", "", False))
        return rows


def _kind(space: str) -> str:
    return space if space in ("", " ") else OTHER
