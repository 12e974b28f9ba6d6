"""Recipes that train in a fraction of a second."""

from __future__ import annotations

from pathlib import Path

from fairtrial.recipe import Recipe, load_recipe, with_settings

RECIPES = Path(__file__).parent / "golden" / "recipes"  # of version 0.2.0, whatever the defaults are today

TINY = (
    "shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.length=12", "shape.classifier_hidden=8",
    "training.batch=8",
)  # fmt: skip


def make_tiny(task: str, folder: Path, *more: str) -> Recipe:
    lasts = ("training.duration=8 steps", "training.select_every=3 steps", "scoring.curve_every=4 steps")
    return with_settings(load_recipe(RECIPES / f"default-{task}.toml"), [f"data.source={folder}", *TINY, *lasts, *more])
