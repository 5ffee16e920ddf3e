"""``%mmsp mcp``: connect and disconnect servers, and put their tools where the cells' models find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.suggestions import did_you_mean

from .options import OptionError
from .sanitize import single_line

if TYPE_CHECKING:
    from mmsp_nb.tools import ToolRegistry

__all__ = ["run"]

_FLAGS: dict[str, dict[str, Any]] = {"--ask": {"ask": True}, "--no-ask": {"ask": False}}


def run(text: str, tools: ToolRegistry) -> str:
    """``add NAME [--ask | --no-ask] COMMAND...``, ``add NAME URL``, ``remove NAME``, or nothing: what there is.

    Raises OptionError in one line, also for a server that cannot be reached.
    """
    from mmsp_nb import mcp_servers

    verb, _, rest = text.strip().partition(" ")
    try:
        if verb == "add":
            return _add(rest, tools)
        if verb == "remove":
            server = mcp_servers.disconnect(rest.strip())
            for tool in server.tools:
                if tools.get(tool.name) is not None:
                    tools.remove(tool.name)
            return f"disconnected {server.name}"
    except (mcp_servers.MCPServerError, ValueError) as error:
        raise OptionError(str(error)) from None
    if verb:
        raise OptionError(f"%mmsp mcp {verb}: write add or remove{did_you_mean(verb, ['add', 'remove'])}")
    shown = [_lines(server) for server in mcp_servers.servers().values()]
    return "\n".join(shown) or "no MCP servers: %mmsp mcp add NAME COMMAND"


def _add(text: str, tools: ToolRegistry) -> str:
    from mmsp_nb import mcp_servers

    name, *words = mcp_servers.words(text) or [""]
    options: dict[str, Any] = {}
    while words and words[0] in _FLAGS:
        options.update(_FLAGS[words.pop(0)])
    if not name.replace("-", "_").isidentifier() or not words:
        raise OptionError("%mmsp mcp add needs a name and a command or a URL: %mmsp mcp add time mcp-server-time")
    server = mcp_servers.connect(name, words, **options)
    tools.add(*server.tools)
    return _lines(server)


def _lines(server: Any) -> str:
    state = "connected" if server.alive else "gone; add it again"
    lines = [f"{server.name}: {state}, {len(server.tools)} tool{'' if len(server.tools) == 1 else 's'}"]
    for tool in server.tools:
        asks = "  (asks)" if tool.ask else ""
        lines.append(f"    {tool.usage}{asks}\n        {single_line(tool.description, 90)}")
    return "\n".join(lines)
