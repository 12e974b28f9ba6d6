"""What a part or a trained network does: attention, heads, parameters, surprisal, predictions, errors."""

from typing import TYPE_CHECKING

from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.inspection.attention import AttentionMaps as AttentionMaps
    from fairtrial.inspection.catalogue import plot_part as plot_part

EXPORTS = {"AttentionMaps": "attention", "plot_part": "catalogue"}
__all__ = list(EXPORTS)
__getattr__ = lazy(__name__, EXPORTS)
