"""Cutting an answer into the fragments that are streamed, on purpose also at awkward places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .neutral import Call, Delta, Say, Text, Thinking

_TOKEN = re.compile(r"\s*[^\W_]{1,9}|\s*[^\w\s]{1,2}|\s*_+|\s+")


def tokens(text: str) -> list[str]:
    """Cut ``text`` into pieces about the size of a model's tokens. Joined, they are the text again.

    A long word makes several pieces; a mark such as ``**`` or a fence may be cut in two.
    """
    return _TOKEN.findall(text)


def count(text: str) -> int:
    """How many tokens ``text`` is counted as."""
    return sum(1 for _ in _TOKEN.finditer(text))


def _argument_pieces(text: str) -> list[str]:
    """JSON text cut every few characters: inside names, strings and escapes."""
    pieces, at, width = [], 0, 1
    while at < len(text):
        pieces.append(text[at : at + width])
        at, width = at + width, width % 7 + 3
    return pieces


def deltas(says: Iterable[Say]) -> Iterator[Delta]:
    """All fragments of an answer, in order."""
    for say in says:
        match say:
            case Call():
                yield Delta("call", "", say)
                for piece in _argument_pieces(say.json):
                    yield Delta("arguments", piece)
            case Thinking(text=text):
                yield from (Delta("thinking", piece) for piece in tokens(text))
            case Text(text=text):
                yield from (Delta("text", piece) for piece in tokens(text))


def limit(says: Iterable[Say], most: int | None) -> tuple[list[Say], bool]:
    """Cut an answer after ``most`` tokens, inside a call's arguments if it falls there; True if it was cut."""
    kept: list[Say] = []
    left = most if most is not None else -1
    for say in says:
        text = say.json if isinstance(say, Call) else say.text
        pieces = tokens(text)
        if left < 0 or len(pieces) <= left:
            kept.append(say)
            left = left - len(pieces) if left >= 0 else left
            continue
        short = "".join(pieces[:left])
        if short:
            kept.append(Call(say.name, say.arguments, say.id, short) if isinstance(say, Call) else type(say)(short))
        return kept, True
    return kept, False


def dumps(value: Any) -> str:
    """JSON on one line, without spaces and with non-ASCII text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def frame(value: Any, event: str | None = None, end: str = "\n") -> bytes:
    """One server-sent event; ``value`` is a str as it is, anything else as JSON."""
    data = value if isinstance(value, str) else dumps(value)
    head = f"event: {event}{end}" if event else ""
    return f"{head}data: {data}{end}{end}".encode("utf-8", "replace")


def awkward(data: bytes) -> list[bytes]:
    """``data`` in two halves, cut inside its first character that is not ASCII, if there is one."""
    for at, byte in enumerate(data):
        if byte >= 0xC0:
            return [data[: at + 1], data[at + 1 :]]
    return [data]
