"""The tool that plants faults finds places in every package, plants what it says, and tells caught from survived."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import faults
from faults import Fault, faults_in, files_for, report, run, sample

ROOT = Path(__file__).parents[2]
TOP = ROOT / "src" / "fairtrial"
SOURCE = '''"""Sizes."""
from typing import Annotated

LIMIT: Annotated[int, "at most 3"] = 3


def fits(size: int, *, strict: bool = False) -> bool:
    """Whether it does."""
    if size < 0:
        raise ValueError(f"{size - 1} is too small")
    return not (size > LIMIT or strict and size == LIMIT)
'''


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in {
        "src/toy/__init__.py": '"""Toy."""\n', "src/toy/sizes.py": SOURCE,
        "tests/test_sizes.py": "from toy.sizes import fits\n\ndef test_it():\n    assert fits(3) and not fits(4)\n",
        "pytest.ini": "[pytest]\nmarkers =\n    slow\n    second\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_faults_are_of_several_kinds_and_never_in_annotations_or_messages(toy: Path) -> None:
    found = list(faults_in(toy / "src/toy/sizes.py", toy / "src/toy"))
    assert {each.kind for each in found} >= {"comparison", "and/or", "dropped not", "off by one", "returns nothing"}
    for each in found:
        planted = each.plant(SOURCE.encode()).decode()
        assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(SOURCE))
        assert "at most 3" in planted
        assert "{size - 1} is too small" in planted


def test_a_fault_that_tests_see_is_caught_and_another_survives(toy: Path) -> None:
    found = list(faults_in(toy / "src/toy/sizes.py", toy / "src/toy"))
    seen = next(each for each in found if each.before == "size > LIMIT")
    unseen = next(each for each in found if each.before == "size < 0")
    rows = run(toy, "toy", [seen, unseen], toy / "out.jsonl")
    assert [row["caught"] for row in rows] == [True, False]
    assert rows[0]["by"] == "tests/test_sizes.py::test_it"
    assert "1 of 2 faults caught" in report(rows)
    assert (toy / "src/toy/sizes.py").read_text() == SOURCE, "only a copy is changed"
    (toy / "tests" / "test_sizes.py").unlink()
    assert run(toy, "toy", [seen, unseen], toy / "out.jsonl") == rows, "what is done is not done again"


def test_tests_that_fail_without_a_fault_prove_nothing(toy: Path) -> None:
    (toy / "tests" / "test_sizes.py").write_text("import toy.sizes\n\n\ndef test_it():\n    assert False\n")
    with pytest.raises(SystemExit, match="without a fault"):
        run(toy, "toy", list(faults_in(toy / "src/toy/sizes.py", toy / "src/toy"))[:1], toy / "out.jsonl")


def test_every_package_gets_its_share_and_the_same_seed_the_same_faults() -> None:
    names = {"statistics", "parts", "rng"}
    chosen = sample(TOP, 30, 1, sorted(names))
    assert {each.package for each in chosen} == names
    assert chosen == sample(TOP, 30, 1, sorted(names))
    assert chosen != sample(TOP, 30, 2, sorted(names))
    assert len(set(chosen)) == 30


def test_the_closest_tests_run_first() -> None:
    fault = Fault("parts/rope.py", 1, "", "", "", 0, 0)
    names = files_for(fault, ROOT / "tests", "fairtrial")
    assert all((ROOT / name).is_file() for name in names)
    own = [number for number, name in enumerate(names) if name.startswith("tests/parts/")]
    assert own
    assert own[0] < len(names) - 1
    assert faults.ROOT == ROOT
