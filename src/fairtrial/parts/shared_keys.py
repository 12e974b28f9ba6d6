"""Shared-keys: several heads of queries use the same keys and values, so that there are fewer weights and a cache is
smaller. `multi-query`: all of them (Shazeer 2019, https://arxiv.org/abs/1911.02150); `grouped-query`: groups of them
(Ainslie et al. 2023, https://arxiv.org/abs/2305.13245). Their first weights are those of the first head of each group.
With one head nothing changes."""

from __future__ import annotations

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, parts
from fairtrial.recipe import Shape


@parts.add("multi-query")
class MultiQuery(Part):
    """One head of keys and values serves all heads of queries (Shazeer 2019, https://arxiv.org/abs/1911.02150)."""

    def key_heads(self) -> int:
        return 1


@parts.add("grouped-query")
class GroupedQuery(Part):
    """Groups of heads share their keys and values (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245)."""

    def __init__(self, shape: Shape, *, groups: int | None = None) -> None:
        """`groups`: how many heads of keys and values there are; by default half as many as heads of queries."""
        super().__init__(shape)
        half = max(count for count in range(1, 1 + max(1, shape.heads // 2)) if shape.heads % count == 0)
        self.groups = half if groups is None else groups
        if self.groups < 1 or shape.heads % self.groups:
            what = f"grouped-query: groups must divide shape.heads = {shape.heads}, got {groups}"
            raise BadInput(what, f"groups = {half}")

    def key_heads(self) -> int:
        return self.groups
