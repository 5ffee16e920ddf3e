"""Runs every benchmark and writes `RESULTS.md` beside this file.

    python benchmarks/run.py [--quick]

Each figure stands beside that of a peer in the same run: absolute times say little on a machine that others use, ratios
do. Measures alternate with their peer, the medians are compared, and where nothing is waited for it is CPU time. The
reference package is measured where `make conformance` has made its environment.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path

from output_budget import answer, simulate
from requesting import TURNS
from rig import HERE, Figure, child, table
from server import DELTAS, running
from starting import extension, imports

REFERENCE = HERE.parent / ".venvs" / "reference" / "bin" / "python"
HEAD = ("", "here", "peer", "ratio", "goal", "met")


def section(title: str, explained: str, figures: list[Figure]) -> str:
    for figure in figures:
        print("  ", " | ".join(figure.row()), flush=True)
    return f"## {title}\n\n{explained}\n\n" + table(HEAD, (figure.row() for figure in figures))


def start(rounds: int) -> str:
    return section(
        "Start",
        "CPU of a fresh interpreter, the bare interpreter's taken off. Peer: `import httpx, pydantic`; for the "
        "extension, the start of the IPython that it is loaded into.",
        imports(rounds) + extension(rounds),
    )


def events(address: str, rounds: int) -> str:
    figures = [
        Figure(dialect, found["client"], found["httpx"], "µs", 3)
        for dialect, found in child("streaming.py", "mmsp_nb", address, str(rounds)).items()
    ]
    text = section(
        "A streamed event",
        f"CPU of one event of {DELTAS:,}, from the socket to the consumer of `AutoLLMClient`. Peer: httpx "
        "`aiter_lines` and `json.loads` on the same stream.",
        figures,
    )
    if not REFERENCE.exists():
        return text
    reference = child("streaming.py", "mmsp", address, str(max(1, rounds // 3)), python=REFERENCE)
    rows = [
        [mine.what, f"{mine.ratio:.2f}", f"{theirs['ratio']:.2f}", f"{theirs['ratio'] / mine.ratio:.1f}"]
        for mine, theirs in zip(figures, reference.values(), strict=True)
    ]
    head = ("times plain httpx", "here", "reference 0.5.6", "reference / here")
    return f"{text}\n\n" + table(head, rows)


def requests(address: str, rounds: int) -> str:
    found = child("requesting.py", address, str(rounds))
    figures = [
        Figure(f"{dialect}, {turns:,} turns", sizes[str(turns)]["client"], sizes[str(turns)]["httpx"], "ms", 1.5)
        for dialect, sizes in found["history"].items()
        for turns in TURNS
    ]
    few, many = TURNS
    growth = [
        [dialect, *(f"{sizes[str(turns)]['client'] / turns * 1e3:.1f}" for turns in TURNS)]
        for dialect, sizes in found["history"].items()
    ]
    first = [
        figure
        for dialect, each in found["first"].items()
        for figure in (
            Figure(f"{dialect}, elapsed", each["client"], each["httpx"], "ms"),
            Figure(f"{dialect}, CPU", each["client cpu"], each["httpx cpu"], "ms"),
        )
    ]
    return "\n\n".join(
        (
            section(
                "A request with a long history",
                "CPU of one more turn of a stateful client, answer included. Peer: `json.dumps` of the same body, "
                "posted with httpx.",
                figures,
            ),
            "CPU for each turn of history, in µs: flat when a turn costs the same, however many there are.",
            table(("", f"{few:,} turns", f"{many:,} turns"), growth),
            section(
                "The first delta",
                "From the call to the first delta in the consumer's hands, on a new loopback connection. Peer: "
                "httpx, to the line that holds it.",
                first,
            ),
        )
    )


def crowd(address: str, rounds: int) -> str:
    runs = [(child("crowd.py", "client", address), child("crowd.py", "httpx", address)) for _ in range(rounds)]
    middle = {
        key: [statistics.median(run[side][key] for run in runs) for side in (0, 1)]
        for key in ("spread", "cpu", "memory")
    }
    return section(
        "200 streams at once",
        "In one process, 50 deltas 20 ms apart each. Spread: between the first stream that ends and the last one. "
        "Memory: resident, a stream that has begun. Peer: the same with httpx alone.",
        [
            Figure("spread of the ends", *middle["spread"], "ms"),
            Figure("CPU a stream", *middle["cpu"], "ms"),
            Figure("memory a stream", *middle["memory"], "KiB"),
        ],
    )


def output() -> str:
    names = ("messages", "ratio", "most_messages", "most_bytes", "largest", "stored")
    rows = []
    for kind in ("mixed", "code", "line"):
        for rate in (50, 1_000, 20_000):
            found = simulate(answer(16_000, kind), rate)
            rows.append([f"{kind}, {rate:,} deltas/s", *(f"{found[name]:,}" for name in names)])
    head = (
        "",
        "messages",
        "bytes sent / bytes of text",
        "most messages in 1 s",
        "most bytes in 1 s",
        "largest",
        "stored",
    )
    return (
        "## What is sent to the front end\n\nAn answer of 16,000 characters in deltas of 4, on a simulated clock.\n\n"
        + table(head, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that all of it runs")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    quick = options.quick
    parts = [
        "# Benchmarks\n\nWritten by `make bench`. Every figure stands beside a peer's of the same run; the two "
        "alternate, and medians are given. CPU time wherever nothing is waited for. The server is another process on "
        "loopback.\n\n"
        f"Python {platform.python_version()}, {platform.system()} on {os.cpu_count()} cores; httpx {version('httpx')}, "
        f"pydantic {version('pydantic')}, IPython {version('ipython')}.",
        start(2 if quick else 7),
    ]
    with running() as address:
        parts += [
            events(address, 2 if quick else 9),
            requests(address, 2 if quick else 9),
            crowd(address, 1 if quick else 3),
        ]
    parts.append(output())
    options.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
