"""What a part or a trained network does: attention, heads, parameters, surprisal, predictions, errors."""

from typing import TYPE_CHECKING

from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.inspection.attention import AttentionMaps as AttentionMaps
    from fairtrial.inspection.heads import head_off as head_off

EXPORTS = {"AttentionMaps": "attention", "head_off": "heads"}
__all__ = list(EXPORTS)
__getattr__ = lazy(__name__, EXPORTS)
