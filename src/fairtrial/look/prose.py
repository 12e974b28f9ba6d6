"""Texts that a user gives, as a model reads them: tokens, where each stands in the text, and words it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.errors import BadInput
from fairtrial.text.sentences import sentences
from fairtrial.text.tokenizer import Tokenizer


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
    found = _whole(tokenizer, text)
    if not found.ids:
        what = "the text is empty" if not text.strip() else "the text has no words in it"
        raise BadInput(f"{what} ({name})", 'give a sentence: "My fellow Americans"')
    if found.unknown and tokenizer.facts.get("kind") == "word":
        # the word splitter parts a period from its word at the end only; where paragraphs were read sentence by
        # sentence, "peace." within a text would be unknown
        apart = _by_sentences(tokenizer, text)
        if apart is not None and len(apart.unknown) < len(found.unknown):
            return apart
    return found


def _whole(tokenizer: Tokenizer, text: str) -> Prose:
    coded = tokenizer.inner.encode(text, add_special_tokens=False)
    lost = [text[begin:end] for each, (begin, end) in zip(coded.ids, coded.offsets, strict=True)
            if each == tokenizer.unknown]  # fmt: skip
    return Prose(text, tuple(coded.ids), tuple(begin for begin, _ in coded.offsets), tuple(lost))


def _by_sentences(tokenizer: Tokenizer, text: str) -> Prose | None:
    ids: list[int] = []
    begins: list[int] = []
    unknown: list[str] = []
    at = 0
    for sentence in sentences(text):
        at = text.find(sentence, at)
        if at < 0:
            return None
        found = _whole(tokenizer, sentence)
        ids += found.ids
        begins += [at + begin for begin in found.begins]
        unknown += found.unknown
        at += len(sentence)
    return Prose(text, tuple(ids), tuple(begins), tuple(unknown))


def notice_of(tokenizer: Tokenizer, unknown: Sequence[str]) -> str:
    """What to tell a user about words that the model does not know; empty if it knows them all."""
    if not unknown:
        return ""
    distinct = list(dict.fromkeys(unknown))
    named = ", ".join(repr(word) for word in distinct[:8]) + (", ..." if len(distinct) > 8 else "")
    several = "words that the model does not know" if len(distinct) > 1 else "a word that the model does not know"
    untrained = "" if tokenizer.facts.get("unknown_trained", True) else ", which was never trained"
    return f"{several}: {named} (read as the unknown token{untrained})"
