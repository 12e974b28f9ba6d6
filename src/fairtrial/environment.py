"""What a result depends on beside recipe, seed and data: code, versions, machine. No torch is imported to ask."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# what must be equal for a resumed trial to end with the same bits
DECISIVE = ("torch", "threads", "machine")


def describe(threads: int) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("fairtrial", "torch", "numpy", "tokenizers", "safetensors")},
        "threads": threads,
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def code_fingerprint() -> str:
    """Sixteen letters that stand for fairtrial's own source."""
    root = Path(__file__).parent
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:16]
