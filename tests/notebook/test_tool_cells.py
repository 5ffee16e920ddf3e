"""Notebook functions as tools, in a real kernel: they behave as if the user had called them in that cell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernels import Cell, Kernel

pytestmark = pytest.mark.kernel


@pytest.fixture(autouse=True)
def no_tools_left(kernel: Kernel) -> Iterator[None]:
    yield
    kernel.run("from mmsp_nb.tools import registry\nfor n in registry.names(): registry.remove(n)")


def ask(kernel: Kernel, *scripts: str, tools: str = "", magic: str = "%%mmsp", **how: Any) -> Cell:
    made = kernel.run(f"talk({', '.join([*scripts, f'tools=[{tools}]'])})")
    assert made.status == "ok", made.traceback
    return kernel.run(f"{magic}\nGo", **how)


def seen_by_model(kernel: Kernel, index: int = 0) -> str:
    text: str = kernel.value(f"client.requests[-1]['content_items'][{index}]['text']")
    return text


def kinds(cell: Cell) -> list[str]:
    return [kind for kind, _ in cell.screen()]


SALES = """
import sqlite3, pandas as pd
%matplotlib inline
import matplotlib.pyplot as plt
db = sqlite3.connect(":memory:")
db.execute("create table sales (month text, amount real)")
_ = db.executemany("insert into sales values (?, ?)", [("Jan", 10.5), ("Feb", 12), ("Mar", 8)])
@tool
def sales(minimum: float = 0) -> "pd.DataFrame":
    "Sales by month."
    frame = pd.read_sql("select * from sales where amount >= ?", db, params=[minimum])
    print("rows:", len(frame))
    frame.plot.bar(x="month", y="amount")
    return frame
"""


def test_a_tool_uses_an_earlier_cell_prints_plots_and_returns_a_frame(kernel: Kernel) -> None:
    assert kernel.run(SALES).status == "ok"
    cell = ask(kernel, "[text('Let me look. '), call('sales', minimum=9)]", "[text('Two months.')]", tools="sales")
    assert cell.status == "ok", cell.traceback
    shown = [kind for kind in kinds(cell) if kind != "status"]
    assert shown == ["text", "calls", "stream", "display", "text"]
    assert cell.streams == "rows: 2\n"
    assert any("image/png" in data for kind, data in cell.screen() if kind == "display")
    text = seen_by_model(kernel)
    assert text.encode() == (
        b"DataFrame of 2 rows and 2 columns\n"
        b"|   | month (str) | amount (float64) |\n| --- | --- | --- |\n| 0 | Jan | 10.5 |\n| 1 | Feb | 12.0 |"
    )
    assert kernel.value("type(_mmsp.calls[0].result).__name__") == "DataFrame"
    assert kernel.value("_mmsp.calls[0].result.amount.sum()") == 22.5


def test_the_person_sees_a_frame_as_a_table(kernel: Kernel) -> None:
    kernel.run(SALES)
    cell = ask(kernel, "[call('sales')]", "[text('Three.')]", tools="sales")
    html = "".join(data["text/html"] for kind, data in cell.screen() if kind == "calls")
    assert "<table" in html and "Jan" in html and "<details" in html


def test_rich_results_are_drawn_where_nothing_can_act(kernel: Kernel) -> None:
    kernel.run("""
class Card:
    def _repr_html_(self): return "<b>Ace</b><img src=http://127.0.0.1:9/x><script>alert(1)</script>"
    def __repr__(self): return "Card(Ace)"
@tool
def draw() -> Card:
    "Draws a card."
    return Card()
""")
    cell = ask(kernel, "[call('draw')]", "[text('An ace.')]", tools="draw")
    html = "".join(data["text/html"] for kind, data in cell.screen() if kind == "calls")
    assert '<iframe sandbox=""' in html and "default-src &#x27;none&#x27;" in html and "&lt;b&gt;Ace" in html
    assert "<script" not in html and "<img" not in html
    assert seen_by_model(kernel) == "Card(Ace)" and kernel.value("type(_mmsp.calls[0].result).__name__") == "Card"


def test_what_a_tool_displays_and_does_not_return_is_read_by_the_model_as_text(kernel: Kernel) -> None:
    kernel.run("""
from IPython.display import HTML, display
%matplotlib inline
import matplotlib.pyplot as plt
def page():
    display(HTML("<h2>Tides</h2><script>x()</script><table><tr><th>port</th><th>m</th></tr>"
                 "<tr><td>Brest</td><td>6.4</td></tr></table>"))
