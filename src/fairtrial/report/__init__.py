"""Pages, charts and sentences made from plain numbers. No model, no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.report.curves import curves_of as curves_of
    from fairtrial.report.curves import loss_curve as loss_curve
    from fairtrial.report.plots import figure_bytes as figure_bytes
    from fairtrial.report.plots import our_look as our_look
    from fairtrial.report.study_files import StudyFiles as StudyFiles

EXPORTS = {
    **dict.fromkeys(("curves_of", "loss_curve"), "curves"),
    **dict.fromkeys(("figure_bytes", "our_look"), "plots"),
    "StudyFiles": "study_files",
}
__all__ = list(EXPORTS)
__getattr__ = lazy(__name__, EXPORTS)
