"""The Stop button's kernel side: where it is offered, what it costs, what a click does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import SETUP, Kernel

from mmsp_nb.notebook import stopping
from mmsp_nb.notebook.stopping import AFTER, Page, Stoppable, served_kernel

FILE = "kernel-0b1cd0e8-9a3a-4c4e-8a58-1f9a3c1d2e3f.json"
SERVER = {"JPY_SESSION_NAME": "a.ipynb", "JPY_PARENT_PID": "4711"}


@pytest.fixture
def connection(tmp_path: Path) -> str:
    """The connection file of a kernel whose server still runs."""
    (tmp_path / "jpserver-4711.json").write_text("{}")
    return str(tmp_path / FILE)


def test_a_kernel_of_a_jupyter_server_is_known_by_its_id(connection: str) -> None:
    assert served_kernel(SERVER, connection, {}) == "0b1cd0e8-9a3a-4c4e-8a58-1f9a3c1d2e3f"


@pytest.mark.parametrize(
    ("environ", "modules"),
    [
        ({}, {}),  # nbclient, a terminal, VS Code with its own kernel
        ({**SERVER, "JPY_PARENT_PID": "4712"}, {}),  # nbclient within a notebook
        ({**SERVER, "JPY_SESSION_NAME": "a-jvsc-0b1cd0e8.ipynb"}, {}),  # VS Code with a server
        (SERVER, {"google.colab": None}),
        ({**SERVER, "COLAB_RELEASE_TAG": "release"}, {}),
    ],
)
def test_elsewhere_there_is_no_button(environ: dict[str, str], modules: dict[str, Any], connection: str) -> None:
    assert served_kernel(environ, connection, modules) is None
    assert served_kernel(SERVER, connection.replace("kernel-", "other-"), {}) is None


class Widget:
    def __init__(self) -> None:
        self.comm: Any = object()
        self.sent: list[Any] = []
        self.changes: list[dict[str, Any]] = []
        self.running: dict[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "running" and value != {}:
            self.changes.append(value)

    def send(self, message: Any) -> None:
        self.sent.append(message)


@pytest.fixture
def widgets(monkeypatch: pytest.MonkeyPatch) -> list[Widget]:
    """The widgets that were made, with a server in front."""
    made: list[Widget] = []

    def make(page: Page) -> Widget:
        made.append(Widget())
        return made[-1]

    page = Page(make)
    monkeypatch.setattr(stopping, "_here", lambda number: "the-kernel")
    monkeypatch.setattr(stopping, "page_of", lambda kernel: page)
    monkeypatch.setattr(stopping, "_loaded", lambda: True)
    return made


def test_a_short_answer_sends_nothing_and_a_long_one_twice(widgets: list[Widget]) -> None:
    answer = Stoppable(lambda: None, 0.0)
    answer.tick(AFTER - 0.01)
    answer.end()
    answer.tick(AFTER + 1)
    assert widgets == []
    for _ in range(3):
        answer = Stoppable(lambda: None, 0.0)
        answer.tick(AFTER)
        answer.tick(AFTER + 1)
        (how,) = widgets[0].running.values()
        assert how == {"way": "message", "wait": 0}
        answer.end()
        assert widgets[0].running == {}
    assert len(widgets) == 1, "one widget, however many answers"
    widgets[0].comm = None  # closed with all others
    answer = Stoppable(lambda: None, 0.0)
    answer.tick(AFTER)
    assert len(widgets) == 2


def test_before_a_blocking_tool_it_is_offered_for_later(widgets: list[Widget]) -> None:
    answer = Stoppable(lambda: None, 10.0)
    marked = answer.mark({"text/html": '<div class="mmsp" style="x">a</div>'})["text/html"]
    assert "data-mmsp-run" in marked and "busy" not in marked
    answer.busy(10.1)
    (how,) = widgets[0].running.values()
    assert how["wait"] == pytest.approx((AFTER - 0.1) * 1000, abs=1)
    marked = answer.mark({"text/html": '<div class="mmsp" style="x">a</div>'})["text/html"]
    assert marked.startswith('<div class="mmsp" data-mmsp-run="') and ' data-mmsp-busy=""' in marked
    answer.busy(10.2, -1)
    assert "busy" not in answer.mark({"text/html": '<div class="mmsp">a</div>'})["text/html"]
    other = {"text/html": "<b>ours is not in it</b>"}
    assert answer.mark(other) == other
    answer.end()
    assert answer.mark({"text/html": '<div class="mmsp">a</div>'})["text/html"] == '<div class="mmsp">a</div>'


def test_a_click_is_confirmed_and_stops_only_what_it_means(widgets: list[Widget]) -> None:
    stopped: list[str] = []
    answers = {name: Stoppable(lambda name=name: stopped.append(name), 0.0) for name in "ab"}
    for answer in answers.values():
        answer.tick(AFTER)
    page, widget = answers["a"]._page, widgets[0]
    assert page is not None
    first, second = widget.running
    for message in ({"op": "stop", "id": second}, {"op": "stop", "id": "nobody"}, "nonsense", {"op": "other"}):
        page.received(widget, message)
    assert stopped == ["b"]
    assert widget.sent == [{"op": "heard", "id": second}, {"op": "heard", "id": "nobody"}]
    answers["a"].end()
    page.received(widget, {"op": "stop", "id": first})
    assert stopped == ["b"], "it has ended"


def test_broken_widgets_cost_the_button_and_not_the_answer(
    widgets: list[Widget], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(page: Page) -> Any:
        raise RuntimeError("no widgets")

    monkeypatch.setattr(stopping, "page_of", lambda kernel: Page(broken))
    answer = Stoppable(lambda: None, 0.0)
    answer.tick(AFTER)
    answer.end()


# --- in a kernel ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that takes this process for its Jupyter server."""
    env = {"MMSP_NB_LIVE": "1", "JPY_SESSION_NAME": "a.ipynb", "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))}
    runtime = tmp_path_factory.mktemp("runtime")
    (runtime / f"jpserver-{os.getpid()}.json").write_text("{}")
    kernel = Kernel(env, file=runtime / FILE)
    try:
        assert kernel.run(SETUP).status == "ok"
        yield kernel
    finally:
        kernel.close()


def clicked(kernel: Kernel, code: str) -> Any:
    """Run a cell, click as soon as its button is there; ``after_interrupt`` counts from the click."""
    begun: list[float] = []

    def click(message: dict[str, Any]) -> bool:
        running = message["content"].get("data", {}).get("state", {}).get("running")
        if not begun and running:
            content = {"op": "stop", "id": next(iter(running))}
            data = {"comm_id": message["content"]["comm_id"], "data": {"method": "custom", "content": content}}

            def send() -> None:
                begun.append(time.time())
                kernel.client.shell_channel.send(kernel.client.session.msg("comm_msg", data))

            threading.Timer(0.05, send).start()
        return False

    cell = kernel.run(code, interrupt_when=click)
    cell.after_interrupt = cell.messages[-1]["at"] - begun[0]
    return cell


@pytest.mark.kernel
def test_a_click_ends_an_awaited_cell_as_an_interrupt_does(served: Kernel) -> None:
    took = []
    for script in ("[30]", "[text('one '), 30]", "[text('one '), 30]"):
        served.run(f"talk({script})")
        cell = clicked(served, "%%mmsp\ngo")
        assert (cell.status, cell.ename) == ("error", "KeyboardInterrupt")
        assert len(cell.traceback) == 1
        comms = [m["msg_type"] for m in cell.messages if m["msg_type"].startswith("comm")]
        assert comms.count("comm_msg") <= 3, "that it runs, that the click was heard, that it has ended"
        assert comms.count("comm_open") in (0, 2), "the widget and its layout, the first time"
        took.append(cell.after_interrupt)
        assert "data-mmsp" not in json.dumps([data for _, data in cell.screen()])
        served.run("client.scripts.append([text('again')])")
        assert served.run("%%mmsp\nand now?").texts() == "again"
        assert served.value("main.turns[-2].state") == "partial"
    assert min(took) < 0.2


@pytest.mark.kernel
def test_a_short_answer_sends_no_comm_message(served: Kernel) -> None:
    served.run("talk([text('short')])")
    cell = served.run("%%mmsp\ngo")
    assert not [m for m in cell.messages if m["msg_type"].startswith("comm")]


@pytest.mark.kernel
def test_a_click_on_an_awaited_ask_of_ones_own_ends_it_too(served: Kernel) -> None:
    served.run("talk([text('one '), 30])")
    cell = clicked(served, "await main.ask_async('go')")
    assert cell.status == "error"
    assert served.value("[main.turns[-1].state, main.turns[-1].text]") == ["partial", "one "]


@pytest.mark.kernel
def test_what_the_stop_left_goes_on(served: Kernel) -> None:
    served.run("talk([text('one '), 30], [text('two')])")
    cell = clicked(served, "%%mmsp\ncount")
    assert "about" in cell.screen()[0][1]["text/html"], "the tokens are estimated, and say so"
    assert served.value("main.turns[-1].estimated")
    assert served.run("%mmsp continue").texts() == "two"
    assert served.value("[len(m['content_items']) for m in main.messages]") == [1, 1, 1, 1]


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
def test_the_pages_own_tests_pass() -> None:
    command = ["node", "--test", str(Path(__file__).with_name("stop.test.mjs"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


SNAPSHOT = (
    "(lambda t: [t.state, t.text, t.estimated, t.usage, [o.status for o in t.outcomes], t.pending is None,"
    " [[m['role'], [i['type'] for i in m['content_items']]] for m in t.history], len(client.closed)])(main.turns[-1])"
)
SCRIPTS = {
    "in a text": "[text('one ')[:1], 30]",
    "in arguments": "[text('one '), call('wait', seconds=1)[:2], 30]",
    "in an asynchronous tool": "[text('one '), call('wait', seconds=30)]",
}
WAIT = (
    "@tool\nasync def wait(seconds: int):\n    'Waits'\n    print('waiting')\n"
    "    client.paused.set()\n    await asyncio.sleep(seconds)"
)
ABORT = (
    "import threading\nfrom mmsp_nb import AbortSignal\nsignal = AbortSignal()\n"
    "threading.Thread(target=lambda: client.paused.wait(30) and signal.abort()).start()\nmain.ask('go', signal=signal)"
)


@pytest.mark.kernel
@pytest.mark.parametrize("where", SCRIPTS)
def test_every_way_to_stop_leaves_the_same(served: Kernel, where: str) -> None:
    left = {}
    served.run(WAIT)
    shown = "waiting" if "tool" in where else "wait" if "arguments" in where else "one"
    for way in ("interrupt", "click", "abort", "%mmsp stop"):
        served.run(f"talk({SCRIPTS[where]}, tools=[wait])")
        if way == "interrupt":
            served.run("%%mmsp\ngo", interrupt_when=lambda m: shown in str(m["content"]))
        elif way == "click":
            clicked(served, "%%mmsp\ngo")
        elif way == "abort":
            cell = served.run(ABORT)
            assert cell.ename == "AbortError"
        else:
            served.run("%%mmsp --background\ngo")
            served.run("assert client.paused.wait(30)\n%mmsp stop")
            while not served.value("main.turns and main.turns[-1].state != 'running'"):
                pass
        left[way] = served.value(SNAPSHOT)
        assert served.value("main.running") is False
        served.run("client.scripts.append([text('again')])")
        assert served.run("%%mmsp\nand now?").texts() == "again"
    first = left["interrupt"]
    assert first[:3] == ["partial", "one ", where != "in an asynchronous tool"]
    assert left == dict.fromkeys(left, first)
