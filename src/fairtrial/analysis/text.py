"""Texts that a user gives, as a model reads them: tokens, where each stands in the text, and words it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import sentences
from fairtrial.errors import BadInput

Tokens = list[tuple[int, tuple[int, int]]]  # each with where it begins and ends in the text


@dataclass(frozen=True)
class Prose:
    text: str
    ids: tuple[int, ...]  # no marks
    begins: tuple[int, ...]  # where each token begins in the text
    unknown: tuple[str, ...]  # words that the model does not know, as they were written

    def pieces(self) -> list[str]:
        """The text cut up between its tokens; white space goes with the token before it."""
        ends = (*self.begins[1:], len(self.text))
        return [self.text[begin:end] for begin, end in zip((0, *self.begins[1:]), ends, strict=True)]


def read_prose(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Prose]:
    return [_read(tokenizer, text, f"text {number}") for number, text in enumerate(texts, 1)]


def _read(tokenizer: Tokenizer, text: str, name: str) -> Prose:
    found = read_tokens(tokenizer, text)
    if not found:
        what = "the text is empty" if not text.strip() else "the text has no words in it"
        raise BadInput(f"{what} ({name})", 'give a sentence: "My fellow Americans"')
    lost = tuple(text[begin:end] for each, (begin, end) in found if each == tokenizer.unknown)
    return Prose(text, tuple(each for each, _ in found), tuple(begin for _, (begin, _) in found), lost)


def read_tokens(tokenizer: Tokenizer, text: str) -> Tokens:
    """The tokens of a text, cut as the training text was. The word splitter parts a period from its word at the end of
    a document only: where documents were sentences, a user's text is read sentence by sentence, too."""
    whole = _tokens(tokenizer, text)
    if tokenizer.facts.get("kind") != "word":
        return whole
    known = tokenizer.facts.get("by_sentences")  # older records do not say it
    if known is False or (known is None and not _unknown(tokenizer, whole)):
        return whole
    apart = _by_sentences(tokenizer, text)
    if apart is None or (known is None and _unknown(tokenizer, apart) >= _unknown(tokenizer, whole)):
        return whole
    return apart


def _tokens(tokenizer: Tokenizer, text: str, at: int = 0) -> Tokens:
    coded = tokenizer.inner.encode(text, add_special_tokens=False)
    return [(each, (at + begin, at + end)) for each, (begin, end) in zip(coded.ids, coded.offsets, strict=True)]


def _unknown(tokenizer: Tokenizer, tokens: Tokens) -> int:
    return sum(each == tokenizer.unknown for each, _ in tokens)


def _by_sentences(tokenizer: Tokenizer, text: str) -> Tokens | None:
    found: Tokens = []
    at = 0
    for sentence in sentences(text):
        at = text.find(sentence, at)
        if at < 0:
            return None
        found += _tokens(tokenizer, sentence, at)
        at += len(sentence)
    return found


def notice_of(tokenizer: Tokenizer, unknown: Sequence[str]) -> str:
    """What to tell a user about words that the model does not know; empty if it knows them all."""
    if not unknown:
        return ""
    distinct = list(dict.fromkeys(unknown))
    named = ", ".join(repr(word) for word in distinct[:8]) + (", ..." if len(distinct) > 8 else "")
    several = "words that the model does not know" if len(distinct) > 1 else "a word that the model does not know"
    untrained = "" if tokenizer.facts.get("unknown_trained", True) else ", which was never trained"
    return f"{several}: {named} (read as the unknown token{untrained})"
