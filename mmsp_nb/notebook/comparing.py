"""``--compare A,B,C``: one question to several models, side by side as they answer; ``%mmsp keep`` takes one.

Each answers in a fork of the chat, so that the chat itself has no new turn until one is kept. Tools run in threads.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from mmsp_nb import loop
from mmsp_nb.answer import Answer
from mmsp_nb.interrupts import interruptible, once, unbroken
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.suggestions import did_you_mean

from . import resolving, tee
from .asker import run_in_threads
from .chats import in_magics
from .drawing import ending, footer, noted
from .failures import calm, stopped, summary
from .host import form, in_kernel
from .options import OptionError
from .panels import Panel, Rate
from .render import wrap
from .sanitize import clean, escape
from .secrets import mask, remember
from .stopping import Stoppable

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.turns import Turn

    from .asking import Asking

__all__ = ["Comparing", "Comparison"]

STEP = 0.05
"""Seconds between two looks at what has come."""

_GRID = "display:grid;gap:1em;grid-template-columns:repeat(auto-fit,minmax(min(100%,18em),1fr))"
_HEAD = (
    "font-weight:600;border-bottom:1px solid var(--jp-border-color1,#bdbdbd);margin-bottom:.3em;overflow-wrap:anywhere"
)


class Column:
    """One model's side."""

    def __init__(self, label: str, *, live: bool) -> None:
        self.label = label
        self.chat: Conversation | None = None
        self.error: BaseException | None = None
        self.over = False
        self.job: Any = None
        self.events: deque[dict[str, Any]] = deque()
        self.panel = Panel(label=label, now=time.monotonic(), live=live)
        self._before = 0

    def begin(self, asking: Asking, base: list[Turn]) -> None:
        """Make the fork. Whatever goes wrong with it is this column's own."""
        try:
            client = _client(self.label, asking)
            self.chat = asking.chat.fork(client=client, name=self.label)
            del self.chat.turns[len(base) :]
            asking.limit(self.chat)
            self._before = len(base)
            remember(getattr(getattr(getattr(client, "_endpoint", None), "route", None), "api_key", None))
        except (MMSPError, OptionError, TypeError) as error:
            self.error, self.over = error, True
            self.panel.output.close(time.monotonic())
            self.panel.add(in_magics(summary(error)) if isinstance(error, MMSPError) else mask(str(error)), failed=True)

    @property
    def turns(self) -> list[Turn]:
        """What came of it."""
        return [] if self.chat is None else self.chat.turns[self._before :]

    async def consume(self, prompt: Any, given: dict[str, Any]) -> None:
        assert self.chat is not None
        stream = self.chat.stream(prompt, **given, execute=run_in_threads, approve=None)
        async with aclosing(stream) as events:
            async for event in events:
                self.events.append(event)

    def advance(self, now: float, began: float) -> None:
        """Draw what has come, and the end."""
        done = self.job is not None and self.job.done()
        while self.events:
            self.panel.output.event(self.events.popleft(), now)
        if self.over:
            return
        if not done:
            self.panel.output.tick(now)
            return
        self.over = True
        error = self.job.exception()
        turn = self.turns[-1] if self.turns else None
        if error is None:
            self.panel.output.close(now, note=ending(turn), footer=footer(turn, now - began))
            if unread := noted("", turn):
                self.panel.add(unread)
            return
        self.error = error
        stop = isinstance(error, asyncio.CancelledError)
        self.panel.output.close(now, note="stopped" if stop else "")
        if not stop:
            self.panel.add(summary(error), failed=True)

    def html(self) -> str:
        head = f'<div style="{_HEAD}">{escape(clean(mask(self.label)))}</div>'
        return f'<div style="min-width:0">{head}{self.panel.html()}</div>'


class Comparison:
    """What was compared, until one of it is kept."""

    def __init__(self, asking: Asking, columns: list[Column], replaced: list[Turn]) -> None:
        self._asking, self._columns, self._replaced = asking, columns, replaced
        self._turns = list(asking.chat.turns)

    @property
    def labels(self) -> list[str]:
        """What `keep` takes."""
        return [column.label for column in self._columns]

    def keep(self, name: str | None) -> str:
        """Make that column's answer the chat's. By its model, its number from 1, or its letter. Returns the label."""
        labels = self.labels
        if name is None:
            raise OptionError(f"%mmsp keep needs one of {', '.join(labels)}")
        index = labels.index(name) if name in labels else _place(name, len(labels))
        if index is None:
            raise OptionError(f"{name!r} was not compared{did_you_mean(name, labels)}: {', '.join(labels)}")
        chat, column = self._asking.chat, self._columns[index]
        if not column.turns or column.turns[-1].state not in ("done", "partial"):
            raise OptionError(f"{column.label} has no answer that could be kept")
        if chat.turns != self._turns:
            raise OptionError("this chat went on since, so that the compared answers do not fit any more")
        from mmsp_nb.rerunning import in_place_of

        cell = self._asking.cell
        made = [turn.copy() for turn in column.turns]
        for turn in made:
            turn.cell = None if cell is None else cell.cell
        if self._replaced:
            with in_place_of(chat, self._replaced):
                chat.turns += made
        else:
            with chat._changing(made):
                chat.turns += made
        self._turns, self._replaced = list(chat.turns), made  # another one may be kept in its place
        if cell is not None:
            self._asking.chats.made.update({turn.id: (cell.text, cell.serial) for turn in made})
        answer = self._asking.namespace["_mmsp"] = Answer(made[-1])
        if answer.complete and self._asking.options.format == "code":
            self._asking.chats.offer(answer.text)
        return column.label


