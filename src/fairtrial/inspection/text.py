"""Text from a user as a model reads it: token ids, the position of each token in the text, and unknown words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.data.words import sentences
from fairtrial.errors import BadInput

Tokens = list[tuple[int, tuple[int, int]]]  # id, (begin, end) in the text


@dataclass(frozen=True)
class EncodedText:
    text: str
    ids: tuple[int, ...]  # no start or stop mark
    begins: tuple[int, ...]  # where each token begins in the text
    unknown: tuple[str, ...]  # out-of-vocabulary words, as written

    def pieces(self) -> list[str]:
        """The text cut between its tokens; white space goes with the token before it."""
        ends = (*self.begins[1:], len(self.text))
        return [self.text[begin:end] for begin, end in zip((0, *self.begins[1:]), ends, strict=True)]


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[EncodedText]:
    found = []
    for number, text in enumerate(texts, 1):
        tokens = encode_text(tokenizer, text)
        if not tokens:
            what = "is empty" if not text.strip() else "has no words in it"
            raise BadInput(f"text {number} {what}", 'give a sentence: "My fellow Americans"')
        unknown = tuple(text[begin:end] for id_, (begin, end) in tokens if id_ == tokenizer.unknown)
        ids, begins = tuple(id_ for id_, _ in tokens), tuple(begin for _, (begin, _) in tokens)
        found.append(EncodedText(text, ids, begins, unknown))
    return found


def encode_text(tokenizer: Tokenizer, text: str) -> Tokens:
    """Split as the training text was: where documents were sentences, a user's text is split into sentences, too,
    because the word splitter separates a period from its word at the end of a document only."""
    apart = tokenizer.facts.get("kind") == "word" and tokenizer.facts.get("by_sentences", True)
    split = _by_sentences(tokenizer, text) if apart else None
    return _tokens(tokenizer, text) if split is None else split


def _tokens(tokenizer: Tokenizer, text: str, at: int = 0) -> Tokens:
    coded = tokenizer.inner.encode(text, add_special_tokens=False)
    return [(id_, (at + begin, at + end)) for id_, (begin, end) in zip(coded.ids, coded.offsets, strict=True)]


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


def unknown_notice(tokenizer: Tokenizer, texts: Sequence[EncodedText]) -> str:
    """A notice that names the out-of-vocabulary words; empty if there are none."""
    distinct = list(dict.fromkeys(word for text in texts for word in text.unknown))
    if not distinct:
        return ""
    named = ", ".join(repr(word) for word in distinct[:8]) + (", ..." if len(distinct) > 8 else "")
    untrained = "" if tokenizer.facts.get("unknown_trained", True) else ", which was never trained"
    words = "words" if len(distinct) > 1 else "word"
    return f"unknown {words}: {named} (read as the unknown token{untrained})"
