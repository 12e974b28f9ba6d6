"""The explorer: records, studies, parts and puzzles in a browser on this machine."""

from __future__ import annotations

import os
import socket
import threading
import time
import webbrowser
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.errors import BadInput
from fairtrial.explore.guard import LOCAL, Guard

if TYPE_CHECKING:
    from fairtrial.explore.server import Pool

__all__ = ["Explorer"]
PORT = 8765
SILENT_SECONDS = 10.0  # a connection that asks nothing for so long is closed


class Explorer:
    """A running server: `url` opens it, `stop()` ends it, `wait()` waits until it ends."""

    def __init__(self, folder: Path, host: str, port: int | None) -> None:
        try:
            import uvicorn
            from uvicorn.protocols.http.h11_impl import H11Protocol

            from fairtrial.explore.library import Library
            from fairtrial.explore.server import Pool, build_app
        except ImportError as error:
            hint = "install it with: pip install 'fairtrial[explore]'"
            raise BadInput(f"the explorer needs {error.name}", hint) from error
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder", "name the folder that holds your records and studies")
        self.folder = Path(os.path.realpath(folder))
        self.first = "/playground?a=.&" if (self.folder / "trial.json").is_file() else "/?"
        self.socket = listen(host, port)
        self.port: int = self.socket.getsockname()[1]
        self.pool: Pool = Pool()
        self.library = Library(self.folder)
        app: Any = build_app(self.library, self.pool)
        self.guard = Guard(app, hosts_of(host), self.port)

        class Protocol(H11Protocol):
            """Closes connections that never ask anything."""

            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                self.loop.call_later(SILENT_SECONDS, self.close_silent)

            def close_silent(self) -> None:
                if self.cycle is None:
                    self.transport.close()

        self.server = uvicorn.Server(
            uvicorn.Config(
                self.guard,
                http=Protocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_level="error",
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=1,
            )
        )
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True, name="explore")
        self.thread.start()
        while not self.server.started and self.thread.is_alive():
            time.sleep(0.005)
        threading.Thread(target=warm_up, daemon=True, name="explore-warm-up").start()

    @property
    def url(self) -> str:
        """With the token that lets a browser in."""
        return f"http://{self.guard.hosts[0]}:{self.port}{self.first}token={self.guard.token}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.pool.close()
        self.thread.join(5)

    def wait(self) -> None:
        while self.thread.is_alive():
            self.thread.join(0.2)

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"exploring {self.folder}: {self.url}"

    def _repr_html_(self) -> str:
        return f'exploring <code>{escape(str(self.folder))}</code>: <a href="{escape(self.url)}">open</a>'


def start(folder: Path, *, host: str, port: int | None, plugins: Sequence[Path], browser: bool) -> Explorer:
    """Plugins are those that the user names here; no request can load one."""
    if plugins:
        from fairtrial.plugins import load_files

        load_files(plugins)
    explorer = Explorer(folder, host, port)
    if browser:
        webbrowser.open(explorer.url)
    return explorer


def listen(host: str, port: int | None) -> socket.socket:
    """A bound socket: on the usual port, or a free one where that is taken and none was asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in (PORT, 0) if port is None else (port,):
        made = socket.socket(family, socket.SOCK_STREAM)
        # on Windows the usual option lets another program listen on the same port, and this one forbids it
        made.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
        try:
            made.bind((host.strip("[]"), tried))
            made.listen(512)
        except OSError as error:
            made.close()
            why = error.strerror or str(error)
        else:
            return made
    raise BadInput(f"cannot listen on {host}, port {port}: {why}", "choose another --port, or leave it out")


def hosts_of(host: str) -> tuple[str, ...]:
    """Names that a browser may call us by. Whoever listens elsewhere than on this machine is called by that address."""
    if host in ("127.0.0.1", "localhost", "::1"):
        return LOCAL if host != "::1" else ("[::1]", *LOCAL[:2])
    if host in ("0.0.0.0", "::"):
        return (socket.gethostname().lower(), socket.getfqdn().lower(), *LOCAL)
    return (f"[{host}]" if ":" in host else host.lower(), *LOCAL)


def warm_up() -> None:
    """torch takes seconds to import: not while the first answer is waited for."""
    import torch  # noqa: F401

    import fairtrial.parts  # noqa: F401
