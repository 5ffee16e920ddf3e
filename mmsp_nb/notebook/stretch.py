"""One stretch of a model's text as it grows: what has to be sent so that the screen shows it.

A long text is not sent again and again. As soon as blocks of it are finished they are frozen, as an output of their
own that is never touched again, and only the rest goes on being updated. Joined, the ``text/plain`` of all parts is
the text.

A model may write faster than a front end is to be fed. Then the screen shows what is frozen, how much is on its way,
and the end of the text, which is always as new as that of a slow model; the parts between follow as the limits allow.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .blocks import BETWEEN_BLOCKS, IN_BLOCK, IN_LINE, Split, cut_anywhere, provisional, splits
from .pacing import BYTES, WINDOW
from .render import note_html, text_html, wrap
from .sanitize import clean
from .secrets import mask

__all__ = ["KEPT", "Message", "Stretch", "message"]

SOFT = 1_500
"""From this many characters on, finished blocks are frozen."""

SHORTEST = 500
"""Less than this is not worth an output of its own."""

HARD = 7_000
"""A running part larger than this, in bytes of HTML, is cut inside a block rather than not at all."""

CHUNK = 8_000
"""More characters than this never go into one frozen part while the text is running."""

FAR = 6_000
"""More characters than this that are not frozen are not all drawn: their end is."""

TAIL = 1_000
"""Characters of that end."""

_FENCES = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^`\n]*$", re.MULTILINE)

PAUSE = 0.24
"""Seconds between two cuts: with `pacing.GAP`, no more than 12 messages a second."""

KEPT, HEAD, END = 80_000, 60_000, 4_000
"""Of a text of more than so many characters, the beginning and the end are kept in the notebook, in characters."""


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
    whole: bool = False  # nothing more comes
    cut_at: float = float("-inf")
    _pieces: list[str] = field(default_factory=list)
    _frozen: int = 0  # characters
    _parts: deque[tuple[float, int]] = field(default_factory=deque)  # when a part was frozen, and its bytes
    _styles: str = ""  # that the frozen parts have brought
    _weight: float = 4.0  # bytes that a character costs when it is frozen

    def add(self, text: str) -> None:
        """More of the text has come."""
        if text:
            self._pieces.append(text)
            self.dirty = True

    @property
    def empty(self) -> bool:
        """Nothing but white space, and nothing on the screen."""
        self._join()
        return not (self.on_screen or self.text.strip())

    @property
    def rest(self) -> int:
        """About how many bytes `finish` will make."""
        self._join()
        length = len(self.text)
        if self._frozen + length > KEPT:  # the middle is left out
            length = max(HEAD - self._frozen, 0) + END
        return int(length * self._weight)

    @property
    def unfrozen(self) -> bool:
        """Whether there is more than the last message has to bring."""
        return len(self.text) > END and self._frozen < self._head

    @property
    def _head(self) -> int:
        """So many characters may be frozen. While more can come, the middle may have to be left out."""
        return KEPT if self.whole and self._frozen + len(self.text) <= KEPT else HEAD

    def draw(self, now: float, messages: int = 12, room: int = 100_000) -> list[Message]:
        """The messages that bring the screen up to date: no more than so many, and so many bytes.

        One message, the end of the text, is sent in any case.
        """
        self._join()
        self.dirty, self.drawn = False, True
        if self.empty:
            return []
        made: list[Message] = []
        cut = self._cut(now, room) if messages > 2 else None
        if cut is not None:
            made.append(self._freeze(cut, now))
        behind = len(self.text) > (FAR if self._frozen < self._head else 2 * TAIL)
        live = message({"text/html": self._behind() if behind else self._running()}, "text", self._id(), self.on_screen)
        self.size, self.on_screen = live.size, True
        # the next part may go out without a word more
        self.dirty = behind and self._frozen < self._head and not self.whole
        return [*made, live]

    def _freeze(self, cut: Split, now: float) -> Message:
        made = self._final(self.text[: cut.at], joint_below=bool(cut.reopen))
        html = made.data["text/html"]
        self._styles += html[html.find("<style>") : html.find("</style>") + 1]
        self._weight = made.size / cut.at
        self._parts.append((now, made.size))
        self._frozen += cut.at
        self.text, self.opened = self.text[cut.at :], cut.reopen
        self.display_id, self.on_screen, self.cut_at = None, False, now
        self.part += 1
        return made

    def _running(self) -> str:
        shown, raw = provisional(clean(mask(self.text, running=True)), self.opened)
        return wrap(text_html(shown, joint_above=bool(self.opened), raw=raw), styles=self._styles)

    def _behind(self) -> str:
        """The end of a text that is far ahead of the screen, and how much is missing before it."""
        at, opened = self._end(TAIL)
        shown, raw = provisional(clean(mask(self.text[at:], running=True)), opened)
        missing = note_html(f"⋯ {at:,} characters not drawn yet ⋯")
        return wrap(missing + text_html(shown, raw=raw), styles=self._styles)

    def _end(self, length: int) -> tuple[int, str]:
        """Where about the last ``length`` characters begin, and the Markdown to begin them with."""
        last = len(self.text) - length
        first = max(last - length, 0)
        at = self.text.rfind("\n\n", first, last) + 2
        if at < 2:
            at = self.text.rfind("\n", first, last) + 1 or self.text.rfind(" ", first, last) + 1 or last
        # all of a text that is far ahead is not read again for each update: whether code is open here is counted
        fences = _FENCES.findall(self.opened + self.text[:at])
        return at, (f"{fences[-1]}\n" if len(fences) % 2 else "")

    def finish(self, extra: str = "") -> list[Message]:
        """The last messages: the whole rest with all its representations, ``extra`` HTML below it.

        Of a text longer than `KEPT` the middle is left out, and said to be.
        """
        self._join()
        self.dirty = False
        if self.empty:
            return []
        made: list[Message] = []
        left_out = 0
        if self._frozen + len(self.text) > KEPT:
            if self._frozen < HEAD:
                places = splits(self.text[: HEAD - self._frozen], self.opened)
                made.append(self._freeze(places[-1] if places else Split(HEAD - self._frozen, IN_LINE), 0.0))
            left_out, self.opened = self._end(END)
            self.text = self.text[left_out:]
        made.append(self._final(self.text, extra=extra, last=True, left_out=left_out))
        self.on_screen = True
        return made

    def _join(self) -> None:
        if self._pieces:
            self.text += "".join(self._pieces)
            self._pieces.clear()

    def _id(self) -> str | None:
        if self.display_id is None:
            self.display_id = self.new_id()
        return self.display_id

    def _final(
        self, text: str, *, extra: str = "", joint_below: bool = False, last: bool = False, left_out: int = 0
    ) -> Message:
        masked = mask(text)
        html = text_html(self.opened + masked, joint_above=bool(self.opened), joint_below=joint_below)
        plain = clean(masked, keep_crlf=True)
        before = f"⋯ {left_out:,} characters are left out here; answer.text has all of them ⋯" if left_out else ""
        if before:
            html = note_html(before) + html
        data = {
            "text/html": wrap(html, extra=extra, tight=last, styles=self._styles),
            "text/markdown": (f"*{before}*\n\n" if before else "") + self.opened + plain,
            "text/plain": (f"\n\n{before}\n\n" if before else "") + plain,
        }
        return message(data, "text", self._id(), self.on_screen, part=self.part)

    def _cut(self, now: float, room: int) -> Split | None:
        text = self.text
        large = self.whole or max(self.size, len(text)) > HARD
        if (len(text) < SOFT and not large) or now - self.cut_at < PAUSE or self._frozen >= self._head:
            return None
        most = min(CHUNK, int((room - self.size) / self._weight))
        if len(text) > FAR and not self.whole:
            while self._parts and self._parts[0][0] <= now - WINDOW:
                self._parts.popleft()
            spent = sum(size for _, size in self._parts)
            # beside a second of updates, and the last part of all; of a whole text that part waits for its room
            most = min(most, int((min(room, BYTES - spent - 9 * self.size) - END * self._weight) / self._weight))
        if most < SHORTEST:
            return None
        end = len(text.rstrip())
        places = [split for split in splits(text[: most + SOFT], self.opened) if split.at < end]
        finished = [split for split in places if split.kind == BETWEEN_BLOCKS and split.at >= SHORTEST]
        if finished and finished[0].at <= most:
            return _last_within(finished, most)
        if not large:
            return None
        for kind in (IN_BLOCK, IN_LINE):
            late = [split for split in places if split.kind == kind and most >= split.at >= min(len(text), most) // 2]
            if late:
                return late[-1]
        place = cut_anywhere(text[:most], self.opened)
        return place if place is not None and text[place.at :].strip() else None


def _last_within(places: list[Split], most: int) -> Split:
    """The last place that leaves no more than ``most`` characters before it, else the first."""
    within = [split for split in places if split.at <= most]
    return within[-1] if within else places[0]
