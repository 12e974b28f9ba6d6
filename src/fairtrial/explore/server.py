"""The explorer's server: pages from memory, questions answered as JSON.

Every question is `POST /api/NAME` with a JSON object. What answers it is a plain function of the library and of what
was asked, in `answers.py`, which is imported when it is first needed, since it imports torch. It runs in a thread, off
the server's loop and not without a limit."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, is_dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.errors import BadInput, Busy, FairtrialError
from fairtrial.explore.guard import RequestTimeout, TooLarge
from fairtrial.explore.library import Library, NotThere

Plain = dict[str, Any]  # what JSON can say
Value = TypeVar("Value")
WAITING = 64  # jobs that may wait or run; a person's browser has a handful
ANSWER_SECONDS = 20.0
TEXT = 4000  # letters of a text
VIEWS = ("library", "playground", "parts", "puzzles")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
JSON = "application/json"
QUESTIONS = ("library", "parts", "draw", "solve", "models", "read")  # functions of `answers.py`


class TooSlow(FairtrialError):
    """It took longer than it may."""


class TooMuch(FairtrialError):
    """Too many questions at once."""


class Pool:
    """A few threads, so that reading many files does not keep a typist waiting."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(3, thread_name_prefix="explore")
        self.waiting = 0

    async def run(self, job: Callable[[], Value]) -> Value:
        if self.waiting >= WAITING:
            raise TooMuch("too many requests at once", "wait a moment")
        self.waiting += 1
        running = asyncio.get_running_loop().run_in_executor(self.threads, job)
        running.add_done_callback(self.finished)
        try:
            return await asyncio.wait_for(asyncio.shield(running), ANSWER_SECONDS)
        except TimeoutError as error:
            raise TooSlow("the request took too long", "send less, such as a shorter text") from error

    def finished(self, done: asyncio.Future[Any]) -> None:
        self.waiting -= 1
        if not done.cancelled():
            done.exception()  # asked for, so that nobody complains of an error that nobody waits for

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)


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

    def options(self, name: str) -> dict[str, object]:
        """Plain values by name: of a part."""
        value = self._of(name, {}, dict)
        if len(value) > 16 or any(not key.isidentifier() or len(key) > 60 for key in value):
            raise BadInput(f"{name} must be options by name")
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
            raise BadInput(f"{name} has the wrong type")
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


STATUS = {TooLarge: 413, RequestTimeout: 408, NotThere: 404, Busy: 409, TooSlow: 503, TooMuch: 503}


def build_app(library: Library, pool: Pool) -> Starlette:
    pages = dict(read_pages())

    async def page(request: Request) -> Response:
        return Response(*pages["index.html"])

    async def static(request: Request) -> Response:
        found = pages.get(request.path_params["name"])
        return Response(*found) if found else problem(NotThere("page not found"))

    async def ask(request: Request) -> Response:
        question = request.path_params["name"]
        if question not in QUESTIONS:
            return problem(NotThere("unknown request"))
        try:
            params = RequestParams.read(await request.body())
            answer = await pool.run(lambda: answer_to(question, library, params))
            return Response(answer, media_type=JSON)
        except FairtrialError as error:
            return problem(error)
        except Exception:
            return problem(unexpected())

    routes = [Route("/", page), *(Route(f"/{view}", page) for view in VIEWS)]
    routes += [Route("/static/{name}", static), Route("/api/{name}", ask, methods=["POST"])]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


def answer_to(question: str, library: Library, params: RequestParams) -> bytes:
    return to_json(getattr(import_module("fairtrial.explore.answers"), question)(library, params))


def unexpected() -> FairtrialError:
    """A fault of ours: the browser shows that, the terminal shows why."""
    traceback.print_exc(file=sys.stderr)
    return FairtrialError("the explorer failed on this request", "its terminal shows the cause; please report it")


def told(error: FairtrialError) -> dict[str, str]:
    return {"what": error.what, "hint": error.hint, "kind": type(error).__name__}


def problem(error: FairtrialError) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
    status = 500 if type(error) is FairtrialError else status
    return Response(to_json(told(error)), status, media_type=JSON)


def read_pages() -> Iterator[tuple[str, tuple[bytes, int, None, str]]]:
    """All pages, read once, as a response takes them: no request names a file."""
    for file in files("fairtrial.explore").joinpath("pages").iterdir():
        kind = TYPES.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            yield file.name, (file.read_bytes(), 200, None, kind)
