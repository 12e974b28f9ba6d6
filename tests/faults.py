"""Plants faults, made from the syntax tree, one at a time in a copy of the source, and runs tests that should notice:
`python tests/faults.py --count 120 --out faults.jsonl`. On demand (`make faults`): it takes hours.

Faults are sampled evenly over the packages, the same for the same seed and source. What is done is kept in the file,
and the same command continues. Tests of a fault are those that import the changed module, then those in the folder of
its package, then others that import the package; the first failure ends a run. Every list of tests first runs on the
unchanged copy: a test that fails there proves nothing, and the tool stops."""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLIPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
SECONDS = 900.0  # for the tests of one fault; what takes longer hangs, and is caught
MOST_FILES = 12  # of tests that only import the package
# tests of the whole, and tests that would start this tool
BROAD = re.compile(r"tests/(campaign|codebase|explore)/|test_notebooks|test_ray")


@dataclass(frozen=True)
class Fault:
    file: str  # below the package's folder
    line: int
    kind: str
    before: str
    after: str
    begin: int  # bytes of the source that are replaced
    end: int

    @property
    def package(self) -> str:
        return self.file.split("/")[0].removesuffix(".py")

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def plant(self, source: bytes) -> bytes:
        return source[: self.begin] + self.after.encode() + source[self.end :]


def changed_forms(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """A node with a fault in it, and what kind of fault that is."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and len(other.ops) == 1:
        other.ops = [FLIPPED[type(other.ops[0])]()]
        yield "comparison", other
    elif isinstance(other, ast.BinOp) and type(other.op) in FLIPPED:
        other.op = FLIPPED[type(other.op)]()
        yield "arithmetic", other
    elif isinstance(other, ast.BoolOp):
        other.op = FLIPPED[type(other.op)]()
        yield "and/or", other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        yield "dropped not", other.operand
    elif isinstance(other, ast.IfExp):
        other.body, other.orelse = other.orelse, other.body
        yield "swapped branches", other
    elif isinstance(other, ast.Constant) and type(other.value) is int:
        other.value += 1
        yield "off by one", other
    elif isinstance(other, ast.Constant) and type(other.value) is bool:
        other.value = not other.value
        yield "flipped constant", other
    elif isinstance(other, ast.Return) and other.value is not None and not isinstance(other.value, ast.Constant):
        other.value = ast.Constant(None)
        yield "returns nothing", other
    elif isinstance(other, ast.AugAssign | ast.Expr) and not isinstance(getattr(other, "value", None), ast.Constant):
        yield "dropped statement", ast.Pass()


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Without annotations, what only a type checker reads, what is raised or warned, and what f-strings hold (whose
    places are not known before Python 3.12)."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Subscript) and "Annotated" in ast.unparse(child.value):
                continue
            yield child
            yield from nodes_that_run(child)


def faults_in(path: Path, top: Path) -> Iterator[Fault]:
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in nodes_that_run(ast.parse(source)):
        for kind, form in changed_forms(node):
            assert isinstance(node, ast.stmt | ast.expr)
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            text = ast.unparse(ast.fix_missing_locations(form))
            after = text if isinstance(form, ast.stmt) else f"({text})"
            name = path.relative_to(top).as_posix()
            yield Fault(name, node.lineno, kind, source[begin:end].decode(), after, begin, end)


def can_be_planted(fault: Fault, top: Path) -> bool:
    """A number that stands in a pattern, for example, cannot be an expression."""
    try:
        ast.parse(fault.plant((top / fault.file).read_bytes()))
    except (SyntaxError, ValueError):
        return False
    return True


def sample(top: Path, count: int, seed: int, only: Sequence[str] = ()) -> list[Fault]:
    """Evenly over packages and single modules, in each evenly over the kinds of faults."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(top.rglob("*.py")):
        name = path.relative_to(top).parts[0].removesuffix(".py")
        if not name.startswith("__") and (not only or name in only):
            groups.setdefault(name, []).append(path)
    chosen: list[Fault] = []
    queues = {}
    for name, paths in groups.items():
        rng, by_kind = random.Random(f"{seed}/{name}"), dict[str, list[Fault]]()
        for fault in (each for path in paths for each in faults_in(path, top)):
            by_kind.setdefault(fault.kind, []).append(fault)
        for faults in by_kind.values():
            rng.shuffle(faults)
        queues[name] = [faults for faults in rng.sample(list(by_kind.values()), len(by_kind)) if faults]
    while len(chosen) < count and any(queues.values()):
        for name, kinds in queues.items():
            if kinds and len(chosen) < count:
                first = kinds.pop(0)
                fault = first.pop()
                chosen += [fault] if can_be_planted(fault, top) else []
                queues[name] = [*kinds, *([first] if first else [])]
    return chosen


def files_for(fault: Fault, tests: Path, package: str) -> list[str]:
    """Files of tests, the closest first."""
    exact, near = f"{package}.{fault.module}", f"{package}.{fault.package}"
    order: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for path in sorted(tests.rglob("test_*.py")):
        name = f"tests/{path.relative_to(tests).as_posix()}"
        text = path.read_text(encoding="utf-8")
        parent, _, last = exact.rpartition(".")
        if re.search(rf"\b{re.escape(exact)}\b|from {re.escape(parent)} import [^\n]*\b{last}\b", text):
            order[0].append(name)
        elif path.parent.name == fault.package:
            order[1].append(name)
        elif re.search(rf"\b{re.escape(near)}\b", text) and not BROAD.search(name):
            order[2].append(name)
    found = [*order[0], *order[1], *order[2][:MOST_FILES]]
    return found or [f"tests/{each}" for each in ("api", "cli", "golden") if (tests / each).is_dir()]


def run_tests(root: Path, source: Path, names: Sequence[str]) -> tuple[bool, str]:
    """Whether all passed with this source, and the last lines."""
    own = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not second"]
    try:
        done = subprocess.run(
            [*command, *names], cwd=root, env=own, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "took too long"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.M)
    return done.returncode in (0, 5), failed[0] if failed else done.stdout[-300:] + done.stderr[-300:]


def run(root: Path, package: str, chosen: Sequence[Fault], out: Path) -> list[dict[str, object]]:
    top = root / "src" / package
    known = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.is_file() else []
    done = {row["id"]: row for row in known}
    sound: set[tuple[str, ...]] = set()
    rows = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        place = Path(shutil.copytree(root / "src", Path(folder) / "src"))
        for number, fault in enumerate(chosen, start=1):
            original = (top / fault.file).read_bytes()
            mark = hashlib.sha256(original + repr(fault).encode()).hexdigest()[:16]
            if mark not in done:
                names = files_for(fault, root / "tests", package)
                if tuple(names) not in sound:
                    passed, why = run_tests(root, place, names)
                    if not passed:
                        sys.exit(f"tests fail without a fault: {why}")
                    sound.add(tuple(names))
                target = place / package / fault.file
                target.write_bytes(fault.plant(original))
                passed, why = run_tests(root, place, names)
                target.write_bytes(original)
                done[mark] = {"id": mark, **asdict(fault), "caught": not passed, "by": "" if passed else why}
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(done[mark]) + "\n")
            row = done[mark]
            state = f"caught by {row['by']}" if row["caught"] else "SURVIVED"
            print(f"[{number}/{len(chosen)}] {fault.file}:{fault.line} {fault.kind}: {state}", flush=True)
            rows.append(row)
    return rows


