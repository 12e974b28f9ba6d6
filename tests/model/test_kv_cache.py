"""Decoding token by token with a cache gives what decoding all at once gives."""

from __future__ import annotations

import pytest
import torch
from networks import decoder, some_tokens
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.attention import KVCache
from fairtrial.model.layers import capture
from fairtrial.model.network import LanguageModel
from sampling import sample

LAYERS = 2


def in_pieces(network: LanguageModel, ids: Tensor, pieces: list[int]) -> Tensor:
    cache = KVCache(LAYERS)
    answers = [network(piece, cache=cache) for piece in ids.split(pieces, dim=1)]
    assert cache.length == ids.shape[1]
    return torch.cat(answers, 1)


@pytest.mark.usefixtures("plugins")
@sample(
    12,
    names=(("learned",), ("none",), ("slope",), ("learned", "past"), ("slope", "past")),
    pieces=([1] * 10, [3, 1, 4, 2], [1, 9], [9, 1], [10]),
    captured=(False, True),
)
def test_decoding_in_pieces_equals_decoding_at_once(names: tuple[str, ...], pieces: list[int], captured: bool) -> None:
    network, ids = decoder(*names), some_tokens(3, 10)
    if captured:
        with capture(network) as seen:
            answer = in_pieces(network, ids, pieces)
        assert seen["body.blocks.0.attention.maps"].shape == (3, 2, pieces[-1], 10)
    else:
        answer = in_pieces(network, ids, pieces)
    torch.testing.assert_close(answer, network(ids), atol=1e-12, rtol=1e-12)


def test_what_the_cache_holds_is_what_makes_them_equal() -> None:
    network, ids = decoder("learned"), some_tokens(3, 10)
    cache = KVCache(LAYERS)
    network(ids[:, :5], cache=cache)
    forgetful = KVCache(LAYERS)
    forgetful.length = 5  # knows how far it is, but not what was said
    forgetful.buffers = [buffer * 0 for buffer in cache.buffers]
    difference = network(ids[:, 5:], cache=forgetful) - network(ids[:, 5:], cache=cache)
    assert difference.abs().max() > 1e-3


@pytest.mark.parametrize("lengths", [[4, 2], [4, 4]])
def test_cached_decoding_refuses_lengths(lengths: list[int]) -> None:
    """Full rows too: a layout made from lengths begins at position 0, wherever the cache stands."""
    network, ids = decoder("learned"), some_tokens(2, 4)
    with pytest.raises(BadInput, match="equal length"):
        network(ids, torch.tensor(lengths), cache=KVCache(LAYERS))
