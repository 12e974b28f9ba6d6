"""What is audited: a network in float64 and eval mode, with rows of real text and of random tokens. Some faults of a
fresh network are hidden (a gate that starts shut) until its weights have moved. So a part, a recipe or a builder is
audited with every weight perturbed, a record and a module of the user's own with the weights that they have."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.errors import BadInput
from fairtrial.model.external import KINDS, Declared, ExternalModel, spoken, tensors_in
from fairtrial.model.hugging_face import build_model, chunk_of
from fairtrial.model.network import Classifier, LanguageModel, memory_needed
from fairtrial.model.part import Part, parts
from fairtrial.prepare import Prepared
from fairtrial.recipe import PartChoice, Recipe, Shape, read_part, with_length
from fairtrial.record import Record
from fairtrial.rng import seed_for
from fairtrial.training.device import choose_device
from fairtrial.training.loop import put_weights, weights_of
from fairtrial.training.scoring import ROWS, TOKENS
from fairtrial.training.tasks import LanguageTask

MOST = 64  # tokens of a row; longer rows would cost much and show nothing more
CLASSES = 3
LENGTH = 32  # tokens of a row, for a module that does not say how many it reads
STRICT = 1e-9  # in float64: a correct network drifts by 4e-16, the smallest real fault seen is 1e-2
AUDITED = ("classify", "lm")  # an encoder and a decoder
MOST_ROWS = 128  # of a batch
EXAMPLES = 48  # texts and answers of each set that a network must not know before training
SECONDS = {"built in": 0.1, "own": 0.25}  # of processor time for a check's random questions; thorough: twenty times
CALLS = 1000  # after which a network still gives its first answers
Network = Classifier | LanguageModel | ExternalModel

# from presidents' speeches (public domain)
SENTENCES = """
We hold our distant past in view so that we may better choose the road that lies before us .
The state of the union is strong because the people of this country are strong .
I ask the Congress to pass this budget , and to pass it before the end of the year .
Our schools must teach every child to read , and our workers must have the skills of a new time .
Tonight our nation is at war , our economy is in recession , and the world faces great dangers .
Yet the union has never been stronger , and we will go on together , with hope and with patience .
We cannot walk alone , and as we walk we must always march ahead and never turn back .
Ask not what the country can do for you , but what all of us can do for the freedom of man .
""".strip().splitlines()

WORDS = sorted({word for line in SENTENCES for word in line.split()})
RESERVED = 4  # padding, unknown, start, stop
VOCABULARY = RESERVED + len(WORDS)


@dataclass(frozen=True)
class Plan:
    """Everything that is needed to build the network again."""

    task: str
    shape: Shape
    choices: tuple[PartChoice, ...]
    vocabulary: int = VOCABULARY
    classes: int = CLASSES
    seed: int = 0
    model: PartChoice = PartChoice(name="none")  # a network of the user's own
    module: nn.Module | None = field(default=None, repr=False)  # the same as an object: it cannot be built again
    declared: Declared | None = None  # of that object
    device: str = "cpu"  # that it is trained on: where it is asked once more
    precision: str = "float32"  # that it is trained in

    def build(self) -> Network:
        if self.module is not None:
            sizes, name = (self.vocabulary, self.shape.length, self.classes), type(self.module).__name__
            return ExternalModel(copy.deepcopy(self.module), self.task, *sizes, name=name, declared=self.declared)
        if self.model.name != "none":
            return build_model(self.model, self.task, self.vocabulary, self.classes, self.shape, self.seed)
        if self.task == "classify":
            return Classifier(self.shape, self.choices, self.vocabulary, self.classes, seed=self.seed)
        return LanguageModel(self.shape, self.choices, self.vocabulary, seed=self.seed)


@dataclass(frozen=True)
class Text:
    """What a network reads in training and scoring: rows with their reserved tokens, and how many at once."""

    rows: tuple[Tensor, ...] = field(repr=False)  # token ids [time]
    reserved: tuple[int, ...]  # entries of the vocabulary that are no words
    batches: tuple[int, ...]  # rows at once, in training and in scoring
    frequencies: Tensor | None = field(default=None, repr=False)  # of the targets [entry or class]
    examples: Mapping[str, Sequence[tuple[Tensor, Tensor]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, prepared: Prepared) -> Text:
        task, tokenizer = prepared.task, prepared.tokenizer
        rows: list[Tensor] = []
        answers: list[np.ndarray] = []
        for index in range(max(2, min(8, -(-2 * MOST_ROWS // prepared.recipe.training.batch)))):
            batch = task.batches.batch(index)
            lengths = batch.lengths if batch.lengths is not None else np.full(len(batch.ids), batch.ids.shape[1])
            rows += [
                torch.from_numpy(row[:size].astype(np.int64)) for row, size in zip(batch.ids, lengths, strict=True)
            ]
            answers.append(batch.answers[batch.answers >= 0])
        special = (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.stop, tokenizer.mask)
        sizes = len(prepared.splits.labels) if prepared.recipe.task == "classify" else tokenizer.size
        counts = np.bincount(np.concatenate(answers).ravel().astype(int), minlength=sizes)
        scored = ROWS if prepared.recipe.task == "classify" else max(1, TOKENS // prepared.recipe.shape.length)
        reserved = tuple(dict.fromkeys(each for each in special if each is not None))
        batches = (prepared.recipe.training.batch, scored)
        return cls(tuple(rows), reserved, batches, torch.from_numpy(counts), examples_of(prepared, rows))


def examples_of(prepared: Prepared, rows: Sequence[Tensor]) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """Some texts and their answers: of training, and of each test set."""
    task, found = prepared.task, {}
    if isinstance(task, LanguageTask):
        found["its training text"] = [row for row in rows if len(row) > 1][:EXAMPLES]
        for name in prepared.splits.tests:
            texts = (torch.from_numpy(np.array(each[: task.length], np.int64)) for each in task.sets[name].sequences)
            found[f"the test set {name}"] = [
                row for row, _ in zip(texts, range(EXAMPLES), strict=False) if len(row) > 1
            ]
        return {name: [(row[:-1], row[1:]) for row in own] for name, own in found.items() if own}
    if prepared.recipe.task != "classify":
        return {}
    pairs = {}
    for name in ("train", *prepared.splits.tests):
        texts, labels = task.sets[name]
        some = np.linspace(0, len(texts) - 1, min(2 * EXAMPLES, len(texts))).round().astype(int)
        pairs[f"the set {name}"] = [
            (torch.from_numpy(np.array(texts[n], np.int64)), torch.tensor(int(labels[n]))) for n in some
        ]
    return {name: own for name, own in pairs.items() if len(own) >= EXAMPLES}


@dataclass(frozen=True)
class Subject:
    plan: Plan
    network: Any  # a Network, perturbed or trained
    fresh: object  # as built
    rows: tuple[Tensor, ...] = field(repr=False)  # token ids [time]: eight real, eight random
    calls: int = field(default_factory=lambda: CALLS)
    bf16: bool = False  # whether autocast is asked about
    text: Text | None = None  # its own text, where it is known
    trained: tuple[Record, Prepared | None] | None = None  # whose scores are asked about; None: its data are gone
    patience: float = 1.0  # how many times as long random questions are asked

    @cached_property
    def own_text(self) -> Text:
        """Its own text; where none is known, its sample rows."""
        if self.text is not None:
            return self.text
        first = 0 if self.pad is None else 1
        return Text(self.rows, tuple(range(first, min(RESERVED, self.plan.vocabulary))), (32, ROWS))

    @property
    def causal(self) -> bool:
        return self.plan.task == "lm"

    @property
    def longest(self) -> int:
        return max(len(row) for row in self.rows)

    @property
    def full_rows(self) -> Tensor:
        """The rows of full length, real and random [row time]"""
        return torch.stack([row for row in self.rows if len(row) == self.longest])

    @property
    def external(self) -> ExternalModel | None:
        """The network, where it is the user's own."""
        return self.network if isinstance(self.network, ExternalModel) else None

    @property
    def dtype(self) -> torch.dtype:
        return dtype_of(self.network)

    @cached_property
    def embedding(self) -> nn.Module | None:
        """The layer that turns tokens into vectors, where it is known."""
        return self.network.body.tokens if self.external is None else self.external.embedding()

    @property
    def shortest(self) -> int:
        """Tokens that the network needs."""
        return 1 if self.external is None else max(1, self.external.declared.shortest)

    @property
    def pad(self) -> int | None:
        """The token that the network takes for padding whatever the mask says."""
        return None if self.external is None else self.external.declared.pad

    def another(self) -> Any:
        """The same network once more, in evaluation mode. It is built anew: a copy could know that it is one."""
        if self.plan.module is None:
            network: Any = self.plan.build()
            network = (network.double() if self.dtype == torch.float64 else network.float()).eval()
            here, there = weights_of(network), weights_of(self.network)
            if all(name in there and each.shape == there[name].shape for name, each in here.items()):
                put_weights(network, there)
                return network
        return copy.deepcopy(self.network)

    @cached_property
    def own_code(self) -> bool:
        """Whether it runs code of the user's: all of its network, or a part."""
        return self.external is not None or not all(map(of_library, self.parts.values()))

    @property
    def seconds(self) -> float:
        return SECONDS["own" if self.own_code else "built in"] * self.patience

    @cached_property
    def trace(self) -> Trace:
        """What one pass over a row computes with."""
        with torch.no_grad(), Trace() as trace:
            self.network(self.rows[0][None])
        return trace

    @property
    def parts(self) -> dict[str, Part]:
        if self.external is not None:
            return {}
        names = (choice.name for choice in self.plan.choices)
        return dict(zip(names, self.network.body.listed_parts(), strict=True))

    @cached_property
    def tolerance(self) -> float:
        """1e-9 in float64; where a network refuses float64, or computes in float32 inside, what batching may cost."""
        if self.dtype == torch.float64 and (self.external is None or not self.trace.single):
            return STRICT
        return 1e-5 * (1 + max(float(answer.abs().max()) for answer in self.answers(self.rows)))

    @torch.no_grad()
    def log_p(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[batch time] -> log-probabilities of classes [batch class] or next tokens [batch time entry]"""
        return self.network(ids, lengths).log_softmax(-1)

    def answers(self, rows: Sequence[Tensor], width: int | None = None, filler: Tensor | int = 0) -> list[Tensor]:
        """The log-probabilities for each row when they are one batch, padded to `width` tokens with `filler`."""
        batch = self.log_p(*as_batch(rows, width, filler))
        return [log_p[: len(row)] if self.causal else log_p for log_p, row in zip(batch, rows, strict=True)]

    @torch.no_grad()
    def in_pieces(self, ids: Tensor, sizes: list[int]) -> Tensor:
        """A decoder's log-probabilities when it reads pieces one after another with a cache [batch time entry]"""
        cache = self.network.new_cache()
        return torch.cat([self.network(piece, cache=cache) for piece in ids.split(sizes, 1)], 1).log_softmax(-1)


def as_batch(rows: Sequence[Tensor], width: int | None = None, filler: Tensor | int = 0) -> tuple[Tensor, Tensor]:
    """Rows as one array [batch time] and their lengths [batch]"""
    lengths = torch.tensor([len(row) for row in rows])
    time = max(int(lengths.max()), width or 0)
    ids = torch.zeros(len(rows), time, dtype=torch.long) + (filler[:time] if isinstance(filler, Tensor) else filler)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids, lengths


def largest_change(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """The largest absolute difference; infinite where it is NaN."""
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one.numel()]
    changes = [float((one - other).abs().max()) for one, other in pairs]
    return math.inf if any(map(math.isnan, changes)) else max(changes, default=0.0)


def generator(seed: int, *use: str) -> torch.Generator:
    """A random generator of the audit's own for each use."""
    return torch.Generator().manual_seed(seed_for(seed, "passport", *use))


class Trace(TorchDispatchMode):
    """Notes which precision a network computes in, and whether it calls torch's fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.single = self.fused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.fused |= "scaled_dot_product" in str(func)
        self.single |= isinstance(found, Tensor) and found.dtype == torch.float32 and found.dim() > 1
        return found


def of_library(module: nn.Module) -> bool:
    return type(module).__module__.partition(".")[0] in ("torch", "fairtrial")


def dtype_of(network: nn.Module) -> torch.dtype:
    return next((each.dtype for each in network.parameters() if each.is_floating_point()), torch.float32)


@torch.no_grad()
def perturb_weights(network: nn.Module, seed: int) -> None:
    """Move every weight, as training would: not what is frozen, nor the vector of the token for padding."""
    for name, weight in network.named_parameters():
        if not weight.is_floating_point() or not weight.requires_grad:
            continue
        rng = generator(seed, "shake", name)
        size = 1 / math.sqrt(weight.shape[-1]) if weight.dim() > 1 else 0.1
        weight.add_((size * torch.randn(weight.shape, generator=rng)).to(weight.dtype))
    for module in network.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0.0


def to_float64_eval(network: Network, rows: Sequence[Tensor]) -> Network:
    """Float64 and eval mode; float32 where a network refuses float64, or computes in float32 whatever its weights are
    and declares it (`single`): a mask may overflow there."""
    network = network.double().eval()
    try:
        with torch.no_grad(), Trace() as trace:
            network(rows[0][None])
    except Exception as error:  # the checks will report any other error
        cause = error if isinstance(error, RuntimeError) else error.__cause__
        refused = isinstance(cause, RuntimeError) and re.search("float|double|dtype", str(cause).lower())
        return network.float() if refused else network
    single = isinstance(network, ExternalModel) and network.declared.single and trace.single
    return network.float() if single else network


def subject_of(plan: Plan, stream: list[int] | None = None, weights: dict[str, Tensor] | None = None) -> Subject:
    network, fresh = plan.build(), plan.build()
    known = stream or [token % plan.vocabulary for token in word_ids()]
    rows = sample_rows(known, plan.vocabulary, plan.shape.length, plan.seed, **texts_of(network))
    if weights is not None:
        put_weights(network, weights)
    elif plan.module is None:
        perturb_weights(network, plan.seed)
    if isinstance(fresh, ExternalModel):
        fresh.eval().check_answers(rows[0][None])  # a network that does not keep the contract is the user's mistake
    return Subject(plan, to_float64_eval(network, rows), to_float64_eval(fresh, rows), rows)


def texts_of(network: Network) -> dict[str, Any]:
    """What a network of the user's own needs of its texts."""
    if not isinstance(network, ExternalModel):
        return {}
    said = network.declared
    never = {said.pad, getattr(network.embedding(), "padding_idx", None)} - {None}
    return {"never": tuple(sorted(never)), "end": said.end, "shortest": said.shortest}


def sample_rows(
    stream: list[int],
    vocabulary: int,
    length: int,
    seed: int,
    *,
    never: Sequence[int] = (),
    end: int | None = None,
    shortest: int = 1,
) -> tuple[Tensor, ...]:
    """Eight rows of real text and eight of random tokens [time], from the full length to the shortest. None holds a
    token that is `never` in a text, as that for padding, and `end` stands at their end only."""
    most = min(length, MOST)
    sizes = (most, most, most - 1, most * 3 // 4, most // 2, most // 2 + 1, most // 4, 1)
    lengths = [min(max(1, shortest, size), most) for size in sizes]
    stream = stream * (1 + (most * 8) // len(stream))
    real = [torch.tensor(stream[number * most : number * most + size]) for number, size in enumerate(lengths)]
    rng = generator(seed, "rows")
    rows = [*real, *(torch.randint(vocabulary, (size,), generator=rng) for size in lengths)]
    reserved = {*never} if end is None else {*never, end}
    other = next((token for token in range(vocabulary) if token not in reserved), 0)
    for row in rows:
        for token in reserved:
            row[row == token] = other
        if end is not None:
            row[-1] = end
    return tuple(rows)


def word_ids() -> list[int]:
    """The tokens of all sentences, one after another."""
    numbers = {word: number for number, word in enumerate(WORDS, start=RESERVED)}
    return [numbers[word] for line in SENTENCES for word in line.split()]


def plans_of_part(part: str | PartChoice) -> list[Plan]:
    """A part alone, in an encoder and in a decoder, or where it works."""
    choice = read_part(part) if isinstance(part, str) else part
    tasks = AUDITED[1:] if parts.find(choice.name).decoder_only else AUDITED
    return [Plan(task, Shape(layers=2), (choice,)) for task in tasks]  # deeper ones take longer and show nothing more


def plan_of_recipe(recipe: Recipe) -> Plan:
    """The recipe's network over the audit's own small vocabulary, so that its data are not needed. A masked language
    model is audited as the classifier that it will become."""
    task, recipe = "classify" if recipe.task == "mlm" else recipe.task, with_length(recipe)
    device, shape = recipe.training.device, recipe.shape
    if device == "auto":
        weights = memory_needed(shape, recipe.tokens.size) // 4
        device = str(choose_device(device, weights, recipe.training.batch * shape.length))
    return Plan(task, shape, recipe.parts, model=recipe.model, device=device, precision=recipe.training.precision)


def plan_of_module(module: nn.Module, kind: str, sizes: Mapping[str, int | None], said: Mapping[str, object]) -> Plan:
    """A module of the user's own. `sizes`: vocabulary, length and classes, where they are given; else they are asked of
    its configuration, its embedding and its answer."""
    config = getattr(module, "config", None)
    found_in_config = {"chunk": chunk_of(config)} if hasattr(config, "to_dict") else {}
    declared = Declared.of(found_in_config, module, said)
    task = KINDS[kind or declared.kind or "causal"]
    probe = ExternalModel(module, task, 0, 0, 0, name=type(module).__name__, declared=declared)
    tables = [each.num_embeddings for each in module.modules() if isinstance(each, nn.Embedding)]
    embedding: Any = probe.embedding()
    found = sizes.get("vocabulary") or getattr(embedding, "num_embeddings", None) or getattr(config, "vocab_size", None)
    vocabulary = found or max(tables, default=0)
    if not vocabulary:
        raise BadInput("unknown vocabulary size", "give it: ft.audit(module, vocabulary=1000)")
    longest = declared.longest or getattr(config, "max_position_embeddings", None) or LENGTH
    length = sizes.get("length") or min(int(longest), LENGTH)
    classes = sizes.get("classes") or 0
    if task == "classify" and not classes:
        ids = torch.ones(3, min(length, 5), dtype=torch.long)
        with torch.no_grad():
            output = copy.deepcopy(module).eval()(ids)
        shapes = [each.shape for each in tensors_in(output) if each.dim() == 2 and len(each) == len(ids)]
        if not shapes:
            raise BadInput(f"model(ids [3, {ids.shape[1]}]) gives {spoken(output)}, and no logits [3, classes]")
        classes = int(shapes[0][1])
    return Plan(
        task,
        Shape(length=length),
        (),
        vocabulary=int(vocabulary),
        classes=classes or CLASSES,
        module=module,
        declared=declared,
    )


def subject_of_record(record: Record) -> Subject:
    """The network of a record, with its trained weights and its tokenizer."""
    recipe = record.recipe
    if recipe.task not in AUDITED:
        hint = "audit its recipe (recipe.toml in the record), or a classifier that was fine-tuned from it"
        raise BadInput(f"a record of task {recipe.task!r} cannot be audited with its weights", hint)
    tokenizer, weights = record.tokenizer(), record.weights()
    classes = max(1, len(record.trial.labels))
    plan = replace(plan_of_recipe(recipe), vocabulary=tokenizer.size, classes=classes, seed=record.result.seed)
    plan = replace(plan, device=record.trial.environment.device)
    try:
        stream = [token for ids in tokenizer.encode(SENTENCES) for token in ids]
        return subject_of(plan, stream, load(weights))
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        path = record.folder / "model.safetensors"
        raise BadInput(f"the weights cannot be used ({error})", "train it again", path=path) from error
