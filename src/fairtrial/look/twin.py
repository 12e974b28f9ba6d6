"""The twin: the network as it was before its first step, built again from recipe and seed."""

from __future__ import annotations

from fairtrial.kept import Kept
from fairtrial.look.maps import Network
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.pretrained.encoder import fill, open_encoder
from fairtrial.revive import Revived
from fairtrial.train.bench import build_bench


def untrained_twin(revived: Revived) -> Network:
    """First weights have named dice, so the twin is the very network that training began with."""
    return build_bench(revived.recipe, revived.seed, revived.splits, revived.tokenizer).network.eval()


def before_training(revived: Revived) -> tuple[Network, str]:
    """The network that training began with, and what it was: untrained, or a pretrained encoder."""
    twin = untrained_twin(revived)
    encoder = open_encoder(revived.recipe)
    if encoder is None:
        return twin, "untrained"
    fill(twin, encoder)
    return twin, "pretrained"


def twin_of_kept(kept: Kept, seed: int) -> Network:
    """The untrained twin where the data are gone: it depends on recipe, vocabulary and seed alone."""
    recipe, entries = kept.recipe, kept.tokenizer.size
    if isinstance(kept.network, LanguageModel):
        return LanguageModel(recipe.shape, recipe.parts, entries, seed=seed).eval()
    return Classifier(recipe.shape, recipe.parts, entries, len(kept.labels), seed=seed).eval()
