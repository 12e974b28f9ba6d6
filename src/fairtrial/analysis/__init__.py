"""What a part or a trained network does: attention, heads, parameters, surprisal, predictions, errors."""

from typing import TYPE_CHECKING

from fairtrial.lazy import lazy_exports

if TYPE_CHECKING:
    from fairtrial.analysis.attention import model_input
    from fairtrial.analysis.heads import head_statistics
    from fairtrial.analysis.parameters import Ledger, ledger

__all__ = ["Ledger", "head_statistics", "ledger", "model_input"]
# lazily: some of these modules import torch, others serve commands that need none
__getattr__ = lazy_exports(
    __name__, {"Ledger": "parameters", "ledger": "parameters", "head_statistics": "heads", "model_input": "attention"}
)
