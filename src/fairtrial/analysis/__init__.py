"""Looking inside: what a part or a trained network does, as numbers, text and figures."""

from typing import TYPE_CHECKING

from fairtrial.lazy import lazy_exports

if TYPE_CHECKING:
    from fairtrial.analysis.attention import read_text
    from fairtrial.analysis.heads import paint
    from fairtrial.analysis.parameters import Ledger, ledger

__all__ = ["Ledger", "ledger", "paint", "read_text"]
# lazily: some of these modules import torch, others serve commands that need none
__getattr__ = lazy_exports(
    __name__, {"Ledger": "parameters", "ledger": "parameters", "paint": "heads", "read_text": "attention"}
)
