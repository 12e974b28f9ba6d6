"""A check for a course's own model: all of its attention maps with token labels, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairtrial.description import AttentionMap, Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import few_digits
from fairtrial.results.sentences import counted

CLOSE = 1e-4  # rounding of float32 sums
HINT = "a model returns attention maps of the shape [batch, heads, time, time], in a list for its layers"

Map = tuple[str, np.ndarray]  # its name, and weights [query key]


@dataclass(frozen=True)
class Looked:
    """One sentence in a model."""

    words: tuple[str, ...]
    maps: tuple[Map, ...]
    rows_off: float  # how far a row's sum is from 1
    ahead: float  # the most weight on a later token
    leaked: float | None  # how much outputs change when the last token does; None: there is no output for each token
    padded: float | None  # the most weight of a word on padding; None: it cannot be padded


@dataclass(frozen=True, repr=False)
class SanityCheck(Result):
    """What a model's attention maps show of each sentence: `.plot()` draws every layer and head.

    >>> encode = {"a": 1, "warm": 2, "film": 3}
    >>> check = ft.sanity_check(language_model.network.body, encode, ["a warm film"])
    Traceback (most recent call last):
    ...
    fairtrial.errors.BadInput: the model returns no attention maps
      a model returns attention maps of the shape [batch, heads, time, time], in a list for its layers
    """

    sentences: tuple[Looked, ...]
    causal: bool | None

    @property
    def problems(self) -> list[str]:
        """What is wrong, one sentence each; empty: nothing was found."""
        worst = max(each.rows_off for each in self.sentences)
        ahead = max(each.ahead for each in self.sentences)
        leaked = max((each.leaked for each in self.sentences if each.leaked is not None), default=0.0)
        padded = max((each.padded for each in self.sentences if each.padded is not None), default=0.0)
        problems = []
        if worst > CLOSE:
            problems.append(f"Rows do not sum to 1: one is off by {few_digits(worst)}.")
        if self.causal and ahead > CLOSE:
            size = few_digits(100 * ahead)
            problems.append(f"Attention sees the future: up to {size}% of a word's attention is on later words.")
        if self.causal and leaked > CLOSE:
            size = few_digits(leaked)
            problems.append(f"Outputs depend on the future: changing the last word moves earlier ones by {size}.")
        if padded > CLOSE:
            problems.append(f"Words attend to padding: up to {few_digits(100 * padded)}% of a word's attention.")
        return problems

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def describe(self) -> Description:
        kind = {True: "a decoder", False: "an encoder", None: "a model that sees both sides"}[self.causal]
        padded = any(each.padded is not None for each in self.sentences)
        checked = ["rows sum to 1", *["no word sees a later one"] * bool(self.causal), *["padding is ignored"] * padded]
        maps = counted(len(self.sentences[0].maps), "attention map")
        good = f"{maps} of {kind}: {', '.join(checked)}."
        lines = [f"{maps} of {kind}: {counted(len(self.problems), 'problem')}.", *self.problems]
        sections = []
        for each in self.sentences:
            rows, charts = [], []
            for name, weights in each.maps:
                received = weights.mean(0)
                most = int(received.argmax())
                rows.append(row(name, each.words[most], f"{received[most]:.0%}"))
                charts.append(AttentionMap(name, each.words, weights.tolist()))
            table = Table("", ("map", "most attended", "its share"), tuple(rows), text_columns=2)
            sections.append(Description((), [table], " ".join(each.words), charts))
        return Description(lines if self.problems else [good], sections=sections)

    def rows(self) -> list[dict[str, object]]:
        """One for each map and word: which word gets most of its attention."""
        return [
            {"sentence": number, "map": name, "word": word, "most attended": each.words[int(weights[place].argmax())]}
            for number, each in enumerate(self.sentences)
            for name, weights in each.maps
            for place, word in enumerate(each.words)
        ]


def sanity_check(
    model: nn.Module,
    tokenizer: Any,
    sentences: str | Sequence[str],
    *,
    length: int | None = None,
    causal: bool | None = None,
    pad: int = 0,
) -> SanityCheck:
    """Check a PyTorch model that returns attention maps, and plot all of its layers and heads with token labels.

    Rows must sum to 1, a decoder must not see later words, and no word may attend to padding.

    Args:
        model: Called with ids [1, time]. Attention maps are found anywhere in what it returns.
        tokenizer: Has `encode(text)`, or is a function or a dict from words to ids. Labels come from `decode([id])`.
        sentences: One sentence or several.
        length: The block size. Longer sentences are cut, and shorter ones are also tried with padding.
        causal: True for a decoder, False for an encoder. Default: a decoder, if no word attends to a later one.
        pad: The id of padding.

    >>> from torch import nn
    >>> class Tiny(nn.Module):
    ...     def forward(self, ids):
    ...         return None, [(ids[:, None, :] >= 0).float()[:, None].expand(-1, 2, ids.shape[1], -1) / ids.shape[1]]
    >>> check = ft.sanity_check(Tiny(), {"a": 1, "warm": 2, "film": 3}, "a warm film", length=4)
    >>> print(check.describe().sentences[1])
    Words attend to padding: up to 25% of a word's attention.
    """
    texts = [sentences] if isinstance(sentences, str) else list(sentences)
    encode, word = tokenizer_of(tokenizer)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            looked = tuple(look_at(model, *tokens_of(text, encode, word, length), length, pad) for text in texts)
    finally:
        model.train(was_training)
    if not looked:
        raise BadInput("no sentence was given")
    if causal is None and all(each.ahead <= CLOSE for each in looked):
        causal = True
    return SanityCheck(looked, causal)


def tokenizer_of(tokenizer: Any) -> tuple[Callable[[str], Sequence[int]], Callable[[int], str] | None]:
    """How to encode a text, and how to name an id (None: by the words of the text)."""
    if isinstance(tokenizer, Mapping):
        words = {number: word for word, number in tokenizer.items()}
        unknown = next((tokenizer[name] for name in ("<unk>", "[UNK]", "UNK") if name in tokenizer), 0)
        return lambda text: [tokenizer.get(word, unknown) for word in text.split()], lambda id_: words.get(id_, "?")
    encode = getattr(tokenizer, "encode", tokenizer if callable(tokenizer) else None)
    if encode is None:
        raise BadInput(
            "the tokenizer has no encode(text)", "give a tokenizer with encode(text), a function, or a dict of words"
        )
    decode = getattr(tokenizer, "decode", None)
    return encode, None if decode is None else lambda id_: str(decode([id_]))


def tokens_of(
    text: str, encode: Callable[[str], Any], word: Callable[[int], str] | None, length: int | None
) -> tuple[list[int], tuple[str, ...]]:
    coded = encode(text)
    ids = [int(id_) for id_ in getattr(coded, "ids", coded)][:length]
    if not ids:
        raise BadInput(f"the tokenizer returns no tokens for {text!r}")
    named = tuple(text.split()[: len(ids)]) if word is None else tuple(word(id_) for id_ in ids)
    return ids, named if len(named) == len(ids) else tuple(map(str, ids))


def look_at(model: nn.Module, ids: list[int], words: tuple[str, ...], length: int | None, pad: int) -> Looked:
    time = len(ids)
    maps, outputs = call(model, ids)
    if not maps:
        raise BadInput("the model returns no attention maps", HINT)
    stacked = np.stack([weights for _, weights in maps])
    leaked = padded = None
    if outputs is not None and time > 1:
        _, changed = call(model, [*ids[:-1], ids[0] if ids[0] != ids[-1] else pad])
        assert changed is not None
        leaked = float((outputs[:-1] - changed[:-1]).abs().max())
    if length is not None and time < length:
        filled, _ = call(model, [*ids, *[pad] * (length - time)])
        padded = float(np.stack([weights[:time, time:].sum(-1) for _, weights in filled]).max())
    ahead = float(np.triu(stacked, 1).max())
    return Looked(words, tuple(maps), float(abs(stacked.sum(-1) - 1).max()), ahead, leaked, padded)


def call(model: nn.Module, ids: list[int]) -> tuple[list[Map], Tensor | None]:
    """Its maps, and outputs for each token [time, features], if it has any."""
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    time, layer = len(ids), 0
    maps: list[Map] = []
    outputs = None
    for each in tensors_in(model(torch.tensor([ids], device=device))):
        square = each.shape[-2:] == (time, time) and bool((each >= 0).all())  # logits may be negative
        if each.dim() in (3, 4) and square:
            heads = each.reshape(-1, time, time).float().cpu().numpy()
            maps += [(f"layer {layer}, head {head}", weights) for head, weights in enumerate(heads)]
            layer += 1
        elif outputs is None and each.dim() == 3 and each.shape[:2] == (1, time):
            outputs = each[0]
    return maps, outputs


def tensors_in(value: Any) -> Iterator[Tensor]:
    """In the order in which they are returned, from tuples, lists, dicts and objects with fields."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)
