"""Damaged files of records and studies: every mutation is refused by name, or changes nothing that is told; a damaged
record that was not finished goes on to the same bits, or is refused."""

from __future__ import annotations

import json
import random
import re
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scenes import RECORD as WRITTEN
from scenes import digests

from campaign import SEED, Tally, sized
from fairtrial.errors import Interrupted
from fairtrial.trial import run_trial
from tiny import make_tiny

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
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
STUDY = ("plan.json", "verdict.json", "study.toml", "contamination.json", "search.json")
STUDY += ("passports/classify/rope.json", "baselines/classify/seed-0.json", "baselines/classify/seed-0.safetensors")
STUDY += tuple(f"trials/classify/rope/seed-1/{name}" for name in RECORD)
UNFINISHED = ("recipe.toml", "trial.json", "events.jsonl", "clock.jsonl", "tokenizer.json")
UNFINISHED += ("checkpoints/manifest.jsonl", "checkpoints/NEWEST", "checkpoints/OLDEST")
TEXT = "We will build bridges ."
# what is asked of what is damaged; the first always, one of the others by chance. PLACE is its folder, OUT a new one
CLASSIFY = ["show PLACE", "predict PLACE TEXT", "errors PLACE", "params PLACE", "export PLACE --out OUT"]
CLASSIFY += ["look PLACE TEXT --out OUT", "show PLACE --html OUT.html", "show PLACE --json"]
LANGUAGE = ["show PLACE", "surprisal PLACE TEXT", "generate PLACE TEXT --tokens 3", "length PLACE --times 1"]
LANGUAGE += ["look PLACE --out OUT", "params PLACE"]
JUDGED = [
    "verdict PLACE",
    "report PLACE",
    "verdict PLACE --all",
    "verdict PLACE --json",
    "verdict PLACE --format latex",
]
JUDGED += [f"{word} PLACE/trials/classify/rope/seed-1" for word in ("show", "params", "errors")]
JUDGED += ["show PLACE", "predict PLACE/trials/classify/rope/seed-1 TEXT"]


def mutations(
    whole: Path, files: Sequence[str], count: int, workspace: Path
) -> Iterator[tuple[str, Edit, random.Random]]:
    """A damaged copy in `workspace/copy` for each: the file, what was done to it, and a source of chance."""
    for name in files:
        for edit in EDITS:
            for number in range(sized(count)):
                rng = random.Random(f"{SEED} {name} {edit.__name__} {number}")
                shutil.rmtree(workspace / "copy", ignore_errors=True)
                shutil.copytree(whole, workspace / "copy")
                found = sorted((workspace / "copy" / "checkpoints").glob("step-*"))
                path = {"NEWEST": found[-1:], "OLDEST": found[:1]}.get(Path(name).name, [workspace / "copy" / name])[0]
                edit(path, rng)
                yield f"{name}, {edit.__name__} {number}", edit, rng


def campaign(
    title: str,
    whole: Path,
    files: Sequence[str],
    questions: Sequence[str],
    count: int,
    fairtrial: Callable[..., Any],
    workspace: Path,
    capsys: Any,
) -> None:
    copy, tally = workspace / "copy", Tally(f"stored files: {title}")

    def ask(question: str) -> Any:
        shutil.rmtree(workspace / "out", ignore_errors=True)
        (workspace / "out").unlink(missing_ok=True) if (workspace / "out").is_file() else None
        names = {"PLACE": str(copy), "TEXT": TEXT, "OUT": str(workspace / "out")}
        words = [re.sub("|".join(names), lambda found: names[found[0]], word) for word in question.split()]
        return fairtrial(*words)

    shutil.copytree(whole, copy)
    before = {question: ask(question) for question in questions}
    assert all(said.code == 0 for said in before.values()), before
    for where, edit, rng in mutations(whole, files, count, workspace):
        name = where.partition(",")[0]
        problems, answers = [], set()
        for question in [questions[0], rng.choice(questions[1:])]:
            try:
                said = ask(question)
            except BaseException as error:
                problems.append(f"{question}: {''.join(traceback.format_exception(error)[-3:])}")
                continue
            answers.add(said.code)
            if "\x1b" in said.out + said.err:
                problems.append(f"{question}: an escape reaches the terminal")
            if said.code:
                if said.code not in (2, 5) or not re.search("^fairtrial: ", said.err, flags=re.M):
                    problems.append(f"{question}: exit {said.code}: {said.err}")
                continue
            if f"damaged: {copy / name}" in said.out:  # in a list of records
                answers.add(2)
                continue
            unproven = name == "clock.jsonl" or (title == "study" and edit is change_an_old_value)
            unfinished = name.endswith("result.json") and "finished" in said.out
            if not unproven and not unfinished and plain(said.out) != plain(before[question].out):
                problems.append(f"{question}: another answer: {said.out[-300:]}")
        if problems:
            tally.failed(f"{title}, {where}", "; ".join(problems))
        elif answers == {0}:
            tally.survived()
        else:
            tally.refused()
    with capsys.disabled():
        tally.close()


def plain(out: str) -> str:
    """Without times, and without the data's path and the recipe's name, which may be given anew."""
    rest = (line for line in out.splitlines() if not line.startswith(("  took ", "  data ")))
    text = re.sub(r", recipe '.*', seed", "", "\n".join(rest))
    return re.sub(r'"(name|source)": "[^"]*"', "", text)


def test_records(finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path, capsys: Any) -> None:
    campaign("record", finished_records["classify"], RECORD, CLASSIFY, 8, fairtrial, tmp_path, capsys)


def test_language_models(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path, capsys: Any
) -> None:
    campaign("language model", finished_records["lm"], RECORD, LANGUAGE, 4, fairtrial, tmp_path, capsys)


def test_studies(studies: Callable[[str], Path], fairtrial: Callable[..., Any], tmp_path: Path, capsys: Any) -> None:
    campaign("study", studies("search"), STUDY, JUDGED, 5, fairtrial, tmp_path, capsys)


def test_unfinished_records_go_on_to_the_same_bits(
    course: Path, fairtrial: Callable[..., Any], tmp_path: Path, capsys: Any
) -> None:
    tally, recipe, copy = Tally("stored files: unfinished record"), make_tiny("classify", course), tmp_path / "copy"
    wanted = digests(run_trial(recipe, 3, tmp_path / "whole").folder, WRITTEN)
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        run_trial(recipe, 3, tmp_path / "stopped", stop=lambda: next(steps) > 5, save_seconds=0)
    for where, _, _ in mutations(tmp_path / "stopped", UNFINISHED, 9, tmp_path):
        try:
            said = fairtrial("train", "--resume", copy)
        except BaseException as error:
            tally.failed(where, "".join(traceback.format_exception(error)[-3:]))
            continue
        if said.code in (2, 5) and re.search("^fairtrial: ", said.err, flags=re.M):
            tally.refused()
        elif said.code:
            tally.failed(where, f"exit {said.code}: {said.err}")
        elif (found := digests(copy, WRITTEN)) != wanted:
            tally.failed(where, f"other bits in {[name for name in wanted if found[name] != wanted[name]]}")
        else:
            tally.survived()
    with capsys.disabled():
        tally.close()
