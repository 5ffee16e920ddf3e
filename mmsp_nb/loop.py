"""The background event loop: one daemon thread for each process, made when it is first needed.

Streams of blocking calls (`Conversation.ask`, a notebook cell) run here, so that they work whether or
not the caller's thread has a running event loop of its own, and so that one connection pool serves
them all. After a fork the child gets a loop of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["BackgroundLoop", "Job", "is_current", "submit"]

T = TypeVar("T")

CLOSE_TIMEOUT = 2.0
"""Seconds that `BackgroundLoop.close` gives running jobs to clean up."""


class Job(Future[T]):
    """A coroutine running on the background loop, as a `concurrent.futures.Future`.

    Other than with an ordinary future, `cancel` only asks: the coroutine may clean up first, and the
    job is done when it has really ended. Whatever it raised, cancellation included, is the job's
    exception and comes out of `result`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._task: asyncio.Task[None] | None = None

    def cancel(self) -> bool:
        """Ask the coroutine to stop, from any thread. Returns False when it has ended already."""
        if self.done():
            return False
        try:
            self._loop.call_soon_threadsafe(self._cancel_task)
        except RuntimeError:  # the loop is closed: nothing runs any more
            return False
        return True

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> None:
        # The context was set by call_soon_threadsafe; the task takes a copy of it.
        self._task = self._loop.create_task(self._run(coroutine))
        self._task.add_done_callback(lambda task: self._ended(coroutine))

    async def _run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        try:
            result = await coroutine
        except BaseException as error:  # a KeyboardInterrupt must reach the caller, not end the loop's thread
            self.set_exception(error)
        else:
            self.set_result(result)

    def _ended(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = None
        if not self.done():  # cancelled before its first step
            coroutine.close()
            self.set_exception(asyncio.CancelledError())


class BackgroundLoop:
    """An event loop in a daemon thread; `submit` starts it when needed. All methods are thread-safe."""

    def __init__(self, name: str = "mmsp_nb loop") -> None:
        self.name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: set[Job[Any]] = set()

    def submit(self, coroutine: Coroutine[Any, Any, T], *, context: contextvars.Context | None = None) -> Job[T]:
        """Run ``coroutine`` on the loop, in a copy of ``context`` (default: of the caller's context)."""
        try:
            loop = self._running_loop()
        except BaseException:
            coroutine.close()
            raise
        job: Job[T] = Job(loop)
        self._jobs.add(job)  # a loop holds its tasks weakly only
        job.add_done_callback(self._jobs.discard)
        loop.call_soon_threadsafe(job._start, coroutine, context=context or contextvars.copy_context())
        return job

    def is_current(self) -> bool:
        """Whether the calling thread is the loop's own thread, which must not wait for itself."""
        return self._thread is not None and threading.current_thread() is self._thread

    def close(self) -> None:
        """Cancel what runs, give it two seconds to clean up, stop the thread. A later submit starts anew."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or not thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(_stop(loop), loop)
        if thread is not threading.current_thread():
            thread.join(CLOSE_TIMEOUT + 1)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                started = threading.Event()
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop, started), name=self.name, daemon=True)
                thread.start()
                self._loop, self._thread = loop, thread
                started.wait()
            return self._loop

    def _forget(self) -> None:
        # In a forked child the thread does not exist, and the lock may be held for ever.
        self._lock = threading.Lock()
        self._loop = self._thread = None
        self._jobs = set()


def _serve(loop: asyncio.AbstractEventLoop, started: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    loop.call_soon(started.set)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _stop(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT)
    await loop.shutdown_asyncgens()
    loop.stop()


_shared = BackgroundLoop()
atexit.register(_shared.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared._forget)


def submit(coroutine: Coroutine[Any, Any, T], *, context: contextvars.Context | None = None) -> Job[T]:
    """Run ``coroutine`` on the process's background loop; see `BackgroundLoop.submit`."""
    return _shared.submit(coroutine, context=context)


def is_current() -> bool:
    """Whether the calling thread is the background loop's own thread."""
    return _shared.is_current()
