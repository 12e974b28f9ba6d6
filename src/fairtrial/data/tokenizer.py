"""Tokenizers: text to token ids and back. Fitted on given texts only, saved as a standard tokenizer.json.

Special tokens are entries of the vocabulary, but are never searched for in text, as `transformers` does: "<pad>" in a
text is split at its brackets (word), spelled out (character, bpe), or read as the word "\\<pad>" (whitespace)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any

# Worker processes are forked and use the cores themselves; the library's threads would deadlock or warn after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from fairtrial.data.words import WordTable, make_table, word_splitter
from fairtrial.errors import BadInput
from fairtrial.recipe import Tokens, one_of

PAD, UNKNOWN, START, STOP, MASK = "<pad>", "<unk>", "<start>", "<stop>", "<mask>"
SPECIAL = (PAD, UNKNOWN, START, STOP, MASK)
KINDS = ("word", "character", "bpe", "whitespace")
TABLED = ("word", "character", "whitespace")  # their words do not depend on what a vocabulary is fitted on
MANY = 32  # texts that are worth a table
Counts = Mapping[str, int]  # of words
FITS = {"train": "the training split only", "course": "both whole training files"}
NO_COURSE = (  # error and hint
    "tokens.fit = 'course' needs the course's folder (train_CLS.tsv and train_LM.txt)",
    "use --set tokens.fit=train, or the course's folder as data.source",
)
BYTES = 256


@dataclass(frozen=True)
class Tokenizer:
    """A fitted tokenizer. Its `facts` are not part of tokenizer.json: they are stored next to it and loaded with it."""

    inner: tokenizers.Tokenizer
    facts: dict[str, Any] = field(default_factory=dict)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, neither padded nor cut; special tokens only where a pretrained encoder expects them."""
        if len(texts) >= MANY and (tokens := self.table_of) is not None:
            table = word_table(tokens, texts)
            ids, ends = self.numbers(table.vocabulary)[table.ids].tolist(), table.offsets.tolist()
            return [ids[begin:end] for begin, end in pairwise(ends)]
        encoded = self.inner.encode_batch_fast(list(texts), add_special_tokens=self.pretrained)
        return [text.ids for text in encoded]

    @cached_property
    def table_of(self) -> Tokens | None:
        """How texts become a table of this tokenizer's words; None: its rules are not ours of today."""
        tokens = Tokens(kind=str(self.facts.get("kind")), lowercase=bool(self.facts.get("lowercase")))
        if self.pretrained or tokens.kind not in (*TABLED, "ids") or not isinstance(self.inner.model, models.WordLevel):
            return None
        ours, own = _splitter(tokens), (self.inner.normalizer, self.inner.pre_tokenizer)
        same = all(one.__getstate__() == other.__getstate__() for one, other in zip(ours, own, strict=True))
        return tokens if same else None

    def numbers(self, vocabulary: Sequence[str]) -> np.ndarray:
        """The id of each of these words [entry]"""
        known, unknown = self.inner.get_vocab(), self.unknown
        return np.fromiter((known.get(word, unknown) for word in vocabulary), np.int32, len(vocabulary))

    def cut(self, ids: Sequence[int] | np.ndarray, length: int) -> list[int]:
        """At most `length` tokens; the final special token that a pretrained encoder expects stays."""
        if self.pretrained and len(ids) > length:
            return [*ids[: length - 1], ids[-1]]
        return list(ids[:length])

    def decode(self, ids: Iterable[int]) -> str:
        """The text without padding, start and stop. Words are joined by spaces; character and bpe restore the text."""
        hidden = (self.pad, self.start, self.stop)
        shown = [token for token in self._checked(ids) if token not in hidden]
        return str(self.inner.decode(shown, skip_special_tokens=False))

    def words(self, ids: Iterable[int]) -> list[str]:
        """Each token as text, for the axes of figures. An incomplete UTF-8 character is shown in the byte alphabet."""
        tokens = self._checked(ids)
        names = [str(self.inner.id_to_token(token)) for token in tokens]
        if not isinstance(self.inner.model, models.BPE):
            return names
        texts = [self.inner.decode([token], skip_special_tokens=False) for token in tokens]
        return [name if "\ufffd" in text else text for text, name in zip(texts, names, strict=True)]

    def _checked(self, ids: Iterable[int]) -> list[int]:
        tokens = [int(token) for token in ids]
        for token in tokens:
            if not 0 <= token < self.size:
                raise BadInput(f"token {token} is not in this vocabulary of {self.size} entries")
        return tokens

    @property
    def size(self) -> int:
        """Entries of the vocabulary, special tokens included."""
        return int(self.inner.get_vocab_size())

    @property
    def pretrained(self) -> bool:
        """It belongs to a pretrained encoder, which expects its special tokens around every text."""
        return "special" in self.facts

    def _special(self, what: str, ours: str) -> int | None:
        name = self.facts["special"][what] if self.pretrained else ours
        return None if name is None else self.inner.token_to_id(name)

    @property
    def pad(self) -> int:
        return self._special("pad", PAD) or 0

    @property
    def unknown(self) -> int | None:
        """None for bpe, which knows every text."""
        return self._special("unknown", UNKNOWN)

    @property
    def start(self) -> int | None:
        return self._special("start", START)

    @property
    def stop(self) -> int | None:
        return self._special("stop", STOP)

    @property
    def mask(self) -> int | None:
        return self._special("mask", MASK)

    def to_json(self) -> str:
        """The content of a tokenizer.json."""
        return str(self.inner.to_str(pretty=True))

    @classmethod
    def load(cls, path: Path, facts: dict[str, object] | None = None) -> Tokenizer:
        """Read a tokenizer.json that holds `to_json`. `facts`: those of its fitting, if stored."""
        hint = "restore the file, or fit the tokenizer again"
        inner = read_inner(path, hint)
        found = cls(inner, dict(facts or {}))
        if not found.pretrained and inner.token_to_id(PAD) != 0:
            raise BadInput(f"was not written by fairtrial: entry 0 is not {PAD}", hint, path=path)
        return found


