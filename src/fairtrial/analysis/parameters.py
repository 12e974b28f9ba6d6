"""Parameter counts and FLOPs of a network, component by component, summing exactly to the totals.

Beside each parameter count stands the bias-free count of the five student reports: the token embedding and the weight
matrices of attention and feed-forward only (no biases, norms, positions or other parts, no classifier or output layer).

FLOPs are those of matrix products, as torch's counter counts them (a multiplication and an addition are two), for rows
of `length` real tokens. Attention is counted as its equation says, even where a mask hides half of it; local attention
is counted as it runs. Sums, norms, activations and look-ups are not counted. A step is a forward and a backward pass
over the batch; for masked language models, as if every word were predicted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel
from fairtrial.plugins import load_installed
from fairtrial.prepare import prepare
from fairtrial.pretrained.encoder import open_encoder, with_encoder
from fairtrial.recipe import Recipe
from fairtrial.record import Record

Sizes = tuple[int, ...]
Network = Classifier | LanguageModel | MaskedModel


@dataclass(frozen=True)
class Row:
    component: str
    formula: str  # with numbers: '4 × (64 × 64 + 64)'
    count: int
    bias_free: int  # weight matrices only


@dataclass(frozen=True)
class Ledger:
    rows: tuple[Row, ...]

    @property
    def total(self) -> int:
        return sum(row.count for row in self.rows)

    @property
    def bias_free(self) -> int:
        return sum(row.bias_free for row in self.rows)


# what a parameter's name begins with -> component; each match of the pattern is one copy of it
COMPONENTS = (
    (r"body\.tokens", "token embedding"),
    (r"body\.blocks\.\d+\.attention\.qkv", "attention: queries, keys, values"),
    (r"body\.blocks\.\d+\.attention\.out", "attention: output"),
    (r"body\.blocks\.\d+\.feed_forward", "feed-forward"),
    (r"body\.(?:blocks\.\d+\.\w+_)?norm", "norms"),
)
BIAS_FREE = frozenset(name for _, name in COMPONENTS if name != "norms")


def ledger(recipe: Recipe, vocabulary: int, classes: int = 0) -> Ledger:
    """The ledger of a recipe's network: nothing is trained. `classes` only matters to a classifier."""
    return ledger_of(fresh_network(recipe, vocabulary, classes))


def fresh_network(recipe: Recipe, vocabulary: int, classes: int = 0) -> Network:
    if vocabulary < 1:
        raise BadInput(f"the vocabulary must have at least 1 entry, got {vocabulary}")
    if recipe.task == "lm":
        return LanguageModel(recipe.shape, recipe.parts, vocabulary)
    if recipe.task == "mlm":
        return MaskedModel(recipe.shape, recipe.parts, vocabulary)
    if classes < 1:
        raise BadInput(f"a classifier needs at least 1 class, got {classes}")
    return Classifier(recipe.shape, recipe.parts, vocabulary, classes)


def ledger_of(network: nn.Module) -> Ledger:
    """The ledger of a network. A shared tensor (a tied output layer) is counted once, where it comes first."""
    found: dict[str, dict[str, list[tuple[str, Sizes]]]] = {}  # component -> copy -> its tensors
    for name, parameter in network.named_parameters():
        component, copy = component_of(name)
        found.setdefault(component, {}).setdefault(copy, []).append((name, tuple(parameter.shape)))
    return Ledger(tuple(row_of(component, list(found[component].values())) for component in sorted(found, key=rank)))


def component_of(name: str) -> tuple[str, str]:
    """The component that a parameter belongs to, and which of its copies."""
    for pattern, component in COMPONENTS:
        if match := re.match(rf"{pattern}\.", name):
            return component, match.group()
    if match := re.match(r"body\.parts\.([^.]+)\.", name):
        return f"part {match[1]!r}", ""
    if name.startswith(("hidden.", "norm.", "out.")):
        return "head", ""
    return name.rsplit(".", 1)[0], ""


