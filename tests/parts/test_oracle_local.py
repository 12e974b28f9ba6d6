"""Window and block show what loops over every query and key say, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from brute import looped_heads

from fairtrial.errors import BadInput
from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.part import AttentionContext, Part
from fairtrial.parts.block import Blocks
from fairtrial.parts.window import Window
from fairtrial.recipe import Shape
from sampling import cases, sample

SHAPE = Shape(width=12, heads=2, layers=1, qkv_bias=True, start="torch")
SIZES, GLOBAL = (1, 2, 3, 4, 8, 40), (0, 1, 3)
BLOCKS = [1, 2, 3, 8, 40]


def in_window(query: int, key: int, size: int, first: int, causal: bool) -> bool:
    """Size 4 in a decoder: itself and the 3 before; in an encoder: 2 on each side. First tokens see and are seen."""
    if query < first or key < first:
        return True
    return query - size < key <= query if causal else query - size // 2 <= key <= query + size // 2


@sample(18, size=SIZES, first=GLOBAL, causal=(True, False), begin=(0, 17))
def test_a_window_allows_what_a_loop_says(size: int, first: int, causal: bool, begin: int) -> None:
    part = Window(SHAPE, size=size, global_tokens=first)
    allowed = part.allow(AttentionContext(0, causal, torch.arange(begin, 20), torch.arange(20)))
    for query in range(begin, 20):
        for key in range(query + 1 if causal else 20):  # a decoder's future is attention's business
            assert bool(allowed[query - begin, key]) == in_window(query, key, size, first, causal)


@cases("size", [1, 2, 3, 8])
def test_a_window_shows_exactly_its_size(size: int) -> None:
    """Not one too many: a decoder's token sees `size` tokens, an encoder's `size // 2` on each side and itself."""
    part, place = Window(SHAPE, size=size), torch.arange(30)
    back = part.allow(AttentionContext(0, True, place, place)) & (place <= place[:, None])
    both = part.allow(AttentionContext(0, False, place, place))
    assert set(back[size:].sum(1).tolist()) == {size}
    assert set(both[size:-size].sum(1).tolist()) == {2 * (size // 2) + 1}


@sample(14, size=SIZES, first=GLOBAL, causal=(True, False))
def test_a_windows_extent_is_the_furthest_that_it_allows(size: int, first: int, causal: bool) -> None:
    part, place = Window(SHAPE, size=size, global_tokens=first), torch.arange(100)
    reach = part.window(causal)
    if first:
        assert reach is None
        return
    context = AttentionContext(0, causal, place, place)
    seen = part.allow(context) & ((context.offset >= 0) if causal else True)
    assert reach == (int(context.offset[seen].max()), int(-context.offset[seen].min()))


@sample(8, size=BLOCKS, causal=(True, False), begin=(0, 17))
def test_a_block_allows_what_a_loop_says(size: int, causal: bool, begin: int) -> None:
    allowed = Blocks(SHAPE, size=size).allow(AttentionContext(0, causal, torch.arange(begin, 20), torch.arange(20)))
    for query in range(begin, 20):
        for key in range(20):
            assert bool(allowed[query - begin, key]) == (query // size == key // size)


def local_parts(causal: bool) -> list[tuple[Part, Callable[[int, int], bool]]]:
    windows = [
        (
            Window(SHAPE, size=size, global_tokens=first),
            lambda query, key, size=size, first=first: in_window(query, key, size, first, causal),
        )
        for size, first in ((1, 0), (4, 0), (5, 0), (4, 2), (40, 0))
    ]
    blocks = [(Blocks(SHAPE, size=size), lambda query, key, size=size: query // size == key // size) for size in (1, 4)]
    return [*windows, *blocks]


@sample(14, number=range(7), causal=(True, False), captured=(True, False))
@torch.no_grad()
def test_attention_with_it_equals_loops(number: int, causal: bool, captured: bool) -> None:
    """Padded rows too, the eager way and the fast one."""
    part, sees = local_parts(causal)[number]
    torch.manual_seed(0)
    attention, time, lengths = Attention(replace(SHAPE), 0), 14, [14, 9, 1]
    x = torch.randn(3, time, SHAPE.width) * 2
    layout = Layout.ragged(torch.tensor(lengths), time)
    if captured:
        attention.maps.on_capture = lambda maps: None
    found = layout.unpack(attention(layout.pack(x), ForwardContext(layout, causal, 0, x.dtype), [part]))
    heads = looped_heads(attention, x, lengths, causal, sees)
    everything = looped_heads(attention, x, lengths, causal, lambda query, key: True)
    most = 0.0
    for row, length in enumerate(lengths):
        for query in range(length):
            joined, whole = (torch.cat([head[query] for head in of[row]]) for of in (heads, everything))
            torch.testing.assert_close(found[row, query], attention.out(joined), atol=1e-5, rtol=1e-5)
            most = max(most, float((joined - whole).abs().max()))
    assert (most > 1e-3) == (getattr(part, "size", 0) < 40)  # a window wider than the text hides nothing


@cases("options", [{"size": 0}, {"size": -3}, {"size": 4, "global_tokens": -1}])
def test_windows_that_show_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="must be"):
        Window(SHAPE, **options)


def test_blocks_without_a_size_are_refused() -> None:
    with pytest.raises(BadInput, match="size must be"):
        Blocks(SHAPE, size=0)
