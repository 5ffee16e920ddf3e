"""Text of strangers, made harmless: control characters, bidirectional overrides, lone surrogates, HTML, TeX.

Nothing here knows Markdown, IPython or the protocol. Every text that is not ours passes through
`clean` before it reaches a screen, and through `escape` before it stands in HTML.
"""

from __future__ import annotations

import re

__all__ = ["clean", "escape", "shorten", "single_line"]

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC (titles, clipboard, links), DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"
)
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\u2028\u2029\ufffe\uffff]")
# alone in its element neither is a TeX delimiter, since MathJax matches within one text only
_TEX = re.compile(r"[$\\]")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_HTML_TABLE = str.maketrans(_HTML)


def _odd(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if char in "\u2028\u2029":
        return "\n"
    if 0xD800 <= code <= 0xDFFF or code >= 0xFFFE:
        return "\ufffd"
    if code < 0x20:
        return chr(0x2400 + code)  # the visible picture of the control character
    if 0x7F <= code <= 0x9F:
        return "\u2421" if code == 0x7F else "\ufffd"
    return f"⟨U+{code:04X}⟩"  # an override could show text in another order than it has


def clean(text: str, *, keep_crlf: bool = False) -> str:
    """``text`` with nothing in it that a screen would obey instead of show.

    CRLF (unless ``keep_crlf``) and CR become LF. Terminal sequences go; other control characters, bidirectional
    overrides and lone surrogates are replaced by something visible. Ordinary text comes back unchanged.
    """
    if keep_crlf and "\r\n" in text:
        return "\r\n".join(clean(line) for line in text.split("\r\n"))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _ODD.sub(_odd, text)


def escape(text: str, *, tex: bool = True) -> str:
    """``text`` as HTML that shows exactly these characters, in an element or a quoted attribute.

    With ``tex`` (not for attributes, ``code`` and ``pre``, where MathJax does not look) dollar signs and
    TeX delimiters are set apart, so that a price is never typeset as a formula.
    """
    html = text.translate(_HTML_TABLE)
    if tex and ("$" in html or "\\" in html):
        html = _TEX.sub(lambda match: f"<span>{match.group()}</span>", html)
    return html


def shorten(text: str, limit: int, *, unit: str = "characters") -> str:
    """The first ``limit`` characters; what is missing is said."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more {unit})"


def single_line(text: str, limit: int) -> str:
    """``text`` as one clean line of at most ``limit`` characters (an ellipsis included)."""
    line = " ".join(clean(text[: limit * 4 + 100]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
