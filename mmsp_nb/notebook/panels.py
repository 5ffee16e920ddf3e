"""Answers inside one display: `Panel` gathers what a `LiveOutput` draws, `Framed` sends it, an update at a time.

For what is drawn when its cell has ended (an update finds its display wherever it is, a new display does not), and
for several answers beside each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .output import LiveOutput
from .render import image_html, note_html, wrap
from .sanitize import clean
from .secrets import mask
from .stretch import Message

__all__ = ["Framed", "Panel", "Rate"]

GAP = 0.11
BYTES = 100_000
"""Bytes a second that one display is sent at most."""


class Panel:
    """What one answer draws, as one piece of HTML and of text. ``changed`` until both were asked for."""

    def __init__(self, *, label: str, now: float, live: bool = True) -> None:
        from .drawing import stretch_of
        from .host import form

        self._parts: dict[Any, tuple[str, str]] = {}
        self._numbers = itertools.count()
        self.changed = True
        self.output = LiveOutput(self._take, label=label, live=live, now=now, stretch=stretch_of(form.get()))

    def _take(self, message: Message) -> None:
        key = message.display_id if message.display_id is not None else next(self._numbers)
        data = message.data
        html = data.get("text/html", "")
        if not html:
            html = next(
                (
                    image_html(f"data:{kind};base64,{value}")
                    for kind, value in data.items()
                    if kind.startswith("image/")
                ),
                "",
            )
        self._parts[key] = html, data.get("text/plain", "")
        self.changed = True

    def add(self, line: str, *, failed: bool = False) -> None:
        """Put a line of ours below it; with ``failed``, one that says what went wrong."""
        line = f"✗ {line}" if failed else line
        self._parts[next(self._numbers)] = wrap(note_html(line, calm=not failed, spoken=True)), clean(mask(line))
        self.changed = True

    def html(self) -> str:
        """All of it."""
        self.changed = False
        return "".join(html for html, _ in self._parts.values())

    def text(self) -> str:
        return "\n".join(text for _, text in self._parts.values() if text)


class Rate:
    """When a display may be updated again: the larger it is, the more seldom."""

    def __init__(self) -> None:
        self.ready = float("-inf")

    def sent(self, now: float, size: int) -> None:
        self.ready = now + max(GAP, size / BYTES)


class Framed:
    """Draws one answer by updates of one display, as `bridge.Session` and `drawing.Drawing` want it.

    Args:
        send: Takes the display's data; called on the thread that draws.
    """

    holds = False
    behind = False
    live = True

    def __init__(self, send: Callable[[dict[str, str]], None], *, label: str, now: float) -> None:
        self._send = send
        self._panel = Panel(label=label, now=now)
        self._inner = self._panel.output
        self._rate = Rate()
        self.event = self._inner.event
        self.call_started = self._inner.call_started
        self.output_coming = self._inner.output_coming
        self.call_ended = self._inner.call_ended
        self.settle = self._inner.settle
        self.settled = self._inner.settled

    @property
    def busy(self) -> bool:
        return self._inner.busy

    @property
    def written(self) -> bool:
        return self._inner.written

    def due(self) -> float | None:
        times = [self._inner.due(), self._rate.ready if self._panel.changed else None]
        known = [time for time in times if time is not None]
        return min(known) if known else None

    def tick(self, now: float) -> None:
        self._inner.tick(now)
        if self._panel.changed and now >= self._rate.ready:
            self._flush(now)

    def close(self, now: float, *, note: str = "", footer: str = "") -> None:
        self._inner.close(now, note=note, footer=footer)
        self._flush(now)

    def say(self, line: str, now: float) -> None:
        """A line of ours below what there is, at once."""
        self._panel.add(line)
        self._flush(now)

    def _flush(self, now: float) -> None:
        html = self._panel.html()
        self._rate.sent(now, len(html))
        self._send({"text/html": html or "<span></span>", "text/plain": self._panel.text()})
