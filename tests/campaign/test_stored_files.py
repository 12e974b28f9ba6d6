"""Damaged files of records and studies: every mutation is refused by name, or changes nothing that is told.

`FAIRTRIAL_CAMPAIGN_SEED` chooses other mutations, `FAIRTRIAL_CAMPAIGN_SIZE` how many of each kind and file."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines.job import InProcess
from fairtrial.recipe import Recipe, write_recipe
from fairtrial.study.design import study_from
from fairtrial.study.run import run_study

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("FAIRTRIAL_CAMPAIGN_SEED", "17"))
SIZE = int(os.environ.get("FAIRTRIAL_CAMPAIGN_SIZE", "8"))
VALUES: list[Any] = [None, True, -1, 0, 1e308, float("nan"), 10**400]
VALUES += ["", "x", "\x1b[31m", "\ud800", [], [1], {}, {"x": 1}]
Edit = Callable[[Path, random.Random], None]


def flip_a_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content))
    content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(content))


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice([b"", b"{}", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b"\0" * 100, b'"\\ud800"']))


def vanish(path: Path, rng: random.Random) -> None:
    path.unlink()


def become_a_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def claim_a_terabyte(path: Path, rng: random.Random) -> None:
    """As the header of a safetensors file; elsewhere some bytes that do not belong."""
    path.write_bytes((rng.choice([1 << 40, 1 << 62, (1 << 64) - 1])).to_bytes(8, "little") + path.read_bytes()[8:])


def change_an_old_value(path: Path, rng: random.Random) -> None:
    """Without its checksum, as files of version 0.1 have none: a value of the right kind cannot be noticed there."""
    change_a_value(path, rng, old=True)


def change_a_value(path: Path, rng: random.Random, old: bool = False) -> None:
    """In JSON: one value, anywhere, becomes another."""
    try:
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        at = rng.randrange(len(lines))
        whole = json.loads(lines[at])
    except ValueError:
        flip_a_bit(path, rng)
        return
    if old and isinstance(whole, dict):
        whole.pop("checksum", None)
        whole["format"] = 1
    places: list[tuple[Any, Any]] = []
    todo = [whole]
    while todo:
        holder = todo.pop()
        keys = holder.keys() if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in keys]
        todo += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    holder, key = rng.choice(places)
    holder[key] = rng.choice(VALUES)
    lines[at] = json.dumps(whole)
    path.write_text("\n".join(lines) + "\n")


EDITS: list[Edit] = [
    flip_a_bit,
    cut,
    empty,
    vanish,
    become_a_folder,
    claim_a_terabyte,
    change_a_value,
    change_an_old_value,
]
RECORD = ("recipe.toml", "trial.json", "result.json", "events.jsonl", "clock.jsonl", "tokenizer.json")
RECORD += ("model.safetensors", "outcomes.safetensors")
STUDY = ("plan.json", "verdict.json", "study.toml", "contamination.json", "maps.json", "ledger.json")
STUDY += ("passports/classify/rope.json", "baselines/classify/seed-0.json", "baselines/classify/seed-0.safetensors")
STUDY += tuple(f"trials/classify/rope/seed-1/{name}" for name in RECORD)
ASKED = {"show": [], "predict": ["We will."], "verdict": [], "report": []}


def tell(title: str, counts: Counter[str]) -> None:
    print(f"\n{title}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()) + f" (seed {SEED})")


def campaign(
    title: str, whole: Path, files: Sequence[str], commands: Sequence[str], fairtrial: Callable[..., Any], room: Path
) -> None:
    copy, counts = room / "copy", Counter[str]()
    shutil.copytree(whole, copy)

    def ask(command: str) -> tuple[int, str, str]:
        said = fairtrial(command, copy, *ASKED[command])
        return said.code, said.out, said.err

    before = {command: ask(command) for command in commands}
    assert all(code == 0 for code, _, _ in before.values()), before
    for name in files:
        for edit in EDITS:
            for number in range(SIZE):
                rng = random.Random(f"{SEED} {name} {edit.__name__} {number}")
                shutil.rmtree(copy)
                shutil.copytree(whole, copy)
                edit(copy / name, rng)
                for command in commands:
                    where = f"{title}: {name}, {edit.__name__} {number}, {command}"
                    try:
                        code, out, err = ask(command)
                    except Exception as error:
                        pytest.fail(f"{where}: {type(error).__name__}: {error}")
                    assert "\x1b" not in out + err, where
                    if code == 0:
                        same = plain(out) == plain(before[command][1])
                        counts["as before" if same else "told otherwise"] += 1
                        unproven = name == "clock.jsonl" or (title == "study" and edit is change_an_old_value)
                        unfinished = name == "result.json" and "not finished" in out
                        assert same or unproven or unfinished, f"{where}: another answer\n{out}"
                    else:
                        counts["refused"] += 1
                        assert code in (2, 5), f"{where}: exit {code}\n{err}"
                        assert err.startswith("fairtrial: ") or "\nfairtrial: " in err, where
    tell(title, counts)


def plain(out: str) -> str:
    """Without times, and without the data's path and the recipe's name, which may be given anew."""
    rest = (line for line in out.splitlines() if not line.startswith(("  took ", "  data ")))
    return re.sub(r", recipe '.*', seed", "", "\n".join(rest))


def test_records(finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path) -> None:
    campaign("record", finished_records["classify"], RECORD, ("show", "predict"), fairtrial, tmp_path)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from conftest import make_tiny
    from course_text import write_course

    room = tmp_path_factory.mktemp("study")
    recipe: Recipe = make_tiny("classify", write_course(room / "speechesdataset"))
    (room / "recipe.toml").write_text(write_recipe(recipe))
    variants = {name: {"parts": [name]} for name in ("learned", "rope")}
    table = {"recipe": str(room / "recipe.toml"), "tasks": ["classify"], "seeds": 2, "variants": variants}
    run_study(study_from(table), room / "study", InProcess())
    return room / "study"


def test_studies(study: Path, fairtrial: Callable[..., Any], tmp_path: Path) -> None:
    campaign("study", study, STUDY, ("verdict", "report"), fairtrial, tmp_path)
