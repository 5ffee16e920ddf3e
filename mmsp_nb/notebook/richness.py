"""What IPython makes of a tool's result, for the person: tables, formulas, drawings, in a frame where nothing can act.

The objects are the user's, but what they hold may come from anywhere. So their HTML goes into a frame without scripts,
without forms and without a network: a link or picture in it is never fetched by drawing it.
"""

from __future__ import annotations

import base64
import html
import re
from typing import Any

from .secrets import mask

__all__ = ["framed", "rich_html"]

MAX_HTML = 200_000
"""Characters of HTML that are drawn; the object has all of it."""

_PLAIN = (str, bytes, int, float, bool, complex, type(None), list, tuple, dict, set, frozenset)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"
_STYLE = "body{margin:.3em;font:13px/1.4 system-ui,sans-serif}td,th{padding:.15em .6em;text-align:right}"


def rich_html(shell: Any, value: Any) -> str:
    """The rich form of ``value`` as safe HTML; empty for what has none beyond its text."""
    formatter = getattr(shell, "display_formatter", None)
    if formatter is None or type(value) in _PLAIN:
        return ""
    try:
        found, _ = formatter.format(value, include={"text/html", "image/svg+xml", "text/latex"})
    except Exception:  # the object's own methods may do anything
        return ""
    drawn = found.get("text/html")
    if not isinstance(drawn, str):
        drawn = found.get("image/svg+xml")
        if isinstance(drawn, str):
            # as a picture a drawing can run nothing and load nothing
            data = base64.b64encode(mask(drawn).encode()).decode()
            return f'<img alt="" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
        return ""
    if len(drawn) > MAX_HTML:
        return f"<div><i>{len(drawn):,} characters of HTML, not drawn; the result object has them</i></div>"
    return framed(mask(drawn))


def framed(content: str) -> str:
    """``content`` in a frame without scripts, forms and network."""
    page = (
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="color-scheme" content="light dark">'
        f"<style>{_STYLE}</style>{content}"
    )
    lines = len(re.findall(r"<tr\b|<br\b|<p\b|<li\b|<h\d\b|\n\s*<div\b", content, re.IGNORECASE))
    height = min(max(3 + 1.7 * lines, 6), 26)
    return (
        f'<iframe sandbox="" referrerpolicy="no-referrer" loading="lazy" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height:.0f}em;border:0;background:transparent"></iframe>'
    )
