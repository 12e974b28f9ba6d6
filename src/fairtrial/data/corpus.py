"""A corpus: documents as they were read, and their splits.

Test and validation sets that the data bring are used as they are, the rest is carved from training. Duplicates, near
ones too, and documents of one group never straddle two splits: a test on them would test memory. A running text is cut
at its end instead; the audit of the data finds what it repeats there.

An index holds what is computed once from all texts of a corpus, whatever the seed: duplicates, and what belongs
together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from fairtrial import recipe
from fairtrial.data.words import sentences, text_key
from fairtrial.errors import BadInput
from fairtrial.progress import status
from fairtrial.recipe import Tokens
from fairtrial.rng import generator_for

if TYPE_CHECKING:
    from fairtrial.data.duplicates import Duplicates


@dataclass(frozen=True, slots=True)
class Document:
    """One item: a sentence, a review, a paragraph."""

    text: str
    label: str = ""  # the class; empty for language modelling
    group: str = ""  # documents of one group never straddle two splits; empty: a group of its own
    location: str = ""  # file and line, for messages


Documents = tuple[Document, ...]
TEST_SEED = 0  # of test sets that are carved out: all trials share their items


@dataclass(frozen=True)
class Corpus:
    """What a reader gives."""

    train: Documents
    validation: Documents = ()  # where the data bring one
    tests: dict[str, Documents] = field(default_factory=dict)  # by name; empty: to be carved from train
    labels: tuple[str, ...] = ()  # sorted; a label's number is its index here
    class_names: dict[str, str] = field(default_factory=dict)  # label -> what people call it, where the data say
    running: bool = False  # documents form one running text; else each is separate, with start and stop marks
    paragraphs: bool = False  # a document may hold several sentences
    spaced: bool = False  # words and punctuation are separated by spaces already
    ordered: bool = False  # neighbours belong together: carve contiguous sections, never single documents
    entries: tuple[str, ...] = ()  # the whole vocabulary, where the data are token ids
    named: bool = False  # entries are the spelling of tokens, in the byte alphabet of GPT-2; else numbers
    files: dict[str, str] = field(default_factory=dict)  # sha256 of every file read, by its name relative to the source
    course_lines: tuple[str, ...] = ()  # the course's folder: raw lines of both training files, labels included
    columns: dict[str, dict[str, str]] = field(default_factory=dict)  # those not used: name -> location -> value
    cite: str = ""  # the source to cite
    notes: tuple[str, ...] = ()  # for the record and the user


def corpus_of(documents: Mapping[str, Documents], **more: Any) -> Corpus:
    """A corpus from the documents of each split; those of other names are further test sets."""
    names = sorted(set(documents) - {"train", "validation"}, key=lambda name: (name != "test", name))
    tests = {name: documents[name] for name in names}
    return Corpus(documents["train"], documents.get("validation", ()), tests, **more)


@dataclass(frozen=True)
class Splits:
    """A corpus, split. `index`: what is known about all its texts."""

    train: Documents
    validation: Documents
    tests: dict[str, Documents]
    labels: tuple[str, ...]
    running: bool
    ordered: bool
    index: TextIndex = field(compare=False, repr=False)
    class_names: dict[str, str] = field(default_factory=dict)


Carved = tuple[Documents, Documents]  # the rest, the share


def split(corpus: Corpus, data: recipe.Data, seed: int) -> Splits:
    """Carved test sets are the same at every seed, so that all trials share their test items."""
    train, tests, validation = corpus.train, corpus.tests, corpus.validation
    contiguous = corpus.ordered and not any(document.group for document in train)
    index = TextIndex(corpus)
    take = _carve_section if contiguous else partial(carve, index)
    if not tests:
        share = _carved_share("data.test", data.test)
        if share == 0:
            what = "the data have no test set, and data.test = 0 splits none off"
            raise BadInput(what, "set data.test to a share such as 0.2", path=data.source)
        rng = generator_for(TEST_SEED, "split", "test")
        train, test = take(train, share, rng, "data.test", data.source)
        tests = {"test": test}
    if not validation and _carved_share("data.validation", data.validation) > 0:
        rng = generator_for(seed, "split", "validation")
        train, validation = take(train, data.validation, rng, "data.validation", data.source)
    train = _subsample(train, index, data, seed)
    whole = (train, validation, tests, corpus.labels, corpus.running, corpus.ordered, index)
    return Splits(*whole, class_names=corpus.class_names)


def _carved_share(name: str, value: float) -> float:
    recipe.share(name, value)
    if value == 1:
        raise BadInput(f"{name} = 1 leaves nothing to train on")
    return value


def _subsample(documents: Documents, index: TextIndex, data: recipe.Data, seed: int) -> Documents:
    """A share of the training documents of every class, as if no more had been labelled."""
    if not 0 < data.train_share <= 1:
        raise BadInput(f"data.train_share must be above 0 and at most 1, got {data.train_share}")
    if data.train_share == 1:
        return documents
    rng = generator_for(seed, "split", "train")
    _, taken = carve(index, documents, data.train_share, rng, "data.train_share", data.source)
    lost = {document.label for document in documents} - {document.label for document in taken}
    # a class that is too small to give a share is kept whole
    chosen = set(map(id, taken))
    return tuple(each for each in documents if id(each) in chosen or each.label in lost) if lost else taken


def text_key_of(document: Document) -> Hashable:
    return text_key(document.text)


def conflicts(
    documents: Sequence[Document], others: Sequence[Document], key_of: Callable[[Document], Hashable] = text_key_of
) -> list[tuple[Document, Document]]:
    """Each document with the first of the others that has its text under another label, for every such label."""
    first: dict[Hashable, Document] = {}
    more: defaultdict[Hashable, dict[str, Document]] = defaultdict(dict)  # under other labels than the first one's
    for other in others:
        key = key_of(other)
        if first.setdefault(key, other).label != other.label:
            more[key].setdefault(other.label, other)
    return [
        (document, other)
        for document, key in ((each, key_of(each)) for each in documents)
        if key in first
        for other in (first[key], *(more[key].values() if key in more else ()))
        if other.label != document.label
    ]


def carve(index: TextIndex, documents: Documents, share: float, rng: Generator, field: str, source: str) -> Carved:
    """The rest and the share, stratified by label, clusters undivided. What is left of whole clusters is whole ones."""
    sizes = Counter(document.label for document in documents)
    # a class of one document stays in training, any larger one is represented
    targets = {label: max(1, round(share * size)) if size > 1 else 0 for label, size in sizes.items()}
    taken: Counter[str] = Counter()
    chosen: set[int] = set()
    members: defaultdict[int, list[int]] = defaultdict(list)
    for number, name in enumerate(index.clusters[index.places(documents)].tolist()):
        members[name].append(number)
    clusters = list(members.values())
    lacking = {label for label, count in targets.items() if count}
    for number in rng.permutation(len(clusters)).tolist():
        if not lacking:
            break
        counts = Counter([documents[member].label for member in clusters[number]])
        if lacking.isdisjoint(counts):
            continue  # it would only overshoot
        empties = any(taken[label] + count >= sizes[label] for label, count in counts.items())
        # a cluster that overshoots is taken where that still comes closer to the share
        missing = {label: targets[label] - taken[label] for label in counts}
        gain = sum(abs(missing[label]) - abs(missing[label] - count) for label, count in counts.items())
        if gain > 0 and not empties:
            taken.update(counts)
            chosen.update(clusters[number])
            lacking -= {label for label in counts if taken[label] >= targets[label]}
    if not chosen:
        of = f"{len(documents)} training documents in {len(clusters)} groups of duplicates and neighbours"
        what = f"{share:.0%} of {of} cannot be taken without emptying a class"
        raise BadInput(what, f"add documents, give your own split, or change {field}", path=source)
    rest = tuple(document for number, document in enumerate(documents) if number not in chosen)
    return rest, tuple(documents[number] for number in sorted(chosen))


def _carve_section(documents: Documents, share: float, rng: Generator, field: str, source: str) -> Carved:
    """The rest and one contiguous section of a text (its end for a test set), with a gap of one document between."""
    length = max(1, round(share * len(documents)))
    at_end = field == "data.test"
    if len(documents) < length + (2 if at_end else 3):
        found = "1 paragraph or line is" if len(documents) == 1 else f"{len(documents)} paragraphs or lines are"
        what = f"{found} too few to take {share:.0%} of them and leave a gap"
        hint = f"add text, separate paragraphs by blank lines, or choose a smaller {field}"
        raise BadInput(what, hint, path=source)
    last = len(documents) - length
    start = last if at_end else int(rng.integers(0, last + 1))
    rest = documents[: max(0, start - 1)] + documents[start + length + 1 :]
    return rest, documents[start : start + length]


def fitting_tokens(corpus: Corpus, tokens: Tokens) -> Tokens:
    """Text whose words are separated by spaces already is split there and nowhere else; ids stay what they are."""
    if corpus.entries:
        return replace(tokens, kind="ids", size=len(corpus.entries), lowercase=False)
    return replace(tokens, kind="whitespace") if corpus.spaced and tokens.kind == "word" else tokens


def kind_in_use(tokens: Tokens, facts: Mapping[str, object]) -> str:
    """The kind of tokens in use; a pretrained encoder brings its own, which its tokenizer's facts name."""
    return str(facts.get("kind", tokens.kind)) if tokens.kind == "encoder" else tokens.kind


