"""Streams of every dialect: which events a client makes of what a provider sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mmsp_nb.testing import Frame, Reply, Style
from mmsp_nb.testing.parts import Part, audio, call, image, text, thinking

from ..rig import Case
from .common import CHAT, GOOGLE, KINDS, MESSAGES, RESPONSES, Kind, ask

SIGNATURE = "c2lnbmVk"
ANSWERS: dict[str, Callable[[], list[Part]]] = {
    "text": lambda: [text("One ", "two ", "– ünï 🌊")],
    "text-with-line-separators": lambda: [text("a\u2028b\u0085c\rd\ne")],
    "two-texts": lambda: [text("One"), text("Two")],
    "thinking": lambda: [thinking("Hm", "m."), text("Yes.")],
    "thinking-signed": lambda: [thinking("Hm", "m.", signature=SIGNATURE), text("Yes.")],
    "thinking-withheld": lambda: [thinking(signature=SIGNATURE), text("Yes.")],
    "thinking-twice": lambda: [
        *(thinking("A", signature="YQ=="), text("a"), thinking("B", signature="Yg=="), text("b"))
    ],
    "thinking-only": lambda: [thinking("Hm.", signature=SIGNATURE)],
    "nothing": lambda: [text()],
    "call": lambda: [call("f", '{"a": ', "1", "}", id="c1")],
    "call-without-arguments": lambda: [call("now", "{}", id="c1")],
    "text-and-call": lambda: [text("I look."), call("f", {"a": "ü"}, id="c1")],
    "two-calls": lambda: [thinking("Both."), call("f", '{"a"', ": 1}", id="c1"), call("g", '{"b"', ": [2]}", id="c2")],
    "call-then-text": lambda: [call("f", {"a": 1}, id="c1"), text("Wait.")],
    "call-signed": lambda: [call("f", {"a": 1}, id="c1", signature=SIGNATURE), call("g", {}, id="c2")],
    "text-signed": lambda: [text("One ", "two", signature=SIGNATURE)],
    "call-nested": lambda: [call("f", {"a": {"b": [1, None, True, "}"]}}, id="c1")],
}
PIECEWISE_ONLY: dict[str, Callable[[], list[Part]]] = {
    "call-empty-arguments": lambda: [call("now", id="c1")],
    "call-bad-arguments": lambda: [text("So:"), call("f", '{"a": ', "oops}", id="c1")],
    "call-array-arguments": lambda: [call("f", "[1]", id="c1")],
    "call-bad-then-good": lambda: [call("f", '{"a"', id="c1"), call("g", "{}", id="c2")],
    "call-long-bad-arguments": lambda: [call("f", '{"a": "' + "x" * 200, id="c1")],
    "call-nan": lambda: [call("f", '{"a": NaN}', id="c1")],
}
MEDIA: dict[str, Callable[[], list[Part]]] = {
    "image": lambda: [text("Here:"), image(b"png1")],
    "two-images": lambda: [image(b"png1"), image(b"png2", signature=SIGNATURE)],
    "image-thought": lambda: [thinking("Hm"), image(b"draft", thought=True), image(b"final")],
    "audio": lambda: [audio(b"abc"), audio(b"def")],
}

STYLES = {
    "crlf": Style(newline="\r\n"),
    "cr": Style(newline="\r"),
    "no-space": Style(space=False),
    "comments": Style(comments=1),
    "bom": Style(bom=True),
    "no-final-blank-line": Style(final_blank_line=False),
    "multiline": Style(multiline=True),
    "ids": Style(ids=True),
    "ascii": Style(ascii=True),
}

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "chat": {
        "usage-with-finish": {"usage_on": "finish"},
        "usage-every-chunk": {"usage_on": "every"},
        "usage-without-details": {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}},
        "usage-null-details": {
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": None,
                "completion_tokens_details": {"reasoning_tokens": None},
            }
        },
        "usage-reasoning-outside": {
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 8}}
        },
        "no-usage": {"usage": None},
        "no-finish": {"finish": None},
        "finish-length": {"finish": "length"},
        "finish-filter": {"finish": "filter"},
        "finish-odd": {"finish": "weird"},
        "finish-function-call": {"finish": "function_call"},
        "no-done": {"done": False},
        "heartbeat": {"empty_choices": True},
        "role-every-chunk": {"role": "every"},
        "role-never": {"role": "never"},
        "null-content": {"null_content": True},
        "no-envelope": {"envelope": False},
    },
    "messages": {
        "cache-creation": {"cache_creation": 5},
        "no-ping": {"ping": False},
        "no-usage": {"usage": None},
        "no-finish": {"finish": None},
        "finish-length": {"finish": "length"},
        "finish-refusal": {"finish": "filter"},
        "finish-stop-sequence": {"finish": "stop_sequence"},
        "finish-pause": {"finish": "pause_turn"},
        "no-message-stop": {"message_stop": False},
        "server-tool": {"unknown_blocks": True},
    },
    "responses": {
        "no-item-ids": {"item_ids": False},
        "terse": {"terse": True},
        "no-usage": {"usage": None},
        "usage-without-details": {"usage_details": False},
        "incomplete": {"status": "incomplete"},
        "odd-status": {"status": "cancelled"},
        "no-status": {"status": None},
        "failed": {"failed": "server_error"},
        "refusal": {"refusal_text": "I will not."},
    },
    "interactions": {
        "no-usage": {"usage": None},
        "finish-length": {"finish": "length"},
        "finish-odd": {"finish": "failed"},
        "no-status": {"finish": None},
        "not-completed": {"completed": False},
        "no-done": {"done": False},
        "unknown-steps": {"unknown_steps": True},
    },
    "generate_content": {
        "usage-every-chunk": {"usage_on": "every"},
        "no-usage": {"usage": None},
        "no-finish": {"finish": None},
        "finish-length": {"finish": "length"},
        "finish-safety": {"finish": "filter"},
        "one-chunk": {"one_chunk": True},
        "blocked": {"blocked": True},
    },
    "mmsp": {
        "no-usage": {"usage": None},
        "no-stop": {"stop": False},
        "no-done": {"done": False},
        "finish-null": {"finish": None},
    },
}


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        answers = dict(ANSWERS)
        if kind.dialect not in ("generate_content", "mmsp"):
            answers |= PIECEWISE_ONLY
        if kind.name in GOOGLE or kind.name == "mmsp":
            answers |= MEDIA
        for name, make in answers.items():
            yield ask(kind, f"streams/{name}", replies=[kind.reply(*make())], step={"concat": True})
        for name, options in VARIANTS[kind.dialect].items():
            yield ask(kind, f"streams/{name}", replies=[kind.reply(text("A", "b"), **options)])
        for name, style in STYLES.items():
            frames = kind.frames(text("A", "b 🌊"))
            yield ask(kind, f"streams/style-{name}", replies=[Reply.stream(frames, style)])
        yield ask(kind, "streams/bytewise", replies=[kind.reply(text("wave 🌊"), call("f", {"a": "ü"})).bytewise()])
        yield ask(kind, "streams/unknown-event", replies=[with_unknown(kind)])
        yield ask(kind, "streams/unknown-event-debug", replies=[with_unknown(kind)], env={"MMSP_DEBUG": "1"})
        yield ask(kind, "streams/debug-off", replies=[with_unknown(kind)], env={"MMSP_DEBUG": " No "})
    yield from _chat()
    yield from _messages()
    yield from _responses()
    yield from _google()


def with_unknown(kind: Kind) -> Reply:
    """The text with an event in front that no client can know."""
    payloads: dict[str, Any] = {
        "chat": {"object": "novelty", "choices": []},
        "messages": {"type": "novelty", "x": 1},
        "responses": {"type": "response.novelty", "x": 1},
        "interactions": {"event_type": "novelty", "x": 1},
        "generate_content": {"candidates": [{"content": {"parts": [{"novelty": {"x": 1}}], "role": "model"}}]},
        "mmsp": {"role": "assistant", "event_type": "novelty", "content_items": []},
    }
    first, *rest = kind.frames()
    novelty = Frame(payloads[kind.dialect], "novelty")
    return Reply.stream([novelty, first, *rest] if kind.dialect != "messages" else [first, novelty, *rest])


def _chat() -> Iterator[Case]:
    two = [call("f", '{"a"', ": 1}", id="c1"), call("g", '{"b"', ": 2}", id="c2")]
    thought = [thinking("H", "m", encrypted="ZW5j"), text("ok")]
    for name in CHAT:
        kind = KINDS[name]
        for field in ("reasoning", "both", "details"):
            yield ask(kind, f"streams/reasoning-{field}", replies=[kind.reply(*thought, reasoning=field)])
        yield ask(kind, "streams/calls-whole", replies=[kind.reply(*two, calls="whole")])
        yield ask(kind, "streams/calls-one-chunk", replies=[kind.reply(*two, calls="whole", one_chunk=True)])
        yield ask(kind, "streams/calls-shared-index", replies=[kind.reply(*two, calls="whole", shared_index=True)])
        yield ask(kind, "streams/calls-shared-index-pieces", replies=[kind.reply(*two, shared_index=True)])
        yield ask(kind, "streams/calls-interleaved", replies=[kind.reply(*two, interleave=True)])
        yield ask(kind, "streams/call-name-in-every-chunk", replies=[kind.reply(two[0], calls="name-in-every-chunk")])
        for what, tool_call in ODD_CALLS.items():
            frames = kind.frames(text("x"))
            frames.insert(2, Frame({"choices": [{"index": 0, "delta": {"tool_calls": [tool_call]}}]}))
            yield ask(kind, f"streams/odd-call-{what}", replies=[Reply.stream(frames)])
        for what, chunk in ODD_CHUNKS.items():
            frames = kind.frames(text("x"))
            frames.insert(2, Frame(chunk))
            yield ask(kind, f"streams/odd-chunk-{what}", replies=[Reply.stream(frames)])


ODD_CALLS: dict[str, Any] = {
    "without-id": {"index": 0, "function": {"name": "f", "arguments": "{}"}},
    "without-name": {"index": 0, "id": "c1", "function": {"arguments": "{}"}},
    "without-function": {"index": 0, "id": "c1"},
    "empty-lead": {"index": 0, "id": "", "function": {"name": "", "arguments": ""}},
    "null-arguments": {"index": 0, "id": "c1", "function": {"name": "f", "arguments": None}},
    "without-index": {"id": "c1", "function": {"name": "f", "arguments": "{}"}},
}
ODD_CHUNKS: dict[str, Any] = {
    "choices-null": {"choices": None},
    "no-choices": {"object": "chat.completion.chunk"},
    "no-delta": {"choices": [{"index": 0, "finish_reason": None}]},
    "second-choice": {"choices": [{"index": 0, "delta": {"content": "y"}}, {"index": 1, "delta": {"content": "z"}}]},
    "refusal": {"choices": [{"index": 0, "delta": {"refusal": "I will not."}}]},
    "function-call": {"choices": [{"index": 0, "delta": {"function_call": {"name": "f", "arguments": "{}"}}}]},
    "reasoning-and-content": {"choices": [{"index": 0, "delta": {"reasoning_content": "r", "content": "c"}}]},
    "tool-calls-null": {"choices": [{"index": 0, "delta": {"content": "y", "tool_calls": None}}]},
    "null-usage": {"choices": [{"index": 0, "delta": {"content": "y"}}], "usage": None},
}


def _messages() -> Iterator[Case]:
    two = [call("f", '{"a"', ": 1}", id="c1"), call("g", '{"b"', ": 2}", id="c2")]
    for name in MESSAGES:
        kind = KINDS[name]
        yield ask(
            kind, "streams/redacted", replies=[kind.reply(thinking(signature="ZGF0YQ==", redacted=True), text("A"))]
        )
        yield ask(kind, "streams/calls-interleaved", replies=[kind.reply(*two, interleave=True)])
        yield ask(kind, "streams/input-in-start", replies=[kind.reply(call("f", {"a": 1}), input_in_start=True)])
        yield ask(kind, "streams/nameless-frames", replies=[Reply.stream(kind.frames(text("A")), Style(names=False))])
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Early"}}
        citation = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}}
        for what, payload in {"text-in-start": start, "citations": citation}.items():
            frames = kind.frames(text("A"))
            frames.insert(3, Frame(payload, payload["type"]))
            yield ask(kind, f"streams/{what}", replies=[Reply.stream(frames)])
        nulls = {"input_tokens": 7, "cache_creation_input_tokens": None, "cache_read_input_tokens": None}
        frames = kind.frames(text("A"))
        for frame in frames:
            if isinstance(frame, Frame) and frame.event == "message_start":
                frame.data["message"]["usage"] = nulls
            elif isinstance(frame, Frame) and frame.event == "message_delta":
                frame.data["usage"] = {"output_tokens": 4}
        yield ask(kind, "streams/usage-nulls", replies=[Reply.stream(frames)])


def _responses() -> Iterator[Case]:
    two = [call("f", '{"a"', ": 1}", id="c1"), call("g", '{"b"', ": 2}", id="c2")]
    for name in RESPONSES:
        kind = KINDS[name]
        for channel in ("summary", "content"):
            parts = [thinking("H", "m", channel=channel, encrypted="ZW5j", signature="c2ln"), text("ok")]
            yield ask(kind, f"streams/reasoning-{channel}", replies=[kind.reply(*parts)])
        phased = [text("Looking", phase="commentary"), text("Found", phase="final_answer")]
        yield ask(kind, "streams/phases", replies=[kind.reply(*phased)])
        yield ask(kind, "streams/calls-at-end", replies=[kind.reply(*two, calls_at_end=True)])
        yield ask(kind, "streams/calls-streamed", replies=[kind.reply(*two, calls_at_end=False)])
        yield ask(kind, "streams/calls-interleaved", replies=[kind.reply(*two, calls_at_end=False, interleave=True)])
        terse = kind.reply(thinking("Hm"), *two, terse=True, item_ids=False, calls_at_end=False)
        yield ask(kind, "streams/calls-terse-without-ids", replies=[terse])
        late = kind.frames(thinking("Hm", encrypted="ZW5j"), text("A", "b"))
        done = next(n for n, f in enumerate(late) if f.event == "response.output_item.done")
        first = next(n for n, f in enumerate(late) if f.event == "response.output_text.delta")
        late.insert(first, late.pop(done))
        yield ask(kind, "streams/late-reasoning-done", replies=[Reply.stream(late)])
        keepalive = [Frame({"type": "keepalive"}, "keepalive"), *kind.frames()]
        yield ask(kind, "streams/keepalive", replies=[Reply.stream(keepalive)], env={"MMSP_DEBUG": "1"})


def _google() -> Iterator[Case]:
    kind = KINDS["google-official"]
    two = [call("f", '{"a"', ": 1}", id="c1"), call("g", '{"b"', ": 2}", id="c2")]
    yield ask(kind, "streams/calls-interleaved", replies=[kind.reply(*two, interleave=True)])
    yield ask(kind, "streams/arguments-in-start", replies=[kind.reply(call("f", {"a": 1}), arguments_in_start=True)])
    mixed = [image(b"png"), audio(b"abc")]
    yield ask(kind, "streams/image-then-audio", replies=[kind.reply(*mixed)])
    kind = KINDS["google-genai"]
    signed = [text("One ", "two", signature="c2ln")]
    yield ask(kind, "streams/trailing-signature", replies=[kind.reply(*signed, trailing_signature=True)])
    yield ask(kind, "streams/calls-without-ids", replies=[kind.reply(call("f", {"a": 1}), call("g"), call_ids=False)])
    mixed_calls = kind.reply(text("x"), call("f", {}), finish="length")
    yield ask(kind, "streams/call-and-length", replies=[mixed_calls])
    two_signed = [text("a", signature="YQ=="), text("b", signature="Yg==")]
    yield ask(kind, "streams/two-signed-texts", replies=[kind.reply(*two_signed)])
    small = {"promptTokenCount": 3, "totalTokenCount": 3}
    frames = [
        Frame({"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}], "usageMetadata": {}}),
        Frame({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}], "usageMetadata": small}),
    ]
    yield ask(kind, "streams/usage-small", replies=[Reply.stream(frames)])
