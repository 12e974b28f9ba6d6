"""Who gets in, and what never gets out: the explorer answers this user's browser on this machine alone."""

from __future__ import annotations

import gzip
import logging
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from client import Client

import fairtrial as ft
from fairtrial.errors import BadInput
from fairtrial.explore import Explorer, guard, hosts_of
from fairtrial.explore.library import Library, NotThere

SECRET = "what nobody may read"
TRAVERSALS = [
    "..", "../", "../..", "../secret", "lm/../../secret", "./lm", "lm/.", "lm/..", "lm//", "/lm", "//lm", "/etc",
    "/etc/passwd", "~", "~root", "~/secret", "..\\secret", "lm\\..\\..\\secret", "C:\\secret", "c:/secret",
    "\\\\host\\share", "file:///etc", "%2e%2e/secret", "%2e%2e%2fsecret", "..%2fsecret", "%252e%252e%252fsecret",
    "..%252fsecret", "%c0%ae%c0%ae/secret", "..%c0%afsecret", "%uff0e%uff0e/secret", "\u002e\u002e/secret",
    "\uff0e\uff0e/secret", "..\u2215secret", "..\u2044secret", "....//secret", "..;/secret", "lm\x00",
    "lm\x00/../secret", "\x00", "lm\n", "\r\nlm", "lm\t", " ", "  ..", ".. ", "...", "CON", "aux", "NUL.txt", "lpt1",
    "x" * 300, "x" * 10_000, "/".join(["x"] * 3000), "a/" * 5000, "inside-link", "inside-link/lm", "lm/link",
    "link-to-secret", "*", "?", "l?", "lm/*", "$HOME", "${PWD}", "`id`", "$(id)", "|id", ";id", "lm;id", "<script>",
    '"lm"', "\ud800", "\u202elm", "proc/self/environ",
]  # fmt: skip


def test_only_our_names_are_answered(client: Client) -> None:
    port = client.explorer.port
    for host in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        for named in (host, f"{host}:{port}"):
            assert client.get("/", Host=named).status == 200, named
    strange = [
        "evil.com",
        f"evil.com:{port}",
        "127.0.0.1.evil.com",
        "localhost.evil.com",
        "0.0.0.0",
        f"0.0.0.0:{port}",
        "2130706433",
    ]
    strange += [
        "0x7f000001",
        "127.1",
        f"127.0.0.1:{port + 1}",
        "127.0.0.1:",
        "127.0.0.1.",
        " ",
        "[::]",
        f"user@127.0.0.1:{port}",
        "127.0.0.2",
    ]
    for named in strange:
        assert client.get("/", Host=named).status in (400, 403), named
    with socket.create_connection(("127.0.0.1", port)) as line:  # two names, one of them right
        line.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.com\r\nCookie: {client.cookie}\r\n\r\n".encode())
        assert line.recv(100).split()[1] in (b"400", b"403")
    with socket.create_connection(("127.0.0.1", port)) as line:  # no name at all
        line.sendall(f"GET / HTTP/1.0\r\nCookie: {client.cookie}\r\n\r\n".encode())
        assert line.recv(100).split()[1] in (b"400", b"403")


def test_only_who_has_the_token_gets_in(client: Client) -> None:
    token = client.explorer.guard.token
    assert len(token) >= 43  # 256 bits
    with ft.explore(client.explorer.folder, port=0, browser=False) as other:
        theirs = Client(other)
        for path in ("/", "/static/main.js", "/playground"):
            assert client.get(path, cookie="").status == 401
            assert client.get(path, cookie=theirs.cookie).status == 401
            assert client.get(path, cookie=f"{client.explorer.guard.cookie}={other.guard.session}").status == 401
            assert client.get(path).status == 200
        wrong = ["", "x", token[:-1], token + "x", other.guard.token, token.lower()]
        for given in wrong:
            assert client.get(f"/?token={quote(given)}", cookie="").status == 401, given
        assert client.get(f"/?token={token}&token={token}", cookie="").status == 401
        assert client.get(f"/?token={token}&token=x", cookie="").status == 401
    assert client.ask("library", Cookie="").status == 401
    entered = client.get(f"/parts?part=a%26b&token={token}", cookie="")
    assert (entered.status, entered.headers["location"]) == (303, "/parts?part=a%26b")  # no history keeps the token
    kept = entered.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=Strict" in kept
    assert token not in kept
    assert client.get(f"//evil.com/?token={token}", cookie="").headers["location"].startswith("/evil.com/")


