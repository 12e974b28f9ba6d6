"""Tokenizers: text to numbers and back. Fitted on given texts only, and saved as a tokenizer.json that others can read.

The special tokens are entries of the vocabulary, but never patterns that are looked for in text. So a text that spells
"<pad>" does not become padding: word splits it at its brackets, character and bpe spell it out, and whitespace
reads it as the word "\\<pad>". (`transformers` does look for the special tokens that it is told of.)
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# We fork worker processes and use the cores ourselves; the library's threads would deadlock or warn after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from fairtrial.data.words import splitting
from fairtrial.errors import BadInput, FairtrialError
from fairtrial.recipe import Tokens, one_of

PAD, UNKNOWN, START, STOP, MASK = "<pad>", "<unk>", "<start>", "<stop>", "<mask>"
KINDS = ("word", "character", "bpe", "whitespace")
FITS = {"train": "the training split only", "course": "both whole training files"}
NO_COURSE = (  # what is wrong, and what to do
    "tokens.fit = 'course' needs the course's folder (train_CLS.tsv and train_LM.txt)",
    "use --set tokens.fit=train, or give the course's folder",
)
BYTES = 256


@dataclass(frozen=True)
class Tokenizer:
    """A fitted tokenizer. Its `facts` have no place in tokenizer.json: keep them beside it, and load with them."""

    inner: tokenizers.Tokenizer
    facts: dict[str, Any] = field(default_factory=dict)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text: no padding, no truncation, no marks but those that a pretrained encoder expects.
        A text without tokens gives an empty list."""
        return [coded.ids for coded in self.inner.encode_batch_fast(list(texts), add_special_tokens=self.foreign)]

    def cut(self, ids: Sequence[int] | np.ndarray, length: int) -> list[int]:
        """At most `length` tokens; the closing mark that a pretrained encoder expects stays."""
        return list(ids[: length - 1]) + list(ids[-1:]) if self.foreign and len(ids) > length else list(ids[:length])

    def decode(self, ids: Iterable[int]) -> str:
        """The text, without padding and marks. Words are joined by spaces; character and bpe give the text back."""
        silent = (self.pad, self.start, self.stop)
        heard = [known for known in self._known(ids) if known not in silent]
        return str(self.inner.decode(heard, skip_special_tokens=False))

    def words(self, ids: Iterable[int]) -> list[str]:
        """Each token as text, for the axes of figures. Part of a letter's bytes is shown in the byte alphabet."""
        names = [(known, str(self.inner.id_to_token(known))) for known in self._known(ids)]
        if not isinstance(self.inner.model, models.BPE):
            return [name for _, name in names]
        texts = [(self.inner.decode([known], skip_special_tokens=False), name) for known, name in names]
        return [name if "\ufffd" in text else text for text, name in texts]

    def _known(self, ids: Iterable[int]) -> list[int]:
        numbers = [int(each) for each in ids]
        for number in numbers:
            if not 0 <= number < self.size:
                raise BadInput(f"token {number} is not in this vocabulary of {self.size} entries")
        return numbers

    @property
    def size(self) -> int:
        """Entries of the vocabulary, special tokens included."""
        return int(self.inner.get_vocab_size())

    @property
    def foreign(self) -> bool:
        """It came with a pretrained encoder, which wants its marks around every text."""
        return "special" in self.facts

    def _special(self, what: str, ours: str) -> int | None:
        name = self.facts["special"][what] if self.foreign else ours
        return None if name is None else self.inner.token_to_id(name)

    @property
    def pad(self) -> int:
        return self._special("pad", PAD) or 0

    @property
    def unknown(self) -> int | None:
        """None for bpe, to which no text is unknown."""
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

    @property
    def unknown_trained(self) -> bool:
        """Unknown occurred in the text that this was fitted on, so a model can learn what to expect of it."""
        if "unknown_trained" not in self.facts:
            raise FairtrialError(
                "this tokenizer came without the facts of its fitting, so nobody knows whether unknown was trained",
                "give the facts that were kept when it was fitted: Tokenizer.load(path, facts)",
            )
        return bool(self.facts["unknown_trained"])

    def to_json(self) -> str:
        """The content of a tokenizer.json."""
        return str(self.inner.to_str(pretty=True))

    def save(self, path: Path) -> None:
        path.write_text(self.to_json(), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: Path, facts: dict[str, Any] | None = None) -> Tokenizer:
        """Read a tokenizer.json that `save` wrote. `facts` are those of its fitting, where the caller kept them."""
        hint = "restore the file, or fit the tokenizer again"
        try:
            inner = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", hint, path=path) from error
        except Exception as error:  # the library raises bare Exception
            raise BadInput(f"is not a whole tokenizer.json ({error})", hint, path=path) from error
        found = cls(inner, dict(facts or {}))
        if not found.foreign and inner.token_to_id(PAD) != 0:
            raise BadInput(f"is not a tokenizer of ours: its entry 0 is not {PAD}", hint, path=path)
        return found


