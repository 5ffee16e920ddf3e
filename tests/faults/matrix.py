"""The fault matrix: every dialect, every fault, every consumer, and what must be true of each of those cells.

A cell asks a question that is answered, then one that meets the fault, then one more. It is right when

* the fault ends in a typed error whose text says what to do (or in a whole answer, where nothing was lost);
* what had come before it was handed on, and is kept where somebody keeps a history;
* the history is valid afterwards: the next question is answered, and its request passes the vendor's own rules;
* no socket, task or thread is left, and no tool ran on a call that had not come whole;
* a cell of a notebook has failed (behind and beside other answers: says so in its place).

``python tests/faults/matrix.py`` runs all of them and prints the table, ``--write FILE`` into a file.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consumers import CONSUMERS, Cell, consume
from fault_rows import ROWS, Row
from site_of_faults import CLIENTS, Site

__all__ = ["CLIENTS", "CONSUMERS", "ROWS", "Outcome", "cells", "play", "report", "run_cell"]

BY_NAME = {row.name: row for row in ROWS}


@dataclass
class Outcome:
    """What came of one cell: how many times the fault was played, how it ended, and what was wrong."""

    row: str
    client_type: str
    consumer: str
    tries: int = 0
    ends: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def cells(*, everything: bool) -> Iterator[tuple[str, str, str]]:
    """(row, client type, consumer): all of them, or all pairs with the client and all consumers with types rotated."""
    types = list(CLIENTS)
    for number, row in enumerate(ROWS):
        for place, consumer in enumerate(CONSUMERS):
            own = types if everything or consumer == "client" else [types[(number + place) % len(types)]]
            yield from ((row.name, client_type, consumer) for client_type in own if row.happens_to(client_type))


def run_cell(site: Site, name: str, client_type: str, consumer: str, *, thorough: bool = False) -> Outcome:
    """Play one cell, in each of the variants of its fault."""
    return play(site, BY_NAME[name], client_type, consumer, thorough=thorough)


def play(site: Site, row: Row, client_type: str, consumer: str, *, thorough: bool = False) -> Outcome:
    """The same for a row that need not be one of `ROWS`."""
    outcome = Outcome(row.name, client_type, consumer)
    for variant, replies in row.variants(CLIENTS[client_type][0], thorough and consumer == "client"):
        cell = Cell(site, row, client_type, replies)
        with cell:
            consume(consumer, cell)
        outcome.tries += 1
        outcome.ends |= cell.ends
        outcome.problems += [f"{variant}{': ' if variant else ''}{problem}" for problem in cell.problems]
    return outcome


def report(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The table in Markdown: a row for each fault, a column for each consumer."""
    bad = [outcome for outcome in outcomes if outcome.problems]
    played = sum(outcome.tries for outcome in outcomes)
    lines = [
        "# Fault matrix",
        "",
        "Made by `make faults`. Each cell is a real question over a real socket, followed by another one; "
        "`tests/faults/matrix.py` says what must be true of it. "
        "✓ n: true in all n client types (dialects) that can meet the fault; what it ends in is in the last column.",
        "",
        f"{len(ROWS)} faults, {len(CLIENTS)} client types ({', '.join(CLIENTS)}), {len(CONSUMERS)} consumers: "
        f"{len(outcomes)} cells, {played} faults played, {len(bad)} cells with a problem.",
        "",
        f"| fault | {' | '.join(CONSUMERS)} | ends in |",
        f"|---|{'---|' * len(CONSUMERS)}---|",
    ]
    for row in ROWS:
        own = [outcome for outcome in outcomes if outcome.row == row.name]
        marks = [_mark([outcome for outcome in own if outcome.consumer == consumer]) for consumer in CONSUMERS]
        ends = sorted({end for outcome in own for end in outcome.ends})
        lines.append(f"| {row.name}: {row.summary} | {' | '.join(marks)} | {', '.join(ends)} |")
    for outcome in bad:
        lines += ["", f"{outcome.row}, {outcome.client_type}, {outcome.consumer}:", ""]
        lines += [f"- {problem}" for problem in outcome.problems[:5]]
    print(
        f"{len(outcomes)} cells, {played} faults played in {seconds:.0f} s; {len(bad)} with a problem", file=sys.stderr
    )
    return "\n".join(lines) + "\n"


def _mark(outcomes: Sequence[Outcome]) -> str:
    wrong = [outcome.client_type for outcome in outcomes if outcome.problems]
    if not outcomes:
        return "-"
    return f"✗ {', '.join(wrong)}" if wrong else f"✓ {len(outcomes)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the table into this file")
    parser.add_argument("--only", default="", help="only faults whose name begins so")
    parser.add_argument("--consumer", choices=CONSUMERS, help="only this consumer")
    parser.add_argument("--quick", action="store_true", help="what the ordinary tests run")
    parser.add_argument("--every-byte", action="store_true", help="cut at every byte for the client, not at some")
    options = parser.parse_args()
    began = time.monotonic()
    outcomes = []
    with Site() as site:
        for name, client_type, consumer in cells(everything=not options.quick):
            if not name.startswith(options.only) or options.consumer not in (None, consumer):
                continue
            outcome = run_cell(site, name, client_type, consumer, thorough=options.every_byte)
            outcomes.append(outcome)
            for problem in outcome.problems[:3]:
                print(f"{name}, {client_type}, {consumer}: {problem}", file=sys.stderr, flush=True)
    text = report(outcomes, time.monotonic() - began)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)
    return int(any(outcome.problems for outcome in outcomes))


if __name__ == "__main__":
    # not by sys.exit: threads of the shell's history may be slow to end
    code = main()
    sys.stdout.flush()
    os._exit(code)
