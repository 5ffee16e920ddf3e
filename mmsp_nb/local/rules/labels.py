"""Values that a prompt labels: ``total: 42.50`` on a line of its own or between semicolons, and lists in bullets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .words import fold, split

__all__ = ["bullets", "labelled"]

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_MOMENT = re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?")
_NUMBER = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+]?\d+(?:\.\d+)?")
_BULLET = re.compile(r"^[ \t]*[-*•][ \t]+(.+)$", re.MULTILINE)


def labelled(prompt: str, name: str, kind: str, schema: Mapping[str, Any]) -> Any:
    """What ``prompt`` labels with ``name``, as a value of ``kind``; None when it labels nothing so."""
    words = r"[ _-]*".join(re.escape(fold(word)) for word in split(name))
    found = re.search(rf"(?:^|[;,\n]|[-*•])[ \t]*{words}[ \t]*[:=][ \t]*([^\n;]+)", fold(prompt)) if words else None
    if found is None:
        return None
    text = prompt[found.start(1) : found.end(1)].strip().strip("\"'") if len(fold(prompt)) == len(prompt) else found[1]
    if kind in ("integer", "number"):
        number = _NUMBER.search(text)
        if number is None:
            return None
        value = float(number[0].replace(",", ""))
        return int(value) if kind == "integer" else value
    if kind == "boolean":
        return bool(re.match(r"(?i)y|true|1", text))
    if kind != "string":
        return None
    if schema.get("format") in ("date", "date-time"):
        near = (_DATE if schema["format"] == "date" else _MOMENT).search(text)
        return near[0] if near else None
    following = re.search(r",\s*\w[\w -]*[:=]", text)
    return (text[: following.start()] if following else text).rstrip(".,").strip() or None


def bullets(prompt: str) -> list[str]:
    """The lines of a list with bullets."""
    return [match[1].strip() for match in _BULLET.finditer(prompt)]