def rank(component: str) -> float:
    """Parts come after the token embedding, the output head at the end."""
    order = [name for _, name in COMPONENTS]
    if component in order:
        return order.index(component)
    return 0.5 if component.startswith("part ") else len(order)


def row_of(component: str, copies: list[list[tuple[str, Sizes]]]) -> Row:
    tensors = [tensor for copy in copies for tensor in copy]
    counted = component in BIAS_FREE
    return Row(
        title(component, tensors),
        formula([[sizes_of(*tensor) for tensor in copy] for copy in copies]),
        sum(math.prod(sizes) for _, sizes in tensors),
        sum(math.prod(sizes) for _, sizes in tensors if len(sizes) > 1) if counted else 0,
    )


def title(component: str, tensors: Sequence[tuple[str, Sizes]]) -> str:
    if component != "head":
        return component
    names = {name for name, _ in tensors}
    if "hidden.weight" in names and "norm.weight" not in names:
        return "classifier"
    return "output layer" if "out.weight" in names else "output layer (its weights are the token embedding)"


def sizes_of(name: str, sizes: Sizes) -> Sizes:
    """As a reader expects it: queries, keys and values apart, a linear layer from its input to its output."""
    if re.search(r"attention\.qkv\.(weight|bias)$", name):
        return (3, sizes[0] // 3, *sizes[1:])
    if len(sizes) == 2 and re.search(r"(up|down|hidden|out)\.weight$", name):
        return sizes[::-1]
    return sizes


def formula(copies: Sequence[Sequence[Sizes]]) -> str:
    """'4 × (64 × 64 + 64)': equal terms are written once."""
    return summed(summed(" × ".join(f"{size:,}" for size in sizes) or "1" for sizes in copy) for copy in copies)


def summed(terms: Iterable[str]) -> str:
    return " + ".join(times(count, term) for term, count in Counter(terms).items())


def times(count: int, term: str) -> str:
    if count == 1:
        return term
    return f"{count} × ({term})" if "+" in term else f"{count} × {term}"


@dataclass(frozen=True)
class FlopRow:
    component: str
    formula: str
    flops: int  # forward, for one full row


@dataclass(frozen=True)
class Flops:
    rows: tuple[FlopRow, ...]
    backward: int  # for one full row
    length: int
    rows_in_step: int  # rows of `length` tokens in one training step

    @property
    def forward(self) -> int:
        return sum(row.flops for row in self.rows)

    @property
    def per_token(self) -> float:
        """Forward, at full length."""
        return self.forward / self.length

    @property
    def per_step(self) -> int:
        """Forward and backward over all rows of a step."""
        return (self.forward + self.backward) * self.rows_in_step


def flops_of(network: Network, *, rows_in_step: int = 1) -> Flops:
    """Linear layers and attention by their formulas; what parts add, by torch's counter, which runs one row."""
    shape, length = network.body.shape, network.body.shape.length
    forward, backward = counted(network, length)
    prefixes = sum(len(found) for part in network.body.listed_parts() if (found := part.prefix()) is not None)
    seen = length if network.body.causal else length + prefixes  # only an encoder puts vectors before a sentence
    products = {
        "attention: queries, keys, values": (2, seen, 3, shape.width, shape.width),
        "attention: scores and sums": (2, 2, seen, seen, shape.width),
        "attention: output": (2, seen, shape.width, shape.width),
        "feed-forward": (2, 2, seen, shape.width, shape.hidden),
    }
    rows = [FlopRow(name, *product(shape.layers, *sizes)) for name, sizes in products.items()]
    rows.append(head_row(network, length))
    rest = forward - sum(row.flops for row in rows)
    if rest < 0:  # local attention skipped masked keys
        rows[1] = FlopRow(rows[1].component, "as it runs: only what a window covers", rows[1].flops + rest)
    if rest > 0:
        rows.append(FlopRow("parts", "counted as they run", rest))
    return Flops(tuple(rows), backward, length, rows_in_step)


def head_row(network: Network, length: int) -> FlopRow:
    if isinstance(network, LanguageModel):
        return FlopRow("output layer", *product(2, length, network.out.in_features, network.out.out_features))
    hidden, out = network.hidden, network.out
    layers = f"({hidden.in_features} × {hidden.out_features} + {out.in_features} × {out.out_features:,})"
    flops = 2 * (hidden.weight.numel() + out.weight.numel())
    if isinstance(network, MaskedModel):
        return FlopRow("output layer", f"2 × {length:,} × {layers}", flops * length)
    return FlopRow("classifier", f"2 × {layers}, once per row", flops)


def product(*numbers: int) -> tuple[str, int]:
    """Its formula and its value."""
    return " × ".join(f"{number:,}" for number in numbers), math.prod(numbers)


def counted(network: Network, length: int) -> tuple[int, int]:
    """Forward and backward of one full row, by torch's counter. It cannot look into a fused kernel or into our loss, so
    the row runs attention in plain products and a plain loss."""
    was_training = network.training
    network.eval()
    ids = torch.zeros(1, length, dtype=torch.long)
    counter = partial(FlopCounterMode, display=False)
    try:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            with counter() as forward:
                logits = network(ids)
            loss = cross_entropy(logits.flatten(0, -2), torch.zeros(logits.shape[:-1], dtype=torch.long).flatten())
            learnt = [parameter for parameter in network.parameters() if parameter.requires_grad]
            with counter() as backward:  # not loss.backward(): the network's own gradients stay as they are
                torch.autograd.grad(loss, learnt, allow_unused=True)
    finally:
        network.train(was_training)
    return forward.get_total_flops(), backward.get_total_flops()


@dataclass(frozen=True)
class Cost:
    """Size and cost of one network."""

    recipe: Recipe
    vocabulary: int
    classes: int
    ledger: Ledger
    flops: Flops

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.recipe.task,
            "vocabulary": self.vocabulary,
            "classes": self.classes,
            "rows": [asdict(row) for row in self.ledger.rows],
            "total": self.ledger.total,
            "bias_free": self.ledger.bias_free,
            "flops": {
                "rows": [asdict(row) for row in self.flops.rows],
                "length": self.flops.length,
                "forward_per_row": self.flops.forward,
                "backward_per_row": self.flops.backward,
                "per_token": self.flops.per_token,
                "rows_in_step": self.flops.rows_in_step,
                "per_step": self.flops.per_step,
            },
        }


