"""The explorer's server: pages from memory, questions answered as JSON.

Every question is `POST /api/NAME` with a JSON object. What answers it is a plain function of the library and of what
was asked, in `answers.py`, which is imported when it is first needed, since it imports torch."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.errors import Busy, FairtrialError
from fairtrial.explore.guard import RequestTimeout, TooLarge
from fairtrial.explore.library import Library, NotThere
from fairtrial.explore.requests import Pool, RequestParams, TooMuch, TooSlow, to_json

VIEWS = ("library", "playground", "parts", "puzzles")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
JSON = "application/json"
STATUS = {TooLarge: 413, RequestTimeout: 408, NotThere: 404, Busy: 409, TooSlow: 503, TooMuch: 503}
Answer = Callable[[Library, RequestParams], object]


QUESTIONS = {  # who answers: `module:function` of this package
    "library": "library:listing",
    "parts": "answers:parts",
    "draw": "answers:draw",
    "solve": "answers:solve",
    "head": "answers:head",
    "models": "answers:models",
    "read": "answers:read",
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
        try:
            params = RequestParams.read(await request.body())
            answer = await pool.run(lambda: to_json(answer_of(question)(library, params)))
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


def answer_of(question: str) -> Answer:
    module, name = question.split(":")
    found: Answer = getattr(import_module(f"fairtrial.explore.{module}"), name)
    return found


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
