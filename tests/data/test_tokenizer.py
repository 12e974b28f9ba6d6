"""Tokenizers: what they keep, what they call unknown, and that others read them as we do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtrial
from fairtrial.data.tokenizer import BYTES, KINDS, Tokenizer, fit
from fairtrial.errors import BadInput
from fairtrial.recipe import Tokens
from sampling import cases

TEXTS = ["The sea is wide.", "The sea, the sea!", "It's a wide, wide world; isn't it?", "Öl 北京 🙂 “quoted”"]
ODD = [
    "",
    " ",
    "\t\r\n",
    "<pad>",
    "a <stop> b",
    "<unk><mask>",
    "\\<pad>",
    "é e\u0301 \u200b\x00\x1c",
    "北京 🙂",
    "unseen.",
    "  two  ",
]
SPECIAL = {"<pad>", "<unk>", "<start>", "<stop>", "<mask>"}
BPE = fit(Tokens(kind="bpe", size=300), TEXTS)
CHARACTER = fit(Tokens(kind="character", min_count=1), TEXTS)


def fitted(kind: str, texts: list[str] = TEXTS, **options: Any) -> Tokenizer:
    return fit(Tokens(kind=kind, **options), texts)


def course_lines(shared_data: Path) -> list[str]:
    files = (shared_data / "speeches/train_CLS.tsv", shared_data / "speeches/train_LM.txt")
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]


def test_the_course_vocabulary_has_5755_entries(shared_data: Path) -> None:
    lines = course_lines(shared_data)
    tokenizer = fitted("word", lines, min_count=1)
    assert tokenizer.size == 5755
    windows = fitted("word", [line + "\r" for line in lines], min_count=1)
    assert windows.inner.get_vocab() == tokenizer.inner.get_vocab()


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_reads_the_same_ids(kind: str, shared_data: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    lines = course_lines(shared_data)
    tokenizer = fit(Tokens(kind=kind, size=2000), lines[:1000], marks=True, mask=True)
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8", newline="\n")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    texts = [*lines[800:1300], *ODD]
    ours = tokenizer.encode(texts)
    assert [theirs.encode(text) for text in texts] == ours
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode(texts) == ours
    assert sum(map(len, ours)) > 5000


@cases("kind", KINDS)
def test_the_hash_seed_changes_nothing(kind: str) -> None:
    script = (
        "import sys; from fairtrial.data.tokenizer import fit; from fairtrial.recipe import Tokens;"
        f"tokenizer = fit(Tokens(kind={kind!r}, size=290, min_count=1), {TEXTS!r});"
        "sys.stdout.buffer.write(tokenizer.to_json().encode())"
    )
    source = str(Path(fairtrial.__file__).parents[1])
    answers = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 500


def test_entries_are_ranked_by_count_then_spelling() -> None:
    tokenizer = fit(Tokens(kind="whitespace", min_count=1), ["c b a b", "c z"], marks=True, mask=True)
    assert tokenizer.words(range(9)) == ["<pad>", "<unk>", "<start>", "<stop>", "<mask>", "b", "c", "a", "z"]
    assert (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.stop, tokenizer.mask) == (0, 1, 2, 3, 4)


def test_rare_words_become_unknown_so_unknown_is_trained() -> None:
    tokenizer = fitted("word", ["to be or not to be", "to see"], min_count=2)
    assert tokenizer.words(range(tokenizer.size)) == ["<pad>", "<unk>", "to", "be"]
    assert tokenizer.encode(["to see be"]) == [[2, 1, 3]]
    assert tokenizer.facts["unknown_trained"]
    facts = tokenizer.facts
    assert (facts["size"], facts["min_count"], facts["kept"], facts["dropped"], facts["unknown_tokens"]) == (
        4,
        2,
        2,
        3,
        3,
    )


def test_keeping_every_word_leaves_unknown_untrained() -> None:
    tokenizer = fitted("word", min_count=1)
    assert tokenizer.facts["unknown_trained"] is False
    assert tokenizer.facts["dropped"] == 0
    assert tokenizer.encode(["unseen"]) == [[tokenizer.unknown]]


def test_a_full_vocabulary_trains_unknown_too() -> None:
    tokenizer = fitted("word", ["a a b b c"], min_count=1, size=4)
    assert tokenizer.words(range(tokenizer.size)) == ["<pad>", "<unk>", "a", "b"]
    assert tokenizer.facts["unknown_trained"]


def test_bpe_knows_every_byte_and_no_unknown() -> None:
    assert BPE.unknown is None
    assert not BPE.facts["unknown_trained"]
    assert BYTES + 1 < BPE.size <= 300
    assert fitted("bpe", ["a"], size=257).size == 257
    assert BPE.decode(BPE.encode(["".join(map(chr, range(0x250)))])[0]) == "".join(map(chr, range(0x250)))


@settings(max_examples=300)
@given(st.text(max_size=40) | st.lists(st.sampled_from([*ODD, *TEXTS])).map("".join))
def test_bpe_gives_any_text_back(text: str) -> None:
    (ids,) = BPE.encode([text])
    assert BPE.decode(ids) == text
    assert BPE.pad not in ids


@settings(max_examples=300)
@given(st.text(alphabet=sorted(set("".join(TEXTS))), max_size=40))
def test_characters_give_known_text_back(text: str) -> None:
    (ids,) = CHARACTER.encode([text])
    assert len(ids) == len(text)
    assert CHARACTER.decode(ids) == text
    assert CHARACTER.words(ids) == list(text)


@cases("kind", KINDS)
def test_spelled_out_special_tokens_are_only_text(kind: str) -> None:
    texts = ["<pad> <unk> <start> <stop> <mask>", "<PAD> x<pad>", *ODD] * 30
    tokenizer = fit(Tokens(kind=kind, min_count=1, lowercase=True), texts, marks=True, mask=True)
    assert tokenizer.size == len(tokenizer.inner.get_vocab())
    special = {number for word, number in tokenizer.inner.get_vocab().items() if word in SPECIAL}
    assert len(special) == 4 + (kind != "bpe")
    for ids in tokenizer.encode(texts):
        assert not special & set(ids)


def test_whitespace_shows_spelled_out_special_tokens_with_a_backslash() -> None:
    tokenizer = fitted("whitespace", ["a <pad> x<pad>"], min_count=1)
    assert tokenizer.words(tokenizer.encode(["a <pad> x<pad>"])[0]) == ["a", "\\<pad>", "x<pad>"]


def test_whitespace_splits_nowhere_else() -> None:
    tokenizer = fitted("whitespace", min_count=1)
    assert tokenizer.decode(tokenizer.encode(["The  sea,\tthe sea!\r"])[0]) == "The sea, the sea!"


@cases("kind", KINDS)
def test_lowercase_folds_case(kind: str) -> None:
    tokenizer = fitted(kind, lowercase=True, min_count=1)
    upper, lower = tokenizer.encode(["THE SEA", "the sea"])
    assert upper == lower
    assert tokenizer.decode(upper) == "the sea"
    assert len(set(map(tuple, fitted(kind, min_count=1).encode(["THE SEA", "the sea"])))) == 2, "the control"


def test_a_text_without_tokens_is_empty() -> None:
    for kind in ("word", "whitespace"):
        assert fitted(kind).encode(["", " \t\r\n", "\u3000"]) == [[], [], []]
        assert fitted(kind).encode([]) == []


def test_decoding_leaves_out_padding_and_marks_but_shows_unknown() -> None:
    tokenizer = fit(Tokens(min_count=1), ["a b"], marks=True)
    assert tokenizer.decode([2, 4, 1, 5, 3, 0, 0]) == "a <unk> b"


def test_words_show_spaces_and_broken_letters_of_bpe() -> None:
    smile = BPE.words(BPE.encode([" 🙃"])[0])
    assert smile[0] == " "
    assert all(piece and "\ufffd" not in piece for piece in smile)


def test_fitting_tells_what_it_was_fitted_on() -> None:
    first, again, other = fitted("word"), fitted("word"), fitted("word", ["".join(TEXTS[:2]), *TEXTS[2:]])
    assert first.facts == again.facts
    assert first.facts["fitted_on"] != other.facts["fitted_on"]
    assert "4 texts" in first.facts["fitted_text"]
    assert "training split" in first.facts["fitted_text"]


def test_facts_return_when_given(tmp_path: Path) -> None:
    tokenizer = fitted("word")
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8", newline="\n")
    assert Tokenizer.load(tmp_path / "tokenizer.json", tokenizer.facts).facts["unknown_trained"]


@pytest.mark.parametrize("damage", ["", "{}", "half", "bytes", "other pad", "missing", "folder"])
def test_a_damaged_file_is_refused_by_name(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    whole = fitted("word").to_json()
    if damage == "folder":
        path.mkdir()
    elif damage == "bytes":
        path.write_bytes(b"\xff\xfe\x00")
    elif damage != "missing":
        content = {"half": whole[: len(whole) // 2], "other pad": whole.replace('"<pad>"', '"[PAD]"')}
        path.write_text(content.get(damage, damage))
    with pytest.raises(BadInput, match=r"tokenizer\.json: ") as refusal:
        Tokenizer.load(path)
    assert refusal.value.hint


@cases(
    ("options", "texts", "message"),
    [
        ({"kind": "wrod"}, TEXTS, "did you mean 'word'"),
        ({"fit": "test"}, TEXTS, r"tokens\.fit"),
        ({"min_count": 0}, TEXTS, "at least 1"),
        ({"size": 2}, TEXTS, "at least 3 entries"),
        ({"kind": "bpe", "size": 256}, TEXTS, "at least 257 entries"),
        ({}, [" ", ""], "no tokens"),
    ],
)
def test_a_fit_that_cannot_be_is_refused(options: dict[str, Any], texts: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        fit(Tokens(**options), texts)


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    for token in (-1, 10_000):
        with pytest.raises(BadInput, match="not in this vocabulary"):
            CHARACTER.decode([token])
