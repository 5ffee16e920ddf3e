"""``--format``: a stretch of text that is shown as something else than Markdown.

While it runs, its end is shown as plain text; what it is shows when it is complete. Nothing of it is ever run here:
HTML goes into a frame without scripts and network. Code for the next cell is in `offered`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mmsp_nb.blocks import code_blocks, parse_json
from mmsp_nb.styles import WRAPPED

from .fields import fields_html
from .render import note_html, text_html, wrap
from .richness import framed
from .sanitize import clean, escape
from .secrets import mask
from .stretch import Message, Stretch, message

__all__ = ["PYTHON", "Shaped", "is_python", "shaped_html"]

TAIL = 4_000
"""Characters of the running text that are shown."""

PYTHON = ("", "python", "py", "python3", "ipython", "ipython3")

_MONO = f"{WRAPPED};margin:.3em 0"
_TEXT = f"{WRAPPED};font-family:inherit"


@dataclass
class Shaped(Stretch):
    """A stretch in one of the formats."""

    form: str = "text"

    @property
    def rest(self) -> int:
        """Nothing that could come in parts: one message brings all of it."""
        return 0

    def draw(self, now: float, messages: int = 12, room: int = 100_000) -> list[Message]:
        self._join()
        self.dirty, self.drawn = False, True
        if self.empty:
            return []
        live = message({"text/html": wrap(self._end_html())}, "text", self._id(), self.on_screen)
        self.size, self.on_screen = live.size, True
        return [live]

    def _end_html(self) -> str:
        """What is drawn of a text that is not complete: the fields of a typed answer, the end of everything else."""
        if self.form == "fields" and (fields := fields_html(mask(self.text, running=True), running=True)):
            return fields
        text = mask(self.text[-TAIL:], running=True)
        if len(self.text) > TAIL:
            text = "… " + text.partition("\n")[2]
        return _pre(text, _style(self.form))

    def finish(self, extra: str = "") -> list[Message]:
        self._join()
        self.dirty = False
        if self.empty:
            return []
        text = mask(self.text)
        data = {"text/html": wrap(shaped_html(text, self.form), extra=extra), "text/plain": clean(text)}
        last = message(data, "text", self._id(), self.on_screen, format=self.form)
        self.on_screen = True
        return [last]


def shaped_html(text: str, form: str) -> str:
    """A complete text as HTML in one of the formats."""
    if form == "html":
        return framed(_html_of(text))
    if form == "fields" and (fields := fields_html(text)):
        return fields
    if form in ("json", "fields"):
        try:
            pretty = json.dumps(parse_json(text), indent=2, ensure_ascii=False)
        except ValueError as error:
            return f"{_pre(text, _MONO)}<div><i>{escape(str(error))}</i></div>"
        return text_html(_fence(pretty, "json"))
    if form == "math":
        return text_html(_math(text))
    if form == "code":
        blocks = code_blocks(text)
        numbers = [note_html(f"block {n}") if len(blocks) > 1 else "" for n in range(1, len(blocks) + 1)]
        shown = [text_html(_fence(block.code, block.language)) for block in blocks]
        return "".join(f"{n}{code}" for n, code in zip(numbers, shown, strict=True)) or _pre(text, _MONO)
    return _pre(text, _style(form))


def is_python(text: str) -> bool:
    """Whether a text without fences is Python as it is. It is not run."""
    try:
        compile(text, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return bool(text.strip())


def _html_of(text: str) -> str:
    blocks = [block.code for block in code_blocks(text) if block.language in ("html", "svg", "xml", "")]
    return "\n".join(blocks) or text


def _math(text: str) -> str:
    blocks = [block.code for block in code_blocks(text) if block.language in ("latex", "tex", "math", "")]
    body = "\n\n".join(blocks) if blocks else text
    if any(mark in body for mark in ("$", "\\(", "\\[", "\\begin{")):
        return body
    return f"$$\n{body.strip()}\n$$"


def _style(form: str) -> str:
    return _TEXT if form in ("text", "markdown") else _MONO


def _pre(text: str, style: str) -> str:
    return f'<pre style="{style}">{escape(clean(text), tex=False)}</pre>'


def _fence(code: str, language: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
