"""A part from a user's file: attention fades with distance, at a rate that each head learns."""

import torch
from torch.nn.functional import softplus

try:
    from fairtrial.model.part import Part, parts

    register = parts.add
except ImportError:  # the public names, should the module be moved
    from fairtrial import Part
    from fairtrial import part as register


@register("golden-fade")
class Fade(Part):
    sees_order = relative = True

    def __init__(self, shape, *, initial: float = 0.1):
        super().__init__(shape)
        self.pace = torch.nn.Parameter(torch.full((shape.layers, shape.heads), initial))

    def score(self, scores, q, k, site):
        pace = softplus(self.pace[site.layer])[:, None, None]
        return scores - pace * site.distance
