"""The tokenizer that an encoder was trained with, from tokenizer.json or from vocabulary files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from fairtrial.errors import BadInput
from fairtrial.text.tokenizer import Tokenizer

# what the families call our special tokens: the first of these that is in the vocabulary
SPECIAL = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "start": ("[CLS]", "<s>"),
    "stop": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


def read_tokenizer(folder: Path) -> Tokenizer:
    inner = _inner(folder)
    inner.no_padding()  # some are saved with a fixed length
    inner.no_truncation()
    vocabulary = inner.get_vocab()
    special = {what: next((name for name in names if name in vocabulary), None) for what, names in SPECIAL.items()}
    for what in ("pad", "start", "stop"):
        if special[what] is None:
            raise BadInput(f"the encoder's tokenizer has no {what} token", f"looked for {' or '.join(SPECIAL[what])}")
    facts: dict[str, Any] = {
        "kind": "encoder",
        "size": inner.get_vocab_size(),
        "special": special,
        "unknown_trained": True,
        "unknown_tokens": 0,
        "fitted_text": "the text that the encoder was pretrained on",
        "fitted_on": "the encoder's own",
    }
    return Tokenizer(inner, facts)


def _inner(folder: Path) -> tokenizers.Tokenizer:
    whole, words, pieces = folder / "tokenizer.json", folder / "vocab.txt", folder / "vocab.json"
    if whole.is_file():
        try:
            return tokenizers.Tokenizer.from_file(str(whole))
        except Exception as error:  # the library raises bare Exception
            raise BadInput(f"is not a whole tokenizer.json ({error})", path=whole) from error
    if words.is_file():
        return _word_pieces(words, _settings(folder))
    if pieces.is_file() and (folder / "merges.txt").is_file():
        return _byte_pairs(pieces, folder / "merges.txt")
    raise BadInput("it has no tokenizer", "it needs tokenizer.json, or vocab.txt, or vocab.json and merges.txt")


def _settings(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _word_pieces(path: Path, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    """BERT's: words in pieces, `##` before those inside a word."""
    # an entry may hold any sign but a line's end: str.splitlines would cut at rarer ones, and shift all that follow
    entries = [line.removesuffix("\r") for line in path.read_bytes().decode().split("\n")]
    entries = entries[:-1] if entries[-1] == "" else entries
    vocabulary = {word: number for number, word in enumerate(entries)}
    for mark in ("[UNK]", "[CLS]", "[SEP]"):
        if mark not in vocabulary:
            raise BadInput(f"has no entry {mark}", path=path)
    inner = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    lower = bool(settings.get("do_lower_case", True))
    inner.normalizer = normalizers.BertNormalizer(
        lowercase=lower, strip_accents=settings.get("strip_accents"), handle_chinese_chars=True
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    inner.decoder = decoders.WordPiece()
    return inner


def _byte_pairs(vocabulary: Path, merges: Path) -> tokenizers.Tokenizer:
    """RoBERTa's: GPT-2's byte pairs with <s> and </s> around a text."""
    try:
        model = models.BPE.from_file(str(vocabulary), str(merges))
    except Exception as error:  # the library raises bare Exception
        raise BadInput(f"is not a vocabulary of byte pairs ({error})", path=vocabulary) from error
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    start, stop = inner.token_to_id("<s>"), inner.token_to_id("</s>")
    if start is None or stop is None:
        raise BadInput("has no entries <s> and </s>", path=vocabulary)
    inner.post_processor = processors.RobertaProcessing(("</s>", stop), ("<s>", start), add_prefix_space=False)
    return inner
