"""Which test items a verdict rests on: clean ones, where too many stand in train."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtrial.judge.outcomes import CLEAN, EXACT, NEAR, TaskOutcomes

TOLERATED = 0.01  # share of contaminated items up to which all items count


def describe_set(status: np.ndarray | None, items: int) -> dict[str, Any]:
    """Counts, the basis of verdicts, and why."""
    if status is None:
        why = "copies in train were not looked for"
        return {"items": items, "exact": None, "near": None, "clean": None, "basis": "all", "basis_why": why}
    exact, near, clean = (int((status == kind).sum()) for kind in (EXACT, NEAR, CLEAN))
    share = (exact + near) / max(1, items)
    basis = "clean" if share > TOLERATED else "all"
    if basis == "clean":
        why = f"{share:.1%} of the test items stand in train, too: the verdict is on the clean ones"
    elif share:
        why = f"{share:.1%} of the test items stand in train, too: few enough to count all"
    else:
        why = "no test item stands in train"
    return {"items": items, "exact": exact, "near": near, "clean": clean, "basis": basis, "basis_why": why}


def contamination_lines(task: TaskOutcomes, sets: dict[str, dict[str, Any]], scores: dict[str, Any]) -> list[str]:
    """Test sets that verdicts do not take whole, and what the copies are worth to the baseline variant."""
    lines = []
    for place, facts in sets.items():
        if facts["basis"] != "clean":
            continue
        copies = facts["exact"] + facts["near"]
        near = f" ({facts['near']} of them nearly)" if facts["near"] else ""
        line = f"on {place}, {copies:,} of {facts['items']:,} items stand in train, too{near}; "
        line += f"verdicts are on the {facts['clean']:,} clean ones"
        shown = scores[task.baseline][place]
        if "clean" in shown and "contaminated" in shown:
            unit = "%" if task.metric == "accuracy" else ""
            told = [f"{shown[basis]['mean']:.1f}{unit}" for basis in ("contaminated", "clean")]
            line += f". {task.baseline} has {task.metric} {told[0]} on the copies and {told[1]} on clean items"
        lines.append(line + ".")
    return lines
