"""Short spellings of raw deltas, a runner, and the protocol's algorithm written down once more, plainly.

`specified` follows section 8.3 of the protocol step by step, without any of the improvements of the
package. Where a stream holds nothing that the improvements are about, both must agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mmsp_nb.protocol.assembly import Assembler
from mmsp_nb.protocol.errors import MMSPError, StreamProtocolError, ToolCallArgumentParseError

Raw = dict[str, Any]


def _with(raw: Raw, id: Any, fidelity: dict[str, Any]) -> Raw:
    if id is not None:
        fidelity = {**fidelity, "item_id": id}
    return {**raw, "fidelity": fidelity} if fidelity else raw


def text(value: str, id: Any = None, **fidelity: Any) -> Raw:
    return _with({"type": "text.delta", "text": value}, id, fidelity)


def thinking(value: str, id: Any = None, **fidelity: Any) -> Raw:
    return _with({"type": "thinking.delta", "thinking": value}, id, fidelity)


def data(value: bytes, mime: str = "image/png", id: Any = None, *, thought: bool = False, **fidelity: Any) -> Raw:
    kind = "inline_thinking" if thought else "inline_data"
    return _with({"type": f"{kind}.delta", "data": value, "mime_type": mime}, id, fidelity)


def call(name: str, call_id: str, arguments: str = "", id: Any = None, **fidelity: Any) -> Raw:
    raw = {"type": "tool_call.delta", "name": name, "arguments": arguments, "tool_call_id": call_id}
    return _with(raw, id, fidelity)


def args(arguments: str, id: Any = None, **fidelity: Any) -> Raw:
    return call("", "", arguments, id, **fidelity)


def embedding(*numbers: float) -> Raw:
    return {"type": "embedding.delta", "embedding": list(numbers)}


def assembled(raws: Iterable[Raw]) -> tuple[list[Raw], MMSPError | None]:
    """The public items of a whole response, and the error it ends with."""
    assembler, out = Assembler("TestClient"), []
    try:
        for raw in raws:
            assembler.push(raw, out)
        assembler.close(out)
    except MMSPError as error:
        return out, error
    return out, None


def public(raws: Iterable[Raw]) -> list[Raw]:
    """The public items of a response that must be fine."""
    out, error = assembled(raws)
    assert error is None, error
    return out


def done(items: Sequence[Raw]) -> list[Raw]:
    return [item for item in items if item["type"].endswith(".done")]


# The protocol's algorithm ----------------------------------------------------------------------------

PAYLOADS = {
    "text": ("text", ""),
    "thinking": ("thinking", ""),
    "inline_data": ("data", b""),
    "inline_thinking": ("data", b""),
    "tool_call": ("arguments", ""),
    "embedding": ("embedding", []),
}


def specified(raws: Iterable[Raw]) -> tuple[list[Raw], type[MMSPError] | None]:
    """What section 8 makes of a response: the public items and the class of the error it ends with."""
    out: list[Raw] = []
    run: Raw | None = None
    try:
        for raw in raws:
            run = _step(run, raw, out)
        _close(run, out)
    except MMSPError as error:
        return out, type(error)
    return out, None


def _step(run: Raw | None, raw: Raw, out: list[Raw]) -> Raw:
    kind, _, phase = raw["type"].partition(".")
    if phase != "delta" or kind not in PAYLOADS:
        raise StreamProtocolError
    fidelity = {key: value for key, value in raw.get("fidelity", {}).items() if key != "item_id"}
    id = raw.get("fidelity", {}).get("item_id") or None
    fields = {key: value for key, value in raw.items() if key != "fidelity"}
    adopted = (
        run is not None
        and run["first"] is not None
        and run["kind"] != kind
        and id is not None
        and run["id"] == id
        and fidelity
        and _empty(kind, fields)
    )
    if adopted:
        assert run is not None
        field, nothing = PAYLOADS[run["kind"]]
        fields = {**run["first"], field: nothing}
    elif run is None or run["kind"] != kind or _starts(kind, fields) or _other_id(run, kind, id):
        _close(run, out)
        run = {"kind": kind, "id": None, "first": None, "chunks": [], "fidelity": None}
    assert run is not None
    kind = run["kind"]
    run["id"] = run["id"] or id
    if fidelity and run["fidelity"] is None:
        run["fidelity"] = fidelity
    elif fidelity == run["fidelity"]:
        fidelity = {}
    elif fidelity:
        raise StreamProtocolError
    if _empty(kind, fields) and not fidelity:
        return run
    if run["first"] is None:
        if kind == "tool_call" and not (fields["name"] and fields["tool_call_id"]):
            raise StreamProtocolError
        run["first"] = fields
    run["chunks"].append(fields[PAYLOADS[kind][0]])
    out.append({**fields, "fidelity": fidelity} if fidelity else fields)
    return run


def _empty(kind: str, fields: Raw) -> bool:
    lead = (fields["name"], fields["tool_call_id"]) if kind == "tool_call" else ()
    return kind != "embedding" and not fields[PAYLOADS[kind][0]] and not any(lead)


def _starts(kind: str, fields: Raw) -> bool:
    if kind == "tool_call":
        return bool(fields["name"])
    if kind == "inline_data":
        return fields["mime_type"].startswith("image/")
    return kind in ("inline_thinking", "embedding")


def _other_id(run: Raw, kind: str, id: Any) -> bool:
    return kind != "tool_call" and bool(run["id"]) and bool(id) and run["id"] != id


def _close(run: Raw | None, out: list[Raw]) -> None:
    if run is None or run["first"] is None:
        return
    field, nothing = PAYLOADS[run["kind"]]
    payload: Any = type(nothing)()
    for chunk in run["chunks"]:
        payload = payload + chunk
    if run["kind"] == "tool_call":
        try:
            payload = json.loads(payload or "{}")
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            raise ToolCallArgumentParseError
    item = {**run["first"], "type": f"{run['kind']}.done", field: payload}
    out.append({**item, "fidelity": run["fidelity"]} if run["fidelity"] else item)
