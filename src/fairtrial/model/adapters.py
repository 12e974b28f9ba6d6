"""Networks of other libraries that need no code: `hf:CLASS` (Hugging Face, random first weights), and
`x-transformers:Decoder` or `x-transformers:Encoder`. They take the recipe's shape; options are their own."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.external import BUILD, Builder, ExternalModel, build_external, format_error, models
from fairtrial.model.hf_config import chunk_of, settable, small_config
from fairtrial.recipe import PartChoice, Shape
from fairtrial.registry import did_you_mean

LIBRARIES = {"hf": "transformers", "x-transformers": "x-transformers"}
HEADS = {"lm": "ForCausalLM", "classify": "ForSequenceClassification"}
# what some families need to be told of, or are asked wrongly for: the beginning of a class's name -> declarations
DECLARED: dict[str, dict[str, Any]] = {
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


def library_of(name: str) -> str:
    """`hf:GPT2LMHeadModel` -> `hf`; empty: no library's"""
    prefix = name.partition(":")[0]
    return prefix if prefix in LIBRARIES else ""


def build_model(choice: PartChoice, task: str, vocabulary: int, classes: int, shape: Shape, seed: int) -> ExternalModel:
    """The network that a recipe's `model` names."""
    if task not in HEADS:
        raise BadInput(f"a model of your own cannot be trained for the task {task!r}", "tasks: lm, classify")
    builder = find_builder(choice.name)
    return build_external(choice.name, builder, choice.options, task, (vocabulary, shape.length, classes), shape, seed)


def find_builder(name: str) -> Builder:
    library, inner = library_of(name), name.partition(":")[2]
    if library == "hf":
        return partial(build_hf, hf_class(inner))
    if library == "x-transformers":
        return partial(build_x_transformers, inner)
    if name in models.list():
        return models.find(name)
    file = name.partition(":")[0]
    hint = f"its code runs only if you name it: --model {name}, or --with {file}"
    if any(each.startswith(f"{file}:") for each in models.list()):
        hint = f"a model is a function of {file} with the arguments {', '.join(BUILD)}"
    raise BadInput(f"no model is called {name!r}{did_you_mean(name, models.list())}", hint)


def sources_of(name: str) -> dict[str, Path]:
    """The library behind a name, with its version, and the file that has the class: what a record was trained with."""
    library = library_of(name)
    if not library:
        return {}
    if library == "hf":
        kind: Any = hf_class(name.partition(":")[2])
    else:
        kind = imported("x_transformers", "x-transformers").TransformerWrapper
    label = f"{LIBRARIES[library]} {version(LIBRARIES[library])} ({kind.__module__})"
    return {label: Path(inspect.getfile(kind))}


def imported(module: str, package: str) -> Any:
    from importlib import import_module

    try:
        version(package)
        return import_module(module)
    except (ImportError, PackageNotFoundError) as error:
        raise BadInput(f"{package} is not installed", f"pip install {package}") from error


def hf_class(name: str) -> Any:
    """A class of transformers. Nothing is downloaded and no remote code is run."""
    transformers = imported("transformers", "transformers")
    kind = getattr(transformers, name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module) and getattr(kind, "config_class", None)):
        known = [each for each in dir(transformers) if each.endswith((*HEADS.values(), "LMHeadModel"))]
        raise BadInput(f"transformers has no model {name!r}{did_you_mean(name, known)[:80]}")
    return kind


def from_folder(folder: Path, given: Mapping[str, Any]) -> PartChoice:
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


def plain(value: Any) -> Any:
    """As it may stand in TOML, which has no null."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items() if each is not None}
    return [plain(each) for each in value if each is not None] if isinstance(value, list) else value


def build_hf(
    kind: Any, vocabulary: int, length: int, classes: int, seed: int, shape: Shape, task: str, **options: Any
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
    said: dict[str, Any] = {
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
    kind: Any, vocabulary: int, length: int, classes: int, shape: Shape, task: str, options: Mapping[str, Any]
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


class Decoding(nn.Module):
    """An x-transformers decoder by our contract. Padding on the left is told as `seq_start_pos`; with a cache, which is
    what it calls intermediates, it reads the whole text and is told how many of its tokens are new."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        cache: Any = None,
        use_cache: bool = False,
        output_attentions: bool = False,
    ) -> SimpleNamespace:
        given: dict[str, Any] = {}
        if mask is not None:
            left = not bool(mask[:, 0].all())
            given = {"seq_start_pos": mask.long().argmax(1)} if left else {"mask": mask}
        text = ids
        if cache is not None:
            text = torch.cat((cache[0], ids), 1)
            given |= {"cache": cache[1], "cache_age": ids.shape[1]}
        if not (use_cache or output_attentions):
            return SimpleNamespace(logits=self.decoder(text, **given))
        logits, found = self.decoder(text, return_intermediates=True, **given)
        maps = [each.post_softmax_attn for each in found.attn_intermediates] if output_attentions else ()
        return SimpleNamespace(logits=logits, cache=(text, found), attentions=maps)


def build_x_transformers(
    kind: str, vocabulary: int, length: int, classes: int, seed: int, shape: Shape, task: str, **options: Any
) -> nn.Module:
    """`options`: of the layers (`rotary_pos_emb`, `attn_flash`, ...); dim, depth and heads are the recipe's. An encoder
    classifies by the mean over real tokens."""
    x_transformers = imported("x_transformers", "x-transformers")
    kinds = {"Decoder": "lm", "Encoder": "classify"}
    if kinds.get(kind) != task:
        hint = "x-transformers:Decoder for lm, x-transformers:Encoder for classify"
        raise BadInput(f"x-transformers:{kind} does not fit the task {task!r}", hint)
    sizes: dict[str, Any] = {
        "dim": shape.width,
        "depth": shape.layers,
        "heads": shape.heads,
        "attn_dim_head": shape.head_dim,
        "attn_dropout": shape.attention_dropout,
        "ff_dropout": shape.dropout,
    }
    answers = {} if task == "lm" else {"logits_dim": classes, "average_pool_embed": True}
    try:
        layers = getattr(x_transformers, kind)(**sizes | options)
        model = x_transformers.TransformerWrapper(
            num_tokens=vocabulary, max_seq_len=length, attn_layers=layers, emb_dropout=shape.dropout, **answers
        )
    except (TypeError, ValueError, AssertionError) as error:
        what = f"x-transformers:{kind} cannot be built with these options: {format_error(error)}"
        raise BadInput(what, "options are arguments of its layers, such as rotary_pos_emb=true") from error
    absolute = not any(options.get(name) for name in ("rotary_pos_emb", "alibi_pos_bias", "rel_pos_bias"))
    said: dict[str, Any] = {"longest": length if absolute else 0}
    if task == "lm":
        said |= {"pads": "both", "maps": not options.get("attn_flash")}
        said |= {} if getattr(model, "can_cache_kv", False) else {"cache": "none"}
        model = Decoding(model)
    model.fairtrial = said
    return model
