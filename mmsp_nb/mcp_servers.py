"""Servers of the Model Context Protocol: their tools become ours, under the same policy, views and time limits.

Needs the official SDK: ``pip install "mmsp-nb[mcp]"``. A server is connected once and lives on the background loop.
It is not trusted: it gets none of this process's environment beyond what every program needs, it cannot ask the model
or the user for anything, and what it says of its own tools decides only about descriptions, and for a local server
about what is harmless.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import importlib.util
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack
from typing import IO, Any, Literal

from mmsp_nb import loop, media
from mmsp_nb.interrupts import blocking
from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools import Tool, View
from mmsp_nb.tools.schema import legal_name, tidy

__all__ = ["MCPServer", "MCPServerError", "MCPToolError", "connect", "disconnect", "servers"]

CONNECT = 20.0
"""Seconds that a server has to start and to say what it can do."""

POLL = 0.1
"""Seconds that a blocking wait lasts at most."""

CALL = 60.0
"""Seconds that a call may take unless it is said otherwise."""

CLOSED = -32000
"""The code of the SDK's error for a connection that is gone."""

MAX_TOOLS = 200
MAX_DESCRIPTION = 1024


class MCPServerError(MMSPError):
    """A server that cannot be reached, or not any more; ``server`` is its name. The message is one line."""

    fields = {"server": None}


class MCPToolError(MMSPError):
    """A tool that reported an error; the message is what it said."""


