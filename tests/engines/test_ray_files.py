"""What a trial reads travels to a machine that shares no disk, and the record that comes back names it as at home."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path

from fairtrial.engines.ray import INPUTS, files_in, input_paths, put_inputs, recipe_with_paths, with_paths
from fairtrial.recipe import Recipe, recipe_from, with_settings, write_recipe


def sources(folder: Path) -> dict[str, Path]:
    """A file of data, the record of a vocabulary, the folder of an encoder."""
    (folder / "novel.txt").write_text("Once upon a time.\n")
    for name in ("vocabulary", "encoder"):
        (folder / name).mkdir()
        (folder / name / "trial.json").write_text(json.dumps({"name": name}))
        (folder / name / "tokenizer.json").write_text("{}")
    return {"data": folder / "novel.txt", "tokens": folder / "vocabulary", "encoder": folder / "encoder"}


def test_data_vocabulary_and_encoder_travel_with_a_trial(tmp_path: Path) -> None:
    home, far = tmp_path / 'home "of mine"', tmp_path / "far"
    home.mkdir()
    named = sources(home)
    settings = [f"{section}.{field}={json.dumps(str(named[section]))}" for section, field in INPUTS]
    recipe = write_recipe(with_settings(Recipe(), settings))
    assert input_paths(recipe) == [str(path) for path in named.values()]
    inputs = []
    for path in named.values():
        inputs += [str(path), files_in(path) if path.is_dir() else {path.name: path.read_bytes()}]
    home.rename(tmp_path / "gone")  # as on another machine

    moved = put_inputs(far, inputs)
    there = recipe_from(tomllib.loads(with_paths(recipe, moved)))
    assert Path(there.data.source).read_text() == "Once upon a time.\n"
    assert json.loads((Path(there.tokens.fit) / "trial.json").read_text()) == {"name": "vocabulary"}
    assert (Path(there.encoder.source) / "tokenizer.json").is_file()

    record = {"recipe.toml": with_paths(recipe, moved).encode(), "result.json": b"{}"}
    back = recipe_with_paths(record, {here: path for path, here in moved.items()})
    assert back["recipe.toml"].decode() == recipe


def test_what_a_machine_has_is_not_written_again(tmp_path: Path) -> None:
    path = sources(tmp_path)["data"]
    assert put_inputs(tmp_path / "far", [str(path), {path.name: path.read_bytes()}]) == {}
    assert not (tmp_path / "far").exists()
    moved = put_inputs(tmp_path / "far", [str(path), {path.name: b"other"}])  # a file of that name, but not that file
    assert Path(moved[str(path)]).read_bytes() == b"other"


def test_every_recipe_field_that_may_be_a_path_is_known() -> None:
    """A new field called source, fit, path or folder must be shipped, too."""
    sections = [field for field in fields(Recipe) if is_dataclass(getattr(Recipe(), field.name))]
    names = {
        (section.name, field.name)
        for section in sections
        for field in fields(getattr(Recipe(), section.name))
        if field.name in ("source", "fit", "path", "folder")
    }
    assert names == set(INPUTS)
