"""--background, --compare, stop and keep, cell ids, in a real kernel."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from kernels import Cell, Kernel

pytestmark = pytest.mark.kernel


def wait_for(kernel: Kernel, expression: str) -> None:
    """Run cells until ``expression`` is true; the kernel stays free in between."""
    deadline = time.monotonic() + 60
    while not kernel.value(f"bool({expression})"):
        assert time.monotonic() < deadline, f"{expression} never came true"


FREE = "not get_ipython().magics_manager.registry['MMSPMagics'].chats.behind.count()"


def later(kernel: Kernel, first: Cell, do: str) -> tuple[list[dict[str, Any]], Cell]:
    """Run ``do``, and collect what was sent meanwhile for the cell ``first``."""
    sent: list[dict[str, Any]] = []
    parent = first.messages[0]["parent_header"]["msg_id"]
    get = kernel.client.get_iopub_msg

    def tapped(timeout: float | None = None) -> dict[str, Any]:
        message: dict[str, Any] = get(timeout=timeout)
        if message["parent_header"].get("msg_id") == parent:
            sent.append(message)
        return message

    kernel.client.get_iopub_msg = tapped
    try:
        cell = kernel.run(do)
        wait_for(kernel, FREE)
    finally:
        kernel.client.get_iopub_msg = get
    return sent, cell


def test_a_background_cell_ends_at_once_and_is_answered_behind(kernel: Kernel) -> None:
    kernel.run("go = threading.Event()\ntalk([go, text(*['word%d ' % i for i in range(30)])], pace=0.02)")
    cell = kernel.run("%%mmsp --background --out reply\ngo")
    assert cell.status == "ok"
    assert [m["msg_type"] for m in cell.drawn] == ["display_data"]
    place = cell.drawn[0]["content"]["transient"]["display_id"]
    sent, other = later(kernel, cell, f"print('meanwhile', {FREE}); go.set()")
    assert other.streams == "meanwhile False\n"
    updates = [m for m in sent if m["msg_type"] == "update_display_data"]
    assert len(updates) >= 3
    assert {m["content"]["transient"]["display_id"] for m in updates} == {place}
    assert "word0 word1" in updates[-1]["content"]["data"]["text/plain"]
    assert "word29" in updates[-1]["content"]["data"]["text/html"]
    assert kernel.value("reply.text") == kernel.value("_mmsp.text")


GO_WHEN_AWAITED = """
go, behind = threading.Event(), get_ipython().magics_manager.registry['MMSPMagics'].chats.behind
def announced(chat, say):
    found = type(behind)._announced(behind, chat, say)
    if found:
        go.set()
    return found
behind._announced = announced
"""


def test_a_second_question_waits_its_turn_and_says_so(kernel: Kernel) -> None:
    kernel.run(GO_WHEN_AWAITED + "talk([go, text('one')], [text('two')], [text('three')])")
    kernel.run("%%mmsp --background\nfirst")
    second = kernel.run("%%mmsp --background\nsecond")
    assert "waits for another answer of this chat" in second.drawn[0]["content"]["data"]["text/plain"]
    third = kernel.run("%%mmsp\nthird")
    assert "waiting for this chat's answer in the background" in third.streams
    assert kernel.value("[(t.prompt, t.text) for t in main.turns]") == [
        ["first", "one"],
        ["second", "two"],
        ["third", "three"],
    ]
    kernel.run("del behind._announced")


def test_different_chats_answer_at_the_same_time(kernel: Kernel) -> None:
    kernel.run(
        "both = threading.Event();"
        "a = Conversation(client=Scripted([text('a'), both, text('A')]));"
        "b = Conversation(client=Scripted([text('b'), both, text('B')]))"
    )
    kernel.run("%%mmsp --chat a --background\ngo")
    kernel.run("%%mmsp --chat b --background\ngo")
    wait_for(kernel, "a.client.sent and b.client.sent")
    kernel.run("both.set()")
    wait_for(kernel, FREE)
    first, second = kernel.value("[[a.client.sent[0], a.client.closed[0]], [b.client.sent[0], b.client.closed[0]]]")
    assert second[0] < first[1], "b began before a had ended"


def test_stop_ends_background_answers_and_what_waits(kernel: Kernel) -> None:
    kernel.run("%mmsp use main\ntalk([text('begun '), 30, text('never')], [text('never')])")
    first = kernel.run("%%mmsp --background\nfirst")
    kernel.run("%%mmsp --background\nsecond")
    wait_for(kernel, "client.sent")
    sent, stop = later(kernel, first, "%mmsp stop")
    assert "stopping 2 answers" in stop.streams
    assert kernel.value("[(t.prompt, t.state, t.text) for t in main.turns]") == [["first", "partial", "begun "]]
    assert "stopped after" in sent[-1]["content"]["data"]["text/html"]
    assert "nothing is being answered" in kernel.run("%mmsp stop").streams


def test_an_error_behind_is_told_in_the_output(kernel: Kernel) -> None:
    kernel.run("go = threading.Event()\ntalk([text('half'), go, RuntimeError('broken {pipe}')])")
    cell = kernel.run("%%mmsp --background\ngo")
    sent, _ = later(kernel, cell, "go.set()")
    assert sent[-1]["content"]["data"]["text/plain"].splitlines()[-1] == "RuntimeError: broken {pipe}"


def test_tools_run_behind_and_a_rerun_takes_its_place(kernel: Kernel) -> None:
    kernel.run("def add(a: int, b: int):\n    'Add'\n    return a + b")
    kernel.run("talk([call('add', a=1, b=2)], [text('three')], [text('again')], tools=[add])")
    for _ in range(2):
        run_as(kernel, "cell-1", "%%mmsp --background\ngo")
        wait_for(kernel, FREE)
    assert kernel.value("[t.text for t in main.turns]") == ["again"]
    assert kernel.value("[o.value for o in main.branches['main~1'][0].outcomes]") == [3]


def test_unwatched_it_is_asked_in_the_cell(unwatched: Kernel) -> None:
    unwatched.run("talk([text('now')])")
    assert unwatched.run("%%mmsp --background\ngo").texts() == "now"


def run_as(kernel: Kernel, cell_id: str, code: str) -> Cell:
    """Run a cell under an id, as JupyterLab does."""
    session, send = kernel.client.session, kernel.client.session.send

    def with_id(stream: Any, message: Any, *args: Any, **options: Any) -> Any:
        if isinstance(message, dict) and message.get("msg_type") == "execute_request":
            message["metadata"]["cellId"] = cell_id
        return send(stream, message, *args, **options)

    session.send = with_id
    try:
        return kernel.run(code)
    finally:
        session.send = send


def test_a_cell_run_again_replaces_its_turn(kernel: Kernel) -> None:
    kernel.run("talk([text('one')], [text('two')], [text('ONE')])")
    run_as(kernel, "a", "%%mmsp\nfirst")
    run_as(kernel, "b", "%%mmsp\nsecond")
    run_as(kernel, "a", "%%mmsp\nfirst")
    assert kernel.value("[(t.text, t.stale) for t in main.turns]") == [["ONE", False], ["two", True]]


def test_watched_and_unwatched_runs_make_the_same_conversation(kernel: Kernel, unwatched: Kernel) -> None:
    cells = ["%%mmsp\njoke", "%%mmsp\njoke", "%%mmsp --background\nlast"]
    made = []
    for each, ids in ((kernel, True), (unwatched, False)):
        each.run("talk([text('a')], [text('b')], [text('c')])")
        for number, code in enumerate(cells):
            run_as(each, f"id-{number}", code) if ids else each.run(code)
        wait_for(each, FREE)
        made.append(each.value("[(t.prompt, t.text, t.state) for t in main.turns]"))
    assert made[0] == made[1] == [["joke", "a", "done"], ["joke", "b", "done"], ["last", "c", "done"]]


COMPARED = """
talk([text('before')])
y_is_drawn = threading.Event()
def hook(message):
    if 'y said' in str(message['content']):
        y_is_drawn.set()
    return message
