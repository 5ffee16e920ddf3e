"""The inspector while things go on around it: drafts, filters, narrow places, a kernel that is restarted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jupyter_driver import PANEL, Notebook, expect
from playwright.sync_api import Locator

from mmsp_nb.testing import FakeProvider, Gate, Reply, parts, wire

pytestmark = pytest.mark.browser

SETUP = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport inspected, mmsp_nb"
CHAT = """import mmsp_nb
chat = mmsp_nb.Conversation("fake", client_type="openai-chat", name="Tides", tools=[])"""
RESTART = f"async () => {{ {PANEL} await panel.sessionContext.session.kernel.restart(); }}"
OUTSIDE = """box => { const edge = box.getBoundingClientRect();
    return [...box.querySelectorAll('header *, .branches *, .tools *, .form *, .row, .row.active button')]
        .filter(one => one.getClientRects().length && !one.closest('.tabs'))
        .filter(one => one.getBoundingClientRect().right > edge.right + 1)
        .concat([...box.querySelectorAll('.row.active button')]
            .filter(one => one.getBoundingClientRect().left < edge.left))
        .map(one => one.outerHTML.slice(0, 90)); }"""


def answer(said: str, gate: Gate | None = None) -> Reply:
    frames = wire.chat.frames([parts.text(said, " And that is all.")])
    whole = Reply.stream(frames)
    return whole if gate is None else whole.hold(gate, at=len(Reply.stream(frames[:2]).content))


def inspector(notebook: Notebook, cell: int) -> Locator:
    return notebook.output(cell).locator(".mmsp-inspector")


def ask(box: Locator, question: str) -> None:
    box.get_by_label("Your message").fill(question)
    box.get_by_label("Your message").press("Enter")


def edit(box: Locator, row: int = 0) -> None:
    turn = box.locator(".row.turn").nth(row)
    turn.hover()
    turn.get_by_role("button", name="Edit the question").click()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_restarted_kernel_is_told_of_calmly_and_the_text_stays(
    open_notebook: Any, provider: FakeProvider, app: str
) -> None:
    gate = Gate()
    provider.add(answer("It is rising.", gate))
    notebook = open_notebook(CHAT, "chat.browse()", app=app)
    failed: list[str] = []
    notebook.page.on("pageerror", lambda error: failed.append(str(error)))
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    ask(box, "How is the tide?")
    expect(box.locator(".row.answer")).to_contain_text("It is rising.")
    notebook.page.evaluate(RESTART)
    expect(box.locator(".note")).to_contain_text("run the cell again to go on")
    gate.open()
    expect(box.get_by_role("button", name="Send (Enter)")).to_be_disabled()
    expect(box.get_by_role("button", name="Undo", exact=True)).to_be_disabled()
    ask(box, "And the wind?")
    box.get_by_role("button", name="Undo", exact=True).press("Enter")
    expect(box.get_by_label("Your message")).to_have_value("And the wind?")
    expect(box.get_by_label("Your message")).to_be_editable()
    expect(box.locator(".row.answer")).to_contain_text("It is rising.")
    assert "busy" not in (box.text_content() or "") and failed == []
    notebook.run(0, 1)
    expect(box.locator(".empty")).to_contain_text("Ask fake")
    expect(box.get_by_role("button", name="Send (Enter)")).to_be_enabled()


def test_a_draft_is_there_again_after_an_edit(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("It is rising."), answer("It is falling."))
    notebook = open_notebook(CHAT, "chat.browse()")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    field = box.get_by_label("Your message")
    ask(box, "How is the tide?")
    expect(box.locator(".row.answer")).to_contain_text("that is all")
    field.fill("And the wind?")
    edit(box)
    expect(field).to_have_value("How is the tide?")
    field.press("Escape")
    expect(field).to_have_value("And the wind?")
    edit(box)
    expect(field).to_have_value("How is the tide?")
    field.fill("How is it now?")
    field.press("Escape")
    expect(field).to_have_value("And the wind?\n\nHow is it now?")
    field.fill("And the wind?")
    edit(box)
    expect(field).to_have_value("How is the tide?")
    edit(box)
    expect(field).to_have_value("How is the tide?")
    ask(box, "How is it now?")
    expect(box.locator(".row.answer")).to_contain_text("It is falling.")
    expect(field).to_have_value("And the wind?")


def test_a_refused_question_comes_back_with_what_was_typed_since(open_notebook: Any, provider: FakeProvider) -> None:
    provider.add(answer("It is rising."))
    notebook = open_notebook(CHAT, "chat.browse()", "chat.config['pace'] = 1")
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    field = box.get_by_label("Your message")
    ask(box, "How is the tide?")
    expect(box.locator(".row.answer")).to_contain_text("that is all")
    notebook.run(2)
    field.fill("And the wind?")
    edit(box)
    expect(field).to_have_value("How is the tide?")
    ask(box, "How is it now?")
    expect(box.get_by_role("alert")).to_contain_text("the config has no key 'pace'")
    expect(field).to_have_value("How is it now?")
    expect(box.locator(".editing")).to_contain_text("Asks again in a new branch")
    field.press("Escape")
    expect(field).to_have_value("And the wind?\n\nHow is it now?")


def test_a_question_shows_its_answer_whatever_was_filtered(open_notebook: Any, provider: FakeProvider) -> None:
    gate = Gate()
    provider.add(answer("It is rising.", gate))
    notebook = open_notebook(CHAT, "chat.browse()", "chat.browse()")
    notebook.run(0, 1, 2)
    box, other = inspector(notebook, 1), inspector(notebook, 2)
    for one in (box, other):
        one.get_by_role("button", name="Tools", exact=True).click()
        one.get_by_role("searchbox").fill("pelican")
        expect(one.locator(".empty")).to_contain_text("nothing matches")
    ask(box, "How is the tide?")
    expect(box.locator(".row.answer")).to_contain_text("It is rising.")
    expect(box.get_by_role("searchbox")).to_have_value("")
    expect(box.get_by_role("button", name="Tools", exact=True)).to_have_attribute("aria-pressed", "false")
    ask(box, "And the wind?")
    expect(box.get_by_role("alert")).to_contain_text("an answer is still coming")
    expect(box.get_by_label("Your message")).to_have_value("And the wind?")
    expect(other.locator(".empty")).to_contain_text("nothing matches")
    gate.open()
    expect(box.get_by_role("alert")).to_have_count(0)
    expect(other.get_by_role("searchbox")).to_have_value("pelican")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_all_of_it_can_be_reached_where_it_is_narrow(open_notebook: Any, app: str) -> None:
    shown = """from IPython.display import display
