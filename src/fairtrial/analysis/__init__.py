"""What a part or a trained network does: attention, heads, parameters, surprisal, predictions, errors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.analysis.attention import model_input
    from fairtrial.analysis.heads import head_statistics
    from fairtrial.analysis.parameters import Ledger, ledger

__all__ = ["Ledger", "head_statistics", "ledger", "model_input"]
MODULES = {"Ledger": "parameters", "ledger": "parameters", "head_statistics": "heads", "model_input": "attention"}


def __getattr__(name: str) -> Any:
    """Lazily: some of these modules import torch, others serve commands that need none."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
