"""Many rows."""

from __future__ import annotations

import statistics

from rig import Bench, Figure, Section, child

PLACE = 45


def run(bench: Bench) -> list[Section]:
    rows = "500" if bench.quick else "10000"
    runs = [
        (child("rows.py", "map", bench.address, rows), child("rows.py", "httpx", bench.address, rows))
        for _ in range(bench.rounds(3))
    ]
    middle = {
        key: [statistics.median(each[side][key] for each in runs) for side in (0, 1)]
        for key in ("cpu", "took", "memory")
    }
    return [
        Section(
            f"{int(rows):,} rows",
            "`mmsp_nb.map` over a list, 32 at once, each answer one word. Memory: resident, what a row leaves with "
            "its messages, usage and times. Peer: the same requests by httpx alone, gathered; only the texts stay.",
            [
                Figure("CPU a row", *middle["cpu"], "ms", goal=2),
                Figure("time a row", *middle["took"], "ms"),
                Figure("memory a row", *middle["memory"], "KiB", most=10),
            ],
        )
    ]
