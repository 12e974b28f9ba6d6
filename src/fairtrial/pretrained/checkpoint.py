"""A published checkpoint's folder: config.json, weights as safetensors, and the tokenizer. Nothing is unpickled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.pretrained.families import FAMILIES, Family, shape_of, to_ours
from fairtrial.pretrained.reading import read_tokenizer
from fairtrial.recipe import PartChoice, Shape
from fairtrial.text.tokenizer import Tokenizer

WEIGHTS = "model.safetensors"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """A published encoder, under our names."""

    shape: Shape
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    sha256: str
    parts: tuple[PartChoice, ...]


def read_checkpoint(folder: Path, shape: Shape) -> Checkpoint:
    """`shape` gives what a checkpoint does not know, such as dropout."""
    family, config = read_config(folder)
    path = folder / WEIGHTS
    if not path.is_file():
        refuse_pickles(folder)
        raise BadInput(f"{folder} has no {WEIGHTS}", "give the folder of a whole checkpoint")
    try:
        theirs = load(path.read_bytes())
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(f"not whole safetensors ({error})", "fetch the file again", path=path) from error
    try:
        shape = shape_of(family, config, shape)
        weights = to_ours(family, theirs, shape.layers)
        tokenizer = read_tokenizer(folder)
        refuse_other_sizes(config, shape, weights, tokenizer)
    except BadInput as error:
        raise BadInput(f"{folder}: {error.what}", error.hint) from error
    parts = (PartChoice(name="learned"), PartChoice(name=read_pool(folder)))
    return Checkpoint(shape, weights, tokenizer, sha256_of(path), parts)


def read_config(folder: Path) -> tuple[Family, dict[str, Any]]:
    path = folder / "config.json"
    hint = "an encoder is a folder with config.json, model.safetensors and tokenizer.json (or vocab files)"
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}", hint)
    if not path.exists():
        raise BadInput(f"{folder} has no config.json", hint)
    config = read_object(path, hint)
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise BadInput(f"model_type is {kind!r}; there is: {', '.join(FAMILIES)}", path=path)
    return FAMILIES[kind], config


def read_pool(folder: Path) -> str:
    """A sentence encoder tells how its sentence vectors were made when it was trained; others are read by their first
    token, as `transformers` does."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "pool-first"
    told = read_object(path, "delete the folder 1_Pooling, or restore it")
    modes = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max"}
    return "pool-" + next((pool for mode, pool in modes.items() if told.get(mode) is True), "first")


def read_object(path: Path, hint: str) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"cannot be read: {error}", hint, path=path) from error
    if not isinstance(told, dict):
        raise BadInput("is not a JSON object", hint, path=path)
    return told


def refuse_pickles(folder: Path) -> None:
    """A pickle may run anything when it is opened, so we never open one."""
    for name in PICKLES:
        if (folder / name).exists():
            command = (
                'python -c "from transformers import AutoModel; '
                f"AutoModel.from_pretrained('{folder}').save_pretrained('{folder}-safe')\""
            )
            hint = f"if you trust its author, convert it once: {command} ; and copy the tokenizer's files beside it"
            raise BadInput(f"{folder / name} is a pickle, which can run code when it is read; it is not opened", hint)


def refuse_other_sizes(config: dict[str, Any], shape: Shape, weights: dict[str, Tensor], tokenizer: Tokenizer) -> None:
    rows = weights["body.tokens.weight"].shape[0]
    if config.get("vocab_size") != rows:
        raise BadInput(f"config.json speaks of {config.get('vocab_size')} entries, the weights have {rows}")
    if tokenizer.size > rows:
        raise BadInput(
            f"the tokenizer has {tokenizer.size} entries, the weights have {rows}",
            "the tokenizer is of another encoder",
        )
    wanted = {
        "body.tokens.weight": (rows, shape.width),
        "body.parts.learned.table.weight": (shape.length, shape.width),
    }
    for layer in range(shape.layers):
        wanted[f"body.blocks.{layer}.attention.qkv.weight"] = (3 * shape.width, shape.width)
        wanted[f"body.blocks.{layer}.feed_forward.up.weight"] = (shape.hidden, shape.width)
        wanted[f"body.blocks.{layer}.feed_forward.down.weight"] = (shape.width, shape.hidden)
    for name, size in wanted.items():
        if tuple(weights[name].shape) != size:
            found = " x ".join(map(str, weights[name].shape))
            raise BadInput(f"{name} is {found} in the weights, {size[0]} x {size[1]} by config.json")