def read_inner(path: Path, hint: str = "") -> tokenizers.Tokenizer:
    """A tokenizer.json of anyone's."""
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise BadInput(f"is not a valid tokenizer.json ({error})", hint, path=path) from error


def normalisation_of(facts: Mapping[str, object]) -> str:
    """What a tokenizer removes from a text before anything is predicted."""
    return "lower case" if facts.get("lowercase") else ""


def word_table(tokens: Tokens, texts: Sequence[str]) -> WordTable:
    """Texts as words, split as a tokenizer of these tokens does, which is of a kind in TABLED."""
    normalizer, pre_tokenizer = _splitter(tokens)

    def split(text: str) -> list[str]:
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]

    return make_table(texts, tokens.kind, split)


def fit(tokens: Tokens, texts: Sequence[str], *, marks: bool = False, mask: bool = False) -> Tokenizer:
    """Learn a vocabulary from these texts and no others. `marks` adds start and stop tokens, `mask` a mask token."""
    one_of("tokens.kind", tokens.kind, KINDS)
    one_of("tokens.fit", tokens.fit, tuple(FITS))
    if tokens.min_count < 1:
        raise BadInput(f"tokens.min_count must be at least 1, got {tokens.min_count}", "1 keeps every word")
    special = [PAD] + [UNKNOWN] * (tokens.kind != "bpe") + [START, STOP] * marks + [MASK] * mask
    least = len(special) + (BYTES if tokens.kind == "bpe" else 1)
    if tokens.size < least:
        raise BadInput(f"tokens.size must be at least {least} entries for {tokens.kind!r} tokens, got {tokens.size}")
    if tokens.kind == "bpe":
        inner, found = _fit_bytes(tokens, texts, special)
    else:
        inner, found = _fit_words(tokens, word_table(tokens, texts).counts(), special)
    facts = {
        "kind": tokens.kind,
        "size": inner.get_vocab_size(),
        "min_count": tokens.min_count,
        "lowercase": tokens.lowercase,
        "kept": inner.get_vocab_size() - len(special),
        **found,
        "unknown_trained": found["unknown_tokens"] > 0,
        "fitted_on": _fingerprint(texts),
        "fitted_text": f"{len(texts):,} texts of {sum(map(len, texts)):,} characters; asked for: {FITS[tokens.fit]}",
    }
    return Tokenizer(inner, facts)


