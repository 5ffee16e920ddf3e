"""An answer as it is stored: exported and printed, on a code host, reopened, in a notebook nobody trusts."""

from __future__ import annotations

import io
import itertools
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import bleach
import nbformat
import pypdf
import pytest
from hostile_payloads import PAYLOADS
from jupyter_driver import Jupyter, Notebook, document, expect
from nbconvert import HTMLExporter, MarkdownExporter
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parents[1] / "notebook"))

import scripted

from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.testing import FakeProvider, Reply, Style, parts, wire
from mmsp_nb.testing.streams import PNG
from mmsp_nb.tools import ToolOutcome

pytestmark = pytest.mark.browser

LOAD = "%load_ext mmsp_nb"
FAKE = "%%mmsp -m fake --client-type openai-chat\nGo on."
ANSWER = """High water is **highest** after the new moon.

| port | range |
|---|---:|
| Saint-Malo | 11.9 m |

```python
def height(t):
    return 3.5 + 2.9 * cos(t)
```

1. look at the moon
2. ask the harbour master

The height is $h(t) = a \\cos t$.
"""
ODD = "\x1b[31mred\x1b[0m nul\x00 half\ud83d over\u202eride " + "x" * 10_000 + "\r\nnew line"


def said(*items: Any) -> list[dict[str, Any]]:
    return [{"type": "event", "event": event} for event in itertools.chain.from_iterable(items)]


def an_answer() -> list[dict[str, Any]]:
    """Thinking, a call, text of all kinds, a picture."""
    sent: list[Any] = []
    output = LiveOutput(sent.append, live=False)
    called = scripted.call("tides", port="Brest")
    item = dict(called[-1]["content_items"][0])
    for event in said(scripted.thinking("Spring tide is near."), scripted.text("Let me see. "), called):
        output.event(event, 0.0)
    output.event({"type": "turn_end", "turn": 1, "usage_metadata": None, "finish_reason": "stop", "calls": [item]}, 0.0)
    output.call_started(item, 0.0)
    output.call_ended(ToolOutcome(item, None, value="6.1 m", text="6.1 m"), 0.0)
    for event in said(scripted.text(ANSWER), scripted.picture(PNG)):
        output.event(event, 0.0)
    output.close(1.0)
    return [{"output_type": "display_data", "data": each.data, "metadata": each.metadata} for each in sent]


def stored(found: list[dict[str, Any]]) -> dict[str, Any]:
    notebook = document(["%%mmsp\nWhen is high water?"])
    notebook["cells"][0]["outputs"] = found
    notebook["cells"][0]["execution_count"] = 1
    return notebook


def exported(notebook: dict[str, Any]) -> str:
    body, _ = HTMLExporter().from_notebook_node(nbformat.from_dict(notebook))
    return str(body)


