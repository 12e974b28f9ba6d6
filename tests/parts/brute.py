"""Attention as plain Python loops, one query and one key at a time: slow, and hard to get wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fairtrial.model.attention import Attention

Scores = Callable[[int, int, Sequence[int], Tensor, Tensor], list[float]]  # head, query, keys, q, k [time each]


def dot_products(head: int, query: int, keys: Sequence[int], q: Tensor, k: Tensor) -> list[float]:
    return [float(q[query] @ k[key]) / math.sqrt(q.shape[-1]) for key in keys]


def softmax(head: int, scores: list[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


@torch.no_grad()
def looped_heads(
    attention: Attention,
    x: Tensor,
    lengths: list[int],
    causal: bool,
    sees: Callable[[int, int], bool] = lambda query, key: True,
    scores: Scores = dot_products,
    weigh: Callable[[int, list[float]], list[float]] = softmax,
    added: Callable[[int, int], Tensor | float] = lambda query, key: 0.0,
) -> list[list[list[Tensor]]]:
    """[batch time width] -> row, head, query -> [each]. As far as the part is concerned: `sees(query, key)`, may it?
    `scores` of some keys, `weigh` scores to weights, `added(query, key)` to a value."""
    answers = []
    for row, length in enumerate(lengths):
        q, k, v = attention.qkv(x[row]).chunk(3, -1)  # time width
        each = q.shape[-1] // attention.heads
        of_heads = []
        for head in range(attention.heads):
            own = slice(head * each, (head + 1) * each)
            of_queries = []
            for query in range(length):
                keys = [key for key in range(length) if sees(query, key) and not (causal and key > query)]
                weights = weigh(head, scores(head, query, keys, q[:, own], k[:, own]))
                summed = torch.zeros(each, dtype=x.dtype)
                for weight, key in zip(weights, keys, strict=True):
                    summed = summed + weight * (v[key, own] + added(query, key))
                of_queries.append(summed)
            of_heads.append(of_queries)
        answers.append(of_heads)
    return answers
