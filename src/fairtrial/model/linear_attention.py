"""Attention by products of positive features, at a cost of length x features: sums over keys are carried along the text
instead of being made anew for every query (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

LINEAR_FROM = 256  # shorter texts are faster in one piece
CHUNK = 64  # queries that meet their own chunk's keys one by one, and the sums of all earlier chunks


def positive_products(q: Tensor, k: Tensor) -> Tensor:
    """[batch head query key], never zero, so that a logarithm is finite."""
    return (q @ k.transpose(-2, -1)).clamp(min=torch.finfo(q.dtype).tiny)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, real: Tensor | None) -> Tensor:
    """Features of queries and keys [batch head time n], values, which tokens are real [batch time] -> head outputs."""
    if real is not None:
        k = k * real[:, None, :, None]
    v = pad(v, (0, 1), value=1.0)  # the last column sums the weights
    summed = causal_sums(q, k, v) if causal else q @ (k.transpose(-2, -1) @ v)
    total = summed[..., -1:].clamp(min=torch.finfo(q.dtype).tiny)
    return summed[..., :-1] / total


def causal_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """For each query the sum over keys up to it of (q k) v. [batch head time ...]"""
    time = q.shape[2]
    chunks = [pad(x, (0, 0, 0, -time % CHUNK)).unflatten(2, (-1, CHUNK)) for x in (q, k, v)]
    q, k, v = chunks  # batch head chunk time ...
    own = (q @ k.transpose(-2, -1)).tril() @ v
    sums = (k.transpose(-2, -1) @ v).cumsum(2)  # of this chunk and all before it
    earlier = pad(sums[:, :, :-1], (0, 0, 0, 0, 1, 0))
    return (own + q @ earlier).flatten(2, 3)[:, :, :time]
