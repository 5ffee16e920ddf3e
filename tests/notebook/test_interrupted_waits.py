"""Everything of ours that keeps a cell's thread hears an interrupt at once, also in a cell that awaits something first:
a kernel then only cancels the cell's task, which nobody notices while that thread is kept. And no kernel ends by it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import SETUP, Kernel
from test_kernel import SIGNAL_AT

pytestmark = pytest.mark.kernel

OLD = Path(__file__).parents[2] / ".venvs" / "ipykernel629" / "bin" / "python"

HELP = """
import mmsp_nb, os, signal, threading
from mmsp_nb import Agent, Conversation

begun = threading.Event()

def interrupt_when(event):
    "An interrupt once that has happened, from another thread."
    def wait():
        assert event.wait(20)
        os.kill(os.getpid(), signal.SIGINT)
    event.clear()
    threading.Thread(target=wait, daemon=True).start()

def block():
    "Blocks. In one long sleep, a signal just before it would wait for its end: Python looks for one before and after."
    begun.set()
    for _ in range(3000):
        time.sleep(0.01)

def slow_row(row):
    block()

class Rowwise(Scripted):
    def sibling(self, **_):
        return self

COMPARE = "ask --compare client,other go"

async def in_a_task(function, *given, **named):
    function(*given, **named)

async def consumed(stream):
    async for event in stream:
        pass
"""


@pytest.fixture(scope="module", params=["this one", "ipykernel629"])
def patient(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    python = sys.executable if request.param == "this one" else str(OLD)
    if not Path(python).exists():
        pytest.skip("make beside makes .venvs/ipykernel629")
    kernel = Kernel(
        {"MMSP_NB_LIVE": "1", "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))},
        [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    )
    try:
        assert kernel.run(SETUP + HELP + SIGNAL_AT).status == "ok"
        yield kernel
    finally:
        kernel.close()


WAITS = {
    "a question": "main.ask('go')",
    "a quiet magic": "%mmsp ask --quiet go",
    "a comparison": "%mmsp ask --compare client,other go",
    "an answer in the background": "%mmsp ask --background go\n%mmsp ask and now",
    "a map": "mmsp_nb.map(['a', 'b'], client=client)",
    "a map's slow prompts": "mmsp_nb.map(['a', 'b'], slow_row, client=client)",
    "rows awaited with slow prompts": "await mmsp_nb.amap(['a', 'b'], slow_row, client=client)",
    "an agent's tool": "await consumed(Agent(Scripted([call('block')]), [block]).run('go'))",
    "an agent's tool in a task": "await asyncio.gather(consumed(Agent(Scripted([call('block')]), [block]).run('go')))",
    "an expression": "%mmsp ask {{block()}}",
    "what is stale": "%mmsp rerun stale",
    "a question in a task": "await asyncio.gather(in_a_task(main.ask, 'go'))",
    "a magic in a task": "await asyncio.gather(in_a_task(get_ipython().run_line_magic, 'mmsp', 'ask go'))",
    "a comparison in a task": "await asyncio.gather(in_a_task(get_ipython().run_line_magic, 'mmsp', COMPARE))",
    "a map in a task": "await asyncio.gather(in_a_task(mmsp_nb.map, ['a', 'b'], client=client))",
}


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupt_of_what_blocks_in_a_cell_that_awaits_is_heard_at_once(patient: Kernel, wait: str) -> None:
    patient.run("%mmsp stop")
    patient.run(
        "talk()\nclient = main.client = Rowwise([text('one '), 30], [text('two '), 30], [text('three '), 30])\n"
        "other = Scripted([text('here '), 30])"
    )
    if wait == "what is stale":
        patient.run(
            "talk([text('A.')], [text('B.')], [text('again '), 30], [30])\nmain.ask('a')\nmain.ask('b')\n"
            "main.hide(main.turns[0])"
        )
    event = "client.paused" if "block" not in WAITS[wait] and "slow" not in WAITS[wait] else "begun"
    cell = patient.run(f"await asyncio.sleep(0)\ninterrupt_when({event})\n{WAITS[wait]}", timeout=60)
    assert cell.status == "error", cell.streams
    assert cell.ename in ("KeyboardInterrupt", "CancelledError"), cell.evalue
    assert cell.messages[-1]["t"] < 10  # of 30 s
    assert patient.value("1 + 1") == 2
    patient.run("%mmsp stop")
    patient.run("talk([text('again')])")
    assert patient.run("%%mmsp\nand now?").texts() == "again"


def test_an_interrupt_while_a_server_of_tools_does_not_start_is_heard_at_once(kernel: Kernel) -> None:
    """The server itself interrupts, once it runs: then it is waited for."""
    server = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(30)"
    cell = kernel.run(f"await asyncio.sleep(0)\n%mmsp mcp add mute {sys.executable} -c '{server}'", timeout=60)
    assert (cell.status, cell.ename) == ("error", "KeyboardInterrupt"), cell.evalue
    assert cell.messages[-1]["t"] < 10  # of 30 s
    assert kernel.value("1 + 1") == 2