class _Texts(HTMLParser):
    """The text that a page shows, and the elements that are left."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_reads_well_as_a_page_and_in_print(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "answer.html"
    path.write_text(exported(stored(an_answer())), encoding="utf-8")
    page = browser.new_page()
    page.route(re.compile("^https?:"), lambda route: route.abort())  # MathJax of a distant host
    page.goto(path.as_uri())
    drawn = page.locator(".jp-OutputArea")
    expect(drawn.locator("summary")).to_have_count(2)
    expect(drawn.locator("table td").first).to_have_text("Saint-Malo")
    assert drawn.locator("table td").nth(1).evaluate("cell => getComputedStyle(cell).textAlign") == "right"
    keyword = drawn.locator("pre .mmsp-k").first
    assert keyword.evaluate("word => getComputedStyle(word).color != getComputedStyle(word.parentElement).color")
    assert drawn.locator("img").count() == 1
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(media="print")
    for text in ("High water is highest", "Saint-Malo", "ask the harbour master"):
        expect(drawn).to_contain_text(text)
    printed = " ".join(each.extract_text() for each in pypdf.PdfReader(io.BytesIO(page.pdf())).pages)
    words = " ".join(printed.split())
    for text in (
        "High water is highest",
        "Saint-Malo",
        "def height",
        "ask the harbour master",
        '(port="Brest") → 6.1 m',
    ):
        assert text in words, words
    page.close()


def test_as_markdown_it_is_what_the_model_wrote() -> None:
    body, _ = MarkdownExporter().from_notebook_node(nbformat.from_dict(stored(an_answer())))
    data = [each["data"] for each in an_answer()]
    assert [each["text/markdown"] for each in data if "text/markdown" in each] == ["Let me see. ", ANSWER]
    assert "Saint-Malo" in body


def test_a_code_host_leaves_something_that_reads_well() -> None:
    html = "".join(each["data"].get("text/html", "") for each in an_answer())
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    allowed = {
        "a", "b", "blockquote", "br", "code", "del", "details", "div", "em", "h1", "h2", "h3", "hr", "i", "img", "li",
        "ol", "p", "pre", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
    }  # fmt: skip
    left = bleach.clean(html, tags=allowed, attributes={"a": ["href"], "img": ["src", "alt"]}, strip=True)
    page = _Texts(left)
    assert {"details", "table", "pre", "ol", "strong"} <= set(page.elements)
    assert "Thinking" in page.text
    assert 'tides(port="Brest") → 6.1 m' in page.text
    assert "def height(t):\n    return 3.5 + 2.9 * cos(t)" in page.text
    assert "h(t) = a \\cos t" in page.text
    assert "{" not in page.text.replace('{\n  "port"', ""), "styles stand there as text"


def test_in_a_notebook_nobody_trusts_it_is_drawn_all_the_same(servers: Callable[[str, str], Jupyter]) -> None:
    notebook = servers("lab", "light").open(stored(an_answer()))
    output = notebook.output(0)
    expect(output).to_contain_text("High water is highest")
    expect(output.locator("summary")).to_have_count(2)
    expect(output.locator("table td").first).to_have_text("Saint-Malo")
    expect(output.locator("pre")).not_to_have_count(0)
    assert "mmsp-k{" not in output.inner_text()
    notebook.close()


def reply(text: str) -> Reply:
    return Reply.stream(
        wire.chat.frames([parts.text(*(text[at : at + 50] for at in range(0, len(text), 50)))]), Style(ascii=True)
    )


def harmless(page: Any) -> None:
    """Nothing has run, also when everything was touched."""
    for element in page.locator(".mmsp a, .mmsp summary, .mmsp code, .mmsp td").all()[:300]:
        element.dispatch_event("mouseover")
        element.dispatch_event("focus")
    page.wait_for_timeout(300)
    assert page.evaluate("() => window.pwned") is None


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_sixty_attacks_fail_in_a_fresh_cell_reopened_and_exported(
    open_notebook: Any, provider: FakeProvider, browser: Browser, tmp_path: Path, app: str
) -> None:
    answers = ["\n\n".join(PAYLOADS[at::4]) for at in range(4)] + [ODD]
    provider.add(*map(reply, answers))
    notebook: Notebook = open_notebook(LOAD, *[FAKE] * len(answers), app=app)
    notebook.run(*range(len(answers) + 1))
    expect(notebook.output(1)).to_contain_text("pwned")
    expect(notebook.output(5)).to_contain_text("⟨U+202E⟩")
    harmless(notebook.page)
    kept = notebook.saved()
    notebook.save()
    notebook.page.reload()
    expect(notebook.output(1)).to_contain_text("pwned")
    harmless(notebook.page)

    path = tmp_path / "attacks.html"
    path.write_text(exported(kept), encoding="utf-8")
    page = browser.new_page()
    page.route(re.compile("^https?:"), lambda route: route.abort())
    page.goto(path.as_uri())
    expect(page.locator(".jp-OutputArea").nth(1)).to_contain_text("pwned")
    harmless(page)
    page.close()


def test_the_same_attacks_run_where_nobody_cares(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("".join(f"<div>{payload}</div>" for payload in PAYLOADS if "onerror" in payload))
    page.wait_for_function("() => window.pwned > 3")
    page.close()
