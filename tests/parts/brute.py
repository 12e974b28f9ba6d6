"""Attention as plain Python loops, one query and one key at a time: slow, and hard to get wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from fairtrial.model.attention import Attention


@torch.no_grad()
def looped_heads(
    attention: Attention, x: Tensor, lengths: list[int], causal: bool, sees: Callable[[int, int], bool]
) -> list[list[list[Tensor]]]:
    """[batch time width] -> row, head, query -> [each]. `sees(query, key)`: may it, as far as the part is concerned?"""
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
                powers = [math.exp(float(q[query, own] @ k[key, own]) / math.sqrt(each)) for key in keys]
                total = sum(powers)
                of_queries.append(
                    sum(
                        (power / total * v[key, own] for power, key in zip(powers, keys, strict=True)),
                        torch.zeros(each),
                    )
                )
            of_heads.append(of_queries)
        answers.append(of_heads)
    return answers
