"""How long an interrupted answer takes to end: in a real kernel, from the interrupt to the idle cell.

    python benchmarks/interrupts.py [--rounds 5] [PYTHON ...]

PYTHON: interpreters with a kernel and this package; by default the running one and that of ``.venvs/ipykernel629``.
The answers come over HTTP from a server in this process, which sees when its connection is closed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

from mmsp_nb.testing import FakeProvider, Gate, Reply
from mmsp_nb.testing.parts import Usage, call, text
from mmsp_nb.testing.wire import chat

__all__ = ["GOAL", "STATES", "Kernel", "measure"]

GOAL = 0.2
"""Seconds."""

USAGE = Usage(cached=0, prompt=10, thoughts=0, response=20)
GAP = 0.002
"""Seconds between two interrupts in a row: less than the first one takes to end a cell."""

LEFT_OUT = ("PYTEST_CURRENT_TEST", "PYTHONPATH", "JPY_SESSION_NAME")
OLD = Path(__file__).parents[1] / ".venvs" / "ipykernel629" / "bin" / "python"

SETUP = """
%load_ext mmsp_nb
import asyncio, signal, time
from mmsp_nb import tool
from mmsp_nb.notebook.output import LiveOutput

@tool
def block():
    'Blocks'
    print('in the tool')
    time.sleep(30)

@tool
async def wait():
    'Waits'
    print('in the tool')
    await asyncio.sleep(30)

