"""What else an answer draws besides its text: thinking, tool calls, pictures, and the line that waits.

Each region is one display. It knows how it looks; `output` decides when it is drawn.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from .pacing import ticks
from .render import CallView, call_html, call_text, image_html, note_html, thinking_html, wrap
from .sanitize import clean, shorten
from .secrets import mask
from .stretch import Message, message

__all__ = ["Calls", "Picture", "Region", "Thinking", "Waiting"]

NewId = Callable[[], str | None]
TAIL = 1_200
"""Characters of running thinking that are shown; all of it once it is done."""

SHOWN_INLINE = {"image/png", "image/jpeg", "image/gif"}


class Region:
    """One display. ``on_screen``: it has been drawn, so the next message is an update of ``display_id``."""

    kind = ""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self.display_id: str | None = None
        self.on_screen = False
        self.dirty = False
        self.drawn = False  # and not only something in its place
        self.size = 0

    def data(self, now: float, final: bool) -> dict[str, str] | None:
        """The representations; None when there is nothing to draw."""
        raise NotImplementedError

    def draw(self, now: float, *, final: bool = False) -> list[Message]:
        """The message that brings the screen up to date, if there is one."""
        self.dirty, self.drawn = False, True
        data = self.data(now, final)
        if data is None:
            return []
        if self.display_id is None:
            self.display_id = self._new_id()
        made = message(data, self.kind, self.display_id, self.on_screen)
        self.on_screen, self.size = True, made.size
        return [made]

    def next_tick(self) -> float | None:
        """When it wants to be drawn although nothing has come; None for never."""
        return None


class Waiting(Region):
    """``model … 3 s`` until the first token comes. Whatever comes first takes its place."""

    kind = "status"

    def __init__(self, new_id: NewId, label: str, since: float, appears: float) -> None:
        super().__init__(new_id)
        self.label, self.since, self._tick = label, since, appears
        self.note = ""

    def data(self, now: float, final: bool) -> dict[str, str] | None:
        elapsed = max(now - self.since, 0.0)
        self._tick = self.since + ticks(elapsed)
        if final:
            text = self.note
        else:
            text = f"◌ {self.label}" + (f" · {int(elapsed)} s" if elapsed >= 1 else " …")
        return {"text/html": wrap(note_html(text)) if text else "<span></span>", "text/plain": clean(text)}

    def next_tick(self) -> float | None:
        return self._tick


class Thinking(Region):
    """What the model thinks, apart from its answer."""

    kind = "thinking"

    def __init__(self, new_id: NewId, since: float, *, times: bool) -> None:
        super().__init__(new_id)
        self.since, self.times = since, times
        self.text = ""

    def add(self, text: str) -> None:
        if text:
            self.text += text
            self.dirty = True

    def data(self, now: float, final: bool) -> dict[str, str] | None:
        took = now - self.since if self.times else None
        if final:
            text = mask(self.text)
            if not text.strip() and not self.on_screen:
                return None
            html = thinking_html(text, running=False, took=took)
            return {"text/html": wrap(html), "text/plain": f"Thinking:\n{shorten(clean(text), 20_000)}"}
        text = mask(self.text[-TAIL:], running=True)
        if len(self.text) > TAIL:
            text = "… " + text.partition(" ")[2]
        return {"text/html": wrap(thinking_html(text, running=True, took=took))}


class Calls(Region):
    """Tool calls without any output between them, a line each. ``closed``: the next call begins a new region."""

    kind = "calls"

    def __init__(self, new_id: NewId, *, times: bool) -> None:
        super().__init__(new_id)
        self.times = times
        self.lines: list[CallView] = []
        self.closed = False

    @property
    def open(self) -> bool:
        """Whether a call has not ended."""
        return any(line.open for line in self.lines)

    def data(self, now: float, final: bool) -> dict[str, str] | None:
        if not self.lines:
            return {"text/html": "<span></span>", "text/plain": ""} if self.on_screen else None
        html = "".join(
            call_html(line, times=self.times, elapsed=now - line.since if line.state == "running" else None)
            for line in self.lines
        )
        data = {"text/html": wrap(html)}
        if not self.open:
            data["text/plain"] = "\n".join(call_text(line, times=self.times) for line in self.lines)
        return data

    def next_tick(self) -> float | None:
        running = [line.since for line in self.lines if line.state == "running"]
        return None if not running or not self.times else self._later(min(running))

    def _later(self, since: float) -> float:
        return since + ticks(self._seen - since) if self.on_screen else since + 1

    _seen = 0.0

    def draw(self, now: float, *, final: bool = False) -> list[Message]:
        self._seen = now
        return super().draw(now, final=final)


class Picture(Region):
    """A picture or a sound that the model made, drawn once."""

    kind = "media"

    def __init__(self, new_id: NewId, item: dict[str, Any]) -> None:
        super().__init__(new_id)
        self._item = item

    def data(self, now: float, final: bool) -> dict[str, str] | None:
        mime_type, data = str(self._item.get("mime_type", "")), self._item.get("data") or b""
        kind = clean(mime_type.partition(";")[0].strip().lower())
        encoded = base64.b64encode(data).decode("ascii")
        plain = f"<{kind or 'data'}, {len(data):,} bytes>"
        if kind in SHOWN_INLINE:
            return {kind: encoded, "text/plain": plain}
        picture = image_html(f"data:{kind};base64,{encoded}")
        if not picture and kind in ("audio/wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/flac"):
            picture = f'<audio controls src="data:{kind};base64,{encoded}"></audio>'
        return {"text/html": wrap(picture or note_html(plain)), "text/plain": plain}
