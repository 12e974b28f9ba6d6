"""Measures speed again: runs the scripts in benchmarks/ one after the other and keeps what they print in `outcomes/`.
The page is written by hand from there. A script whose output is kept is not run again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
SCRIPTS = {"step": (), "step-large": ("--large",), "growth": (), "course": (), "parts": (), "study": ()}


def main() -> None:
    (HERE / "outcomes").mkdir(exist_ok=True)
    for name, words in SCRIPTS.items():
        stored = HERE / "outcomes" / f"{name}.txt"
        if not stored.is_file():
            print(f"{name} ...", flush=True)
            script = BENCHMARKS / f"{name.partition('-')[0]}.py"
            done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=True)
            stored.write_text(done.stdout, encoding="utf-8", newline="\n")
        print(stored.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
