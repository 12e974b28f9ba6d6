"""Documents made fit for a tokenizer: words want sentences, letters want to see where a document ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fairtrial.recipe import Tokens
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.sentences import sentences

Documents = tuple[Document, ...]


def fitting_tokens(corpus: Corpus, tokens: Tokens) -> Tokens:
    """Text whose words are split by spaces already is split there, and nowhere else."""
    return replace(tokens, kind="whitespace") if corpus.spaced and tokens.kind == "word" else tokens


def kind_in_use(tokens: Tokens, facts: Mapping[str, Any]) -> str:
    """The kind of tokens that a recipe comes to; a pretrained encoder brings its own, as its tokenizer's facts tell."""
    return str(facts.get("kind", tokens.kind)) if tokens.kind == "encoder" else tokens.kind


def shape_documents(corpus: Corpus, kind: str) -> Corpus:
    """The word splitter parts a period from its word at the end of a document only, so paragraphs become sentences.
    Letters and byte pairs of a running text keep a line end between documents, lest the last word grow into the next.
    """
    if kind == "word" and corpus.paragraphs:
        return _each(corpus, into_sentences)
    if kind in ("character", "bpe") and corpus.running:
        return _each(corpus, lambda document: (replace(document, text=document.text + "\n"),))
    return corpus


def into_sentences(document: Document) -> Documents:
    return tuple(replace(document, text=text) for text in sentences(" ".join(document.text.split())))


def _each(corpus: Corpus, change: Callable[[Document], Documents]) -> Corpus:
    def all_of(documents: Documents) -> Documents:
        return tuple(new for document in documents for new in change(document))

    tests = {name: all_of(documents) for name, documents in corpus.tests.items()}
    return replace(corpus, train=all_of(corpus.train), validation=all_of(corpus.validation), tests=tests)