def shape_documents(corpus: Corpus, kind: str) -> Corpus:
    """Documents as the kind of tokens needs them. The word splitter separates a period from its word only at the end of
    a document, so paragraphs become sentences. Characters and byte pairs of a running text keep a line end between
    documents, so that the last word does not run into the next."""

    def shaped(documents: Documents) -> Documents:
        return tuple(new for document in documents for new in change(document))

    change: Callable[[Document], Documents]
    if kind == "word" and corpus.paragraphs:
        change = into_sentences
    elif kind in ("character", "bpe") and corpus.running:
        change = lambda document: (replace(document, text=document.text + "\n"),)  # noqa: E731
    else:
        return corpus
    tests = {name: shaped(documents) for name, documents in corpus.tests.items()}
    return replace(corpus, train=shaped(corpus.train), validation=shaped(corpus.validation), tests=tests)


def into_sentences(document: Document) -> Documents:
    return tuple(replace(document, text=text) for text in sentences(" ".join(document.text.split())))


def item_groups(documents: Sequence[Document], ordered: bool, length: int) -> np.ndarray | None:
    """Documents that belong together count as one test item [document]: in running text blocks of neighbours, else the
    groups that the data name. None where every document is independent."""
    if ordered:
        return contiguous_blocks(np.array([len(document.text.split()) for document in documents]), length)
    if not any(document.group for document in documents):
        return None
    names = [document.group or f"alone {index}" for index, document in enumerate(documents)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names])


