"""What the output of one answer sends to the front end, and what is stored of it."""

from __future__ import annotations

from output_budget import answer, simulate
from rig import PEERS, Bench, Figure, Section, child, table
from server import LENGTH, SIZE

PLACE = 50

_COLUMNS = {
    "messages": "messages",
    "ratio": "bytes sent / bytes of text",
    "most_messages": "most messages in 1 s",
    "most_bytes": "most bytes in 1 s",
    "largest": "largest",
    "stored": "stored",
}


def run(bench: Bench) -> list[Section]:
    rows = []
    for kind in ("mixed", "code", "line"):
        for rate in (50, 1_000, 20_000):
            found = simulate(answer(16_000, kind), rate)
            rows.append([f"{kind}, {rate:,} deltas/s", *(f"{found[name]:,}" for name in _COLUMNS)])
    explained = "An answer of 16,000 characters in deltas of 4, on a simulated clock."
    head = ("", *_COLUMNS.values())
    return [*_beside_chatlas(bench), Section("What is sent to the front end", explained, below=[table(head, rows)])]


def _beside_chatlas(bench: Bench) -> list[Section]:
    if not PEERS.exists():
        return []
    ours = simulate(answer(LENGTH, "mixed"), 500, SIZE)
    theirs = child("chatlas_output.py", bench.address, python=PEERS)
    return [
        Section(
            "One answer, beside chatlas",
            f"{LENGTH:,} characters of mixed Markdown in a second, in 500 deltas. Text, Markdown and HTML are all "
            "stored. Peer: `Chat.chat` of chatlas 0.23.0 in a notebook's shell, on the same stream.",
            [
                Figure("messages", ours["messages"], theirs["messages"], ""),
                Figure("bytes for a byte of text", ours["bytes"] / LENGTH, theirs["bytes"] / LENGTH, "", most=15),
                Figure("messages in the worst second", ours["most_messages"], theirs["messages"], "", most=12),
                Figure("kB in the worst second", ours["most_bytes"] / 1e3, theirs["bytes"] / 1e3, "", most=100),
            ],
        )
    ]
