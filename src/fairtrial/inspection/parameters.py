"""Parameters of a network, component by component, summing exactly to the total; and its FLOPs. Beside each parameter
count stands the bias-free count of the five student reports (`BIAS_FREE`, without biases).

FLOPs are those of matrix products, as torch's counter counts them (a multiplication and an addition are two), for rows
of `length` real tokens. Attention is counted as its equation says, even where a mask hides half of it. A step is a
forward and a backward pass over the batch; for masked language models, as if every word were predicted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from fairtrial.description import BarChart, Cell, Description, Result, Table
from fairtrial.description import row as as_cells
from fairtrial.errors import BadInput
from fairtrial.model.external import ExternalModel
from fairtrial.plugins import load_code
from fairtrial.prepare import prepare
from fairtrial.pretrained.checkpoint import open_encoder, with_encoder
from fairtrial.recipe import Recipe, with_length
from fairtrial.stored import ParameterRow
from fairtrial.training.scoring import scoring
from fairtrial.training.tasks import Network, build_network

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Ledger:
    rows: tuple[ParameterRow, ...]
    total: int
    bias_free: int


# what a parameter's name begins with -> component, in the order of rows; each text that a pattern matches is one copy
COMPONENTS = (
    (r"body\.tokens\.", "token embedding"),
    (r"body\.parts\.([^.]+)\.", "part {!r}"),
    (r"body\.blocks\.\d+\.attention\.qkv\.", "attention: queries, keys, values"),
    (r"body\.blocks\.\d+\.attention\.out\.", "attention: output"),
    (r"body\.blocks\.\d+\.feed_forward\.", "feed-forward"),
    (r"body\.(?:blocks\.\d+\.\w+_)?norm\.", "norms"),
    (r"(?=(?:hidden|norm|out)\.)", "head"),
)
BIAS_FREE = ("token embedding", "attention: queries, keys, values", "attention: output", "feed-forward")


def ledger(recipe: Recipe, vocabulary: int, classes: int = 0) -> Ledger:
    """The ledger of a recipe's network: nothing is trained. `classes` only matters to a classifier."""
    return ledger_of(fresh_network(recipe, vocabulary, classes))


def fresh_network(recipe: Recipe, vocabulary: int, classes: int = 0) -> Network:
    if vocabulary < 1:
        raise BadInput(f"the vocabulary must have at least 1 entry, got {vocabulary}")
    if recipe.task == "classify" and classes < 1:
        raise BadInput(f"a classifier needs at least 1 class, got {classes}")
    return build_network(recipe, 0, vocabulary, classes)


def ledger_of(network: nn.Module) -> Ledger:
    """The ledger of a network. A shared tensor (a tied output layer) is counted once, where it comes first."""
    found: dict[tuple[int, str], dict[str, list[tuple[str, Sizes]]]] = {}  # rank, component -> copy -> its tensors
    for name, parameter in network.named_parameters():
        rank, component, copy = component_of(name)
        found.setdefault((rank, component), {}).setdefault(copy, []).append((name, tuple(parameter.shape)))
    ranked = sorted(found.items(), key=lambda item: item[0][0])
    rows = tuple(row_of(component, list(copies.values())) for (_, component), copies in ranked)
    return Ledger(rows, sum(row.count for row in rows), sum(row.bias_free for row in rows))


def component_of(name: str) -> tuple[int, str, str]:
    """The component that a parameter belongs to: its rank, its name, and which of its copies."""
    for rank, (pattern, component) in enumerate(COMPONENTS):
        if match := re.match(pattern, name):
            return rank, component.format(*match.groups()), match.group()
    if name.startswith("model."):  # of a user's own network: layers that are numbered are copies of one another
        layer = name.removeprefix("model.").rpartition(".")[0]
        return len(COMPONENTS), re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", layer), layer
    return len(COMPONENTS) - 1, name.rsplit(".", 1)[0], ""


def row_of(component: str, copies: list[list[tuple[str, Sizes]]]) -> ParameterRow:
    tensors = dict(tensor for copy in copies for tensor in copy)
    counted = component in BIAS_FREE
    if component == "head":
        component = "output layer" if "out.weight" in tensors else "output layer (its weights are the token embedding)"
        if "hidden.weight" in tensors and "norm.weight" not in tensors:
            component = "classifier"
    return ParameterRow(
        component,
        summed(summed(formula_of(*tensor) for tensor in copy) for copy in copies),
        sum(math.prod(sizes) for sizes in tensors.values()),
        sum(math.prod(sizes) for sizes in tensors.values() if len(sizes) > 1) if counted else 0,
    )


def formula_of(name: str, sizes: Sizes) -> str:
    return " × ".join(f"{size:,}" for size in sizes_of(name, sizes)) or "1"


