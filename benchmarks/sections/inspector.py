"""The inspector in a browser: how soon a long conversation is there, and what goes over the wire."""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

from rig import HERE, Bench, Section, table

PLACE = 80
TESTS = str(HERE.parent / "tests" / "browser")
MEMORY = (
    f"import sys; sys.path.insert(0, {TESTS!r})\nimport gc, inspected\n"
    "rss = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6\n"
)


def run(bench: Bench) -> list[Section]:
    sys.path[:0] = [TESTS, str(HERE.parent / "scripts")]
    from install import find_chromium
    from jupyter_driver import FLAGS, Jupyter
    from playwright.sync_api import sync_playwright

    from mmsp_nb.testing import FakeProvider

    chromium = find_chromium()
    if chromium is None:
        return []
    rows = []
    with sync_playwright() as playwright, FakeProvider() as provider:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        env = {"OPENAI_BASE_URL": provider.url("/v1"), "OPENAI_API_KEY": "test-key-of-the-fake"}
        with Jupyter(browser, **env) as jupyter:
            for items in (1_000, 10_000):
                found = [opened(jupyter, items) for _ in range(bench.rounds(3))]
                middle = [statistics.median(each[n] for each in found) for n in range(5)]
                sizes = [f"{value / 1000:.0f} kB" for value in middle[2:4]]
                rows.append([f"{items:,}", f"{middle[0]:.0f} ms", f"{middle[1]:.0f}", *sizes, f"{middle[4]:.1f} MB"])
            messages, size, text = followed(jupyter, provider)
        browser.close()
    head = ("items", "first paint", "messages", "bytes", "saved notebook", "kernel memory")
    live = (
        f"An answer of 5,000 deltas ({text:,} characters) into an open inspector: {messages} messages, "
        f"{size / 1000:.0f} kB."
    )
    return [
        Section(
            "The inspector",
            "`chat.browse()` in JupyterLab and Chromium, from Shift+Enter to the first answer drawn; what the kernel "
            "sends the widget until then, its code included; the notebook's file without the widget's state ("
            "110 kB, nearly all code, where a front end keeps it); the growth of the kernel. It is to take less than a "
            "second on a machine with nothing else to do. No peer.",
            below=[table(head, rows), live],
        )
    ]


def opened(jupyter: Any, items: int) -> tuple[float, int, int, int, float]:
    """Milliseconds to the first paint, messages, their bytes, bytes of the file, megabytes that the kernel grew by."""
    from page_scripts import PAINTED, SPY

    setup = f"{MEMORY}chat = inspected.long({items})\ngc.collect(); before = rss()"
    notebook = jupyter.notebook(setup, "chat.browse()", "gc.collect(); print(rss() - before)")
    page = notebook.page
    page.evaluate(SPY)
    notebook.run(0)
    page.evaluate(PAINTED)
    page.evaluate("() => { window.wire.length = 0; }")
    notebook.cell(1).locator(".cm-content").click()
    page.evaluate("() => (window.began = performance.now())")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("() => window.painted")
    elapsed = page.evaluate("() => window.painted - window.began")
    wire = page.evaluate("() => window.wire.slice()")
    notebook.run(2)
    grown = float(notebook.output(2).inner_text())
    size = len(json.dumps(notebook.saved()))
    notebook.close()
    return elapsed, len(wire), sum(wire), size, grown


def followed(jupyter: Any, provider: Any) -> tuple[int, int, int]:
    """Messages and bytes while an answer of 5,000 deltas comes, and its length."""
    from page_scripts import SPY

    from mmsp_nb.testing import Reply, parts, wire

    words = [*(f"{n % 10} " for n in range(4_999)), "the end."]
    provider.add(Reply.stream(wire.chat.frames([parts.text(*words)])))
    chat = "import mmsp_nb\nchat = mmsp_nb.Conversation('fake', client_type='openai-chat', tools=[])\nchat.browse()"
    notebook = jupyter.notebook("%load_ext mmsp_nb", chat, "await chat.ask_async('Count.')")
    page = notebook.page
    page.evaluate(SPY)
    notebook.run(0, 1)
    page.locator(".mmsp-inspector textarea").wait_for()
    page.evaluate("() => { window.wire.length = 0; }")
    notebook.run(2)
    page.locator(".mmsp-inspector .row.answer").get_by_text("the end.").wait_for(state="attached")
    sizes = page.evaluate("() => window.wire")
    notebook.close()
    return len(sizes), sum(sizes), sum(map(len, words))
