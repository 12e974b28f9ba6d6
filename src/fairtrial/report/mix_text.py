"""A mixture as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NAME, CELL = 34, 27


def mix_lines(found: dict[str, Any]) -> Iterator[str]:
    """`found`: what `fairtrial mix --json` prints."""
    kind = "p = sum of weight x p" if found["metric"] == "perplexity" else "p = product of p to the power of its weight"
    count = len(found["chosen_on"])
    yield f"{found['task']}: a mixture, {kind}; weights chosen on the validation of {count} record{'s' * (count > 1)}"
    for each in found["more"]:
        left_out = f"{each['dropped']:,} left out that stand in scored sets"
        yield f"with {each['name']}: {each['documents']:,} documents; {left_out}"
    yield f"  {'':<{NAME}}{'weight':<10}{'validation':<14}".rstrip()
    for model, figures in found["validation"].items():
        weight = f"{found['weights'][model]:.3f}" if model in found["weights"] else ""
        yield f"  {model:<{NAME}}{weight:<10}{shown(found['metric'], figures['mean']):<14}".rstrip()
    for model, weight in found["weights"].items():
        if model not in found["validation"]:
            yield f"  {model:<{NAME}}{weight:.3f}"
    for name, models in found["tests"].items():
        ways = list(next(iter(models.values())))
        seeds = len(found["records"])
        yield f"{name}: {found['metric']}, {'mean of ' * (seeds > 1)}{seeds} seed{'s' * (seeds > 1)}"
        yield (f"  {'':<{NAME}}" + "".join(f"{way:<{CELL}}" for way in ways)).rstrip()
        for model, by_way in models.items():
            yield (
                f"  {model:<{NAME}}" + "".join(f"{cell(found['metric'], by_way[way]):<{CELL}}" for way in ways)
            ).rstrip()
    if found["tests"]:
        yield "  intervals: 95% for a new seed and new test items; no test set had a part in the choice of the weights"


def shown(metric: str, value: float) -> str:
    return f"{value:.1f}%" if metric == "accuracy" else f"{value:.1f}"


def cell(metric: str, score: dict[str, Any]) -> str:
    if score["mean"] is None:
        return ""
    text = shown(metric, score["mean"])
    if score["low"] is None:
        return text
    return f"{text} [{shown(metric, score['low'])}, {shown(metric, score['high'])}]"
