"""None: no positions at all. An encoder then reads a bag of words."""

from __future__ import annotations

from fairtrial.model.part import Part, parts


@parts.add("none")
class NoPositions(Part):
    pass
