"""An answer run through fairtrial's own attention, the one that networks train with."""

from __future__ import annotations

import math

import numpy as np
import torch

from fairtrial.model.attention import Attention, View
from fairtrial.model.layout import Layout
from fairtrial.model.part import Site
from fairtrial.puzzles.frame import Array
from fairtrial.recipe import Shape


def attention_weights(keys: Array, queries: Array, scaled: bool) -> Array:
    """Keys [key width], queries [query width] -> weights [query key]"""
    return attention_of_many(keys[None], queries[None], scaled)[0]


def attention_of_many(keys: Array, queries: Array, scaled: bool) -> Array:
    """Many puzzles of one shape at once: keys [puzzle key width], queries [puzzle query width] -> [puzzle query key]"""
    puzzles, count, width = keys.shape
    # our attention always divides by sqrt(width); a puzzle without it asks with a longer query
    asked = queries if scaled else queries * math.sqrt(width)
    q, k = (torch.from_numpy(np.ascontiguousarray(each))[:, None] for each in (asked, keys))  # batch head time each
    view = View.of(Layout.full(puzzles, count), causal=False, past=0, dtype=q.dtype)
    site = Site(0, False, torch.arange(queries.shape[1]), view.keys)
    with torch.random.fork_rng(devices=[]):
        attention = Attention(Shape(layers=1, heads=1, width=width), layer=0)
    values = torch.eye(count, dtype=q.dtype).expand(puzzles, 1, count, count)  # so that what comes out is the weights
    with torch.no_grad():
        return attention.attend(q, k, values, view, site, [])[:, 0].numpy()
