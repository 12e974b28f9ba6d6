"""Imported by the fork server alone, before all else. While it loads torch, which takes seconds, it ends with the
process that started it. Later it ends when nobody has a use for it, at once: torch takes a second of work to be taken
apart, during which a study that was stopped would seem to go on."""

import atexit
import os

from fairtrial.environment import kill_at_parents_end


def serve() -> None:
    """Before the first fork: all is loaded. The thread that started the server may end now, and others use it."""
    global serving
    if not serving:
        kill_at_parents_end(False)
        atexit.register(os._exit, 0)  # the last to be registered is the first to be called
        serving = True


serving = False
kill_at_parents_end()
os.register_at_fork(before=serve)
