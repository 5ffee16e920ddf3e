"""Who consumes the events of an `ask`: a host.

The plain host here serves scripts, terminals and any code: it blocks, draws nothing, and runs synchronous
tools on the calling thread. A notebook registers a host of its own, which draws into the cell.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mmsp_nb import loop
from mmsp_nb.interrupts import blocking
from mmsp_nb.protocol.errors import UnsupportedOperationError

if TYPE_CHECKING:  # a host can be registered without loading the tools
    from mmsp_nb.approval import PendingCall
    from mmsp_nb.tools import PreparedCall, ToolOutcome, Verdict

__all__ = ["Host", "PlainHost", "Stream", "arun", "cell", "current", "register", "run"]

Stream = Callable[..., AsyncGenerator[dict[str, Any], None]]
"""``stream(execute, approve=None)`` starts the events of one question, given how its tools are to be run (None:
`run_calls`) and who is asked about calls that need a person's word: a function, "wait" to end there, None: nobody."""

POLL = 0.1
"""Seconds after which a wait looks for a Ctrl-C, where a lock cannot be interrupted."""

CLEAN_UP = 5.0
"""Seconds that an interrupted stream has to close its connection and keep its books."""


class Host(Protocol):
    """Consumes the events of one question, all of them, and closes the iterator.

    What the stream raises passes through. The return value says whether a person has seen the answer.
    """

    def run(self, conversation: Any, stream: Stream) -> bool:
        """For `Conversation.ask`: blocks until the end, whether or not a loop runs on this thread."""

    async def arun(self, conversation: Any, stream: Stream) -> bool:
        """For `Conversation.ask_async`: on the running loop."""


class PlainHost:
    """Runs the stream on the background loop and waits for it; draws nothing.

    Args:
        approve: Who decides about calls that need a person's word: "terminal" asks there, if somebody sits at one,
            "wait" ends the answer, None is nobody.
    """

    def __init__(self, approve: Literal["terminal", "wait"] | None = "terminal") -> None:
        self._approve = approve

    def run(self, conversation: Any, stream: Stream) -> bool:
        """Wait for the end of the stream; synchronous tools run on this thread meanwhile.

        A KeyboardInterrupt, while waiting or in a tool, stops the stream and lets it clean up first.

        Raises:
            UnsupportedOperationError: on the background loop's own thread, which cannot wait for itself.
        """
        from mmsp_nb import terminal
        from mmsp_nb.tools import run_calls
        from mmsp_nb.tools.capture import run_captured

        if loop.is_current():
            raise UnsupportedOperationError(
                "ask() would wait for itself here, inside an async tool: use `await ask_async(...)`", operation="ask"
            )
        mailbox: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()

        async def there(work: Callable[[], Any]) -> Any:
            """``work``, on the thread that waits."""
            done: Future[Any] = Future()
            mailbox.put((work, done))
            return await asyncio.wrap_future(done)

        async def run_sync(call: PreparedCall) -> ToolOutcome:
            outcome: ToolOutcome = await there(lambda: run_captured(call))
            return outcome

        async def ask(calls: list[PendingCall]) -> list[Verdict | None]:
            verdicts: list[Verdict | None] = await there(lambda: terminal.decide(calls))
            return verdicts

        approve: Any = self._approve
        if approve == "terminal":
            approve = ask if terminal.can_ask() else None

        async def consume() -> None:
            async with contextlib.aclosing(
                stream(lambda calls, report: run_calls(calls, report, run_sync=run_sync), approve)
            ) as events:
                async for _ in events:
                    pass

        try:
            job = loop.submit(consume())
        except RuntimeError as error:
            raise UnsupportedOperationError(
                f"no thread to wait for ({error}): use `await ask_async(...)`", operation="ask"
            ) from None
        job.add_done_callback(lambda _: mailbox.put(None))
        try:
            with blocking():
                while True:
                    try:
                        message = mailbox.get(timeout=POLL)
                    except queue.Empty:
                        continue
                    if message is None:
                        break
                    work, done = message
                    if done.set_running_or_notify_cancel():
                        done.set_result(work())
        except BaseException:
            job.cancel()
            _wait(job)
            raise
        job.result()
        return False

    async def arun(self, conversation: Any, stream: Stream) -> bool:
        """Consume the stream here; synchronous tools run on this thread, between two steps of its loop.

        So does a question at a terminal, which holds up the loop until it is answered.
        """
        approve: Any = self._approve
        if approve == "terminal":
            from mmsp_nb import terminal

            approve = _decide_here if terminal.can_ask() else None
        async with contextlib.aclosing(stream(None, approve)) as events:
            async for _ in events:
                pass
        return False


async def _decide_here(calls: list[PendingCall]) -> list[Verdict | None]:
    from mmsp_nb import terminal

    return terminal.decide(calls)


def _wait(job: Future[Any]) -> None:
    """Wait for the end of a cancelled job, whatever it raises, but not for ever."""
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    job.add_done_callback(lambda _: done.put(None))
    deadline = time.monotonic() + CLEAN_UP
    while done.empty() and time.monotonic() < deadline:
        with contextlib.suppress(queue.Empty):
            done.get(timeout=POLL)
            break


_plain = PlainHost()
_current: Host = _plain


def register(host: Host | None) -> Host:
    """Make ``host`` the one that runs every `ask` of the process; None for the plain host. Returns the previous one."""
    global _current
    previous, _current = _current, host or _plain
    return previous


def current() -> Host:
    """The host that runs an `ask` now."""
    return _current


def cell() -> str | None:
    """The id of the notebook cell that runs on this thread, from a host that knows it (`cell_id`)."""
    known = getattr(_current, "cell_id", None)
    return None if known is None else known()


def run(conversation: Any, stream: Stream) -> bool:
    """`Host.run` of the current host."""
    return bool(_current.run(conversation, stream))


async def arun(conversation: Any, stream: Stream) -> bool:
    """`Host.arun` of the current host."""
    return bool(await _current.arun(conversation, stream))
