"""Tasks with exact answers: every answer is checked by hand-written rules, and no word alone gives it away."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.data.corpus import Corpus, Document
from fairtrial.data.readers import PROBES, read
from fairtrial.errors import BadInput
from fairtrial.prepare import prepare
from fairtrial.recipe import Data, Recipe

CLASSIFIED, MODELLED = ("brackets", "counting"), ("recall", "induction")


def corpus_of(name: str) -> Corpus:
    return read(Data(format=name), "classify" if name in (*CLASSIFIED, "order") else "lm")


def all_items(corpus: Corpus) -> list[Document]:
    return [*corpus.train, *corpus.tests["inside"], *corpus.tests["beyond"]]


@pytest.mark.parametrize("name", [*CLASSIFIED, *MODELLED])
def test_texts_beyond_training_are_longer_than_any_of_training(name: str) -> None:
    corpus = corpus_of(name)
    longest = max(len(document.text.split()) for document in corpus.train)
    assert min(len(document.text.split()) for document in corpus.tests["beyond"]) > longest
    assert {document.text for document in corpus.train}.isdisjoint(each.text for each in corpus.tests["inside"])
    assert corpus == corpus_of(name)  # the same items in every trial


def test_brackets_are_balanced_where_it_says_so() -> None:
    def closes(words: list[str]) -> bool:
        text = "".join(words)
        while (shorter := text.replace("()", "").replace("[]", "")) != text:
            text = shorter
        return not text

    items = all_items(corpus_of("brackets"))
    assert all(closes(each.text.split()) == (each.label == "balanced") for each in items)
    for each in items:
        count = Counter(each.text.split())
        assert count["("] == count[")"]  # no number of brackets tells
    assert 0.45 < sum(each.label == "balanced" for each in items) / len(items) < 0.55


def test_counting_counts_after_the_last_bar() -> None:
    items = all_items(corpus_of("counting"))
    assert all(str(each.text.rpartition("|")[2].split().count("a")) == each.label for each in items)


def test_every_repeated_key_has_its_value() -> None:
    for each in all_items(corpus_of("recall")):
        words = each.text.split()
        pairs = list(zip(words[::2], words[1::2], strict=True))
        half = len(pairs) // 2
        assert sorted(pairs[:half]) == sorted(pairs[half:])
        assert len({key for key, _ in pairs[:half]}) == half


def test_the_second_half_of_induction_repeats_the_first() -> None:
    for each in all_items(corpus_of("induction")):
        words = each.text.split()
        assert words[: len(words) // 2] == words[len(words) // 2 :]


def test_order_shuffles_the_very_words_of_each_sentence(tmp_path: Path) -> None:
    text = "\n\n".join(f"The {n} brown foxes jumped over {n + 1} lazy dogs, and then they slept." for n in range(200))
    (tmp_path / "novel.txt").write_text(text)
    data = Data(source=str(tmp_path / "novel.txt"), format="order")
    corpus = read(data, "classify")
    written, shuffled = corpus.train[::2], corpus.train[1::2]
    assert len(written) == 200
    for one, other in zip(written, shuffled, strict=True):
        assert (one.label, other.label) == ("as written", "shuffled")
        assert sorted(one.text.split()) == sorted(other.text.split())
        assert one.group == other.group
    splits = prepare(Recipe(task="classify", data=data), 0).splits
    for documents in (splits.train, splits.validation, splits.tests["test"]):
        assert len({each.label for each in documents}) == 2
        counted = Counter(each.group for each in documents)
        assert set(counted.values()) == {2}  # a sentence and its shuffled copy are never parted


def test_a_novel_of_one_paragraph_is_split_by_blocks_of_sentences(tmp_path: Path) -> None:
    text = " ".join(f"The {n} brown foxes jumped over {n + 1} lazy dogs, and then they slept." for n in range(200))
    (tmp_path / "novel.txt").write_text(text)
    data = Data(source=str(tmp_path / "novel.txt"), format="order")
    counted = Counter(each.group for each in read(data, "classify").train)
    assert set(counted.values()) == {20}  # ten sentences, each with its copy
    splits = prepare(Recipe(task="classify", data=data), 0).splits
    named = [{each.group for each in part} for part in (splits.train, splits.validation, splits.tests["test"])]
    assert all(named)
    assert sum(map(len, named)) == len(set.union(*named)) == 20


def test_a_text_that_is_too_short_for_order_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("One short line of words here.\n\nAnd another short line of words.")
    with pytest.raises(BadInput, match="too few for the task 'order'"):
        read(Data(source=str(tmp_path / "short.txt"), format="order"), "classify")


def test_every_probe_is_a_format() -> None:
    assert set(PROBES) == {"order", *CLASSIFIED, *MODELLED}
    assert all(corpus_of(name).train for name in PROBES)
    assert replace(Data(), format="order").format == "order"
