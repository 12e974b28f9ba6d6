"""Words are split as NLTK 3.9 splits them, but for initialisms that end a line."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from fairtrial.data.tokenizer import MANY, TABLED, fit, word_table
from fairtrial.data.words import make_table, sentences, word_splitter
from fairtrial.recipe import Tokens
from sampling import cases

NORMALIZER, PRE_TOKENIZER = word_splitter()
NLTK = NLTKWordTokenizer()
FINAL_INITIALISM = re.compile(r"""(?<![\w.])((?:[^\W\d_²]\.)+[^\W\d_²])\.(?=[\])}>"'»”’ ]*\s*$)""")
PIECES = [
    *"abdmnsStxZ0159²é_ſİı\u0301.,:;'\"`()[]{}<>-!?$*&«»“”‘’„ \t\r\n\x1c\xa0",
    *("''", "``", "--", "...", ",,", "U.S.", "D.C.", "'s", "'ll", "n't", "N'T", "'RE"),
    *("cannot", "d'ye", "Gimme", "gonna", "gotta", "lemme", "wanna", "more'n", "'tis", "'TWAS"),
]


def split(line: str) -> list[str]:
    return [word for word, _ in PRE_TOKENIZER.pre_tokenize_str(NORMALIZER.normalize_str(line))]


def looked_up(*lines: str) -> list[list[str]]:
    """The words of each line by way of a table."""
    table = make_table(lines, "word", split)
    return [[table.vocabulary[word] for word in row] for row in table.rows]


def expected(line: str) -> list[str]:
    """NLTK's words, where a letter stands in for the period that a final initialism keeps."""
    stand_in = FINAL_INITIALISM.sub("\\1Ω", line)
    return [word.replace("Ω", ".") for word in NLTK.tokenize(stand_in)]


def lines_of(*files: Path) -> list[str]:
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]


def test_real_text_splits_as_nltk_does(shared_data: Path) -> None:
    speeches = lines_of(shared_data / "speeches/train_CLS.tsv", shared_data / "speeches/train_LM.txt")
    lines = [
        *speeches,
        *lines_of(shared_data / "sst2/train.tsv"),
        *lines_of(shared_data / "lm1b/1b_benchmark.test.tokens"),
    ]
    assert len(lines) > 22_000
    different = [line for line, words in zip(lines, looked_up(*lines), strict=True) if words != NLTK.tokenize(line)]
    assert looked_up(*different) == [split(line) for line in different]
    assert different == [line for line in lines if FINAL_INITIALISM.search(line)]
    assert [line for line in speeches if line in different], "the control: the rule does occur"
    for line in different:
        ours, theirs = split(line), NLTK.tokenize(line)
        assert ours == [*theirs[:-2], theirs[-2] + theirs[-1]]


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("a,,b:,:5,,")
@example("'tis'twas d'ye")
@example("x's'$ couldn't've n't's ")
@example('("U.S.")')
@example("a.².")
def test_any_text_splits_as_nltk_does(line: str) -> None:
    assert split(line) == expected(line)
    assert looked_up(line, f"{line} {line}", f"x {line}", f"{line} x") == [
        expected(line), expected(f"{line} {line}"), expected(f"x {line}"), expected(f"{line} x"),
    ]  # fmt: skip


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*PIECES, "<pad>", "\x85", "\u2028"]), max_size=14).map("".join), st.booleans())
def test_a_table_has_the_words_of_its_tokenizer(line: str, lowercase: bool) -> None:
    for kind in TABLED:
        tokenizer = fit(Tokens(kind=kind, lowercase=lowercase, min_count=1), [line, "a B. cannot-x"])
        table = word_table(Tokens(kind=kind, lowercase=lowercase), [line, "", line])
        words = [
            word
            for word, _ in tokenizer.inner.pre_tokenizer.pre_tokenize_str(
                tokenizer.inner.normalizer.normalize_str(line)
            )
        ]
        assert [table.vocabulary[word] for word in table.ids] == [*words, *words]
        assert tokenizer.encode([line] * MANY) == [tokenizer.inner.encode(line).ids] * MANY


@cases(
    ("line", "words"),
    [
        ("He lives in Washington, D.C.", ["He", "lives", "in", "Washington", ",", "D.C."]),
        ("He lives in the U.S.\r", ["He", "lives", "in", "the", "U.S."]),
        ('"Made in the U.S."', ["``", "Made", "in", "the", "U.S.", "''"]),
        ("a D.C. suburb.", ["a", "D.C.", "suburb", "."]),
        ("It was plan B.", ["It", "was", "plan", "B", "."]),
        ("She has a Ph.D.", ["She", "has", "a", "Ph.D", "."]),
        ("", []),
        (" \t\r", []),
    ],
)
def test_an_initialism_keeps_its_last_period(line: str, words: list[str]) -> None:
    assert split(line) == words


def test_a_carriage_return_changes_nothing() -> None:
    for line in ("Yes.", "It's Israel's.", "one, two,", "a: b:", 'He said "no."', "wanna", "end ..."):
        assert split(line + "\r") == split(line)


def test_a_long_text_takes_no_quadratic_time() -> None:
    for unit in (",", ".", " ", "'", "`", "a.", "a. ", "the sea: it's gone, "):
        assert split("x." + unit * 10_000 + " y.")[-2:] == ["y", "."]
        assert len(split("x." + unit * 10_000)) >= 1


def test_a_long_run_of_marks_is_read_once() -> None:
    """Looked at again from every mark it would take minutes."""
    assert sentences("." * 200_000) == ["." * 200_000]
