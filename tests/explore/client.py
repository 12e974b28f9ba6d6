"""A browser's side of the explorer, byte by byte: what a test sends is what is sent."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairtrial.explore import Explorer

WHILE_RUNNING: set[str] = set()  # what the library said of the study


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    explorer: Explorer
    cookie: str = field(default="")

    def __post_init__(self) -> None:
        address = self.explorer.url.partition(str(self.explorer.port))[2]
        self.cookie = self.get(address, cookie="").headers["set-cookie"].partition(";")[0]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.explorer.port}"

    def send(
        self, method: str, path: str, body: bytes | str | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.explorer.port, timeout=120)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, cookie: str | None = None, **headers: str) -> Reply:
        return self.send("GET", path, headers={"Cookie": self.cookie if cookie is None else cookie, **headers})

    def ask(self, name: str, asked: Any = None, channel: str = "", **headers: str) -> Reply:
        """A question as the page asks it; a header given as "" is left out."""
        usual = {"Cookie": self.cookie, "Origin": self.origin, "Content-Type": "application/json"}
        if channel:
            usual["X-Channel"] = channel
        named = usual | {key.replace("_", "-"): each for key, each in headers.items()}
        body = asked if isinstance(asked, bytes) else json.dumps({} if asked is None else asked)
        return self.send("POST", f"/api/{name}", body, {key: value for key, value in named.items() if value})

    def open(self, name: str, asked: Any) -> http.client.HTTPConnection:
        """A question whose answer the caller reads as it comes, or leaves."""
        connection = http.client.HTTPConnection("127.0.0.1", self.explorer.port, timeout=120)
        usual = {"Cookie": self.cookie, "Origin": self.origin, "Content-Type": "application/json"}
        connection.request("POST", f"/api/{name}", json.dumps(asked), usual)
        return connection


def until(check: Callable[[], Any], seconds: float = 120) -> Any:
    """What `check` gives, once it is true. The pages forbid what playwright's own waiting for a script needs."""
    ends = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < ends, "it did not come true"
        time.sleep(0.05)
    return found
