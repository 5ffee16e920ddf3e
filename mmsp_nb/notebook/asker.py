"""`Asker`: questions from a page instead of a cell. They run on the background loop, and the kernel stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from mmsp_nb import loop
from mmsp_nb.protocol.errors import AbortError, ConcurrentCallError
from mmsp_nb.tools import PreparedCall, ToolOutcome, run_calls
from mmsp_nb.turns import Turn

__all__ = ["Asker", "run_in_threads"]


class Asker:
    """Asks for a page, one question at a time. What goes wrong is told with ``note``."""

    def __init__(self, conversation: Any, note: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._note = note
        self._job: Any = None

    def ask(self, prompt: str | None, edited: Turn | None = None) -> None:
        """Ask ``prompt``; None goes on with what is pending; with ``edited`` in place of that turn, in a new branch."""
        if self._conversation.running:
            raise ConcurrentCallError("another question is being answered", client="inspector")
        if edited is not None:
            self._conversation.split(edited, before=True)
        self._job = loop.submit(self._run(prompt, edited is not None))

    def stop(self) -> bool:
        """Stop the answer; what has come is kept. False when it is not ours."""
        if self._job is None or self._job.done():
            return not self._conversation.running
        self._job.cancel()
        return True

    async def _run(self, prompt: str | None, branched: bool) -> None:
        chat = self._conversation
        count = len(chat.turns)
        try:
            async with aclosing(chat.stream(prompt, execute=run_in_threads, approve="wait")) as events:
                async for _ in events:
                    pass
        except (asyncio.CancelledError, AbortError):
            pass
        except Exception as error:
            self._note(f"{type(error).__name__}: {error}")
            if branched and len(chat.turns) == count:
                chat.undo()


async def run_in_threads(calls: list[PreparedCall], report: Callable[[dict[str, Any]], None]) -> list[ToolOutcome]:
    """Synchronous tools run in a thread, so that neither the loop nor the kernel waits for them."""
    return await run_calls(calls, report, run_sync=_in_thread)


async def _in_thread(call: PreparedCall) -> ToolOutcome:
    return await asyncio.to_thread(call.run)
