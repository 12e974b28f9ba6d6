"""The untrained twin: the network as it was before its first step, built again from recipe and seed."""

from __future__ import annotations

from fairtrial.look.maps import Network
from fairtrial.revive import Revived
from fairtrial.train.bench import build_bench


def untrained_twin(revived: Revived) -> Network:
    """First weights have named dice, so the twin is the very network that training began with."""
    return build_bench(revived.recipe, revived.seed, revived.splits, revived.tokenizer).network.eval()
