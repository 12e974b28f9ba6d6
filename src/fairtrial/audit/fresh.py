"""`python -m fairtrial.audit.fresh`: R1's short training in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.audit.determinism import trained_state
from fairtrial.audit.subject import Plan
from fairtrial.errors import BadInput
from fairtrial.model.part import parts
from fairtrial.plugins import load_installed
from fairtrial.recipe import PartChoice, Shape


def bring_home(name: str, home: dict[str, Any]) -> None:
    """Put a stranger's part into the registry, as it is in the process that asks."""
    sys.path.insert(0, str(Path(home["file"]).parent))
    spec = importlib.util.spec_from_file_location(Path(home["file"]).stem, home["file"])
    if spec is None or spec.loader is None:
        raise BadInput(f"{home['file']} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if name not in parts.list():
        parts.add(name)(getattr(module, home["kind"]))


def obey(order: dict[str, Any]) -> list[str]:
    torch.set_num_threads(1)
    load_installed(order["homes"])
    for name, home in order["homes"].items():
        if name not in parts.list():
            bring_home(name, home)
    return [trained_state(as_plan(told), order["number"]) for told in order["plans"]]


def as_plan(told: dict[str, Any]) -> Plan:
    shape, choices = Shape(**told["shape"]), tuple(PartChoice(**choice) for choice in told["choices"])
    return Plan(**(told | {"shape": shape, "choices": choices}))


if __name__ == "__main__":
    print(json.dumps(obey(json.loads(sys.argv[1]))))