chats = get_ipython().magics_manager.registry['MMSPMagics'].chats
"""


class Kernel:
    """A kernel of an interpreter. Its messages are read as they come."""

    def __init__(self, python: str | Path, provider: FakeProvider) -> None:
        self.provider = provider
        self._folder = tempfile.TemporaryDirectory(prefix="interrupts-")
        self.manager = KernelManager()
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager._kernel_spec = KernelSpec(argv=argv, language="python")
        kept = {
            k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", "PYTHONPATH", "JPY_SESSION_NAME")
        }
        own = {
            "MMSP_NB_LIVE": "1",
            "IPYTHONDIR": self._folder.name,
            "OPENAI_BASE_URL": provider.url("/v1"),
            "OPENAI_API_KEY": "test-key-of-the-fake",
            "MMSP_MODEL": "fake",
            "CLIENT_TYPE": "openai-chat",
        }
        self.manager.start_kernel(env={**kept, **own})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, seen: Callable[[str], bool] | None = None, interrupts: int = 1) -> tuple[str, float]:
        """Execute a cell; interrupt it when ``seen`` says so of a message. Its status, and the seconds from then on."""
        request = self.client.execute(code)
        begun = 0.0
        timers: list[threading.Timer] = []
        heard: list[str] = []
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=40)
            except Empty:
                raise AssertionError(
                    f"{code!r}: nothing for 40 s; {len(timers)} interrupts, {len(self.provider.requests)} requests;"
                    f" the last messages: {heard[-5:]}"
                ) from None
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            heard.append(f"{time.perf_counter():.3f} {message['msg_type']} {str(content)[:300]}")
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                took = time.perf_counter() - begun
                for timer in timers:  # none of them is for the next cell
                    timer.join()
                break
            if seen is None or begun or message["msg_type"] in ("status", "execute_input"):
                continue
            if seen(str(content)):
                begun = time.perf_counter()
                timers = [threading.Timer(number * GAP, self.manager.interrupt_kernel) for number in range(interrupts)]
                for timer in timers:
                    timer.start()
        while True:
            reply = self.client.get_shell_msg(timeout=5)
            if reply["parent_header"].get("msg_id") == request:
                content = reply["content"]
                return (content["status"] if content["status"] == "ok" else content["ename"]), took

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self._folder.cleanup()


def _said(*parts: Any) -> Reply:
    return Reply.stream(chat.frames(list(parts), usage=USAGE))


def _in_final(kernel: Kernel, cell: str) -> tuple[str, float]:
    """The interrupt comes while the complete answer is drawn for the last time."""
    patch = (
        "_close = LiveOutput.close\n"
        "def close(self, *a, **k):\n"
        "    LiveOutput.close = _close\n"
        "    print('closing', flush=True); time.sleep(0.05)\n"
        "    return _close(self, *a, **k)\n"
        "LiveOutput.close = close"
    )
    kernel.run(patch)
    return kernel.run(cell, lambda shown: "closing" in shown)


def _simple(what: str, interrupts: int = 1) -> Callable[[Kernel, str], tuple[str, float]]:
    return lambda kernel, cell: kernel.run(cell, lambda shown: what in shown, interrupts)


def _while_waiting(kernel: Kernel, cell: str) -> tuple[str, float]:
    """The interrupt comes when the request has: on a busy machine the waiting line may be there before it."""
    return kernel.run(cell, lambda shown: "◌" in shown and bool(kernel.provider.requests))


def _held(reply: Reply, until: bytes) -> Reply:
    """``reply``, which stops for good after the event with that in it."""
    return reply.hold(Gate(), reply.content.index(b"\n\n", reply.content.index(until)) + 2)


STATES: dict[str, tuple[Callable[[], Reply], Callable[[Kernel, str], tuple[str, float]]]] = {
    "before the first token": (lambda: _said(text("never")).hold(Gate()), _while_waiting),
    "in the text": (lambda: _held(_said(text("one ", "two ", "three")), b"two "), _simple("one two")),
    "in a synchronous tool": (lambda: _said(call("block", "{}", id="c1")), _simple("in the tool")),
    "in an asynchronous tool": (lambda: _said(call("wait", "{}", id="c1")), _simple("in the tool")),
    "in streamed arguments": (
        lambda: _held(_said(call("block", '{"a": ', "1}", id="c1")), b'\\"a\\": '),
        _simple("block"),
    ),
    "two interrupts in a row": (lambda: _held(_said(text("one ", "two ", "three")), b"two "), _simple("one two", 2)),
    "in the final drawing": (lambda: _said(text("one")), _in_final),
}
"""What is answered, and what is waited for before the interrupt."""

CELLS = {"awaited": "%%mmsp --new\ngo", "blocking": "%%time\n%%mmsp --new\ngo"}


def measure(python: str | Path, rounds: int = 3) -> dict[tuple[str, str], list[float]]:
    """Seconds from the interrupt to the idle cell, by state and kind of cell.

    Raises AssertionError when a cell does not end as an interrupted one, the connection stays open, or the next
    question is not answered.
    """
    found: dict[tuple[str, str], list[float]] = {}
    with FakeProvider() as provider:
        kernel = Kernel(python, provider)
        try:
            status, _ = kernel.run(SETUP)
            assert status == "ok", status
            for state, (reply, interrupt) in STATES.items():
                for kind, cell in CELLS.items():
                    for _ in range(rounds):
                        provider.reset()
                        provider.add(reply(), _said(text("on")))
                        status, took = interrupt(kernel, cell)
                        # what is complete may also end as such: the interrupt came too late
                        ends = ("KeyboardInterrupt", "ok") if "final" in state else ("KeyboardInterrupt",)
                        assert status in ends, f"{state}, {kind}: {status}"
                        provider.wait_until_idle()
                        status, _ = kernel.run("%%mmsp\nand now?")
                        assert status == "ok", f"the next question after an interrupt {state}, {kind}: {status}"
                        found.setdefault((state, kind), []).append(took)
        finally:
            kernel.close()
    return found


def version_of(python: str | Path) -> str:
    """The version of ipykernel there."""
    code = "import ipykernel; print(ipykernel.__version__)"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for python in options.pythons or [sys.executable, *([OLD] if OLD.exists() else [])]:
        print(f"ipykernel {version_of(python)}, milliseconds: median (most)")
        for (state, kind), times in measure(python, options.rounds).items():
            print(f"  {state:<26} {kind:<9} {statistics.median(times) * 1e3:6.0f} ({max(times) * 1e3:.0f})")


if __name__ == "__main__":
    main()