class Comparing:
    """The question on its way. `run` or `arun`, once."""

    def __init__(self, asking: Asking, shell: Any, *, live: bool) -> None:
        if asking.prompt is None or asking.again:
            raise OptionError("--compare needs a prompt")
        self._asking, self._shell = asking, shell
        self._live = live and in_kernel(shell)
        self._replaced = asking._replaced()
        turns = asking.chat.turns
        base = turns[: turns.index(self._replaced[0])] if self._replaced else list(turns)
        shape = form.set(asking.options.format or "markdown")
        self._columns = [Column(label, live=self._live) for label in asking.options.compare or ()]
        form.reset(shape)
        for column in self._columns:
            column.begin(asking, base)
        if all(column.error is not None for column in self._columns):
            raise OptionError("; ".join(f"{column.label}: {column.error}" for column in self._columns))
        self._id = uuid.uuid4().hex
        self._shown = False
        self._rate = Rate()
        self._began = time.monotonic()
        self._ended: type[BaseException] = KeyboardInterrupt
        self._stopping = False
        self._button = Stoppable(self.stop, self._began, offered=self._live and not asking.options.quiet)

    def stop(self) -> None:
        """End all columns as an interrupt would. From any thread; returns at once."""
        self._stopping = True

    def run(self) -> None:
        """Ask and wait by blocking."""
        self._button.way = "interrupt"
        wait = threading.Event()
        try:
            with unbroken() as heard:  # what is being drawn is drawn to its end
                try:
                    self._start()
                    while self._step():
                        with interruptible():
                            if heard.any:
                                raise KeyboardInterrupt
                            wait.wait(STEP)
                except BaseException:
                    self._cancel()
                    raise
                self._finish()
        except KeyboardInterrupt:
            self._once()
            raise stopped(time.monotonic() - self._began) from None

    async def arun(self) -> None:
        """The same, awaiting."""
        self._ended = asyncio.CancelledError
        self._start()
        try:
            while self._step():
                await asyncio.sleep(STEP)
        except BaseException as error:
            with unbroken(forget=True):
                self._cancel()
            self._once()
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                raise stopped(time.monotonic() - self._began) from None
            raise
        self._finish()

    def _start(self) -> None:
        given = self._asking._given()
        for column in self._columns:
            if column.chat is not None:
                column.job = loop.submit(column.consume(self._asking.prompt, given))

    def _step(self) -> bool:
        now = time.monotonic()
        if self._stopping:
            self._stopping = False
            raise self._ended
        self._button.tick(now)
        for column in self._columns:
            column.advance(now, self._began)
        if self._live and now >= self._rate.ready and any(column.panel.changed for column in self._columns):
            self._draw(now)
        return not all(column.over for column in self._columns)

    def _cancel(self) -> None:
        """End what runs, and show and keep what came of it."""
        self._button.end()
        self._stopping = False
        jobs = [column.job for column in self._columns if column.job is not None]
        for job in jobs:
            job.cancel()
        deadline = time.monotonic() + 1.0
        while not all(job.done() for job in jobs) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._step()
        self._draw(time.monotonic())
        self._remember()

    def _once(self) -> None:
        if in_kernel(self._shell):
            once()

    def _finish(self) -> None:
        self._button.end()
        self._draw(time.monotonic())
        self._remember()
        if all(column.error is not None for column in self._columns):
            error = self._columns[0].error
            assert error is not None
            raise calm(error)

    def _remember(self) -> None:
        asking = self._asking
        answers = {column.label: Answer(column.turns[-1]) for column in self._columns if column.turns}
        asking.chat._pay(turn for column in self._columns for turn in column.turns)
        if answers:
            asking.chats.compared[asking.chat] = Comparison(asking, self._columns, self._replaced)
        if asking.options.out:
            asking.namespace[asking.options.out] = answers

    def _draw(self, now: float) -> None:
        if self._asking.options.quiet:
            return
        parts = [column.html() for column in self._columns]
        text = "\n\n".join(f"== {clean(mask(column.label))}\n{column.panel.text()}" for column in self._columns)
        if not in_kernel(self._shell):
            with tee.suspended():
                print(text)
            return
        html = wrap(f'<div style="{_GRID}">{"".join(parts)}</div>')
        options: dict[str, Any] = {"transient": {"display_id": self._id}, "update": self._shown} if self._live else {}
        data = self._button.mark({"text/html": html, "text/plain": text})
        with tee.suspended():
            self._shell.display_pub.publish(data, {"mmsp": {"kind": "comparison"}}, **options)
        self._shown = True
        self._rate.sent(now, len(html))


def _client(label: str, asking: Asking) -> Any:
    from mmsp_nb import choosing

    if label.isidentifier() and hasattr(asking.names.get(label), "streaming_response_stateful"):
        client = resolving.client(label, asking.names)
        return client.sibling() if hasattr(client, "sibling") else choosing.stateful(client)
    return choosing.make_client(label, {"transport": getattr(asking.chat, "_transport", None)})


def _place(name: str, count: int) -> int | None:
    """The index that a number from 1 or a letter from a means; None for neither."""
    if name.isdecimal():
        index = int(name) - 1
    elif len(name) == 1 and name.isalpha():
        index = ord(name.lower()) - ord("a")
    else:
        return None
    return index if 0 <= index < count else None
