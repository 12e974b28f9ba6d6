"""`ft.sanity_check`: a course's own model, right and wrong in one way at a time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairtrial as ft

WORDS = {word: number for number, word in enumerate("<pad> my fellow americans we gather here tonight".split())}
SENTENCES = ["my fellow americans", "we gather here tonight my fellow americans"]


class Course(nn.Module):
    """Two layers, two heads, as students write them: a list of maps [batch, heads, time, time] beside the output."""

    def __init__(self, fault: str = "", *, causal: bool = True, each_head: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fault, self.causal, self.each_head = fault, causal, each_head
        self.embed = nn.Embedding(len(WORDS), 8)
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        self.out = nn.Linear(8, len(WORDS))

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Any:
        x, maps = self.embed(ids), []
        time = ids.shape[1]
        for _ in range(2):
            query, key = (each(x).view(1, time, 2, 4).transpose(1, 2) for each in (self.query, self.key))
            scores = query @ key.mT / math.sqrt(4)
            if self.causal and self.fault != "future":
                scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -torch.inf)
            if not self.causal and self.fault != "padding":
                scores = scores.masked_fill((ids == 0)[:, None, None], -torch.inf)
            weights = scores.softmax(-2 if self.fault == "rows" else -1).nan_to_num()
            x = x + (weights @ x.view(1, time, 2, 4).transpose(1, 2)).transpose(1, 2).reshape(1, time, 8)
            maps += [weights[:, 0], weights[:, 1]] if self.each_head else [weights]
        if self.fault == "hidden future":
            x = x + x.mean(1, keepdim=True)
        return (self.out(x), maps) if self.causal else {"logits": self.out(x.mean(1)), "attention": tuple(maps)}


@pytest.mark.parametrize("each_head", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_a_sound_model_passes(causal: bool, each_head: bool) -> None:
    check = ft.sanity_check(Course(causal=causal, each_head=each_head), WORDS, SENTENCES, length=9)
    assert check.passed, check.problems
    assert (
        str(check).splitlines()[0].startswith(f"4 attention maps of {'a decoder' if causal else 'a model that sees'}")
    )


@pytest.mark.parametrize(
    ("fault", "causal", "said"),
    [
        ("rows", True, "Rows do not sum to 1"),
        ("future", True, "Attention sees the future"),
        ("hidden future", True, "Outputs depend on the future"),
        ("padding", False, "Words attend to padding"),
    ],
)
def test_each_fault_is_named(fault: str, causal: bool, said: str) -> None:
    check = ft.sanity_check(Course(fault, causal=causal), WORDS, SENTENCES, length=9, causal=causal)
    assert any(said in problem for problem in check.problems), check.problems


def test_all_layers_and_heads_are_drawn_with_their_words() -> None:
    figure = ft.sanity_check(Course(), WORDS, SENTENCES, length=9).plot()
    titled = [axes for axes in figure.axes if axes.get_title()]
    assert len(titled) == 2 * 4
    labels = [label.get_text() for label in titled[-1].get_yticklabels()]
    assert labels == SENTENCES[1].split()


def test_a_long_sentence_is_cut_and_tokenizers_of_any_kind_do() -> None:
    class Tokenizer:
        def encode(self, text: str) -> list[int]:
            return [WORDS[word] for word in text.split()]

        def decode(self, ids: list[int]) -> str:
            return " ".join(list(WORDS)[id_] for id_ in ids)

    for tokenizer in (Tokenizer(), Tokenizer().encode, WORDS):
        check = ft.sanity_check(Course(), tokenizer, SENTENCES[1], length=5)
        assert check.sentences[0].words == ("we", "gather", "here", "tonight", "my")
        assert check.sentences[0].padded is None


def test_a_model_without_maps_and_a_sentence_without_words_are_refused() -> None:
    with pytest.raises(ft.BadInput, match="returns no attention maps"):
        ft.sanity_check(nn.Embedding(8, 4), WORDS, "my fellow")
    with pytest.raises(ft.BadInput, match="returns no tokens for"):
        ft.sanity_check(Course(), WORDS, "")