def contiguous_blocks(tokens: np.ndarray, length: int) -> np.ndarray:
    """Neighbours, which share context and subject, are joined until a block has max(8 x `length`, 256) tokens."""
    least = max(8 * length, 256)
    blocks = np.zeros(len(tokens), np.int64)
    block = filled = 0
    for document, count in enumerate(tokens):
        if filled >= least:
            block, filled = block + 1, 0
        blocks[document] = block
        filled += int(count)
    if block and filled < least:  # a short last block joins the one before it
        blocks[blocks == block] = block - 1
    return blocks


class TextIndex:
    """The documents of a corpus by their places: train, validation, then all test sets."""

    def __init__(self, corpus: Corpus) -> None:
        self.documents: Documents = (*corpus.train, *corpus.validation, *chain(*corpus.tests.values()))
        self.train = len(corpus.train)

    @cached_property
    def _place(self) -> dict[int, int]:
        return {id(document): place for place, document in enumerate(self.documents)}

    def places(self, documents: Sequence[Document]) -> np.ndarray:
        """Where these documents of the corpus are [document]"""
        return np.fromiter(map(self._place.__getitem__, map(id, documents)), np.int64, len(documents))

    @cached_property
    def keys(self) -> np.ndarray:
        """Numbers that are equal for duplicates, case and punctuation aside [document]"""
        numbers = number_all(text_key(document.text) for document in self.documents)
        return np.fromiter(numbers, np.int64, len(self.documents))

    @cached_property
    def _keys(self) -> list[int]:
        return self.keys.tolist()

    def key_of(self, document: Document) -> int:
        """Equal for duplicates, case and punctuation aside."""
        return self._keys[self._place[id(document)]]

    @cached_property
    def clusters(self) -> np.ndarray:
        """The number of each training document's cluster [document]"""
        with status(f"looking for near duplicates among {self.train:,} training documents"):
            return cluster(self.documents[: self.train], self.keys[: self.train])

    def copies(self, known: Sequence[Document], items: Sequence[Document]) -> Duplicates:
        """Duplicates of known documents among items, searched for in the order of the corpus, whatever the split's."""
        from fairtrial.data.duplicates import find_duplicates

        order = np.argsort(places := self.places(known))
        sides = (places[order], self.places(items))
        found = find_duplicates(*([self.documents[place].text for place in side.tolist()] for side in sides))
        known_status, known_partner = np.empty_like(found.known_status), np.empty_like(found.known_partner)
        known_status[order], known_partner[order] = found.known_status, found.known_partner
        partner = np.where(found.partner < 0, -1, order[found.partner])
        return replace(found, partner=partner, known_status=known_status, known_partner=known_partner)


def number_all(names: Iterable[Hashable]) -> Iterator[int]:
    """Each name's number, in the order in which they first occur."""
    numbers: dict[Hashable, int] = {}
    return (numbers.setdefault(name, len(numbers)) for name in names)


def cluster(documents: Sequence[Document], keys: np.ndarray) -> np.ndarray:
    """Documents that share a group, or are duplicates (of one key) or near ones, directly or through others, have one
    number [document]"""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from fairtrial.data.duplicates import near_clusters

    count = len(documents)
    firsts = np.sort(np.unique(keys, return_index=True)[1])  # a document of each key
    grouped = np.flatnonzero([bool(document.group) for document in documents])
    groups = np.fromiter(number_all(documents[number].group for number in grouped.tolist()), np.int64, len(grouped))
    near = near_clusters([documents[number].text for number in firsts.tolist()])
    # one graph of documents, keys, groups and clusters of near duplicates
    edges, nodes = [], count
    for members, shared in ((np.arange(count), keys), (grouped, groups), (firsts, near)):
        edges.append((members, nodes + shared))
        nodes += int(shared.max(initial=-1)) + 1
    ones, others = (np.concatenate(side) for side in zip(*edges, strict=True))
    graph = coo_array((np.ones(len(ones)), (ones, others)), shape=(nodes, nodes))
    return connected_components(graph, directed=False)[1][:count].astype(np.int64)
