"""Documents are made fit for the tokenizer that will read them."""

from __future__ import annotations

from pathlib import Path

from fairtrial.data.corpus import Corpus, Document, fitting_tokens, shape_documents
from fairtrial.data.readers import read
from fairtrial.recipe import Data, Tokens

NOVEL = "It was a dark night. Mr. Smith had\nlost his hat.\n\nNobody spoke! Then the\nclock struck."


def novel(tmp_path: Path) -> Corpus:
    path = tmp_path / "novel.txt"
    path.write_text(NOVEL)
    return read(Data(source=str(path)), "lm")


def texts(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.train]


def test_words_get_the_sentences_of_a_novel(tmp_path: Path) -> None:
    shaped = shape_documents(novel(tmp_path), "word")
    expected = ["It was a dark night.", "Mr. Smith had lost his hat.", "Nobody spoke!", "Then the clock struck."]
    assert texts(shaped) == expected


def test_letters_get_the_novel_as_it_stands_with_its_borders(tmp_path: Path) -> None:
    for kind in ("character", "bpe"):
        shaped = shape_documents(novel(tmp_path), kind)
        assert "\n".join(texts(shaped)) == NOVEL + "\n"


def test_sentences_of_a_table_stay_as_they_are() -> None:
    corpus = Corpus(train=(Document("One. Two.", label="a"), Document("Three.", label="b")))
    assert shape_documents(corpus, "word") == corpus


def test_words_of_a_tokens_file_are_split_at_spaces(tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    path.write_text("He won 't .\nYes ( really ) .\n")
    corpus = read(Data(source=str(path)), "lm")
    assert corpus.spaced
    assert fitting_tokens(corpus, Tokens()).kind == "whitespace"
    assert fitting_tokens(corpus, Tokens(kind="character")).kind == "character"
    assert fitting_tokens(novel(tmp_path), Tokens()).kind == "word"
