"""The box of the inspector in a real notebook: files, variables, cells, and what keys and screen readers find."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
from jupyter_driver import Notebook, expect
from playwright.sync_api import Locator

from mmsp_nb.testing import FakeProvider, Reply, parts, wire

pytestmark = pytest.mark.browser

CHAT = """import mmsp_nb
limits = {'low': 1, 'high': 7}
box = mmsp_nb.chat("fake", client_type="openai-chat", tools=[])
box"""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SETUP = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport inspected"
EVENT = """(box, [kind, name, type, data]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([Uint8Array.from(atob(data), c => c.charCodeAt(0))], name, {type}));
    const options = {bubbles: true, cancelable: true};
    const event = kind === 'paste' ? new ClipboardEvent('paste', {...options, clipboardData: carried})
        : new DragEvent(kind, {...options, dataTransfer: carried});
    box.dispatchEvent(event);
}"""


def answer(said: str) -> Reply:
    return Reply.stream(wire.chat.frames([parts.text(said)]))


def inspector(notebook: Notebook, cell: int) -> Locator:
    return notebook.output(cell).locator(".mmsp-inspector")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_files_are_picked_pasted_and_dropped_and_what_cannot_go_says_so(
    open_notebook: Any, provider: FakeProvider, app: str
) -> None:
    provider.add(answer("A dot, and a table."))
    notebook = open_notebook(CHAT, app=app)
    notebook.run(0)
    box = inspector(notebook, 0)
    field, files = box.get_by_label("Your message"), box.locator(".strip .file")
    box.locator("input[type=file]").set_input_files(
        [
            {"name": "table.csv", "mimeType": "text/csv", "buffer": b"x,y\n1,2\n"},
            {"name": "film.mp4", "mimeType": "video/mp4", "buffer": b"\0\0\0\x18ftyp"},
        ]
    )
    expect(files).to_have_count(1)
    expect(box.get_by_role("alert")).to_contain_text("film.mp4 is neither a picture")
    data = base64.b64encode(PNG).decode()
    field.evaluate(EVENT, ["paste", "pasted.png", "image/png", data])
    expect(files).to_have_count(2)
    expect(box.get_by_role("alert")).to_have_count(0)
    box.locator(".list").evaluate(EVENT, ["drop", "dropped.txt", "text/plain", base64.b64encode(b"low tide").decode()])
    expect(files).to_have_count(3)
    box.get_by_role("button", name="Do not attach dropped.txt").click()
    expect(files).to_have_count(2)
    field.fill("What is it, {{limits['high']}}?")
    field.press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("A dot, and a table.")
    expect(files).to_have_count(0)
    expect(box.locator(".row.media img")).to_be_visible()
    content = provider.last.body["messages"][-1]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    assert content[1]["text"] == "What is it, 7?\n\ntable.csv:\n```\nx,y\n1,2\n```"


def test_a_large_photograph_is_made_smaller_before_it_is_sent(open_notebook: Any, provider: FakeProvider) -> None:
    from PIL import Image

    provider.add(answer("Noise."))
    picture = io.BytesIO()
    Image.effect_noise((3000, 2000), 90).save(picture, "PNG")
    assert len(picture.getvalue()) > 4_000_000
    notebook = open_notebook(CHAT)
    notebook.run(0)
    box = inspector(notebook, 0)
    box.locator("input[type=file]").set_input_files(
        [{"name": "photo.png", "mimeType": "image/png", "buffer": picture.getvalue()}]
    )
    expect(box.locator(".strip .file img")).to_be_visible()
    box.get_by_label("Your message").press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("Noise.")
    assert len(provider.last.body["messages"][-1]["content"][0]["image_url"]["url"]) < 2_100_000


def test_a_failing_expression_says_so_in_the_box_and_the_text_stays(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("Seven."))
    notebook = open_notebook(CHAT, "box.conversation.turns")
    notebook.run(0)
    box = inspector(notebook, 0)
    field = box.get_by_label("Your message")
    field.fill("High is {{limts}}")
    field.press("Enter")
    expect(box.get_by_role("alert")).to_contain_text("{{limts}}: NameError: name 'limts' is not defined")
    expect(box.get_by_role("alert")).to_contain_text("did you mean 'limits'")
    expect(field).to_have_value("High is {{limts}}")
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("[]")
    field.fill("")
    field.press_sequentially("High is {{lim")
    expect(box.get_by_role("option", name="limits")).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(field).to_have_value("High is {{limits}}")
    field.press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("Seven.")
    assert provider.last.body["messages"][0]["content"][0]["text"] == 'High is {"low":1,"high":7}'


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_talk_becomes_a_notebook_that_opens(open_notebook: Any, provider: FakeProvider, app: str) -> None:
    provider.add(answer("High water is at six."))
    notebook = open_notebook(CHAT, app=app)
    notebook.run(0)
    box = inspector(notebook, 0)
    box.get_by_label("Your message").fill("When is high water?")
    box.get_by_label("Your message").press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("at six")
    box.get_by_label("Keep this conversation").select_option("cells")
    link = box.locator(".note a")
    expect(link).to_have_text(re.compile(r"Chat(-\d+)?\.ipynb"))
    with notebook.page.context.expect_page() as opened:
        link.click()
    page = opened.value
    expect(page.locator(".jp-Notebook .jp-CodeCell").last).to_contain_text("When is high water?")
    expect(page.locator(".jp-Notebook .jp-CodeCell").last).to_contain_text("High water is at six.")
    page.close()


def test_a_link_of_a_cell_opens_the_notebook_beside(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("High water is at six."))
    ask = "%%mmsp -m fake --client-type openai-chat\nWhen is high water?"
    notebook = open_notebook("%load_ext mmsp_nb", ask, "%mmsp cells beside.ipynb")
    notebook.run(0, 1, 2)
    notebook.output(2).get_by_role("link", name="beside.ipynb").click()
    opened = notebook.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").last
    expect(opened).to_contain_text("High water is at six.")


def test_documents_are_downloaded(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("At six."))
    notebook = open_notebook(CHAT)
    notebook.run(0)
    box = inspector(notebook, 0)
    box.get_by_label("Your message").fill("When?")
    box.get_by_label("Your message").press("Enter")
    expect(box.locator(".row.answer")).to_contain_text("At six.")
    for form, name, said in (("markdown", "Chat.md", "At six."), ("python", "Chat.py", "chat.ask('When?')")):
        with notebook.page.expect_download() as download:
            box.get_by_label("Keep this conversation").select_option(form)
        assert download.value.suggested_filename == name
        assert said in download.value.path().read_text()


def test_formulas_are_drawn(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer(r"So $e^{i\pi} = -1$, at a price of $5, and $$\int_0^1 x\,dx = \frac{1}{2}$$"))
    notebook = open_notebook(CHAT)
    notebook.run(0)
    box = inspector(notebook, 0)
    box.get_by_label("Your message").fill("Euler?")
    box.get_by_label("Your message").press("Enter")
    expect(box.locator(".row.answer math")).to_have_count(2)
    fraction = box.locator(".row.answer mfrac").bounding_box()
    assert fraction is not None and fraction["height"] > 15, "numerator above denominator"


def test_tab_goes_through_it_in_order_and_only_the_active_items_buttons_stop_it(open_notebook: Any) -> None:
    setup = SETUP
    notebook = open_notebook(setup, "chat = inspected.long(100)\nchat.split(3)\nchat.checkout('main')\nchat.browse()")
    notebook.run(0, 1)
    box, page = inspector(notebook, 1), notebook.page
    expect(box.locator(".row.turn").first).to_be_visible()
    name = """() => { const one = document.activeElement;
        return one.closest('.mmsp-inspector') ? one.getAttribute('aria-label') || one.textContent : null; }"""
    box.get_by_role("button", name="Undo").focus()
    met = []
    for _ in range(30):
        met.append(page.evaluate(name))
        if met[-1] and met[-1].startswith("Send"):
            break
        page.keyboard.press("Tab")
    assert met[:3] == ["Undo", "Redo", "Keep this conversation"] and met[3].startswith("main")
    order = [name for name in met if name and not name.startswith(("Forget", "Compare"))]
    assert order[4] == "Search in this conversation" and order[5:11] == [
        "You", "Answers", "Thinking", "Tools", "Media", "Errors",
    ]  # fmt: skip
    assert order[11].startswith("Go to the next error") and order[12].startswith("Items;")
    assert order[-3].startswith("Attach") and order[-2:] == ["Your message", "Send (Enter)"] and len(order) == 16

    box.get_by_role("feed").focus()
    page.keyboard.press("End")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    expect(box.locator(".row.active.turn, .row.active.you, .row.active.thinking")).to_be_focused()
    page.keyboard.press("Home")
    expect(box.locator(".row.active.turn")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate(name) == "Branch off after this turn"
    page.keyboard.press("Tab")
    assert page.evaluate(name).startswith("Edit the question")
    page.keyboard.press("Escape")
    expect(box.locator(".row.active")).to_be_focused()
    box.locator(".list").hover()
    page.mouse.wheel(0, 6_000)
    expect(box.locator(".row.active")).to_have_count(0)
    assert page.evaluate(name).startswith("Items;"), "focus stays in the list when its item has scrolled away"


def test_what_a_screen_reader_is_told(open_notebook: Any) -> None:
    setup = SETUP
    notebook = open_notebook(setup, "inspected.long(100).browse()")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    expect(box.locator(".row.turn").first).to_be_visible()
    expect(box.get_by_role("article").first).to_be_visible()
    box.get_by_role("feed").focus()
    notebook.page.keyboard.press("End")
    expect(box.locator(".row.active.answer")).to_be_focused()
    tree = box.aria_snapshot()
    for line in (
        'region "Conversation"', 'meter "context window"' if "meter" in tree else "", 'button "Errors"',
        'combobox "Keep this conversation"', 'searchbox "Search in this conversation"', 'group "Show only"',
        'feed "Items; arrow keys move', 'article "Turn, quiet-model, done', 'article "Tool call measure, ok"',
        'button "The item as it is"', 'textbox "Your message"', 'button "Send (Enter)"',
        'button "Attach pictures or text files',
    ):  # fmt: skip
        assert line in tree, line
    unnamed = box.evaluate(
        """box => [...box.querySelectorAll('button, select, input, textarea, [role=img], [role=article], [tabindex]')]
            .filter(one => one.getClientRects().length && !(one.getAttribute('aria-label') || one.textContent.trim()))
            .map(one => one.outerHTML.slice(0, 100))"""
    )
    assert unnamed == []
