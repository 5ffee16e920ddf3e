"""One stretch of a model's text as it grows: what has to be sent so that the screen shows it.

A long text is not sent again and again. As soon as blocks of it are finished they are frozen, as an output of their
own that is never touched again, and only the rest goes on being updated. Joined, the ``text/plain`` of all parts is
the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .blocks import BETWEEN_BLOCKS, IN_BLOCK, IN_LINE, Split, cut_anywhere, provisional, splits
from .render import text_html, wrap
from .sanitize import clean
from .secrets import mask

__all__ = ["Message", "Stretch", "message"]

SOFT = 1_500
"""From this many characters on, finished blocks are frozen."""

SHORTEST = 500
"""Less than this is not worth an output of its own."""

HARD = 7_000
"""A running part larger than this, in bytes of HTML, is cut inside a block rather than not at all."""

CHUNK = 10_000
"""More characters than this never go into one frozen part while the text is running: what comes faster waits."""

PAUSE = 0.4
"""Seconds between two cuts."""


@dataclass(frozen=True, slots=True)
class Message:
    """One display message. ``display_id`` None: it will never be updated."""

    data: dict[str, str]
    metadata: dict[str, Any]
    display_id: str | None = None
    update: bool = False
    size: int = 0


def message(data: dict[str, str], kind: str, display_id: str | None, update: bool, **metadata: Any) -> Message:
    """A message with our metadata, and its size in bytes."""
    size = len(json.dumps(data)) + 120
    return Message(data, {"mmsp": {"kind": kind, **metadata}}, display_id, update, size)


@dataclass
class Stretch:
    """The text between two tool calls. ``new_id`` makes display ids, or returns None when nothing is updated."""

    new_id: Callable[[], str | None]
    display_id: str | None = None
    on_screen: bool = False
    dirty: bool = False
    size: int = 0
    text: str = ""
    opened: str = ""
    part: int = 0
    drawn: bool = False
    _waiting: int = 0
    _pieces: list[str] = field(default_factory=list)
    _cut_at: float = float("-inf")

    def add(self, text: str) -> None:
        """More of the text has come."""
        if text:
            self._pieces.append(text)
            self._waiting += len(text)
            self.dirty = True

    @property
    def empty(self) -> bool:
        """Nothing but white space, and nothing on the screen."""
        self._join()
        return not (self.on_screen or self.text.strip())

    def next_size(self) -> int:
        """About how many bytes the next `draw` will send."""
        length = len(self.text) + self._waiting
        return 7 * min(length, CHUNK) if length > 2 * HARD else min(self.size, 2 * HARD)

    def draw(self, now: float) -> list[Message]:
        """The messages that bring the screen up to date."""
        self._join()
        self.dirty, self.drawn = False, True
        if self.empty:
            return []
        messages: list[Message] = []
        cut = self._cut(now)
        if cut is not None:
            messages.append(self._final(self.text[: cut.at], joint_below=bool(cut.reopen)))
            self.text, self.opened = self.text[cut.at :], cut.reopen
            self.display_id, self.on_screen, self._cut_at = None, False, now
            self.part += 1
            self.size = messages[0].size
            if len(self.text) > 2 * HARD:  # far behind: the next part first
                self.dirty = True
                return messages
        shown, raw = provisional(mask(self.text, running=True), self.opened)
        html = wrap(text_html(shown, joint_above=bool(self.opened), raw=raw))
        live = message({"text/html": html}, "text", self._id(), self.on_screen)
        self.size, self.on_screen = live.size, True
        return [*messages, live]

    def finish(self, extra: str = "") -> list[Message]:
        """The last message: the whole rest with all its representations, ``extra`` HTML below it."""
        self._join()
        self.dirty = False
        if self.empty:
            return []
        last = self._final(self.text, extra=extra, last=True)
        self.on_screen = True
        return [last]

    def _join(self) -> None:
        if self._pieces:
            self.text += "".join(self._pieces)
            self._pieces.clear()
            self._waiting = 0

    def _id(self) -> str | None:
        if self.display_id is None:
            self.display_id = self.new_id()
        return self.display_id

    def _final(self, text: str, *, extra: str = "", joint_below: bool = False, last: bool = False) -> Message:
        masked = mask(text)
        html = text_html(self.opened + masked, joint_above=bool(self.opened), joint_below=joint_below)
        plain = clean(masked)
        data = {
            "text/html": wrap(html, extra=extra, tight=last),
            "text/markdown": self.opened + plain,
            "text/plain": plain,
        }
        return message(data, "text", self._id(), self.on_screen, part=self.part)

    def _cut(self, now: float) -> Split | None:
        text = self.text
        large = max(self.size, len(text)) > HARD
        if (len(text) < SOFT and not large) or (now - self._cut_at < PAUSE and len(text) <= 2 * HARD):
            return None
        places = [split for split in splits(text, self.opened) if text[split.at :].strip()]
        finished = [split for split in places if split.kind == BETWEEN_BLOCKS and split.at >= SHORTEST]
        if finished:
            return _last_within(finished)
        if not large:
            return None
        for kind in (IN_BLOCK, IN_LINE):
            late = [split for split in places if split.kind == kind and split.at >= min(len(text), CHUNK) // 2]
            if late:
                return _last_within(late)
        place = cut_anywhere(text[:CHUNK], self.opened)
        return place if place is not None and text[place.at :].strip() else None


def _last_within(places: list[Split]) -> Split:
    """The last place that leaves no more than a chunk before it, else the first."""
    within = [split for split in places if split.at <= CHUNK]
    return within[-1] if within else places[0]
