"""The inspector in a real browser: what a person sees in it and does with it, and what it must never do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile_payloads import ALL_RAN, PAYLOADS
from jupyter_driver import Notebook, expect
from page_scripts import PAINTED, SPY
from playwright.sync_api import Locator

from mmsp_nb.testing import FakeProvider, Gate, Reply, parts, wire
from mmsp_nb.traces import TracePage

pytestmark = pytest.mark.browser

HERE = str(Path(__file__).parent)
PATHS = f"import sys; sys.path.insert(0, {HERE!r})\n"
CHAT = """import mmsp_nb
chat = mmsp_nb.Conversation("fake", client_type="openai-chat", name="Tides", tools=[])"""


def inspector(notebook: Notebook, cell: int) -> Locator:
    return notebook.output(cell).locator(".mmsp-inspector")


def answer(*pieces: str, gate: Gate | None = None, after: int = 0) -> Reply:
    frames = wire.chat.frames([parts.text(*pieces)])
    whole = Reply.stream(frames)
    return whole if gate is None else whole.hold(gate, at=len(Reply.stream(frames[: after + 1]).content))


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_conversation_without_writing_cells(open_notebook: Any, provider: FakeProvider, app: str) -> None:
    gate = Gate()
    provider.add(answer("The tide ", "is rising", ", and now it is high.", gate=gate, after=2), answer("As I said."))
    notebook = open_notebook(CHAT, "chat.browse()", "len(chat.turns), chat.running", app=app)
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    field = box.get_by_label("Your message")
    field.click()
    notebook.page.keyboard.type("How is the tide?")
    notebook.page.keyboard.press("Shift+Enter")
    notebook.page.keyboard.type("And the wind?")
    assert field.input_value() == "How is the tide?\nAnd the wind?"
    notebook.page.keyboard.press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("The tide is rising")
    expect(box.get_by_role("button", name="Stop the answer")).to_be_visible()
    notebook.run(2)  # the kernel is free meanwhile
    expect(notebook.output(2)).to_contain_text("(1, True)")
    gate.open()
    expect(box.locator(".row.answer")).to_contain_text("The tide is rising, and now it is high.")
    expect(box.locator(".row.you")).to_contain_text("And the wind?")
    expect(box.get_by_role("button", name="Send (Enter)")).to_be_visible()

    box.locator(".row.turn").hover()
    box.get_by_role("button", name="Edit the question").click()
    expect(field).to_have_value("How is the tide?\nAnd the wind?")
    field.fill("Once more?")
    field.press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("As I said.")
    expect(box.get_by_role("tab")).to_have_count(2)
    assert "rising" not in str(provider.last.body["messages"])
    box.get_by_role("tab", name="main").click()
    expect(box.locator(".row.answer")).to_contain_text("now it is high")


def test_undo_and_redo_look_usable_only_when_they_are(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("It is rising."))
    notebook = open_notebook(CHAT, "chat.browse()", "x = 1")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    undo, redo = box.get_by_role("button", name="Undo"), box.get_by_role("button", name="Redo")
    expect(undo).to_be_disabled()
    expect(redo).to_be_disabled()
    box.get_by_label("Your message").fill("How is the tide?")
    box.get_by_label("Your message").press("Enter")
    expect(undo).to_be_enabled()
    expect(redo).to_be_disabled()
    undo.press("Enter")
    expect(redo).to_be_enabled()
    expect(undo).to_be_disabled()
    expect(undo).to_be_focused()  # or the letters below would be commands of the notebook
    notebook.page.keyboard.press("Enter")
    notebook.page.keyboard.type("ddxx")
    expect(notebook.page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(3)
    redo.click()
    expect(box.locator(".row.answer")).to_contain_text("It is rising.")
    expect(redo).to_be_disabled()
    assert "nothing" not in (box.text_content() or "")


def test_stop_keeps_what_came(open_notebook: Any, provider: FakeProvider) -> None:
    gate = Gate()
    provider.add(answer("It is rising", " for ever.", gate=gate, after=1))
    notebook = open_notebook(CHAT, "chat.browse()", "chat.turns[-1].state, chat.turns[-1].text")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    box.get_by_label("Your message").fill("How is the tide?")
    box.get_by_label("Your message").press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("It is rising")
    box.get_by_role("button", name="Stop the answer").click()
    expect(box.locator(".row.turn .flag")).to_have_text("partial")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("('partial', 'It is rising')")


def test_it_follows_an_answer_that_a_cell_asks_for(open_notebook: Any, provider: FakeProvider) -> None:
    words = [*(f"{n % 10} " for n in range(4999)), "the end."]
    provider.add(answer(*words))
    ask = "await chat.ask_async('Count.')\nlen(list(chat.turns[-1].log))"
    notebook = open_notebook("%load_ext mmsp_nb", CHAT, "chat.browse()", ask)
    notebook.page.evaluate(SPY)
    notebook.run(0, 1, 2)
    box = inspector(notebook, 2)
    expect(box.get_by_label("Your message")).to_be_visible()
    notebook.page.evaluate("() => { window.wire.length = 0; }")
    notebook.run(3)
    expect(notebook.output(3)).to_contain_text("5002")
    expect(box.locator(".row.answer")).to_contain_text("the end.")
    sizes = notebook.page.evaluate("() => window.wire")
    text = sum(map(len, words))
    print(f"live: 5,000 deltas of {text:,} bytes in {len(sizes)} messages of {sum(sizes):,} bytes")
    assert len(sizes) < 400 and sum(sizes) < 300_000


def test_letters_do_not_reach_the_notebook_and_keys_move_and_fold(open_notebook: Any) -> None:
    setup = PATHS + "import inspected\nchat = inspected.long(100)"
    notebook = open_notebook(setup, "chat.browse()")
    notebook.run(0, 1)
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    box = inspector(notebook, 1)
    expect(box.locator(".row.turn").first).to_be_visible()
    for target in (box.get_by_role("feed"), box.get_by_label("Search in this"), box.get_by_label("Your message"),
                   box.get_by_role("button", name="Answers")):  # fmt: skip
        target.focus()
        for key in "abxyjkdd00mrz":
            notebook.page.keyboard.press(key)
    assert cells.count() == count
    expect(box.locator(".count")).to_have_text("0 rows")
    box.get_by_label("Search in this").fill("")
    expect(box.locator(".row.answer").first).to_be_visible()
    listing = box.get_by_role("feed")
    listing.focus()
    notebook.page.keyboard.press("Home")
    expect(box.locator(".row.active")).to_have_attribute("aria-posinset", "1")
    for _ in range(2):
        notebook.page.keyboard.press("ArrowDown")
    thinking = box.locator(".row.active.thinking")
    expect(thinking.locator(".toggle")).to_have_attribute("aria-expanded", "false")
    notebook.page.keyboard.press("Enter")
    expect(box.locator(".row.active .toggle")).to_have_attribute("aria-expanded", "true")
    expect(box.locator(".row.active .body")).to_contain_text("Look up station 0")
    expect(box.locator(".row.active")).to_be_focused()


def test_filter_search_and_details(open_notebook: Any) -> None:
    setup = PATHS + "import inspected\nchat = inspected.long(500)"
    notebook = open_notebook(setup, "chat.browse()")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    box.get_by_role("button", name="Tools").click()
    expect(box.locator(".count")).to_have_text("200 rows")
    box.get_by_label("Search in this").fill("station 42")
    expect(box.locator(".count")).to_have_text("2 rows")
    expect(box.locator(".row.tool .call")).to_have_text("measure(station=42)")
    row = box.locator(".row.tool")
    row.hover()
    row.get_by_role("button", name="The item as it is").click()
    expect(box.locator(".panel pre")).to_contain_text('"tool_call_id": "c42"')
    notebook.page.keyboard.press("Escape")
    expect(box.locator(".panel")).to_be_hidden()
    box.locator(".row.turn").hover()
    box.get_by_role("button", name="What was sent").click()
    expect(box.locator(".panel pre")).to_contain_text("Question 42")


@pytest.mark.parametrize("items", [1_000, 10_000])
def test_many_items_open_at_once_and_only_a_window_is_sent(open_notebook: Any, items: int) -> None:
    memory = "import gc, os, resource\nrss = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6\n"
    setup = PATHS + memory + f"import inspected\nchat = inspected.long({items})\ngc.collect(); before = rss()"
    notebook = open_notebook(setup, "chat.browse()", "gc.collect(); print('kernel MB', round(rss() - before, 1))")
    notebook.page.evaluate(SPY)
    notebook.run(0)
    notebook.page.evaluate(PAINTED)
    notebook.page.evaluate("() => { window.wire.length = 0; }")
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.evaluate("() => (window.began = performance.now())")
    notebook.page.keyboard.press("Shift+Enter")
    notebook.page.wait_for_function("() => window.painted")
    elapsed = notebook.page.evaluate("() => window.painted - window.began")
    first = notebook.page.evaluate("() => window.wire.slice()")
    box = inspector(notebook, 1)
    expect(box.locator(".row.answer").last).to_contain_text(f"At station {items // 5 - 1} the level")
    assert box.locator(".row").count() < 80
    listing = box.locator(".list")
    listing.evaluate("list => { list.scrollTop = list.scrollHeight / 2; }")
    notebook.page.wait_for_function(
        "() => { const box = document.querySelector('.mmsp-inspector');"
        " const top = box.querySelector('.list').getBoundingClientRect();"
        " return [...box.querySelectorAll('.row')].filter(row => { const at = row.getBoundingClientRect();"
        " return at.bottom > top.top && at.top < top.bottom; }).every(row => !row.classList.contains('waiting')); }"
    )
    listing.evaluate("list => { list.scrollTop = 0; }")
    expect(box.locator(".row.you").first).to_contain_text("Question 0:")
    notebook.run(2)
    saved = notebook.saved()
    size = len(json.dumps(saved["cells"][1]["outputs"]))
    print(
        f"{items} items: first paint {elapsed:.0f} ms, {len(first)} messages, {sum(first):,} bytes to it, "
        f"{size:,} bytes saved, {notebook.output(2).inner_text()}"
    )
    assert sum(first) < 400_000 and len(first) < 30
    assert size < 80_000
    assert elapsed < 4_000, "far below it on an idle machine"


def test_nothing_of_strangers_runs(open_notebook: Any) -> None:
    setup = (
        PATHS
        + "import inspected, hostile_payloads as hostile\nfrom IPython.display import HTML\n"
        + "chat = inspected.hostile(hostile.PAYLOADS)"
    )
    loose = "for n in hostile.RUNNING:\n    display(HTML(hostile.marked(n)))"
    notebook = open_notebook(setup, "chat.browse()", "chat", loose)
    notebook.run(0, 1, 2)
    box, page = inspector(notebook, 1), notebook.page
    listing = box.locator(".list")
    expect(box.locator(".row.turn").first).to_be_visible()
    seen: set[str] = set()
    listing.evaluate("list => { list.scrollTop = 0; }")
    for _ in range(400):
        page.wait_for_function("() => !document.querySelector('.mmsp-inspector .row.waiting')")
        box.evaluate("box => box.querySelectorAll('.toggle[aria-expanded=false]').forEach(toggle => toggle.click())")
        seen |= set(box.evaluate("box => [...box.querySelectorAll('.row')].map(row => row.dataset.row)"))
        if listing.evaluate("list => list.scrollTop + list.clientHeight >= list.scrollHeight - 2"):
            break
        listing.evaluate("list => { list.scrollTop += list.clientHeight * 0.8; }")
    assert len(seen) >= len(PAYLOADS) * 9, "not everything was looked at"
    for name in ("The item as it is", "What was sent", "What came back"):
        box.locator(f'button[aria-label^="{name}"]').last.evaluate("button => button.click()")
        page.wait_for_function("() => !document.querySelector('.mmsp-inspector .panel').hidden")
    box.get_by_role("button", name="Compare this").evaluate("button => button.click()")
    expect(box.locator(".compare")).to_be_visible()
    box.get_by_role("button", name="Close").click()
    notebook.output(2).evaluate("output => output.querySelectorAll('details').forEach(one => (one.open = true))")
    page.mouse.move(400, 400)
    for place in (box, notebook.output(2)):
        bad = place.evaluate(
            """place => [...place.querySelectorAll('*')].filter(one =>
                ['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'META', 'LINK', 'FORM'].includes(one.tagName)
                || [...one.attributes].some(a => a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value))
                || (one.tagName === 'IMG' && !/^data:image\\/(png|jpeg|gif|webp);/.test(one.src))
            ).map(one => one.outerHTML.slice(0, 200))"""
        )
        assert bad == []
    assert page.evaluate("() => window.pwned") is None
    # The same attacks without care: this test would notice each of them. They stand in outputs of their own, because
    # markup of one attack swallows the next ones.
    notebook.start(3)
    page.wait_for_function(ALL_RAN)


def test_without_a_kernel_and_in_a_page_the_static_view_is_there(open_notebook: Any, tmp_path: Path) -> None:
    setup = PATHS + "import inspected\nchat = inspected.long(100)"
    notebook = open_notebook(setup, "chat", "chat.browse()")
    notebook.run(0, 1, 2)
    expect(inspector(notebook, 2).locator(".row.turn").first).to_be_visible()
    saved = notebook.saved()
    path = tmp_path / "saved.ipynb"
    path.write_text(json.dumps(saved))
    subprocess.run([sys.executable, "-m", "nbconvert", "--to", "html", str(path)], check=True, capture_output=True)
    page = notebook.page.context.new_page()
    page.goto(path.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    for place in page.locator(".jp-OutputArea-output").all()[:2]:
        expect(place).to_contain_text("Question 19: how high")
    page.close()


CONTRAST = """element => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const pixel = colors => {  // colors laid over each other, as the page does
        canvas.clearRect(0, 0, 1, 1);
        for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = channels => {
        const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(channels[0]) + 0.7152 * part(channels[1]) + 0.0722 * part(channels[2]);
    };
    const behind = [];
    for (let one = element; one; one = one.parentElement) behind.unshift(getComputedStyle(one).backgroundColor);
    const two = [light(pixel(behind)), light(pixel([...behind, getComputedStyle(element).color]))];
    return (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_read_in_both_themes(open_notebook: Any, theme: str) -> None:
    setup = PATHS + "import inspected\nchat = inspected.long(100)"
    notebook = open_notebook(setup, "chat.browse()", theme=theme)
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    expect(box.locator(".row.turn").first).to_be_visible()
    for element in (".title", ".chip", ".row.turn .model", ".row.turn .facts", ".row.answer .body", ".row.you .text",
                    ".row.tool .call", ".row.thinking .peek", ".filter", ".send", ".share"):  # fmt: skip
        assert box.locator(element).first.evaluate(CONTRAST) >= 4.5, element


def test_traces_on_a_page_of_their_own(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmsp_nb import tracing

    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    for n in range(3):
        said = {"type": "text.done", "text": f"answer {n} {PAYLOADS[4]} sk-ant-api03-abcdefghijklmnop1234567890"}
        messages: Any = [
            {"role": "user", "content_items": [{"type": "text.done", "text": f"question {n}"}]},
            {"role": "assistant", "content_items": [said]},
        ]
        tracing.save(f"run/{n}", messages, {}, "some-model")
    with TracePage(tmp_path) as served:
        page = browser.new_page()
        page.goto(served.url)
        page.get_by_role("button", name="run/1").click()
        expect(page.locator(".row.answer")).to_contain_text("answer 1")
        assert "abcdefghijklmnop1234567890" not in page.content()
        assert page.get_by_label("Your message").count() == 0 or not page.get_by_label("Your message").is_visible()
        assert page.evaluate("() => window.pwned") is None
        page.close()
