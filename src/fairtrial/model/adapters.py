"""Networks of Hugging Face that need no code: `hf:CLASS`, with random first weights. They take the recipe's shape;
options are fields of their configuration."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import nn

from fairtrial.errors import BadInput
from fairtrial.model.external import BUILD, Builder, ExternalModel, build_external, format_error, models
from fairtrial.recipe import PartChoice, Shape
from fairtrial.registry import did_you_mean

LIBRARY = "hf:"  # what the names of their classes begin with
CHUNKS = ("chunk_size", "mamba_chunk_size", "sliding_window", "attention_window", "window_size", "block_size")
HEADS = {"lm": "ForCausalLM", "classify": "ForSequenceClassification"}
# what some families need to be told of, or are asked wrongly for: the beginning of a class's name -> declarations
DECLARED: dict[str, dict[str, object]] = {
    "Rwkv": {"cache": "state"},
    "RecurrentGemma": {"cache": "none"},  # it takes one and gives none: its state is inside its layers
    "XLMWith": {"cache": "none"},  # what it calls so is filled by its caller
    "Canine": {"shortest": 4},
    "Funnel": {"shortest": 8},
    "MobileBert": {"pad": 0},  # its trigrams read the padding, whose vector is zero
    "XLM": {"pad": 0},  # texts end where its id begins
    "Flaubert": {"pad": 0},
    "XLNetForSequenceClassification": {"pads": "left"},  # it answers at the last position
}

TOKENS = {"pad_token_id": 0, "pad_index": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
CORE = {  # set whatever the default is
    "vocab_size": "vocabulary",
    "decoder_vocab_size": "vocabulary",
    "vocab_size_per_layer_input": "vocabulary",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "hidden",
    "n_inner": "hidden",
    "head_dim": "head_dim",
    "max_position_embeddings": "length",
}


def build_model(choice: PartChoice, task: str, vocabulary: int, classes: int, shape: Shape, seed: int) -> ExternalModel:
    """The network that a recipe's `model` names."""
    if task not in HEADS:
        raise BadInput(f"a model of your own cannot be trained for the task {task!r}", "tasks: lm, classify")
    builder = find_builder(choice.name)
    return build_external(choice.name, builder, choice.options, task, (vocabulary, shape.length, classes), shape, seed)


def find_builder(name: str) -> Builder:
    if name.startswith(LIBRARY):
        return partial(build_hf, hf_class(name.removeprefix(LIBRARY)))
    if name in models.list():
        return models.find(name)
    file = name.partition(":")[0]
    hint = f"its code runs only if you name it: --model {name}, or --with {file}"
    if any(each.startswith(f"{file}:") for each in models.list()):
        hint = f"a model is a function of {file} with the arguments {', '.join(BUILD)}"
    raise BadInput(f"no model is called {name!r}{did_you_mean(name, models.list())}", hint)


def sources_of(name: str) -> dict[str, Path]:
    """The library behind a name, with its version, and the file that has the class: what a record was trained with."""
    if not name.startswith(LIBRARY):
        return {}
    kind = hf_class(name.removeprefix(LIBRARY))
    return {f"transformers {version('transformers')} ({kind.__module__})": Path(inspect.getfile(kind))}


def hf_class(name: str) -> Any:
    """A class of transformers. Nothing is downloaded and no remote code is run."""
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise BadInput("transformers is not installed", "pip install transformers") from error
    kind = getattr(transformers, name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module) and getattr(kind, "config_class", None)):
        known = [each for each in dir(transformers) if each.endswith((*HEADS.values(), "LMHeadModel"))]
        raise BadInput(f"transformers has no model {name!r}{did_you_mean(name, known)[:80]}")
    return kind


def from_folder(folder: Path, given: Mapping[str, object]) -> PartChoice:
    """A folder of save_pretrained -> its class, with its configuration, and what is given, as options. Its weights stay
    there: they belong to its own vocabulary."""
    path = folder / "config.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        name = str(table["architectures"][0])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise BadInput("names no architecture", "a folder that save_pretrained wrote has one", path=path) from error
    own = settable(hf_class(name).config_class)
    unfit = {"vocab_size", "architectures", "transformers_version", "dtype", "torch_dtype", "id2label", "label2id"}
    options = {key: plain(value) for key, value in table.items() if key in own - unfit and value is not None}
    return PartChoice(name=f"hf:{name}", options={**options, **given})


