"""The output of an answer where there are no displays: a terminal. Text that grows, a line for each tool call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmsp_nb.blocks import parse_json

from .render import CallView, call_text, spoken_arguments
from .sanitize import clean, single_line
from .secrets import mask

__all__ = ["NoOutput", "PlainOutput"]

GAP = 0.05
"""Seconds between two writes of a running text."""


class NoOutput:
    """Draws nothing (``--quiet``). What tools print and show stands in the cell as ever."""

    holds = False
    busy = False
    behind = False

    def event(self, event: dict[str, Any], now: float) -> None: ...
    def call_started(self, call: dict[str, Any], now: float) -> None: ...
    def output_coming(self, call: dict[str, Any]) -> None: ...
    def call_ended(self, outcome: Any, now: float, *, showed: bool = False) -> None: ...
    def settle(self) -> None: ...
    def settled(self, call: dict[str, Any]) -> bool:
        return True

    def due(self) -> float | None:
        return None

    def tick(self, now: float) -> None: ...


class PlainOutput:
    """Writes an answer to ``write``, a function like ``sys.stdout.write`` that also flushes.

    With ``dim``, which only a terminal understands, thinking is paler than the answer. What is to be JSON (``form``) is
    written as it comes, and when it is none a line says so.
    """

    def __init__(self, write: Callable[[str], Any], *, live: bool = True, dim: bool = False, form: str = "") -> None:
        self._write = write
        self._dim = dim
        self.live = live
        self.holds = False
        self.behind = False
        self.written = False
        self._pending = ""
        self._due: float | None = None
        self._last = float("-inf")
        self._kind = ""
        self._run = 0
        self._started: set[int] = set()
        self._kept: list[Any] = []  # so that no other call gets the identity of one of them
        self._line_start = True
        self._json: list[str] | None = [] if form == "json" else None

    @property
    def busy(self) -> bool:
        return bool(self._pending)

    def event(self, event: dict[str, Any], now: float) -> None:
        if event["type"] == "event":
            for item in event["event"]["content_items"]:
                self._item(item, now)
        elif event["type"] == "end":
            for call in event.get("held", ()):
                view = CallView(call["name"], call["arguments"])
                view.state = "held"
                self._flush(final=True)
                self._say(f"{'' if self._line_start else chr(10)}{call_text(view)}\n")
        elif event["type"] == "tool_start":
            self.call_started(event["call"], now)

    def _item(self, item: dict[str, Any], now: float) -> None:
        kind, _, phase = item["type"].partition(".")
        if kind not in ("text", "thinking"):
            return
        text = item[kind]
        if phase == "done":
            text, self._run = text[self._run :], 0
        else:
            self._run += len(text)
        if not text:
            return
        if kind == "text" and self._json is not None:
            self._json.append(text)
        if kind != self._kind:
            self._flush(final=True)
            if self._kind:
                self._say("" if self._line_start else "\n")
            if kind == "thinking":
                self._say("[thinking] ", dim=True)
            elif self._kind == "thinking":
                self._say("\n")
            self._kind = kind
        self._pending += text
        if self._due is None:
            self._due = max(now, self._last + GAP)

    def call_started(self, call: dict[str, Any], now: float) -> None:
        if id(call) in self._started:
            return
        self._started.add(id(call))
        self._kept.append(call)
        self._flush(final=True)
        name, arguments = single_line(call["name"], 80), spoken_arguments(call["arguments"])
        self._say(f"{'' if self._line_start else chr(10)}● {name}({arguments})\n")
        self._kind = ""

    def output_coming(self, call: dict[str, Any]) -> None:
        """The tool's own output follows its line."""

    def call_ended(self, outcome: Any, now: float, *, showed: bool = False) -> None:
        view = CallView(outcome.name)
        view.ended(outcome)
        self._say(f"{'' if self._line_start else chr(10)}{call_text(view, times=self.live)}\n")
        self._kind = ""

    def settle(self) -> None:
        """Nothing is ever changed here."""

    def settled(self, call: dict[str, Any]) -> bool:
        return True

    def due(self) -> float | None:
        return self._due

    def tick(self, now: float) -> None:
        if self._due is not None and self._due <= now:
            self._last = now
            self._flush()

    def close(self, now: float, *, note: str = "", footer: str = "") -> None:
        self._flush(final=True)
        note = note or self._no_json()
        if note:
            self._say(f"{'' if self._line_start else chr(10)}[{note}]")
        if not self._line_start:
            self._say("\n")

    def _no_json(self) -> str:
        try:
            if self._json:
                parse_json("".join(self._json))
        except ValueError as error:
            return str(error)
        return ""

    def _flush(self, *, final: bool = False) -> None:
        """Write what has come, except for an end that may be the beginning of a key."""
        self._due = None
        text, self._pending = self._pending, ""
        if not final:
            # a key has no white space in it: the last word waits for its end
            cut = max(text.rfind(" "), text.rfind("\n")) + 1
            if len(text) - cut < 400 and mask(text, running=True) != mask(text):
                text, self._pending = text[:cut], text[cut:]
        if text:
            self._say(mask(text), dim=self._kind == "thinking")

    def _say(self, text: str, *, dim: bool = False) -> None:
        if text:
            shown = clean(text)
            self._write(f"\x1b[2m{shown}\x1b[22m" if dim and self._dim else shown)
            self.written = True
            self._line_start = text.endswith("\n")
