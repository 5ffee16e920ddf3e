"""Many streams at once."""

from __future__ import annotations

import statistics

from rig import Bench, Figure, Section, child

PLACE = 40


def run(bench: Bench) -> list[Section]:
    runs = [
        (child("crowd.py", "client", bench.address), child("crowd.py", "httpx", bench.address))
        for _ in range(bench.rounds(3))
    ]
    middle = {
        key: [statistics.median(each[side][key] for each in runs) for side in (0, 1)]
        for key in ("spread", "cpu", "memory")
    }
    return [
        Section(
            "200 streams at once",
            "In one process, 50 deltas 20 ms apart each. Spread: between the first stream that ends and the last one. "
            "Memory: resident, a stream that has begun. Peer: the same with httpx alone.",
            [
                Figure("spread of the ends", *middle["spread"], "ms"),
                Figure("CPU a stream", *middle["cpu"], "ms"),
                Figure("memory a stream", *middle["memory"], "KiB"),
            ],
        )
    ]