import ipywidgets
ipywidgets.Box([inspected.scene().browse()], layout={'width': '300px', 'display': 'block'})"""
    notebook = open_notebook(SETUP, shown, app=app)
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    expect(box.locator(".row.turn").first).to_be_visible()
    width = box.bounding_box()
    assert width is not None and 250 < width["width"] <= 300
    box.get_by_role("feed").focus()
    notebook.page.keyboard.press("End")
    for _ in range(2):
        notebook.page.keyboard.press("ArrowUp")
    expect(box.locator(".row.active.turn")).to_be_focused()
    assert box.evaluate(OUTSIDE) == []
    feed = box.get_by_role("feed")
    assert feed.evaluate("list => list.scrollWidth <= list.clientWidth")


def test_long_words_of_strangers_do_not_make_it_wider(open_notebook: Any) -> None:
    chat = "word = 'w' * 400\nchat = inspected.hostile([f'{n}{word}' for n in range(6)])\nchat.browse()"
    notebook = open_notebook(SETUP, chat)
    notebook.run(0, 1)
    box = inspector(notebook, 1)
    expect(box.locator(".row.media").first).to_be_visible()
    assert box.get_by_role("feed").evaluate("list => list.scrollWidth <= list.clientWidth")
    assert box.evaluate(OUTSIDE) == []
