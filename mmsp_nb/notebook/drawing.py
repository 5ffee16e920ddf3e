"""One answer on its way into a cell: its session, its output, and how that ends."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from mmsp_nb import hosts, terminal
from mmsp_nb.interrupts import once, unbroken
from mmsp_nb.keyless import said
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import AbortError

from . import buttons, tee
from .bridge import THREADS, Session
from .deciding import panel
from .failures import calm, stopped
from .host import connect_tools, form, in_kernel
from .markdown import prepare
from .output import LiveOutput
from .plain import PlainOutput
from .render import seconds, usage_text
from .secrets import remember
from .stopping import Stoppable
from .stretch import Message, Stretch

__all__ = ["Drawing", "approval", "ending", "footer", "noted"]

_LIMITS = {"max_turns": "requests", "max_calls": "tool calls", "max_cost": "cost"}


class Drawing:
    """A context manager around the consumption of ``session``: whatever happens there, the output is finished.

    An interrupt becomes a KeyboardInterrupt with a short traceback, an error is shown in one line.
    """

    def __init__(
        self,
        shell: Any,
        conversation: Any,
        stream: hosts.Stream,
        *,
        live: bool,
        output: Any = None,
        button: Stoppable | None = None,
    ) -> None:
        connect_tools(shell)
        self._shell = shell
        self._began = time.monotonic()
        self._conversation = conversation
        self._before = conversation.turns[-1] if conversation.turns else None
        endpoint = getattr(conversation.client, "_endpoint", None)
        remember(getattr(getattr(endpoint, "route", None), "api_key", None))
        self._live = live
        redraws = live and not buttons.pressed.get()
        self._output: LiveOutput | PlainOutput
        if output is not None:
            self._output = output
        elif in_kernel(shell):
            stretch = stretch_of(form.get())
            self._output = LiveOutput(
                self._display,
                label=conversation.model,
                live=redraws,
                now=self._began,
                stretch=stretch,
                clock=time.monotonic,
            )
        else:
            dim = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            self._output = PlainOutput(_write, live=live, dim=dim, form=form.get())
        offered = redraws and output is None and in_kernel(shell)
        self._button = button or Stoppable(lambda: self.session.stop(), self._began, offered=offered)
        self.session = Session(stream, self._output, shell, approve=approval(shell, live), button=self._button)

    def __enter__(self) -> Drawing:
        if self._output.live and isinstance(self._output, LiveOutput) and THREADS:
            # while the request is on its way
            threading.Thread(target=prepare, name="mmsp-prepare", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        elapsed = time.monotonic() - self._began
        interrupted = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
        if interrupted and in_kernel(self._shell):
            once()
        try:
            with unbroken(forget=interrupted):
                self._button.end()
                self._finish(error, elapsed)
        except KeyboardInterrupt:
            raise stopped(elapsed) from None

    def _finish(self, error: BaseException | None, elapsed: float) -> None:
        if error is None:
            turn = self._turn()
            self._close(ending(turn), footer(turn, elapsed))
            if turn is not None and turn.waiting:
                self._show_waiting(turn)
        elif isinstance(error, KeyboardInterrupt | asyncio.CancelledError | AbortError):
            self._close(
                f"stopped after {seconds(elapsed)}{_estimate(self._turn())}" if self._output.live else "stopped"
            )
            if isinstance(error, AbortError):
                calm(error, where=True)
                return
            if isinstance(error, KeyboardInterrupt):
                raise stopped(elapsed) from None
            stopped(elapsed, error)  # a task was cancelled, and stays so
        else:
            turn = self._turn()
            if turn is not None and turn.state == "partial":
                note = "failed; what had come so far is kept"
            else:  # a retry that was announced may still stand there, and needs an end
                note = "failed" if self._output.written or self._output.busy else ""
            self._close(note)
            calm(error, where=True)

    def _close(self, note: str, footer: str = "") -> None:
        self._output.close(time.monotonic(), note=noted(note, self._turn(), self._before), footer=footer)
        self.session.release()

    def _show_waiting(self, turn: Any) -> None:
        shown = panel(turn.waiting)
        if not in_kernel(self._shell):
            _write(shown["text/plain"] + "\n")
            return
        with tee.suspended():
            self._shell.display_pub.publish(shown, {"mmsp": {"kind": "approval"}})
            if self._live and threading.current_thread() is threading.main_thread():
                buttons.show(self._shell, turn, self._conversation)

    def _turn(self) -> Any:
        turns = self._conversation.turns
        return turns[-1] if turns and turns[-1] is not self._before else None

    def _display(self, message: Message) -> None:
        data = self._button.mark(message.data) if _goes_on(message) else message.data
        options: dict[str, Any] = {"update": True} if message.update else {}
        if message.display_id is not None:
            options["transient"] = {"display_id": message.display_id}
        with tee.suspended():
            self._shell.display_pub.publish(data, message.metadata, **options)


def _goes_on(message: Message) -> bool:
    """Whether another message takes the place of this one: what is final also says itself as text."""
    waits = message.metadata["mmsp"]["kind"] == "status" and message.data["text/plain"].startswith("◌")
    return message.display_id is not None and (waits or "text/plain" not in message.data)


def approval(shell: Any, live: bool) -> str | None:
    """Who decides about calls that need a word: the next cell, the person at the terminal, or nobody."""
    if in_kernel(shell):
        return "wait" if live else None
    return "terminal" if terminal.can_ask() else None


def stretch_of(name: str) -> Any:
    """What makes the stretches of text of an answer in that format."""
    if name == "markdown":
        return Stretch
    from .formats import Shaped

    return functools.partial(Shaped, form=name)


def _write(text: str) -> None:
    with tee.suspended():
        sys.stdout.write(text)
        sys.stdout.flush()


def footer(turn: Any, elapsed: float) -> str:
    """``model · 120 → 80 tokens · $0.0012 · 2.1 s``."""
    if turn is None:
        return ""
    counted = tokens.totals(turn.usage) if turn.usage else None
    spent = f"{counted.input:,} → {counted.output:,} tokens" if counted and counted.total else None
    return usage_text((turn.model, spent, _price(turn.cost), seconds(elapsed)))


def _estimate(turn: Any) -> str:
    """What was used until then, where that is known only about."""
    counted = tokens.totals(turn.usage) if turn is not None and turn.estimated else None
    return f" · about {counted.input:,} → {counted.output:,} tokens" if counted and counted.total else ""


def _price(cost: Any) -> str | None:
    if cost is None:
        return None
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"


def noted(note: str, turn: Any, before: Any = None) -> str:
    """``note``, and which keys the model did not read, and how it would; ``before`` is the turn before."""
    if turn is None or not turn.masked:
        return note
    unread = said(turn.masked, None if before is None else before.masked)
    more = unread and f"{unread} (%config MMSPMagics.mask_keys = False sends keys)"
    return " · ".join(part for part in (note, more) if part)


def ending(turn: Any) -> str:
    """Why an answer is not complete, if it is not."""
    if turn is None:
        return ""
    if turn.reason in _LIMITS:
        return f"stopped at the limit of {_LIMITS[turn.reason]}; %mmsp continue goes on"
    return "cut off at the limit of tokens" if turn.finish_reason == "length" else ""
