"""Pages, charts and sentences made from plain numbers. No model, no torch."""

from fairtrial.report.charts import band_of
from fairtrial.report.curves import curves_of, loss_curve
from fairtrial.report.page import environment
from fairtrial.report.plots import SHADES, figure_bytes, our_look, shade
from fairtrial.report.study_files import StudyFiles

__all__ = [
    "SHADES",
    "StudyFiles",
    "band_of",
    "curves_of",
    "environment",
    "figure_bytes",
    "loss_curve",
    "our_look",
    "shade",
]
