"""Pages, charts and sentences made from plain numbers. No model, no torch."""

from fairtrial.report.page import environment
from fairtrial.report.plots import SHADES, figure_bytes, our_look, shade
from fairtrial.report.words import few_digits, spoken_time, with_interval

__all__ = ["SHADES", "environment", "few_digits", "figure_bytes", "our_look", "shade", "spoken_time", "with_interval"]