def tokenizer_of_ids(entries: Sequence[str], named: bool) -> Tokenizer:
    """The vocabulary that the data bring, whole: no id is ever unknown."""
    special = [PAD, UNKNOWN]
    inner = tokenizers.Tokenizer(models.WordLevel(dict(zip([*special, *entries], count())), unk_token=UNKNOWN))
    inner.normalizer, inner.pre_tokenizer = _splitter(Tokens(kind="ids"))
    if named:
        inner.decoder = decoders.ByteLevel()
    facts = {"kind": "ids", "size": inner.get_vocab_size(), "min_count": 1, "lowercase": False, "kept": len(entries)}
    facts |= {"dropped": 0, "unknown_tokens": 0, "unknown_trained": False, "named": named}
    return Tokenizer(inner, facts | {"fitted_on": _fingerprint(entries), "fitted_text": "none: the data are token ids"})


def _fit_words(tokens: Tokens, counts: Counts, special: list[str]) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """The most frequent tokens, ties in alphabetical order. The rest becomes unknown."""
    if not counts:
        raise BadInput("the text to fit a tokenizer on has no tokens", "check data.source and data.format")
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [word for word, count in ranked if count >= tokens.min_count][: tokens.size - len(special)]
    vocabulary = {word: number for number, word in enumerate([*special, *kept])}
    inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.normalizer, inner.pre_tokenizer = _splitter(tokens)
    if tokens.kind == "character":
        inner.decoder = decoders.Fuse()
    unknown = sum(counts.values()) - sum(counts[word] for word in kept)
    return inner, {"dropped": len(counts) - len(kept), "unknown_tokens": unknown}


def _splitter(tokens: Tokens) -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    normalizer: normalizers.Normalizer
    pre_tokenizer: pre_tokenizers.PreTokenizer
    if tokens.kind == "word":
        normalizer, pre_tokenizer = word_splitter()
    elif tokens.kind == "whitespace":
        spelled = "|".join(mark.strip("<>") for mark in SPECIAL)
        normalizer = normalizers.Replace(Regex(rf"(?<!\S)(?=<(?:{spelled})>(?!\S))"), "\\")
        pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    elif tokens.kind == "ids":
        normalizer, pre_tokenizer = normalizers.Sequence([]), pre_tokenizers.WhitespaceSplit()
    else:
        normalizer = normalizers.Sequence([])
        pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    # Lower case comes first, so that the rules see the text that the words are made of.
    return normalizers.Sequence([normalizers.Lowercase()] * tokens.lowercase + [normalizer]), pre_tokenizer


def _fit_bytes(tokens: Tokens, texts: Sequence[str], special: list[str]) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """Byte pairs (Sennrich et al. 2016, over bytes as in GPT-2); pairs seen fewer than `min_count` times stay apart."""
    trainer = trainers.BpeTrainer(
        vocab_size=tokens.size,
        min_frequency=tokens.min_count,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner = tokenizers.Tokenizer(models.BPE())
    learner.normalizer = normalizers.Sequence([normalizers.Lowercase()] * tokens.lowercase)
    # its pattern separates brackets from letters, so that no merge can spell <pad>
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(texts, trainer)
    inner = tokenizers.Tokenizer(learner.model)  # the learner itself would find special tokens in text
    inner.normalizer, inner.pre_tokenizer = learner.normalizer, learner.pre_tokenizer
    inner.decoder = decoders.ByteLevel()
    return inner, {"dropped": 0, "unknown_tokens": 0}


def _fingerprint(texts: Sequence[str]) -> str:
    """A hash of the texts, their order and their borders."""
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()
