"""What the output of one answer costs in a real kernel: every message to the front end is counted.

    python tests/notebook/output_in_a_kernel.py [--json] [--rounds N]

A model on loopback writes at a steady pace, a kernel draws the answer, and this process is the front end. The same
answer is drawn a second time as notebooks usually do it, by `display(Markdown(text))` anew at every delta.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import math
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

from mmsp_nb.testing import FakeProvider, Gate, Reply, encode, parts, wire
from mmsp_nb.testing.reply import Part

LEFT_OUT = re.compile(r"\n\n⋯ ([\d,]+) characters are left out here; [^⋯]+ ⋯\n\n")
DRAWS = ("display_data", "update_display_data")
MARK = re.compile(r"w(\d{5})")

SETUP = """
%load_ext mmsp_nb
import time
"""
PLAIN = """
from IPython.display import Markdown, display
from mmsp_nb import AutoLLMClient
async def draw():
    text, handle = "", display(Markdown(""), display_id=True)
    message = {"role": "user", "content_items": [{"type": "text", "text": "Go on."}]}
    async for event in AutoLLMClient("fake", client_type="openai-chat").streaming_response([message], {}):
        for item in event["content_items"]:
            if item["type"] == "text.delta":
                text += item["text"]
                handle.update(Markdown(text))
await draw()
"""
OURS = "%%mmsp -m fake --client-type openai-chat --new\nGo on."


@dataclass(frozen=True)
class Load:
    """An answer of ``length`` characters in ``deltas``, over ``seconds``."""

    name: str
    deltas: int
    length: int
    seconds: float


LOADS = (
    Load("500 deltas, 16 kB in 1 s", 500, 16_000, 1.0),
    Load("5,000 deltas, 200 kB in 5 s", 5_000, 200_000, 5.0),
    Load("50 deltas a second, 16 kB in 10 s", 500, 16_000, 10.0),
    Load("20,000 deltas, 800 kB in 1 s", 20_000, 800_000, 1.0),
)


@dataclass(frozen=True)
class Cost:
    """What one answer cost.

    messages, size: all that was sent to draw it, in bytes of JSON. worst_messages, worst_size: of any second.
    stored: bytes in the notebook file. first, oldest: seconds from the model's first delta to the front end, and the
    longest that any delta waited; the last ones of an answer included. cpu: seconds of the kernel.
    exact: the last delta is on the screen, and the pieces of ``text/plain`` are the text, but for what they say is
    left out. noise: seconds by which a thread that slept was late at most: how busy the machine was.
    """

    messages: int
    size: int
    worst_messages: int
    worst_size: int
    stored: int
    first: float
    oldest: float
    cpu: float
    text: int
    exact: bool
    noise: float


def pieces(deltas: int, length: int) -> list[str]:
    """The answer: mixed Markdown with a mark in every delta, so that it is seen how far the screen is."""
    room = max(length // deltas - 1, 22)
    made = []
    for number in range(deltas):
        mark, place = f"w{number:05d}", number % 40
        if place == 0:
            made.append(f"\n## Section {mark}\n\n")
        elif place <= 14:
            made.append(f"the **tide** {mark} ".ljust(room, "o") + (" ." if place % 7 else ".\n\n"))
        elif place <= 24:
            head, tail = ("```python\n" if place == 15 else ""), ("```\n\n" if place == 24 else "")
            made.append(f"{head}{f'h = f({mark}, 2)  # '.ljust(room, 'm')}\n{tail}")
        elif place <= 31:
            head = "| port | range |\n|---|---:|\n" if place == 25 else ""
            made.append(f"{head}{f'| {mark} | 4.2 '.ljust(room - 2)}|\n" + ("\n" if place == 31 else ""))
        else:
            made.append(f"- look {mark} ".ljust(room, "a") + "\n" + ("\n" if place == 39 else ""))
    return made


class Paced:
    """A provider's answer at a steady pace.

    ``sent``: when each delta was written, by `time.time`; ``late``: by how many seconds, at most, because the machine
    was busy with something else.
    """

    def __init__(self, load: Load) -> None:
        self.text = pieces(load.deltas, load.length)
        self.sent: list[float] = []
        self.late = 0.0
        self._frames = encode(wire.chat.frames([parts.text(*self.text)]))
        # not faster than a gate every two milliseconds: what is due by then comes at once, as from a network
        self._batch = max(1, math.ceil(0.002 * load.deltas / load.seconds))
        self._period = self._batch * load.seconds / load.deltas

    def reply(self) -> Reply:
        return Reply(self._body(), headers={"content-type": "text/event-stream"})

    def _body(self) -> Iterator[Part]:
        role, *rest = self._frames
        deltas, tail = rest[: len(self.text)], rest[len(self.text) :]
        yield role
        gates = [Gate() for _ in range(math.ceil(len(deltas) / self._batch))]
        threading.Thread(target=self._open, args=(gates,), daemon=True).start()
        for number, gate in enumerate(gates):
            yield gate
            now = time.time()
            for delta in deltas[number * self._batch : (number + 1) * self._batch]:
                self.sent.append(now)
                yield delta
        yield from tail

    def _open(self, gates: list[Gate]) -> None:
        begin = time.monotonic() + 0.3
        for number, gate in enumerate(gates):
            planned = begin + number * self._period
            time.sleep(max(planned - time.monotonic(), 0))
            self.late = max(self.late, time.monotonic() - planned)
            gate.open()


class Kernel:
    """A kernel whose every message on iopub is kept, with the time at which it came."""

    def __init__(self, provider: FakeProvider, folder: str) -> None:
        self._manager = KernelManager()
        self._manager._kernel_spec = KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
        )
        env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        env |= {"OPENAI_BASE_URL": provider.url("/v1"), "OPENAI_API_KEY": "test-key-of-the-fake"}
        self._manager.start_kernel(env={**env, "MMSP_NB_LIVE": "1", "MMSP_MODEL": "demo", "IPYTHONDIR": folder})
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.iopub_channel.socket.rcvhwm = 0
        self._client.wait_for_ready(timeout=60)

    def run(self, code: str) -> list[tuple[float, dict[str, Any]]]:
        """The cell's messages until it is idle. Raises RuntimeError when it fails."""
        request = self._client.execute(code)
        found: list[tuple[float, dict[str, Any]]] = []
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != request:
                continue
            found.append((time.time(), message))
            if message["msg_type"] == "error":
                raise RuntimeError("\n".join(message["content"]["traceback"]))
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return found

    def cpu(self) -> float:
        """CPU seconds of the kernel so far."""
        said = [m["content"]["text"] for _, m in self.run("print(time.process_time())") if m["msg_type"] == "stream"]
        return float("".join(said))

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def measure(kernel: Kernel, provider: FakeProvider, load: Load, code: str = OURS) -> Cost:
    """Ask once, and count."""
    paced = Paced(load)
    provider.add(paced.reply())
    before = kernel.cpu()
    messages = kernel.run(code)
    cpu = kernel.cpu() - before
    drawn = [(at, m) for at, m in messages if m["msg_type"] in DRAWS]
    # the limits hold for what is sent: on a busy machine messages arrive in heaps
    sent = [m["header"]["date"].timestamp() for _, m in drawn]
    return counted(paced, [(at, m["msg_type"], m["content"]) for at, m in drawn], sent, cpu)


