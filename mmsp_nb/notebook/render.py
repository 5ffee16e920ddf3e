"""The parts of an answer as they look: text, thinking, tool calls, notes. Safe HTML, and the same as plain text.

Pure functions from values to strings; nothing here knows when or where something is drawn. All colours are
Jupyter's own variables with a fallback that is readable on white and on black.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mmsp_nb.styles import WRAPPED

from .failures import users_traceback
from .markdown import code_block, stylesheet, to_html
from .sanitize import clean, escape, shorten, single_line
from .secrets import mask

__all__ = [
    "CallView",
    "call_html",
    "call_text",
    "image_html",
    "note_html",
    "seconds",
    "spoken_arguments",
    "text_html",
    "thinking_html",
    "usage_text",
    "wrap",
]

MAX_ARGUMENTS = 4_000
MAX_RESULT = 6_000
MAX_THINKING = 20_000
"""Characters of a call's arguments, of its result and of thinking that an output holds; the object has all of it."""

QUIET = "opacity:.65"
_SIDE = "border-left:2px solid var(--jp-border-color2,rgba(128,128,128,.4));padding-left:.8em;margin:.3em 0 .6em"
_ONE_LINE = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
_GREEN = "color:var(--jp-success-color1,#388e3c)"
_RED = "color:var(--jp-error-color1,#d84315)"
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+\Z")
_SHOWN_IMAGE = re.compile(r"\(displayed an image[^\n]*\)(?:\n\(on it: [^\n]*\))?")
_MARKS = {
    "preparing": ("◌", QUIET),
    "waiting": ("◌", QUIET),
    "running": ("●", "color:var(--jp-brand-color1,#1e88e5)"),
    "ok": ("✓", _GREEN),
    "error": ("✗", _RED),
    "unknown": ("✗", _RED),
    "invalid": ("✗", _RED),
    "timeout": ("✗", _RED),
    "interrupted": ("■", QUIET),
    "denied": ("✗", _RED),
    "held": ("?", "color:var(--jp-warn-color1,#f57c00)"),
}
_SPOKEN = {
    "preparing": "being written",
    "waiting": "waits",
    "running": "running",
    "ok": "succeeded",
    "error": "failed",
    "unknown": "unknown tool",
    "invalid": "invalid arguments",
    "timeout": "timed out",
    "interrupted": "interrupted",
    "denied": "denied",
    "held": "not run yet",
}
"""What the marks mean, for those who hear the page."""
_BOX = "margin:.5em 0;padding:.6em .8em;border-radius:4px;"


def wrap(html: str, *, extra: str = "", tight: bool = False, styles: str = "") -> str:
    """One output: ``html`` in our one container, with the styles that it needs.

    With ``tight``, less space is left below a last paragraph, since something else follows. ``styles`` are those that
    the outputs above brought.
    """
    if tight and html.rstrip().endswith("</p>"):
        head, paragraph, tail = html.rpartition("<p>")
        html = head + (paragraph and '<p style="margin-bottom:.4em">') + tail
    return f'<div class="mmsp" style="overflow-wrap:anywhere">{stylesheet(html, styles)}{html}{extra}</div>'


