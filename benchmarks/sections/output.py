"""What the output of one answer sends to the front end, and what is stored of it."""

from __future__ import annotations

from output_budget import answer, simulate
from rig import Bench, Section, table

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
    return [
        Section(
            "What is sent to the front end",
            "An answer of 16,000 characters in deltas of 4, on a simulated clock.",
            below=[table(("", *_COLUMNS.values()), rows)],
        )
    ]
