"""The judge for coding agents: public functions become tools of the Model Context Protocol, as they become commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import fairtrial
from fairtrial.cli.declare import PYTHON_ONLY, SEVERAL, kind_of, read_docstring
from fairtrial.errors import FairtrialError

TOOLS = ("verdict", "power", "audit", *fairtrial.GATE.split()[:4])
INSTRUCTIONS = (
    "fairtrial judges changes to models. Call gate_new once; for each idea, train it and the incumbent with the seed"
    " that the last answer names, then gate_add; keep or discard as it says. Never look at a test set."
)


def mcp() -> None:
    """Serve verdict, power, audit and the gate to a coding agent (MCP).

    It speaks the Model Context Protocol over standard input and output: put `fairtrial mcp` into the agent's list of
    servers (pip install 'fairtrial[mcp]').
    """
    from mcp.server import MCPServer

    tools, version = [as_tool(getattr(fairtrial, name)) for name in TOOLS], fairtrial.__version__
    MCPServer("fairtrial", instructions=INSTRUCTIONS, version=version, tools=tools, log_level="WARNING").run("stdio")


def as_tool(function: Callable[..., Any]) -> Any:
    """With the parameters that a command has, and what `--json` prints as its answer."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from pydantic import Field

    (text, described), parameters = read_docstring(function), []
    for name, each in inspect.signature(function).parameters.items():
        if name in PYTHON_ONLY or each.kind is each.VAR_KEYWORD:
            continue
        needed, written = each.default is each.empty, str(each.annotation)
        kind = tool_kind(written)
        annotation: Any = Annotated[kind if needed else kind | None, Field(description=described[name][1])]
        default = each.empty if needed else None
        parameters.append(inspect.Parameter(name, each.KEYWORD_ONLY, annotation=annotation, default=default))

    @wraps(function)
    def call(**given: Any) -> dict[str, Any]:
        try:
            return dict(function(**{name: value for name, value in given.items() if value is not None}).to_json())
        except FairtrialError as error:
            raise ToolError(str(error)) from None

    call.__signature__ = inspect.Signature(parameters, return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": dict[str, Any]}
    tool = Tool.from_function(call, description=text)
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"  # a misspelled argument is a mistake
    model.model_rebuild(force=True)
    tool.parameters["additionalProperties"] = False
    return tool


def tool_kind(written: str) -> Any:
    """
    >>> [tool_kind(text) for text in ("Mapping[int, float] | None", "Sequence[Source]", "float | None")]
    [dict[int, float], list[str], <class 'float'>]
    """
    if written.startswith("Mapping"):
        return dict[int, float] if "[int, float]" in written else dict[str, str]
    kind = kind_of(written)
    return list[kind] if SEVERAL.match(written) else kind  # type: ignore[valid-type]
