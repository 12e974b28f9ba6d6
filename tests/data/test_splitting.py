"""Splits keep duplicates and groups together, keep every class in training, and depend on named random streams only."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.data.corpus import Corpus, Document, TextIndex, split
from fairtrial.data.duplicates import find_duplicates
from fairtrial.data.words import normalised
from fairtrial.errors import BadInput
from fairtrial.recipe import Data


def labelled(sizes: dict[str, int]) -> tuple[Document, ...]:
    return tuple(Document(f"{label} text {at}", label=label) for label, size in sizes.items() for at in range(size))


def novel(paragraphs: int) -> Corpus:
    return Corpus(train=tuple(Document(f"paragraph {at}") for at in range(paragraphs)), running=True, ordered=True)


def test_given_tests_and_validation_are_used_as_they_are() -> None:
    corpus = Corpus(train=labelled({"a": 5, "b": 5}), validation=labelled({"a": 1}), tests={"x": labelled({"b": 2})})
    splits = split(corpus, Data(), seed=0)
    assert (splits.train, splits.validation, splits.tests) == (corpus.train, corpus.validation, corpus.tests)


def test_duplicates_between_given_train_and_test_stay() -> None:
    corpus = Corpus(train=labelled({"a": 5, "b": 5}), tests={"test": labelled({"a": 5, "b": 5})})
    assert split(corpus, Data(validation=0), seed=0).train == corpus.train


def test_shares_are_stratified_by_label_and_keep_the_order() -> None:
    corpus = Corpus(train=labelled({"a": 100, "b": 50, "c": 20}), labels=("a", "b", "c"))
    splits = split(corpus, Data(test=0.2, validation=0.1), seed=3)
    assert Counter(d.label for d in splits.tests["test"]) == {"a": 20, "b": 10, "c": 4}
    assert Counter(d.label for d in splits.validation) == {"a": 8, "b": 4, "c": 2}
    order = {document: at for at, document in enumerate(corpus.train)}
    for part in (splits.train, splits.validation, splits.tests["test"]):
        assert list(part) == sorted(part, key=order.__getitem__)
    assert len(splits.train) == 170 - 34 - 14
    assert splits.labels == ("a", "b", "c")


def test_all_seeds_share_the_test_items_and_differ_in_validation() -> None:
    corpus = Corpus(train=labelled({"a": 60, "b": 60}))
    one, same, other = (split(corpus, Data(), seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.tests == other.tests
    assert one.validation != other.validation


def test_no_validation_is_taken_where_the_share_is_zero() -> None:
    assert split(Corpus(train=labelled({"a": 9, "b": 9})), Data(validation=0), seed=0).validation == ()


def test_duplicates_and_groups_are_joined_transitively() -> None:
    documents = (
        Document("Thank you!", group="one"),
        Document("thank YOU"),
        Document("Good.", group="two"),
        Document("Other", group="one"),
        Document("ｇｏｏｄ"),
        Document("?"),
        Document("!"),
    )
    assert TextIndex(Corpus(train=documents)).clusters.tolist() == [0, 0, 1, 0, 1, 2, 3]


def test_near_copies_are_on_one_side_of_every_split() -> None:
    rng = random.Random(0)
    seeds = [[f"w{rng.randrange(400)}" for _ in range(12)] for _ in range(60)]
    copies = [[*seed[:at], f"x{at}", *seed[at:]] for seed in seeds for at in (0, 6, 12)]
    long = [[*seeds[at], *seeds[at + 1]] for at in range(0, 10, 2)]
    documents = tuple(Document(" ".join(words), label="ab"[len(words) % 2]) for words in (*seeds, *copies, *long))
    for seed in range(3):
        splits = split(Corpus(train=documents), Data(test=0.2, validation=0.2, train_share=0.7), seed=seed)
        parts = [
            [document.text for document in part] for part in (splits.train, splits.validation, splits.tests["test"])
        ]
        assert all(parts)
        for one, other in permutations(parts, 2):
            assert not find_duplicates(one, other).status.any()


def test_texts_are_normalised_to_lower_letters_and_digits() -> None:
    assert normalised(" The ﬁrst_ 10 — Émigrés! ") == "thefirst10émigrés"


def test_a_class_of_one_document_stays_in_training() -> None:
    splits = split(Corpus(train=labelled({"a": 20, "b": 20, "rare": 1})), Data(), seed=0)
    assert {document.label for document in splits.train} == {"a", "b", "rare"}


def test_a_class_that_is_one_group_stays_in_training() -> None:
    """Taking all three would come closer to the share of 60%, and empty the class."""
    few = tuple(Document(f"few {at}", label="few", group="one speech") for at in range(3))
    splits = split(Corpus(train=(*labelled({"a": 20}), *few)), Data(test=0.6, validation=0), seed=0)
    assert Counter(document.label for document in splits.train) == {"a": 8, "few": 3}


def test_whole_groups_go_to_one_split() -> None:
    documents = tuple(Document(f"s {at}", label="ab"[at // 250], group=f"g{at // 25}") for at in range(500))
    splits = split(Corpus(train=documents), Data(test=0.2, validation=0.1), seed=0)
    groups = [{d.group for d in part} for part in (splits.train, splits.validation, splits.tests["test"])]
    assert sum(map(len, groups)) == 20
    assert Counter(d.label for d in splits.tests["test"]) == {"a": 50, "b": 50}
    assert Counter(d.label for d in splits.validation) == {"a": 25, "b": 25}


def test_a_group_that_would_leave_the_share_further_off_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty documents overshoot a share of ten by twice as much as they fill; so does a group that only brings the
    other class closer."""
    speech = [Document(f"speech {at}", label="a", group="speech") for at in range(30)]
    mixed = [Document(f"mixed {at}", label="b" if at else "a", group="mixed") for at in range(25)]
    corpus = Corpus(train=(*labelled({"a": 69, "b": 76}), *speech, *mixed))
    for seed in range(20):
        monkeypatch.setattr("fairtrial.data.corpus.TEST_SEED", seed)
        splits = split(corpus, Data(test=0.1, validation=0), seed=0)
        assert Counter(document.label for document in splits.tests["test"]) == {"a": 10, "b": 10}


