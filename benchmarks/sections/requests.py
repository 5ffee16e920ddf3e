"""A request with a long history, and the way to the first delta."""

from __future__ import annotations

from requesting import TURNS
from rig import Bench, Figure, Section, child, table

PLACE = 30


def run(bench: Bench) -> list[Section]:
    found = child("requesting.py", bench.address, str(bench.rounds(9)))
    return [_history(found["history"]), _first(found["first"])]


def _history(found: dict[str, dict[str, dict[str, float]]]) -> Section:
    figures = [
        Figure(f"{dialect}, {turns:,} turns", sizes[str(turns)]["client"], sizes[str(turns)]["httpx"], "ms", 1.5)
        for dialect, sizes in found.items()
        for turns in TURNS
    ]
    growth = [
        [dialect, *(f"{sizes[str(turns)]['client'] / turns * 1e3:.1f}" for turns in TURNS)]
        for dialect, sizes in found.items()
    ]
    whole = [
        [dialect, *(f"{sizes[str(turns)]['whole'] / sizes[str(turns)]['httpx']:.2f}" for turns in TURNS)]
        for dialect, sizes in found.items()
    ]
    return Section(
        "A request with a long history",
        "CPU of one more turn of a stateful client, answer included. Peer: `json.dumps` of the same body, posted with "
        "httpx, its answer read. A client keeps the JSON of what it has sent, so that with a long history it does less "
        "than its peer.",
        figures,
        [
            "CPU for each turn of history, in µs: flat when a turn costs the same, however many there are.",
            table(("", *(f"{turns:,} turns" for turns in TURNS)), growth),
            "The same list given whole to `streaming_response`, which remembers nothing: every message is checked and "
            "written anew. Times the peer.",
            table(("", *(f"{turns:,} turns" for turns in TURNS)), whole),
        ],
    )


def _first(found: dict[str, dict[str, float]]) -> Section:
    figures = [
        figure
        for dialect, each in found.items()
        for figure in (
            Figure(f"{dialect}, elapsed", each["client"], each["httpx"], "ms", within=1),
            Figure(f"{dialect}, CPU", each["client cpu"], each["httpx cpu"], "ms"),
        )
    ]
    return Section(
        "The first delta",
        "From the call to the first delta in the consumer's hands, on a new loopback connection. Peer: httpx, to the "
        "line that holds it. Elapsed: the fastest tenth, since others use the machine too.",
        figures,
    )
