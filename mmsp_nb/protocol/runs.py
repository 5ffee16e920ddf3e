"""One item in the making: the pieces that `assembly` sorts, and how they become a done item."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.errors import StreamProtocolError, ToolCallArgumentParseError, preview
from mmsp_nb.protocol.items import PAYLOAD_FIELD, Fidelity, Item

__all__ = ["AGAIN", "Delta", "Run"]

AGAIN = ". Ask again"
"""What helps where a model or a connection had a bad moment."""

_EMPTY: dict[str, Any] = {"text": "", "thinking": "", "data": b"", "arguments": "", "embedding": []}
_SIZE = {"text": 2, "thinking": 2, "tool_call": 4}
_KIND_OF = {f"{kind}.delta": kind for kind in PAYLOAD_FIELD}
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')


class Delta:
    """A raw delta taken apart: what goes out, whose it is, and the fidelity beside it."""

    __slots__ = ("empty", "fidelity", "fields", "id", "kind", "mark", "payload")

    def __init__(self, raw: Item, client: str) -> None:
        kind = _KIND_OF.get(raw.get("type", ""))
        if kind is None:
            raise StreamProtocolError(
                f"the decoder yielded {raw.get('type')!r}, which is no delta{AGAIN}", client=client
            )
        self.kind = kind
        self.fields = {key: value for key, value in raw.items() if key != "fidelity"}
        self.mark = fidelity = raw.get("fidelity") or {}
        self.id = fidelity.get("item_id") or None
        self.fidelity: Fidelity | None = {k: v for k, v in fidelity.items() if k != "item_id"} or None
        self.payload = self._payload(PAYLOAD_FIELD[kind], client)
        self.empty = not self.payload and kind != "embedding"
        if kind == "tool_call":
            name, call_id = (self._string(key, client) for key in ("name", "tool_call_id"))
            self.empty = self.empty and not name and not call_id
        elif kind in ("inline_data", "inline_thinking"):
            self._string("mime_type", client)

    def _payload(self, field: str, client: str) -> Any:
        payload, empty = self.fields.get(field), _EMPTY[field]
        if payload is None:
            payload = empty
        elif type(payload) is not type(empty):
            if not isinstance(payload, (bytearray, memoryview) if field == "data" else type(empty)):
                raise StreamProtocolError(
                    f"the {field} of a {self.kind} delta is of type {type(payload).__name__}{AGAIN}", client=client
                )
            payload = type(empty)(payload)
        self.fields[field] = payload
        return payload

    def _string(self, key: str, client: str) -> str:
        value = self.fields.get(key)
        if value is None:
            value = self.fields[key] = ""
        if not isinstance(value, str):
            raise StreamProtocolError(f"the {key} of a {self.kind} delta is no string{AGAIN}", client=client)
        return value


class _Scan(NamedTuple):
    """How far a scan of JSON text has come."""

    chunks: int = 0
    depth: int = 0
    in_string: bool = False
    escaped: bool = False
    begun: bool = False
    over: bool = False


class Run:
    """The deltas of one item, from its first to its done."""

    __slots__ = (
        "buffer",
        "chunks",
        "ended",
        "fidelity",
        "field",
        "first",
        "id",
        "kind",
        "late",
        "scan",
        "seen",
        "size",
        "type",
        "weighed",
    )

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.type = f"{kind}.delta"
        self.field = PAYLOAD_FIELD[kind]
        self.size = _SIZE.get(kind, 0)
        """How many keys a delta with nothing but a piece of text has; 0: there is no such delta."""
        self.id: str | None = None
        self.first: Item | None = None
        """The first delta that went out, without fidelity; None until there is one."""
        self.chunks: list[Any] = []
        self.fidelity: Fidelity | None = None
        self.buffer: list[Item] = []
        """What waits to go out while an earlier run is live."""
        self.late: list[Delta] = []
        """Fidelity of items already done that came while this one was running."""
        self.ended = False
        """Nothing more can come: another item has begun, and this one could not be told apart."""
        self.scan = _Scan()
        self.weighed = (0, 0)
        """How many of the chunks were weighed, and what they weigh."""
        self.seen: Fidelity = {}
        """The fidelity, ``item_id`` included, of the last delta that was taken in: the same again says nothing new."""

    def begins_anew(self, delta: Delta) -> bool:
        """Whether ``delta``, which is of no tool call, starts another item after this one."""
        if self.ended or self.kind != delta.kind or self.kind in ("inline_thinking", "embedding"):
            return True
        if self.kind == "inline_data":
            major = _major(delta.fields["mime_type"])
            if major == "image" or (major and self.first is not None and major != _major(self.first["mime_type"])):
                return True  # sound after an image is another item
        return self.id is not None and delta.id is not None and self.id != delta.id

    def adopts(self, delta: Delta) -> bool:
        """Whether the fidelity of an empty ``delta``, which does not go on with this item, is for it all the same."""
        if self.first is None or self.id != delta.id or self.fidelity not in (None, delta.fidelity):
            return False
        return self.kind != delta.kind or (self.ended and self.kind in ("text", "thinking"))

    def continued_by(self, delta: Delta) -> bool:
        """Whether ``delta``, which repeats a function name for this call's id, belongs to this call.

        Gateways repeat the name on each fragment; others give every call the same index. What the
        arguments look like so far tells the two apart.
        """
        if self.first is None:
            return True
        if delta.fields["name"] != self.first["name"]:
            return False
        same_call = delta.fields["tool_call_id"] in ("", self.first["tool_call_id"])
        if self.finished():
            return same_call and not delta.payload.strip()
        return same_call or (delta.id is not None and self.scan.begun)

    def finished(self) -> bool:
        """Whether the arguments so far are one complete JSON value, well-formed or past mending.

        Each character is looked at once, however often this is asked.
        """
        if self.scan.chunks < len(self.chunks):
            self.scan = _scan(self.scan, "".join(self.chunks[self.scan.chunks :]), len(self.chunks))
        return self.scan.over

    def weigh(self) -> int:
        """The size of the payload so far. Each piece is looked at once, however often this is asked."""
        count, weight = self.weighed
        weight += sum(map(len, self.chunks[count:]))
        self.weighed = len(self.chunks), weight
        return weight

    def emptied(self) -> Item:
        """The first delta again, with nothing in its payload: it carries late fidelity."""
        assert self.first is not None
        return {**copy_item(self.first), self.field: copy_item(_EMPTY[self.field])}

    def done(self, client: str) -> Item:
        """The done item. Raises ToolCallArgumentParseError for a call without proper arguments."""
        assert self.first is not None
        item: Item = {**self.first, "type": f"{self.kind}.done", self.field: self._joined(client)}
        if self.fidelity is not None:
            item["fidelity"] = self.fidelity
        return item

    def _joined(self, client: str) -> Any:
        if self.kind == "embedding":
            return [number for chunk in self.chunks for number in chunk]
        if self.field == "data":
            return b"".join(self.chunks)
        text = "".join(self.chunks)
        return self._arguments(text, client) if self.kind == "tool_call" else text

    def _arguments(self, text: str, client: str) -> dict[str, Any]:
        assert self.first is not None
        try:
            arguments = json.loads(text, parse_constant=_refuse, parse_float=_finite) if text else {}
            why = "" if isinstance(arguments, dict) else f"{type(arguments).__name__} instead of an object"
        except (ValueError, RecursionError) as error:
            arguments, why = None, "nested too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(arguments, dict):
            return arguments
        raise ToolCallArgumentParseError(
            f"the model's arguments for {self.first['name']!r} are no JSON object ({why}): {preview(text)!r}{AGAIN}",
            client=client,
            tool_name=self.first["name"],
            tool_call_id=self.first["tool_call_id"],
            raw_arguments_length=len(text),
            raw_arguments_preview=preview(text),
        )


def _major(mime_type: str) -> str:
    return mime_type.partition("/")[0].lower()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:40]} is out of range")
    return value


def _scan(state: _Scan, text: str, chunks: int) -> _Scan:
    """Go on with a scan of JSON text, far enough to see where its outermost object is closed."""
    _, depth, in_string, escaped, begun, over = state
    at = 0
    if not begun:
        at = len(text) - len(text.lstrip())
        begun = at < len(text)
        over = begun and text[at] != "{"
    while not over:
        if escaped:
            if at >= len(text):
                break
            at, escaped = at + 1, False
        found = (_INSIDE if in_string else _OUTSIDE).search(text, at)
        if found is None:
            break
        at, mark = found.end(), found.group()
        if mark == "\\":
            escaped = True
        elif mark == '"':
            in_string = not in_string
        else:
            depth += 1 if mark in "{[" else -1
            over = depth <= 0
    return _Scan(chunks, depth, in_string, escaped, begun, over)
