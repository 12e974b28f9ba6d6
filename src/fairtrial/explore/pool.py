"""Work of the explorer, off the server's loop: a new keystroke makes stale work end, nothing runs without a limit.

A job is a function of a `JobHandle`. It runs in one of a few threads; whatever it does in steps asks `handle.check()`
between them, which ends it once nobody waits for it any more. Of jobs on one channel (one pane of one tab) only the
newest counts, by the turn in which the page asked: one that waits is never begun, one that runs is told to end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, TypeVar

from fairtrial.environment import use_threads
from fairtrial.errors import FairtrialError

Value = TypeVar("Value")
WAITING = 64  # jobs that may wait or run; a person's browser has a handful
QUICK_SECONDS, LONG_SECONDS = 20.0, 600.0


class Stale(FairtrialError):
    """Nobody waits for this answer any more."""


class TooSlow(FairtrialError):
    """It took longer than it may."""


class TooMuch(FairtrialError):
    """Too many jobs at once."""


class JobHandle:
    """What a job is told from outside, and tells."""

    def __init__(self, seconds: float, turn: int = 0, on_value: Callable[[Any], None] = lambda value: None) -> None:
        self.turn = turn
        self.ended = threading.Event()
        self.deadline = time.monotonic() + seconds
        self.send = on_value

    def check(self, *_: object) -> None:
        """Raise where the job should end; also a listener of progress."""
        if self.ended.is_set():
            raise Stale("a newer question has taken its place")
        if time.monotonic() > self.deadline:
            raise TooSlow("this took too long and was stopped", "ask for less: a shorter text, fewer seeds")


Job = Callable[[JobHandle], Value]


class Pool:
    """Lanes, so that an audit of minutes does not keep a typist waiting."""

    def __init__(self) -> None:
        self.lanes = {
            "files": ThreadPoolExecutor(1, thread_name_prefix="explore-files"),  # needs no torch
            "quick": ThreadPoolExecutor(2, thread_name_prefix="explore-quick"),
            "long": ThreadPoolExecutor(1, thread_name_prefix="explore-long"),
        }
        self.newest: dict[str, JobHandle] = {}  # by channel
        self.handles: set[JobHandle] = set()  # of jobs that wait or run

    async def run(self, job: Job[Value], channel: str = "", lane: str = "quick", turn: int = 0) -> Value:
        """The job's answer. `Stale` where a newer job of the channel, or the end of the request, came first."""
        seconds = LONG_SECONDS if lane == "long" else QUICK_SECONDS
        return await self._run(job, JobHandle(seconds, turn), channel, lane)

    async def stream(self, job: Job[Value], channel: str = "", lane: str = "long", turn: int = 0) -> AsyncIterator[Any]:
        """What the job sends, as it comes, and its answer last. Ends the job where nobody listens any more."""
        loop, values = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def send(value: Any) -> None:
            loop.call_soon_threadsafe(values.put_nowait, (value,))

        handle = JobHandle(LONG_SECONDS, turn, send)
        done = asyncio.ensure_future(self._run(job, handle, channel, lane))
        done.add_done_callback(lambda _: values.put_nowait(None))
        try:
            while (found := await values.get()) is not None:
                yield found[0]
            yield await done
        finally:
            handle.ended.set()
            if not done.done():
                done.cancel()

    async def _run(self, job: Job[Value], handle: JobHandle, channel: str, lane: str) -> Value:
        if len(self.handles) >= WAITING:
            raise TooMuch("too many questions at once", "wait a moment")
        if channel:
            if (newest := self.newest.get(channel)) is not None:
                if newest.turn > handle.turn:
                    raise Stale("a newer question came before it")
                newest.ended.set()
            self.newest[channel] = handle

        def work() -> Value:
            handle.check()
            with use_threads(1) if lane != "files" else nullcontext():
                return job(handle)

        def finished(done: asyncio.Future[Any]) -> None:
            self.handles.discard(handle)
            if not done.cancelled():
                done.exception()  # asked for, so that nobody complains of an error that nobody waits for

        self.handles.add(handle)
        running = asyncio.get_running_loop().run_in_executor(self.lanes[lane], work)
        running.add_done_callback(finished)
        try:
            left = handle.deadline - time.monotonic()
            return await asyncio.wait_for(asyncio.shield(running), left)
        except TimeoutError as error:
            raise TooSlow("this took too long and was stopped", "ask for less: a shorter text, fewer seeds") from error
        finally:
            handle.ended.set()
            if self.newest.get(channel) is handle:
                del self.newest[channel]

    def close(self) -> None:
        for handle in list(self.handles):
            handle.ended.set()
        for lane in self.lanes.values():
            lane.shutdown(wait=False, cancel_futures=True)
