"""The parameter ledger: every learnt number of a network, component by component, summing exactly to its total.

Beside each count stands the reports' way of counting: the token embedding and the weight matrices of attention and
feed-forward, nothing else (no biases, norms, positions or other parts, no classifier or output layer)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.errors import BadInput
from fairtrial.model.masked import MaskedModel
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.recipe import Recipe

Sizes = tuple[int, ...]
Network = Classifier | LanguageModel | MaskedModel


@dataclass(frozen=True)
class Row:
    component: str
    formula: str  # with numbers: '4 × (64 × 64 + 64)'
    count: int
    bias_free: int  # as the reports count


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
COUNTED_BY_THE_REPORTS = frozenset(name for _, name in COMPONENTS if name != "norms")


def ledger(recipe: Recipe, vocabulary: int, classes: int = 0) -> Ledger:
    """The ledger of a recipe's network: nothing is trained. `classes` only matters to a classifier."""
    return ledger_of(fresh_network(recipe, vocabulary, classes))


def fresh_network(recipe: Recipe, vocabulary: int, classes: int = 0) -> Network:
    if vocabulary < 1:
        raise BadInput(f"a vocabulary of {vocabulary} entries will not do")
    if recipe.task == "lm":
        return LanguageModel(recipe.shape, recipe.parts, vocabulary)
    if recipe.task == "mlm":
        return MaskedModel(recipe.shape, recipe.parts, vocabulary)
    if classes < 1:
        raise BadInput(f"a classifier of {classes} classes will not do")
    return Classifier(recipe.shape, recipe.parts, vocabulary, classes)


def ledger_of(network: nn.Module) -> Ledger:
    """The ledger of a network. A tensor in two places (a tied output layer) is counted once, where it comes first."""
    found: dict[str, dict[str, list[tuple[str, Sizes]]]] = {}  # component -> copy -> its tensors
    for name, parameter in network.named_parameters():
        component, copy = place_of(name)
        found.setdefault(component, {}).setdefault(copy, []).append((name, tuple(parameter.shape)))
    order = [name for _, name in COMPONENTS]
    named = sorted(found.items(), key=lambda item: rank(item[0], order))
    return Ledger(tuple(row_of(component, list(copies.values())) for component, copies in named))


def place_of(name: str) -> tuple[str, str]:
    """The component that a parameter belongs to, and which of its copies."""
    for pattern, component in COMPONENTS:
        if match := re.match(rf"{pattern}\.", name):
            return component, match.group()
    if match := re.match(r"body\.parts\.([^.]+)\.", name):
        return f"part {match[1]!r}", ""
    if name.startswith(("hidden.", "norm.", "out.")):
        return "head", ""
    return name.rsplit(".", 1)[0], ""


def rank(component: str, order: Sequence[str]) -> float:
    """Parts stand after the token embedding, what heads the network at the end."""
    if component in order:
        return order.index(component)
    return 0.5 if component.startswith("part ") else len(order)


def row_of(component: str, copies: list[list[tuple[str, Sizes]]]) -> Row:
    tensors = [tensor for copy in copies for tensor in copy]
    counted = component in COUNTED_BY_THE_REPORTS
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
    """As a reader thinks of it: queries, keys and values apart, a linear layer from its input to its output."""
    if re.search(r"attention\.qkv\.(weight|bias)$", name):
        return (3, sizes[0] // 3, *sizes[1:])
    if len(sizes) == 2 and re.search(r"(up|down|hidden|out)\.weight$", name):
        return sizes[::-1]
    return sizes


def formula(copies: Sequence[Sequence[Sizes]]) -> str:
    """'4 × (64 × 64 + 64)': copies of one kind are told once."""
    return " + ".join(
        times(how_many, " + ".join(terms(copy))) for copy, how_many in Counter(map(tuple, copies)).items()
    )


def terms(copy: Sequence[Sizes]) -> Iterator[str]:
    for sizes, how_many in Counter(copy).items():
        product = " × ".join(f"{size:,}" for size in sizes) or "1"
        yield product if how_many == 1 else f"{how_many} × {product}"


def times(how_many: int, term: str) -> str:
    if how_many == 1:
        return term
    return f"{how_many} × ({term})" if "+" in term else f"{how_many} × {term}"