def counted(paced: Paced, drawn: list[tuple[float, str, dict[str, Any]]], times: list[float], cpu: float) -> Cost:
    """The figures of what was drawn, each message sent at its time."""
    sizes = [len(json.dumps(content)) for _, _, content in drawn]
    worst_messages = worst_size = 0
    for first, at in enumerate(times):
        last = bisect.bisect_left(times, at + 1.0)
        worst_messages = max(worst_messages, last - first)
        worst_size = max(worst_size, sum(sizes[first:last]))
    outputs: dict[Any, dict[str, Any]] = {}
    number, lags = 0, []
    for at, _, content in drawn:
        outputs[content["transient"].get("display_id", len(outputs))] = content
        data = content["data"]
        marks = MARK.findall(data.get("text/html") or data.get("text/markdown") or "")
        seen = int(marks[-1]) if marks else -1
        while number <= seen:
            lags.append(at - paced.sent[number])
            number += 1
    text = "".join(paced.text)
    plain = "".join(content["data"].get("text/plain", "") for content in outputs.values())
    if left_out := LEFT_OUT.search(plain):
        end = left_out.start() + int(left_out[1].replace(",", ""))
        plain = plain[: left_out.start()] + text[left_out.start() : end] + plain[left_out.end() :]
    return Cost(
        messages=len(drawn),
        size=sum(sizes),
        worst_messages=worst_messages,
        worst_size=worst_size,
        stored=sum(len(json.dumps([each["data"], each["metadata"]])) for each in outputs.values()),
        first=lags[0],
        oldest=max(lags),
        cpu=cpu,
        text=len(text),
        exact=number == len(paced.text) and plain == text,
        noise=paced.late,
    )


def measured(
    loads: tuple[Load, ...] = LOADS, rounds: int = 1, *, plain: bool = True
) -> Iterator[tuple[str, str, Cost]]:
    """Load, way (``here`` or ``plain``) and cost, as they are measured in one kernel, which has answered before."""
    with tempfile.TemporaryDirectory() as folder, FakeProvider() as provider:
        kernel = Kernel(provider, folder)
        try:
            kernel.run(SETUP)
            yield "the first question of a kernel", "here", measure(kernel, provider, Load("", 50, 1_600, 1.0))
            for load in loads:
                for _, (way, code) in itertools.product(range(rounds), (("here", OURS), ("plain", PLAIN))):
                    if way == "here" or (plain and load.deltas <= 5_000):
                        yield load.name, way, measure(kernel, provider, load, code)
        finally:
            kernel.close()


HEAD = (
    "", "messages", "kB sent", "sent / text", "worst second", "stored kB", "first delta", "oldest tail", "kernel CPU"
)  # fmt: skip


def row(load: str, way: str, cost: Cost) -> list[str]:
    """One line of the table."""
    name = load if way == "here" else f"{load}: `display(Markdown)`"
    return [
        name,
        f"{cost.messages:,}",
        f"{cost.size / 1e3:,.0f}",
        f"{cost.size / cost.text:,.1f}",
        f"{cost.worst_messages:,}, {cost.worst_size / 1e3:,.0f} kB",
        f"{cost.stored / 1e3:,.0f}",
        f"{cost.first * 1e3:,.0f} ms",
        f"{cost.oldest:,.2f} s",
        f"{cost.cpu:,.2f} s",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="rows for a program")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if options.json:
        print(json.dumps([HEAD, *(row(*found) for found in measured(rounds=options.rounds))]))
        return
    print(" | ".join(HEAD))
    for load, way, cost in measured(rounds=options.rounds):
        print(" | ".join(row(load, way, cost)), "" if way == "plain" or cost.exact else "NOT EXACT", flush=True)


if __name__ == "__main__":
    main()
