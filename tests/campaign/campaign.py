"""What all campaigns share: the seed, and the count of what happened. As a script: the rows of a log (which
FAIRTRIAL_CAMPAIGN_LOG names) as the table of research/reliability.md."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SEED = int(os.environ.get("FAIRTRIAL_CAMPAIGN_SEED", "17"))
SIZE = float(os.environ.get("FAIRTRIAL_CAMPAIGN_SIZE", "0.1"))  # 1: as `make campaign` runs it


def sized(count: int, least: int = 1) -> int:
    return max(least, round(SIZE * count))


class Tally:
    """Tried = survived + refused + failed. Failures are gathered, so that one run finds them all."""

    def __init__(self, title: str) -> None:
        self.title, self.counts, self.failures, self.started = title, Counter[str](), list[str](), time.monotonic()

    def survived(self) -> None:
        """As if nothing had happened: the same bits, the same answer."""
        self.counts["survived"] += 1

    def refused(self) -> None:
        """Named and refused, with nothing lost."""
        self.counts["refused"] += 1

    def failed(self, where: str, why: str) -> None:
        self.counts["failed"] += 1
        self.failures.append(f"{where}: {why}")

    def close(self, **more: Any) -> None:
        """Print the row of research/reliability.md; fail if anything did. `more`: what else was measured."""
        facts = {name: self.counts[name] for name in ("survived", "refused", "failed")}
        row = {"what": self.title, "tried": self.counts.total(), **facts, **more, "seed": SEED}
        row["seconds"] = round(time.monotonic() - self.started)
        add_row(row, failures=self.failures)
        assert not self.failures, "\n".join([f"{len(self.failures)} failures", *self.failures[:50]])
        assert self.counts.total()


def add_row(row: dict[str, Any], **details: Any) -> None:
    print("\ncampaign: " + json.dumps(row))
    if log := os.environ.get("FAIRTRIAL_CAMPAIGN_LOG"):
        with Path(log).open("a") as file:
            file.write(json.dumps(row | details) + "\n")


def table(log: Path) -> str:
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    lines = ["| what | tried | survived | refused | failed |", "|---|---|---|---|---|"]
    for row in rows:
        if "tried" in row:
            cells = [f"{row[name]:,}" for name in ("tried", "survived", "refused", "failed")]
            lines.append(f"| {row['what']} | {' | '.join(cells)} |")
    return "\n".join(lines + [json.dumps(row) for row in rows if "tried" not in row])


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
