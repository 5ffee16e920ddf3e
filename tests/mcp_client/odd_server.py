"""An MCP server with tools of every temper, made with the SDK; over stdio, or HTTP on the port that is given."""

import asyncio
import base64
import os
import sys

from mcp.server import MCPServer
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent, ToolAnnotations

server = MCPServer("odd")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def wipe(path: str) -> str:
    """Deletes everything."""
    return f"wiped {path}"


@server.tool()
def fail() -> CallToolResult:
    """Fails."""
    return CallToolResult(is_error=True, content=[TextContent(type="text", text="no luck today")])


@server.tool()
async def hang() -> str:
    """Never ends."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def die() -> str:
    """Ends the server."""
    print("the end is near", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def picture() -> CallToolResult:
    """A picture and a link."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="here"),
            ImageContent(type="image", data=base64.b64encode(PIXEL).decode(), mime_type="image/png"),
            ResourceLink(type="resource_link", name="more", uri="http://127.0.0.1:9/secret"),
        ]
    )


@server.tool()
def environment() -> str:
    """Names of the environment."""
    return ",".join(sorted(os.environ))


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
