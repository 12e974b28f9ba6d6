"""Every parameter stands in the ledger once, and the arithmetic is what torch's counter sees."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.errors import BadInput
from fairtrial.inspection.parameters import cost_of_recipe, flops_of, fresh_network, ledger, ledger_of
from fairtrial.model.layers import capture
from fairtrial.model.network import count_parameters
from fairtrial.recipe import PartChoice, Recipe, built_in_recipe, with_settings
from sampling import cases

SMALL = (
    "shape.layers=2",
    "shape.heads=2",
    "shape.width=12",
    "shape.hidden=10",
    "shape.length=9",
    "shape.classifier_hidden=5",
)
OPTIONS = [
    PartChoice(name="learned"),
    PartChoice(name="pool-cls"),
    PartChoice(name="pool-attention"),
    PartChoice(name="reweight"),
    PartChoice(name="disentangled", options={"furthest": 5}),
    PartChoice(name="t5", options={"buckets": 8, "furthest": 20}),
    PartChoice(name="window", options={"size": 3, "global_tokens": 2}),
    PartChoice(name="shuffle", options={"every_step": True}),
]


def small(task: str, *choices: PartChoice, more: tuple[str, ...] = ()) -> Recipe:
    return replace(
        with_settings(built_in_recipe("default" if task == "mlm" else "course", task), [*SMALL, *more]), parts=choices
    )


def worth(formula: str) -> int:
    """What a formula such as '4 × (64 × 64 + 64)' comes to."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            left, right = value(node.left), value(node.right)
            return left + right if isinstance(node.op, ast.Add) else left * right
        assert isinstance(node, ast.Constant)
        return int(node.value)

    return value(ast.parse(formula.replace(",", "").replace("×", "*"), mode="eval").body)


@pytest.mark.parametrize(("task", "total", "bias_free"), [("classify", 576_467, 564_928), ("lm", 863_243, 485_056)])
def test_the_course_is_counted_as_the_reports_did(task: str, total: int, bias_free: int) -> None:
    found = ledger(built_in_recipe("course", task), 5755, 3)
    assert (found.total, found.bias_free) == (total, bias_free)


@cases("task", ["classify", "lm"])
@cases("choice", OPTIONS)
def test_rows_sum_to_the_total_for_every_part(task: str, choice: PartChoice) -> None:
    if task == "lm" and choice.name.startswith("pool-"):
        pytest.skip("a language model pools nothing")
    network = fresh_network(small(task, choice), 50, 4)
    found = ledger_of(network)
    assert found.total == count_parameters(network)
    assert [worth(row.formula) for row in found.rows] == [row.count for row in found.rows]
    assert found.bias_free == 50 * 12 + 2 * (4 * 12 * 12 + 2 * 12 * 10)
    own = sum(each.numel() for each in network.body.parts.parameters())
    assert sum(row.count for row in found.rows if choice.name in row.component) == own


@cases(
    ("task", "setting"),
    [("classify", "shape.qkv_bias=true"), ("lm", "shape.norm=rms"), ("classify", "shape.norm_place=post"),
     ("lm", "shape.tied=true"), ("mlm", "shape.tied=true"), ("mlm", "shape.heads=4")],
)  # fmt: skip
def test_rows_sum_to_the_total_for_every_option(task: str, setting: str) -> None:
    network = fresh_network(small(task, PartChoice(name="learned"), more=(setting,)), 50, 4)
    found = ledger_of(network)
    assert found.total == count_parameters(network)
    assert [worth(row.formula) for row in found.rows] == [row.count for row in found.rows]


def test_tied_weights_are_counted_once() -> None:
    apart, tied = (ledger(small("lm", more=(f"shape.tied={value}",)), 50) for value in ("false", "true"))
    assert apart.total - tied.total == 50 * 12
    assert "token embedding" in tied.rows[-1].component


def test_impossible_sizes_are_refused() -> None:
    for sizes in ((0, 3), (50, 0)):
        with pytest.raises(BadInput):
            ledger(small("classify"), *sizes)


