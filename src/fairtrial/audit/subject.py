"""What is audited: a network in float64 and eval mode, with rows of real text and of random tokens. Some faults of a
fresh network are hidden (a gate that starts shut) until its weights have moved. So a part or a recipe is audited with
every weight perturbed, and a record with its trained weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.errors import BadInput
from fairtrial.model.attention import KVCache
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.model.part import Part, parts
from fairtrial.recipe import PartChoice, Recipe, Shape, with_length
from fairtrial.record import Record
from fairtrial.rng import seed_for
from fairtrial.training.loop import put_weights

MOST = 64  # tokens of a row; longer rows would cost much and show nothing more
CLASSES = 3
STRICT = 1e-9  # in float64: a correct network drifts by 4e-16, the smallest real fault seen is 1e-2
AUDITED = ("classify", "lm")  # an encoder and a decoder

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

    def build(self) -> Classifier | LanguageModel:
        if self.task == "classify":
            return Classifier(self.shape, self.choices, self.vocabulary, self.classes, seed=self.seed)
        return LanguageModel(self.shape, self.choices, self.vocabulary, seed=self.seed)


@dataclass(frozen=True)
class Subject:
    plan: Plan
    network: Classifier | LanguageModel  # perturbed or trained
    fresh: Classifier | LanguageModel  # as built
    rows: tuple[Tensor, ...] = field(repr=False)  # token ids [time]: eight real, eight random

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
    def parts(self) -> dict[str, Part]:
        names = (choice.name for choice in self.plan.choices)
        return dict(zip(names, self.network.body.listed_parts(), strict=True))

    @cached_property
    def tolerance(self) -> float:
        """1e-9 in float64; in float32, where a part refuses float64, what batching may cost."""
        if self.network.out.weight.dtype == torch.float64:
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
        assert isinstance(self.network, LanguageModel)
        cache = KVCache(self.plan.shape.layers)
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


@torch.no_grad()
def perturb_weights(network: Classifier | LanguageModel, seed: int) -> None:
    """Move every weight, as training would."""
    for name, weight in network.named_parameters():
        rng = generator(seed, "shake", name)
        size = 1 / math.sqrt(weight.shape[-1]) if weight.dim() > 1 else 0.1
        weight.add_((size * torch.randn(weight.shape, generator=rng)).to(weight.dtype))


def to_float64_eval(network: Classifier | LanguageModel, row: Tensor) -> Classifier | LanguageModel:
    """Float64 and eval mode; float32 where a part refuses float64."""
    network = network.double().eval()
    try:
        with torch.no_grad():
            network(row[None])
    except Exception as error:  # the checks will report any other error
        if isinstance(error, RuntimeError) and "float" in str(error).lower():
            network.float()
    return network


def subject_of(plan: Plan, stream: list[int] | None = None, weights: dict[str, Tensor] | None = None) -> Subject:
    rows = sample_rows(stream or word_ids(), plan.vocabulary, plan.shape.length, plan.seed)
    network, fresh = plan.build(), plan.build()
    if weights is None:
        perturb_weights(network, plan.seed)
    else:
        put_weights(network, weights)
    return Subject(plan, to_float64_eval(network, rows[0]), to_float64_eval(fresh, rows[0]), rows)


def sample_rows(stream: list[int], vocabulary: int, length: int, seed: int) -> tuple[Tensor, ...]:
    """Eight rows of real text and eight of random tokens [time], from the full length to a single token."""
    most = min(length, MOST)
    sizes = (most, most, most - 1, most * 3 // 4, most // 2, most // 2 + 1, most // 4, 1)
    lengths = [min(max(1, size), most) for size in sizes]
    stream = stream * (1 + (most * 8) // len(stream))
    real = [torch.tensor(stream[number * most : number * most + size]) for number, size in enumerate(lengths)]
    rng = generator(seed, "rows")
    return (*real, *(torch.randint(vocabulary, (size,), generator=rng) for size in lengths))


def word_ids() -> list[int]:
    """The tokens of all sentences, one after another."""
    numbers = {word: number for number, word in enumerate(WORDS, start=RESERVED)}
    return [numbers[word] for line in SENTENCES for word in line.split()]


def plans_of_part(name: str) -> list[Plan]:
    """A part alone, in an encoder and in a decoder, or where it works."""
    tasks = AUDITED[1:] if parts.find(name).decoder_only else AUDITED
    return [Plan(task, Shape(), (PartChoice(name=name),)) for task in tasks]


def plan_of_recipe(recipe: Recipe) -> Plan:
    """The recipe's network over the audit's own small vocabulary, so that its data are not needed. A masked language
    model is audited as the classifier that it will become."""
    return Plan("classify" if recipe.task == "mlm" else recipe.task, with_length(recipe).shape, recipe.parts)


def subject_of_record(record: Record) -> Subject:
    """The network of a record, with its trained weights and its tokenizer."""
    recipe = record.recipe
    if recipe.task not in AUDITED:
        hint = "audit its recipe (recipe.toml in the record), or a classifier that was fine-tuned from it"
        raise BadInput(f"a record of task {recipe.task!r} cannot be audited with its weights", hint)
    tokenizer, weights = record.tokenizer(), record.weights()
    classes = max(1, len(record.trial["labels"]))
    plan = replace(plan_of_recipe(recipe), vocabulary=tokenizer.size, classes=classes, seed=record.result["seed"])
    try:
        stream = [token for ids in tokenizer.encode(SENTENCES) for token in ids]
        return subject_of(plan, stream, load(weights))
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        path = record.folder / "model.safetensors"
        raise BadInput(f"the weights cannot be used ({error})", "train it again", path=path) from error