def cost_of_record(record: Record) -> Cost:
    return cost_of_recipe(record.recipe, int(record.trial["vocabulary"]), len(record.trial["labels"]))


def cost_of_recipe(recipe: Recipe, vocabulary: int | None = None, classes: int | None = None, seed: int = 0) -> Cost:
    """Parameters and FLOPs of a recipe's network: nothing is trained. Without `vocabulary`, its size and the number of
    classes are those of a trial on the recipe's data."""
    if vocabulary is None:
        if classes is not None:
            raise BadInput("--classes needs --vocabulary")
        try:
            prepared = prepare(recipe, seed)
            recipe, vocabulary, classes = prepared.recipe, prepared.tokenizer.size, len(prepared.splits.labels)
        except BadInput as error:
            hint = "or give the size of the vocabulary: --vocabulary 5755 --classes 3"
            raise BadInput(error.what, f"{error.hint}; {hint}" if error.hint else hint) from error
    elif recipe.task == "classify" and classes is None:
        raise BadInput("how many classes?", "give --classes 3, or --data instead of --vocabulary")
    elif recipe.encoder.sha256 == "none":
        recipe = with_encoder(recipe, open_encoder(recipe))
    load_installed(choice.name for choice in recipe.parts)
    network = fresh_network(recipe, vocabulary, classes or 0)
    rows_in_step = recipe.training.batch * recipe.training.accumulate
    return Cost(recipe, vocabulary, classes or 0, ledger_of(network), flops_of(network, rows_in_step=rows_in_step))
