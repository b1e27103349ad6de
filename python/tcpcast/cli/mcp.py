"""``tcpcast mcp``: a server of the Model Context Protocol over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import tcpcast
from tcpcast.cli.mcp_tools import (
    INSTRUCTIONS,
    MAX_ARGUMENT_BYTES,
    MAX_ROWS,
    tools_by_name,
)
from tcpcast.cli.mcp_worker import interruption_reason, list_files, run_command
from tcpcast.cli.options import read_positive_duration
from tcpcast.cli.streams import print_message
from tcpcast.cli.worker import TimeLimitExceeded, run_in_worker
from tcpcast.process.errors import MachineError, TcpcastError

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.types import (
        CallToolRequestParams,
        CallToolResult,
        ListResourcesResult,
        ListToolsResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
    )

MAX_RUNNING = 2
MAX_WAITING = 8
"""Maximum number of waiting calls; further calls are refused."""
INVALID_PARAMETERS = -32602
"""Error code of JSON-RPC 2.0 for a request whose parameters are not valid."""
RESOURCES = {
    "tcpcast://engines": (
        ["engines", "--json"],
        "The engines: what they answer, and their domains.",
    ),
    "tcpcast://schema": (["schema"], "JSON Schema of a scenario, with the defaults of its keys."),
}
"""Commands that print the resources, and their descriptions."""


def mcp(*, folder: str | None, max_wall: str) -> None:
    """Serve tools until standard input ends."""
    limit_s = read_positive_duration("--max-wall", max_wall, "30s")
    if folder is not None and not os.path.isdir(folder):
        raise TcpcastError(f"--folder: {folder} is not a folder; use the folder of your captures")
    try:
        from mcp.server import ServerRequestContext  # noqa: F401, PLC0415 - since version 2
    except ImportError:
        raise MachineError(
            "the server for agents requires mcp 2, which is not installed: pip install 'mcp>=2,<3'"
        ) from None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit_process)
    if sys.stdin is not None and sys.stdin.isatty():
        print_message(
            "this server reads requests from standard input; an MCP client normally "
            "starts it. Press Ctrl-C to stop"
        )
    try:
        asyncio.run(_serve_tool_calls(ToolCalls(folder and os.path.realpath(folder), limit_s)))
    except* BrokenPipeError:  # the client has ended
        pass


def _exit_process(*_: object) -> NoReturn:
    """End this process; its workers end when their standard input does."""
    os._exit(0)


async def _serve_tool_calls(calls: ToolCalls) -> None:
    from mcp.server import Server  # noqa: PLC0415 - installed with mcp
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    if sys.stdin is None:
        return
    server = Server(
        "tcpcast",
        version=tcpcast.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=calls.answer,
        on_list_resources=_list_resources,
        on_read_resource=calls.read_resource,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _list_tools(
    _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
) -> ListToolsResult:
    from mcp.types import ListToolsResult, ToolAnnotations  # noqa: PLC0415
    from mcp.types import Tool as Listed  # noqa: PLC0415

    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return ListToolsResult(
        tools=[
            Listed(
                name=tool.name,
                description=tool.description,
                input_schema=tool.schema(),
                output_schema=tool.output_schema(),
                annotations=hints,
            )
            for tool in tools_by_name().values()
        ]
    )


async def _list_resources(
    _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
) -> ListResourcesResult:
    from mcp.types import ListResourcesResult, Resource  # noqa: PLC0415

    return ListResourcesResult(
        resources=[
            Resource(
                name=uri.rpartition("/")[2],
                uri=uri,
                description=description,
                mime_type="application/json",
            )
            for uri, (_, description) in RESOURCES.items()
        ]
    )


class ToolCalls:
    """Runs each call of a tool in a separate process.

    Parameters
    ----------
    folder
        Folder below which files may be read, without symbolic links; None for no files.
    limit_s
        Time limit of a call in seconds.
    """

    def __init__(self, folder: str | None, limit_s: float) -> None:
        self._folder, self._limit_s = folder, limit_s
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._pending = 0

    async def answer(
        self, _context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        """Return the document of a command, or its error."""
        from mcp.types import CallToolResult, TextContent  # noqa: PLC0415

        tool = tools_by_name().get(params.name)
        try:
            if tool is None:
                raise TcpcastError(
                    f"there is no tool {params.name}; the tools are {', '.join(tools_by_name())}"
                )
            arguments = params.arguments or {}
            if len(json.dumps(arguments)) > MAX_ARGUMENT_BYTES:
                raise TcpcastError(
                    f"the arguments contain more than {MAX_ARGUMENT_BYTES:,} bytes; shorten them"
                )
            found = await self._answer_of_worker(
                {"do": tool.action, **tool.request(arguments), **self._limits()}
            )
        except TcpcastError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        document, texts = json.loads(found["document"]), [found["document"]]
        if found["messages"]:
            texts.append(found["messages"])
            document["messages"] = found["messages"].splitlines()
        return CallToolResult(
            content=[TextContent(text=text) for text in texts], structured_content=document
        )

    async def read_resource(
        self, _context: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Return what a command prints."""
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415
        from mcp.types import ReadResourceResult, TextResourceContents  # noqa: PLC0415

        uri = str(params.uri)
        try:
            if uri not in RESOURCES:
                raise TcpcastError(
                    f"there is no resource {uri}; the resources are {', '.join(RESOURCES)}"
                )
            request = {"do": "run_command", "words": RESOURCES[uri][0], "text": "", "tables": []}
            found = await self._answer_of_worker(request | self._limits())
        except TcpcastError as error:
            raise MCPError(INVALID_PARAMETERS, str(error)) from None
        return ReadResourceResult(
            contents=[
                TextResourceContents(
                    uri=params.uri, mime_type="application/json", text=found["document"]
                )
            ]
        )

    async def _answer_of_worker(self, request: dict[str, Any]) -> dict[str, str]:
        if self._pending >= MAX_RUNNING + MAX_WAITING:
            raise TcpcastError(f"{self._pending} calls are running or waiting; call again later")
        self._pending += 1
        try:
            async with self._slots:
                return await self._run_in_worker(request)
        finally:
            self._pending -= 1

    def _limits(self) -> dict[str, Any]:
        return {"rows": MAX_ROWS, "folder": self._folder, "limit_s": self._limit_s}

    async def _run_in_worker(self, request: dict[str, Any]) -> dict[str, str]:
        function = list_files if request["do"] == "list_files" else run_command
        try:
            found: dict[str, str] = await run_in_worker(function, request, limit_s=self._limit_s)
            return found
        except TimeLimitExceeded:
            raise TcpcastError(f"no answer: {interruption_reason(self._limit_s)}") from None
