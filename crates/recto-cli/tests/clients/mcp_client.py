"""A client of the Model Context Protocol, written with its official Python package.

Reads a JSON object from stdin: either url and headers, or program (command, args and env); mode, as the package calls the
ways of beginning; and calls, each with tool, arguments, and whether to go on as the answers say. Writes a JSON object:
server, tools, and for each call all its answers.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

ANSWERS_MAX = 500
SECONDS_MAX = 60


async def answers(client, call):
    told, arguments = [], call["arguments"]
    for _ in range(ANSWERS_MAX):
        try:
            result = await client.call_tool(call["tool"], arguments)
        except MCPError as error:
            return [*told, {"code": error.code, "message": error.message}]
        told.append(result.model_dump(mode="json", by_alias=True))
        arguments = (result.meta or {}).get("recto/next")
        if not call.get("goes_on") or not arguments:
            return told
    raise SystemExit("it never ends")


async def main():
    plan = json.load(sys.stdin)
    if "url" in plan:
        http = httpx2.AsyncClient(headers=plan["headers"], timeout=SECONDS_MAX)
        server = streamable_http_client(plan["url"], http_client=http)
    else:
        server = StdioServerParameters(**plan["program"])
    async with Client(server, mode=plan["mode"], read_timeout_seconds=SECONDS_MAX) as client:
        tools = await client.list_tools()
        told = {
            "server": client.server_info.model_dump(mode="json", by_alias=True),
            "instructions": client.instructions,
            "tools": [tool.model_dump(mode="json", by_alias=True) for tool in tools.tools],
            "answers": [await answers(client, call) for call in plan["calls"]],
        }
    json.dump(told, sys.stdout)


asyncio.run(main())