def fit(tokens: Tokens, texts: Sequence[str], *, marks: bool = False, mask: bool = False) -> Tokenizer:
    """Learn a vocabulary from these texts and no others. `marks` adds start and stop, `mask` one that hides a token."""
    one_of("tokens.kind", tokens.kind, KINDS)
    one_of("tokens.fit", tokens.fit, tuple(FITS))
    if tokens.min_count < 1:
        raise BadInput(f"tokens.min_count is {tokens.min_count}; it must be at least 1", "1 keeps every word")
    special = [PAD] + [UNKNOWN] * (tokens.kind != "bpe") + [START, STOP] * marks + [MASK] * mask
    least = len(special) + (BYTES if tokens.kind == "bpe" else 1)
    if tokens.size < least:
        raise BadInput(f"tokens.size is {tokens.size}; kind {tokens.kind!r} needs at least {least} entries")
    inner, found = _fit_bytes(tokens, texts, special) if tokens.kind == "bpe" else _fit_words(tokens, texts, special)
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


def _fit_words(tokens: Tokens, texts: Sequence[str], special: list[str]) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """The most frequent tokens, ties in the order of their spelling. The rest becomes unknown."""
    normalizer, pre_tokenizer = _cutting(tokens)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text)))
    if not counts:
        raise BadInput("the text to fit a tokenizer on has no tokens", "look at data.source and data.format")
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [word for word, count in ranked if count >= tokens.min_count][: tokens.size - len(special)]
    vocabulary = {word: number for number, word in enumerate([*special, *kept])}
    inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.normalizer, inner.pre_tokenizer = normalizer, pre_tokenizer
    if tokens.kind == "character":
        inner.decoder = decoders.Fuse()
    unknown = sum(counts.values()) - sum(counts[word] for word in kept)
    return inner, {"dropped": len(counts) - len(kept), "unknown_tokens": unknown}


def _cutting(tokens: Tokens) -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    normalizer: normalizers.Normalizer
    pre_tokenizer: pre_tokenizers.PreTokenizer
    if tokens.kind == "word":
        normalizer, pre_tokenizer = splitting()
    elif tokens.kind == "whitespace":
        spelled = "|".join(mark.strip("<>") for mark in (PAD, UNKNOWN, START, STOP, MASK))
        normalizer = normalizers.Replace(Regex(rf"(?<!\S)(?=<(?:{spelled})>(?!\S))"), "\\")
        pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        normalizer = normalizers.Sequence([])
        pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    # Lower case comes first, so that the rules see the text that the words will be made of.
    return normalizers.Sequence([normalizers.Lowercase()] * tokens.lowercase + [normalizer]), pre_tokenizer


def _fit_bytes(tokens: Tokens, texts: Sequence[str], special: list[str]) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """Byte pairs (Sennrich et al. 2016, over bytes as in GPT-2); pairs seen less than `min_count` times stay apart."""
    trainer = trainers.BpeTrainer(
        vocab_size=tokens.size,
        min_frequency=tokens.min_count,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner = tokenizers.Tokenizer(models.BPE())
    learner.normalizer = normalizers.Sequence([normalizers.Lowercase()] * tokens.lowercase)
    # Its pattern keeps brackets apart from letters, so that no merge can spell <pad>.
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(texts, trainer)
    inner = tokenizers.Tokenizer(learner.model)  # the learner itself would find special tokens in text
    inner.normalizer, inner.pre_tokenizer, inner.decoder = (
        learner.normalizer,
        learner.pre_tokenizer,
        decoders.ByteLevel(),
    )
    return inner, {"dropped": 0, "unknown_tokens": 0}


def _fingerprint(texts: Sequence[str]) -> str:
    """Of the texts, their order and where each ends."""
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()
