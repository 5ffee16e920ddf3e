from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

from mmsp_nb.answer import Answer
from mmsp_nb.reprs import ITEMS, conversation_html, conversation_text
from mmsp_nb.turns import Turn

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&</div></details>"
KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3s"


def turn(prompt: str, *items: dict[str, Any], state: str = "done", **options: Any) -> Turn:
    question = {"role": "user", "content_items": [{"type": "text.done", "text": prompt}]}
    answer = {"role": "assistant", "content_items": list(items)}
    return Turn("demo", [question, answer], state=state, **options)  # type: ignore[arg-type, list-item]


def words(text: str) -> dict[str, Any]:
    return {"type": "text.done", "text": text}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.balanced = True

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert all(not name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag


def tags(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    parser.close()
    assert parser.balanced and parser.open == []
    return parser


EVERYTHING = [
    {"type": "thinking.done", "thinking": "Hm."},
    words("Hello"),
    {"type": "tool_call.done", "name": "tide", "arguments": {"port": "Brest"}, "tool_call_id": "c1"},
    {"type": "tool_result.done", "text": "6.5", "tool_call_id": "c1", "images": ["u"]},
    {"type": "image_url.done", "image_url": "data:image/png;base64,AAAA"},
    {"type": "image_url.done", "image_url": "https://example.org/a.png"},
    {"type": "inline_data.done", "data": b"12345", "mime_type": "audio/wav"},
    {"type": "embedding.done", "embedding": [0.0] * 1000},
]


def test_every_kind_of_item_has_a_line():
    assert conversation_text("T", [turn("Hi", *EVERYTHING)]).splitlines() == [
        "T",
        "  you: Hi",
        "  demo (thinking): Hm.",
        "  demo: Hello",
        '  demo (call): tide(port="Brest")',
        "  result: 6.5 [1 images]",
        "  demo: [image, 26 characters]",
        "  demo: [image https://example.org/a.png]",
        "  demo: [audio/wav, 5 bytes]",
        "  demo: [embedding of 1,000 numbers]",
    ]
    assert tags(conversation_html("T", [turn("Hi", *EVERYTHING)])).seen == {"div", "b", "details", "summary"}


def test_what_a_model_or_a_tool_wrote_is_only_text():
    items = [
        words(HOSTILE),
        {"type": "tool_call.done", "name": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "tool_call_id": "c"},
        {"type": "tool_result.done", "text": HOSTILE, "tool_call_id": "c"},
        {"type": "image_url.done", "image_url": HOSTILE},
    ]
    hostile = turn(HOSTILE, *items, error=ValueError(HOSTILE), state="failed")
    html = conversation_html(HOSTILE, [hostile]) + Answer(hostile)._repr_html_()
    assert tags(html).seen <= {"div", "b", "i", "details", "summary", "span"}


def test_nothing_is_left_that_would_be_typeset():
    said = turn("$5 and $6", words(r"$\href{javascript:alert(1)}{x}$ \(y\) $$z$$"))
    bare = conversation_html("a $x$ chat", [said]).replace("<span>$</span>", "").replace("<span>\\</span>", "")
    assert "$" not in bare and "\\" not in bare
    assert "$" not in Answer(said)._repr_html_().replace("<span>$</span>", "")


def test_keys_are_hidden():
    leaky = turn(f"my key {KEY}", words(f"your key {KEY}"), error=ValueError(KEY), state="failed")
    shown = [
        conversation_text("T", [leaky]),
        conversation_html("T", [leaky]),
        repr(Answer(leaky)),
        Answer(leaky)._repr_html_(),
        conversation_text("T", [turn("x" * 80 + " " + KEY)]),
    ]
    assert all("aB3dE5" not in text for text in shown)


def test_long_conversations_and_long_items_are_bounded():
    long = [turn(f"prompt {n}", *[words("x" * 10_000)] * 20) for n in range(200)]
    text, html = conversation_text("T", long), conversation_html("T", long)
    count = 200 * 21 - ITEMS
    assert f"... {count:,} more items before" in text and f"{count:,} more items before" in html
    assert text.count("\n") == ITEMS + 1 and "prompt 198" not in text
    assert len(text) < 10_000 and len(html) < 60_000
    tags(html)
    assert html.count("<details open>") == 1 and html.count("<details") == 1
    assert len(repr(Answer(long[0]))) < 210_000 and len(repr(Answer(turn("p", words("y" * 10**6))))) < 21_000


def test_the_last_items_are_shown_each_under_its_turn():
    short = [turn(f"prompt {n}", words(f"answer {n}")) for n in range(30)]
    html = conversation_html("T", short)
    assert html.count("<details") == ITEMS // 2 and html.count("<details open>") == 1
    assert "40 more items before" in html and "answer 20" in html and "answer 19" not in html
    assert "more item" not in conversation_html("T", short[:10]) + conversation_text("T", short[:10])
    assert "1 more item before" in conversation_text("T", [turn("Hi", *[words("x")] * ITEMS)])


def test_thinking_and_calls_are_folded_and_name_what_they_are():
    html = conversation_html("T", [turn("Hi", *EVERYTHING)])
    assert "<details><summary><b>demo (thinking)</b> Hm.</summary>" in html
    assert "<details><summary><b>result</b> 6.5 [1 images]</summary>" in html
    assert "<div><b>demo</b><div" in html


def test_reprs_say_neither_times_nor_ids():
    one, other = turn("Hi", words("Hello"), started=1.0, duration=2.0), turn("Hi", words("Hello"), started=9.0)
    assert one.id != other.id
    assert conversation_html("T", [one]) == conversation_html("T", [other])
    assert conversation_text("T", [one]) == conversation_text("T", [other])


def test_what_is_not_usual_is_said():
    assert repr(Answer(turn("Hi", words("Hel"), state="partial"))) == "Hel\n[interrupted]"
    assert repr(Answer(turn("Hi", words("Hello"), reason="answer"))) == "Hello"
    assert "[running]" in conversation_text("T", [turn("Hi", state="running")])
    assert "limit of requests" in conversation_text("T", [turn("Hi", reason="max_turns")])
    assert "failed: ValueError: bad" in conversation_text("T", [turn("Hi", state="failed", error=ValueError("bad"))])


def test_showing_a_conversation_loads_no_ipython():
    code = """
import sys
from mmsp_nb import reprs, turns, answer
turn = turns.Turn("m", [{"role": "user", "content_items": [{"type": "text.done", "text": "hi"}]}])
reprs.conversation_html("T", [turn]); repr(answer.Answer(turn)); answer.Answer(turn)._repr_html_()
print([name for name in ("IPython", "httpx", "ipywidgets") if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == "[]"


def test_half_an_emoji_can_be_printed() -> None:
    halves = turn("prompt \ud83d", words("answer \ud83d"))
    shown = [conversation_text("t", [halves]), conversation_html("t", [halves]), repr(Answer(halves))]
    assert all(text.encode("utf-8") for text in shown)
    assert "prompt ?" in shown[0] and "answer ?" in shown[2]
