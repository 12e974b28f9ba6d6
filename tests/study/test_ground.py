"""What the variants of a task share, and which test items belong together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe, built_in_recipe
from fairtrial.study.plan import eval_sets_of


def recipe_for(task: str, source: Path) -> Recipe:
    recipe = built_in_recipe("default", task)
    return replace(recipe, data=replace(recipe.data, source=str(source)))


def test_rows_of_one_speech_belong_together(tmp_path: Path) -> None:
    table = tmp_path / "speeches.tsv"
    rows = [f"{row % 2}\tsentence number {row} of many\tspeech {row // 6}" for row in range(120)]
    table.write_text("\n".join(["label\ttext\tgroup", *rows]) + "\n")
    ground = eval_sets_of({"learned": recipe_for("classify", table)}, 0)
    sizes = Counter(ground.groups["test"])
    assert sum(sizes.values()) == ground.items["test"]
    assert set(sizes.values()) == {6}  # whole speeches


def test_running_text_is_cut_into_blocks(tmp_path: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text("\n\n".join(f"It was a long sentence of ten words, number {line}." for line in range(600)) + "\n")
    ground = eval_sets_of({"learned": recipe_for("lm", novel)}, 0)
    (place, groups), *_ = ground.groups.items()
    assert len(groups) == ground.items[place]
    assert list(groups) == sorted(groups)
    assert min(Counter(groups).values()) * 10 >= 256


def test_lines_of_a_table_without_groups_stand_alone(course_folder: Path) -> None:
    for task in ("classify", "lm"):
        assert eval_sets_of({"learned": recipe_for(task, course_folder)}, 0).groups == {}


def test_variants_whose_tokens_cut_a_novel_otherwise_are_refused(tmp_path: Path, course_folder: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text("\n\n".join(f"It was late. He slept in room {line}, and dreamt." for line in range(300)) + "\n")

    def two(source: Path) -> dict[str, Recipe]:
        words = recipe_for("lm", source)
        return {"words": words, "pieces": replace(words, tokens=replace(words.tokens, kind="bpe"))}

    with pytest.raises(BadInput, match=r"'pieces'.*is not scored on the items of the others"):
        eval_sets_of(two(novel), 0)
    eval_sets_of(two(course_folder), 0)
