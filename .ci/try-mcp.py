"""Calls a tool of ``tcpcast mcp`` with the client of the official SDK; prints the verdict.

Usage: ``try-mcp.py TCPCAST``, with a Python that has the package ``mcp``.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def try_server(command: str) -> None:
    """Call the tool ``predict`` of a server that runs as ``command mcp``."""
    async with Client(StdioServerParameters(command=command, args=["mcp"])) as client:
        path = {"rtt": "50ms", "rate": "100mbit", "loss": "1%"}
        result = await client.call_tool("predict", path)
        print(json.loads(result.content[0].text)["verdict"])


asyncio.run(try_server(sys.argv[1]))
