"""While an answer streams nothing jumps under a reader, nothing shrinks, and a screen reader gets it as it is."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from jupyter_driver import Notebook, expect

from mmsp_nb.testing import FakeProvider, Gate, Reply, encode, parts, wire

pytestmark = pytest.mark.browser

LOAD = "%load_ext mmsp_nb"
ABOVE = "print('\\n'.join(f'line {n} above' for n in range(60)))"
FAKE = "%%mmsp -m fake --client-type openai-chat\nGo on."
SECTION = """## The tide at {n}

The **tide** at port {n} follows the moon: two high waters a day, about *twelve and a half hours* apart, see
[the almanac](https://example.org/almanac/{n}) or `almanac.html`.

| port | range | spring |
|---|---:|---:|
| Brest {n} | 4.2 m | 6.1 m |
| Saint-Malo | 8.1 m | 11.9 m |

```python
def height(t, a=4.1, period=12.42):
    # metres above chart datum
    return a * cos(2 * pi * t / period)
```

1. look at the moon
2. look at the **coast**
   - bays amplify
3. ask the harbour master

> Time and tide wait for no man.

Range is $r = h_1 - h_0$ and

$$ h(t) = a \\cos(2 \\pi t / T) $$

"""

WATCH = """cell => {
    const area = cell.querySelector('.jp-OutputArea');
    const watched = window.watched = { heights: [], tops: [], places: [] };
    const view = document.querySelector('.jp-WindowedPanel-outer') || document.querySelector('.jp-Notebook');
    const look = () => {
        const anchor = window.anchor;
        watched.heights.push(area.getBoundingClientRect().height);
        if (anchor) { watched.tops.push(anchor.getBoundingClientRect().top); watched.places.push(view.scrollTop); }
        window.watching = requestAnimationFrame(look);
    };
    look();
}"""
STOP = "() => { cancelAnimationFrame(window.watching); return window.watched; }"


def slow(text: str, size: int, gates: list[Gate]) -> Reply:
    """An answer in deltas of ``size`` characters, one for each gate that opens."""
    deltas = [text[at : at + size] for at in range(0, len(text), size)]
    role, *frames = encode(wire.chat.frames([parts.text(*deltas)]))
    body: list[Any] = [role]
    for frame, _ in zip(frames, deltas, strict=False):
        gates.append(Gate())
        body += [gates[-1], frame]
    return Reply([*body, *frames[len(deltas) :]], headers={"content-type": "text/event-stream"})


def pour(gates: list[Gate], period: float) -> None:
    """Open gate after gate, ``period`` seconds apart."""
    pause = threading.Event()
    for gate in gates:
        gate.open()
        pause.wait(period)


def largest_fall(heights: list[float]) -> float:
    """By how much the height was ever less than it had been before."""
    highest = worst = 0.0
    for height in heights:
        highest = max(highest, height)
        worst = max(worst, highest - height)
    return worst


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_reader_who_has_scrolled_up_stays_where_they_are(
    open_notebook: Any, provider: FakeProvider, app: str
) -> None:
    gates: list[Gate] = []
    # what has more than a hundred lines Notebook puts into a box that scrolls by itself, whoever wrote it
    sections = 6 if app == "lab" else 2
    provider.add(slow("".join(SECTION.format(n=n) for n in range(sections)), 16, gates))
    notebook: Notebook = open_notebook(LOAD, ABOVE, FAKE, app=app)
    # not higher than a section: a browser keeps the line where the caret is in its place while it can be seen
    notebook.page.set_viewport_size({"width": 1100, "height": 620})
    notebook.run(0, 1)
    notebook.start(2)
    head = len(gates) // sections
    pour(gates[:head], 0.004)
    first = notebook.output(2).locator("h2").first
    expect(notebook.output(2)).to_contain_text("Time and tide")
    first.scroll_into_view_if_needed()
    notebook.page.mouse.move(500, 400)
    notebook.page.mouse.wheel(0, -150)  # the reader's own hand, after which nothing may move
    notebook.page.wait_for_timeout(300)
    first.evaluate("element => { window.anchor = element.closest('.jp-OutputArea-child'); }")
    notebook.cell(2).evaluate(WATCH)
    pour(gates[head:], 0.006)
    notebook.finished(2)
    watched = notebook.page.evaluate(STOP)
    assert len(watched["tops"]) > 10, "the page was hardly ever drawn"
    assert max(watched["tops"]) - min(watched["tops"]) <= 1, "what was read has moved"
    assert max(watched["places"]) - min(watched["places"]) <= 1


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_an_output_grows_and_does_not_shrink(open_notebook: Any, provider: FakeProvider, app: str) -> None:
    gates: list[Gate] = []
    provider.add(slow("".join(SECTION.format(n=n) for n in range(3)), 9, gates))
    notebook: Notebook = open_notebook(LOAD, FAKE, app=app)
    notebook.run(0)
    notebook.cell(1).evaluate(WATCH)
    notebook.start(1)
    pour(gates, 0.008)
    notebook.finished(1)
    watched = notebook.page.evaluate(STOP)
    assert max(watched["heights"]) > 800
    line = notebook.output(1).locator("p").first.evaluate("p => parseFloat(getComputedStyle(p).lineHeight) || 20")
    assert largest_fall(watched["heights"]) <= 1.5 * line


TOOL = '''import mmsp_nb

@mmsp_nb.tool
def get_weather(city: str) -> str:
    """The weather in a city right now."""
    return "14 °C, rain"'''


def test_a_screen_reader_gets_headings_tables_code_and_folds(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(Reply.stream(wire.chat.frames([parts.text(SECTION.format(n=1))])))
    notebook: Notebook = open_notebook(LOAD, FAKE, TOOL, "%%mmsp -m demo --new\nWhat's the weather in London?")
    notebook.run(0, 1, 2, 3)
    answer = notebook.output(1).aria_snapshot()
    for said in (
        '- heading "The tide at 1" [level=2]',
        '- link "the almanac"',
        "- table",
        '- columnheader "port"',
        '- cell "Saint-Malo"',
        "- code",
        "- listitem: look at the moon",
        "- blockquote",
    ):
        assert said in answer, answer
    call = notebook.output(3).locator("summary").first
    assert "get_weather" in (call.text_content() or "")
    assert "succeeded" in call.aria_snapshot(), "a mark alone says nothing aloud"
    area = notebook.output(3)
    call.focus()
    notebook.page.keyboard.press("Enter")
    assert call.evaluate("summary => summary.parentElement.open"), "folds have to open from the keyboard"
    expect(area).to_contain_text("14 °C")
