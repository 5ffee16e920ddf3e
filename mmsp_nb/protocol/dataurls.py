"""What is wrong with a data URL, a media type or base64 text, before a provider finds out. Pure."""

from __future__ import annotations

import re

from mmsp_nb.protocol.suggestions import shown

__all__ = ["media_type_fault", "picture_url_fault"]

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;\s*[\w.+-]+=[^;,]+)*", re.ASCII)
_PICTURES = ("image/", "audio/", "video/", "application/pdf")


def picture_url_fault(url: str) -> str:
    """What is wrong with the URL of a picture (sound, film or PDF where a model takes that); nothing if right."""
    if url[:5].lower() != "data:":
        return (
            ""
            if url[:6].lower().startswith(("http:", "https:"))
            else f"must be an http(s) or data: URL, not {shown(url)}"
        )
    head, comma, payload = url[5:].partition(",")
    kind, _, encoding = head.rpartition(";")
    if not comma or encoding.strip().lower() != "base64":
        return f"must be data:<mime type>;base64,<data>, not {shown(url)}"
    if fault := media_type_fault(kind):
        return fault
    if not kind.lower().startswith(_PICTURES):
        return f"must be a picture, for instance of the type image/png, not {kind.partition(';')[0][:60]}"
    return _base64_fault(payload)


def media_type_fault(kind: str) -> str:
    """What is wrong with a media type; nothing for one like ``audio/l16; rate=24000``."""
    return "" if _TYPE.fullmatch(kind.strip()) else f"needs a media type such as image/png, not {shown(kind)}"


def _base64_fault(text: str) -> str:
    data = text.encode("ascii", "replace")
    odd = data.translate(None, _ALPHABET + b"=")
    if odd.strip():
        sign = text[next(i for i, c in enumerate(data) if c in odd and not chr(c).isspace())]
        hint = " (encode with base64.b64encode, not the URL-safe way)" if sign in "-_" else ""
        return f"holds no base64: there is {sign!r} in it{hint}"
    if odd:
        data = b"".join(data.split())
    content = data.rstrip(b"=")
    if not content:
        return "holds no data"
    if b"=" in content or len(data) - len(content) > 2 or len(data) % 4:
        return f"holds no whole base64: {len(data)} characters, cut off or not padded"
    return ""
