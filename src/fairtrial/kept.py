"""What a record keeps of a trained model: its network and its tokenizer. The data of its training may be gone."""

from __future__ import annotations

from dataclasses import dataclass

from safetensors.torch import load

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.plugins import require_plugins
from fairtrial.recipe import Recipe
from fairtrial.record import Record
from fairtrial.training.checkpoint import put_weights


@dataclass(frozen=True)
class Kept:
    recipe: Recipe
    network: Classifier | LanguageModel
    tokenizer: Tokenizer
    labels: tuple[str, ...]  # of a classifier


def kept_classifier(record: Record) -> tuple[Kept, Classifier]:
    kept = kept_model(record, "classify")
    assert isinstance(kept.network, Classifier)
    return kept, kept.network


def kept_language_model(record: Record) -> tuple[Kept, LanguageModel]:
    kept = kept_model(record, "lm")
    assert isinstance(kept.network, LanguageModel)
    return kept, kept.network


def kept_model(record: Record, task: str) -> Kept:
    """The trained network and its tokenizer; a record of the other task is refused."""
    recipe, trial = record.recipe, record.trial
    if recipe.task != task:
        kinds = {"classify": "a classifier", "lm": "a language model", "mlm": "an encoder that guesses hidden words"}
        raise BadInput(f"{record.folder} is {kinds.get(recipe.task, recipe.task)}; this needs {kinds[task]}")
    checksum = record.result["model_sha256"]  # refuses a record that is not finished
    require_plugins(record)
    tokenizer = Tokenizer.load(record.folder / "tokenizer.json", trial["tokenizer"])
    labels = tuple(str(label) for label in trial["labels"])
    path = record.folder / "model.safetensors"
    if not path.is_file() or sha256_of(path) != checksum:
        raise BadInput("the weights are missing or damaged (their checksum differs)", path=path)
    network: Classifier | LanguageModel
    if task == "lm":
        network = LanguageModel(recipe.shape, recipe.parts, tokenizer.size, seed=trial["seed"])
    else:
        network = Classifier(recipe.shape, recipe.parts, tokenizer.size, len(labels), seed=trial["seed"])
    put_weights(network, load(path.read_bytes()))
    return Kept(recipe, network.eval(), tokenizer, labels)
