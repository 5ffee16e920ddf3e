"""``--background``: the cell ends at once, and its answer comes into its output behind it.

One thread for each chat that has something to answer: its questions go one after the other, those of different chats
at the same time. What is drawn are updates of a display that the cell has made. Synchronous tools run in that thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mmsp_nb import hosts
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError

if TYPE_CHECKING:
    from .asking import Asking

__all__ = ["Behind", "Place"]

POLL = 0.1
"""Seconds between two looks for an interrupt while a cell waits for a chat."""


class Place:
    """Where the answer of one background question is drawn: a display of the cell that asked.

    Args:
        shell: The InteractiveShell; None to draw nothing (a terminal).
        cell: The id of the cell that asks.
    """

    def __init__(self, shell: Any, cell: str | None) -> None:
        self._shell = shell
        self.cell = cell
        self._id = uuid.uuid4().hex
        self._framed: Any = None
        self._session: Any = None
        self._button: Any = None

    def open(self, line: str, stop: Callable[[], None]) -> None:
        """Make the display, in the cell, with a line in it, and beside it a button that calls ``stop``."""
        from .stopping import Stoppable

        # an interrupt of the kernel would end whatever cell runs by then
        self._button = Stoppable(stop, time.monotonic(), way="only message", offered=self._shell is not None)
        self._button.now()
        self._show(line, update=False)

    def note(self, line: str) -> None:
        """Say a last line: below the answer if there is one, else in its place."""
        self.close()
        if self._framed is not None:
            self._framed.say(line, time.monotonic())
        else:
            self._show(line, update=True)

    def stopped(self) -> None:
        """It was stopped: the answer says so itself, if there is one."""
        if self._framed is None:
            self.note("stopped")

    def run(self, conversation: Any, stream: hosts.Stream) -> bool:
        """Consume and draw one answer, on this thread."""
        if self._shell is None:
            return hosts.PlainHost("wait").run(conversation, stream)
        from .drawing import Drawing
        from .panels import Framed

        self._framed = Framed(
            lambda data: self._publish(data, update=True), label=conversation.model, now=time.monotonic()
        )
        drawing = Drawing(self._shell, conversation, stream, live=True, output=self._framed, button=self._button)
        self._session = drawing.session
        with drawing:
            drawing.session.run()
        return True

    def close(self) -> None:
        """Nothing more comes here."""
        if self._button is not None:
            self._button.end()

    def cancel(self) -> None:
        """End the running answer, also one of a client that does not look at its signal. From any thread."""
        job = None if self._session is None else self._session.job
        if job is not None:
            job.cancel()

    def _show(self, line: str, *, update: bool) -> None:
        from .render import note_html, wrap
        from .sanitize import clean

        if self._shell is not None:
            self._publish({"text/html": wrap(note_html(line)), "text/plain": clean(line)}, update=update)
        elif not update:
            print(line)

    def _publish(self, data: dict[str, str], *, update: bool) -> None:
        from . import tee

        if self._button is not None:
            data = self._button.mark(data)
        with tee.suspended():
            self._shell.display_pub.publish(
                data, {"mmsp": {"kind": "background"}}, transient={"display_id": self._id}, update=update
            )


class _Job:
    def __init__(self, asking: Asking, place: Place) -> None:
        self.asking, self.place = asking, place
        self.signal = asking.signal = AbortSignal()
        self.context = contextvars.copy_context()
        self.begun = False


class Behind:
    """The background questions of all chats. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[int, deque[_Job]] = {}  # by the identity of the chat; the first one is being answered

    def ask(self, asking: Asking, shell: Any, cell: str | None) -> bool:
        """Answer in the background; False where there are no threads, and it has to be asked in the cell.

        ``shell`` None: nothing is drawn.
        """
        if sys.platform == "emscripten":
            return False
        place = Place(shell, cell)
        job = _Job(asking, place)
        key = id(asking.chat)

        def stop() -> None:
            self._stop(job)

        ahead = self.count(asking.chat)
        if ahead:
            others = "another answer" if ahead == 1 else f"{ahead} other answers"
            place.open(f"waits for {others} of this chat; %mmsp stop", stop)
        elif shell is None:
            place.open(f"asked in the background: the answer will be in {asking.options.out or '_mmsp'}", stop)
        else:
            place.open(f"◌ {asking.chat.model} …", stop)
        with self._lock:
            line = self._lines.setdefault(key, deque())
            line.append(job)
            first = len(line) == 1
        if first:
            threading.Thread(target=self._work, args=(key,), name="mmsp_nb background", daemon=True).start()
        return True

    def count(self, chat: Any = None) -> int:
        """Questions that are being answered or wait for it, of one chat or of all."""
        with self._lock:
            return sum(len(line) for key, line in self._lines.items() if chat is None or key == id(chat))

    def stop(self, chat: Any = None) -> int:
        """Stop what is being answered and forget what waits, in one chat or in all. Returns how many it were."""
        with self._lock:
            jobs = [job for key, line in self._lines.items() if chat is None or key == id(chat) for job in line]
        for job in jobs:
            self._stop(job)
        return len(jobs)

    def _stop(self, job: _Job) -> None:
        """End one question. One that still waits says at once that it will not be asked."""
        waits = not job.begun
        job.signal.abort("stopped")
        job.place.cancel()
        if waits:
            job.place.note("not asked: stopped")

    def wait(self, chat: Any, say: Callable[[str], None] = print) -> None:
        """Block until no background question of ``chat`` is left. A KeyboardInterrupt ends the wait."""
        if self._announced(chat, say):
            while self.count(chat):
                time.sleep(POLL)

    async def wait_async(self, chat: Any, say: Callable[[str], None] = print) -> None:
        """The same, awaiting."""
        if self._announced(chat, say):
            while self.count(chat):
                await asyncio.sleep(POLL)

    def _announced(self, chat: Any, say: Callable[[str], None]) -> bool:
        if not self.count(chat):
            return False
        say("waiting for this chat's answer in the background; interrupt to ask later, %mmsp stop to end it")
        return True

    def _work(self, key: int) -> None:
        line = self._lines[key]
        while True:
            job = line[0]
            try:
                job.context.run(_answer, job)
            finally:
                with self._lock:
                    line.popleft()
                    over = not line
                    if over:  # whoever comes now begins a thread of its own
                        del self._lines[key]
            if over:
                return


def _answer(job: _Job) -> None:
    from .failures import summary
    from .host import elsewhere

    job.begun = True
    if job.signal.aborted:
        return
    elsewhere.set(job.place)
    try:
        job.asking.run()
    except (AbortError, asyncio.CancelledError):
        job.place.stopped()
    except BaseException as error:  # nobody is there to see it but the output
        job.place.note(summary(error))
    finally:
        job.place.close()
