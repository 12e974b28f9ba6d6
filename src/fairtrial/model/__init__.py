"""The transformer: the seam for parts, attention, blocks, networks and their loss."""

from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.layers import capture
from fairtrial.model.network import LanguageModel, count_parameters
from fairtrial.model.part import AttentionContext, Part, Site, concatenate, parts

__all__ = [
    "Attention",
    "AttentionContext",
    "ForwardContext",
    "LanguageModel",
    "Layout",
    "Part",
    "Site",
    "capture",
    "concatenate",
    "count_parameters",
    "parts",
]