def counted(recipe: Recipe, batch: int) -> tuple[int, int]:
    """Forward, and forward with backward, of a full batch by torch's counter, with attention as its equation says."""
    network, length = fresh_network(recipe, 50, 4), recipe.shape.length
    ids = torch.arange(batch * length).view(batch, length) % 50
    with capture(network), FlopCounterMode(display=False) as whole:
        logits = network(ids).flatten(0, -2)
        forward = whole.get_total_flops()
        cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long)).backward()
    return forward, whole.get_total_flops()


@cases(
    ("task", "name"),
    [("classify", "learned"), ("classify", "pool-cls"), ("classify", "pool-attention"), ("classify", "window"),
     ("lm", "disentangled"), ("lm", "t5"), ("lm", "reweight"), ("mlm", "rope"), ("mlm", "disentangled")],
)  # fmt: skip
def test_operations_are_those_of_torchs_counter(task: str, name: str) -> None:
    recipe = small(task, PartChoice(name=name), more=("training.batch=6",))
    found, (forward, whole) = cost_of_recipe(recipe, 50, 4).flops, counted(recipe, 1)
    assert found.forward_per_row == forward
    assert found.per_token == forward / 9
    assert found.per_step == 6 * whole


def test_disentangled_costs_what_its_equation_says() -> None:
    parts = PartChoice(name="disentangled", options={"furthest": 5}), PartChoice(name="learned")
    with_it, plain = (cost_of_recipe(small("lm", part), 50).flops.forward_per_row for part in parts)
    project, look = 2 * 2 * 10 * 12 * 12, 2 * 2 * 9 * 10 * 12  # two projections of 10 distances; two scores with them
    assert with_it - plain == 2 * (project + look)


def test_counting_leaves_the_network_as_it_was() -> None:
    network = fresh_network(small("lm", PartChoice(name="learned")), 50)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    flops_of(network)
    assert network.training
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


def test_the_command_counts_records_and_recipes(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    for task in ("classify", "lm"):
        said = fairtrial("inspect", "params", finished_records[task], "--json")
        assert said.code == 0, said.err
        result = json.loads((finished_records[task] / "result.json").read_text())
        assert json.loads(said.out)["total"] == result["parameters"]
        # the recipe of that record, with its data read anew, comes to the same
        recipe = finished_records[task] / "recipe.toml"
        seed = json.loads((finished_records[task] / "trial.json").read_text())["seed"]
        again = fairtrial("inspect", "params", recipe, "--json", "--seed", seed)
        assert json.loads(again.out) == json.loads(said.out)


def test_the_command_writes_every_format(fairtrial: Callable[..., Any]) -> None:
    sizes = ("--vocabulary", 5755, "--classes", 3)
    plain = fairtrial("inspect", "params", "course", *sizes).out
    for number in ("576,467", "564,928"):
        assert number in plain
    assert (
        "| total |  | 576,467 | 564,928 |"
        in fairtrial("inspect", "params", "course", *sizes, "--format", "markdown").out
    )
    typeset = fairtrial("inspect", "params", "course", "--task", "lm", *sizes, "--format", "latex").out
    assert r"token embedding & 5,755 $\times$ 64 & 368,320 & 368,320 \\" in typeset
    rows = list(
        csv.reader(StringIO(fairtrial("inspect", "params", "course", "--task", "lm", *sizes, "--format", "csv").out))
    )
    assert rows[-1] == ["total", "", "863243", "485056"]
    assert sum(int(row[2]) for row in rows[1:-1]) == 863_243


@cases(
    ("words", "told"),
    [
        (("curse",), "did you mean 'course'"),
        (("course", "--vocabulary", 10), "the number of classes is missing"),
        (("course", "--classes", 3), "--vocabulary"),
        (("course",), "--vocabulary 5755"),
        (("nowhere/record",), "no built-in recipe is called"),
        (("course", "--format", "word"), "--format"),
        (("course", "--task", "summarise"), "neither a task nor"),
    ],
)
def test_mistakes_are_told(words: tuple[object, ...], told: str, fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("inspect", "params", *words)
    assert said.code == 2
    assert told in said.err
