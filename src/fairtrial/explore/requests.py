"""Requests of a browser: their parameters, each with its type and bounds, and the work that answers them.

Work runs off the server's loop: a new keystroke makes stale work end, nothing runs without a limit.

A job is a function of a `JobHandle`. It runs in one of a few threads; whatever it does in steps asks `handle.check()`
between them, which ends it once nobody waits for it any more. Of jobs on one channel (one pane of one tab) only the
newest counts, by the turn in which the page asked: one that waits is never begun, one that runs is told to end.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from fairtrial.environment import use_threads
from fairtrial.errors import BadInput, FairtrialError

Plain = dict[str, Any]  # what JSON can say
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

    def __init__(self, seconds: float, turn: int = 0, on_value: Callable[[object], None] = lambda value: None) -> None:
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
    """Lanes, so that reading many files does not keep a typist waiting."""

    def __init__(self) -> None:
        self.lanes = {
            "files": ThreadPoolExecutor(1, thread_name_prefix="explore-files"),  # needs no torch
            "quick": ThreadPoolExecutor(2, thread_name_prefix="explore-quick"),
        }
        self.newest: dict[str, JobHandle] = {}  # by channel
        self.handles: set[JobHandle] = set()  # of jobs that wait or run

    async def run(self, job: Job[Value], channel: str = "", lane: str = "quick", turn: int = 0) -> Value:
        """The job's answer. `Stale` where a newer job of the channel, or the end of the request, came first."""
        return await self._run(job, JobHandle(QUICK_SECONDS, turn), channel, lane)

    async def stream(
        self, job: Job[Value], channel: str = "", lane: str = "quick", turn: int = 0
    ) -> AsyncIterator[object]:
        """What the job sends, as it comes, and its answer last. Ends the job where nobody listens any more."""
        loop, values = asyncio.get_running_loop(), asyncio.Queue[tuple[object] | None]()

        def send(value: object) -> None:
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


TEXT = 4000  # letters of a text


@dataclass(frozen=True)
class RequestParams:
    values: Mapping[str, object]

    @classmethod
    def read(cls, body: bytes) -> RequestParams:
        try:
            found = json.loads(body or b"{}", parse_int=lambda text: int(text) if len(text) < 20 else float(text))
        except (ValueError, RecursionError) as error:
            raise BadInput("this is not JSON") from error
        if not isinstance(found, dict):
            raise BadInput("this is not a JSON object")
        return cls(found)

    def text(self, name: str, default: str | None = None, most: int = TEXT) -> str:
        value = self._of(name, default, str)
        if len(value) > most:
            raise BadInput(f"{name} has {len(value):,} letters; at most {most:,}")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadInput(f"{name} is not valid Unicode")
        return str(value)

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        value = self._of(name, default, (int, float))
        if isinstance(value, bool) or not math.isfinite(value) or not low <= value <= high:
            raise BadInput(f"{name} must be between {low:g} and {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self._of(name, default, int)
        if isinstance(value, bool) or not low <= value <= high:
            raise BadInput(f"{name} must be a whole number from {low} to {high}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self._of(name, default, bool))

    def one_of(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        value = self.text(name, default, 200)
        if value not in known:
            raise BadInput(f"{name} must be one of: {', '.join(known)}")
        return value

    def rows(self, name: str, width: int | None, most: int) -> list[list[float]]:
        """A table of finite numbers; all rows as long as the first."""
        value = self._of(name, [], list)
        if len(value) > most:
            raise BadInput(f"{name}: at most {most} rows")
        for row in value:
            good = isinstance(row, list) and len(row) == (width or len(value[0])) and 0 < len(row) <= 64
            if not good or not all(type(cell) in (int, float) and abs(cell) < 1e9 for cell in row):
                raise BadInput(f"{name} must be a table of numbers")
        return [[float(cell) for cell in row] for row in value]

    def pairs(self, name: str, most: int = 512) -> list[tuple[int, int]]:
        return [(int(one), int(two)) for one, two in self.rows(name, 2, most)]

    def options(self, name: str) -> dict[str, object]:
        """Plain values by name: of a part."""
        value = self._of(name, {}, dict)
        if len(value) > 16 or any(not key.isidentifier() or len(key) > 60 for key in value):
            raise BadInput(f"{name} must be a few options by name")
        for key, each in value.items():
            if not (each is None or isinstance(each, bool | str) or (type(each) in (int, float) and abs(each) < 1e9)):
                raise BadInput(f"{key} must be a number, a word or yes or no")
        return dict(value)

    def _of(self, name: str, default: object, kind: type | tuple[type, ...]) -> Any:
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise BadInput(f"{name} is missing")
            return default
        if not isinstance(value, kind):
            raise BadInput(f"{name} is of another type")
        return value


def plain(value: Any) -> Any:
    """Of any result, what JSON can say: numpy's numbers as Python's, what is not finite as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no plain form")


def to_json(value: object) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
