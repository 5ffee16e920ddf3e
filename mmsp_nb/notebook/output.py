"""The live output of one answer: agent events in, display messages out.

`LiveOutput` decides what stands on the screen, in which order, and how often it is drawn; what the parts look like is
in `stretch` and `regions`. It sends nothing but displays and updates of its own displays: no clear_output, no widget.
It knows no thread and no IPython, is driven by `bridge`, and takes its clock and its port from outside.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from .pacing import SPARE, Pacer
from .regions import Calls, Picture, Region, Thinking, Waiting
from .render import CallView, note_html
from .stretch import Message, Stretch

__all__ = ["LiveOutput", "Port"]

Port = Callable[[Message], None]
"""Sends one display message to the front end."""

_AHEAD = ("preparing", "waiting")

APPEARS = 0.25
"""Seconds of silence after which the waiting line is shown."""

ROOM = 44_000
"""Bytes that are waited for before the next part of a complete text is drawn."""

MARGIN = 1.05
"""What the rest of a text may cost, by what it is thought to cost."""

STUCK = 2.0
"""Seconds after which a complete text that could not be cut any more is drawn as it is."""


class LiveOutput:
    """What one answer draws.

    Args:
        port: Where messages go.
        label: What is waited for, in the waiting line.
        live: False to send final outputs only, without anything that differs from run to run.
        now: The time at which the request was made.
        stretch: Makes the stretches of text, given what makes display ids; for other forms than Markdown.
        clock: Says when a message has gone out, by the same clock: on a busy machine that may be long after the time
            at which it was decided, and the limits are those of what is sent.
    """

    def __init__(
        self,
        port: Port,
        *,
        label: str = "",
        live: bool = True,
        now: float = 0.0,
        stretch: Any = Stretch,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._port = port
        self._label = label
        self.live = live
        self.holds = not live
        self._now = self._began = now
        self._clock: Callable[[], float] = clock or (lambda: self._now)
        self._pacer = Pacer()
        self._stretch: Callable[[Any], Stretch] = stretch
        self._text: Stretch | None = None
        self._region: Region | None = None  # what stands last on the screen, if it is no text
        self._waiting_from: float | None = now
        self._unfinished: list[Calls] = []
        self._views: dict[int, tuple[CallView, Calls]] = {}  # by the identity of the call's item
        self._streamed: list[CallView] = []  # calls of this response, in the order in which they came
        self._called_items: list[dict[str, Any]] = []
        self._run = 0  # characters of the running item
        self._total = 0
        self._ended = now
        self.written = False

    # --- events -----------------------------------------------------------------------------------------------------

    def event(self, event: dict[str, Any], now: float) -> None:
        """Take in one event of the agent."""
        self._now = now
        kind = event["type"]
        if kind == "event":
            for item in event["event"]["content_items"]:
                self._item(item)
        elif kind == "turn_start":
            self._streamed, self._called_items = [], []
            self._views.clear()
            if self._waiting_from is None:
                self._waiting_from = now
        elif kind == "turn_end":
            self._called(event["calls"])
        elif kind == "end":
            for call in event.get("held", ()):
                view = self._view(call)
                view.state, view.arguments = "held", call["arguments"]
                self._views[id(call)][1].dirty = True
        elif kind == "tool_start":
            self.call_started(event["call"], now)
        elif kind == "tool_end":
            self.call_ended(event["outcome"], now)

    def _item(self, item: dict[str, Any]) -> None:
        kind, _, phase = item["type"].partition(".")
        if kind in ("text", "thinking"):
            text = item[kind]
            if phase == "done":  # an MMSP server may send no deltas
                text, self._run = text[self._run :], 0
            else:
                self._run += len(text)
            if text:
                self._say(kind, text)
        elif kind == "tool_call":
            self._tool_call(item, phase)
        elif kind in ("inline_data", "inline_thinking") and phase == "done":
            self._begin(Picture(self._new_id, item))
            self._draw(self._region, final=True)
            self._region = None

    def _say(self, kind: str, text: str) -> None:
        self._waiting_from = None
        self._total += len(text)
        if kind == "text":
            if self._text is None:
                self._text = self._stretch(self._new_id)
                self._begin(self._text)
            self._text.add(text)
            return
        if not isinstance(self._region, Thinking):
            self._begin(Thinking(self._new_id, self._now, times=self.live))
        assert isinstance(self._region, Thinking)
        self._region.add(text)

    def _tool_call(self, item: dict[str, Any], phase: str) -> None:
        self._waiting_from = None
        if phase == "delta" and item.get("name"):
            self._add_call(CallView(item["name"]))
        elif phase == "delta" and self._streamed:
            self._streamed[-1].written += len(item.get("arguments") or "")
        elif phase == "done":
            if not self._streamed or not self._streamed[-1].open or self._streamed[-1].state != "preparing":
                self._add_call(CallView(item["name"]))
            self._streamed[-1].arguments, self._streamed[-1].state = item["arguments"], "waiting"
        if self._unfinished:
            self._unfinished[-1].dirty = True

    def _add_call(self, view: CallView) -> None:
        self._streamed.append(view)
        self._calls().lines.append(view)

    def _calls(self) -> Calls:
        """The region that the next line of a call goes to."""
        region = self._region
        if not isinstance(region, Calls) or region.closed:
            region = Calls(self._new_id, times=self.live)
            self._begin(region)
            self._unfinished.append(region)
        return region

    # --- tools ------------------------------------------------------------------------------------------------------

    def _called(self, calls: Iterable[dict[str, Any]]) -> None:
        """The response is over, and these are its calls: the same ones as streamed, as other objects."""
        self._called_items = list(calls)  # kept, so that no other object gets the identity of one of them
        for call, view in zip(self._called_items, self._streamed, strict=False):
            owner = next((region for region in self._unfinished if view in region.lines), None)
            if owner is not None:
                self._views[id(call)] = view, owner

    def call_started(self, call: dict[str, Any], now: float) -> None:
        """A tool is about to run. Its line is on the screen when this returns, unless nobody watches."""
        self._now = now
        view = self._view(call)
        if view.state not in _AHEAD:
            return
        region = self._views[id(call)][1]
        if region is not self._region:  # something else came after it: its output must not stand apart from it
            self._move([view], region)
            region = self._views[id(call)][1]
        view.state, view.since, view.arguments = "running", now, call["arguments"]
        region.dirty = True
        if self.live and self._pacer.ready_at(now, first=True) <= now:
            self._draw(region)

    def output_coming(self, call: dict[str, Any]) -> None:
        """The tool is about to show something: its line has to stand above it, and those of later calls below."""
        self._view(call)
        region = self._views[id(call)][1]
        later = [line for line in region.lines if line.state in _AHEAD]
        region.closed = True
        if self._region is region:
            self._region = None
        self._move(later, region)
        if self.live and (region.dirty or not region.on_screen):
            self._draw(region)

    def _move(self, lines: list[CallView], region: Calls) -> None:
        """Put the lines of calls that have not started yet into the region that stands last."""
        if not lines:
            return
        region.lines = [line for line in region.lines if line not in lines]
        region.dirty = region.closed = True
        target = self._calls()
        target.lines += lines
        for key, (view, _) in self._views.items():
            if view in lines:
                self._views[key] = view, target

    def call_ended(self, outcome: Any, now: float, *, showed: bool = False) -> None:
        """A tool has ended. ``showed``: its pictures are on the screen already."""
        self._now = now
        view = self._view(outcome.call)
        if not view.open:
            return
        view.ended(outcome, images=not showed)
        self._views[id(outcome.call)][1].dirty = True
        if not any(region.open for region in self._unfinished):
            self._waiting_from = now

    def settled(self, call: dict[str, Any]) -> bool:
        """Whether the line of the call is final and on the screen."""
        self._view(call)
        return self._views[id(call)][1] not in self._unfinished

    def settle(self) -> None:
        """Draw, once and for all, the calls that have ended: what they held back comes after their lines."""
        for region in [region for region in self._unfinished if not region.open]:
            if region.dirty or not region.on_screen:
                self._draw(region, final=True)
            self._unfinished.remove(region)
            if self._region is region:
                self._region = None

    def _view(self, call: dict[str, Any]) -> CallView:
        if id(call) not in self._views:
            view = CallView(call["name"], call["arguments"])
            region = self._calls()
            region.lines.append(view)
            self._views[id(call)] = view, region
        return self._views[id(call)][0]

    # --- drawing ----------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something has come that is not drawn yet; more of it can wait until `due`."""
        regions: list[Any] = [*self._unfinished, self._region, self._text]
        return any(region is not None and region.dirty for region in regions)

    @property
    def behind(self) -> bool:
        """Whether a complete answer has more left than fits into the last second: `tick` draws it as it is `due`.

        Ask only when nothing more comes.
        """
        text = self._text
        if not self.live or text is None:
            return False
        if not text.whole:
            text.whole = text.dirty = True
            self._ended = self._now
        messages, room = self._pacer.left(self._now)
        if messages and MARGIN * text.rest <= room + SPARE:
            return False
        if text.unfrozen and messages > 2 and room >= ROOM:  # a part, its end, and the last message
            text.dirty = True
        return self._now - max(text.cut_at, self._ended) < STUCK

    def due(self) -> float | None:
        """When `tick` has something to do, as a time of the clock; None when only an event can bring work."""
        if not self.live:
            return None
        times = [at for at, _ in self._work()]
        return min(times) if times else None

    def tick(self, now: float) -> None:
        """Draw what is due."""
        self._now = now
        if not self.live:
            return
        for at, target in sorted(self._work(), key=lambda work: work[0]):
            if at > now:
                break
            if target is None:
                self._wait()
            else:
                self._draw(target)

    def _work(self) -> list[tuple[float, Any]]:
        """What could be drawn, and when; None stands for a waiting line that is not there yet."""
        work: list[tuple[float, Any]] = []
        regions: list[Any] = [*self._unfinished]
        if self._text is not None:
            regions.append(self._text)
        elif self._region is not None and self._region not in regions:
            regions.append(self._region)
        for region in regions:
            slow = self._total > 100_000 or not isinstance(region, Stretch)
            if region.dirty:
                at = self._pacer.ready_at(self._now, size=region.size, first=not region.drawn, slow=slow)
                work.append((at, region))
            elif isinstance(region, Region) and (tick := region.next_tick()) is not None:
                work.append((max(tick, self._pacer.ready_at(self._now)), region))
        if self._waiting_from is not None and not isinstance(self._region, Waiting):
            work.append((max(self._waiting_from + APPEARS, self._pacer.ready_at(self._now)), None))
        return work

    def _wait(self) -> None:
        since = self._waiting_from if self._waiting_from is not None else self._now
        self._begin(Waiting(self._new_id, self._label, since, self._now))
        self._draw(self._region)

    def _begin(self, target: Region | Stretch) -> None:
        """Something new stands last. What was last is finished; a waiting line gives its place away."""
        before = self._region
        if self._text is not None and self._text is not target:
            self._finish_text()
        if isinstance(before, Waiting):
            target.display_id, target.on_screen = before.display_id, before.on_screen
        elif isinstance(before, Thinking):
            self._draw(before, final=True)
        self.settle()
        self._region = target if isinstance(target, Region) else None
        self._waiting_from = None

    def _finish_text(self, extra: str = "") -> bool:
        text, self._text = self._text, None
        if text is None:
            return False
        messages = text.finish(extra)
        for each in messages:
            self._send(each)
        return bool(messages)

    def _draw(self, target: Any, *, final: bool = False) -> None:
        if isinstance(target, Stretch):
            messages = target.draw(self._now, *self._pacer.left(self._now))
        else:
            messages = target.draw(self._now, final=final)
        for each in messages:
            self._send(each)

    def _send(self, message: Message) -> None:
        self.written = True
        self._port(message)
        self._pacer.sent(self._clock(), message.size, drawn=self._now)

    def _new_id(self) -> str | None:
        return uuid.uuid4().hex if self.live else None

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self, now: float, *, note: str = "", footer: str = "") -> None:
        """Finish everything. ``note`` says why it ended early, ``footer`` (only when live) what it took."""
        self._now = now
        self._waiting_from = None
        for region in self._unfinished:
            for view in region.lines:
                if view.open:
                    view.state, region.dirty = "interrupted", True
        line = " · ".join(part for part in (note, footer if self.live else "") if part)
        extra = note_html(line, spoken=True) if line else ""
        if self._text is not None and self._finish_text(extra):
            line = ""
        if isinstance(self._region, Thinking):
            self._draw(self._region, final=True)
            self._region = None
        self.settle()
        waiting = self._region if isinstance(self._region, Waiting) else None
        if line or (waiting is not None and waiting.on_screen):
            last = waiting or Waiting(self._new_id, "", now, now)
            last.note = line
            self._draw(last, final=True)
        self._region = None
