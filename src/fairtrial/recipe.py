"""Recipes: what to train, on what, how. Each field says itself once; help, TOML and docs are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from fairtrial.duration import Duration
from fairtrial.errors import BadInput

TASKS = ("classify", "lm", "mlm")


@dataclass(frozen=True, kw_only=True)
class Data:
    """Where the text comes from and how it is split."""

    source: Annotated[str, "a file, a folder, or 'sotu' for the embedded corpus"] = "sotu"
    format: Annotated[str, "auto, course, table, jsonl, folder, text, lines or sotu"] = "auto"
    presidents: Annotated[tuple[str, ...], "whose speeches, with the embedded corpus"] = ("obama", "bush-43", "bush-41")
    validation: Annotated[float, "share of the training text kept aside to choose by; 0 takes none"] = 0.1
    test: Annotated[float, "share kept aside to test on, where the data brings no test set"] = 0.2
    train_share: Annotated[float, "share of the training documents that is trained on; 1: all"] = 1.0
    split_seed: Annotated[int, "draws that test share; the same for all trials, so that they share their items"] = 0
    windows: Annotated[str, "training windows of running text: 'disjoint' or 'every' start position"] = "disjoint"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """How text becomes tokens."""

    kind: Annotated[str, "word, character, bpe or whitespace; 'encoder': as the pretrained encoder reads"] = "word"
    min_count: Annotated[int, "words seen less often in training become unknown, so that unknown is trained"] = 2
    size: Annotated[int, "the most entries a vocabulary may have"] = 20_000
    lowercase: Annotated[bool, "fold upper case to lower case"] = False
    fit: Annotated[
        str,
        "'train': the training split only; 'course': both whole training files, as the reports do; or a record, whose"
        " vocabulary is taken",
    ] = "train"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a transformer."""

    layers: Annotated[int, "blocks stacked on one another"] = 4
    heads: Annotated[int, "attention heads in each block"] = 2
    width: Annotated[int, "numbers that describe one token between blocks"] = 64
    length: Annotated[int, "tokens that the model sees at once"] = 32
    hidden: Annotated[int, "width of the feed-forward layer"] = 256
    classifier_hidden: Annotated[int, "width of the classifier's hidden layer"] = 100
    dropout: Annotated[float, "share of activations dropped in training"] = 0.1
    attention_dropout: Annotated[float, "share of attention weights dropped in training (GPT-2 and BERT: 0.1)"] = 0.0
    activation: Annotated[str, "relu, gelu, gelu_tanh or silu"] = "relu"
    classifier_activation: Annotated[str, "of the classifier's hidden layer; 'same': as `activation`; or tanh"] = "same"
    norm: Annotated[str, "layer or rms"] = "layer"
    norm_place: Annotated[str, "'pre': each layer reads a norm (GPT-2); 'post': the sum is normed (BERT)"] = "pre"
    norm_epsilon: Annotated[float, "keeps the norm's division finite"] = 1e-5
    qkv_bias: Annotated[bool, "queries, keys and values have a bias"] = False
    tied: Annotated[bool, "the language model's output layer is the token embedding"] = False
    output_bias: Annotated[bool, "the language model's output layer has a bias"] = True
    start: Annotated[str, "first weights: 'torch' (its layers' defaults) or 'small' (normal, 0.02)"] = "small"

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "length", "hidden", "classifier_hidden"):
            if getattr(self, name) < 1:
                raise BadInput(f"shape.{name} is {getattr(self, name)}; it must be at least 1")
        if self.width % self.heads:
            raise BadInput(
                f"shape.width = {self.width} does not divide by shape.heads = {self.heads}",
                f"take a width such as {self.heads * max(1, round(self.width / self.heads))}",
            )
        one_of("shape.activation", self.activation, ("relu", "gelu", "gelu_tanh", "silu"))
        answers = ("same", "tanh", "relu", "gelu", "gelu_tanh", "silu")
        one_of("shape.classifier_activation", self.classifier_activation, answers)
        one_of("shape.norm", self.norm, ("layer", "rms"))
        one_of("shape.norm_place", self.norm_place, ("pre", "post"))
        one_of("shape.start", self.start, ("torch", "small"))
        share("shape.dropout", self.dropout)
        share("shape.attention_dropout", self.attention_dropout)

    @property
    def each(self) -> int:
        """Width of one head."""
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the weights are found."""

    duration: Annotated[Duration, "how long to train, in epochs or steps"] = Duration(15, "epochs")
    batch: Annotated[int, "sentences or windows in one step"] = 16
    accumulate: Annotated[int, "batches whose gradients are added up for one step"] = 1
    optimizer: Annotated[str, "adam, adamw, adagrad or sgd"] = "adamw"
    learning_rate: Annotated[float, "size of a step"] = 1e-3
    weight_decay: Annotated[float, "pull of weights towards zero (matrices only)"] = 0.01
    momentum: Annotated[float, "of sgd"] = 0.0
    schedule: Annotated[str, "learning rate after warm-up: constant, linear or cosine (both fall to zero)"] = "constant"
    warmup_steps: Annotated[int, "steps in which the learning rate rises from zero"] = 0
    clip: Annotated[float, "longest gradient allowed; inf: any"] = float("inf")
    label_smoothing: Annotated[float, "share of the target spread over all answers"] = 0.0
    select_every: Annotated[Duration, "how often validation is scored to choose weights"] = Duration(1, "epochs")
    frozen_layers: Annotated[int, "blocks from the bottom, and the embeddings, that stay as they are; 0: none"] = 0
    layer_decay: Annotated[float, "learning rate of a block as a share of the one above it; 1: all the same"] = 1.0
    save_memory: Annotated[
        bool, "compute layers again for their gradients instead of keeping them: slower, smaller"
    ] = False
    keep: Annotated[str, "'best' weights on validation, or the 'last'"] = "best"
    patience: Annotated[float, "choices without a better one before training stops; inf: never"] = float("inf")

    def __post_init__(self) -> None:
        one_of("training.optimizer", self.optimizer, ("adam", "adamw", "adagrad", "sgd"))
        one_of("training.schedule", self.schedule, ("constant", "linear", "cosine"))
        one_of("training.keep", self.keep, ("best", "last"))
        share("training.label_smoothing", self.label_smoothing)
        for name in ("batch", "accumulate"):
            if getattr(self, name) < 1:
                raise BadInput(f"training.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("learning_rate", "clip", "patience", "layer_decay"):
            if not getattr(self, name) > 0:
                raise BadInput(f"training.{name} is {getattr(self, name)}; it must be above 0")
        for name in ("weight_decay", "momentum", "warmup_steps", "frozen_layers"):
            if not getattr(self, name) >= 0:
                raise BadInput(f"training.{name} is {getattr(self, name)}; it must not be below 0")


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is measured, and when."""

    curve_every: Annotated[Duration, "how often train and validation are scored for the curves"] = Duration(1, "epochs")
    watch_test: Annotated[bool, "score the test sets for the curves too, as the reports did; the record says so"] = (
        False
    )
    tests: Annotated[bool, "score the test sets at the end; false: nothing reads them, as in a search"] = True
    full_context: Annotated[float, "least share of the full context that each scored token of running text sees"] = 0.97

    def __post_init__(self) -> None:
        share("scoring.full_context", self.full_context)
        if self.watch_test and not self.tests:
            raise BadInput("scoring.watch_test reads the test sets, and scoring.tests = false forbids it")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Weights to start from. They bring their tokenizer and their shape."""

    source: Annotated[str, "a checkpoint's folder, a record, 'minilm', or 'none': first weights from the seed"] = "none"
    sha256: Annotated[str, "of the encoder's weights; filled in when the trial begins"] = "none"


@dataclass(frozen=True, kw_only=True)
class PartChoice:
    """A part and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a trial, but for its seed."""

    task: Annotated[str, "classify (encoder and classifier), lm (decoder language model) or mlm (masked words)"] = (
        "classify"
    )
    name: Annotated[str, "what this recipe is called in tables"] = ""
    data: Data = field(default_factory=Data)
    tokens: Tokens = field(default_factory=Tokens)
    encoder: Encoder = field(default_factory=Encoder)
    shape: Shape = field(default_factory=Shape)
    parts: Annotated[tuple[PartChoice, ...], "architecture parts, in order"] = (PartChoice(name="learned"),)
    training: Training = field(default_factory=Training)
    scoring: Scoring = field(default_factory=Scoring)

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    from fairtrial.names import near

    if value not in allowed:
        raise BadInput(f"{name} = {value!r} is not known{near(value, list(allowed))}")


def share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadInput(f"{name} = {value} is not a share between 0 and 1")