def seconds(value: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 5 s``."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def text_html(markdown: str, *, joint_above: bool = False, joint_below: bool = False, raw: str = "") -> str:
    """A stretch of the model's text.

    Args:
        markdown: What to draw.
        joint_above: It goes on with a code block of the output before.
        joint_below: Its last code block goes on in the next output.
        raw: An unfinished formula after it, shown as it is.
    """
    html = to_html(markdown)
    start = f'<pre style="{_BOX}'
    above = joint_above and html.startswith(start)
    below = joint_below and html.rstrip().endswith("</pre>")
    if above and below and html.count(start) == 1:
        html = html.replace(_BOX, _box(True, True), 1)
    else:
        if above:
            html = html.replace(_BOX, _box(True, False), 1)
        if below:
            head, box, tail = html.rpartition(_BOX)
            html = head + (box and _box(False, True)) + tail
    if raw:
        html += f'<pre style="{WRAPPED};{QUIET}">{escape(clean(raw), tex=False)}</pre>'
    return html


def _box(above: bool, below: bool) -> str:
    """The box of a code block that goes on above or below."""
    (top, over), (bottom, under) = (("0", "0") if joint else (".5em", ".6em") for joint in (above, below))
    return f"margin:{top} 0 {bottom};padding:{over} .8em {under};"


def note_html(text: str, *, calm: bool = True, spoken: bool = False) -> str:
    """A small line of ours below or instead of something: what is waited for, what it cost, why it ended.

    With ``spoken`` a screen reader says it when it appears. A running answer itself is not spoken: it changes eight
    times a second.
    """
    colour = QUIET if calm else _RED
    status = ' role="status"' if spoken else ""
    return f'<div style="font-size:.85em;margin:.3em 0;{colour}"{status}>{escape(clean(text))}</div>'


def thinking_html(text: str, *, running: bool, took: float | None = None) -> str:
    """Thinking: open and showing its end while it runs, folded when it is done."""
    title = "Thinking" if running else "Thought"
    if took is not None and (running or took >= 0.05):
        title += f"… {int(took)} s" if running else f" for {seconds(took)}"
    elif running:
        title += "…"
    if not running and took is None:
        title = "Thinking"
    summary = f'<span style="font-size:.9em;{QUIET}">{title}</span>'
    if not text.strip():
        return f'<div style="margin:.3em 0">{summary}</div>'
    shown = text
    if len(text) > MAX_THINKING:
        shown = f"… ({len(text) - MAX_THINKING:,} characters before)\n\n{text[-MAX_THINKING:]}"
    opened = " open" if running else ""
    return (
        f'<details{opened} style="margin:.3em 0"><summary style="cursor:pointer">{summary}</summary>'
        f'<div style="{_SIDE};font-size:.95em;opacity:.8">{to_html(shown)}</div></details>'
    )


class CallView:
    """What is shown of one tool call. ``state`` is one of preparing, waiting, running, or the outcome's status."""

    def __init__(self, name: str, arguments: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.arguments = arguments
        self.written = 0  # characters of arguments so far
        self.state = "preparing"
        self.since = 0.0
        self.took: float | None = None
        self.result = ""
        self.traceback = ""
        self.rich = ""
        self.note = ""
        self.images: list[str] = []

    @property
    def open(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in ("preparing", "waiting", "running")

    def ended(self, outcome: Any, *, images: bool = True) -> None:
        """Take over what became of the call. ``images``: its pictures are not on the screen already."""
        self.state = outcome.status
        self.arguments = outcome.arguments
        self.took = outcome.duration
        self.result = outcome.text
        self.traceback = users_traceback(outcome.error) if outcome.status == "error" else ""
        self.note = outcome.note
        self.rich = outcome.html
        self.images = [url for url in outcome.images if _PICTURE.match(url)] if images else []


def spoken_arguments(arguments: Mapping[str, Any] | None, limit: int = 80) -> str:
    """Arguments as one line of Python-like text: ``city="London", days=3``."""
    parts: list[str] = []
    room = limit
    for name, value in (arguments or {}).items():
        written = json.dumps(value, ensure_ascii=False, default=str)
        part = f"{single_line(str(name), 40)}={single_line(mask(written), max(room - len(str(name)), 12))}"
        if room < 12 and parts:
            parts.append("…")
            break
        parts.append(part)
        room -= len(part) + 2
    return ", ".join(parts)


def call_text(call: CallView, *, times: bool = True) -> str:
    """One call as a line of plain text."""
    line = f"{_MARKS[call.state][0]} {single_line(call.name, 80)}({spoken_arguments(call.arguments)})"
    took = f" {seconds(call.took)}" if times and call.took and call.took >= 0.05 else ""
    if edited := _edited(call):
        line += f" {edited}"
    brief = _brief(call)
    return line + took + (f" → {brief}" if brief else "")


def call_html(call: CallView, *, times: bool = True, elapsed: float | None = None) -> str:
    """One call as a line that unfolds to its arguments and its result."""
    mark, style = _MARKS[call.state]
    head = f'<span style="{style}" role="img" aria-label="{_SPOKEN[call.state]}">{mark}</span> '
    head += (
        f"<b>{escape(single_line(call.name, 80))}</b>"
        f'<span style="opacity:.8">({escape(spoken_arguments(call.arguments))})</span>'
    )
    if edited := _edited(call):
        head += f" {escape(edited)}"
    if call.state == "preparing" and call.written > 100:
        head += f' <span style="{QUIET}">writing arguments, {call.written:,} characters</span>'
    took = call.took if call.took is not None else elapsed
    if times and took is not None and took >= (1 if call.open else 0.05):
        head += f' <span style="opacity:.5">{f"{int(took)} s" if call.open else seconds(took)}</span>'
    brief = _brief(call)
    if brief:
        head += f' <span style="{QUIET}">→ {escape(brief)}</span>'
    body = "" if call.open else _call_body(call)
    if not body:
        return f'<div style="margin:.15em 0;padding-left:1em;{_ONE_LINE}">{head}</div>'
    return (
        f'<details style="margin:.15em 0"><summary style="cursor:pointer;{_ONE_LINE}">{head}</summary>'
        f'<div style="{_SIDE};margin-left:.35em">{body}</div></details>'
    )


def _edited(call: CallView) -> str:
    """What the call was run with in place of the model's arguments; empty when it was run with those."""
    return single_line(mask(call.note), 80) if call.note.startswith("run with ") else ""


def _brief(call: CallView) -> str:
    if call.open:
        return ""
    if call.state in ("interrupted", "held"):
        return "interrupted" if call.state == "interrupted" else "not run yet"
    if call.images and not call.result.strip():
        return f"{len(call.images)} image{'s' if len(call.images) > 1 else ''}"
    return _headline(mask(call.result), failed=call.state == "error")


def _headline(result: str, *, failed: bool) -> str:
    """A result in one line: of several lines the first, of pictures how many, of an error the error."""
    images = len(_SHOWN_IMAGE.findall(result))
    if images and not _SHOWN_IMAGE.sub("", result).strip():
        return "an image" if images == 1 else f"{images} images"
    first, _, more = result.strip().partition("\n")
    if failed:
        first = first.removeprefix("Error: ")
    line = single_line(first, 80)
    goes_on = more.strip() and not more.lstrip().startswith("|") and not line.endswith("…")
    return f"{line} …" if goes_on else line


def _call_body(call: CallView) -> str:
    parts = []
    if call.arguments:
        written = json.dumps(call.arguments, ensure_ascii=False, indent=2, default=str)
        parts.append(code_block(mask(shorten(written, MAX_ARGUMENTS)), "json", style=";font-size:.9em"))
    result = mask(call.result)
    if call.rich:
        parts.append(call.rich + note_html(f"{len(call.result):,} characters were given to the model as text"))
    elif result.strip():
        parts.append(_result(result))
    if call.traceback:
        parts.append(code_block(mask(shorten(call.traceback, MAX_RESULT)), style=";font-size:.85em"))
    pictures = "".join(image_html(url) for url in call.images)
    return note_html("→").join(parts) + pictures + (note_html(call.note) if call.note else "")


def _result(text: str) -> str:
    """What a model was told: JSON indented and coloured, tables as tables, everything else as it is."""
    shown = shorten(text, MAX_RESULT)
    if re.search(r"^\|.*\|\n\|(?: ?:?-+:? ?\|)+$", shown, re.MULTILINE):
        return f'<div style="font-size:.9em;max-height:24em;overflow:auto">{to_html(shown)}</div>'
    if text[:1] in ("{", "[") and len(text) <= MAX_RESULT:
        with contextlib.suppress(ValueError, RecursionError):
            shown = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
            return code_block(shorten(shown, MAX_RESULT), "json", style=";font-size:.9em;max-height:24em")
    return code_block(shown, style=";font-size:.9em;white-space:pre-wrap;max-height:24em")


def image_html(url: str) -> str:
    """A picture that we hold ourselves, as a ``data:`` URL of a known kind; an empty string for anything else."""
    if not _PICTURE.match(url):
        return ""
    return f'<img alt="" style="max-width:100%;display:block;margin:.4em 0" src="{escape(url, tex=False)}">'


def usage_text(parts: Iterable[str | None]) -> str:
    """The parts of a footer that there are, with dots between them."""
    return " · ".join(part for part in parts if part)