def report(rows: Sequence[dict[str, object]]) -> str:
    planted, caught = Counter[str](), Counter[str]()
    for row in rows:
        name = str(row["file"]).split("/")[0].removesuffix(".py")
        planted[name] += 1
        caught[name] += bool(row["caught"])
    lines = [f"{name}: {caught[name]} of {planted[name]} caught" for name in sorted(planted)]
    lines += [
        f"survived: {row['file']}:{row['line']} {row['kind']}: {row['before']} -> {row['after']}"
        for row in rows
        if not row["caught"]
    ]
    share = caught.total() / max(1, planted.total())
    return "\n".join([*lines, f"{caught.total()} of {planted.total()} faults caught ({share:.1%})"])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=120)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--package", action="append", default=[], help="only here; repeatable")
    options.add_argument("--out", type=Path, default=Path("faults.jsonl"))
    options.add_argument("--list", action="store_true", help="only show what would be planted")
    given = options.parse_args()
    chosen = sample(ROOT / "src" / "fairtrial", given.count, given.seed, given.package)
    if given.list:
        print(*(f"{each.file}:{each.line} {each.kind}: {each.before} -> {each.after}" for each in chosen), sep="\n")
        return
    print(report(run(ROOT, "fairtrial", chosen, given.out)))


if __name__ == "__main__":
    main()
