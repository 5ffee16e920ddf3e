"""What the live output of one answer costs: messages, bytes, and what is stored in the notebook.

    python benchmarks/output_budget.py [--length CHARACTERS]

A long answer is streamed in small deltas at several speeds, on a simulated clock, so that eighty seconds take a moment.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.notebook.stretch import Message

LEFT_OUT = re.compile(r"\n\n⋯ ([\d,]+) characters are left out here; [^⋯]+ ⋯\n\n")

PARAGRAPH = (
    "The **tide** at Brest follows the moon: two high waters a day, about *twelve and a half hours* apart. "
    "Spring tides come with the full and the new moon, [neap tides](https://example.org/neap) between them.\n\n"
)
CODE = """```python
def height(t, a=4.1, period=12.42):
    # metres above chart datum
    return a * cos(2 * pi * t / period)
```

"""
TABLE = "| port | range | spring |\n|---|---:|---:|\n| Brest | 4.2 m | 6.1 m |\n| Saint-Malo | 8.1 m | 11.9 m |\n\n"
LIST = "1. look at the moon\n2. look at the **coast**\n3. ask the harbour master\n\n"
SECTION = "## Section\n\n" + PARAGRAPH * 2 + CODE + PARAGRAPH + TABLE + LIST


def answer(length: int, kind: str) -> str:
    """An answer of that many characters: mixed Markdown, one endless code block, or one endless line."""
    unit = {"mixed": SECTION, "code": "    value = compute(1, 'two')  # three\n", "line": "word " * 20}[kind]
    head = "```python\n" if kind == "code" else ""
    return (head + unit * (length // len(unit) + 1))[:length]


def deltas(text: str, size: int) -> Iterator[str]:
    """``text`` in pieces of that size."""
    return (text[i : i + size] for i in range(0, len(text), size))


def simulate(text: str, rate: float, size: int = 4) -> dict[str, Any]:
    """Stream ``text`` at ``rate`` deltas a second on a simulated clock, as a session would; returns the figures."""
    sent: list[tuple[float, Message]] = []
    now = 0.0
    output = LiveOutput(lambda message: sent.append((now, message)), label="model", now=0.0)
    oldest = 0.0
    waiting: float | None = None

    def advance(until: float) -> None:
        nonlocal now, waiting, oldest
        while (due := output.due()) is not None and due <= until:
            now = max(due, now)
            before = len(sent)
            output.tick(now)
            if len(sent) > before and waiting is not None:
                oldest, waiting = max(oldest, now - waiting), None
            if len(sent) == before:
                break

    for index, delta in enumerate(deltas(text, size)):
        at = 0.05 + index / rate
        advance(at)
        now = at
        item = {"type": "text.delta", "text": delta}
        output.event({"type": "event", "event": {"content_items": [item]}}, now)
        waiting = now if waiting is None else waiting
        advance(now)
    now += 0.02
    while output.behind:
        now = max(output.due() or 0.0, now + 0.01)
        output.tick(now)
    output.close(now, footer="model · 2.1 s")
    return figures(text, sent, oldest)


def figures(text: str, sent: list[tuple[float, Message]], oldest: float) -> dict[str, Any]:
    """Messages, bytes and stored size of what was sent."""
    stored: dict[str, Message] = {}
    for _, message in sent:
        stored[message.display_id or str(id(message))] = message
    times = [(time, message.size) for time, message in sent]
    windows = [[(t, s) for t, s in times if begin <= t < begin + 1] for begin, _ in times]
    joined = "".join(message.data["text/plain"] for message in stored.values())
    left_out = LEFT_OUT.search(joined)
    if left_out is not None:
        missing = text[left_out.start() : left_out.start() + int(left_out[1].replace(",", ""))]
        joined = joined[: left_out.start()] + missing + joined[left_out.end() :]
    return {
        "messages": len(sent),
        "bytes": sum(size for _, size in times),
        "ratio": round(sum(size for _, size in times) / len(text), 1),
        "most_messages": max((len(window) for window in windows), default=0),
        "most_bytes": max((sum(size for _, size in window) for window in windows), default=0),
        "largest": max(size for _, size in times),
        "stored": sum(len(json.dumps(message.data)) for message in stored.values()),
        "outputs": len(stored),
        "first": times[0][0] - 0.05,
        "oldest": oldest,
        "exact": joined == text,
        "left_out": len(missing) if left_out else 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=16_000)
    arguments = parser.parse_args()
    print(f"{arguments.length:,} characters in deltas of 4")
    names = ("messages", "most_messages", "ratio", "most_bytes", "largest", "stored", "outputs", "oldest", "exact")
    print(f"{'kind':<6} {'deltas/s':>8} " + " ".join(f"{name:>13}" for name in names))
    for kind in ("mixed", "code", "line"):
        for rate in (50, 1_000, 20_000):
            found = simulate(answer(arguments.length, kind), rate)
            row = " ".join(f"{found[name]:>13.2f}" if name == "oldest" else f"{found[name]!s:>13}" for name in names)
            print(f"{kind:<6} {rate:>8} {row}")


if __name__ == "__main__":
    main()
