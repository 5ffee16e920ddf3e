"""Between the loop thread, where a stream runs, and the cell's thread, where it is drawn and where tools run.

The job on the loop puts what happens into a mailbox. The cell's thread empties it, in one of two ways over the same
code: by awaiting, when the cell itself is a coroutine (widgets live then), or by blocking with a short time limit
(Windows cannot interrupt a bare lock). Where there are no threads (Pyodide), the job runs on the cell's own loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

from mmsp_nb import loop
from mmsp_nb.approval import PendingCall
from mmsp_nb.hosts import Stream
from mmsp_nb.interrupts import Heard, interrupt_main_thread, interruptible, listening, unbroken
from mmsp_nb.tools import PreparedCall, ToolOutcome, Verdict, run_calls, tables

from .failures import remember_for_debugger
from .richness import rich_html
from .stopping import Stoppable
from .tee import Sink, recording

__all__ = ["Drawing", "Mailbox", "Session"]

POLL = 0.1
"""Seconds that a blocking wait lasts at most."""

STOPPING = 0.12
"""Seconds that an interrupted job has to clean up before the cell ends; it goes on cleaning up after that."""

IDLE = 0.05
"""Seconds that an awaiting wait lasts at most: a kernel's interrupt does not wake its own loop."""

TURNS = 4
"""Turns of its loop that a kernel takes to cancel an interrupted cell: nothing is begun before."""

THREADS = sys.platform != "emscripten"


class Drawing(Protocol):
    """What a session draws with: `LiveOutput`, or `PlainOutput` in a terminal. Times are of `time.monotonic`."""

    holds: bool
    """Whether what tools show waits until their lines are final."""

    @property
    def busy(self) -> bool: ...
    @property
    def behind(self) -> bool: ...
    def event(self, event: dict[str, Any], now: float) -> None: ...
    def call_started(self, call: dict[str, Any], now: float) -> None: ...
    def output_coming(self, call: dict[str, Any]) -> None: ...
    def call_ended(self, outcome: ToolOutcome, now: float, *, showed: bool = False) -> None: ...
    def settle(self) -> None: ...
    def settled(self, call: dict[str, Any]) -> bool: ...
    def due(self) -> float | None: ...
    def tick(self, now: float) -> None: ...