def drawing():
    plt.plot([1, 3], label="2031")
    plt.title("Growth"); plt.xlabel("year"); plt.legend()
""")
    ask(kernel, "[call('page'), call('drawing')]", "[text('Seen.')]", tools="page, drawing")
    assert seen_by_model(kernel, 0) == "Tides\nport | m\nBrest | 6.4"
    drawn = seen_by_model(kernel, 1)
    assert drawn.startswith("(displayed an image: <Figure size ")
    assert drawn.endswith("(on it: Growth; x 'year'; legend 2031)")
    assert kernel.value("len(client.requests[-1]['content_items'][1]['images'])") == 1


def test_what_is_printed_is_given_to_the_model_when_it_is_captured(kernel: Kernel) -> None:
    kernel.run("@tool(capture=True)\ndef count() -> int:\n    'Counts.'\n    print('one, two')\n    return 2")
    cell = ask(kernel, "[call('count')]", "[text('Two.')]", tools="count")
    assert cell.streams == "one, two\n" and seen_by_model(kernel) == "2\n\nPrinted:\none, two"


def test_the_latest_definition_is_called(kernel: Kernel) -> None:
    kernel.run("@tool\ndef version() -> str:\n    'Tells.'\n    return 'old'")
    kernel.run("talk([call('version')], [text('1')], [call('version')], [text('2')], tools=[version])")
    kernel.run("%%mmsp\nGo")
    kernel.run("def version(which: str = 'new') -> str:\n    'Tells.'\n    return which")
    kernel.run("%%mmsp\nGo")
    assert seen_by_model(kernel) == "new"
    assert kernel.value("main.tools.get('version').usage") == "version(which?: string)"
    assert "latest definition" in kernel.value("repr(_mmsp.calls[0])")


def test_async_tools_overlap_and_sync_ones_keep_their_order_on_the_main_thread(kernel: Kernel) -> None:
    kernel.run("""
import asyncio, threading, time
log = []
@tool
async def wait(who: str) -> str:
    "Waits."
    log.append(("begin", who)); await asyncio.sleep(0.5); log.append(("end", who))
    return who
@tool
def now(who: str) -> str:
    "Now."
    log.append(("sync", who, threading.current_thread() is threading.main_thread()))
    return who
""")
    script = "[call('wait', who='a'), call('now', who='1'), call('wait', who='b'), call('now', who='2')]"
    cell = ask(kernel, script, "[text('Done.')]", tools="wait, now")
    assert cell.status == "ok"
    log = kernel.value("log")
    assert [entry[1:] for entry in log if entry[0] == "sync"] == [["1", True], ["2", True]]
    assert log.index(["begin", "b"]) < log.index(["end", "a"])
    took = kernel.value("[c.duration for c in _mmsp.calls if c.name == 'wait']")
    assert len(took) == 2 and all(0.4 < each < 5 for each in took)
    order = kernel.value("[i['text'] for i in client.requests[-1]['content_items']]")
    assert order == ["a", "1", "b", "2"]  # results in the order of the calls


def test_of_three_calls_the_second_is_interrupted_and_the_history_stays_valid(kernel: Kernel) -> None:
    kernel.run("""
ran = []
@tool
def step(n: int) -> int:
    "Steps."
    ran.append(n); print("step", n)
    if n == 2: time.sleep(30)
    return n
""")
    script = "[call('step', n=1), call('step', n=2), call('step', n=3)]"

    def in_second(message: dict[str, Any]) -> bool:
        return message["msg_type"] == "stream" and "step 2" in message["content"]["text"]

    cell = ask(kernel, script, "[text('Go on.')]", tools="step", interrupt_when=in_second)
    assert cell.ename == "KeyboardInterrupt" and cell.after_interrupt is not None and cell.after_interrupt < 10
    assert kernel.value("ran") == [1, 2]
    assert kernel.value("[(c.arguments['n'], c.status) for c in main.turns[-1].outcomes]") == [
        [1, "ok"], [2, "interrupted"], [3, "interrupted"],
    ]  # fmt: skip
    assert kernel.run("%mmsp continue").texts() == "Go on."
    texts = kernel.value("[i['text'] for i in client.requests[-1]['content_items']]")
    assert texts[0] == "1" and all("Interrupted" in each for each in texts[1:])


def test_a_tool_that_takes_too_long_is_an_answer_to_the_model(kernel: Kernel) -> None:
    kernel.run("""