class MCPServer:
    """A connected server. ``tools`` are its tools, named ``<server>_<tool>``; pass them to a conversation.

    Args:
        name: What it is called here.
        target: A command with its arguments, or the URL of an HTTP server.
        env: More of the environment for a command, beside PATH, HOME and the like.
        timeout: Seconds that a call may take.
        ask: Whether its tools need a person's word; None: those of an HTTP server do, and those of a command but for
            tools that it declares to be read-only.

    Raises:
        MCPServerError: it cannot be reached within `CONNECT` seconds, or the SDK is not installed.
    """

    def __init__(
        self,
        name: str,
        target: Sequence[str] | str,
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = CALL,
        ask: bool | Literal["always"] | None = None,
        connect_timeout: float = CONNECT,
    ) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise MCPServerError('MCP needs its SDK: pip install "mmsp-nb[mcp]"', server=name)
        self.name = name
        self.target = [target] if isinstance(target, str) else list(target)
        if not self.target:
            raise MCPServerError(f"MCP server {name!r} needs a command or a URL", server=name)
        self.is_http = self.target[0].startswith(("http://", "https://"))
        self.timeout = timeout
        self.tools: list[Tool] = []
        self._env = dict(env or {})
        self._ask = ask
        self._client: Any = None
        self._log: IO[str] | None = None
        self._stop: asyncio.Event | None = None
        ready: Future[list[Any]] = Future()
        self._job = loop.submit(self._live(ready))
        self._job.add_done_callback(lambda _: self._over(ready))
        try:
            listed = _awaited(ready, connect_timeout)
        except TimeoutError:
            self._end()
            raise self._gone(f"no answer within {connect_timeout:g} s") from None
        except BaseException:
            self._end()
            raise
        self.tools = [self._tool(each) for each in listed]

    @property
    def alive(self) -> bool:
        """Whether it is still connected."""
        return not self._job.done()

    def _end(self) -> None:
        """Break the connection off, and wait until what belongs to it is gone."""
        self._job.cancel()
        with contextlib.suppress(BaseException):
            self._job.result(3)

    def close(self) -> None:
        """Disconnect, and end a command. Does nothing the second time."""
        stop = self._stop
        if stop is None or self._job.done():
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everything that lived there
            loop.submit(_set(stop)).result(2)
            with contextlib.suppress(BaseException):
                self._job.result(3)
        if not self._job.done():
            self._end()

    def __repr__(self) -> str:
        names = ", ".join(tool.name for tool in self.tools)
        return f"<MCPServer {self.name!r}, {'connected' if self.alive else 'gone'}: {names}>"

    # on the loop

    async def _live(self, ready: Future[list[Any]]) -> None:
        """The life of the connection, in one task: connect, list the tools, wait to be closed."""
        from mcp import Client

        self._stop = asyncio.Event()
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(self._transport()))
                listed: list[Any] = []
                cursor = None
                while len(listed) < MAX_TOOLS:
                    page = await client.list_tools(cursor=cursor)
                    listed += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        break
                self._client = client
                ready.set_result(listed[:MAX_TOOLS])
                await self._stop.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # groups of errors, which the SDK raises too
            if not ready.done():
                ready.set_exception(self._gone(_reason(error)))
        finally:
            self._client = None

    def _transport(self) -> Any:
        if self.is_http:
            return self.target[0]
        from mcp.client.stdio import StdioServerParameters, stdio_client

        # what it writes to stderr is no output of ours; its last line helps to say why it ended
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with us
        command, *arguments = self.target
        params = StdioServerParameters(command=command, args=arguments, env=self._env or None)
        return stdio_client(params, errlog=self._log)

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        client = self._client
        if client is None:
            raise self._gone("it is not running any more")
        work = asyncio.ensure_future(client.call_tool(name, arguments))
        life = asyncio.ensure_future(self._ended())
        try:
            await asyncio.wait([work, life], timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                try:
                    result = work.result()
                except Exception as error:
                    if getattr(error, "code", None) == CLOSED and self._stop is not None:
                        self._stop.set()
                    raise self._gone(_reason(error)) from None
                if result.is_error:
                    raise MCPToolError(_text(result.content) or "the tool failed and said nothing")
                return result
            if life.done():
                raise self._gone("it ended")
            raise TimeoutError(f"no result within {self.timeout:g} s")
        finally:
            for future in (work, life):
                future.cancel()
            await asyncio.wait([work, life])

    def _over(self, ready: Future[list[Any]]) -> None:
        if not ready.done():
            ready.set_exception(self._gone("it ended at once"))

    async def _ended(self) -> None:
        with contextlib.suppress(BaseException):
            await asyncio.shield(asyncio.wrap_future(self._job))

    # tools

    def _tool(self, listed: Any) -> Tool:
        schema = dict(listed.input_schema or {})
        schema = {"type": "object", "properties": {}, **{k: v for k, v in schema.items() if k != "$schema"}}
        hints = listed.annotations
        harmless = not self.is_http and hints is not None and bool(getattr(hints, "read_only_hint", False))
        name = listed.name

        async def call(**arguments: Any) -> Any:
            return await asyncio.wrap_future(loop.submit(self._call(name, arguments)))

        description = (listed.description or listed.title or name).strip()
        return Tool(
            function=call,
            name=legal_name(f"{self.name}_{name}"),
            description=description[:MAX_DESCRIPTION],
            parameters=tidy(schema),
            is_async=True,
            timeout=self.timeout + 5,
            ask=self._ask if self._ask is not None else not harmless,
            model_view=_view,
            source=f"MCP server {self.name}",
            validate=_validator(schema),
        )

    def _gone(self, reason: str) -> MCPServerError:
        last = ""
        if self._log is not None:
            with contextlib.suppress(ValueError, OSError):
                self._log.seek(0)
                lines = self._log.read()[-4_000:].strip().splitlines()
                last = f" ({lines[-1][:200]})" if lines else ""
        return MCPServerError(mask_keys(f"MCP server {self.name!r}: {reason}{last}"), server=self.name)


_servers: dict[str, MCPServer] = {}


def servers() -> dict[str, MCPServer]:
    """The servers that `connect` has connected, by name."""
    return dict(_servers)


def connect(name: str, target: Sequence[str] | str, **options: Any) -> MCPServer:
    """Connect a server under a name, in place of the one that had it. Arguments and errors as of `MCPServer`."""
    server = MCPServer(name, target, **options)
    if name in _servers:
        _servers.pop(name).close()
    _servers[name] = server
    return server


def disconnect(name: str) -> MCPServer:
    """Close the server of that name; MCPServerError when there is none."""
    if name not in _servers:
        raise MCPServerError(f"there is no MCP server {name!r}{did_you_mean(name, _servers)}", server=name)
    server = _servers.pop(name)
    server.close()
    return server


def words(target: str) -> list[str]:
    """A command line as a list of words; ValueError for an open quote."""
    return shlex.split(target)


@atexit.register
def _close_all() -> None:
    for name in list(_servers):
        _servers.pop(name).close()


def _awaited(ready: Future[list[Any]], seconds: float) -> list[Any]:
    """The result, or a TimeoutError; in short waits, so that an interrupt is heard."""
    until = time.monotonic() + seconds
    with blocking():
        while not ready.done() and time.monotonic() < until:
            wait([ready], timeout=POLL)
    return ready.result(0)


async def _set(event: asyncio.Event) -> None:
    event.set()


def _validator(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema)

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        faults = []
        for error in list(validator.iter_errors(arguments))[:5]:
            place = ".".join(str(part) for part in error.absolute_path)
            faults.append(f"{place}: {error.message}" if place else error.message)
        unknown = [name for name in arguments if name not in schema["properties"]]
        if not schema.get("additionalProperties") and not schema.get("patternProperties"):
            faults += [f"there is no argument {n[:80]!r}{did_you_mean(n, schema['properties'])}" for n in unknown]
        if faults:
            raise ValueError("; ".join(dict.fromkeys(faults)))
        return arguments

    return validate


def _view(result: Any) -> View:
    """What a model sees of a result: its texts, and its pictures as pictures. A link is a link: nothing is fetched."""
    images = []
    for part in result.content:
        if part.type == "image":
            with contextlib.suppress(ValueError):
                images.append(media.picture(base64.b64decode(part.data)).url)
    return View(_text(result.content) or "(no result)", tuple(images))


def _text(content: Sequence[Any]) -> str:
    texts = []
    for part in content:
        if part.type == "text":
            texts.append(part.text)
        elif part.type == "resource":
            texts.append(getattr(part.resource, "text", None) or f"({part.resource.uri}, not text)")
        elif part.type == "resource_link":
            texts.append(f"(link to {part.uri}, not fetched)")
        else:
            texts.append(f"({part.type}, attached)" if part.type == "image" else f"({part.type}, not shown)")
    return "\n".join(texts)


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no command {error.filename!r}"
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
