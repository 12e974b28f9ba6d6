"""The embedded corpus: complete speeches are held out, train and test share nothing, presidents have readable names."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from fairtrial.data.corpus import Document, split
from fairtrial.data.readers import read
from fairtrial.data.sotu import _folder
from fairtrial.data.words import count_words, normalised, sentences, without_stage_directions
from fairtrial.errors import BadInput
from fairtrial.recipe import Data
from sampling import cases


def speech(document: Document) -> str:
    return document.group.split("#")[0]


def test_three_presidents_are_the_default() -> None:
    corpus = read(Data(), "classify")
    assert corpus.labels == ("H. W. Bush", "Obama", "W. Bush")
    assert Counter(d.label for d in corpus.train) == {"Obama": 2272, "W. Bush": 1617, "H. W. Bush": 542}
    assert Counter(d.label for d in corpus.tests["test"]) == {"Obama": 368, "W. Bush": 274, "H. W. Bush": 197}
    assert "Peters" in corpus.cite
    assert "Woolley" in corpus.cite
    assert corpus.notes[1] == "14 training sentences dropped that also occur in a held-out speech"


def test_whole_speeches_are_held_out_and_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(Data(), "classify") == read(Data(), "classify")
    held_out = set()
    for seed in range(3):
        monkeypatch.setattr("fairtrial.data.sotu.TEST_SEED", seed)
        corpus = read(Data(), "classify")
        held_out.add(corpus.notes[0])
        test = corpus.tests["test"]
        assert not {speech(d) for d in corpus.train} & {speech(d) for d in test}
        assert not {normalised(d.text) for d in corpus.train} & {normalised(d.text) for d in test}
        assert len({speech(d) for d in test}) == 3
    assert len(held_out) > 1


def test_held_out_speeches_are_spread_over_the_years() -> None:
    corpus = read(Data(presidents=("obama", "bush-43"), test=0.4), "lm")
    years = sorted({int(speech(d)[:4]) for d in corpus.tests["Obama"]})
    assert len(years) == 3
    assert years[0] <= 2012
    assert 2013 <= years[1] <= 2014
    assert years[2] >= 2015


def test_language_modelling_reads_speech_after_speech_and_tests_each_president() -> None:
    corpus = read(Data(), "lm")
    assert {name: len(test) for name, test in corpus.tests.items()} == {"H. W. Bush": 197, "Obama": 368, "W. Bush": 274}
    assert (corpus.running, corpus.ordered, corpus.labels) == (True, True, ())
    order = [speech(d) for d in corpus.train]
    assert order == sorted(order)
    assert {d.label for d in corpus.train} == {""}


def test_documents_are_sentences_in_sections_of_25() -> None:
    corpus = read(Data(), "classify")
    assert all(count_words(d.text) >= 3 for d in corpus.train)
    assert max(Counter(d.group for d in corpus.tests["test"]).values()) == 25
    assert not any("[" in d.text or "applause]" in d.text.lower() for d in corpus.train)
    splits = split(corpus, Data(), seed=1)
    assert not {d.group for d in splits.train} & {d.group for d in splits.validation}
    assert 0.08 < len(splits.validation) / len(corpus.train) < 0.12
    assert {d.label for d in splits.validation} == set(corpus.labels)


def test_a_single_speech_is_tested_on_its_end_after_a_gap() -> None:
    corpus = read(Data(presidents=("taylor",), test=0.25), "lm")
    everything = len(corpus.train) + len(corpus.tests["Taylor"])
    dropped = int(corpus.notes[1].split()[0])
    assert len(corpus.tests["Taylor"]) == round(0.25 * (everything + dropped + 1))
    last, first = corpus.train[-1], corpus.tests["Taylor"][0]
    assert int(last.location.split(":")[1]) <= int(first.location.split(":")[1])


def test_presidents_are_known_by_id() -> None:
    assert list(read(Data(presidents=("bush-43", "taylor")), "lm").tests) == ["Taylor", "W. Bush"]


def test_presidents_who_share_a_last_name_carry_their_full_name() -> None:
    corpus = read(Data(presidents=("roosevelt-26", "roosevelt-32", "carter")), "classify")
    assert corpus.labels == ("Carter", "Franklin D. Roosevelt", "Theodore Roosevelt")
    assert not any(speech(d) == "1945-Roosevelt-2" for d in (*corpus.train, *corpus.tests["test"]))  # a radio summary


@cases(
    ("presidents", "what"),
    [
        (("obma",), "data.presidents: no president with speeches is called 'obma'; did you mean 'obama'?"),
        (("obama", "obama"), "data.presidents is empty, or names one twice"),
        ((), "data.presidents is empty, or names one twice"),
        (("obama",), "sotu: the training set has only one class, 'Obama'"),
        (("trump", "trump-2"), "sotu: the training set has only one class, 'Donald J. Trump'"),
    ],
)
def test_presidents_that_cannot_be_used_are_refused(presidents: tuple[str, ...], what: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(Data(presidents=presidents), "classify")
    assert caught.value.what == what


def test_the_files_are_those_that_the_package_vouches_for() -> None:
    files = read(Data(), "lm").files
    with Path(_folder() / "metadata.csv").open(encoding="utf-8") as metadata:
        vouched = {f"speeches/{row['fileid']}.txt": row["sha256"] for row in csv.DictReader(metadata)}
    assert len(files) == 18
    assert {name: sha256 for name, sha256 in files.items() if name != "metadata.csv"}.items() <= vouched.items()


@cases(
    ("text", "expected"),
    [
        ("We met. We left! Did we? Yes.", ["We met.", "We left!", "Did we?", "Yes."]),
        ("Mr. Speaker, Dr. King and Mrs. Parks met. We won.", ["Mr. Speaker, Dr. King and Mrs. Parks met.", "We won."]),
        (
            "President George W. Bush spoke. John F. Kennedy did.",
            ["President George W. Bush spoke.", "John F. Kennedy did."],
        ),
        (
            "The U.S. Congress met. It is in the U.S. We know.",
            ["The U.S. Congress met.", "It is in the U.S.", "We know."],
        ),
        (
            "At 9 p.m. Eastern we met. It was 9 p.m. The end.",
            ["At 9 p.m. Eastern we met.", "It was 9 p.m.", "The end."],
        ),
        ("They fought in World War I. Many fell.", ["They fought in World War I.", "Many fell."]),
        ('He said, "We go." She said, "No." And so on.', ['He said, "We go."', 'She said, "No."', "And so on."]),
        ('"Will you?" he asked. "$5.50 is No. 1."', ['"Will you?" he asked.', '"$5.50 is No. 1."']),
        ("It was fun. [Laughter] And good [applause]. (Applause.) Go on.", ["It was fun.", "And good.", "Go on."]),
        ("Governor Branstad [Iowa] came. [At this point, some left.] So.", ["Governor Branstad Iowa came.", "So."]),
        ("We cut 3.5 percent. 20 million came.", ["We cut 3.5 percent.", "20 million came."]),
        ("A law (it passed) helps.", ["A law (it passed) helps."]),
        ("", []),
        ("...", ["..."]),
        ("[Applause]", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(without_stage_directions(text)) == expected
