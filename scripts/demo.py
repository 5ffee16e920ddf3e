"""`make demo`: a notebook in a real kernel, its cells and what they answer printed as they come."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

CELL_SECONDS = 600
QUIET_KERNEL = ["--log-level=ERROR"]  # it warns of unencrypted sockets on 127.0.0.1 otherwise


class Demo:
    """Runs a notebook in a real kernel and prints its cells and what they answer, as it comes."""

    def __init__(self, path: Path, screen: Screen | None = None) -> None:
        self.path = path
        self.screen = screen or Screen()

    def run(self) -> int:
        from jupyter_client.manager import start_new_kernel

        cells = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
        started = time.monotonic()
        manager, client = start_new_kernel(
            kernel_name="python3", cwd=str(self.path.parent), extra_arguments=QUIET_KERNEL
        )
        try:
            code = [cell for cell in cells if cell["cell_type"] == "code"]
            failed = sum(self.cell(client, number, cell) for number, cell in enumerate(code, 1))
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
        seconds = time.monotonic() - started
        self.screen.print(f"{len(code)} cells, {len(code) - failed} ran as they should, {seconds:.0f} s\n")
        return 1 if failed else 0

    def cell(self, client: Any, number: int, cell: Mapping[str, Any]) -> int:
        """Run one cell; 1 when it failed and was not meant to."""
        source = "".join(cell["source"]).rstrip()
        self.screen.print_source(f"[{number}] ", source)
        error = None
        request = client.execute(source, allow_stdin=False)
        while True:
            message = client.get_iopub_msg(timeout=CELL_SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "stream":
                self.screen.print(content["text"])
            elif kind in ("display_data", "update_display_data", "execute_result"):
                self.display(content)
            elif kind == "error":
                error = content
                self.screen.print_block(content["traceback"][-1] if content["traceback"] else content["evalue"])
        self.screen.end_cell()
        return 1 if error and "raises-exception" not in cell["metadata"].get("tags", []) else 0

    def display(self, content: Mapping[str, Any]) -> None:
        """Show an output. Of what is still growing or waiting there is no plain text that counts."""
        data, name = content["data"], content.get("transient", {}).get("display_id")
        waiting = content["metadata"].get("mmsp", {}).get("kind") == "status" and name
        if "text/plain" in data and not waiting:
            self.screen.settle(name, data["text/plain"])
        else:
            self.screen.grow(name or "", data.get("text/plain") or in_words(data.get("text/html", "")))


class Screen:
    """Standard output: what is final is printed once; in a terminal what is still growing shows its end below that."""

    ROWS = 6

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.growing: dict[str, str] = {}
        self.settled: dict[str, str] = {}
        self.rows = 0  # drawn for what is growing
        self.at_start = True  # of a line
        self.after_source = False  # of a cell, whose blank line is printed already

    def print(self, text: str) -> None:
        """Print text above what is growing."""
        if text:
            self._erase()
            self._write(text)
            self._draw()

    def print_block(self, text: str) -> None:
        """Print text that stands on lines of its own."""
        self.print(("" if self.at_start else "\n") + text.rstrip() + "\n" if text.strip() else "")

    def print_source(self, mark: str, source: str) -> None:
        rows = [f"{mark if number == 0 else '    '}{line}" for number, line in enumerate(source.splitlines())]
        dim, plain = ("\033[2m", "\033[0m") if self.terminal else ("", "")
        self.print("".join(f"{dim}{row}{plain}\n" for row in rows) + "\n")

        self.after_source = True

    def grow(self, name: str, text: str) -> None:
        self.growing[name] = text
        self._erase()
        self._draw()

    def settle(self, name: str | None, text: str) -> None:
        self._erase()
        self.growing.pop(name or "", None)
        before = self.settled.get(name or "", "")
        self.print_block(text[len(before) :] if text.startswith(before) else text)
        if name is not None:
            self.settled[name] = text
        self._draw()

    def end_cell(self) -> None:
        for name, text in list(self.growing.items()):
            self.settle(name, "" if text.startswith("◌") else text)
        self.settled.clear()
        if self.after_source:
            return
        self.print("\n" if self.at_start else "\n\n")

    def _write(self, text: str) -> None:
        print(text, end="", flush=True)
        self.at_start = text.endswith("\n")
        self.after_source = False

    def _erase(self) -> None:
        if self.rows:
            print(f"\033[{self.rows}A\033[J", end="", flush=True)
            self.rows = 0

    def _draw(self) -> None:
        if not (self.terminal and self.at_start) or self.rows:
            return
        width = shutil.get_terminal_size().columns - 1
        text = "\n".join(filter(None, self.growing.values()))
        rows = [row for line in text.splitlines() for row in textwrap.wrap(line, width) or [""]][-self.ROWS :]
        print("".join(f"{row}\n" for row in rows), end="", flush=True)
        self.rows = len(rows)


def in_words(html: str) -> str:
    """The text of an HTML output, paragraphs on lines of their own."""
    reader = _Words()
    reader.feed(html)
    reader.close()
    return "".join(reader.parts).strip()


class _Words(HTMLParser):
    """Collects text; leaves out styles, scripts, buttons, and what is folded away."""

    UNSEEN = ("style", "script", "button")
    BLOCKS = ("p", "div", "li", "pre", "tr", "summary", "details", "h1", "h2", "h3", "h4")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden: list[str] = []  # the tags that hide what is in them

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.UNSEEN or (tag == "details" and ("open", None) not in attrs and ("open", "") not in attrs):
            self.hidden.append(tag)
        elif tag == "summary" and self.hidden[-1:] == ["details"]:
            self.hidden.append("")  # a summary is seen although its details are not
        elif tag == "br":
            self.handle_data("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.BLOCKS:
            self.handle_data("\n" if self.parts and not self.parts[-1].endswith("\n") else "")
        if self.hidden[-1:] == [tag] or (tag == "summary" and self.hidden[-1:] == [""]):
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self.hidden or self.hidden[-1] == "":
            self.parts.append(data)
