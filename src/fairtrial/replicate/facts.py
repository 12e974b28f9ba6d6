"""The facts: every number that the reports publish, out of the package's own file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.duration import Duration

MEASURES = ("accuracy", "window_perplexity", "sentence_perplexity", "sentence_loss")


@dataclass(frozen=True)
class Figure:
    """One published number, and what we train for it."""

    report: str
    study: str
    variant: str
    set: str  # a test set, or `train`
    measure: str
    value: float
    picked_on_test: bool = False
    other_data: bool = False  # the report's own are not at hand
    told: str = ""  # what the report says of this run alone
    at: Duration | None = None  # how far training had come; None: at its end, or at the best moment on test
    in_curve: bool = False  # one point of several


@dataclass(frozen=True)
class Count:
    """A published number of parameters."""

    report: str
    study: str
    counted: str  # which of them
    value: int
    why: str = ""  # ours differ


@dataclass(frozen=True)
class Published:
    """Published settings of a study's models and their training."""

    report: str
    study: str
    values: Mapping[str, Any]  # a recipe's field, or a name that our records know -> number
    why: Mapping[str, str] = field(default_factory=dict)  # ours differ


@dataclass(frozen=True)
class Aside:
    """Published, and not retried."""

    report: str
    what: str
    values: Mapping[str, Any]
    why: str
    beside: tuple[str, str] | None = None  # study and variant of another model that may stand beside it


@cache
def published() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))


def figures() -> list[Figure]:
    return [*(each for figure in _single() for each in (figure, *_as_coded(figure))), *_curves()]


def _single() -> list[Figure]:
    found = []
    for measure in MEASURES:
        for row in published()[measure]:
            for name, value in row["values"].items():
                found.append(
                    Figure(
                        row["report"],
                        row["study"],
                        row.get("variant", name),
                        row.get("set", name),
                        measure.replace("_", " "),
                        value,
                        row.get("picked_on_test", False),
                        row.get("other_data", False),
                        row.get("told", ""),
                        Duration.read(row["at"]) if "at" in row else None,
                    )
                )
    return found


def _as_coded(figure: Figure) -> list[Figure]:
    """The same number beside the report's own code, where that is another variant."""
    coded = published()["as_coded"].get(figure.report, {}).get(figure.variant)
    return [replace(figure, variant=coded)] if coded else []


def _curves() -> list[Figure]:
    found = []
    for row in published()["curves"]:
        every = Duration.read(row["every"])
        for place, values in row["values"].items():
            for number, value in enumerate(values, row["first"]):
                at = Duration(number * every.count, every.unit)
                what = (row["report"], row["study"], row["variant"], place, row["measure"], value)
                found.append(Figure(*what, at=at, in_curve=True))
    return found


def counts() -> list[Count]:
    return [Count(**row) for row in published()["parameters"]]


def settings() -> list[Published]:
    return [Published(**row) for row in published()["settings"]]


def asides() -> list[Aside]:
    rows = published()["not_retried"]
    return [Aside(**{**row, "beside": tuple(row["beside"]) if "beside" in row else None}) for row in rows]
