"""Commands that write, each in a room of its own: how it is asked, how it goes on after it was stopped, and what must
be there in the end."""

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
    words: list[str]  # ROOM stands for the room
    result: Callable[[Path], dict[str, str]]  # what is there in the end -> its content, or a checksum
    start: Callable[[], Path] | None = None  # what is in the room before
    own_server: bool = False  # the server of its processes is killed with it, not shared

    def prepare(self, room: Path) -> None:
        shutil.rmtree(room, ignore_errors=True)
        if self.start is None:
            room.mkdir()
        else:
            shutil.copytree(self.start(), room)

    def asked(self, room: Path) -> list[str]:
        return [word.replace("ROOM", str(room)) for word in self.words]

    def goes_on(self, room: Path) -> list[str]:
        """A trial is resumed where there is something to resume; all else is asked again."""
        return ["resume", str(room / "run")] if (room / "run" / "trial.json").exists() else self.asked(room)


def digests(folder: Path, names: tuple[str, ...] = ()) -> dict[str, str]:
    """Of these files, or of all."""
    paths = [folder / name for name in names] if names else [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def names(room: Path) -> dict[str, str]:
    """Of files that hold the time or a command."""
    return dict.fromkeys(sorted(digests(room)), "")


def trained(room: Path) -> dict[str, str]:
    return digests(room / "run", RECORD)


def judged(room: Path) -> dict[str, str]:
    """A study's records and its verdict, without times; and that its page is whole."""
    study = room / "study"
    verdict = json.loads((study / "verdict.json").read_text())
    verdict.pop("checksum")
    verdict["sentences"] = [line for line in verdict["sentences"] if "] The search took " not in line]
    for task in verdict["tasks"].values():
        (task["search"] or {}).pop("seconds", None)
        for cost in task["cost"].values():
            for name in ("seconds_per_step", "seconds_ratio", "peak_memory_mb"):
                cost.pop(name)
    found = {"verdict": json.dumps(verdict), "page": str((study / "report.html").read_text().endswith("</html>\n"))}
    for record in sorted({path.parent for path in study.rglob("result.json")}):
        found |= {f"{record.relative_to(study)}/{name}": digest for name, digest in digests(record, RECORD).items()}
    return found
