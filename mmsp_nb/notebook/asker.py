"""`Asker`: questions from a page instead of a cell. They run on the background loop, and the kernel stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from mmsp_nb import loop
from mmsp_nb.approval import approved, denied
from mmsp_nb.protocol.errors import AbortError, ConcurrentCallError
from mmsp_nb.questions import Question
from mmsp_nb.tools import PreparedCall, ToolOutcome, run_calls
from mmsp_nb.turns import Turn

__all__ = ["Asker", "run_in_threads"]


class Asker:
    """Asks for a page, one question at a time.

    Args:
        conversation: A `Conversation`.
        failed: Told what went wrong: a line, and whether the question was refused before it became a turn.
    """

    def __init__(self, conversation: Any, failed: Callable[[str, bool], None]) -> None:
        self._conversation = conversation
        self._failed = failed
        self._job: Any = None

    @property
    def busy(self) -> bool:
        """Whether something of ours runs."""
        return self._job is not None and not self._job.done()

    def ask(self, prompt: str | list[Any] | None, edited: Turn | None = None) -> None:
        """Ask ``prompt``; None goes on with what is pending; with ``edited`` in place of that turn, in a new branch."""
        self._idle()
        if edited is not None:
            self._conversation.split(edited, before=True)
        self._job = loop.submit(self._run(prompt, edited is not None))

    def decide(self, approve: bool) -> None:
        """Let the calls that wait run, or leave them undone, and go on."""
        self._idle()
        waiting = self._conversation.awaiting
        verdicts = approved(waiting, (), None) if approve else denied(waiting)
        self._job = loop.submit(self._run(None, False, verdicts))

    def do(self, work: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> None:
        """Await ``work``, which may ask a model; ``done`` gets what it returns."""
        try:
            self._idle()
        except ConcurrentCallError:
            work.close()
            raise
        self._job = loop.submit(self._work(work, done))

    def _idle(self) -> None:
        if self._conversation.running or self.busy:
            raise ConcurrentCallError("another question is being answered", client="inspector")

    async def _work(self, work: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> None:
        try:
            done(await work)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self._failed(f"{type(error).__name__}: {error}", False)

    def stop(self) -> bool:
        """Stop the answer; what has come is kept. False when it is not ours."""
        if not self.busy:
            return not self._conversation.running
        self._job.cancel()
        return True

    async def _run(self, prompt: str | list[Any] | None, branched: bool, verdicts: Any = None) -> None:
        chat = self._conversation
        count = len(chat.turns)
        try:
            question = Question(prompt, verdicts=verdicts)
            async with aclosing(chat._start(question, run_in_threads, "wait")) as events:
                async for _ in events:
                    pass
        except (asyncio.CancelledError, AbortError):
            pass
        except Exception as error:
            refused = len(chat.turns) == count
            if branched and refused:
                chat.undo()
            self._failed(f"{type(error).__name__}: {error}", refused)


async def run_in_threads(calls: list[PreparedCall], report: Callable[[dict[str, Any]], None]) -> list[ToolOutcome]:
    """Synchronous tools run in a thread, so that neither the loop nor the kernel waits for them."""
    return await run_calls(calls, report, run_sync=_in_thread)


async def _in_thread(call: PreparedCall) -> ToolOutcome:
    return await asyncio.to_thread(call.run)
