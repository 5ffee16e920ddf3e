"""Whatever a model writes, in whatever deltas: what is stored is that text, and what is drawn is harmless."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmsp_nb import AutoLLMClient, Conversation
from mmsp_nb.notebook.blocks import splits
from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.notebook.stretch import Message
from mmsp_nb.testing import FakeProvider, Reply, Style, parts, wire

PIECES = st.sampled_from(
    [
        "```python\n", "```\n", "~~~\n", "x = 1  # one\n", "| a | b |\n", "|---|---:|\n", "| 1 | 2 |\n",
        "- item\n", "1. first\n", "> quote\n", "## Head\n", "\n", "\n\n", "\r\n", "\r\n\r\n", "$a^2$ ", "\\(x\\) ",
        "\\[\ny\n\\]\n", "$$\nz\n$$\n", "**bold** ", "`code` ", "word " * 40, "é漢🌊", "שלום ", "<b>&amp;</b>",
        "a" * 300, "  indented\n", "\t", " ",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, min_size=1, max_size=120).map("".join).filter(str.strip)


def drawn(text: str, size: int, rate: float) -> list[Message]:
    """What stands in the cell after ``text`` has come in deltas of ``size`` characters, ``rate`` of them a second."""
    sent: list[Message] = []
    output = LiveOutput(sent.append, now=0.0)
    for number in range(0, len(text), size):
        now = 0.05 + number / size / rate
        while (due := output.due()) is not None and due <= now:
            before = len(sent)
            output.tick(due)
            if len(sent) == before:
                break
        item = {"type": "text.delta", "text": text[number : number + size]}
        output.event({"type": "event", "event": {"content_items": [item]}}, now)
    output.close(now + 0.02)
    last: dict[Any, Message] = {}
    for index, message in enumerate(sent):
        last[message.display_id or index] = message
    return [message for message in last.values() if message.data.get("text/plain")]


@settings(max_examples=120, deadline=None)
@given(text=TEXTS, size=st.integers(1, 400), rate=st.sampled_from([5.0, 40.0, 2_000.0]))
def test_the_pieces_join_to_the_text(text: str, size: int, rate: float) -> None:
    stored = drawn(text, size, rate)
    assert "".join(part.data["text/plain"] for part in stored) == text
    position = 0
    for part in stored:
        plain, markdown = part.data["text/plain"], part.data["text/markdown"]
        assert markdown.endswith(plain)
        opened = markdown.removesuffix(plain)
        known = {split.reopen for split in splits(text, "") if split.at == position} | {""}
        assert opened in known or opened.startswith(("```", "~~~", "|")), (opened, position)
        position += len(plain)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


ODD = {
    "ansi": "\x1b[31mred\x1b[0m and \x1b]0;title\x07",
    "nul": "a\x00b\x07c",
    "surrogate": "half \ud83d pair",
    "override": "user\u202egpj.exe and \u2066isolated",
    "hebrew": "שלום עולם, then English",
    "line": "x" * 10_000,
    "crlf": "one\r\ntwo\r\n\r\n```python\r\nx = 1\r\n\r\ny = 2\r\n```\r\n| a | b |\r\n|---|---|\r\n| 1 | 2 |\r\n",
    "cr": "overwritten\rby this",
    "separators": "one\u2028two\x0cthree",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_text_is_exact_in_the_answer_and_harmless_on_the_screen(name: str) -> None:
    text = ODD[name] * 3
    frames = wire.chat.frames([parts.text(*(text[at : at + 7] for at in range(0, len(text), 7)))])
    with FakeProvider(Reply.stream(frames, Style(ascii=True))) as provider:
        client = AutoLLMClient("fake", "key", provider.url("/v1"), "openai-chat")
        assert Conversation(client=client).ask("Go on.").text == text.replace("\ud83d", "\ufffd")  # no JSON can hold it
    stored = drawn(text, 7, 300.0)
    plain = "".join(part.data["text/plain"] for part in stored)
    html = "".join(part.data["text/html"] for part in stored)
    if name in ("hebrew", "line", "crlf"):
        assert plain == text
    for shown in (plain.replace("\r\n", "\n"), html):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
        shown.encode()
    if name == "crlf":
        elements = _Elements()
        elements.feed(html)
        assert elements.found.count("table") == 3
        assert elements.found.count("pre") == 3