class Mailbox:
    """Work for one consumer, from any thread. Urgent items wake it, others do so only while it is not drowsy.

    A consumer is ``drowsy`` when it will look by itself in a moment: a thousand deltas a second then cost
    a handful of wake-ups.

    It has no lock: an interrupt of the consumer can come between any two instructions, and an Event or a Condition
    would stay locked for ever after one in the wrong place, and stop the loop thread at its next item.
    """

    def __init__(self) -> None:
        self.drowsy = False
        self._items: deque[Callable[[], None]] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._rung = False
        self._wake: Callable[[], object] | None = None

    def put(self, item: Callable[[], None], *, urgent: bool = True) -> None:
        """Add work. Thread-safe."""
        self._items.append(item)
        # judged after the item is there: a consumer that stops being drowsy looks once more before it waits
        if (urgent or not self.drowsy) and not self._rung:
            self._rung = True
            self._bell.put(None)
            wake = self._wake
            if wake is not None:
                with contextlib.suppress(RuntimeError):  # the cell's loop is closed: nobody waits
                    wake()

    def take(self) -> Iterator[Callable[[], None]]:
        """All work there is."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._bell.get_nowait()
        self._rung = False  # after that: what is added in between is among the items below
        while self._items:
            yield self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)

    def wait(self, timeout: float) -> None:
        """Block until something urgent has come, or ``timeout`` seconds."""
        if self._rung:  # also by a ring that an interrupted wait has taken
            return
        with contextlib.suppress(queue.Empty):
            self._bell.get(timeout=timeout)

    async def wait_async(self, timeout: float) -> None:
        """The same, awaiting."""
        running = asyncio.get_running_loop()
        woken = running.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self._wake = lambda: running.call_soon_threadsafe(wake)
        try:
            if not self._rung:
                # not wait_for, which before Python 3.12 can lose a cancellation, and with it an interrupt
                await asyncio.wait([woken], timeout=timeout)
        finally:
            self._wake = None
            woken.cancel()


class Session:
    """One stream: its job, its mailbox, its output. Use `run` or `arun`, once."""

    def __init__(
        self,
        stream: Stream,
        output: Drawing,
        shell: Any = None,
        *,
        approve: Any = None,
        button: Stoppable | None = None,
    ) -> None:
        self._stream = stream
        self._approve = self._decide if approve == "terminal" else approve
        self._output = output
        self._shell = shell
        self._button = button or Stoppable(self.stop, time.monotonic(), offered=False)
        self._mailbox = Mailbox()
        self._job: Any = None
        self._over = False
        self._stopped = False
        self._interrupt: type[BaseException] = KeyboardInterrupt
        self._heard = Heard()
        self._tool_on: threading.Thread | None = None
        self._ready: dict[int, Future[None]] = {}
        self._held: list[tuple[dict[str, Any], Sink]] = []

    def run(self) -> None:
        """Wait by blocking. Raises what the stream raises; a KeyboardInterrupt stops the stream first."""
        if self._button.way == "message":  # while the cell blocks no message is heard
            self._button.way = "interrupt"
        with unbroken() as self._heard:  # what is being drawn is drawn to its end
            try:
                self._job = loop.submit(self._consume())
                self._job.add_done_callback(self._ended)
                for pause in self._steps():
                    with interruptible():
                        if self._heard.any:
                            raise KeyboardInterrupt
                        self._mailbox.wait(min(pause, POLL))
            except BaseException:
                self._stop()
                raise
        self._job.result()

    async def arun(self) -> None:
        """Wait by awaiting. A cancellation of the cell, which is how a kernel interrupts it, stops the stream first."""
        self._interrupt = asyncio.CancelledError
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if THREADS:
            self._job = loop.submit(self._consume())
        else:
            self._job = asyncio.ensure_future(self._consume())
        self._job.add_done_callback(self._ended)
        try:
            with listening() as self._heard:
                await self._wait()
        except BaseException:
            if THREADS:
                with unbroken(forget=True):
                    self._stop()
            else:
                self._job.cancel()
                await asyncio.wait([self._job], timeout=STOPPING)
            raise
        self._job.result()

    async def _wait(self) -> None:
        try:
            for pause in self._steps():
                if self._heard.any:
                    break
                await self._mailbox.wait_async(pause)
            if not self._heard.any:
                return
        except KeyboardInterrupt:  # in a tool; out of a task of its own it would end the kernel
            if not self._heard.pass_on():
                raise
        await asyncio.sleep(IDLE)  # here the cell's task is cancelled
        raise asyncio.CancelledError

    # --- on the loop ------------------------------------------------------------------------------------------------

    async def _consume(self) -> None:
        async with contextlib.aclosing(self._stream(self._execute, self._approve)) as events:
            async for event in events:
                self._mailbox.put(functools.partial(self._event, event), urgent=event["type"] != "event")

    async def _execute(self, calls: list[PreparedCall], report: Callable[[dict[str, Any]], None]) -> list[ToolOutcome]:
        for call in calls:
            if call.on_loop:  # before a synchronous tool keeps the cell's thread busy
                ready = self._ready[id(call)] = Future()
                self._mailbox.put(functools.partial(self._announce, call, ready))
        return await run_calls(calls, report, run_sync=self._run_there, run_async=self._run_here)

    async def _run_there(self, call: PreparedCall) -> ToolOutcome:
        """A synchronous tool: the cell's thread runs it."""
        done: Future[ToolOutcome] = Future()
        self._mailbox.put(lambda: self._run_tool(call, done))
        return await asyncio.wrap_future(done)

    async def _decide(self, calls: list[PendingCall]) -> list[Verdict | None]:
        """Ask at the terminal, on the cell's thread."""
        done: Future[list[Verdict | None]] = Future()

        def ask() -> None:
            from mmsp_nb import terminal

            with interruptible():
                if not self._ending and done.set_running_or_notify_cancel():
                    done.set_result(terminal.decide(calls))

        self._mailbox.put(ask)
        return await asyncio.wrap_future(done)

    async def _run_here(self, call: PreparedCall) -> ToolOutcome:
        """An asynchronous tool: runs here, once its line is on the screen."""
        await asyncio.wrap_future(self._ready.pop(id(call)))
        sink = self._sink(call, lambda: self._mailbox.put(lambda: self._output.output_coming(call.call)))
        with recording(self._shell, sink):
            outcome = await call.arun()
        sink.amend(outcome)
        self._mailbox.put(lambda: self._finished(outcome, sink))
        return outcome

    # --- on the cell's thread ---------------------------------------------------------------------------------------

    def _steps(self) -> Iterator[float]:
        """Do what there is to do, then say how long to wait for more. Ends when the stream has ended."""
        while True:
            for work in self._mailbox.take():
                work()
            if self._over and not self._output.behind:
                return
            now = time.monotonic()
            self._output.tick(now)
            self._button.tick(now)
            due = self._output.due()
            self._mailbox.drowsy = due is not None and self._output.busy
            if len(self._mailbox) and not self._mailbox.drowsy:
                continue
            yield IDLE if due is None else min(max(due - now, 0.001), IDLE)

    def _event(self, event: dict[str, Any]) -> None:
        self._output.event(event, time.monotonic())

    def _ended(self, _: Any) -> None:
        def over() -> None:
            self._over = True

        self._mailbox.put(over)

    def _sink(self, call: PreparedCall, first: Callable[[], None]) -> Sink:
        sink = Sink(first, hold=self._output.holds)
        if sink.hold:
            self._held.append((call.call, sink))
        return sink

    def _run_tool(self, call: PreparedCall, done: Future[ToolOutcome]) -> None:
        if self._ending or not done.set_running_or_notify_cancel():
            return
        sink = self._sink(call, lambda: self._output.output_coming(call.call))
        self._button.busy(time.monotonic())
        self._tool_on = threading.current_thread()
        try:
            with interruptible():
                if self._heard.any:  # it came before this point; from here on one raises by itself
                    return
                self._output.call_started(call.call, time.monotonic())
                with recording(self._shell, sink):
                    outcome = call.run()
        except BaseException:
            sink.release()
            raise
        finally:
            self._tool_on = None
            self._button.busy(time.monotonic(), -1)
        sink.amend(outcome)
        self._finished(outcome, sink)
        done.set_result(outcome)

    @property
    def _ending(self) -> bool:
        """Whether nothing new shall begin."""
        return self._stopped or self._heard.any

    def _announce(self, call: PreparedCall, ready: Future[None]) -> None:
        if not self._stopped:
            self._output.call_started(call.call, time.monotonic())
        if ready.set_running_or_notify_cancel():
            ready.set_result(None)

    def _finished(self, outcome: ToolOutcome, sink: Sink) -> None:
        if outcome.status == "error" and outcome.error is not None:
            remember_for_debugger(self._shell, outcome.error)
        elif outcome.ok and not self._ending and not outcome.images and not tables.text(outcome.value):
            with interruptible():  # the object's own methods may take long
                outcome.html = rich_html(self._shell, outcome.value)
        self._output.call_ended(outcome, time.monotonic(), showed=bool(sink.images))
        if not sink.hold:
            return
        if sink.wrote:
            self._output.output_coming(outcome.call)
        self._output.settle()
        for call, held in list(self._held):
            if self._output.settled(call):
                self._held.remove((call, held))
                held.release()

    @property
    def job(self) -> Any:
        """The job on the loop; None before it has begun. To cancel it ends the answer."""
        return self._job

    def stop(self) -> None:
        """End the answer as an interrupt of its cell would. From any thread; returns at once."""
        self._mailbox.put(self._asked_to_stop)
        if self._tool_on is threading.main_thread():
            interrupt_main_thread()

    def _asked_to_stop(self) -> None:
        if not (self._stopped or self._over):
            raise self._interrupt

    def release(self) -> None:
        """Show what is still held back."""
        for _, held in self._held:
            held.release()
        self._held.clear()

    def _stop(self) -> None:
        """End the job and take in what still came of it. Never waits longer than `STOPPING`."""
        self._stopped = True
        if self._job is None:
            return
        self._job.cancel()
        deadline = time.monotonic() + STOPPING
        while not self._over and time.monotonic() < deadline:
            self._mailbox.wait(0.01)
            for work in self._mailbox.take():
                work()
