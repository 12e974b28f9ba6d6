"""Numbers for readers: an interval decides how many digits mean something.

Results in words: the lines that commands print and pages repeat.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.recipe import Recipe
from fairtrial.statistics.outcomes import headline

MISSING = "–"


def is_number(value: object) -> bool:
    """A finite number; JSON may also hold null, NaN and infinities, which have no place on a page."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def decimals_for(low: float | None, high: float | None, *, least: int = 1, most: int = 4) -> int:
    """So many decimals that half the interval keeps one digit, or two where it begins with 1 or 2."""
    if not (is_number(low) and is_number(high)) or low == high:
        return max(1, least)
    half = abs(high - low) / 2  # type: ignore[operator]
    power = math.floor(math.log10(half))
    kept = power - 1 if round(half / 10.0**power, 6) < 3 else power
    return min(most, max(least, -kept))


def plain_number(value: float | None, decimals: int, *, sign: bool = False) -> str:
    if value is None or not is_number(value):
        return MISSING
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    return text.replace("-", "").replace("+", "") if float(text.replace(",", "")) == 0 else text  # no -0.0, no +0.0


def with_interval(value: float | None, low: float | None, high: float | None, *, least: int = 1) -> str:
    """`85.2 [84.0, 86.4]`."""
    told = plain_number(value, decimals_for(low, high, least=least))
    inside = interval_text(low, high, least=least)
    return told if inside == MISSING else f"{told} {inside}"


def interval_text(low: float | None, high: float | None, *, sign: bool = False, least: int = 1) -> str:
    if not (is_number(low) and is_number(high)):
        return MISSING
    decimals = decimals_for(low, high, least=least)
    return f"[{plain_number(low, decimals, sign=sign)}, {plain_number(high, decimals, sign=sign)}]"


def probability(value: float | None) -> str:
    """`0.032`, `<0.001`: a p-value, never zero."""
    if value is None or not is_number(value):
        return MISSING
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def few_digits(value: float | None, digits: int = 3, *, whole_below: float = 1e7) -> str:
    """`576,467` whole, `1.2G` short, `0.0123`: a size that has no interval."""
    if value is None or not is_number(value):
        return MISSING
    if float(value).is_integer() and abs(value) < whole_below:
        return f"{int(value):,}"
    for power, letter in ((12, "T"), (9, "G"), (6, "M")):
        if abs(value) >= 10.0**power:
            return f"{significant(value / 10.0**power, digits)}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else significant(value, digits)


def significant(value: float, digits: int) -> str:
    """Never as 1e+03."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def share(part: float | None, whole: float | None) -> str:
    if not (is_number(part) and is_number(whole)) or not whole:
        return MISSING
    return f"{part / whole:.1%}"  # type: ignore[operator]


def finite(values: Sequence[object]) -> list[float]:
    return [float(value) for value in values if is_number(value)]  # type: ignore[arg-type]


KINDS = {
    "classify": "encoder and classifier",
    "lm": "decoder language model",
    "mlm": "encoder that guesses hidden words",
}


def spoken_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def spoken_parts(recipe: Recipe) -> str:
    return " + ".join(spoken_part(part.name, part.options) for part in recipe.parts) or "none"


def spoken_part(name: str, options: Mapping[str, Any]) -> str:
    return name + (f" ({', '.join(f'{key} {value}' for key, value in options.items())})" if options else "")


def start_lines(recipe: Recipe, facts: dict[str, Any], step: int) -> list[str]:
    """What is about to be trained."""
    kind = KINDS[recipe.task]
    documents = ", ".join(f"{count:,} {name}" for name, count in facts["documents"].items())
    shape, parts = facts["shape"], [spoken_part(**part) for part in facts["parts"]]
    lines = [
        f"data: {recipe.data.source} ({documents}); vocabulary {facts['vocabulary']:,}",
        f"network: {kind}, {facts['parameters']:,} parameters"
        f" ({shape['layers']} layers, {shape['heads']} heads, width {shape['width']}, length {shape['length']};"
        f" parts: {' + '.join(parts) or 'none'})",
        f"training: {facts['steps']:,} steps, {facts['steps_per_epoch']:,} in an epoch; seed {facts['seed']};"
        f" weights chosen on {facts['choose_on'] or 'nothing: the last are kept'}",
    ]
    lines += [f"note: {note}" for note in facts["notes"]]
    if step:
        lines.append(f"going on after step {step}")
    return lines


def describe_score(split: str, score: dict[str, Any]) -> str:
    return f"{split} {_picked(score)}"


def describe_result(result: dict[str, Any]) -> list[str]:
    """The result of one trial, as sentences and a small table."""
    kept = f"weights of step {result['kept_step']:,} of {result['steps']:,}"
    how = "the best on validation" if result["kept"] == "best" and result["validation"] else "the last"
    lines = [f"result ({kept}, {how}; seed {result['seed']}):"]
    named = {**({"validation": result["validation"]} if result["validation"] else {}), **result["tests"]}
    width = max((len(name) for name in named), default=0)
    for name, score in named.items():
        lines.append(f"  {name:<{width}}  {_figures(score)}")
    first: dict[str, Any] = next(iter(named.values()), {})
    over = "items" if "accuracy" in first else "documents"
    lines.append(f"  intervals: 95% over test {over}, this one seed; other seeds differ, so compare over several")
    reads = sorted(set(result["test_reads"].values()))
    if result["test_watched"]:
        lines.append(f"  test watched: each test set was scored {' or '.join(map(str, reads))} times")
        for name, best in result["picked_on_test"].items():
            if flatters(best, result["tests"][name]):
                last = _picked(result["tests"][name])
                lines.append(
                    f"  picked on test, {name} would read {_picked(best)} (step {best['step']}) instead of {last}"
                )
    else:
        lines.append("  each test set was scored once" if result["tests"] else "  no test set was read")
    return lines


def flatters(best: dict[str, Any], score: dict[str, Any]) -> bool:
    """Whether the best moment on test looks better than the kept weights, by the same measure."""
    name, sign = headline(best)
    return bool(sign * best[name] > sign * score[name])


def bracket(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}]"


def majority(score: dict[str, Any]) -> float:
    """The accuracy of always guessing the most frequent class of the set."""
    return max(sum(row) for row in score["confusion"]) / score["items"]


def _figures(score: dict[str, Any]) -> str:
    if "accuracy" in score:
        low, high = score["interval"]
        return (
            f"accuracy {score['accuracy']:.1%} [{low:.1%}, {high:.1%}]  macro-F1 {score['macro_f1']:.1%}"
            f"  ({score['items']:,} items; always the largest class: {majority(score):.1%})"
        )
    if "masked_perplexity" in score:
        shown = f"perplexity of hidden words {score['masked_perplexity']:.1f}{bracket(score['interval'])}"
        return f"{shown}  ({score['tokens']:,} hidden words)"
    return (
        f"perplexity {score['perplexity']:.1f}{bracket(score['interval'])}  {score['bits_per_byte']:.3f} bits per byte"
        f"  unknown {score['unknown_share']:.1%}  (the course's way: {score['window_perplexity']:.1f};"
        f" {score['tokens']:,} tokens)"
    )


def _picked(best: dict[str, Any]) -> str:
    name, _ = headline(best)
    return f"{best[name]:.1%}" if name == "accuracy" else f"{best[name]:.1f}"
