"""`FakeProvider`: a real HTTP server on 127.0.0.1 that answers from a script."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from mmsp_nb.testing.connection import Connection, ConnectionGone, RecordedRequest
from mmsp_nb.testing.reply import Reply

__all__ = ["FakeProvider"]

Answer = Reply | Callable[[RecordedRequest], Reply]
Match = str | Callable[[RecordedRequest], bool]


@dataclass(slots=True)
class _Rule:
    match: Match
    answer: Answer
    times: int | None

    def fits(self, request: RecordedRequest) -> bool:
        if self.times == 0:
            return False
        if callable(self.match):
            return self.match(request)
        return request.path.endswith(self.match)


class FakeProvider:
    """A scripted provider on its own port of 127.0.0.1, in a thread of its own.

    Use it as a context manager (``with`` or ``async with``), or call `start` and `close`::

        with FakeProvider(streams.reply("text", "chat")) as provider:
            client = AutoLLMClient("any", "key", provider.url("/v1"), "openai-chat")

    A request is answered by the first rule (`when`) that fits, else by the next reply of the queue (the
    constructor's arguments and `add`), else by a 400 that says so. A reply may be a function of the request.
    Every request is recorded in `requests`.
    """

    def __init__(self, *replies: Answer) -> None:
        self._queue: deque[Answer] = deque(replies)
        self._rules: list[_Rule] = []
        self._requests: list[RecordedRequest] = []
        self._changed = threading.Condition()
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._open = 0
        self._accepted = 0
        self.port = 0

    # life

    def start(self) -> FakeProvider:
        """Listen on a free port. Returns the provider itself."""
        if self._thread is not None:
            raise RuntimeError("this FakeProvider has been started already")
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), name="fake-provider", daemon=True)
        self._thread.start()
        ready.wait()
        if not self.port:
            raise OSError("the fake provider found no free port on 127.0.0.1")
        return self

    def close(self) -> None:
        """End the server and its connections, also those that wait at a gate. A second call does nothing."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> FakeProvider:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> FakeProvider:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # the script

    def url(self, path: str = "") -> str:
        """The provider's address with ``path`` appended: ``http://127.0.0.1:<port><path>``."""
        return f"http://127.0.0.1:{self.port}{path}"

    def add(self, *replies: Answer) -> FakeProvider:
        """Append to the queue; each reply serves one request."""
        with self._changed:
            self._queue.extend(replies)
        return self

    def when(self, match: Match, answer: Answer, times: int | None = None) -> FakeProvider:
        """Answer fitting requests, at most ``times`` times (None = always), ahead of the queue.

        ``match`` is the end of the path, or a function of the request. Earlier rules win.
        """
        with self._changed:
            self._rules.append(_Rule(match, answer, times))
        return self

    def reset(self) -> None:
        """Forget the script and the recorded requests."""
        with self._changed:
            self._queue.clear()
            self._rules.clear()
            self._requests.clear()

    # what happened

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests so far, oldest first."""
        with self._changed:
            return list(self._requests)

    @property
    def last(self) -> RecordedRequest:
        """The latest request. Raises LookupError when there was none."""
        if not self._requests:
            raise LookupError("the fake provider has had no request yet")
        return self._requests[-1]

    @property
    def remaining(self) -> int:
        """Replies of the queue that have not been asked for."""
        return len(self._queue)

    @property
    def open_connections(self) -> int:
        return self._open

    @property
    def accepted_connections(self) -> int:
        """How many connections were ever made: shows whether a client reuses them."""
        return self._accepted

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> list[RecordedRequest]:
        """Block until ``count`` requests have arrived. Raises TimeoutError."""
        self._wait(lambda: len(self._requests) >= count, timeout, f"{count} requests")
        return self.requests

    def wait_until_idle(self, timeout: float = 10.0) -> None:
        """Block until every connection is closed. Raises TimeoutError: a client left one open."""
        self._wait(lambda: self._open == 0, timeout, "the end of all connections")

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(
                    f"no {what} within {timeout:g} s: {len(self._requests)} requests, {self._open} connections open"
                )

    # the server's thread

    def _serve(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            server = loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=256))
            self.port = server.sockets[0].getsockname()[1]
            self._loop = loop
            ready.set()
            loop.run_forever()
            server.close()
            for connection in self._connections.values():
                connection.abort()
            running = list(self._connections)
            for task in running:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*running, return_exceptions=True))
        finally:
            ready.set()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = connection
        self._note(opened=1)
        try:
            await self._converse(connection)
        except (ConnectionGone, OSError, asyncio.CancelledError):
            pass  # the client is gone, or the provider is being closed
        finally:
            await connection.close()
            del self._connections[task]
            self._note(opened=-1)

    async def _converse(self, connection: Connection) -> None:
        while (request := await connection.read_request()) is not None:
            reply = self._choose(request)
            try:
                if not await connection.answer(reply, request):
                    return
            except (ConnectionGone, OSError):
                request.left.set()
                raise
            finally:
                request.done.set()

    def _choose(self, request: RecordedRequest) -> Reply:
        with self._changed:
            self._requests.append(request)
            answer = self._next(request)
            self._changed.notify_all()
        try:
            return answer(request) if callable(answer) else answer
        except Exception as error:
            return _refusal(500, f"the script failed: {type(error).__name__}: {error}")

    def _next(self, request: RecordedRequest) -> Answer:
        for rule in self._rules:
            if rule.fits(request):
                if rule.times is not None:
                    rule.times -= 1
                return rule.answer
        if self._queue:
            return self._queue.popleft()
        return _refusal(400, f"the fake provider has no reply left for {request.method} {request.path}")

    def _note(self, opened: int) -> None:
        with self._changed:
            self._open += opened
            self._accepted += opened > 0
            self._changed.notify_all()

    def __repr__(self) -> str:
        return f"<FakeProvider port={self.port} requests={len(self._requests)} remaining={len(self._queue)}>"


def _refusal(status: int, message: str) -> Reply:
    return Reply.json({"error": {"type": "fake_provider", "message": message}}, status)
