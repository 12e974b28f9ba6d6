"""Word order: is this sentence as it was written, or are its words shuffled? From one's own text or the embedded one.

A sentence and its shuffled copy have the same words, so nothing but order tells them apart. Both stay in one split, and
so do the sentences of a document; of a text of few documents, such as a novel, those of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from fairtrial import recipe
from fairtrial.data.corpus import TEST_SEED, Corpus, Document
from fairtrial.data.words import sentences, word_splitter
from fairtrial.errors import BadInput
from fairtrial.rng import generator_for

SHORTEST, LONGEST = 5, 30  # words of a sentence
FEW_DOCUMENTS, BLOCK = 5, 10  # fewer documents are cut into blocks of so many sentences
WRITTEN, SHUFFLED = "as written", "shuffled"


def read_order(data: recipe.Data) -> Corpus:
    from fairtrial.data.readers import read  # it knows this probe by name

    corpus = read(replace(data, format="auto"), "lm")
    train = tuple(pairs(corpus.train, "train"))
    if len(train) < 40:
        what = f"{len(train) // 2} sentences of {SHORTEST} to {LONGEST} words are too few for the task 'order'"
        raise BadInput(what, "give a longer text", path=data.source)
    tested = [document for documents in corpus.tests.values() for document in documents]
    tests = {"test": tuple(pairs(tested, "test"))} if tested else {}
    validation = tuple(pairs(corpus.validation, "validation"))
    return replace(corpus, train=train, validation=validation, tests=tests, running=False, ordered=False, spaced=True)


def pairs(documents: Iterable[Document], split: str) -> Iterator[Document]:
    """Every sentence as it is, and shuffled."""
    rng, (normalizer, splitter) = generator_for(TEST_SEED, "probe", "order", split), word_splitter()
    documents = list(documents)
    blocks = len({document.group or number for number, document in enumerate(documents)}) < FEW_DOCUMENTS
    place = count()
    for number, document in enumerate(documents):
        for sentence in sentences(" ".join(document.text.split())):
            words = [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(sentence))]
            if not SHORTEST <= len(words) <= LONGEST:
                continue
            shuffled = [words[at] for at in rng.permutation(len(words))]
            if shuffled == words:
                continue
            group = (document.group or f"{split} {number}") + f" block {next(place) // BLOCK}" * blocks
            yield replace(document, text=" ".join(words), label=WRITTEN, group=group)
            yield replace(document, text=" ".join(shuffled), label=SHUFFLED, group=group)
