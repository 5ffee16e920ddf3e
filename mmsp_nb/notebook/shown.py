"""What was displayed, as text for a model that gets no other result: HTML without tags, pictures by what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

__all__ = ["figure_text", "text_of"]

MAX_HTML = 500_000
"""Characters of HTML that are looked through."""

MAX_DATA = 5_000
"""Characters of JSON that are given."""

_BARE = re.compile(r"<[\w.$]+ object(?: at 0x[0-9a-fA-F]+)?>\s*\Z")
"""What Python says of an object that has no text of its own."""

_UNREAD = frozenset({"script", "style", "head", "template", "svg"})
_BLOCKS = frozenset(
    (
        *("p", "div", "br", "hr", "tr", "table", "ul", "ol", "li", "pre", "dt", "dd", "caption", "blockquote"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "header", "footer"),
    )
)


def text_of(data: Mapping[str, Any]) -> str:
    """A display message's MIME bundle as text. Its own text is taken, unless that says no more than a type's name."""
    plain = data.get("text/plain")
    plain = plain if isinstance(plain, str) else ""
    if any(kind.startswith("image/") and kind != "image/svg+xml" for kind in data):
        return f"(displayed an image: {plain})" if plain and not _BARE.match(plain) else "(displayed an image)"
    if plain.strip() and not _BARE.match(plain):
        return plain
    for kind in ("text/markdown", "text/latex"):
        if isinstance(written := data.get(kind), str) and written.strip():
            return written
    if isinstance(page := data.get("text/html"), str) and (text := html_text(page)):
        return text
    for kind, value in data.items():
        if kind.endswith("json") and not kind.startswith("application/vnd.jupyter"):
            return f"(displayed {kind}: {_json(value)})"
    if "image/svg+xml" in data:
        return "(displayed a drawing)"
    kinds = ", ".join(kind for kind in data if kind != "text/plain")
    return f"(displayed {plain.strip() or 'something'}{f', as {kinds}' if kinds else ''})"


def html_text(page: str) -> str:
    """The text that a reader of ``page`` sees: a line for each block, cells of a table with bars between them."""
    reader = _Reader()
    try:
        reader.feed(page[:MAX_HTML])
        reader.close()
    except (AssertionError, ValueError):  # what the parser makes nothing of
        pass
    lines = (" ".join(line.split()) for line in "".join(reader.pieces).split("\n"))
    return "\n".join(line.removesuffix(" |") for line in lines if line and line != "|")


def figure_text(figure: Any) -> str:
    """What is written on a matplotlib figure: titles, labels of axes, the legend. Empty for one without words."""
    said = []
    try:
        titles = [getattr(figure, "get_suptitle", str)()]
        for axes in figure.get_axes():
            titles.append(axes.get_title())
            labels = [f"{name} {text!r}" for name in "xy" if (text := getattr(axes, f"get_{name}label")())]
            legend = axes.get_legend_handles_labels()[1]
            titles += [", ".join(labels), f"legend {', '.join(legend)}" if legend else ""]
        said = [title for title in titles if title]
    except Exception:  # a figure may hold objects of any kind
        pass
    return "; ".join(said)[:1_000]


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= MAX_DATA else f"{text[:MAX_DATA]}... ({len(text):,} characters)"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._unread += 1
        elif tag in _BLOCKS:
            self.pieces.append("\n")
        elif tag == "img" and not self._unread:
            label = next((value for name, value in attrs if name == "alt" and value), "")
            self.pieces.append(f" (image{f': {label}' if label else ''}) ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNREAD:
            self._unread = max(self._unread - 1, 0)
        elif tag in ("td", "th"):
            self.pieces.append(" | ")
        elif tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            # a line break in HTML's source is a space
            self.pieces.append(re.sub(r"\s+", " ", data))
