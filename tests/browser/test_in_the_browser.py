"""What a person sees and does in a notebook, in a real browser with a real kernel."""

from __future__ import annotations

from typing import Any

import pytest
from jupyter_driver import Notebook, expect

from mmsp_nb.testing import FakeProvider, Gate, Reply, parts, wire

pytestmark = pytest.mark.browser

LOAD = "%load_ext mmsp_nb"
TOOL = '''import mmsp_nb

@mmsp_nb.tool
def get_weather(city: str) -> str:
    """The weather in a city right now."""
    return {"London": "14 °C, rain", "Paris": "21 °C, sunny"}[city]'''
WEATHER = "%%mmsp\nWhat's the weather in London and in Paris?"
FAKE = "%%mmsp -m fake --client-type openai-chat\nGo on."

HOSTILE = """
<script>window.pwned = "script"</script>
<img src="x" onerror="window.pwned = 'img'">
<svg onload="window.pwned = 'svg'"><animate onbegin="window.pwned = 'animate'" attributeName="x" dur="1s"></svg>
<iframe srcdoc="<script>parent.pwned = 'iframe'</script>"></iframe>
<details open ontoggle="window.pwned = 'details'"><summary>s</summary></details>
<style>body { display: none }</style>
![x](x" onerror="window.pwned='image')

[link](javascript:window.pwned='link') and <a href="javascript:window.pwned='a'">a</a>

```html" onmouseover="window.pwned='fence'
</code></pre><img src=x onerror="window.pwned='code'">
```
"""
UNSAFE = 'from IPython.display import HTML, display\ndisplay(HTML(\'<img src="x" onerror="window.pwned = 1">\'))'


def reply(*pieces: str, gate: Gate | None = None, after: int = 0) -> Reply:
    """An answer in these pieces; it waits at ``gate`` once so many of them are out."""
    frames = wire.chat.frames([parts.text(*pieces)])
    whole = Reply.stream(frames)
    if gate is None:
        return whole
    return whole.hold(gate, at=len(Reply.stream(frames[: after + 1]).content))  # the first frame is the role's


def saved_outputs(notebook: Notebook, cell: int) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = notebook.saved()["cells"][cell]["outputs"]
    return outputs


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_weather_in_two_cities(open_notebook: Any, app: str) -> None:
    notebook = open_notebook(LOAD, TOOL, WEATHER, app=app)
    notebook.run(0, 1, 2)
    output = notebook.output(2)
    expect(output).to_contain_text("London: 14 °C, rain")
    expect(output).to_contain_text("Paris: 21 °C, sunny")
    expect(output.locator("strong").first).to_have_text("London")

    calls = output.locator("details")
    expect(calls).to_have_count(2)
    expect(calls.first).to_contain_text('get_weather(city="London")')
    assert not calls.first.evaluate("call => call.open")
    calls.first.locator("summary").click()
    expect(calls.first.locator("div").first).to_be_visible()

    bundles = [entry["data"] for entry in saved_outputs(notebook, 2)]
    assert all({"text/html", "text/plain"} <= bundle.keys() for bundle in bundles)
    assert not any("widget" in kind for bundle in bundles for kind in bundle)


def test_text_is_on_the_page_while_the_model_still_writes(open_notebook: Any, provider: FakeProvider) -> None:
    gate = Gate()
    provider.add(reply("The **tide** ", "is rising", ", and now it is high.", gate=gate, after=2))
    notebook = open_notebook(LOAD, FAKE)
    notebook.run(0)
    notebook.start(1)
    expect(notebook.output(1)).to_contain_text("The tide is rising")
    assert notebook.is_running(1)
    expect(notebook.output(1)).not_to_contain_text("high")
    gate.open()
    notebook.finished(1)
    expect(notebook.output(1)).to_contain_text("The tide is rising, and now it is high.")
    assert len(saved_outputs(notebook, 1)) == 1


def test_what_comes_after_a_tool_stands_below_it(open_notebook: Any) -> None:
    printing = TOOL.replace("    return", "    print('looking out of the window in', city)\n    return")
    notebook = open_notebook(LOAD, printing, WEATHER)
    notebook.run(0, 1, 2)
    text = notebook.output(2).inner_text()
    order = ['city="London"', "window in London", 'city="Paris"', "window in Paris", "Paris: 21"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)


def test_stop_ends_the_answer_and_keeps_what_had_come(open_notebook: Any, provider: FakeProvider) -> None:
    gate = Gate()
    provider.add(reply("The tide is rising", " and never stops.", gate=gate, after=1), reply("As I said."))
    notebook = open_notebook(LOAD, FAKE, FAKE)
    notebook.run(0)
    notebook.start(1)
    expect(notebook.output(1)).to_contain_text("The tide is rising")
    notebook.interrupt()
    notebook.finished(1)
    assert provider.requests[0].left.wait(10), "the connection to the provider was not closed"
    expect(notebook.output(1)).to_contain_text("The tide is rising")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("As I said.")
    assert "The tide is rising" in str(provider.last.body["messages"])


def test_stop_ends_a_tool_that_blocks(open_notebook: Any) -> None:
    blocking = TOOL.replace(
        "    return",
        "    import threading\n    print('waiting', flush=True)\n    threading.Event().wait(600)\n    return",
    )
    notebook = open_notebook(LOAD, blocking, WEATHER, "1 + 1")
    notebook.run(0, 1)
    notebook.start(2)
    expect(notebook.output(2)).to_contain_text("waiting")
    notebook.interrupt()
    notebook.finished(2)
    notebook.run(3)
    expect(notebook.output(3)).to_contain_text("2")


def test_what_a_model_writes_never_runs_in_the_page(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(reply(*HOSTILE.splitlines(keepends=True)))
    notebook = open_notebook(LOAD, FAKE, UNSAFE)
    notebook.run(0, 1)
    output = notebook.output(1)
    expect(output).to_contain_text("<script>")
    output.hover()
    drawn = output.locator(".mmsp")
    for element in ("script", "img", "iframe", "svg", "[onerror]", "[onload]", "[ontoggle]", "[href^=javascript]"):
        expect(drawn.locator(element)).to_have_count(0)
    assert not any("body" in style for style in drawn.locator("style").all_text_contents())
    assert notebook.page.evaluate("() => window.pwned") is None
    assert notebook.page.evaluate("() => getComputedStyle(document.body).display") != "none"

    notebook.start(2)  # the same attack, drawn without care, is seen by this test
    notebook.page.wait_for_function("() => window.pwned === 1")


CONTRAST = """element => {
    const channels = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    let behind = element;
    while (behind && (channels(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const [dark, bright] = [element, behind]
        .map((each, index) => light(channels(getComputedStyle(each)[index ? 'backgroundColor' : 'color'])))
        .sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_answer_can_be_read_in_both_themes(open_notebook: Any, provider: FakeProvider, theme: str) -> None:
    provider.add(reply("Text, `code`, **bold**, a [link](https://example.org).\n\n```python\nprint('x')\n```\n"))
    notebook = open_notebook(LOAD, FAKE, TOOL, WEATHER.replace("%%mmsp", "%%mmsp -m demo"), theme=theme)
    notebook.run(0, 1, 2, 3)
    dark = notebook.page.evaluate("() => document.body.dataset.jpThemeLight === 'false'")
    assert dark == (theme == "dark")
    for element in ("p", "p code", "strong", "a", "pre code"):
        assert notebook.output(1).locator(element).first.evaluate(CONTRAST) >= 4.5, element
    assert notebook.output(3).locator("summary b").first.evaluate(CONTRAST) >= 4.5
