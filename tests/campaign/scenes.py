"""Commands that write, each in a workspace of its own: how it is asked, how it goes on after it was stopped, and what
must be there in the end."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RECORD = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")


@dataclass(frozen=True)
class Scene:
    words: list[str]  # WORKSPACE stands for the workspace
    result: Callable[[Path], dict[str, str]]  # what is there in the end -> its content, or a checksum
    start: Callable[[], Path] | None = None  # what is in the workspace before
    own_server: bool = False  # the server of its processes is killed with it, not shared

    def prepare(self, workspace: Path) -> None:
        shutil.rmtree(workspace, ignore_errors=True)
        if self.start is None:
            workspace.mkdir()
        else:
            shutil.copytree(self.start(), workspace)

    def asked(self, workspace: Path) -> list[str]:
        return [word.replace("WORKSPACE", str(workspace)) for word in self.words]

    def goes_on(self, workspace: Path) -> list[str]:
        """A trial is resumed where there is something to resume; all else is asked again."""
        return (
            ["train", "--resume", str(workspace / "run")]
            if (workspace / "run" / "trial.json").exists()
            else self.asked(workspace)
        )


def digests(folder: Path, names: tuple[str, ...] = ()) -> dict[str, str]:
    """Of these files, or of all."""
    paths = [folder / name for name in names] if names else [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def names(workspace: Path) -> dict[str, str]:
    """Of files that hold the time or a command."""
    return dict.fromkeys(sorted(digests(workspace)), "")


def trained(workspace: Path) -> dict[str, str]:
    return digests(workspace / "run", RECORD)


def judged(workspace: Path) -> dict[str, str]:
    """A study's records and its verdict, without times; and that its page is whole."""
    study = workspace / "study"
    verdict = json.loads((study / "verdict.json").read_text())
    verdict.pop("checksum")
    verdict["sentences"] = [line for line in verdict["sentences"] if "] The search took " not in line]
    for task in verdict["tasks"].values():
        (task.get("search") or {}).pop("seconds", None)
        for cost in task["cost"].values():
            for name in ("seconds_per_step", "seconds_ratio", "peak_memory_mb"):
                cost.pop(name, None)
    found = {"verdict": json.dumps(verdict), "page": str((study / "report.html").read_text().endswith("</html>\n"))}
    for record in sorted({path.parent for path in study.rglob("result.json")}):
        found |= {f"{record.relative_to(study)}/{name}": digest for name, digest in digests(record, RECORD).items()}
    return found
