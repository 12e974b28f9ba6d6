"""A record's network and tokenizer, as they were kept. Weights are checked by their sha256 and never unpickled."""

from __future__ import annotations

from dataclasses import dataclass

from safetensors.torch import load

from fairtrial.data.corpus import Splits
from fairtrial.data.readers import read
from fairtrial.data.splits import kind_in_use, shape_documents, split
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.plugins import require_plugins
from fairtrial.recipe import Recipe
from fairtrial.record import Record
from fairtrial.training.checkpoint import put_weights
from fairtrial.training.tasks import Task, build_task


@dataclass(frozen=True)
class Revived:
    recipe: Recipe
    bench: Task  # its network holds the kept weights; its sets the data
    tokenizer: Tokenizer
    splits: Splits
    seed: int  # its untrained twin is built again from recipe and seed


def revive(record: Record) -> Revived:
    """The trained network on its bench, with the data that it was trained and tested on."""
    recipe, trial, result = record.recipe, record.trial, record.result
    require_plugins(record)
    corpus = read(recipe.data, recipe.task)
    if corpus.files != trial["data"]:
        raise BadInput(f"the data have changed since {record.folder} was trained", "restore them, or train anew")
    splits = split(shape_documents(corpus, kind_in_use(recipe.tokens, trial["tokenizer"])), recipe.data, trial["seed"])
    tokenizer = Tokenizer.load(record.folder / "tokenizer.json", trial["tokenizer"])
    bench = build_task(recipe, trial["seed"], splits, tokenizer)
    path = record.folder / "model.safetensors"
    if not path.is_file() or sha256_of(path) != result["model_sha256"]:
        raise BadInput("the weights are missing or damaged (their checksum differs)", path=path)
    put_weights(bench.network, load(path.read_bytes()))
    bench.network.eval()
    return Revived(recipe, bench, tokenizer, splits, trial["seed"])
