"""A real kernel whose messages are all kept."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class Cell:
    """What came of one cell: its messages in order, each with ``t`` (seconds from the request) and ``size``."""

    def __init__(self, reply: dict[str, Any], messages: list[dict[str, Any]], after_interrupt: float | None) -> None:
        self.status: str = reply["status"]
        self.ename: str | None = reply.get("ename")
        self.evalue: str | None = reply.get("evalue")
        self.traceback: list[str] = reply.get("traceback") or []
        self.payload: list[dict[str, Any]] = reply.get("payload") or []
        self.messages = messages
        self.after_interrupt = after_interrupt

    @property
    def drawn(self) -> list[dict[str, Any]]:
        """Display messages, updates included."""
        return [m for m in self.messages if m["msg_type"] in ("display_data", "update_display_data")]

    @property
    def streams(self) -> str:
        return "".join(m["content"]["text"] for m in self.messages if m["msg_type"] == "stream")

    def screen(self) -> list[tuple[str, dict[str, Any]]]:
        """What stands in the cell at the end, in order: ("text", data) for our text, ("stream", {"text": ...}) ..."""
        shown: list[tuple[str, dict[str, Any]]] = []
        places: dict[str, int] = {}
        for message in self.messages:
            content = message["content"]
            kind = message["msg_type"]
            if kind == "stream":
                if shown and shown[-1][0] == "stream":
                    shown[-1][1]["text"] += content["text"]
                else:
                    shown.append(("stream", {"text": content["text"]}))
            elif kind in ("display_data", "execute_result", "update_display_data"):
                name = content["metadata"].get("mmsp", {}).get("kind", "display")
                key = content.get("transient", {}).get("display_id")
                if kind == "update_display_data":
                    shown[places[key]] = (name, content["data"])
                else:
                    if key:
                        places[key] = len(shown)
                    shown.append((name, content["data"]))
            elif kind == "error":
                shown.append(("error", content))
        return shown

    def texts(self) -> str:
        """The joined plain text of our text outputs."""
        return "".join(data["text/plain"] for kind, data in self.screen() if kind == "text")


class Kernel:
    """A kernel of this Python, or another command's. ``run`` executes a cell and waits until it is idle."""

    def __init__(self, env: dict[str, str], argv: list[str] | None = None, file: Path | None = None) -> None:
        from jupyter_client import KernelManager
        from jupyter_client.kernelspec import KernelSpec

        self.manager = KernelManager()
        self.manager._kernel_spec = KernelSpec(
            argv=argv or [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
        )
        if file is not None:
            self.manager.connection_file = str(file)
        clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and k != "PYTEST_CURRENT_TEST"}
        clean |= {"PYTHONPATH": str(HERE), "MMSP_MODEL": "demo"}
        self.manager.start_kernel(env={**clean, **env})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, *, interrupt_when: Any = None, timeout: float = 60) -> Cell:
        """Execute ``code``. ``interrupt_when(message)`` True: interrupt the kernel then."""
        import json

        begin = time.time()
        request = self.client.execute(code)
        messages: list[dict[str, Any]] = []
        interrupted: float | None = None
        while True:
            message = self.client.get_iopub_msg(timeout=timeout)
            now = time.time()
            if message["parent_header"].get("msg_id") != request:
                continue
            message["t"], message["at"] = now - begin, now
            message["size"] = len(json.dumps(message["content"], default=str))
            messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            if interrupted is None and interrupt_when is not None and interrupt_when(message):
                interrupted = time.time()
                threading.Timer(0, self.manager.interrupt_kernel).start()
        reply = self.client.get_shell_msg(timeout=timeout)
        while reply["parent_header"].get("msg_id") != request:
            reply = self.client.get_shell_msg(timeout=timeout)
        return Cell(reply["content"], messages, None if interrupted is None else messages[-1]["at"] - interrupted)

    def value(self, expression: str) -> Any:
        """The value of an expression, by way of JSON."""
        import json

        cell = self.run(f"import json as _j; print('<<' + _j.dumps(({expression}), default=str) + '>>')")
        assert cell.status == "ok", cell.evalue
        return json.loads(cell.streams.split("<<", 1)[1].rsplit(">>", 1)[0])

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


SETUP = """
%load_ext mmsp_nb
from scripted import *
from mmsp_nb import Conversation, tool
import time, asyncio, threading
def talk(*scripts, pace=0.0, **options):
    global main, client
    client = Scripted(*scripts, pace=pace)
    main = Conversation(client=client, **options)
    get_ipython().magics_manager.registry["MMSPMagics"].chats._chats["main"] = main
"""
