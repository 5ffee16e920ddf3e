"""What each wire demands of a request, by the vendors' documentation and refusals: stricter than any fake provider.

``check(kind, body, own)`` raises AssertionError with the reason. ``own`` are the opaque values that this vendor made.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from switch_kinds import Kind, opaque_in

PLACEHOLDER = "skip_thought_signature_validator"
WORDS = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check(kind: Kind, body: Any, own: Iterable[str]) -> None:
    foreign = opaque_in(body) - set(own)
    assert not foreign, f"foreign opaque values: {[base64.b64decode(value) for value in foreign]}"
    assert "_REDACTED_THINKING" not in json.dumps(body)
    assert '"origin"' not in json.dumps(body)
    RULES[kind.dialect](kind, body, set(own))


class Calls:
    """Every call has an id of its own and is answered once, before anything else happens."""

    def __init__(self, legal: Callable[[str], Any], unique: bool = True) -> None:
        self.legal, self.unique = legal, unique
        self.seen: set[str] = set()
        self.open: list[str] = []

    def call(self, call_id: str) -> None:
        assert isinstance(call_id, str) and call_id and self.legal(call_id), f"illegal id {call_id!r}"
        assert not self.unique or call_id not in self.seen, f"id {call_id!r} used twice"
        self.seen.add(call_id)
        self.open.append(call_id)

    def result(self, call_id: str) -> None:
        assert call_id in self.open, f"result for {call_id!r}, open are {self.open}"
        self.open.remove(call_id)

    def closed(self) -> None:
        assert not self.open, f"calls without a result: {self.open}"


# Responses


def responses(kind: Kind, body: Any, own: set[str]) -> None:
    openai = kind.name in ("openai-official", "openai-responses")
    calls = Calls(lambda call_id: len(call_id) <= 64)
    said: list[str] = []
    for entry in body["input"]:
        if entry["type"] != "function_call_output" and not (entry["type"] == "function_call" and said[-1:] == ["call"]):
            calls.closed()
        if entry["type"] == "message":
            assert entry.keys() <= {"type", "role", "content", "phase"}
            assert "phase" not in entry or (openai and entry["role"] == "assistant")
            assert entry["content"]
            for part in entry["content"]:
                _responses_part(part, entry["role"])
            said.append(entry["role"])
        elif entry["type"] == "reasoning":
            if openai:
                assert not entry.get("content"), "reasoning in clear is refused"
                assert entry.get("encrypted_content") in own, "reasoning that was not encrypted here"
                assert all(part["type"] == "summary_text" and part["text"] for part in entry["summary"])
            else:
                assert [part["type"] for part in entry["content"]] == ["reasoning_text"] and entry["content"][0]["text"]
            said.append("reasoning")
        elif entry["type"] == "function_call":
            assert entry.keys() == {"type", "call_id", "name", "arguments"}
            assert isinstance(json.loads(entry["arguments"]), dict)
            calls.call(entry["call_id"])
            said.append("call")
        else:
            assert entry["type"] == "function_call_output" and entry.keys() == {"type", "call_id", "output"}
            calls.result(entry["call_id"])
            for part in [] if isinstance(entry["output"], str) else entry["output"]:
                _responses_part(part, "user")
            said.append("result")
    calls.closed()
    assert said[-1] in ("user", "result")
    assert all(after != "user" for before, after in pairwise(said) if before == "reasoning")


def _responses_part(part: Any, role: str) -> None:
    if part["type"] == "input_image":
        assert role == "user", "images stand in user messages only"
        data_url(part["image_url"])
    else:
        assert part == {"type": "input_text" if role == "user" else "output_text", "text": part["text"]}
        assert part["text"].strip()


# Chat Completions


def chat(kind: Kind, body: Any, own: set[str]) -> None:
    # vLLM's own ids are longer than OpenAI allows
    calls = Calls(lambda call_id: len(call_id) <= 40 or call_id.startswith("chatcmpl-tool-"))
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            assert message.keys() == {"role", "tool_call_id", "content"} and isinstance(message["content"], str)
            calls.result(message["tool_call_id"])
            continue
        calls.closed()
        if role == "system":
            assert message is body["messages"][0] and isinstance(message["content"], str)
            continue
        thinking = {"reasoning_content", "reasoning", "reasoning_details"} if role == "assistant" else set()
        assert message.keys() <= {"role", "content", "tool_calls"} | thinking
        assert message.get("content") or message.get("tool_calls"), "nothing is said"
        for part in message.get("content", ()):
            if part["type"] == "image_url":
                assert role == "user", "images stand in user messages only"
                data_url(part["image_url"]["url"])
            else:
                assert part.keys() == {"type", "text"} and part["text"].strip()
        for block in message.get("reasoning_details", ()):
            assert block["type"] == "reasoning.encrypted" and block["data"] in own
        for call in message.get("tool_calls", ()):
            assert call.keys() == {"id", "type", "function"} and call["type"] == "function"
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            calls.call(call["id"])
        if kind.name == "moonshot-official" and message.get("tool_calls"):
            assert message.get("reasoning_content"), "calls without their reasoning are refused"
    calls.closed()
    assert body["messages"][-1]["role"] in ("user", "tool")


# Messages


def messages(kind: Kind, body: Any, own: set[str]) -> None:
    calls = Calls(WORDS.fullmatch)
    assert body["messages"][0]["role"] == "user" == body["messages"][-1]["role"]
    for message in body["messages"]:
        blocks, role = message["content"], message["role"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results, "results come first"
        for block in results:
            calls.result(block["tool_use_id"])
            _blocks(block["content"])
        calls.closed()
        if role == "user":
            _blocks(blocks[len(results) :])
            assert blocks
            continue
        assert not results
        assert not all(block["type"] in ("thinking", "redacted_thinking") for block in blocks)
        for block in blocks:
            if block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
                calls.call(block["id"])
            elif block["type"] == "thinking":
                assert block.get("signature") in own, "thinking that was not signed here"
            elif block["type"] == "redacted_thinking":
                assert block["data"] in own
            else:
                assert block.keys() == {"type", "text"} and block["text"].strip()
    calls.closed()


def _blocks(blocks: Sequence[Any]) -> None:
    for block in blocks:
        if block["type"] == "image":
            assert block["source"]["type"] == "base64" and block["source"]["media_type"] == "image/png"
            base64_data(block["source"]["data"])
        else:
            assert block.keys() == {"type", "text"} and block["text"].strip()


# Interactions


def interactions(kind: Kind, body: Any, own: set[str]) -> None:
    calls = Calls(bool, unique=False)
    assert body["input"][0]["type"] == "user_input"
    thought = False
    before = ""
    for step in body["input"]:
        kind_of = step["type"]
        if kind_of != "function_result" and not (kind_of in ("function_call", "thought") and calls.open):
            calls.closed()
        if kind_of == "thought":
            assert step.get("signature", PLACEHOLDER) in own | {PLACEHOLDER}
            thought = thought or "signature" in step
            for block in step.get("summary", ()):
                _google_block(block)
        elif kind_of == "function_call":
            assert thought, "a call without a signed thought before it"
            assert isinstance(step["arguments"], dict)
            calls.call(step.get("id", step["name"]))
        elif kind_of == "function_result":
            calls.result(step.get("call_id", step["name"]))
            assert step["name"] == "tide_table"
            for block in [] if isinstance(step["result"], str) else step["result"]:
                _google_block(block)
        else:
            assert kind_of in ("user_input", "model_output") and step["content"]
            assert kind_of == "user_input" or thought, "an answer without a signed thought before it"
            for block in step["content"]:
                _google_block(block)
        if kind_of in ("user_input", "function_result"):
            thought = False
            assert before != "thought", "a thought that leads to nothing"
        before = kind_of
    calls.closed()
    assert before in ("user_input", "function_result")


def _google_block(block: Any) -> None:
    if block["type"] == "text":
        assert block["text"].strip()
    else:
        assert block["type"] in ("image", "audio") and block["mime_type"].startswith(block["type"])
        base64_data(block["data"])


# generateContent


def generate_content(kind: Kind, body: Any, own: set[str]) -> None:
    calls = Calls(bool, unique=False)
    assert body["contents"][0]["role"] == "user" == body["contents"][-1]["role"]
    for content in body["contents"]:
        parts, role = content["parts"], content["role"]
        assert parts and role in ("user", "model")
        results = [part for part in parts if "functionResponse" in part]
        assert len(results) in (0, len(parts)), "results stand in contents of their own"
        for part in results:
            response = part["functionResponse"]
            calls.result(response.get("id", response["name"]))
            assert response["name"] == "tide_table" and response["response"]["result"]
            for image in response.get("parts", ()):
                base64_data(image["inline_data"]["data"], "-_")
        calls.closed()
        for part in parts:
            signature = part.get("thoughtSignature", PLACEHOLDER)
            assert signature in own | {PLACEHOLDER}
            assert role == "model" or "thoughtSignature" not in part
            if "text" in part:
                assert part["text"].strip() or ("thoughtSignature" in part and role == "model")
            elif "inlineData" in part:
                base64_data(part["inlineData"]["data"], "-_")
            elif "functionCall" in part:
                assert role == "model" and isinstance(part["functionCall"]["args"], dict)
                assert calls.open or "thoughtSignature" in part, "the first call of a turn must be signed"
                calls.call(part["functionCall"].get("id", part["functionCall"]["name"]))
    calls.closed()


# MMSP: nobody knows which vendor comes behind the server, so the rules of all of them hold


def mmsp(kind: Kind, body: Any, own: set[str]) -> None:
    # the server's own ids have a "#" in them
    calls = Calls(lambda call_id: (len(call_id) <= 40 and WORDS.fullmatch(call_id)) or "#" in call_id)
    assert body.keys() == {"model", "messages", "config"}
    assert body["messages"][0]["role"] == "user" == body["messages"][-1]["role"]
    for message in body["messages"]:
        items = message["content_items"]
        results = [item for item in items if item["type"] == "tool_result.done"]
        assert items and items[: len(results)] == results
        for item in results:
            calls.result(item["tool_call_id"])
            for url in item.get("images") or ():
                data_url(url)
        calls.closed()
        for item in items:
            assert item["type"] in {
                f"{kind}.done" for kind in ("text", "thinking", "tool_call", "tool_result", "image_url")
            }
            if item["type"] == "tool_call.done":
                calls.call(item["tool_call_id"])
            elif item["type"] == "image_url.done":
                assert message["role"] == "user"
                data_url(item["image_url"])
            elif item["type"] == "text.done":
                assert item["text"].strip()
    calls.closed()


RULES: dict[str, Callable[[Kind, Any, set[str]], None]] = {
    "responses": responses,
    "chat": chat,
    "messages": messages,
    "interactions": interactions,
    "generate_content": generate_content,
    "mmsp": mmsp,
}


def data_url(url: str) -> None:
    head, _, payload = url.partition(";base64,")
    assert head == "data:image/png", f"no picture: {url[:40]}"
    base64_data(payload)


def base64_data(text: str, others: str = "+/") -> None:
    data = base64.b64decode(text, altchars=others, validate=True)
    assert data and len(text) % 4 == 0
