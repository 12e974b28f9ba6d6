"""What is shown while Python waits: a bar with the time left, in a notebook or a terminal; and stopping on request."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def nothing() -> None:
    """Nobody wants to know."""


@contextmanager
def stopping(
    on_request: Callable[[], None] = nothing, at_once: type[BaseException] = KeyboardInterrupt
) -> Iterator[Callable[[], bool]]:
    """Ctrl-C, a notebook's stop button and SIGTERM request a stop after the current step, with everything saved; a
    second one stops at once. Only the main thread gets signals: elsewhere nobody stops it."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    requested = False

    def request(number: int, frame: Any) -> None:
        nonlocal requested
        if requested:
            raise at_once
        requested = True
        on_request()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
