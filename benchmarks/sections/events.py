"""A streamed event, beside plain httpx and beside the reference package."""

from __future__ import annotations

from rig import REFERENCE, Bench, Figure, Section, child, table
from server import DELTAS

PLACE = 20


def run(bench: Bench) -> list[Section]:
    rounds = bench.rounds(9)
    figures = [
        Figure(dialect, found["client"], found["httpx"], "µs", 3)
        for dialect, found in child("streaming.py", "mmsp_nb", bench.address, str(rounds)).items()
    ]
    return [
        Section(
            "A streamed event",
            f"CPU of one event of {DELTAS:,}, from the socket to the consumer of `AutoLLMClient`. Peer: httpx "
            "`aiter_lines` and `json.loads` on the same stream, sockets and chunked encoding included.",
            figures,
            _beside_reference(bench, figures, rounds),
        ),
        _in_memory(rounds),
    ]


def _in_memory(rounds: int) -> Section:
    return Section(
        "A streamed event without its socket",
        "The same streams handed to `AutoLLMClient` in chunks of one event, and of sixteen. Peer: the whole text at "
        "once, split into lines, and `json.loads` of each: no HTTP, no chunks, no asyncio.",
        [
            figure
            for dialect, found in child("decoding.py", str(rounds)).items()
            for figure in (
                Figure(dialect, found["client"], found["lines"], "µs", 3),
                Figure(f"{dialect}, sixteen at a time", found["full"], found["lines"], "µs", 3),
            )
        ],
    )


def _beside_reference(bench: Bench, figures: list[Figure], rounds: int) -> list[str]:
    if not REFERENCE.exists():
        return []
    reference = child("streaming.py", "mmsp", bench.address, str(max(1, rounds // 3)), python=REFERENCE)
    rows = [
        [mine.what, f"{mine.ratio:.2f}", f"{theirs['ratio']:.2f}", f"{theirs['ratio'] / mine.ratio:.1f}"]
        for mine, theirs in zip(figures, reference.values(), strict=True)
    ]
    return [table(("times plain httpx", "here", "reference 0.5.6", "reference / here"), rows)]
