"""The untrained twin: the network as it was before its first step, built again from recipe and seed."""

from __future__ import annotations

from fairtrial.kept import Kept
from fairtrial.look.maps import Network
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.revive import Revived
from fairtrial.train.bench import build_bench


def untrained_twin(revived: Revived) -> Network:
    """First weights have named dice, so the twin is the very network that training began with."""
    return build_bench(revived.recipe, revived.seed, revived.splits, revived.tokenizer).network.eval()


def twin_of_kept(kept: Kept, seed: int) -> Network:
    """The same where the data are gone: a network depends on its recipe, its vocabulary and its seed alone."""
    recipe, entries = kept.recipe, kept.tokenizer.size
    if isinstance(kept.network, LanguageModel):
        return LanguageModel(recipe.shape, recipe.parts, entries, seed=seed).eval()
    return Classifier(recipe.shape, recipe.parts, entries, len(kept.labels), seed=seed).eval()
