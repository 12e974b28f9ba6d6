"""The explorer's server: pages from memory, questions answered as JSON, long answers as a stream of events.

Every question is `POST /api/NAME` with a JSON object. What answers it is a plain function of the library, of what was
asked and of a handle, in the file of its view; those files are imported when they are first needed, since they import
torch. The header `X-Channel` names the pane that waits: a newer question of a pane ends the older one, newer by the
header `X-Turn`, as questions may arrive in another order.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from fairtrial.errors import Busy, FairtrialError
from fairtrial.explore.guard import RequestTimeout, TooLarge
from fairtrial.explore.library import Library, NotThere
from fairtrial.explore.requests import JobHandle, Pool, RequestParams, Stale, TooMuch, TooSlow, to_json

VIEWS = ("library", "playground", "study", "parts", "puzzles")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
JSON, STREAM = "application/json", "text/event-stream"
STATUS = {TooLarge: 413, RequestTimeout: 408, NotThere: 404, Stale: 409, Busy: 409, TooSlow: 503, TooMuch: 503}
Answer = Callable[[Library, RequestParams, JobHandle], object]


@dataclass(frozen=True)
class Question:
    """Who answers: `module:function` of this package, on which lane of the pool, at once or as a stream."""

    by: str
    lane: str = "quick"
    stream: bool = False

    def function(self) -> Answer:
        module, name = self.by.split(":")
        found: Answer = getattr(import_module(f"fairtrial.explore.{module}"), name)
        return found


QUESTIONS = {
    "library": Question("library:listing", "files"),
    "study": Question("study:overview"),
    "items": Question("study:items"),
    "parts": Question("parts:parts"),
    "draw": Question("parts:draw"),
    "solve": Question("parts:solve"),
    "head": Question("parts:head"),
    "models": Question("playground:models"),
    "read": Question("playground:read"),
    "generate": Question("playground:generate", "quick", stream=True),
}


def build_app(library: Library, pool: Pool) -> Starlette:
    pages = dict(read_pages())

    async def page(request: Request) -> Response:
        return Response(*pages["index.html"])

    async def static(request: Request) -> Response:
        found = pages.get(request.path_params["name"])
        return Response(*found) if found else problem(NotThere("there is no such page"))

    async def ask(request: Request) -> Response:
        question = QUESTIONS.get(request.path_params["name"])
        if question is None:
            return problem(NotThere("there is no such question"))
        turn = request.headers.get("x-turn", "0")
        pane = (request.headers.get("x-channel", "")[:80], int(turn) if re.fullmatch("[0-9]{1,15}", turn) else 0)
        try:
            params = RequestParams.read(await request.body())
            if question.stream:
                told = events(library, pool, question, params, *pane)
                return StreamingResponse(told, media_type=STREAM)
            return Response(await answered(library, pool, question, params, *pane), media_type=JSON)
        except FairtrialError as error:
            return problem(error)
        except Exception:
            return problem(unexpected())

    routes = [Route("/", page), *(Route(f"/{view}", page) for view in VIEWS)]
    routes += [Route("/static/{name}", static), Route("/api/{name}", ask, methods=["POST"])]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


async def answered(
    library: Library, pool: Pool, question: Question, params: RequestParams, channel: str, turn: int
) -> bytes:
    """As JSON, which is made off the loop as well."""

    def job(handle: JobHandle) -> bytes:
        return to_json(question.function()(library, params, handle))

    return await pool.run(job, channel, question.lane, turn)


async def events(
    library: Library, pool: Pool, question: Question, params: RequestParams, channel: str, turn: int
) -> AsyncIterator[bytes]:
    try:
        job = pool.stream(lambda handle: question.function()(library, params, handle), channel, question.lane, turn)
        async for value in job:
            yield b"data: " + to_json(value) + b"\n\n"
    except FairtrialError as error:
        yield b"data: " + to_json({"error": told(error)}) + b"\n\n"
    except Exception:
        yield b"data: " + to_json({"error": told(unexpected())}) + b"\n\n"


def unexpected() -> FairtrialError:
    """A fault of ours: the browser is told so, the terminal why."""
    traceback.print_exc(file=sys.stderr)
    return FairtrialError("the explorer failed on this", "its terminal says why; please report it")


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
