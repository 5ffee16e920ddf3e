"""What chatlas sends to a notebook for one answer, by the environment that `make bench` makes for it.

    python benchmarks/chatlas_output.py ADDRESS       prints JSON: messages, and bytes of their data and metadata

The shell has the name of a kernel's, by which chatlas knows a notebook; its publisher counts instead of sending.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell


class Counting(DisplayPublisher):
    sizes: list[int] = []

    def publish(self, data: Any, metadata: Any = None, **options: Any) -> None:
        self.sizes.append(len(json.dumps([data, metadata or {}]).encode()))


class ZMQInteractiveShell(InteractiveShell):
    def init_display_pub(self) -> None:
        self.display_pub = Counting(parent=self, shell=self)


CELL = """
from chatlas import ChatOpenAICompletions
chat = ChatOpenAICompletions(model="m", api_key="k", base_url={base_url!r})
said = chat.chat("When is high tide?", echo="output")
"""


def main(address: str) -> None:
    shell = ZMQInteractiveShell.instance()
    start = time.perf_counter()
    shell.run_cell(CELL.format(base_url=f"{address}/answer/chat/v1")).raise_error()
    sizes = Counting.sizes
    length = len(str(shell.user_ns["said"]))
    print(
        json.dumps({"messages": len(sizes), "bytes": sum(sizes), "length": length, "took": time.perf_counter() - start})
    )


if __name__ == "__main__":
    main(sys.argv[1])
