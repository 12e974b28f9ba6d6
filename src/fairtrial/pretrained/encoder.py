"""An encoder to start from: a published checkpoint, `minilm`, or one of our own records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load
from torch import nn

from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.pretrained.checkpoint import Checkpoint, read_checkpoint
from fairtrial.pretrained.minilm import find_minilm
from fairtrial.recipe import Recipe, Shape
from fairtrial.record import Record
from fairtrial.text.tokenizer import Tokenizer

NONE, POOL = "none", "pool-"
# what weights decide; the rest of a shape is the recipe's own
WRITTEN = "layers heads width length hidden activation norm norm_place norm_epsilon qkv_bias".split()
OUTPUT = ("tied", "output_bias")  # of a language model
STARTS = {"classify": ("classify", "mlm"), "lm": ("lm",)}  # task -> what a record that it starts from was trained for


def open_encoder(recipe: Recipe) -> Checkpoint | None:
    """The encoder that a recipe starts from, or None."""
    source = recipe.encoder.source
    if source == NONE:
        return None
    if recipe.task not in STARTS:
        raise BadInput(f"an encoder is no start for the task {recipe.task!r}", "use it with task = 'classify'")
    folder = find_minilm() if source == "minilm" else Path(source)
    if (folder / "trial.json").is_file():
        found = read_record(folder, recipe.shape, recipe.task)
    elif recipe.task == "classify":
        found = read_checkpoint(folder, recipe.shape)
    else:
        raise BadInput(f"{source} is no record; a language model starts from one", "train one: fairtrial train lm")
    known = recipe.encoder.sha256
    if known not in (NONE, found.sha256):
        raise BadInput(f"the encoder {source} has changed since this recipe was resolved", "restore its weights")
    return found


def read_record(folder: Path, shape: Shape, task: str = "classify") -> Checkpoint:
    """A classifier or masked language model that fairtrial trained; for a language model, another one."""
    record = Record.open(folder)
    recipe, result = record.recipe, record.result
    if recipe.task not in STARTS[task]:
        what = "encoder" if task == "classify" else "language model"
        hint = f"pretrain one: fairtrial train {STARTS[task][-1]}"
        raise BadInput(f"{folder} is no {what}: its task is {recipe.task!r}", hint)
    path = folder / "model.safetensors"
    if not path.is_file() or sha256_of(path) != result["model_sha256"]:
        raise BadInput("the weights are missing or damaged (their checksum differs)", path=path)
    kept = ("body.", "out.") if task == "lm" else ("body.",)  # a classifier's own layers know other labels
    weights = {name: tensor for name, tensor in load(path.read_bytes()).items() if name.startswith(kept)}
    tokenizer = Tokenizer.load(folder / "tokenizer.json", record.trial["tokenizer"])
    written = {name: getattr(recipe.shape, name) for name in (*WRITTEN, *(OUTPUT if task == "lm" else ()))}
    return Checkpoint(replace(shape, **written), weights, tokenizer, result["model_sha256"], recipe.parts)


def with_encoder(recipe: Recipe, encoder: Checkpoint | None) -> Recipe:
    """The recipe with the encoder's shape and parts. A pool that the recipe names stays."""
    if encoder is None or recipe.encoder.sha256 != NONE:
        return recipe
    source = recipe.encoder.source
    if Path(source).exists():
        source = str(Path(source).resolve())
    pools = tuple(choice for choice in recipe.parts if choice.name.startswith(POOL))
    kept = tuple(choice for choice in encoder.parts if not (pools and choice.name.startswith(POOL)))
    return replace(
        recipe,
        shape=encoder.shape,
        parts=(*kept, *pools),
        tokens=replace(recipe.tokens, kind="encoder"),
        encoder=replace(recipe.encoder, source=source, sha256=encoder.sha256),
    )


@torch.no_grad()
def fill(network: nn.Module, encoder: Checkpoint) -> list[str]:
    """Put the encoder's weights into a fresh network. The classifier's own layers are taken where they fit, as
    `transformers` does; gives the names of those that stay fresh."""
    fresh = []
    for name, parameter in network.named_parameters():
        given = encoder.weights.get(name)
        if given is None or given.shape != parameter.shape:
            if name.startswith("body.") and not name.startswith(f"body.parts.{POOL}"):
                raise BadInput(f"the encoder has no weight {name} of size {tuple(parameter.shape)}")
            fresh.append(name)
            continue
        parameter.copy_(given)
    for name, buffer in network.named_buffers():  # what a part drew once, such as an order of heads
        kept = encoder.weights.get(name)
        if name.startswith("body.") and kept is not None and kept.shape == buffer.shape:
            buffer.copy_(kept)
    return fresh
