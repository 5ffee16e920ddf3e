"""Stateful use: what the second request replays of the first answer, and what the history holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mmsp_nb.testing.parts import Part, call, image, text, thinking

from ..rig import Case
from .common import GOOGLE, KINDS, Kind, item, message, said, turn, turns

RESULT = message("user", item("tool_result", text="6.4 m", tool_call_id="c1"))
RESULTS = message("user", *(item("tool_result", text=t, tool_call_id=i) for t, i in (("B", "c2"), ("A", "c1"))))

FIRST: dict[str, tuple[Callable[[], list[Part]], dict | str]] = {
    "text": (lambda: [text("A", "1")], "Q2"),
    "thinking-and-text": (lambda: [thinking("Hm.", signature="c2lnbmVk"), text("A1")], "Q2"),
    "thinking-unsigned-and-text": (lambda: [thinking("Hm."), text("A1")], "Q2"),
    "thinking-withheld": (lambda: [thinking(signature="c2lnbmVk"), text("A1")], "Q2"),
    "call": (lambda: [call("f", '{"a": ', '"ü"}', id="c1")], RESULT),
    "thinking-and-call": (lambda: [thinking("Hm.", signature="c2lnbmVk"), call("f", {"a": 1}, id="c1")], RESULT),
    "thinking-text-and-two-calls": (
        lambda: [thinking("Hm.", signature="YQ=="), text("I look"), call("f", {}, id="c1"), call("g", {}, id="c2")],
        RESULTS,
    ),
    "call-signed": (lambda: [call("f", {"a": 1}, id="c1", signature="c2lnbmVk")], RESULT),
    "text-signed": (lambda: [text("A1", signature="c2lnbmVk")], "Q2"),
}


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        for name, (make, second) in FIRST.items():
            replies = [kind.reply(*make()), kind.reply(text("A2"))]
            yield turns(kind, f"replays/{name}", replies, turn("Q1"), turn(second))
        yield from _three_turns(kind)
        yield from _accessors(kind)
        yield from _failures(kind)
    for name in GOOGLE:
        kind = KINDS[name]
        replies = [kind.reply(text("See"), image(b"png", signature="c2lnbmVk")), kind.reply()]
        yield turns(kind, "replays/image", replies, turn("Q1"), turn("Q2"))
        replies = [kind.reply(thinking("Hm"), image(b"draft", thought=True), image(b"png")), kind.reply()]
        yield turns(kind, "replays/image-thought", replies, turn("Q1"), turn("Q2"))
    yield from _reasoning_fields()


def _three_turns(kind: Kind) -> Iterator[Case]:
    replies = [
        kind.reply(thinking("Hm.", signature="YQ=="), call("f", {"a": 1}, id="c1")),
        kind.reply(call("g", {}, id="c2")),
        kind.reply(text("Done.")),
    ]
    steps = [turn("Q1"), turn(RESULT), turn(message("user", item("tool_result", text="B", tool_call_id="c2")))]
    yield turns(kind, "replays/three-turns-of-calls", replies, *steps)


def _accessors(kind: Kind) -> Iterator[Case]:
    history = [said("Q0"), {**message("assistant", item("text", text="A0")), "finish_reason": "stop"}]
    replies = [kind.reply(), kind.reply()]
    yield turns(kind, "history/set-then-turn", replies, {"do": "set_history", "messages": history}, turn("Q1"))
    yield turns(kind, "history/clear-then-turn", replies, turn("Q1"), {"do": "clear_history"}, turn("Q2"))
    legacy = [message("user", {"type": "text", "text": "Q0"}), message("assistant", {"type": "text", "text": "A0"})]
    yield turns(kind, "history/legacy-names", replies, {"do": "set_history", "messages": legacy}, turn("Q1"))
    legacy_turn = turn(message("user", {"type": "text", "text": "Q1"}))
    yield turns(kind, "history/legacy-turn", replies, legacy_turn, turn("Q2"))
    stateless = {"do": "stream", "messages": [said("elsewhere")], "config": {}}
    yield turns(kind, "history/stateless-leaves-it", replies, turn("Q1"), stateless)
    yield turns(kind, "history/normalize", [], {"do": "normalize", "messages": [*legacy, said("Q")]})


def _failures(kind: Kind) -> Iterator[Case]:
    ok = kind.reply(text("Fine."))
    empty = message("user")
    yield turns(kind, "history/empty-message-leaves-it", [ok, ok], turn("Q1"), turn(empty), turn("Q2"))
    replies = [ok, kind.reply(thinking("Hm", signature="YQ==")), ok]
    yield turns(kind, "history/thinking-only-leaves-it", replies, turn("Q1"), turn("Q2"), turn("Q2"))
    replies = [ok, kind.reply(text("half")).end(0), ok]
    yield turns(kind, "history/empty-stream-leaves-it", replies, turn("Q1"), turn("Q2"), turn("Q2"))
    replies = [ok, kind.reply(text("half", " and half")), ok]
    yield turns(kind, "history/leaving-early-leaves-it", replies, turn("Q1"), turn("Q2", leave_at=1), turn("Q2"))
    yield turns(kind, "history/leaving-at-the-stop-keeps-it", [ok, ok], turn("Q1", leave_at=3), turn("Q2"))
    yield turns(kind, "history/abort-before", [ok, ok], turn("Q1"), turn("Q2", abort_at=0, reason="enough"), turn("Q3"))
    yield turns(kind, "history/abort-without-reason", [ok], turn("Q1", abort_at=0))
    yield turns(kind, "history/abort-on-the-last-done", [ok], turn("Q1", abort_at=2, reason="r"))
    yield turns(kind, "history/abort-after-the-stop", [ok], turn("Q1", abort_at=3, reason="r"))
    stateless = {"do": "stream", "messages": [said("Q")], "config": {}, "abort_at": 2}
    yield turns(kind, "history/abort-on-the-last-done-stateless", [ok], stateless)
    if kind.name != "mmsp":
        bad = kind.reply(call("f", '{"a"', id="c1")) if kind.dialect != "generate_content" else ok
        yield turns(kind, "history/bad-arguments-leave-it", [ok, bad, ok], turn("Q1"), turn("Q2"), turn("Q2"))


def _reasoning_fields() -> Iterator[Case]:
    for name in ("openai-chat", "openai-chat-vllm-adapter", "zai-official", "moonshot-official"):
        kind = KINDS[name]
        for field in ("reasoning_content", "reasoning", "both", "details"):
            thought = [thinking("Hm", encrypted="ZW5j"), call("f", {}, id="c1")]
            replies = [kind.reply(*thought, reasoning=field), kind.reply(call("g", {}, id="c2")), kind.reply()]
            second = turn(message("user", item("tool_result", text="B", tool_call_id="c2")))
            yield turns(kind, f"replays/reasoning-{field}", replies, turn("Q1"), turn(RESULT), second)
    for name in ("openai-official", "openai-responses", "deepseek-official", "minimax-official"):
        kind = KINDS[name]
        for channel in ("summary", "content"):
            thought = [
                thinking("Hm", channel=channel, encrypted="ZW5j", signature="c2ln"),
                text("A", phase="final_answer"),
            ]
            yield turns(
                kind, f"replays/reasoning-{channel}", [kind.reply(*thought), kind.reply()], turn("Q1"), turn("Q2")
            )
