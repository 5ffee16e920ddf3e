"""The protocol's promises about the events of one answer (S1-S10), checked on their own, without the assembler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PAYLOAD = {
    "text": "text", "thinking": "thinking", "inline_data": "data", "inline_thinking": "data", "tool_call": "arguments",
    "embedding": "embedding",
}  # fmt: skip


def check(events: Sequence[Any], message: Any) -> None:
    """All promises hold for ``events``. ``message``: the recorded one; None for an answer that broke off."""
    finished = message is not None
    deltas = events[:-1] if finished else events
    if finished:
        stop = events[-1]
        assert stop["event_type"] == "stop" and stop["content_items"] == [], "S1"
        assert stop["usage_metadata"] is not None and stop["finish_reason"], "S7"
    for event in deltas:
        assert event["event_type"] == "delta" and len(event["content_items"]) == 1, "S1"
        assert event["usage_metadata"] is None and event["finish_reason"] is None, "S7"
    done = _runs([event["content_items"][0] for event in deltas], finished)
    if finished:
        assert any(item["type"] not in ("thinking.done", "inline_thinking.done") for item in done), "S8"
        assert message["content_items"] == done, "S10"
        assert message["usage_metadata"] == events[-1]["usage_metadata"]


def _runs(items: Sequence[Any], finished: bool) -> list[Any]:
    done: list[Any] = []
    run: list[Any] = []
    for item in items:
        kind, _, phase = item["type"].partition(".")
        assert "item_id" not in (item.get("fidelity") or {}), "S6"
        if phase == "delta":
            assert not run or run[0]["type"] == item["type"], "S2, S3"
            if kind == "tool_call" and run:  # only the first fragment names the call, and one that brings its fidelity
                assert item["name"] == "" or ("fidelity" in item and not item["arguments"]), "S2"
            run.append(item)
        else:
            assert phase == "done" and run and run[0]["type"] == f"{kind}.delta", "S3"
            _check_done(kind, run, item)
            done.append(item)
            run = []
    assert not (finished and run), "S3: a run without its done item"
    return done


def _check_done(kind: str, run: Sequence[Any], item: Any) -> None:
    payload = PAYLOAD[kind]
    pieces = [delta[payload] for delta in run]
    if kind == "tool_call":
        assert isinstance(item["arguments"], dict), "S9"
        assert item["name"] and item["tool_call_id"], "S9"
    elif kind == "embedding":
        assert item[payload] == [number for piece in pieces for number in piece], "S4"
    else:
        assert item[payload] == type(item[payload])().join(pieces), "S4"
    ours = ("type", payload, "fidelity")
    assert {k: v for k, v in item.items() if k not in ours} == {k: v for k, v in run[0].items() if k not in ours}, "S4"
    fidelities = [delta["fidelity"] for delta in run if "fidelity" in delta]
    assert len(fidelities) <= 1, "S5"
    assert fidelities == ([item["fidelity"]] if "fidelity" in item else []), "S5"
