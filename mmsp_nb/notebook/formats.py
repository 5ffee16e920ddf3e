"""``--format``: a stretch of text that is shown as something else than Markdown, and code for the next cell.

While it runs, its end is shown as plain text; what it is shows when it is complete. Nothing of it is ever run here:
HTML goes into a frame without scripts and network, code into a cell that a person may run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mmsp_nb.blocks import code_blocks, parse_json

from .fields import fields_html
from .render import text_html, wrap
from .richness import framed
from .sanitize import clean, escape
from .secrets import mask
from .stretch import Message, Stretch, message

__all__ = ["Shaped", "code_for_cell", "offer_code", "shaped_html"]

TAIL = 4_000
"""Characters of the running text that are shown."""

PYTHON = ("", "python", "py", "python3", "ipython", "ipython3")

_MONO = "white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;font-family:inherit"


@dataclass
class Shaped(Stretch):
    """A stretch in one of the formats."""

    form: str = "text"

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
        return "".join(text_html(_fence(block.code, block.language)) for block in blocks) or _pre(text, _MONO)
    return _pre(text, _style(form))


def code_for_cell(text: str) -> str | None:
    """The Python code of an answer: its blocks of Python without fences, or all of it if that is Python; else None."""
    blocks = code_blocks(text)
    if blocks:
        code = "\n\n".join(block.code.strip("\n") for block in blocks if block.language in PYTHON and block.complete)
        return clean(code) if code.strip() else None
    try:
        compile(text, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return clean(text.strip("\n")) if text.strip() else None


def offer_code(shell: Any, text: str) -> str:
    """Put the code of an answer into the next cell, which nobody has run; returns a line that says so."""
    code = code_for_cell(text)
    if code is None:
        return "there is no Python code in this answer"
    shell.set_next_input(code)
    return "the code is in the next cell; read it before you run it"


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
