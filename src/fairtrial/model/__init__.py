"""The transformer: the seam for parts, attention, blocks, networks and their loss."""

from fairtrial.model.attention import Attention, Layout, View
from fairtrial.model.layers import watch
from fairtrial.model.network import LanguageModel, count_parameters
from fairtrial.model.part import Part, Site, concatenate, parts

__all__ = [
    "Attention", "LanguageModel", "Layout", "Part", "Site", "View", "concatenate", "count_parameters", "parts", "watch",
]  # fmt: skip