def test_equal_rows_cannot_be_carved() -> None:
    corpus = Corpus(train=tuple(Document("same", label="ab"[at % 2]) for at in range(10)))
    with pytest.raises(BadInput, match="10 training documents in 1 groups"):
        split(corpus, Data(), seed=0)


def test_a_novel_is_tested_on_its_end_and_validated_on_one_section() -> None:
    corpus = novel(100)
    seen = set()
    for seed in range(20):
        splits = split(corpus, Data(test=0.2, validation=0.1), seed=seed)
        numbers = [
            [int(d.text.split()[1]) for d in part] for part in (splits.train, splits.validation, splits.tests["test"])
        ]
        train, validation, test = numbers
        assert test == list(range(80, 100))
        assert validation == list(range(validation[0], validation[0] + 8))
        gaps = {79} | ({validation[0] - 1, validation[-1] + 1} & set(range(79)))
        assert sorted(train + validation + test) == [at for at in range(100) if at not in gaps]
        seen.add(validation[0])
    assert len(seen) > 5


def test_a_text_too_short_to_split_is_refused() -> None:
    for paragraphs in (1, 2, 3):
        with pytest.raises(BadInput, match="too few"):
            split(novel(paragraphs), Data(), seed=0)


def test_shares_outside_their_range_are_refused() -> None:
    for field, value in (("test", 1.0), ("test", 1.5), ("test", 0.0), ("validation", -0.1), ("train_share", 0.0)):
        with pytest.raises(BadInput, match=rf"data\.{field}"):
            split(Corpus(train=labelled({"a": 9, "b": 9})), Data(**{field: value}), seed=0)


documents_of_any_kind = st.lists(
    st.builds(
        Document,
        text=st.sampled_from(["a", "A.", "b", "c d", "!", "é", "1", "2", "3", "4", "5", "6"]),
        label=st.sampled_from("xyz"),
        group=st.sampled_from(["", "", "g", "h"]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=200)
@given(documents=documents_of_any_kind, share=st.floats(0.01, 0.9), ordered=st.booleans(), seed=st.integers(0, 99))
def test_no_cluster_straddles_and_no_class_is_emptied(
    documents: list[Document], share: float, ordered: bool, seed: int
) -> None:
    corpus = Corpus(train=tuple(documents), ordered=ordered)
    try:
        splits = split(corpus, Data(test=share, validation=share / 2), seed=seed)
    except BadInput:
        return
    parts = [splits.train, splits.validation, splits.tests["test"]]
    assert all(parts)
    if ordered and not any(document.group for document in documents):
        return
    assert sum(map(len, parts)) == len(documents)
    assert {d.label for d in splits.train} == {d.label for d in documents}
    for key in (lambda d: normalised(d.text) or d.text, lambda d: d.group):
        owners: dict[str, int] = {}
        for at, part in enumerate(parts):
            for document in part:
                if key(document):
                    assert owners.setdefault(key(document), at) == at


def test_the_speeches_keep_duplicates_on_one_side_of_validation(shared_data) -> None:
    from fairtrial.data.readers import read

    data = Data(source=str(shared_data / "speeches"))
    splits = split(read(data, "classify"), data, seed=0)
    assert (len(splits.train), len(splits.validation), len(splits.tests["test"])) == (1883, 209, 750)
    assert not {normalised(d.text) for d in splits.train} & {normalised(d.text) for d in splits.validation}


def test_a_class_that_is_too_small_for_a_share_is_kept() -> None:
    corpus = Corpus(train=labelled({"a": 20, "b": 1}), tests={"x": labelled({"a": 2})}, labels=("a", "b"))
    train = split(corpus, Data(validation=0, train_share=0.5), seed=0).train
    assert Counter(document.label for document in train) == {"a": 10, "b": 1}
    assert list(train) == [document for document in corpus.train if document in train]
