"""Answers behind their cell, beside each other, in frames; and cells run again: in JupyterLab and Notebook."""

from __future__ import annotations

from typing import Any

import pytest
from jupyter_driver import expect

from mmsp_nb.testing import FakeProvider, Gate, Reply, parts, wire

LOAD = "%load_ext mmsp_nb"
TURNS = (
    "chat = get_ipython().magics_manager.registry['MMSPMagics'].chats.find()\n"
    "print([(t.prompt, t.stale) for t in chat.turns])"
)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_background_answer_reaches_its_cell_when_that_has_ended(open_notebook: Any, app: str) -> None:
    slow = "%%mmsp --background\ndemo: slow 0.3"
    notebook = open_notebook(LOAD, slow, "print('mean' + 'while')", app=app)
    notebook.run(0, 1, 2)
    assert "meanwhile" in notebook.output(2).inner_text()
    notebook.output(1).get_by_text("→").wait_for()  # the tokens, below a complete answer
    assert "meanwhile" not in notebook.output(1).inner_text()
    assert "mmsp" not in notebook.output(2).inner_text()


def test_a_cell_run_again_replaces_its_turn_by_the_id_that_the_front_end_sends(open_notebook: Any) -> None:
    notebook = open_notebook(LOAD, "%%mmsp\nhello", "%%mmsp\nhello", TURNS)
    notebook.run(0, 1, 2, 1, 3)
    assert "[('hello', False), ('hello', True)]" in notebook.output(3).inner_text()


def test_columns_stand_beside_each_other_and_html_in_a_frame(open_notebook: Any) -> None:
    notebook = open_notebook(LOAD, "%%mmsp --compare demo,demo:fast\nhello", "%%mmsp --format html\nhello")
    notebook.run(0, 1, 2)
    heads = notebook.output(1).get_by_text("demo", exact=True).first, notebook.output(1).get_by_text("demo:fast").first
    first, second = (head.bounding_box() for head in heads)
    assert first["y"] == pytest.approx(second["y"], abs=2)
    assert first["x"] < second["x"]
    frame = notebook.output(2).locator("iframe")
    assert frame.get_attribute("sandbox") == ""


@pytest.mark.parametrize("form", ["json", "text", "markdown"])
def test_long_lines_break_between_words(open_notebook: Any, form: str) -> None:
    notebook = open_notebook(LOAD, f"%%mmsp --format {form}\nShow me Python code for fibonacci")
    notebook.run(0, 1)
    pre = notebook.output(1).locator("pre").first
    assert pre.evaluate("pre => getComputedStyle(pre).wordBreak") == "normal"


TWO_STEPS = """import mmsp_nb
@mmsp_nb.tool(ask=True)
def wipe(path: str) -> str:
    "Wipe a path."
    print("wiping")
    return "all of it"
"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_what_a_button_lets_run_is_shown_to_its_end(open_notebook: Any, app: str) -> None:
    notebook = open_notebook(LOAD, TWO_STEPS, '%%mmsp\nCall wipe with path="x"', app=app)
    notebook.run(0, 1, 2)
    notebook.output(2).get_by_role("button", name="Approve").click()
    expect(notebook.output(2)).to_contain_text("all of it.")
    expect(notebook.output(2)).to_contain_text("wiping")
    expect(notebook.output(2).get_by_text("✓")).to_have_count(1)
    expect(notebook.output(2)).not_to_contain_text("●")
    expect(notebook.output(2)).not_to_contain_text("◌")


def test_a_model_that_fails_leaves_the_others_their_columns(open_notebook: Any) -> None:
    notebook = open_notebook(LOAD, "%%mmsp --compare demo,no-such-model\nhello")
    notebook.run(0, 1)
    output = notebook.output(1)
    failed = output.get_by_text("✗ RoutingError", exact=False)
    assert "no-such-model" in failed.inner_text()
    assert failed.evaluate("line => getComputedStyle(line).color != getComputedStyle(line.parentElement).color")
    assert "→" in output.get_by_text("demo ·", exact=False).inner_text()


TYPE = "import pydantic\nclass Tides(pydantic.BaseModel):\n    port: str\n    highs: list[float]\n    advice: str"


def test_a_typed_answer_shows_its_fields_while_they_come(open_notebook: Any, provider: FakeProvider) -> None:
    text = '{"port": "Brest", "highs": [6.4, 6.6], "advice": "Leave <b>early</b>."}'
    gate = Gate()
    frames = wire.chat.frames([parts.text(*(text[at : at + 5] for at in range(0, len(text), 5)))])
    held = len(Reply.stream(frames[:10]).content)
    provider.add(Reply.stream(frames).hold(gate, at=held))
    notebook = open_notebook(
        LOAD, TYPE, "%%mmsp -m fake --client-type openai-chat --type Tides --out tides\nGo on.", "tides.value"
    )
    notebook.run(0, 1)
    notebook.start(2)
    heads = notebook.output(2).locator("th[scope=row]")
    expect(heads).to_have_text(["port", "highs"])
    assert notebook.is_running(2)
    gate.open()
    notebook.finished(2)
    expect(heads).to_have_text(["port", "highs", "advice"])
    expect(notebook.output(2)).to_contain_text("Leave <b>early</b>.")
    outputs = notebook.saved()["cells"][2]["outputs"]
    assert [each["data"]["text/plain"] for each in outputs] == [text]
    notebook.run(3)
    expect(notebook.output(3)).to_contain_text("port='Brest'")