def plain(value: object) -> object:
    """As it may stand in TOML, which has no null."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items() if each is not None}
    return [plain(each) for each in value if each is not None] if isinstance(value, list) else value


def build_hf(
    kind: Any, vocabulary: int, length: int, classes: int, seed: int, shape: Shape, task: str, **options: object
) -> nn.Module:
    if task == "lm" and kind.__name__.endswith(HEADS["classify"]):
        raise BadInput(f"{kind.__name__} is a classifier, and the task is 'lm'", f"take a class such as {HEADS['lm']}")
    model = build_small(kind, vocabulary, length, classes, shape, task, options)
    skipped = skipped_positions(model)
    if skipped:  # it counts positions from there: once more, with as many more of them
        fields = {"max_position_embeddings": length + skipped, **options}
        model = build_small(kind, vocabulary, length, classes, shape, task, fields)
    config = model.config
    takes = inspect.signature(kind.forward).parameters
    can_map = bool(getattr(kind, "_can_record_outputs", None) or "output_attentions" in takes)
    said: dict[str, object] = {
        "pads": ("both" if task == "lm" else "right") if "attention_mask" in takes else "none",
        "chunk": chunk_of(config),
        "maps": can_map and getattr(config, "num_attention_heads", 0) > 0,
        "longest": max(0, longest_of(model, length) - skipped),
        "first_position": skipped,
        "single": True,
    }
    encoder = re.search("Bert(?!Decoder)|Electra|MPNet|Deberta|Albert|FNet|Funnel|Longformer", kind.__name__)
    if skipped or (task == "classify" and not encoder):
        said["pad"] = 0  # found by its id: positions count without it, or the last token is the last other one
    if task == "classify" and getattr(config, "is_encoder_decoder", False):
        said["end"] = config.eos_token_id
    for name, known in DECLARED.items():
        said |= known if kind.__name__.startswith(name) else {}
    model.fairtrial = said
    return model


def build_small(
    kind: Any, vocabulary: int, length: int, classes: int, shape: Shape, task: str, options: Mapping[str, object]
) -> Any:
    try:
        return kind(small_config(kind.config_class, vocabulary, length, classes, shape, task, options))
    except BadInput:
        raise
    except Exception as error:
        hint = "give options that fit together: hf:CLASS:hidden_size=32,num_attention_heads=2"
        raise BadInput(f"{kind.__name__} cannot be built so small: {format_error(error)}", hint) from error


def position_tables(model: nn.Module) -> list[Any]:
    named = ((name.rpartition(".")[2], each) for name, each in model.named_modules())
    return [each for name, each in named if re.search(r"(?:^|_)(wpe|position|pos)", name) and hasattr(each, "weight")]


def skipped_positions(model: nn.Module) -> int:
    """Positions that stand for padding and what is before it, as in RoBERTa, which counts from the next."""
    found = [getattr(each, "padding_idx", None) for each in position_tables(model)]
    return max((index + 1 for index in found if index is not None), default=0)


def longest_of(model: nn.Module, length: int) -> int:
    """How much it can read at once: the rows of a table of positions; 0: no limit is known."""
    tables = [len(each.weight) for each in position_tables(model) if isinstance(each, nn.Embedding)]
    return min((size for size in tables if size >= length), default=0)


def chunk_of(config: Any) -> int:
    """Tokens of the largest chunk or window that a configuration, or one inside it, names; 0: it names none."""
    inner = [chunk_of(each) for each in vars(config).values() if hasattr(each, "to_dict")]
    named = (getattr(config, name, None) for name in CHUNKS)
    return max((size for size in (*named, *inner) if type(size) is int), default=0)


def settable(config_class: Any) -> set[str]:
    """The fields that a configuration takes by name; what it computes from them is not among them."""
    return set(inspect.signature(config_class.__init__).parameters) - {"self", "kwargs"}


def small_config(
    own: Any, vocabulary: int, length: int, classes: int, shape: Shape, task: str, options: Mapping[str, object]
) -> Any:
    """A configuration of this class with the recipe's sizes, and the options over it."""
    known, renamed, usual = settable(own), getattr(own, "attribute_map", {}) or {}, own()
    for name in options:
        if renamed.get(name, name) not in known:
            raise BadInput(f"{own.__name__} has no field {name!r}{did_you_mean(name, sorted(known))}")
    sizes = {"vocabulary": vocabulary, "length": length, "head_dim": shape.head_dim}
    sizes |= {role: getattr(shape, role) for role in ("width", "hidden", "layers", "heads")}
    given: dict[str, object] = {renamed.get(name, name): sizes[role] for name, role in CORE.items()}
    # pad is always told; the others where the class has them
    given |= {
        name: token
        for name, token in TOKENS.items()
        if name == "pad_token_id" or getattr(usual, name, None) is not None
    }
    keys = getattr(usual, "num_key_value_heads", None)
    grouped = isinstance(keys, int) and keys < getattr(usual, "num_attention_heads", 0)
    given["num_key_value_heads"] = max(1, shape.heads // 2) if grouped else shape.heads
    given |= dict.fromkeys(("is_decoder", "causal"), True) if task == "lm" else {}
    given = {name: value for name, value in given.items() if name in known}
    if task == "classify":
        given["num_labels"] = classes
        if getattr(usual, "is_encoder_decoder", False):
            given["decoder_start_token_id"] = TOKENS["decoder_start_token_id"]
    return own(**{**given, **{renamed.get(name, name): value for name, value in options.items()}})