get_ipython().display_pub.register_hook(hook)
x = Scripted([text('from ', 'x'), y_is_drawn, text('!')], model='x')
y = Scripted([0.1, text('y said')], model='y')
z = Scripted([text('half'), RuntimeError('z broke')], model='z')
"""


def test_columns_stream_together_and_one_may_fail(kernel: Kernel) -> None:
    kernel.run(COMPARED)
    kernel.run("%%mmsp\nfirst")
    cell = run_as(kernel, "c", "%%mmsp --compare x,y,z,nonsense-model --out answers\nsecond")
    kernel.run("get_ipython().display_pub.unregister_hook(hook)")
    assert cell.status == "ok", cell.evalue
    drawn = cell.drawn
    assert {m["content"]["transient"]["display_id"] for m in drawn} == {drawn[0]["content"]["transient"]["display_id"]}
    html = [m["content"]["data"]["text/html"] for m in drawn]
    assert any("y said" in each and "!" not in each.split("from x", 1)[-1][:40] for each in html), (
        "y was there before x"
    )
    plain = drawn[-1]["content"]["data"]["text/plain"]
    for part in ("== x", "== y\ny said", "RuntimeError: z broke", "no vendor is known for model 'nonsense-model'"):
        assert part in plain
    assert "120 → 45 tokens" in html[-1]
    assert kernel.value("{k: v.text for k, v in answers.items()}") == {"x": "from x!", "y": "y said", "z": "half"}
    assert kernel.value("len(main.turns)") == 1
    assert "did you mean" in kernel.run("%mmsp keep nonsense-modle").evalue
    assert "the answer of y is the answer of this chat" in kernel.run("%mmsp keep y").streams
    assert kernel.value("[(t.text, t.model) for t in main.turns]") == [["before", "scripted-model"], ["y said", "y"]]
    kernel.run("%mmsp keep 1")
    assert kernel.value("[t.text for t in main.turns]") == ["before", "from x!"]
    assert kernel.value("[len(m['content_items']) for m in client.history]") == [1, 1, 1, 2]


def test_what_was_compared_does_not_fit_a_chat_that_went_on(kernel: Kernel) -> None:
    kernel.run("talk([text('on')])\nx = Scripted([text('x')], model='x'); y = Scripted([text('y')], model='y')")
    kernel.run("%%mmsp --compare x,y\ngo")
    kernel.run("%%mmsp\nanother")
    assert "went on since" in (kernel.run("%mmsp keep x").evalue or "")


def test_an_interrupt_stops_all_columns_and_keeps_what_came(kernel: Kernel) -> None:
    kernel.run("talk()\nx = Scripted([text('x one '), 30], model='x'); y = Scripted([text('y one '), 30], model='y')")

    def both(message: dict[str, Any]) -> bool:
        shown = json.dumps(message["content"], default=str)
        return "x one" in shown and "y one" in shown

    cell = kernel.run("%%mmsp --compare x,y\ngo", interrupt_when=both)
    assert cell.ename == "KeyboardInterrupt"
    assert len(cell.traceback) == 1
    assert cell.drawn[-1]["content"]["data"]["text/html"].count("stopped") == 2
    kernel.run("%mmsp keep y")
    assert kernel.value("[(t.text, t.state) for t in main.turns]") == [["y one ", "partial"]]
