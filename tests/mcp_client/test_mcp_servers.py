"""Real MCP servers over stdio and HTTP: their tools, their deaths, what they are not told."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mmsp_nb.mcp_servers import MCPServer, MCPServerError, connect, disconnect, servers
from mmsp_nb.tools import ToolOutcome, ToolRegistry, prepare

ODD = Path(__file__).with_name("odd_server.py")


@pytest.fixture(scope="module")
def odd() -> Iterator[MCPServer]:
    server = MCPServer("odd", [sys.executable, str(ODD)], timeout=20)
    yield server
    server.close()


async def use(server: MCPServer, name: str, /, **arguments: Any) -> ToolOutcome:
    call = {"type": "tool_call.done", "name": f"odd_{name}", "arguments": arguments, "tool_call_id": "1"}
    prepared = prepare(ToolRegistry(*server.tools), call)
    return prepared.refused or await prepared.arun()


async def test_tools_of_a_server_are_tools(odd: MCPServer) -> None:
    outcome = await use(odd, "add", a=2, b=3)
    assert outcome.ok and outcome.text == "5" and outcome.result.structured_content == {"result": 5}
    (tool,) = [each for each in odd.tools if each.name == "odd_add"]
    assert tool.usage == "odd_add(a: integer, b: integer)" and tool.description == "Adds two numbers."
    assert tool.source == "MCP server odd"


def test_only_what_says_that_it_changes_nothing_runs_unasked(odd: MCPServer) -> None:
    assert {each.name for each in odd.tools if not each.ask} == {"odd_add"}


async def test_a_wrong_call_is_corrected_without_the_server(odd: MCPServer) -> None:
    outcome = await use(odd, "add", a="two", c=1)
    assert outcome.status == "invalid" and "a: 'two' is not of type 'integer'" in outcome.text
    assert "'b' is a required property" in outcome.text and "no argument 'c'" in outcome.text


async def test_an_error_of_the_tool_is_its_message(odd: MCPServer) -> None:
    outcome = await use(odd, "fail")
    assert outcome.status == "error" and "no luck today" in outcome.text and odd.alive


async def test_pictures_are_pictures_and_links_are_not_followed(odd: MCPServer) -> None:
    outcome = await use(odd, "picture")
    assert outcome.images and outcome.images[0].startswith("data:image/png;base64,")
    assert "(link to http://127.0.0.1:9/secret, not fetched)" in outcome.text


async def test_a_server_is_told_no_keys(odd: MCPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-servers")
    other = MCPServer("odd", [sys.executable, str(ODD)], env={"ODD_SETTING": "1"})
    try:
        names = (await use(other, "environment")).text.split(",")
    finally:
        other.close()
    assert "OPENAI_API_KEY" not in names and "ODD_SETTING" in names and "PATH" in names


async def test_a_call_that_never_ends_is_cut_off_and_the_server_lives_on() -> None:
    server = MCPServer("odd", [sys.executable, str(ODD)], timeout=0.5)
    begin = time.monotonic()
    outcome = await use(server, "hang")
    assert outcome.status == "error" and "no result within 0.5 s" in outcome.text and time.monotonic() - begin < 5
    server.timeout = 20
    assert (await use(server, "add", a=1, b=1)).text == "2"
    server.close()
    assert not server.alive


async def test_a_server_that_dies_is_one_line_at_once_and_ever_after() -> None:
    server = MCPServer("odd", [sys.executable, str(ODD)])
    begin = time.monotonic()
    first, second = await use(server, "die"), await use(server, "add", a=1, b=1)
    assert time.monotonic() - begin < 5
    for outcome in (first, second):
        assert outcome.status == "error" and "MCP server 'odd'" in outcome.text and "\n" not in outcome.text
    assert "the end is near" in first.text
    server.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (["/no/such/command"], "there is no command '/no/such/command'"),
        ([sys.executable, "-c", "import sys; sys.exit('out of order')"], "out of order"),
        (["http://127.0.0.1:9/mcp"], "MCP server 'bad'"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "no answer within 1 s"),
        ([], "needs a command or a URL"),
    ],
)
def test_a_server_that_cannot_be_reached_is_one_line(target: list[str], said: str) -> None:
    begin = time.monotonic()
    with pytest.raises(MCPServerError, match=said) as caught:
        MCPServer("bad", target, connect_timeout=1 if "60" in str(target) else 10)
    assert "\n" not in str(caught.value) and time.monotonic() - begin < 8


async def test_a_server_over_http_asks_whatever_it_says() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(ODD), str(port)], stderr=subprocess.DEVNULL)
    try:
        server: MCPServer | None = None
        deadline = time.monotonic() + 60
        while server is None:
            try:
                server = MCPServer("odd", f"http://127.0.0.1:{port}/mcp", connect_timeout=5)
            except MCPServerError:
                if time.monotonic() > deadline:
                    raise
        assert all(each.ask for each in server.tools)
        assert (await use(server, "add", a=2, b=2)).text == "4"
        server.close()
    finally:
        process.kill()
        process.wait()


def test_servers_have_names_and_can_be_replaced() -> None:
    first = connect("odd", [sys.executable, str(ODD)])
    second = connect("odd", [sys.executable, str(ODD)], ask=False)
    assert servers() == {"odd": second} and not first.alive and not any(each.ask for each in second.tools)
    with pytest.raises(MCPServerError, match="did you mean 'odd'"):
        disconnect("od")
    assert disconnect("odd") is second and not second.alive and servers() == {}


@pytest.mark.skipif(
    shutil.which("mcp-server-time", path=str(Path(sys.executable).parent)) is None, reason="not installed"
)
async def test_a_server_from_the_package_index() -> None:
    server = MCPServer("odd", [str(Path(sys.executable).parent / "mcp-server-time")])
    try:
        outcome = await use(server, "get_current_time", timezone="Asia/Tokyo")
    finally:
        server.close()
    assert outcome.ok and '"timezone": "Asia/Tokyo"' in outcome.text and "+09:00" in outcome.text
