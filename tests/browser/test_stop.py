"""The Stop button beside a running answer, clicked: in JupyterLab and Notebook 7."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SETUP = """%load_ext mmsp_nb
import time
from mmsp_nb import tool
@tool
def get_weather(city: str):
    'The weather of a city'
    print('asking', city)
    time.sleep(30)
chats = get_ipython().magics_manager.registry['MMSPMagics'].chats
"""
STATE = "print([(t.state, t.text[:5], [o.status for o in t.outcomes]) for t in chats.find().turns[-1:]])"
BUTTON = ".mmsp-stop button"


def click(notebook: Any, cell: int, *, quick: float = 10.0) -> float:
    """Click Stop; seconds until the cell has its number. A busy machine is given ``quick``: 30 s would be left."""
    begun = time.monotonic()
    notebook.output(cell).locator("xpath=..").locator(BUTTON).click()
    notebook.finished(cell)
    took = time.monotonic() - begun
    print(f"from the click to the end of the cell: {took:.3f} s")
    assert took < quick
    expect(notebook.page.locator(BUTTON)).to_have_count(0)
    return took


def stands(notebook: Any, cell: int) -> Any:
    """The button of a cell, once it is there."""
    button = notebook.output(cell).locator("xpath=..").locator(BUTTON)
    button.wait_for()
    return button


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_click_stops_before_the_first_token_in_the_text_and_in_a_tool(open_notebook: Any, app: str) -> None:
    notebook = open_notebook(
        SETUP,
        "%%mmsp\ndemo: slow 60",
        STATE,
        "%%mmsp\ndemo: slow 0.4",
        STATE,
        "%%mmsp\nWhat is the weather in Rome?",
        STATE,
        "%%time\n%%mmsp\ndemo: slow 60",
        STATE,
        "%%mmsp\nhello",
        "from ipywidgets.widgets.widget import _instances\nprint(len(_instances))",
        app=app,
    )
    notebook.run(0)

    notebook.start(1)
    stands(notebook, 1)
    click(notebook, 1)
    assert "stopped after" in notebook.output(1).inner_text()
    notebook.run(2)
    assert "('partial', '', [])" in notebook.output(2).inner_text()

    notebook.start(3)
    expect(notebook.output(3)).to_contain_text("Hello")
    stands(notebook, 3)
    click(notebook, 3)
    notebook.run(4)
    assert "('partial', 'Hello', [])" in notebook.output(4).inner_text()

    notebook.start(5)  # a blocking tool hears no message: the server interrupts
    expect(notebook.output(5)).to_contain_text("asking Rome")
    stands(notebook, 5)
    click(notebook, 5)
    assert "interrupted" in notebook.output(5).inner_text()
    notebook.run(6)
    assert "('partial', '', ['interrupted'])" in notebook.output(6).inner_text()

    notebook.start(7)  # nor does a cell that blocks
    stands(notebook, 7)
    click(notebook, 7)
    notebook.run(8, 9, 10)
    assert "('partial', '', [])" in notebook.output(8).inner_text()
    assert "Hello" in notebook.output(9).inner_text(), "the kernel lives and the history is valid"
    assert notebook.output(10).inner_text().strip() == "2", "one widget and its layout, whatever was asked"

    saved = json.dumps(notebook.saved())
    assert "data-mmsp" not in saved
    assert "widget-view" not in saved
    assert "widgets" not in notebook.saved()["metadata"]


def test_the_button_is_for_the_keyboard_and_screen_readers_and_takes_no_room(open_notebook: Any) -> None:
    notebook = open_notebook(SETUP, "%%mmsp\ndemo: slow 60", "print('next')")
    notebook.run(0)
    notebook.start(1)
    button = notebook.page.get_by_role("button", name="Stop this answer")
    button.wait_for()
    assert button.evaluate(
        """button => {
            const root = button.parentElement;
            const next = button.closest('.jp-Cell').parentElement.lastElementChild.getBoundingClientRect();
            root.style.display = 'none';
            const without = button.closest('.jp-Cell').parentElement.lastElementChild.getBoundingClientRect();
            root.style.display = '';
            return next.top === without.top && next.height === without.height;
        }"""
    )
    box, text = button.bounding_box(), notebook.output(1).locator(".mmsp").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    assert box["x"] + box["width"] <= text["x"], "it covers no text"
    button.focus()
    notebook.page.keyboard.press("x")  # would cut the cell in command mode
    notebook.page.keyboard.press("Enter")
    notebook.finished(1)
    expect(button).to_have_count(0)
    assert notebook.cell(2).count() == 1
    assert notebook.page.evaluate("() => !!document.activeElement.closest('.jp-Cell')"), "the focus stays in the cell"


def test_short_answers_have_no_button_and_a_long_one_loses_it_at_its_end(open_notebook: Any) -> None:
    notebook = open_notebook(SETUP, "%%mmsp\nhello", "%%mmsp\ndemo: slow 0.15")
    notebook.run(0)
    notebook.page.evaluate(
        """() => {
            window.seen = 0;
            new MutationObserver(() => { window.seen += document.querySelectorAll('.mmsp-stop').length; })
                .observe(document.body, {childList: true, subtree: true});
        }"""
    )
    notebook.run(1)
    assert notebook.page.evaluate("window.seen") == 0
    notebook.run(2)
    assert notebook.page.evaluate("window.seen") > 0
    expect(notebook.page.locator(BUTTON)).to_have_count(0)
    assert "data-mmsp" not in json.dumps(notebook.saved())


def test_a_background_answer_and_compared_ones_have_their_own(open_notebook: Any) -> None:
    notebook = open_notebook(
        SETUP,
        "%%mmsp --background\ndemo: slow 60",
        "%%mmsp --background\nhello",
        "%%mmsp --chat other --background\ndemo: slow 0.3",
        "%%mmsp --chat third --compare demo,demo:fast\ndemo: slow 60",
        "print([len(chats.find(name).turns) for name in ('main', 'other')])",
    )
    notebook.run(0, 1, 2, 3)
    for cell in (1, 2, 3):
        stands(notebook, cell)
    button = notebook.output(2).locator("xpath=..").locator(BUTTON)
    assert "waits for another answer" in notebook.output(2).inner_text()
    button.click()
    expect(notebook.output(2)).to_contain_text("not asked: stopped")
    notebook.output(1).locator("xpath=..").locator(BUTTON).click()
    expect(notebook.output(1)).to_contain_text(re.compile("stopped"))
    notebook.start(4)
    stands(notebook, 4)
    click(notebook, 4)
    assert notebook.output(4).inner_text().count("stopped") >= 2
    notebook.output(3).get_by_text("→").wait_for()  # nobody stopped that one
    notebook.run(5)
    assert "[1, 1]" in notebook.output(5).inner_text()
    expect(notebook.page.locator(".mmsp-stop")).to_have_count(0)


def test_a_restarted_kernel_leaves_no_button(open_notebook: Any) -> None:
    notebook = open_notebook(SETUP, "%%mmsp\ndemo: slow 60")
    notebook.run(0)
    notebook.start(1)
    stands(notebook, 1)
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()",
    )
    expect(notebook.page.locator(".mmsp-stop")).to_have_count(0)