def sizes_of(name: str, sizes: Sizes) -> Sizes:
    """As a reader expects it: queries, keys and values apart, a linear layer from its input to its output."""
    if re.search(r"attention\.qkv\.(weight|bias)$", name) and sizes[0] == 3 * (sizes[1:] or (sizes[0] // 3,))[0]:
        return (3, sizes[0] // 3, *sizes[1:])  # unless heads share keys and values
    if len(sizes) == 2 and re.search(r"(up|down|hidden|out)\.weight$", name):
        return sizes[::-1]
    return sizes


def summed(terms: Iterable[str]) -> str:
    """'4 × (64 × 64 + 64)': equal terms are written once."""
    counts = Counter(terms)
    bracketed = {term: f"({term})" if "+" in term else term for term in counts}
    return " + ".join(term if count == 1 else f"{count} × {bracketed[term]}" for term, count in counts.items())


@dataclass(frozen=True)
class Flops:
    length: int
    forward_per_row: int  # of `length` tokens
    backward_per_row: int
    per_token: float  # forward, at full length
    rows_in_step: int  # rows of `length` tokens in one training step
    per_step: int  # forward and backward over all rows of a step


def flops_of(network: Network, *, rows_in_step: int = 1) -> Flops:
    """The matrix products of one full row, by torch's counter."""
    length = network.length if isinstance(network, ExternalModel) else network.body.shape.length
    forward, backward = counted(network, length)
    return Flops(length, forward, backward, forward / length, rows_in_step, (forward + backward) * rows_in_step)


def counted(network: Network, length: int) -> tuple[int, int]:
    """Forward and backward of one full row, by torch's counter, which cannot see into a fused kernel or our loss."""
    with scoring(network), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward:
            logits = network(torch.zeros(1, length, dtype=torch.long)).flatten(0, -2)
        loss = cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
        learnt = [parameter for parameter in network.parameters() if parameter.requires_grad]
        with FlopCounterMode(display=False) as backward:  # loss.backward() would change the network's own gradients
            torch.autograd.grad(loss, learnt, allow_unused=True)
    return forward.get_total_flops(), backward.get_total_flops()


@dataclass(frozen=True, repr=False)
class Parameters(Result):
    """Size and cost of one network: its parameters, component by component, and its FLOPs.

    >>> found = ft.parameters("classify", vocabulary=1000, classes=2)
    >>> found.total == sum(row.count for row in found.ledger.rows)
    True
    """

    recipe: Recipe
    vocabulary: int
    classes: int
    ledger: Ledger
    flops: Flops

    @property
    def total(self) -> int:
        """Number of parameters."""
        return self.ledger.total

    def describe(self) -> Description:
        recipe, flops = self.recipe, self.flops
        network = {"classify": f"classifier of {self.classes} classes", "lm": "language model"}.get(recipe.task, "mlm")
        sentences = (
            f"{recipe.name or 'recipe'}: {network}, vocabulary of {self.vocabulary:,}; {self.total:,} parameters.",
            f"{flops.per_token:,.0f} FLOPs per token, forward; {flops.per_step:,} per training step (forward and"
            f" backward over {flops.rows_in_step} rows).",
        )
        columns: tuple[str, ...] = ("parameters", "weight matrices only")
        note = (
            "The last column counts the token embedding and the weight matrices of attention and feed-forward only: no"
            " biases, norms, positions or other parts, no classifier or output layer."
        )
        if recipe.external:  # which of its matrices are of attention nobody knows
            columns, note = columns[:1], ""
        body = [
            as_cells(each.component, Cell(each.formula), *(each.count, each.bias_free)[: len(columns)])
            for each in self.ledger.rows
        ]
        sums = as_cells("total", "", *(self.ledger.total, self.ledger.bias_free)[: len(columns)])
        names = ("component", "formula", *columns)
        table = Table("parameters", names, (*body, sums), note, text_columns=2)
        bars = tuple((each.component, float(each.count)) for each in self.ledger.rows)
        chart = BarChart(f"{self.total:,} parameters", "parameters", bars)
        return Description(sentences, [table], charts=[chart])

    def rows(self) -> list[dict[str, object]]:
        return [asdict(row) for row in self.ledger.rows]

    def to_json(self) -> dict[str, object]:
        counts = {"task": self.recipe.task, "vocabulary": self.vocabulary, "classes": self.classes}
        return counts | asdict(self.ledger) | {"flops": asdict(self.flops)}


def cost_of_recipe(
    recipe: Recipe, vocabulary: int | None = None, classes: int | None = None, seed: int = 0
) -> Parameters:
    """Nothing is trained. Without `vocabulary`, its size and the number of classes are those of the recipe's data."""
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
        raise BadInput("the number of classes is missing", "give --classes 3, or --data instead of --vocabulary")
    elif recipe.encoder.sha256 == "none":
        recipe = with_encoder(recipe, open_encoder(recipe))
    load_code(recipe)
    recipe = with_length(recipe)
    network = fresh_network(recipe, vocabulary, classes or 0)
    flops = flops_of(network, rows_in_step=recipe.training.batch)
    return Parameters(recipe, vocabulary, classes or 0, ledger_of(network), flops)
