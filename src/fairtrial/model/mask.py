"""What parts say of a site whatever the content, and what may be seen, as one tensor that is added to scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fairtrial.model.part import Part, Site


def said_of(site: Site, parts: Sequence[Part]) -> tuple[list[Tensor], list[Tensor]]:
    """The biases [head query key], and what each part allows to be seen [query key]."""
    biases = [bias for bias in (part.bias(site) for part in parts) if bias is not None]
    return biases, [allowed for allowed in (part.allow(site) for part in parts) if allowed is not None]


def narrow(visible: Tensor | None, allowed: Sequence[Tensor]) -> Tensor | None:
    """What is left to see when every part has forbidden what it forbids."""
    for each in allowed:
        visible = each if visible is None else visible & each
    return visible


def add_up(biases: Sequence[Tensor], visible: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The biases together, minus infinity where nothing may be seen. Broadcasts over [batch head query key]."""
    if not biases:
        if visible is None:
            raise ValueError("nothing to add up")
        return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -math.inf)
    total = sum(biases[1:], biases[0])[None]
    return (total if visible is None else total.masked_fill(~visible, -math.inf)).to(dtype)
