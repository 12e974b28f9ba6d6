"""Who may talk to the explorer: this user's browser on this machine, and nobody else.

A page of another site can make a browser send requests here, also under a name of its own that it points at this
machine (DNS rebinding). So the name that the browser believes to talk to must be ours (`Host`), what changes or costs
something must come from a page of ours (`Origin`), and every request carries a secret. The secret comes once, in the
address that is printed at the start; from then on it is a cookie that scripts cannot read and other sites cannot send.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fairtrial.errors import FairtrialError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES = 256_000  # of a request: a long text with its settings is a tenth of it
BODY_SECONDS = 10.0  # until all of it must have come
ADDRESS_BYTES = 16_000
LOCAL = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


class TooLarge(FairtrialError):
    """A body that is longer than any of ours."""


class RequestTimeout(FairtrialError):
    """A body that takes longer than any of ours."""


@dataclass(frozen=True)
class Guard:
    """Wraps an application (ASGI): what it refuses never reaches it."""

    app: App
    hosts: tuple[str, ...]  # names that a browser may know us by
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # the cookie's value

    @property
    def cookie(self) -> str:
        """Its name. Browsers do not tell ports apart: two explorers at once need two names."""
        return f"fairtrial-{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        guarded = with_headers(send)
        refused = self.why_refused(scope)
        if refused is None and (location := self.entrance(scope)) is not None:
            kept = f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/"
            return await answer(guarded, 303, "", [(b"location", location), (b"set-cookie", kept.encode())])
        if refused is None and not self.knows(scope):
            refused = 401, "open the address that `fairtrial explore` printed: its token lets this browser in"
        if refused is not None:
            await drain_body(receive)
            return await answer(guarded, *refused)
        return await self.app(scope, bounded(receive), guarded)

    def why_refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, whoever asks."""
        headers = scope["headers"]
        named = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(named) != 1 or named[0] not in self.known_hosts():
            return 403, "unknown host name"
        if len(scope["path"]) + len(scope["query_string"]) > ADDRESS_BYTES:
            return 414, "the address is too long"
        given = {name: value.decode("latin-1") for name, value in headers}
        if given.get(b"sec-fetch-site", "none") not in ("none", "same-origin") and not is_visit(scope, given):
            return 403, "requests from other sites are refused"
        if scope["method"] in CHANGING:
            if given.get(b"origin", "") not in self.origins():
                return 403, "requests from other sites are refused"
            if given.get(b"content-type", "").partition(";")[0].strip() != "application/json":
                return 415, "send JSON"
        if given.get(b"content-encoding", "identity") != "identity":
            return 415, "send JSON without compression"
        length = given.get(b"content-length", "0")
        if not length.isdigit() or int(length) > BODY_BYTES:
            return 413, f"at most {BODY_BYTES:,} bytes"
        return None

    def known_hosts(self) -> set[str]:
        return {known for host in self.hosts for known in (host, f"{host}:{self.port}")}

    def origins(self) -> set[str]:
        return {f"http://{host}:{self.port}" for host in self.hosts}

    def entrance(self, scope: Scope) -> bytes | None:
        """Where to send a browser that brings the token: the same address without it, so that no history keeps it."""
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in asked if name == "token"]
        if scope["method"] != "GET" or len(tokens) != 1 or not same(tokens[0], self.token):
            return None
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        path = scope.get("raw_path") or scope["path"].encode()
        return b"/" + path.lstrip(b"/") + (b"?" + rest.encode() if rest else b"")

    def knows(self, scope: Scope) -> bool:
        """Whether the cookie is ours."""
        cookies = b";".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
        pairs = [each.strip().partition("=") for each in cookies.split(";")]
        return any(name == self.cookie and same(value, self.session) for name, _, value in pairs)


def same(one: str, other: str) -> bool:
    """In constant time."""
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


def is_visit(scope: Scope, given: dict[bytes, str]) -> bool:
    """A link that a person follows to a page; the cookie stays at home all the same."""
    return scope["method"] == "GET" and given.get(b"sec-fetch-mode") == "navigate"


def with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sending


def bounded(receive: Receive) -> Receive:
    """A body that is too long or too slow ends the request."""
    size, ends, whole = 0, time.monotonic() + BODY_SECONDS, False

    async def receiving() -> Message:
        nonlocal size, whole
        if whole:  # what comes now is the end of the connection, whenever that is
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), max(0.01, ends - time.monotonic()))
        except TimeoutError as error:
            raise RequestTimeout(f"the request took longer than {BODY_SECONDS:g} seconds") from error
        size += len(message.get("body", b""))
        if size > BODY_BYTES:
            raise TooLarge(f"at most {BODY_BYTES:,} bytes")
        whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return receiving


async def drain_body(receive: Receive) -> None:
    """Take a body of any size that we allow and forget it: hung up on, a client would not hear why it is refused."""
    reading = bounded(receive)
    with contextlib.suppress(TooLarge, RequestTimeout):
        while (await reading()).get("more_body", False):
            pass


async def answer(send: Send, status: int, what: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    body = json.dumps({"what": what}).encode()
    about = [(b"content-type", b"application/json"), (b"connection", b"close"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
