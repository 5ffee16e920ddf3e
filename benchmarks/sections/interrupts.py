"""How long an interrupted answer takes to end."""

from __future__ import annotations

import statistics
import sys

from interrupts import CELLS, GOAL, OLD, STATES, measure, version_of
from rig import Bench, Section, table

PLACE = 60


def run(bench: Bench) -> list[Section]:
    pythons = [sys.executable, *([OLD] if OLD.exists() else [])]
    found = [(version_of(python), measure(python, bench.rounds(5))) for python in pythons]
    head = ["", *(f"ipykernel {version}, {kind}" for version, _ in found for kind in CELLS), f"all below {GOAL} s"]
    rows = []
    for state in STATES:
        times = [each[state, kind] for _, each in found for kind in CELLS]
        shown = [f"{statistics.median(each) * 1e3:.0f} ms ({max(each) * 1e3:.0f})" for each in times]
        rows.append([state, *shown, "yes" if all(statistics.median(each) < GOAL for each in times) else "**no**"])
    return [
        Section(
            "An interrupt",
            "In a real kernel, from the kernel's interrupt to the idle cell; median, and the longest. Each time the "
            "connection has to be closed and the next question answered. Awaited: the magic is the whole cell; "
            "blocking: it stands below `%%time`.",
            below=[table(head, rows)],
        )
    ]
