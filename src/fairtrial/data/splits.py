"""Dealing out a corpus: what the data brings is used as it is, the rest is carved from the training documents.

Copies of one text, and documents of one group, never straddle two splits: a test on them would test memory. A running
text is cut at its end instead; what it repeats there is told by the audit of the data.

Documents made fit for a tokenizer: words want sentences, letters want to see where a document ends.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairtrial import recipe
from fairtrial.data.corpus import Corpus, Document, Splits
from fairtrial.data.words import sentences
from fairtrial.errors import BadInput
from fairtrial.recipe import Tokens
from fairtrial.rng import generator_for

Documents = tuple[Document, ...]


def split(corpus: Corpus, data: recipe.Data, seed: int) -> Splits:
    """Test sets that are carved depend on `data.split_seed` only, so that all trials share their items."""
    train, tests, validation = corpus.train, corpus.tests, corpus.validation
    stretches = corpus.ordered and not any(document.group for document in train)
    if not tests:
        share = _checked("data.test", data.test)
        if share == 0:
            what = "the data brings no test set, and data.test = 0 takes none from the training documents"
            raise BadInput(what, "set data.test to a share such as 0.2", path=data.source)
        if stretches:
            train, test = _carve_end(train, share, data.source)
        else:
            train, test = carve(train, share, generator_for(data.split_seed, "split", "test"), "data.test", data.source)
        tests = {"test": test}
    if not validation and _checked("data.validation", data.validation) > 0:
        chance = generator_for(seed, "split", "validation")
        if stretches:
            train, validation = _carve_stretch(train, data.validation, chance, data.source)
        else:
            train, validation = carve(train, data.validation, chance, "data.validation", data.source)
    train = _thinned(train, data, seed)
    return Splits(train=train, validation=validation, tests=tests, labels=corpus.labels, running=corpus.running)


def _thinned(documents: Documents, data: recipe.Data, seed: int) -> Documents:
    """A share of the training documents, of every class, as if no more had been labelled."""
    if not 0 < data.train_share <= 1:
        raise BadInput(f"data.train_share = {data.train_share} is not a share above 0 and up to 1")
    if data.train_share == 1:
        return documents
    taken = carve(documents, data.train_share, generator_for(seed, "split", "train"), "data.train_share", data.source)[
        1
    ]
    lost = {document.label for document in documents} - {document.label for document in taken}
    # of a class that is too small for a share, all is kept
    return tuple(each for each in documents if each in taken or each.label in lost) if lost else taken


def normalised(text: str) -> str:
    """What makes two texts copies of one another: NFKC, lower case, letters and digits only."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).lower())


def carve(
    documents: Documents, share: float, chance: np.random.Generator, what: str, source: str
) -> tuple[Documents, Documents]:
    """The rest and the share, stratified by label, whole clusters only."""
    sizes = Counter(document.label for document in documents)
    # a class of one document stays in training, any larger one is represented
    wanted = {label: max(1, round(share * size)) if size > 1 else 0 for label, size in sizes.items()}
    taken: Counter[str] = Counter()
    chosen: set[int] = set()
    clusters = cluster(documents)
    for at in chance.permutation(len(clusters)):
        if all(taken[label] >= count for label, count in wanted.items()):
            break
        counts = Counter(documents[member].label for member in clusters[at])
        empties = any(taken[label] + count >= sizes[label] for label, count in counts.items())
        # a cluster that overshoots is taken where that still comes nearer to the share
        nearer = sum(
            abs(wanted[label] - taken[label]) - abs(wanted[label] - taken[label] - count)
            for label, count in counts.items()
        )
        if nearer > 0 and not empties:
            taken.update(counts)
            chosen.update(clusters[at])
    if not chosen:
        raise BadInput(
            f"no {share:.0%} can be taken from {len(documents)} training documents in {len(clusters)} groups of copies "
            f"and neighbours without emptying a class",
            f"bring more documents, a split of your own, or another {what}",
            path=source,
        )
    rest = tuple(document for at, document in enumerate(documents) if at not in chosen)
    return rest, tuple(documents[at] for at in sorted(chosen))


def cluster(documents: Sequence[Document]) -> list[list[int]]:
    """Documents that share a group or a normalised text, directly or through others."""
    parent = list(range(len(documents)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[tuple[str, str], int] = {}
    for at, document in enumerate(documents):
        # a text without letters and digits is compared as it is: '?' is no copy of '!'
        keys = [("text", normalised(document.text) or document.text)]
        keys += [("group", document.group)] if document.group else []
        for key in keys:
            one, other = root(first.setdefault(key, at)), root(at)
            parent[max(one, other)] = min(one, other)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for at in range(len(documents)):
        members[root(at)].append(at)
    return list(members.values())


def _carve_end(documents: Documents, share: float, source: str) -> tuple[Documents, Documents]:
    """The end of a text, and what comes before it but for a gap of one document."""
    start = len(documents) - max(1, round(share * len(documents)))
    if start < 2:
        raise _too_few(documents, share, "data.test", source)
    return documents[: start - 1], documents[start:]


def _carve_stretch(
    documents: Documents, share: float, chance: np.random.Generator, source: str
) -> tuple[Documents, Documents]:
    """One stretch of a text, and the rest but for a gap of one document on each side."""
    length = max(1, round(share * len(documents)))
    if len(documents) < length + 3:
        raise _too_few(documents, share, "data.validation", source)
    start = int(chance.integers(0, len(documents) - length + 1))
    rest = documents[: max(0, start - 1)] + documents[start + length + 1 :]
    return rest, documents[start : start + length]


def _too_few(documents: Documents, share: float, what: str, source: str) -> BadInput:
    return BadInput(
        f"{len(documents)} paragraphs or lines are too few to take {share:.0%} of them and leave a gap",
        f"bring more text, separate paragraphs by blank lines, or choose a smaller {what}",
        path=source,
    )


def _checked(name: str, value: float) -> float:
    recipe.share(name, value)
    if value == 1:
        raise BadInput(f"{name} = 1 leaves nothing to train on")
    return value


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