release = threading.Event() if 'threading' in globals() else __import__('threading').Event()
@tool(timeout=0.2)
def slow() -> str:
    "Slow."
    release.wait(20)
@tool(timeout=0.2)
async def slow_async() -> str:
    "Slow."
    await asyncio.sleep(20)
""")
    cell = ask(kernel, "[call('slow'), call('slow_async')]", "[text('Late.')]", tools="slow, slow_async")
    assert cell.texts() == "Late."
    for index in (0, 1):
        assert seen_by_model(kernel, index) == "Error: no result within 0.2 s"
    kernel.run("release.set()")


def test_a_failing_tool_tells_the_model_in_one_line_and_the_person_all_of_it(kernel: Kernel) -> None:
    kernel.run("@tool\ndef divide(a: int) -> float:\n    'Divides.'\n    secret_place = 0\n    return a / secret_place")
    cell = ask(kernel, "[call('divide', a=1)]", "[text('No.')]", tools="divide")
    assert seen_by_model(kernel) == "Error: ZeroDivisionError: division by zero"
    html = "".join(data["text/html"] for kind, data in cell.screen() if kind == "calls")
    assert "secret_place" in html and "Traceback" in html  # folded below the call
    debug = kernel.run("import sys; print(sys.last_value.__class__.__name__, sys.last_traceback is not None)")
    assert debug.streams.strip() == "ZeroDivisionError True"  # what %debug looks at


def test_a_typed_answer_from_a_cell(kernel: Kernel) -> None:
    kernel.run("from pydantic import BaseModel\nclass Invoice(BaseModel):\n    vendor: str\n    total: float")
    answer = "[call('give_answer', vendor='Acme', total=3.5)]"
    cell = ask(kernel, answer, tools="", magic="%%mmsp --type Invoice --out invoice")
    assert cell.status == "ok", cell.traceback
    assert kernel.value("[invoice.value.vendor, invoice.value.total]") == ["Acme", 3.5]
    for typed, said in [("Invoce", "did you mean 'Invoice'"), ("3 +", "is no type")]:
        cell = kernel.run(f"%%mmsp --type '{typed}'\nGo")
        assert cell.ename == "UsageError" and said in str(cell.evalue)


def test_built_in_tools_are_off_until_they_are_added(kernel: Kernel) -> None:
    run = r"call('run_code', code='x_new = sum(measured)\nprint(1)\nx_new')"
    looks = "[call('variables'), call('look_at', variable='measured')]"
    kernel.run(f"talk({looks}, [{run}], [text('Six.')])\nmeasured = [1, 2, 3]")
    assert kernel.run("%mmsp tools").streams.startswith("no tools")
    added = kernel.run("%mmsp tools add variables look_at run_code list_files read_file").streams
    assert "run_code(code: string)" in added
    cell = kernel.run("%%mmsp\nGo")
    assert cell.status == "ok" and "approval" in kinds(cell)
    listed = seen_by_model(kernel, 0)
    assert "measured: list of length 3" in listed and "get_ipython" not in listed and "In:" not in listed
    assert seen_by_model(kernel, 1) == "measured: list of length 3\n[1,2,3]"
    assert kernel.value("'x_new' in globals()") is False  # it waits for a word
    assert kernel.run("%mmsp approve").texts() == "Six."
    assert kernel.value("x_new") == 6 and seen_by_model(kernel).startswith("6\n\nPrinted:\n1")


def test_a_server_from_the_package_index_is_called_from_a_cell(kernel: Kernel) -> None:
    pytest.importorskip("mcp_server_time")
    command = Path(sys.executable).parent / "mcp-server-time"
    kernel.run("talk([call('clock_get_current_time', timezone='Asia/Tokyo')], [text('It is late.')])")
    added = kernel.run(f"%mmsp mcp add clock {command}", timeout=60)
    assert added.status == "ok" and "clock: connected, 2 tools" in added.streams, added.traceback
    cell = kernel.run("%%mmsp\nWhat time is it in Tokyo?")
    assert cell.texts() == "It is late." and '"timezone": "Asia/Tokyo"' in seen_by_model(kernel)
    assert kernel.run("%mmsp mcp remove clock").streams.strip() == "disconnected clock"
    assert kernel.run("%mmsp mcp add broken /no/such/thing").evalue == (
        "MCP server 'broken': there is no command '/no/such/thing'"
    )
