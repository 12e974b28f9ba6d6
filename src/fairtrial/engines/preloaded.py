"""Imported by the fork server alone. Its end is an exit at once: torch takes a second of work to be taken apart, during
which a study that was stopped would seem to go on."""

import atexit
import os

atexit.register(os._exit, 0)