def test_other_sites_may_ask_nothing(client: Client) -> None:
    asked = client.ask("library")
    assert asked.status == 200
    for origin in (
        "",
        "null",
        "https://evil.com",
        "http://evil.com",
        f"https://127.0.0.1:{client.explorer.port}",
        "http://127.0.0.1",
    ):
        assert client.ask("library", Origin=origin).status == 403, origin
    for site in ("cross-site", "same-site"):
        assert client.ask("library", Sec_Fetch_Site=site).status == 403
        assert client.get("/static/main.js", **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}).status == 403
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):  # what a form can send
        assert client.ask("library", Content_Type=kind).status == 415, kind
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "GET", "HEAD"):
        usual = {"Cookie": client.cookie, "Origin": client.origin, "Content-Type": "application/json"}
        assert client.send(method, "/api/library", headers=usual).status == 405, method
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "x" * 22 + "==",
        "Sec-WebSocket-Version": "13",
    }
    assert client.get("/api/live", **upgrade).status in (400, 403, 405)


def test_every_answer_forbids_what_pages_do_not_need(client: Client) -> None:
    for reply in (
        client.get("/"),
        client.get("/", cookie=""),
        client.get("/nothing"),
        client.ask("library"),
        client.ask("x"),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert "server" not in reply.headers
    page = client.get("/").body.decode()
    assert page.count("<script") == page.count('<script type="module" src="/static/main.js"></script>') == 1
    assert "style=" not in page
    assert " on" not in page.partition("<body>")[2].replace(" on this", "")


def test_no_path_leaves_the_folder(client: Client, shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    for name in ("trial.json", "recipe.toml", "study.toml", "verdict.json"):
        (tmp_path / "secret" / name).write_text(SECRET)
    links = {shelf / "inside-link": shelf, shelf / "link-to-secret": tmp_path / "secret"}
    for link, target in links.items():
        link.symlink_to(target)
    try:
        library = Library(shelf)
        for name in TRAVERSALS:
            for find in (library.record, library.place):
                with pytest.raises(NotThere):
                    find(name)
        assert library.place("lm") == shelf / "lm"  # the control
        rows = client.ask("library")
        assert SECRET.encode() not in rows.body
        assert {row["path"] for row in rows.json["rows"]} >= {"lm", "classify"}
        assert not any("link" in row["path"] for row in rows.json["rows"])
        for name in TRAVERSALS:
            written = quote(name.encode("utf-8", "replace"), safe="/%.\\~;*$`|")[:12_000]
            for place in ("/static/", "/api/", "/"):
                found = client.ask(written) if place == "/api/" else client.get(place + written)
                assert found.status in (400, 404, 405, 414) or (place == "/" and b"<main" in found.body), (place, name)
                assert SECRET.encode() not in found.body
        asked = {"read": "model", "draw": "part"}
        before = sorted(shelf.iterdir())
        for question, field in asked.items():
            for name in TRAVERSALS:
                reply = client.ask(question, {field: name, "text": "x"})
                assert reply.status in (400, 404), (question, name)
                assert SECRET.encode() not in reply.body
        assert sorted(shelf.iterdir()) == before  # nothing was written
    finally:
        for link in links:
            link.unlink()


def test_bodies_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def status(body: bytes, **headers: str) -> int:
        try:
            return client.ask("library", body, **headers).status
        except ConnectionError:
            assert len(body) > guard.BODY_BYTES  # only such a body may be hung up on before all was sent
            return 413

    assert status(b'{"x": "' + b"a" * 1_000_000 + b'"}') == 413
    packed = gzip.compress(b" " * 50_000_000)
    assert status(packed, Content_Encoding="gzip") == 415
    for body in (
        b"[]",
        b"7",
        b"{",
        b"\xff\xfe",
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b"1" * 100_000,
        b'{"x": 1e999}',
        b"NaN",
    ):
        assert status(body) in (200, 400, 413), body[:20]
    usual = (
        f"Host: 127.0.0.1\r\nCookie: {client.cookie}\r\nOrigin: {client.origin}\r\nContent-Type: application/json\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.explorer.port)) as line:  # a length that is not told
        line.sendall(f"POST /api/library HTTP/1.1\r\n{usual}Transfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(40):
                line.sendall(b"2710\r\n" + b"a" * 10_000 + b"\r\n")
            said = line.recv(100)
        except OSError:
            said = b"HTTP/1.1 413"  # it hung up on us
        assert said.split()[1] == b"413"
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", client.explorer.port)) as line:  # a body that never comes
        line.sendall(f"POST /api/library HTTP/1.1\r\n{usual}Content-Length: 100\r\n\r\n{{".encode())
        assert line.recv(100).split()[1] == b"408"
    assert client.ask("library").status == 200


def test_two_hundred_connections_at_once(client: Client) -> None:
    silent = [socket.create_connection(("127.0.0.1", client.explorer.port)) for _ in range(300)]
    try:
        for line in silent[:100]:
            line.sendall(b"GET / HTTP/1.1\r\nHost: ")
        with ThreadPoolExecutor(200) as many:
            replies = list(
                many.map(
                    lambda number: client.ask("library").status if number % 2 else client.get("/").status, range(200)
                )
            )
        assert set(replies) <= {200, 503}, set(replies)  # 503: told to wait
        assert replies.count(200) >= 100
        begun = time.monotonic()
        assert client.get("/").status == 200
        assert time.monotonic() - begun < 60
    finally:
        for line in silent:
            line.close()


def test_a_silent_connection_is_closed(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["fairtrial.explore"], "SILENT_SECONDS", 0.2)
    with (
        ft.explore(shelf, port=0, browser=False) as started,
        socket.create_connection(("127.0.0.1", started.port)) as line,
    ):
        line.settimeout(60)
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert line.recv(100) == b""


def test_the_token_is_in_no_log(
    shelf: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), ft.explore(shelf, port=0, browser=False) as started:
        there = Client(started)
        there.get("/")
        there.ask("library")
        there.get("/%zz")
    said = caplog.text + "".join(capfd.readouterr())
    assert started.guard.token not in said
    assert started.guard.session not in said


def test_it_listens_on_this_machine_only(client: Client, tmp_path: Path) -> None:
    assert client.explorer.socket.getsockname()[0] == "127.0.0.1"
    assert "0.0.0.0" not in hosts_of("0.0.0.0")
    assert hosts_of("192.168.0.7")[0] == "192.168.0.7"
    with pytest.raises(BadInput, match="cannot listen"):
        Explorer(tmp_path, "127.0.0.1", client.explorer.port)
    with pytest.raises(BadInput, match="not a folder"):
        ft.explore(tmp_path / "x", browser=False)


def test_stopping_ends_its_threads(shelf: Path) -> None:
    with ft.explore(shelf, port=0, browser=False) as started:
        listening: list[Any] = []
        threading.Thread(target=lambda: listening.append(Client(started).ask("library")), daemon=True).start()
    assert not started.thread.is_alive()
    with pytest.raises(OSError, match=r".*"):
        socket.create_connection(("127.0.0.1", started.port), timeout=2)
