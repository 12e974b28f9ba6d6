"""What a part or a trained network does: attention, heads, parameters, surprisal, predictions, errors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.inspection.attention import AttentionMaps, model_input
    from fairtrial.inspection.catalogue import plot_part
    from fairtrial.inspection.heads import ablate_heads, head_off, head_statistics
    from fairtrial.inspection.parameters import Ledger, ledger

__all__ = [
    "AttentionMaps",
    "Ledger",
    "ablate_heads",
    "head_off",
    "head_statistics",
    "ledger",
    "model_input",
    "plot_part",
]
MODULES = {
    **dict.fromkeys(("Ledger", "ledger"), "parameters"),
    **dict.fromkeys(("ablate_heads", "head_off", "head_statistics"), "heads"),
    **dict.fromkeys(("AttentionMaps", "model_input"), "attention"),
    "plot_part": "catalogue",
}


def __getattr__(name: str) -> Any:
    """Lazily: some of these modules import torch, others serve commands that need none."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
