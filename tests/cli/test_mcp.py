"""`fairtrial mcp`, driven by the official client over standard input and output."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.cli.declare import PYTHON_ONLY
from fairtrial.cli.tools import TOOLS

Call = Callable[..., Awaitable[Any]]


def test_without_the_package_the_command_says_what_to_install(tmp_path: Path) -> None:
    block = "import sys; sys.modules['mcp'] = None; sys.argv = ['fairtrial', 'mcp']; from fairtrial.cli.main import run"
    done = subprocess.run([sys.executable, "-c", f"{block}; run()"], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert 'pip install "fairtrial[mcp]"' in done.stderr


def driven(folder: Path, work: Callable[[Any, Call], Awaitable[None]]) -> None:
    """A server in a process of its own; `work` gets the client, and a short way to call a tool."""
    anyio = pytest.importorskip("anyio", reason="needs mcp: pip install 'fairtrial[mcp]'")
    mcp = pytest.importorskip("mcp", reason="needs mcp: pip install 'fairtrial[mcp]'")
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "fairtrial", "mcp"], env=dict(os.environ), cwd=folder
    )

    async def main() -> None:
        async with mcp.Client(mcp.stdio_client(server)) as client:

            async def call(name: str, **given: Any) -> Any:
                answer = await client.call_tool(name, given)
                return answer.content[0].text if answer.is_error else answer.structured_content

            await work(client, call)

    anyio.run(main)


def plain(result: ft.Gate | ft.Verdict) -> Any:
    return json.loads(json.dumps(result.to_json()))


def test_an_agent_judges_by_its_tools(tmp_path: Path) -> None:
    rows = [f"{name},{seed},{3.3 - 0.1 * at + seed / 99}" for at, name in enumerate(("a", "b")) for seed in range(5)]
    (tmp_path / "runs.csv").write_text("\n".join(["variant,seed,val_loss", *rows]))

    async def work(client: Any, call: Call) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(TOOLS) >= {"verdict", "gate", "power", "audit"}
        for name, tool in tools.items():
            parameters = inspect.signature(getattr(ft, name)).parameters.values()
            known = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD} - {*PYTHON_ONLY}
            assert set(tool.input_schema["properties"]) == known
            assert tool.description.split()[:3] == (getattr(ft, name).__doc__ or "").split()[:3]
        judged = await call("verdict", results=["runs.csv"])
        assert {**judged, "results": {}} == {**plain(ft.verdict(tmp_path / "runs.csv")), "results": {}}
        assert (await call("power", seeds=5, items=750))["low"] == ft.power(5, 750).low
        begun = await call("gate_new", ledger="ideas.jsonl", metric="val_loss", incumbent="base")
        assert begun["answer"] is None
        more = await call("gate_add", ledger="ideas.jsonl", candidate="b", seed=0, score=3.2, incumbent_score=3.3)
        assert (more["answer"], more["next_seed"]) == ("more", 1)
        ours, theirs = {str(s): 3.2 + s / 900 for s in range(1, 7)}, {str(s): 3.3 - s / 999 for s in range(1, 7)}
        await call("gate_add", ledger="ideas.jsonl", candidate="b", scores=ours, incumbent_scores=theirs)
        kept = await call("gate", ledger="ideas.jsonl")
        assert (kept["answer"], kept["incumbent"]) == ("keep", "b")
        assert kept == {**plain(ft.gate(tmp_path / "ideas.jsonl")), "ledger": "ideas.jsonl"}
        # mistakes are sentences, and the server goes on
        assert "belong together" in await call("gate_add", ledger="ideas.jsonl", candidate="c", seed=90)
        assert "does not exist" in await call("verdict", results=["nowhere.csv"])
        assert "seedz" in await call("power", seedz=3)
        assert (await call("power"))["seeds"] == 5

    driven(tmp_path, work)


@pytest.mark.second
def test_an_agent_audits_and_trains_by_its_tools(tmp_path: Path, course_folder: Path) -> None:
    small = ft.Recipe.load("classify").with_(layers=1, width=16, hidden=16, steps=3, batch=8)
    (tmp_path / "tiny.toml").write_text(small.to_toml())

    async def work(client: Any, call: Call) -> None:
        assert (await call("audit", target="none"))["passed"] is True
        await call(
            "gate_new", ledger="own.jsonl", task="classify", data=str(course_folder), recipe="tiny.toml",
            incumbent="learned", most_pairs=2,
        )  # fmt: skip
        assert (await call("gate_run", ledger="own.jsonl", candidate="rope", jobs=1))["answer"] == "discard"
        leak = await call("gate_run", ledger="own.jsonl", candidate="reweight:over=batch", jobs=1)
        assert leak["current"]["why"] == "audit"

    driven(tmp_path, work)
